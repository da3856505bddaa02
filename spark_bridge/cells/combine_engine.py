"""The part of a head whose keys belong to one Spark partition, kept from what its cells give.

A set head counts how many cells and rules have a tuple; an aggregate keeps its groups'
accumulators (:mod:`maintenance.heads.combined_head`).  Of a head with several aggregates each is
kept by itself, and a workspace joins them by their group keys; so is one that does not stand
behind the keys.

Invariants

1. Beside each rule's accumulators its rows are kept, with their weights: from them the
   engine is made again, after a loss, by one step.
2. Dictionaries of strings and decimals are this engine's own, and give back after a step what neither
   its rows nor its head have (:mod:`lftj.values.collector`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.whole import argument_names
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Atom, Head, Program, Rule, Variable
from lftj.storage.relation import Relation
from lftj.storage.signed_rows import Columns
from lftj.values.collector import Collector
from lftj.values.schema import Column, Schema
from maintenance.changes.changes import change_table
from maintenance.heads.combined_head import CombinedHead
from maintenance.staged_support import StagedSupport
from maintenance.workspace.workspace import Workspace
from spark_bridge.cells.cell_search import contribution, in_types
from spark_bridge.cells.search_engine import contribution_schema
from spark_bridge.cells.signed_tables import signed
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.packets import CellAddress, CellInput, packed
from spark_bridge.placing.schemas import declared_schema

ADDRESS = CellAddress(0, 0, ())


class CombineEngine:
    """One partition of a head that crosses cells."""

    def __init__(self, text: ProgramText, head: int) -> None:
        self._plan = text.own_plans()[head]
        self.taken = 0
        self._shares = [
            _Share(self._plan, number, rule, index)
            for number, rule in enumerate(self._plan.rules)
            for index in range(len(rule.heads))
        ]
        direct = all(_is_direct(rule) for rule in self._plan.rules)
        self._joined = None if direct else _Joined(self._plan)
        if self._joined is None:
            rules = [(rule.checked, rule.heads[0]) for rule in self._plan.rules]
            text_of_all = " ".join(rule.checked.text for rule in self._plan.rules)
            self._combined = CombinedHead(self._plan.name, self._plan.schema, rules, text_of_all)

    def step(self, inputs: Sequence[CellInput]) -> pa.Table:
        """Apply what cells gave; returns the change of the head, with weights.  ``taken``: rows applied.

        Raises the engine's DataError and EvaluationError; then the engine is of no more use.
        """
        parts = [(share, *share.taken(cell)) for cell in inputs for share in self._shares]
        self.taken = sum(len(weights) for _, _, weights in parts)
        change = self._change(parts)
        for collector in {one for share in self._shares for one in share.collectors}:
            collector.advance()
        return change

    def _change(self, parts: Sequence[tuple[_Share, Columns, np.ndarray]]) -> pa.Table:
        if self._joined is not None:
            return self._joined.step([(share.label, rows, weights) for share, rows, weights in parts])
        columns, signs = self._combined.stage([(share.rule, rows, weights) for share, rows, weights in parts])
        self._combined.keep()
        self._combined.tidy()
        return change_table(self._plan.schema, columns, signs)

    def snapshot(self) -> Iterator[tuple[CellAddress, str, bytes]]:
        """The rows that cells gave, as packets from which :meth:`step` makes the engine again."""
        for share in self._shares:
            for packet in packed(share.table()):
                yield ADDRESS, share.label, packet

    def head(self) -> pa.Table:
        """The tuples of the head."""
        if self._joined is not None:
            return self._joined.head()
        columns = self._combined.rows()
        return change_table(self._plan.schema, columns, np.ones(len(columns[0]), np.int64)).drop_columns(
            [signed(self._plan.arrow_schema).names[-1]]
        )

    @property
    def rows(self) -> int:
        """Distinct rows that cells gave.  O(these rows)."""
        return sum(share.n_rows for share in self._shares)


class _Share:
    """What the cells of one rule gave, for one of its aggregates: a Z-set of rows."""

    def __init__(self, plan: HeadPlan, number: int, rule: HeadRule, index: int) -> None:
        self.rule = number
        self.label = contribution(number, index)
        head = rule.heads[index]
        if isinstance(head.value, Aggregate):
            names = [*head.variables, *argument_names(head.value)]
            self._types = [rule.types[name] for name in names]
            arrow = [type_.arrow for type_ in self._types]
            self._schema = contribution_schema(head.variables, names, arrow)
        else:
            self._types = [column.type for column in plan.schema.columns]
            self._schema = signed(plan.arrow_schema)
        # Of no columns: one of zeros.
        self._rows = StagedSupport(max(1, len(self._types)), dict(enumerate(self._types)))

    @property
    def collectors(self) -> set[Collector]:
        """Of the dictionaries that its rows need."""
        return {type_.domain.collector for type_ in self._types if type_.domain.collector is not None}

    def taken(self, cell: CellInput) -> tuple[Columns, np.ndarray]:
        """The rows of a step, which from now on are among this share's."""
        table = cell.table(self.label, self._schema)
        columns = [
            np.ascontiguousarray(type_.encode(column), np.int64)
            for type_, column in zip(self._types, table.columns, strict=False)
        ]
        weights = np.ascontiguousarray(table.column(len(columns)).to_numpy(), np.int64)
        if len(weights):
            added, *_ = self._rows.kept.added(columns or [np.zeros(len(weights), np.int64)], weights)
            self._rows.staged = added
            self._rows.keep()
        return columns, weights

    def table(self) -> pa.Table:
        columns, weights = self._rows.kept.tuples()
        arrays = [
            type_.domain.decode_chunked(codes, type_.arrow)
            for type_, codes in zip(self._types, columns, strict=False)
        ]
        return pa.Table.from_arrays([*arrays, pa.array(weights, pa.int64())], schema=self._schema)

    @property
    def n_rows(self) -> int:
        return len(self._rows.kept.tuples()[1])


class _Joined:
    """A head with several aggregates: each is kept, and a rule joins them."""

    def __init__(self, plan: HeadPlan) -> None:
        self._plan = plan
        self._workspace = Workspace()
        self._parts: dict[str, tuple[CombinedHead, Schema]] = {}
        rules = []
        for number, rule in enumerate(plan.rules):
            atoms: list[Atom] = []
            read: dict[Aggregate, Variable] = {}
            for index, head in enumerate(rule.heads):
                schema = head.schema if rule.aggregates else plan.schema
                name = f"part {contribution(number, index)}"
                part = CombinedHead(plan.name, schema, [(rule.checked, head)], rule.checked.text)
                self._parts[contribution(number, index)] = (part, schema)
                empty = declared_schema(_plain(schema)).empty_table()
                self._workspace.add(Relation.from_table(name, empty, self._workspace.domains, "keep"))
                atoms.append(self._atom(name, rule, head, read))
            (written,) = rule.syntax.heads
            terms = tuple(read[term] if isinstance(term, Aggregate) else term for term in written.terms)
            rules.append(Rule((Head(plan.name, terms),), tuple(atoms)))
        self._workspace.install(Program(tuple(rules), ""))

    @staticmethod
    def _atom(name: str, rule: HeadRule, head: CheckedHead, read: dict[Aggregate, Variable]) -> Atom:
        keys = tuple(Variable(key, null_safe=True) for key in head.variables)
        if not isinstance(head.value, Aggregate):
            return Atom(name, keys)
        read[head.value] = Variable(f"value#{len(read)}")
        return Atom(name, (*keys, read[head.value]), functional=True)

    def step(self, parts: Sequence[tuple[str, Columns, np.ndarray]]) -> pa.Table:
        with self._workspace.transaction() as transaction:
            for label, (part, schema) in self._parts.items():
                rows = [(0, columns, weights) for name, columns, weights in parts if name == label]
                columns, signs = part.stage(rows)
                part.keep()
                part.tidy()
                transaction.apply(f"part {label}", change_table(_plain(schema), columns, signs))
        return in_types(transaction.changes[self._plan.name], signed(self._plan.arrow_schema))

    def head(self) -> pa.Table:
        return in_types(self._workspace[self._plan.name].table, self._plan.arrow_schema)


def _is_direct(rule: HeadRule) -> bool:
    """Whether a rule's tuples are what it gives for its one aggregate, or none: keys, then the value."""
    (written,) = rule.syntax.heads
    if not rule.aggregates:
        return True
    names = [column.name if isinstance(column, Variable) else "" for column in written.columns]
    return len(rule.heads) == 1 and names == [*rule.keys, ""]


def _plain(schema: Schema) -> Schema:
    """The schema with columns of other names, all different."""
    return Schema(tuple(Column(f"c{n}", column.type) for n, column in enumerate(schema.columns)))
