"""The cells of one Spark partition, each a workspace that follows its inputs.

A cell's relations are its placements, and its rule is kept by a strategy of the policy: what a
cell searches and records is about what was sent there and nothing else; only the key orders are chosen
for all cells of a grid at once (:mod:`lftj.planning.kept_orders`).

Whether a batch is maintained or joined anew is decided by each cell, which alone knows what the batch costs
it: by ``auto`` it is maintained until it has taken as many operations as joining took last, and then joined
(:mod:`maintenance.strategies.auto.auto_body`).

Invariant: what all steps gave adds up to what the cells have: tuples of a set head, and
for aggregates the assignments by group keys and arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from lftj.aggregates.whole import argument_names
from lftj.language.syntax import Aggregate
from lftj.planning.kept_orders import keeping
from lftj.storage.relation import Relation
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace
from spark_bridge.cells.cell_search import Contribution, contribution, in_types, orders_of
from spark_bridge.cells.signed_tables import all_came, came, signed, with_weight
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.head_rule import HeadRule, cell_name
from spark_bridge.placing.packets import CellAddress, CellInput, packed
from spark_bridge.placing.recursive_rule import RecursiveRule

STRATEGIES = {"auto": "auto", "maintain": "delta", "anew": "recompute"}
"""Of a workspace, by policy."""

RECURSIVE = {**STRATEGIES, "maintain": "stages"}
"""Of heads that depend on themselves."""

Policy = Literal["auto", "maintain", "anew"]


class SearchEngine:
    """The maintained cells of a head in one partition."""

    def __init__(self, text: ProgramText, head: int, schemas: dict[str, pa.Schema]) -> None:
        """``schemas``: of the relations that the head reads, without weights."""
        self._text = text
        self._head = head
        self._schemas = schemas
        self._cells: dict[int, _Cell] = {}
        self.taken = 0
        self.anew = 0

    def step(self, inputs: Sequence[CellInput], policy: Policy = "auto") -> list[Contribution]:
        """Apply changes to the cells; returns what they change in the head.

        Afterwards ``taken`` is the number of their rows, and ``anew`` that of cells that had something to
        maintain and were joined anew.

        Raises the engine's DataError and EvaluationError; then the engine is of no more use.
        """
        found: list[Contribution] = []
        self.taken = self.anew = 0
        for cell_input in inputs:
            cell = self._cells.get(cell_input.address.number)
            if cell is None:
                cell = _Cell(self._text, self._head, self._schemas, cell_input.address)
                self._cells[cell_input.address.number] = cell
            with keeping(orders_of(self._text, self._head, cell.address.rule, cell.address.marks)):
                found += cell.step(cell_input, policy)
            self.taken += cell.taken
            self.anew += cell.anew
        return found

    def snapshot(self) -> Iterator[tuple[CellAddress, str, bytes]]:
        """The relations of all cells, as packets from which :meth:`step` makes them again."""
        for cell in self._cells.values():
            for label in cell.labels:
                for packet in packed(with_weight(cell.workspace[label].table)):
                    yield cell.address, label, packet

    def head(self) -> pa.Table:
        """The tuples of the head, of one that does not cross cells."""
        name = self.plan.name
        schema = self.plan.arrow_schema
        tables = [in_types(cell.workspace[name].table, schema) for cell in self._cells.values()]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    @property
    def plan(self) -> HeadPlan:
        return self._text.plans()[self._head]

    def count(self, cell: int, label: str) -> int:
        """Rows of a placement in a cell; 0 where there is no such cell yet."""
        return self._cells[cell].workspace[label].count if cell in self._cells else 0

    @property
    def rows(self) -> int:
        """Rows of all relations, copies counted."""
        return sum(cell.workspace[label].count for cell in self._cells.values() for label in cell.labels)


class _Cell:
    def __init__(
        self, text: ProgramText, head: int, schemas: dict[str, pa.Schema], address: CellAddress
    ) -> None:
        self.address = address
        self._text = text
        self._head = head
        placements = self._rule.placements(dict(address.marks))
        self._schemas = {placement.label: schemas[placement.relation] for placement in placements}
        self.labels = tuple(self._schemas)
        self._program = self._rule.program(dict(address.marks))
        self.workspace = Workspace()
        self.taken = 0
        self.anew = False

    @property
    def _plan(self) -> HeadPlan:
        return self._text.plans()[self._head]

    @property
    def _rule(self) -> HeadRule:
        return self._plan.rules[self.address.rule]

    def step(self, cell_input: CellInput, policy: Policy) -> list[Contribution]:
        head = cell_name(self._plan.name)
        strategy = (RECURSIVE if isinstance(self._rule, RecursiveRule) else STRATEGIES)[policy]
        changes = {label: cell_input.table(label, signed(schema)) for label, schema in self._schemas.items()}
        self.taken = sum(table.num_rows for table in changes.values())
        self.anew = False
        if self.workspace.heads:
            if self.workspace.strategy_of(head) != strategy:
                self.workspace.set_strategy(head, strategy)
            done = self._changed(changes)
            self.anew = strategy == "recompute" or done.stats[head].recomputed > 0
            return self._contributions(done.changes[head])
        # The program comes last: what is not yet erased may contradict what it says.
        for label, table in changes.items():
            first = came(table) if all_came(table) else self._schemas[label].empty_table()
            self.workspace.add(Relation.from_table(label, first, self.workspace.domains, "keep"))
        self._changed({label: table for label, table in changes.items() if not all_came(table)})
        self.workspace.install(self._program, strategy=strategy)
        return self._contributions(with_weight(self.workspace[head].table))

    def _changed(self, changes: dict[str, pa.Table]) -> Transaction:
        """Commit changes of the relations; what was committed has those of the heads."""
        with self.workspace.transaction() as transaction:
            for label, table in changes.items():
                if table.num_rows:
                    transaction.apply(label, table)
        return transaction

    def _contributions(self, change: pa.Table) -> list[Contribution]:
        """A change of the cell's head as the head's combination takes it."""
        if not change.num_rows:
            return []
        rule = self.address.rule
        if not self._rule.aggregates:
            rows = in_types(change, signed(self._plan.arrow_schema))
            return [(contribution(rule, 0), self._plan.gathered_by(self._rule), rows)]
        count, sign = (change.column(change.num_columns - place) for place in (2, 1))
        weight = pc.multiply(count, sign)
        by_name = dict(zip(self._rule.weighed, change.columns, strict=False))
        found = []
        for number, head in enumerate(self._rule.heads):
            assert isinstance(head.value, Aggregate)
            names = [*head.variables, *argument_names(head.value)]
            columns = [by_name[name] for name in names]
            schema = contribution_schema(self._rule.heads[number].variables, names, columns)
            table = pa.Table.from_arrays([*columns, weight], schema=schema)
            found.append((contribution(rule, number), self._plan.gathered_by(self._rule), table))
        return found


def contribution_schema(
    keys: Sequence[str], names: Sequence[str], columns: Sequence[pa.ChunkedArray] | Sequence[pa.DataType]
) -> pa.Schema:
    """Group keys, arguments and weight of an aggregate's assignments."""
    types = [column if isinstance(column, pa.DataType) else column.type for column in columns]
    labels = [f"{'key' if n < len(keys) else 'argument'}#{n}" for n in range(len(names))]
    return pa.schema([*zip(labels, types, strict=True), ("weight#", pa.int64())])
