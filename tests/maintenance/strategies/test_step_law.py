"""law: of whatever a strategy keeps, ``step == build(new) - build(old)``.

Every strategy of the list plans random bodies, for all assignments or by first success, in a given key order
or its own; each search that comes of it is one example of the law.  Strategies that keep heads whole have it
for the heads of fixed rules.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lftj.errors import OrderError
from lftj.language.body import Body, CheckedRule
from lftj.planning.lowered import Lowered
from lftj.search.problem import JoinAtom
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.stats import RuleStats
from maintenance.strategies.auto import auto_body
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta.delta_body import DeltaBody, DeltaTest
from maintenance.strategies.recompute import RecomputedHead
from maintenance.strategies.strategy import (
    Assignments,
    BodyRequest,
    BodySearch,
    BodyStrategy,
    Building,
    HeadRequest,
    HeadStrategy,
    Round,
    Versions,
)
from maintenance.strategies.trace.body_trace import BodyTrace
from maintenance.strategies.trace.witnessed_trace import WitnessedTrace
from support.bodies import Case, cases, first_versions, rows_of
from support.records import renewed_all_the_time, round_of
from support.sets import load_set

pytestmark = pytest.mark.kernel

OF_BODIES = {name: made() for name, made in STRATEGIES.items() if isinstance(made(), BodyStrategy)}
OF_HEADS = {name: made() for name, made in STRATEGIES.items() if isinstance(made(), HeadStrategy)}
KINDS: dict[str, set[type]] = {
    "trace": {BodyTrace, WitnessedTrace},
    "delta": {DeltaBody, DeltaTest},
    "auto": {AutoBody, WitnessedTrace},
    "recompute": {RecomputedHead},
    "views": {DeltaBody, DeltaTest},
}
"""What each strategy keeps."""


def added_up(rows: Assignments) -> Counter[tuple[int, ...]]:
    """The rows that do not add up to nothing, with their weights."""
    columns, weights = rows
    found: Counter[tuple[int, ...]] = Counter()
    keys = rows_of(list(columns)) if len(columns) else [()] * len(weights)
    for row, weight in zip(keys, weights.tolist(), strict=True):
        found[row] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def difference(new: Counter[Any], old: Counter[Any]) -> Counter[Any]:
    return Counter({row: new[row] - old[row] for row in {*new, *old} if new[row] != old[row]})


def searches_of(
    strategy: BodyStrategy, case: Case, wanted: list[str], given_order: bool, gap: int
) -> list[BodySearch]:
    """The searches that a strategy plans for a case of which these variables are wanted."""
    problem = replace(case.problem, emitted=tuple(wanted))
    request = BodyRequest(
        rule=cast(CheckedRule, None),
        body=cast(Body, _Bound(problem.atoms)),
        relations=first_versions(case),
        wanted=wanted,
        order=case.order if given_order else None,
        gap=gap,
    )
    planned = strategy.plan(request, Lowered(problem, {}))
    return [*planned.rows, *planned.tests]


class _Bound:
    """What strategies ask of a rule's body."""

    def __init__(self, atoms: tuple[JoinAtom, ...]) -> None:
        self.atoms = atoms

    def atom_variables(self) -> list[str]:
        return list(dict.fromkeys(name for atom in self.atoms for name in atom.variables))


def checked_steps(search: BodySearch, twin: BodySearch, case: Case) -> Iterator[str]:
    """Walk through the case's states; ``twin``: the same search, which only builds.

    Yields what the change was like.
    """

    def built(versions: Versions) -> Counter[tuple[int, ...]]:
        found = added_up(twin.build(Building(versions)))
        twin.drop()
        return found

    versions = first_versions(case)
    rows = added_up(search.build(Building(versions)))
    search.keep()
    assert rows == built(versions)
    for before, after in itertools.pairwise(case.states):
        change = round_of(case, versions, before, after)
        following = built(change.new)
        for dropped in (True, False):
            found = added_up(search.step(change, RuleStats()))
            assert found == difference(following, rows)
            assert added_up(search.rows(change, after=True)) == following
            assert added_up(search.rows(change, after=False)) == rows
            if dropped:
                search.drop()
        search.keep()
        versions, rows = dict(change.new), following
        for _ in range(2):
            search.tidy(versions)
            search.check_invariants()
        yield "rows came or went" if found else "nothing changed"


@pytest.mark.parametrize("name", OF_BODIES)
@settings(suppress_health_check=list(HealthCheck))
@given(cases(most_rows=10), st.integers(0, 2**8), st.booleans(), st.sampled_from((0, 8)), st.booleans())
def test_a_step_is_the_difference_of_two_builds(
    name: str, case: Case, left_out: int, given_order: bool, gap: int, is_hasty: bool
) -> None:
    """``is_hasty``: no step or record is worth keeping, so bodies evaluate again, change ways and rebuild."""
    wanted = [one for place, one in enumerate(case.order) if left_out >> place & 1]
    try:
        searches, twins = (searches_of(OF_BODIES[name], case, wanted, given_order, gap) for _ in range(2))
    except OrderError:
        event("no order")
        return
    for search, twin in zip(searches, twins, strict=True):
        assert type(search) in KINDS[name]
        event(type(search).__name__)
        with (
            mock.patch.object(auto_body, "LEAST_BUDGET", 0 if is_hasty else auto_body.LEAST_BUDGET),
            mock.patch.object(auto_body, "PREPARED_LEAST", 0),
            renewed_all_the_time(10 if is_hasty else None),
        ):
            for what in checked_steps(search, twin, case):
                event(what)


HEADS = (
    "h(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).",
    "h(a) <- edge(a, b), !edge(b, a).",
    "h[a] = sum(c) <- edge(a, b), edge(b, c).",
    "h(a) <- edge(a, b), b < 4. h(b) <- edge(a, b), edge(b, a).",
)


@pytest.mark.parametrize("name", OF_HEADS)
@pytest.mark.parametrize("rule", HEADS)
def test_a_step_of_a_head_is_the_difference_of_two_builds(name: str, rule: str) -> None:
    random = Random(1)
    ws = Workspace()
    load_set(ws, "edge", [(random.randrange(8), random.randrange(8)) for _ in range(20)], columns=["a", "b"])
    ws.install(rule, name)
    head = ws._heads["h"]
    strategy = cast(HeadStrategy, OF_HEADS[name])
    source, twin = (strategy.plan(HeadRequest("h", head.program, head.reads)) for _ in range(2))
    assert type(source) in KINDS[name]
    old = ws._state.versions
    rows = added_up(source.build(Building(old)))
    source.keep()
    for _ in range(12):
        with ws.transaction() as tx:
            for write in (tx.insert, tx.erase):
                write(
                    "edge", [(random.randrange(8), random.randrange(8)) for _ in range(random.randrange(4))]
                )
        new = ws._state.versions
        following = added_up(twin.build(Building(new)))
        assert added_up(source.step(Round(old, dict(new), {}), RuleStats())) == difference(following, rows)
        source.keep()
        old, rows = new, following


def test_every_strategy_is_held_to_the_law() -> None:
    assert KINDS.keys() == STRATEGIES.keys() == OF_BODIES.keys() | OF_HEADS.keys()
