"""Queries by views that are made for one evaluation: sums of products and semi-joins, not all assignments.

The rewriting of sums is that of maintained heads; the estimate of its cost is another one
(:mod:`lftj.rewriting.elimination`).  Sets, which ask what exists, have semi-joins
(:mod:`lftj.rewriting.semi_joins`).

Estimates are wrong, and a listing is fast.  So where much may have to be listed the search as written is
tried, until it has taken as many operations as would pay for the views; if it goes on then, they are made.
Only sums of which the estimates say that they gain very much are not tried: all that they have to list is
listed.  A set may have its first success at once, or never.

Invariants

1. What is chosen gives the tuples of the program as it was written, and fails where that fails: what it
   computes fits, whatever joins with what (:mod:`lftj.rewriting.guard`).  Where a partial sum does not fit 64
   bits evaluating it raises RangeError; then :meth:`OneOffViews.instead` says what does.
2. A choice holds as long as the relations are about as large, and what it computes fits.

Cost: of a choice that holds, one look at the number of rows of each relation, and at the columns that it
computes with where the relation has changed; of a new one besides the trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.syntax import Aggregate
from lftj.planning.kept_orders import ALIKE, FEW_ROWS
from lftj.rewriting.guard import spans_of, unproven
from lftj.rewriting.programs import Worth, with_views
from lftj.rewriting.relation_sizes import UNKNOWN_ROWS
from lftj.rewriting.semi_joins import SemiJoins
from lftj.rewriting.view_tree import SUMMED, ViewTree
from lftj.storage.catalog import Table
from lftj.values.domains import Domains

LEAST_LISTED = 1e5
"""Where fewer operations are expected there are no views."""

SURE = 8.0
"""Sums have views untried where they are expected to spare so much."""

TRIED = 4.0
"""Operations that a sum is tried with for each that views are expected to take: it may be nearly done."""


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
                        searched = program.component_of(head.relation) or head.aggregates_rows
                        found = {} if searched else self._sets
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
                worth = _worth(tables, trial)
                chosen = with_views(chosen, heads, tables, domains, tables, once=True, is_worth=worth)
            kept = self._kept[target] = rows, chosen if chosen.written is not None else self._program
        guards = kept[1].guards.values() if kept[1].written is not None else ()
        fits = all(unproven(guard, spans_of(guard.columns, tables)) is None for guard in guards)
        return kept[1] if fits else self._program

    def instead(
        self, target: str, domains: Domains, tables: Mapping[str, Table], refused: CheckedProgram
    ) -> CheckedProgram:
        """What to evaluate where a program with views raised RangeError: first one with views of 128 bits.

        They are called otherwise than those of ``refused``.  Behind it the program as it was written.
        """
        heads = ({target} | self._program.read_by(target)) & refused.view_costs.keys()
        if refused.wide_views or not heads:
            return self._program
        taken = {*tables, *refused.derived}
        return with_views(self._program, heads, tables, domains, taken, wide=True, once=True)

    def _may_gain(self, name: str, rows: Mapping[str, int]) -> bool:
        """Whether a body of a head could have as many assignments as it takes."""
        bodies = (*self._summing.get(name, ()), *self._sets.get(name, ()))
        most = (math.prod(rows.get(a.relation, UNKNOWN_ROWS) for a in body.atoms) for body in bodies)
        return any(listed >= LEAST_LISTED for listed in most)


def _worth(tables: Mapping[str, Table], trial: Trial) -> Worth:
    """Which bodies are evaluated by views; those over heads below can't be tried, and only sums are then."""

    def is_worth(rule: CheckedRule, head: CheckedHead, body: Body, views: ViewTree | SemiJoins) -> bool:
        least = max(views.cost, LEAST_LISTED)
        gains, is_sum = views.plain >= SURE * least, isinstance(views, ViewTree)
        if gains and is_sum:
            return True
        may_gain = gains or (is_sum and views.plain >= least)
        if not may_gain or not all(name in tables for name in body.relations):
            return False
        return trial.takes_more(rule, head, body, TRIED * least if is_sum else least)

    return is_worth


def _alike(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    sizes = ((max(FEW_ROWS, before[name]), max(FEW_ROWS, n_rows)) for name, n_rows in now.items())
    return all(larger <= ALIKE * smaller for smaller, larger in map(sorted, sizes))
