"""The inputs' sizes and frequent values, from a sample of rows, inside the query that uses them.

One row in ``ONE_IN`` is taken, by a hash of its values: equal rows are taken together, as
a relation is a set.  Tasks count the hashes of values by column, the most frequent ones
travel to one task, which makes the grids.  All of it is part of the plan of the join: no
job runs before an action.

Cost: a task keeps COUNTED hashes of a column at most, however many rows it has, and so may count
a value too low that was not among the COUNTED // 2 most frequent ones whenever it chose: none
that weighs in a cell.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lftj.values.domains import Domains
from spark_bridge.placing.grids import HeadGrids, InputSample, plan_grids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.placing import without_nulls
from spark_bridge.placing.tagged_input import PLAN, TaggedInput, TagReader
from spark_bridge.placing.value_hash import hashes_of
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker

ONE_IN = 16
FREQUENT = 64
"""Values per column that a task reports."""

COUNTED = 1 << 17
"""Hashes of a column after which a task counts them, and forgets all but half as many values."""

_ALL = -1  # in place of a column: the rows of a relation
COUNTS = pa.schema([("tag", pa.int32()), ("column", pa.int32()), ("value", pa.int64()), ("rows", pa.int64())])


def plan_frame(tagged: TaggedInput, text: ProgramText, head: int, partitions: int) -> DataFrame:
    """A DataFrame of one row and one column: the grids of a head, as JSON."""
    name = text.plans()[head].name
    taken = F.pmod(F.xxhash64(*tagged.frame.columns), F.lit(ONE_IN)) == 0
    count = in_worker(_counter(tagged.reader(), text, head), f"{name}: sample")
    counts = tagged.frame.where(taken).mapInArrow(count, from_arrow_schema(COUNTS))
    make = in_worker(_planner(tagged.reader(), text, head, partitions), f"{name}: plan cells")
    # A shuffle, since ``coalesce`` would have one task read all inputs.
    return counts.repartition(1).mapInArrow(make, f"{PLAN} binary")


def sampled_grids(
    frames: Mapping[str, DataFrame], text: ProgramText, head: int, partitions: int
) -> HeadGrids:
    """The grids of a head by a sample of its inputs as they are now; runs that query."""
    tagged = TaggedInput.of(frames, list(text.schemas(head).items()))
    (row,) = plan_frame(tagged, text, head, partitions).collect()
    return HeadGrids.from_json(bytes(row[0]).decode())


def _counter(reader: TagReader, text: ProgramText, head: int) -> TaskFunction:
    def count(batches: Batches) -> Batches:
        wanted = _axis_columns(text.plans()[head])
        rows: dict[int, int] = {}
        counts: dict[tuple[int, int], _Counts] = {}
        tags = {name: tag for tag, (name, _) in enumerate(reader.relations)}
        for batch in batches:
            for name, table in reader.tables(batch):
                table = without_nulls(name, table, table.schema, "drop")
                rows[tags[name]] = rows.get(tags[name], 0) + table.num_rows
                for column in wanted.get(name, ()):
                    of_column = counts.setdefault((tags[name], column), _Counts())
                    # Domains of these rows alone: dictionaries never shrink.
                    of_column.add(hashes_of(table.column(column), Domains()))
        yield _found(rows, counts)

    return count


class _Counts:
    """How often hashes came, of those that came most often."""

    def __init__(self) -> None:
        self._values = np.empty(0, np.uint64)
        self._numbers = np.empty(0, np.int64)
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def add(self, hashes: np.ndarray) -> None:
        self._waiting.append(hashes)
        self._n_waiting += len(hashes)
        if self._n_waiting >= COUNTED:
            self._count(COUNTED // 2)

    def most(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The most frequent hashes, the most frequent one first, and how often each came."""
        self._count(number)
        return self._values, self._numbers

    def _count(self, kept: int) -> None:
        values, places = np.unique(np.concatenate([self._values, *self._waiting]), return_inverse=True)
        came = np.ones(self._n_waiting, np.int64)
        numbers = np.bincount(places, np.concatenate([self._numbers, came]), len(values)).astype(np.int64)
        most = np.argsort(-numbers, kind="stable")[:kept]
        self._values, self._numbers = values[most], numbers[most]
        self._waiting, self._n_waiting = [], 0


def _found(rows: dict[int, int], counts: dict[tuple[int, int], _Counts]) -> pa.RecordBatch:
    found = [(tag, _ALL, 0, number) for tag, number in rows.items()]
    for (tag, column), of_column in counts.items():
        values, numbers = of_column.most(FREQUENT)
        counted = zip(values.view(np.int64).tolist(), numbers.tolist(), strict=True)
        found += [(tag, column, value, number) for value, number in counted if number > 1]
    columns = list(zip(*found, strict=True)) or [()] * len(COUNTS)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, COUNTS, strict=True)], schema=COUNTS
    )


def _planner(reader: TagReader, text: ProgramText, head: int, partitions: int) -> TaskFunction:
    def make(batches: Batches) -> Batches:
        rows = {name: 0.0 for name, _ in reader.relations}
        frequent: dict[tuple[str, int], dict[int, float]] = {}
        for batch in batches:
            for tag, column, value, number in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                name = reader.relations[tag][0]
                if column == _ALL:
                    rows[name] += number * ONE_IN
                else:
                    of_column = frequent.setdefault((name, column), {})
                    hashed = value % 2**64
                    of_column[hashed] = of_column.get(hashed, 0.0) + number * ONE_IN
        grids = plan_grids(text.plans()[head], InputSample(rows, frequent), partitions)
        yield pa.RecordBatch.from_arrays([pa.array([grids.to_json().encode()], pa.binary())], names=[PLAN])

    return make


def _axis_columns(plan: HeadPlan) -> dict[str, list[int]]:
    """By relation the columns that hold an axis of some rule."""
    columns: dict[str, set[int]] = {}
    for rule in plan.rules:
        for role in rule.roles:
            columns.setdefault(role.relation, set()).update(column for column, _ in role.axes)
    return {name: sorted(found) for name, found in columns.items()}
