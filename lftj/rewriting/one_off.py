"""Queries evaluated otherwise than they are written: heads for the keys that are read, and by views.

Heads that are read with bound keys come first (:mod:`lftj.rewriting.demand`).  Views are made of heads that
are whole: sums of products and semi-joins, not all assignments.

The rewriting of sums is that of maintained heads; the estimate of its cost is another one
(:mod:`lftj.rewriting.elimination`).  Sets, which ask what exists, have semi-joins
(:mod:`lftj.rewriting.semi_joins`).

Estimates are wrong, and a listing is fast.  So where much may have to be listed the search as written is
tried, until it has taken as many operations as would pay for the views; if it goes on then, they are made.
Only sums of which the estimates say that they gain very much are not tried: all that they have to list is
listed; unless it is of few rows that what the body says of them leaves (:mod:`lftj.planning.reducing`).  A
set may have its first success at once, or never.

Invariants

1. What is chosen gives the tuples of the program as it was written, and fails where that fails: what it
   computes fits, whatever joins with what (:mod:`lftj.rewriting.guard`).  Where a partial sum does not fit 64
   bits evaluating it raises RangeError; then :meth:`OneOffPrograms.instead` says what does.
2. A choice holds as long as the relations are about as large, and what it computes fits.

Cost: of a choice that holds, one look at the number of rows of each relation, and at the columns that it
computes with where the relation has changed; of a new one besides the trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.syntax import Aggregate
from lftj.planning.kept_orders import ALIKE, FEW_ROWS
from lftj.rewriting.demand import with_demand
from lftj.rewriting.guard import spans_of, unproven
from lftj.rewriting.key_relations import holds_keys
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

    def is_filtered(self, head: CheckedHead, body: Body) -> bool:
        """Whether a part of the rows is searched."""


class OneOffPrograms:
    """A program, and what is evaluated in its place.  Safe to use from several threads."""

    def __init__(self, program: CheckedProgram) -> None:
        self._program = program
        self._may_differ = len(program.derived) > 1 or bool(_gaining(program))
        self._kept: dict[tuple[str, bool, bool], tuple[dict[str, int], CheckedProgram]] = {}

    def over(
        self, target: str, tables: Mapping[str, Table], domains: Domains, trial: Trial | None, bounded: bool
    ) -> CheckedProgram:
        """The program to evaluate over relations for a head.

        ``domains``: those of their codes.  ``trial``: over the same relations; None: there are no views, for
        parameters have values.  ``bounded``: rounds of a recursion are counted, which stays as it is then.
        """
        if not self._may_differ:
            return self._program
        rows = {name: table.n_rows for name, table in tables.items()}
        key = target, trial is not None, bounded
        kept = self._kept.get(key)
        if kept is None or not _alike(kept[0], rows):
            chosen = with_demand(self._program, (target,), tables, domains, recursive=not bounded)
            if trial is not None:
                chosen = _with_views(chosen, target, tables, domains, trial)
            kept = self._kept[key] = rows, chosen
        guards = kept[1].guards.values() if kept[1].written is not None else ()
        fits = all(unproven(guard, spans_of(guard.columns, tables)) is None for guard in guards)
        return kept[1] if fits else kept[1].as_written

    def instead(
        self, target: str, domains: Domains, tables: Mapping[str, Table], refused: CheckedProgram
    ) -> CheckedProgram:
        """What to evaluate where a program with views raised RangeError: first one with views of 128 bits.

        They are called otherwise than those of ``refused``.  Behind it the program without views.
        """
        program = refused.as_written
        heads = ({target} | program.read_by(target)) & refused.view_costs.keys()
        if refused.wide_views or not heads:
            return program
        taken = {*tables, *refused.derived}
        return with_views(program, heads, tables, domains, taken, wide=True, once=True)


def _with_views(
    program: CheckedProgram, target: str, tables: Mapping[str, Table], domains: Domains, trial: Trial
) -> CheckedProgram:
    """With the views of one evaluation, or as it is."""
    needed = {target} | program.read_by(target)
    rows = {name: table.n_rows for name, table in tables.items()}
    heads = {name for name, bodies in _gaining(program).items() if name in needed and _may_gain(bodies, rows)}
    if not heads:
        return program
    worth = _worth(tables, trial)
    found = with_views(program, heads, tables, domains, tables, once=True, is_worth=worth)
    return found if found.written is not None else program


def _gaining(program: CheckedProgram) -> dict[str, list[Body]]:
    """The bodies that may have views, by head: of those that are whole."""
    found: dict[str, list[Body]] = {}
    for rule in (rule for stratum in program.strata for rule in stratum):
        bodies = [body for body in rule.bodies if len(body.atoms) > 1]
        if any(holds_keys(atom.relation) for body in bodies for atom in body.atoms):
            continue
        for head in rule.heads:
            if isinstance(head.value, Aggregate):
                gains = head.value.function in SUMMED and len(rule.bodies) == 1
            else:
                gains = not (program.component_of(head.relation) or head.aggregates_rows)
            if gains and bodies and not holds_keys(head.relation):
                found.setdefault(head.relation, []).extend(bodies)
    return found


def _may_gain(bodies: Iterable[Body], rows: Mapping[str, int]) -> bool:
    """Whether a body of a head could have as many assignments as it takes."""
    most = (math.prod(rows.get(a.relation, UNKNOWN_ROWS) for a in body.atoms) for body in bodies)
    return any(listed >= LEAST_LISTED for listed in most)


def _worth(tables: Mapping[str, Table], trial: Trial) -> Worth:
    """Which bodies are evaluated by views; those over heads below can't be tried, and only sums are then."""

    def is_worth(rule: CheckedRule, head: CheckedHead, body: Body, views: ViewTree | SemiJoins) -> bool:
        least = max(views.cost, LEAST_LISTED)
        gains, is_sum = views.plain >= SURE * least, isinstance(views, ViewTree)
        may_gain = gains or (is_sum and views.plain >= least)
        can_try = all(name in tables for name in body.relations)
        if gains and is_sum and not (can_try and trial.is_filtered(head, body)):
            return True
        if not may_gain or not can_try:
            return False
        return trial.takes_more(rule, head, body, TRIED * least if is_sum else least)

    return is_worth


def _alike(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    sizes = ((max(FEW_ROWS, before[name]), max(FEW_ROWS, n_rows)) for name, n_rows in now.items())
    return all(larger <= ALIKE * smaller for smaller, larger in map(sorted, sizes))
