"""Rows that are joined as of now: when a row of one relation comes, with what the others have then.

    out[k]  =  out[k-1] + (rows that come with commit k, taken or not by its end)  join  the others behind it

Invariants

1. The head is a set that only grows: neither a change of what was joined with, nor the row's leaving or being
   erased takes anything back.
2. A row that was there comes again when it was erased before, and adds what it is joined with then.

Cost: of a commit that brings rows, one search over these and the indices of the others; of another, none.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from lftj.evaluation.evaluation import Evaluation
from lftj.evaluation.plans import Plans
from lftj.evaluation.request import Request
from lftj.language.as_of_now import JoinedNow, coming_schema, name_of_coming
from lftj.language.body import CheckedProgram
from lftj.language.checker import check
from lftj.rewriting.computed_keys import with_computed_keys
from lftj.storage.catalog import Table
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.sorting import sort_distinct
from lftj.storage.wide_columns import WideColumns
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.heads.grown import Grown, Moment
from maintenance.strategies.strategy import Round, Versions


class JoinedRows(Grown):
    """The relation of the rows that rules make as of now."""

    timed_refusal = "it joins as of now"

    def __init__(self, joined: JoinedNow, domains: Domains) -> None:
        """What it reads may come later.  ``domains``: those of the workspace."""
        self.name, self.reads = joined.name, joined.reads
        self._joined, self._domains = joined, domains
        self._program: CheckedProgram | None = None
        self._plans = Plans()

    @property
    def what(self) -> str:
        return "rows that were joined as of when they came"

    @property
    def text(self) -> str:
        """Its rules, as they were written."""
        return self._joined.text

    @property
    def record(self) -> Mapping[str, Any]:
        return {"joined": self.text}

    @property
    def explanation(self) -> str:
        comes, others = sorted(self._joined.comes), sorted(self._joined.others)
        rules = "\n".join(f"    {line}" for line in self.text.splitlines())
        by = f"by rows of {', '.join(comes)} that come, with {', '.join(others)} as of now"
        return f"{self.name}: only grows\n  {by}\n{rules}"

    def checked(self, versions: Versions) -> CheckedProgram:
        """Its rules, over relations of which it needs the schemas alone.  Raises RuleError."""
        if self._program is None:
            schemas = {name: version.schema for name, version in versions.items() if name != self.name}
            catalog = self._joined.catalog(schemas)
            checked = check(self._joined.program, catalog, self._domains)
            self._program = with_computed_keys(checked, catalog, self._domains)
        return self._program

    def may_gain(self, changed: Set[str], moves: bool) -> bool:
        return not self._joined.comes.isdisjoint(changed)

    def gained(self, change: Round, moment: Moment) -> Change | None:
        tables: dict[str, Table] = {name: change.new[name] for name in self._joined.others}
        n_coming = 0
        for name in self._joined.comes:
            came = moment.came.get(name, change.changes.get(name))
            coming = _coming(name, change.new[name].schema, came)
            tables[name_of_coming(name)] = RelationVersion(coming)
            n_coming += coming.n_rows
        if not n_coming:
            return None
        evaluation = Evaluation(Request(self.checked(change.new), tables, self.name, plans=self._plans))
        evaluation.derive()
        rows = np.array(evaluation.whole()[self.name].codes)
        rows = np.ascontiguousarray(rows[:, change.new[self.name].weights(rows) == 0])
        return Change(rows, np.ones(rows.shape[1], np.int64)) if rows.shape[1] else None


def _coming(name: str, schema: Schema, change: Change | None) -> Relation:
    """The relation of the rows that a change brings."""
    own, label = coming_schema(schema), name_of_coming(name)
    numbers = own.identity
    if change is None:
        columns = [np.empty(0, np.int64) for _ in numbers]
    else:
        comes = change.weights > 0
        columns = sort_distinct([change.columns[number][comes] for number in numbers])
    return Relation.from_codes(label, own, WideColumns(label, own, columns[0]) if own.wide else columns)
