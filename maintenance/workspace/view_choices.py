"""Views under `auto`: what commits took is entered into the choices of heads, which go over to views or back.

Invariants

1. What is chosen is published by one assignment: the heads that are kept otherwise, and their choices.
2. Views that `auto` chooses take no more memory than ``view_bytes``, and where that is not given, than the
   relations that the head reads, or :data:`LEAST_BYTES`; looked at when they are built, and in every
   :data:`~maintenance.strategies.auto.auto_body.SHADOW_EVERY`-th commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lftj.language.several_aggregates import shown_name
from lftj.rewriting.programs import with_views
from lftj.rewriting.shared_views import is_view
from lftj.values.domains import Domains
from maintenance.heads.head import MaintainedHead
from maintenance.stats import TransactionStats
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.auto.view_choice import ViewChoice
from maintenance.strategies.strategy import Round
from maintenance.workspace.budget import view_bytes
from maintenance.workspace.installing import heads_of, kept_anew
from maintenance.workspace.state import State

LEAST_BYTES = 1 << 20
"""Memory that no views are denied where there is no ``view_bytes``."""

BUILD_PER_ROW = 4
"""Operations per row of the relations that building views is taken to cost."""


def enter_commit(
    state: State, stats: TransactionStats, n_changed: Mapping[str, int], change: Round | None
) -> None:
    """Let choices know what a commit took.

    ``state``: the one that was published.  ``n_changed``: rows by relation.  ``change``: of the commit, where
    it is known.
    """
    taken: dict[str, list[int]] = {}
    for rule, figures in stats.rules.items():
        taken.setdefault(shown_name(rule), []).append(figures.operations)
    for name, operations in taken.items():
        choice = state.heads[name].choice if name in state.heads else None
        if choice is None:
            continue
        looks = choice.looks_at_memory
        figures = next(stats.rules[rule] for rule in stats.rules if shown_name(rule) == name)
        n_rows = sum(times * n_changed.get(relation, 0) for relation, times in choice.atoms.items())
        choice.enter(sum(operations), len(operations), n_rows, change, figures)
        if choice.in_use:
            if name in stats.rules:
                stats.rules[name].chosen = ("views",)
            if looks:
                choice.exceeds = _exceeds(state, name)


def wants_change(state: State) -> bool:
    """Whether some head would rather be kept otherwise."""
    return any(head.choice is not None and head.choice.wants_change for head in state.heads.values())


def reconsidered(state: State, domains: Domains) -> State:
    """The state in which heads have gone over to views, or back; the same where none has."""
    for name, head in state.heads.items():
        if head.choice is not None and head.choice.wants_change:
            state = _without(state, name, domains) if head.choice.in_use else _with(state, name, domains)
    return state


def begun(state: State, heads: Collection[str], domains: Domains) -> State:
    """The state in which new heads have views from the beginning, where one changed row would cost more
    without them than building them does, by the model."""
    for name in heads:
        choice = state.heads[name].choice
        if choice is None:
            continue
        own = heads_of(state, name)
        names = [head.name for head in own]
        costs = with_views(
            own[0].program.as_written, names, state.versions, domains, state.versions
        ).view_costs
        without = max((cost.without for cost in costs.values()), default=0.0)
        if without > _building(state, choice):
            choice.foresee(without)
            state = _with(state, name, domains)
    return state


def _building(state: State, choice: ViewChoice) -> int:
    """Operations that building views is taken to cost."""
    return BUILD_PER_ROW * sum(state.versions[name].n_rows * times for name, times in choice.atoms.items())


def _with(state: State, name: str, domains: Domains) -> State:
    """The state in which a head has views; the same where there are none, or none that pay."""
    own = heads_of(state, name)
    choice = own_choice(own)
    program = own[0].program.as_written
    names = [head.name for head in own]
    bodies = [search for head in own for search in head.searches]
    deltas = [search.delta for search in bodies if isinstance(search, AutoBody)]
    if len(deltas) < len(bodies):
        choice.refuse("some of it is searched for existence only")
        return state
    rewritten = with_views(program, names, state.versions, domains, state.versions)
    if not rewritten.view_costs:
        notes = (note for key, note in rewritten.notes.items() if key in names)
        choice.refuse("; ".join(dict.fromkeys(notes)) or "there are none")
        return state
    if not choice.pays(max(costs.by_views for costs in rewritten.view_costs.values())):
        return state
    following = kept_anew(state, program, {head.name: head.keeping for head in own}, names, domains)
    if not any(is_view(read) for head in heads_of(following, name) for read in head.reads):
        choice.refuse("a partial sum does not fit 128 bits")
        return state
    exceeds = _exceeds(following, name)
    if exceeds is not None:
        choice.refuse(exceeds)
        return state
    following.heads[name].choice = choice.gone_over(sum(body.budget or 0 for body in bodies), deltas)
    return following


def _without(state: State, name: str, domains: Domains) -> State:
    own = heads_of(state, name)
    choice = own_choice(own)
    keepings = {head.name: head.keeping for head in own}
    following = kept_anew(state, own[0].program.as_written, keepings, (), domains)
    following.heads[name].choice = choice.gone_over(_building(state, choice))
    return following


def own_choice(own: list[MaintainedHead]) -> ViewChoice:
    """The choice of a head, which one of those that keep it has."""
    return next(head.choice for head in own if head.choice is not None)


def _exceeds(state: State, name: str) -> str | None:
    """Why the views of a head are too large, if so."""
    own = heads_of(state, name)
    taken = view_bytes(state.heads, state.versions, [head.name for head in own])
    limit = state.view_bytes
    if limit is not None:
        return None if taken <= limit else f"views take {taken:,} bytes, more than view_bytes={limit:,}"
    read = sum(state.versions[relation].nbytes for relation in own_choice(own).atoms)
    limit = max(LEAST_BYTES, read)
    return (
        None if taken <= limit else f"views take {taken:,} bytes, more than the {limit:,} of what is joined"
    )
