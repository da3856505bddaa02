"""Views under `auto`: what commits took is entered into the choices of heads, which go over to views or back.

Invariants

1. What is chosen is published by one assignment: the heads that are kept otherwise, and their choices.
2. Views that `auto` chooses take no more memory than ``view_bytes``, and where that is not given, than
   :data:`VIEW_SHARE` times what the relations that the head reads do, or :data:`LEAST_BYTES`; looked at when
   they are built, and in every
   :data:`~maintenance.strategies.auto.auto_body.SHADOW_EVERY`-th commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lftj.language.several_aggregates import shown_name
from lftj.rewriting.guard import Spans
from lftj.rewriting.programs import with_views
from lftj.rewriting.shared_views import is_view
from lftj.values.domains import Domains
from maintenance.heads.head import MaintainedHead
from maintenance.stats import RuleStats
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.auto.view_choice import ViewChoice
from maintenance.strategies.strategy import Round
from maintenance.workspace.budget import view_bytes
from maintenance.workspace.guarded import has_views, unproven_of, with_spans
from maintenance.workspace.installing import TOO_LARGE, heads_of, kept_anew, with_wider_views
from maintenance.workspace.state import State

LEAST_BYTES = 1 << 24
"""Memory that no views are denied where there is no ``view_bytes``."""

VIEW_SHARE = 16
"""And so many times what is joined.  An index has about 20 bytes of a row of three numbers; each view with a
key for it has 60, its group among them, and in two scan trees twice as much again."""

BUILD_PER_ROW = 4
"""Operations per row of the relations that building views is taken to cost."""


def enter_commits(
    state: State,
    rules: Mapping[str, RuleStats],
    steps: Mapping[str, int],
    n_changed: Mapping[str, int],
    change: Round | None,
) -> None:
    """Let choices know what commits took together, rule by rule.

    ``state``: the one that was published.  ``steps``: in how many of them each rule was stepped.
    ``n_changed``: rows by relation.  ``change``: of all of them, where it is known.
    """
    heads = state.heads
    taken: dict[str, list[str]] = {}
    for rule in rules:
        taken.setdefault(heads[rule].shown_name, []).append(rule)
    for name, each in taken.items():
        choice = heads[name].choice if name in heads else None
        if choice is None:
            continue
        commits = max([steps[rule] for rule in each])
        looks = choice.looks_at_memory(commits)
        n_rows = sum([times * n_changed.get(relation, 0) for relation, times in choice.atoms.items()])
        operations = sum([rules[rule].operations for rule in each])
        n_rules = sum([steps[rule] for rule in each])
        choice.enter(operations, n_rules, n_rows, change, rules[each[0]], commits)
        if choice.in_use:
            if name in rules:
                rules[name].chosen = ("views",)
            if looks:
                choice.exceeds = _exceeds(state, name)


def wants_change(state: State, names: Collection[str] | None = None) -> bool:
    """Whether some head would rather be kept otherwise: of some, those of a commit, or of all."""
    heads: Iterable[MaintainedHead] = state.heads.values()
    if names is not None:
        heads = [state.heads[name] for name in {*names, *map(shown_name, names)} if name in state.heads]
    return any(
        head.looks_for_views or (head.choice is not None and head.choice.wants_change) for head in heads
    )


def reconsidered(state: State, domains: Domains) -> State:
    """The state in which heads have gone over to views, or back; the same where none has."""
    for name, head in state.heads.items():
        if head.looks_for_views:
            state = _with_again(state, shown_name(name), domains)
        if head.choice is not None and head.choice.wants_change:
            state = _without(state, name, domains) if head.choice.in_use else _with(state, name, domains)
    return state


def begun(state: State, heads: Collection[str], domains: Domains) -> State:
    """The state in which new heads have views from the beginning, where one changed row would cost more
    without them than building them does, by the model."""
    foreseen = []
    for name in heads:
        choice = state.heads[name].choice
        if choice is None:
            continue
        members = heads_of(state, name)
        names = [head.name for head in members]
        costs = with_views(
            members[0].program.as_written, names, state.versions, domains, state.versions
        ).view_costs
        without = max((cost.without for cost in costs.values()), default=0.0)
        if without > _building(state, choice):
            choice.foresee(without)
            foreseen.append(name)
    return _with_together(state, foreseen, domains)


def _building(state: State, choice: ViewChoice) -> int:
    """Operations that building views is taken to cost."""
    return BUILD_PER_ROW * sum(state.versions[name].n_rows * times for name, times in choice.atoms.items())


def _with_together(state: State, names: Sequence[str], domains: Domains) -> State:
    """The state in which heads of one program that foresee it have views, and share what these read; or each
    by itself, where not all of them can."""
    members = {name: heads_of(state, name) for name in names}
    bodies = {name: [search for head in its for search in head.searches] for name, its in members.items()}
    deltas = {name: [its.delta for its in each if isinstance(its, AutoBody)] for name, each in bodies.items()}
    if len(names) > 1 and all(len(deltas[name]) == len(bodies[name]) for name in names):
        keepings = {head.name: head.keeping for its in members.values() for head in its}
        program = members[names[0]][0].program.as_written
        following = kept_anew(state, program, keepings, list(keepings), domains)
        have_some = all(any(map(has_views, heads_of(following, name))) for name in names)
        if have_some and not any(_exceeds(following, name) for name in names):
            for name, each in bodies.items():
                price = sum(search.budget or 0 for search in each)
                following.heads[name].choice = choice_of(members[name]).gone_over(price, deltas[name])
            return following
    for name in names:
        state = _with(state, name, domains)
    return state


def _with(state: State, name: str, domains: Domains) -> State:
    """The state in which a head has views; the same where there are none, or none that pay."""
    members = heads_of(state, name)
    choice = choice_of(members)
    program = members[0].program.as_written
    names = [head.name for head in members]
    bodies = [search for head in members for search in head.searches]
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
    keepings = {head.name: head.keeping for head in members}
    following = kept_anew(state, program, keepings, names, domains)
    if not any(is_view(read) for head in heads_of(following, name) for read in head.reads):
        choice.refuse(TOO_LARGE)
        return state
    exceeds = _exceeds(following, name)
    if exceeds is not None:
        choice.refuse(exceeds)
        return state
    following.heads[name].choice = choice.gone_over(sum(body.budget or 0 for body in bodies), deltas)
    return following


def _with_again(state: State, name: str, domains: Domains) -> State:
    """The state in which a head has the views again that were taken away, if what it computes fits now."""
    members = heads_of(state, name)
    for head in members:
        head.looks_for_views = False
    state = with_spans(state, (), {})
    if has_views(members[0]) or any(unproven_of(head, state.spans) is not None for head in members):
        return state
    keepings = {head.name: head.keeping for head in members}
    return kept_anew(state, members[0].program.as_written, keepings, list(keepings), domains)


def without_unproven(state: State, domains: Domains, spans: Spans) -> State:
    """The state in which no head has views that may fail where its rules don't, by the spans of columns."""
    for name in dict.fromkeys(shown_name(head.name) for head, _ in state.strata.guarded):
        members = heads_of(state, name)
        why = next(filter(None, (unproven_of(head, spans) for head in members)), None)
        if why is None or not any(map(has_views, members)):
            continue
        if members[0].choice is not None:
            members[0].choice.exceeds = why
            state = _without(state, name, domains)
            continue
        keepings = {head.name: head.keeping for head in members}
        program = members[0].program.as_written
        state = kept_anew(state, program, keepings, list(keepings), domains, spans=spans)
        for head in heads_of(state, name):
            head.looks_for_views = True  # behind the commit, which may be refused
    return state


def with_other_views(state: State, domains: Domains) -> State:
    """The state after a value that did not fit: with views of 128 bits where they had 64, then without.

    The same state where no view refused one.  Raises RangeError.
    """
    following = with_wider_views(state, domains)
    refused = {head.name for head in state.heads.values() if head.was_refused_range and is_view(head.name)}
    for head in state.heads.values():  # each behind those that it reads
        if is_view(head.name) and not head.reads.isdisjoint(refused):
            refused.add(head.name)
        head.was_refused_range = False
    if following is not state:
        return following
    readers = (head.name for head in state.heads.values() if not head.reads.isdisjoint(refused))
    for name in dict.fromkeys(shown_name(reader) for reader in readers if not is_view(reader)):
        members = heads_of(state, name)
        if members[0].choice is not None:
            members[0].choice.exceeds = TOO_LARGE
            state = _without(state, name, domains)
            continue
        keepings = {head.name: head.keeping for head in members}
        program = replace(members[0].program.as_written, notes=dict.fromkeys(keepings, f"none: {TOO_LARGE}"))
        state = kept_anew(state, program, keepings, (), domains)
        for head in heads_of(state, name):
            head.looks_for_views = True  # behind the commit, which may be refused
    return state


def _without(state: State, name: str, domains: Domains) -> State:
    members = heads_of(state, name)
    choice = choice_of(members)
    keepings = {head.name: head.keeping for head in members}
    following = kept_anew(state, members[0].program.as_written, keepings, (), domains)
    following.heads[name].choice = choice.gone_over(_building(state, choice))
    return following


def choice_of(members: list[MaintainedHead]) -> ViewChoice:
    """The choice of a head, which one of those that keep it has."""
    return next(head.choice for head in members if head.choice is not None)


def _exceeds(state: State, name: str) -> str | None:
    """Why the views of a head are too large, if so."""
    members = heads_of(state, name)
    taken = view_bytes(state.heads, state.versions, [head.name for head in members])
    limit = state.view_bytes
    if limit is not None:
        return None if taken <= limit else f"views take {taken:,} bytes, more than view_bytes={limit:,}"
    read = sum(state.versions[relation].nbytes for relation in choice_of(members).atoms)
    limit = max(LEAST_BYTES, VIEW_SHARE * read)
    if taken <= limit:
        return None
    allowed = f"{limit:,} allowed, {VIEW_SHARE} times that of what is joined"
    return f"views take {taken:,} bytes, more than the {allowed}"
