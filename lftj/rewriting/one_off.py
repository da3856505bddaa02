"""Queries by views that are made for one evaluation: sums of products and semi-joins, not all assignments.

Sums: the rewriting is that of maintained heads; the estimate of its cost is another one
(:mod:`lftj.rewriting.elimination`), and views have to gain much: estimates are wrong, and a listing is fast.

Sets, which ask what exists (:mod:`lftj.rewriting.semi_joins`): a search ends with its first success, and
nobody knows beforehand how soon that is.  So where much may have to be listed the search as written is tried,
until it has taken as many operations as all semi-joins would; if it goes on then and gives few rows, they are
made.

Invariants

1. What is chosen gives the tuples of the program as it was written.  Where a partial sum does not fit 64 bits
   evaluating it raises RangeError; then :meth:`OneOffViews.wider` does, whose sums have 128.
2. A choice holds as long as the relations are about as large.

Cost: of a choice that holds, one look at the number of rows of each relation; of a new one for a set besides
the trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.syntax import Aggregate
from lftj.planning.kept_orders import ALIKE, FEW_ROWS
from lftj.rewriting import view_tree
from lftj.rewriting.programs import with_views
from lftj.rewriting.relation_sizes import UNKNOWN_ROWS
from lftj.rewriting.semi_joins import SemiJoins
from lftj.rewriting.view_tree import SUMMED
from lftj.storage.catalog import Table
from lftj.values.domains import Domains


class Trial(Protocol):
    """Of a body as it was written (:mod:`lftj.evaluation.trial`)."""

    def takes_more(self, rule: CheckedRule, head: CheckedHead, body: Body, operations: float) -> bool:
        """Whether its search takes more operations, and gives few rows for them."""


class OneOffViews:
    """A program, and what is evaluated in its place.  Safe to use from several threads."""

    def __init__(self, program: CheckedProgram) -> None:
        self._program = program
        self._summing: dict[str, list[Body]] = {}
        self._sets: dict[str, list[Body]] = {}
        for stratum in program.strata:
            for rule in stratum:
                for head in rule.heads:
                    bodies = [body for body in rule.bodies if len(body.atoms) > 1]
                    if isinstance(head.value, Aggregate):
                        is_sum = head.value.function in SUMMED and len(rule.bodies) == 1
                        found = self._summing if is_sum else {}
                    else:
                        found = {} if program.component_of(head.relation) else self._sets
                    if bodies:
                        found.setdefault(head.relation, []).extend(bodies)
        self._kept: dict[str, tuple[dict[str, int], CheckedProgram]] = {}

    def over(
        self, target: str, tables: Mapping[str, Table], domains: Domains, trial: Trial
    ) -> CheckedProgram:
        """The program to evaluate over relations for a head.

        ``domains``: those of their codes.  ``trial``: over the same relations.
        """
        if not self._summing and not self._sets:
            return self._program
        rows = {name: table.n_rows for name, table in tables.items()}
        kept = self._kept.get(target)
        if kept is None or not _alike(kept[0], rows):
            needed = {target} | self._program.read_by(target)
            heads = {name for name in needed if self._may_gain(name, rows)}
            chosen = self._program
            if heads:

                def is_worth(rule: CheckedRule, head: CheckedHead, body: Body, joined: SemiJoins) -> bool:
                    least = max(joined.cost, view_tree.LEAST_LISTED)
                    is_loaded = all(name in tables for name in body.relations)
                    gains = joined.plain >= view_tree.ONCE_FACTOR * least and is_loaded
                    return gains and trial.takes_more(rule, head, body, least)

                chosen = with_views(chosen, heads, tables, domains, tables, once=True, is_worth=is_worth)
            kept = self._kept[target] = rows, chosen if chosen.written is not None else self._program
        return kept[1]

    def wider(
        self, target: str, tables: Mapping[str, Table], domains: Domains, narrow: CheckedProgram
    ) -> CheckedProgram:
        """The same with views of 128 bits, which are called otherwise than those of ``narrow``."""
        taken = {*tables, *narrow.derived}
        heads = ({target} | self._program.read_by(target)) & self._summing.keys()
        return with_views(self._program, heads, tables, domains, taken, wide=True, once=True)

    def _may_gain(self, name: str, rows: Mapping[str, int]) -> bool:
        """Whether a body of a head could have as many assignments as it takes."""
        bodies = (*self._summing.get(name, ()), *self._sets.get(name, ()))
        most = (math.prod(rows.get(a.relation, UNKNOWN_ROWS) for a in body.atoms) for body in bodies)
        return any(listed >= view_tree.LEAST_LISTED for listed in most)


def _alike(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    sizes = ((max(FEW_ROWS, before[name]), max(FEW_ROWS, n_rows)) for name, n_rows in now.items())
    return all(larger <= ALIKE * smaller for smaller, larger in map(sorted, sizes))
