"""differential: one transaction of many changes against many of one, in any order; a change and its inverse.

Workspaces are compared with each other, and with a fresh one that is installed
over what there is in the end: nothing but the engine's own results, so larger
changes than the brute-force reference could follow are possible.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lftj.errors import EvaluationError, FunctionalConflictError, RangeError
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.maintained_scenarios import commit, has_functional_reads, heads_of, installed, pool_of
from support.reference import Row
from support.rows import rows_of
from support.strategies import Loaded, Scenario, any_row, scenarios
from support.transactions import Staged, Tuples, after

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

# Of a relation that is read as a function some changes would be refused.
PLAIN = scenarios(4, 3, plain=True).filter(lambda scenario: not has_functional_reads(scenario))
EVERY = scenarios(3, 3)
SEEDS = st.integers(0, 2**32 - 1)


def distinct_changes(scenario: Scenario, relations: Tuples, size: int, random: Random) -> list[Staged]:
    """Changes of different tuples, each of which does change something."""
    pools = [(loaded.name, row) for loaded in scenario.loaded for row in pool_of(loaded, random)]
    chosen = dict.fromkeys(random.choices(pools, k=size))
    return [(name, row, -1 if row in relations[name] else 1) for name, row in chosen]


def contents(workspace: Workspace, scenario: Scenario) -> dict[str, set[Row]]:
    names = [*(loaded.name for loaded in scenario.loaded), *heads_of(scenario)]
    return {name: any_row(set(rows_of(workspace[name].table))) for name in names}


def fresh(scenario: Scenario, relations: Tuples) -> Workspace:
    """A workspace over these relations."""
    loaded = tuple(
        Loaded(its.name, its.kinds, its.types, tuple(relations[its.name]), its.functional)
        for its in scenario.loaded
    )
    return installed(Scenario(loaded, scenario.program), "trace")


@settings(suppress_health_check=list(HealthCheck))
@given(PLAIN, st.sampled_from((2, 3, 6, 12)), st.sampled_from((0, 8)), SEEDS)
def test_one_transaction_is_many_in_any_order(scenario: Scenario, size: int, gap: int, seed: int) -> None:
    random = Random(seed)
    changes = distinct_changes(scenario, scenario.relations, size, random)
    whole = installed(scenario, "trace", gap=gap)
    commit(whole, scenario, changes)
    expected = contents(whole, scenario)
    for _ in range(2):
        random.shuffle(changes)
        apart = installed(scenario, "trace", gap=gap)
        for change in changes:
            commit(apart, scenario, [change])
        assert contents(apart, scenario) == expected
        apart.verify()
    anew = fresh(scenario, after(scenario.relations, changes))
    assert contents(anew, scenario) == expected
    event("heads have tuples" if any(expected[name] for name in heads_of(scenario)) else "heads are empty")


@settings(suppress_health_check=list(HealthCheck))
@given(EVERY, st.sampled_from((2, 5, 12)), SEEDS)
def test_heads_of_all_kinds_do_not_depend_on_the_order(scenario: Scenario, size: int, seed: int) -> None:
    """Aggregates, functions and existence tests too; where some order is refused, nothing is compared."""
    random = Random(seed)
    changes = distinct_changes(scenario, scenario.relations, size, random)
    found = []
    try:
        for cuts in (1, 2, len(changes)):
            workspace = installed(scenario, "trace")
            random.shuffle(changes)
            for part in range(cuts):
                commit(workspace, scenario, changes[part::cuts])
            workspace.check_invariants()
            workspace.verify()
            found.append(contents(workspace, scenario))
        found.append(contents(fresh(scenario, after(scenario.relations, changes)), scenario))
    except (FunctionalConflictError, EvaluationError, RangeError) as error:
        event(f"refused: {type(error).__name__}")
        return
    assert all(its == found[0] for its in found[1:])
    event("compared")


@settings(suppress_health_check=list(HealthCheck))
@given(PLAIN, st.sampled_from((1, 2, 8, 20)), st.sampled_from((0, 8)), st.sampled_from((None, 0)), SEEDS)
def test_changes_and_their_inverses(
    scenario: Scenario, size: int, gap: int, budget: int | None, seed: int
) -> None:
    """Taken back in another order than they came in: heads and relations are back, each time."""
    random = Random(seed)
    workspace = installed(scenario, "trace", gap=gap, budget=budget)
    before = contents(workspace, scenario)
    for _ in range(3):
        changes = distinct_changes(scenario, scenario.relations, size, random)
        cut = random.randint(0, len(changes))
        commit(workspace, scenario, changes[:cut])
        commit(workspace, scenario, changes[cut:])
        there = contents(workspace, scenario)
        assert there == contents(fresh(scenario, after(scenario.relations, changes)), scenario)
        random.shuffle(changes)
        back = [(name, row, -weight) for name, row, weight in changes]
        cut = random.randint(0, len(back))
        commit(workspace, scenario, back[:cut])
        commit(workspace, scenario, back[cut:])
        assert contents(workspace, scenario) == before
    workspace.check_invariants()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_head_with_rules_in_two_strata_follows_what_it_reads(strategy: str) -> None:
    workspace = Workspace()
    workspace.load("r", [(1,)], columns=["a"])
    workspace.install("late(a) <- r(a). first(a) <- r(a). late(a) <- first(a).", strategy)
    with workspace.transaction() as transaction:
        transaction.insert("r", [(2,)])
    assert sorted(workspace["late"].to_pydict()["a"]) == [1, 2]
    workspace.verify()
