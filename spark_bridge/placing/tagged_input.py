"""All inputs of a head as one DataFrame: one scan, one placement, one Python pass over them.

Rows carry a *tag*, the number of their relation.  Columns of different relations share a
*slot* where they have one type, so that relations of equal types make no row wider.

What a task has to know of the whole (:mod:`spark_bridge.placing.key_sample`) is itself computed
in the same query, so that nothing runs before an action: a single row, broadcast, which
only the first row of each task carries on, in the column ``plan``.  Rows and batches then
cost nothing for it.

Invariant: a task's first row has the plan; it comes from one evaluation for all tasks and
all relations, so they agree on it also where the inputs are not deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_bridge.placing.schemas import plain

TAG = "tag"
PLAN = "plan"
_ROW_IN_TASK = 2**33 - 1  # monotonically_increasing_id: the task's number above these bits


@dataclass(frozen=True)
class TaggedInput:
    """The union of relations.

    Attributes:
        relations: Names and Arrow schemas; a row's tag is the place in this list.
        slots: For each relation the number of the slot of each of its columns.
        frame: Columns ``tag`` and ``s0``, ``s1``, ...
    """

    relations: tuple[tuple[str, pa.Schema], ...]
    slots: tuple[tuple[int, ...], ...]
    frame: DataFrame

    @classmethod
    def of(cls, relations: Mapping[str, DataFrame], schemas: Sequence[tuple[str, pa.Schema]]) -> TaggedInput:
        """``schemas``: of the relations to take, which all are in ``relations``."""
        types: list[DataType] = []
        slots = []
        for name, _ in schemas:
            taken: list[int] = []
            for field in relations[name].schema:
                wanted = plain(field.dataType)
                free = [n for n, known in enumerate(types) if known == wanted and n not in taken]
                if not free:
                    types.append(wanted)
                taken.append(free[0] if free else len(types) - 1)
            slots.append(tuple(taken))
        frames = []
        for tag, (name, _) in enumerate(schemas):
            # By place: Spark takes names that differ in case only for one.
            frame = relations[name].toDF(*(f"c{column}" for column in range(len(slots[tag]))))
            frames.append(frame.selectExpr(f"{tag} AS {TAG}", *_columns(slots[tag], types)))
        union = frames[0]
        for frame in frames[1:]:
            union = union.unionAll(frame)
        return cls(tuple(schemas), tuple(slots), union)

    def with_plan(self, plan: DataFrame) -> DataFrame:
        """The rows with ``plan``, a DataFrame of one row and one binary column, at the first of each task."""
        joined = self.frame.crossJoin(F.broadcast(plan))
        first = f"monotonically_increasing_id() & {_ROW_IN_TASK} = 0"
        return joined.selectExpr(*self.frame.columns, f"CASE WHEN {first} THEN {PLAN} END AS {PLAN}")

    def reader(self) -> TagReader:
        """What takes the rows apart in a task; holds no DataFrame."""
        return TagReader(self.relations, self.slots)


@dataclass(frozen=True)
class TagReader:
    """Takes the batches of a :class:`TaggedInput` apart."""

    relations: tuple[tuple[str, pa.Schema], ...]
    slots: tuple[tuple[int, ...], ...]

    def tables(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each relation that a batch has rows of, in the types of its schema."""
        tags = batch.column(0)
        present = tags.unique().to_pylist()
        for tag in present:
            name, schema = self.relations[tag]
            rows = batch if len(present) == 1 else batch.filter(pa.compute.equal(tags, tag))
            columns = [rows.column(1 + slot) for slot in self.slots[tag]]
            cast = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            yield name, pa.Table.from_arrays(cast, schema=schema)


def plan_of(batch: pa.RecordBatch) -> bytes | None:
    """The plan that a task's first batch carries; None where its rows carry none."""
    if PLAN not in batch.schema.names or not batch.num_rows:
        return None
    value = batch.column(PLAN)[0].as_py()
    return bytes(value) if value is not None else None


def _columns(slots: Sequence[int], types: Sequence[DataType]) -> list[str]:
    """The slots as SQL, over a frame whose column n is called ``cn``."""
    column_of = {slot: column for column, slot in enumerate(slots)}
    return [
        f"CAST({f'c{column_of[n]}' if n in column_of else 'NULL'} AS {type_.simpleString()}) AS s{n}"
        for n, type_ in enumerate(types)
    ]
