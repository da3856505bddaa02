"""What a Spark partition does with the packets of its cells: evaluate, cell by cell.

Cells know nothing of each other.  A head whose tuples may come from several cells, or from
several rules, leaves as packets again, by the hash of its keys, for
:mod:`spark_bridge.cells.combining`; any other leaves as rows, in batches of bounded size.

Cost: a cell's input is in memory while it is evaluated, the rows that come out are not; and the
dictionaries of the grids that a task has come upon.  Each process plans a grid once (:func:`orders_of`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lftj.aggregates.partial import PartialAggregation, partial_schema
from lftj.database.database import Database
from lftj.evaluation.evaluation import Evaluation
from lftj.language.syntax import Program
from lftj.planning.kept_orders import KeptOrders, each_keeping
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.kinds import cast_decimal
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.head_rule import cell_name
from spark_bridge.placing.packets import CellAddress, CellInput, PacketWriter, cell_inputs, packed
from spark_bridge.placing.placing import split
from spark_bridge.placing.slices import slices
from spark_bridge.placing.value_hash import hashes_of, parts, row_hashes

BATCH_ROWS = 1 << 16

Databases = dict[tuple[int, object], Database]
"""By rule and marks, that is by grid: of each grid one, so that its cells are planned once."""

Contribution = tuple[str, tuple[int, ...], pa.Table]
"""What cells give to a head: label, the columns that it meets others by, and a table."""

COMBINED = CellAddress(0, 0, ()).grid_text()  # of packets for the second stage, which has no grid


class CellSearch:
    """Evaluates the cells of a head.

    ``schemas``: of all relations that it reads, by name; ``partitions``: that combine what cells give.
    """

    def __init__(self, text: ProgramText, head: int, schemas: dict[str, pa.Schema], partitions: int) -> None:
        self._text = text
        self._head = head
        self._schemas = schemas
        self._partitions = partitions

    @property
    def plan(self) -> HeadPlan:
        return self._text.plans()[self._head]

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The head's rows, of a head that does not cross cells."""
        databases: Databases = {}
        for cell in cell_inputs(batches):
            database, program = self._loaded(cell, databases)
            head, most = cell_name(self.plan.name), self._text.max_rounds
            found = database.stream(program, batch_rows=BATCH_ROWS, head=head, max_rounds=most)
            for batch in each_keeping(self._orders(cell), iter(found)):
                if batch.num_rows:
                    yield batch

    def packets(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the cells contribute to the head, by the hash of its keys."""
        databases: Databases = {}
        given = (
            contribution
            for cell in cell_inputs(batches)
            for contribution in each_keeping(self._orders(cell), self._contributions(cell, databases))
        )
        yield from contributed(given, self._partitions)

    def _contributions(self, cell: CellInput, databases: Databases) -> Iterator[Contribution]:
        """Tables with what they are called (:func:`contributions`) and the columns they meet others by."""
        database, program = self._loaded(cell, databases)
        plan, rule = self.plan, self.plan.rules[cell.address.rule]
        if not rule.aggregates:
            for batch in database.stream(program, batch_rows=4 * BATCH_ROWS):
                if batch.num_rows:
                    rows = in_types(pa.Table.from_batches([batch]), plan.arrow_schema)
                    yield contribution(cell.address.rule, 0), plan.gathered_by(rule), rows
            return
        # Of ``h[keys, arguments] = count()`` only the keys can't be NaN.
        request = replace(database.request(program, rewritten=False), grouped=rule.keys)
        columns = request.program.derived[request.target].columns
        types = {name: column.type for name, column in zip(rule.weighed, columns, strict=False)}
        partials = [PartialAggregation(head, types) for head in rule.heads]
        for codes in Evaluation(request).batches():
            by_name = dict(zip(rule.weighed, codes, strict=False))
            for partial in partials:
                partial.add(by_name, codes[-1])
        for number, partial in enumerate(partials):
            yield contribution(cell.address.rule, number), plan.gathered_by(rule), partial.finish()

    def _orders(self, cell: CellInput) -> KeptOrders:
        return orders_of(self._text, self._head, cell.address.rule, cell.address.marks)

    def _loaded(self, cell: CellInput, databases: Databases) -> tuple[Database, Program]:
        """A cell's relations in the database of its grid, and what to evaluate there."""
        rule = self.plan.rules[cell.address.rule]
        database = databases.setdefault((cell.address.rule, cell.address.marks), Database())
        for placement in rule.placements(dict(cell.address.marks)):
            table = cell.table(placement.label, self._schemas[placement.relation])
            database.add(Relation.from_table(placement.label, table, database.domains, "keep"))
        return database, program_of(self._text, self._head, cell.address.rule, cell.address.marks)


@functools.lru_cache(maxsize=256)
def program_of(text: ProgramText, head: int, rule: int, marks: tuple[tuple[str, str], ...]) -> Program:
    """What a cell evaluates; one object for all cells of a grid."""
    return text.plans()[head].rules[rule].program(dict(marks))


@functools.lru_cache(maxsize=256)
def orders_of(text: ProgramText, head: int, rule: int, marks: tuple[tuple[str, str], ...]) -> KeptOrders:
    """The key orders of all cells of a grid that this process evaluates, whatever task they come with."""
    return KeptOrders()


def contributed(given: Iterable[Contribution], partitions: int, stage: int = 0) -> Iterator[pa.RecordBatch]:
    """Packets of what cells give, by the hash of the head's keys, for the stage that combines it."""
    writer = PacketWriter()
    for label, columns, table in given:
        for piece in slices(table):
            for part, rows in split(piece, key_parts(piece, columns, partitions)):
                for packet in packed(rows):
                    yield from writer.add(part, 0, COMBINED, label, packet, stage)
    yield from writer.rest()


def contribution(rule: int, number: int) -> str:
    """The label of what a rule's cells give to a head, for each of its aggregates by number."""
    return f"{rule}.{number}"


def contributions(plan: HeadPlan) -> dict[str, tuple[int, int, pa.Schema]]:
    """All labels of what a head is combined from, with rule, number of the aggregate, and schema."""
    found = {}
    for rule_number, rule in enumerate(plan.rules):
        for number, head in enumerate(rule.heads):
            schema = partial_schema(head, rule.types) if rule.aggregates else plan.arrow_schema
            found[contribution(rule_number, number)] = (rule_number, number, schema)
    return found


def key_parts(table: pa.Table, columns: Sequence[int], partitions: int) -> np.ndarray:
    """The partition that combines each row: by the values of these columns."""
    if not columns:
        return np.zeros(table.num_rows, np.int64)
    hashes = row_hashes([hashes_of(table.column(column), Domains()) for column in columns])
    return parts(hashes, "", partitions)


def in_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """What one rule gives, in the types of the head, which hold the values of all its rules."""
    columns = [_in_type(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _in_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if column.null_count == len(column):  # a literal null may be of any type here
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    if pa.types.is_decimal(wanted):
        return pa.chunked_array([cast_decimal(chunk, wanted) for chunk in column.chunks], wanted)
    return column.cast(wanted)
