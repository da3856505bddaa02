"""Bodies with negated atoms over computed variables: two stages, the second over the rows of the first.

``c(x) <- b(x), v = x * 2, !b(v)`` can test ``!b(v)`` only when v is computed.  The first
stage keeps the body without such atoms; its rows are a relation of versions like any
other, and the second stage joins it with the negated atoms (ENGINE.md section 6: a head's
change is the change of an input of the next stratum).

Invariant: the relation of the first stage's rows is staged, kept and dropped with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lftj.errors import NanError
from lftj.evaluation.finishing import ROWS
from lftj.language.body import Body, CheckedRule
from lftj.language.syntax import Atom, Variable
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns
from lftj.storage.support import SupportVersion
from lftj.values.domain import NAN_CODE
from lftj.values.schema import Column, Schema
from maintenance.changes.change import Change
from maintenance.heads.rule_body import Rows, RuleBody
from maintenance.stats import RuleStats
from maintenance.strategies.trace.body_trace import Advance, BodyTrace, Round, Versions
from maintenance.strategies.trace.surgery import surgeries_between


def maintained_body(
    rule: CheckedRule,
    body: Body,
    wanted: Sequence[str],
    every: bool,
    relations: Mapping[str, Relation],
    record_gap: int,
    order: Sequence[str] | None = None,
    grouped: Sequence[str] = (),
) -> RuleBody:
    """A body in as many stages as it takes; arguments as for ``RuleBody``."""
    bound = set(body.atom_variables())
    late = [atom for atom in body.negations if not {v.name for v in _variables(atom)} <= bound]
    if not late:
        return RuleBody(rule, body, wanted, every, relations, record_gap, order, grouped)
    return ComputedNegation(rule, body, late, wanted, every, relations, record_gap, order, grouped)


class ComputedNegation(RuleBody):
    """The first stage, as a body of its own, and the second one behind it."""

    def __init__(
        self,
        rule: CheckedRule,
        body: Body,
        late: Sequence[Atom],
        wanted: Sequence[str],
        every: bool,
        relations: Mapping[str, Relation],
        record_gap: int,
        order: Sequence[str] | None,
        grouped: Sequence[str],
    ) -> None:
        early = tuple(atom for atom in body.negations if atom not in late)
        needed = [*wanted, *(variable.name for atom in late for variable in _variables(atom))]
        super().__init__(
            rule, replace(body, negations=early), needed, every, relations, record_gap, order, grouped
        )
        assigned = (assignment.variable for assignment in body.assignments)
        self._names = tuple(dict.fromkeys((*self.lowered.problem.emitted, *assigned)))
        self._schema = Schema(tuple(Column(name, body.types[name]) for name in self._names))
        self._counts = SupportVersion(len(self._names))
        self._version = self._version_of([np.empty(0, np.int64) for _ in self._names])
        self._staged_rows: tuple[SupportVersion, RelationVersion] | None = None
        atom = Atom(ROWS, tuple(Variable(name) for name in self._names))
        second = Body((atom,), tuple(late), (), (), body.types)
        self._second = RuleBody(
            rule, second, (), True, {**relations, ROWS: self._version.relation()}, record_gap
        )
        self.distinct_by = frozenset(self._names)
        self.notes = (*self.notes, f"rows of ({', '.join(self._names)}) are kept for negated computed values")

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        return super().nan_free | self._second.nan_free

    @property
    def second_stage(self) -> tuple[BodyTrace, ...]:
        return self._second.traces

    def build(self, versions: Versions, threads: int = 1, advance: Advance | None = None) -> Rows:
        rows, signs = super().build(versions, threads, advance)
        counts, columns, _ = self._counts.step([rows[name] for name in self._names], signs)
        self._refuse_nan(columns)
        version = self._version_of(columns)
        self._staged_rows = counts, version
        return self._second.build({**versions, ROWS: version}, threads)

    def step(self, change: Round, stats: RuleStats) -> Rows:
        rows, signs = super().step(change, stats)
        counts, columns, weights = self._counts.step([rows[name] for name in self._names], signs)
        self._refuse_nan([column[weights > 0] for column in columns])
        version = self._version.advance(columns, weights)
        self._staged_rows = counts, version
        here = surgeries_between({ROWS: version}, {ROWS: Change(columns, weights)} if len(weights) else {})
        round_ = Round(
            {**change.old, ROWS: self._version},
            {**change.new, ROWS: version},
            lambda name, key: here(name, key) if name == ROWS else change.surgeries(name, key),
        )
        return self._second.step(round_, stats)

    def keep(self) -> None:
        super().keep()
        self._second.keep()
        if self._staged_rows is not None:
            self._counts, self._version = self._staged_rows
            self._staged_rows = None

    def drop(self) -> None:
        super().drop()
        self._second.drop()
        self._staged_rows = None

    def tidy(self, versions: Versions) -> int:
        return super().tidy(versions) + self._second.tidy({**versions, ROWS: self._version})

    def check_invariants(self) -> None:
        super().check_invariants()
        self._second.check_invariants()
        assert self._staged_rows is None
        self._counts.check_invariants()
        self._version.check_invariants()

    def _version_of(self, columns: Columns) -> RelationVersion:
        return RelationVersion(Relation.from_codes(ROWS, self._schema, list(columns)))

    def _refuse_nan(self, columns: Columns) -> None:
        for relation, number in self._second.nan_free:
            if relation != ROWS or self._schema.columns[number].type.domain.name != "float":
                continue
            if (columns[number] == NAN_CODE).any():
                name = self._names[number]
                raise NanError(f"{name} is NaN, which equals nothing, in a negated atom\n  {self.rule.text}")


def _variables(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]
