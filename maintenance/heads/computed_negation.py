"""Bodies with negated atoms over computed variables: two stages, the second over the rows of the first.

``c(x) <- b(x), v = x * 2, !b(v)`` can test ``!b(v)`` only when v is computed.  The first
stage keeps the body without such atoms; its rows are a relation of versions like any
other, and the second stage joins it with the negated atoms (docs/design/engine.md section 6: a head's
change is the change of an input of the next stratum).

Invariant: that of two stages; what is between them is the relation of the first one's rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lftj.errors import NanError
from lftj.evaluation.finishing import ROWS
from lftj.language.body import Body
from lftj.language.syntax import Atom, Variable
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns
from lftj.storage.support import SupportVersion
from lftj.values.domain import NAN_CODE
from lftj.values.schema import Column, Schema
from maintenance.changes.change import Change
from maintenance.heads.rule_body import Rows, RuleBody, described
from maintenance.heads.two_stages import TwoStages
from maintenance.staged import Staged, StagedValue
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import (
    BodyRequest,
    BodyStrategy,
    Building,
    Read,
    Round,
    Versions,
)


class ComputedNegation(TwoStages):
    """The first stage, as a body of its own, and the second one behind it."""

    may_fetch = False

    def __init__(self, strategy: BodyStrategy, request: BodyRequest, late: Sequence[Atom]) -> None:
        body = request.body
        early = tuple(atom for atom in body.negations if atom not in late)
        needed = [*request.wanted, *(variable.name for atom in late for variable in _variables(atom))]
        super().__init__(
            strategy, replace(request, body=replace(body, negations=early), wanted=needed, added_up=False)
        )
        assigned = (assignment.variable for assignment in body.assignments)
        self._names = tuple(dict.fromkeys((*self.lowered.problem.emitted, *assigned)))
        self._schema = Schema(tuple(Column(name, body.types[name]) for name in self._names))
        self._counts = StagedValue(SupportVersion(len(self._names)))
        self._version = StagedValue(self._version_of([np.empty(0, np.int64) for _ in self._names]))
        atom = Atom(ROWS, tuple(Variable(name) for name in self._names))
        second = Body((atom,), tuple(late), (), (), body.types)
        relations = {**request.relations, ROWS: self._version.kept}
        self._second = RuleBody(
            strategy, BodyRequest(request.rule, second, relations, (), every=True, gap=request.gap)
        )
        self.distinct_by = frozenset(self._names)
        self.notes = (*self.notes, f"rows of ({', '.join(self._names)}) are kept for negated computed values")

    @property
    def reads(self) -> Iterator[Read]:
        return (read for read in super().reads if read[0] != ROWS)

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (*super().parts, self._counts, self._version)

    def build(self, building: Building) -> Rows:
        rows, signs = super().build(building)
        self._counts.staged, columns, _ = self._counts.kept.step([rows[name] for name in self._names], signs)
        self._refuse_nan(columns)
        version = self._version.staged = self._hold(self._version_of(columns))
        return self._second.build(Building({**building.versions, ROWS: version}, building.threads))

    def step(self, change: Round, stats: RuleStats) -> Rows:
        rows, signs = super().step(change, stats)
        counts, columns, weights = self._counts.kept.step([rows[name] for name in self._names], signs)
        self._counts.staged = counts
        self._refuse_nan([column[weights > 0] for column in columns])
        version = self._version.staged = self._version.kept.advance(columns, weights)
        round_ = change.beside(ROWS, self._version.kept, version, Change(columns, weights))
        return self._second.step(round_, stats)

    def tidy(self, versions: Versions) -> int:
        return super().tidy(versions) + self._second.tidy({**versions, ROWS: self._version.kept})

    def describe(self) -> list[str]:
        lines = super().describe()
        for search in self._second.all_searches:
            lines += described("2nd stage ", search)
        return lines

    def _check_own(self) -> None:
        super()._check_own()
        assert self._counts.staged is None and self._version.staged is None

    def _version_of(self, columns: Columns) -> RelationVersion:
        return RelationVersion(Relation.from_codes(ROWS, self._schema, list(columns)))

    def _hold(self, version: RelationVersion) -> RelationVersion:
        """The version, and what the second stage reads of it and of those that follow is held."""
        version.hold([key for name, key in self._second.reads if name == ROWS])
        return version

    def _refuse_nan(self, columns: Columns) -> None:
        for relation, number in self._second.nan_free:
            if relation != ROWS or self._schema.columns[number].type.domain.name != "float":
                continue
            if (columns[number] == NAN_CODE).any():
                name = self._names[number]
                raise NanError(f"{name} is NaN, which equals nothing, in a negated atom\n  {self.rule.text}")


def _variables(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]
