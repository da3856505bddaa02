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
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from lftj.aggregates.whole import argument_names
from lftj.language.syntax import Aggregate, Program
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
    """The maintained cells of a head in one partition; or of several heads of one rule."""

    def __init__(self, text: ProgramText, heads: Sequence[int], schemas: dict[str, pa.Schema]) -> None:
        """``heads``: by the numbers of their plans; ``schemas``: of what they read, without weights."""
        self._text = text
        self._heads = tuple(heads)
        self._schemas = schemas
        self._cells: dict[int, _Cell] = {}
        self.taken = 0
        self.anew = 0

    def step(self, inputs: Sequence[CellInput], policy: Policy = "auto") -> dict[int, list[Contribution]]:
        """Apply changes to the cells; returns what they change in each head.

        Afterwards ``taken`` is the number of their rows, and ``anew`` that of cells that had something to
        maintain and were joined anew.

        Raises the engine's DataError and EvaluationError; then the engine is of no more use.
        """
        found: dict[int, list[Contribution]] = {head: [] for head in self._heads}
        self.taken = self.anew = 0
        for cell_input in inputs:
            cell = self._cells.get(cell_input.address.number)
            if cell is None:
                cell = _Cell(self._text, self._heads, self._schemas, cell_input.address)
                self._cells[cell_input.address.number] = cell
            with keeping(orders_of(self._text, self._heads[0], cell.address.rule, cell.address.marks)):
                for head, given in cell.step(cell_input, policy).items():
                    found[head] += given
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
        return self._text.plans()[self._heads[0]]

    def count(self, cell: int, label: str) -> int:
        """Rows of a placement in a cell; 0 where there is no such cell yet."""
        return self._cells[cell].workspace[label].count if cell in self._cells else 0

    @property
    def rows(self) -> int:
        """Rows of all relations, copies counted."""
        return sum(cell.workspace[label].count for cell in self._cells.values() for label in cell.labels)


class _Cell:
    def __init__(
        self, text: ProgramText, heads: Sequence[int], schemas: dict[str, pa.Schema], address: CellAddress
    ) -> None:
        self.address = address
        self._text = text
        self._heads = heads
        rules = [self._rule(head) for head in heads]
        placements = rules[0].placements(dict(address.marks))
        self._schemas = {placement.label: schemas[placement.relation] for placement in placements}
        self.labels = tuple(self._schemas)
        self._program = _together([rule.program(dict(address.marks)) for rule in rules])
        self.workspace = Workspace()
        self.taken = 0
        self.anew = False

    def _plan(self, head: int) -> HeadPlan:
        return self._text.plans()[head]

    def _rule(self, head: int) -> HeadRule:
        return self._plan(head).rules[self.address.rule]

    def step(self, cell_input: CellInput, policy: Policy) -> dict[int, list[Contribution]]:
        names = {head: cell_name(self._plan(head).name) for head in self._heads}
        is_recursive = isinstance(self._rule(self._heads[0]), RecursiveRule)
        strategy = (RECURSIVE if is_recursive else STRATEGIES)[policy]
        changes = {label: cell_input.table(label, signed(schema)) for label, schema in self._schemas.items()}
        self.taken = sum(table.num_rows for table in changes.values())
        self.anew = False
        if self.workspace.heads:
            for name in names.values():
                if self.workspace.strategy_of(name) != strategy:
                    self.workspace.set_strategy(name, strategy)
            done = self._changed(changes)
            recomputed = any(done.stats[name].recomputed > 0 for name in names.values())
            self.anew = strategy == "recompute" or recomputed
            return {head: self._contributions(head, done.changes[name]) for head, name in names.items()}
        # The program comes last: what is not yet erased may contradict what it says.
        for label, table in changes.items():
            first = came(table) if all_came(table) else self._schemas[label].empty_table()
            self.workspace.add(Relation.from_table(label, first, self.workspace.domains, "keep"))
        self._changed({label: table for label, table in changes.items() if not all_came(table)})
        self.workspace.install(self._program, strategy=strategy)
        return {
            head: self._contributions(head, with_weight(self.workspace[name].table))
            for head, name in names.items()
        }

    def _changed(self, changes: dict[str, pa.Table]) -> Transaction:
        """Commit changes of the relations; what was committed has those of the heads."""
        with self.workspace.transaction() as transaction:
            for label, table in changes.items():
                if table.num_rows:
                    transaction.apply(label, table)
        return transaction

    def _contributions(self, head: int, change: pa.Table) -> list[Contribution]:
        """A change of a head in the cell as the head's combination takes it."""
        if not change.num_rows:
            return []
        number, plan, rule = self.address.rule, self._plan(head), self._rule(head)
        if not rule.aggregates:
            rows = in_types(change, signed(plan.arrow_schema))
            return [(contribution(number, 0), plan.gathered_by(rule), rows)]
        count, sign = (change.column(change.num_columns - place) for place in (2, 1))
        weight = pc.multiply(count, sign)
        by_name = dict(zip(rule.weighed, change.columns, strict=False))
        found = []
        for index, checked in enumerate(rule.heads):
            assert isinstance(checked.value, Aggregate)
            names = [*checked.variables, *argument_names(checked.value)]
            columns = [by_name[name] for name in names]
            schema = contribution_schema(checked.variables, names, columns)
            table = pa.Table.from_arrays([*columns, weight], schema=schema)
            found.append((contribution(number, index), plan.gathered_by(rule), table))
        return found


def _together(programs: Sequence[Program]) -> Program:
    """What a cell evaluates of several heads of one rule: their search is one."""
    first, *others = programs
    if not others:
        return first
    (rule,) = first.rules
    heads = tuple(head for program in programs for each in program.rules for head in each.heads)
    return replace(first, rules=(replace(rule, heads=heads),))


def contribution_schema(
    keys: Sequence[str], names: Sequence[str], columns: Sequence[pa.ChunkedArray] | Sequence[pa.DataType]
) -> pa.Schema:
    """Group keys, arguments and weight of an aggregate's assignments."""
    types = [column if isinstance(column, pa.DataType) else column.type for column in columns]
    labels = [f"{'key' if n < len(keys) else 'argument'}#{n}" for n in range(len(names))]
    return pa.schema([*zip(labels, types, strict=True), ("weight#", pa.int64())])
