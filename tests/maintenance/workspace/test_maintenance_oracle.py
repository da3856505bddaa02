"""oracle: maintained heads against the brute-force reference, on random programs, data and transactions.

After every transaction: the head is what the reference computes from the
relations as they are, the reported change is the new head minus the old one,
``trace`` and another strategy agree, the oracle names no more regions than there
were surgeries and matches, and the structures keep their invariants.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.strategies.auto import auto_body
from support.daily import drawn_daily
from support.maintained_scenarios import (
    check_changes,
    check_heads,
    commit,
    expected_heads,
    has_functional_reads,
    installed,
)
from support.sets import load_set
from support.strategies import Scenario, scenarios
from support.transactions import Staged, Tuples, after, transactions

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

OTHERS = st.sampled_from([name for name in STRATEGIES if name != "trace"])


@pytest.fixture(autouse=True, scope="module")
def little_budgets() -> Iterator[None]:
    """`auto` has something to choose also where everything is small."""
    with mock.patch.object(auto_body, "LEAST_BUDGET", 20), mock.patch.object(auto_body, "SHADOW_EVERY", 2):
        yield


def follow(scenario: Scenario, steps: list[list[Staged]], other: str, **options: int) -> None:
    """Workspaces of ``trace`` and of another strategy."""
    relations: Tuples = scenario.relations
    heads = expected_heads(scenario, relations)
    assume(heads is not None)
    assert heads is not None
    workspaces = [installed(scenario, strategy, **options) for strategy in ("trace", other)]
    for workspace in workspaces:
        check_heads(workspace, heads)
    for staged in steps:
        following = after(relations, staged)
        expected = expected_heads(scenario, following)
        for workspace in workspaces:
            try:
                transaction = commit(workspace, scenario, staged)
            except errors.LftjError:
                assert expected is None or has_functional_reads(scenario)
                event("a refused transaction")
                check_heads(workspace, heads)
                return
            assert expected is not None
            check_heads(workspace, expected)
            check_changes(transaction, heads, expected)
            workspace.check_invariants()
        relations, heads = following, expected
        assert heads is not None
    for workspace in workspaces:
        workspace.verify()


@pytest.mark.in_turns
@pytest.mark.parametrize(("gap", "most_atoms"), [(0, 3), (8, 3), (0, 4), (2, 2)])
@drawn_daily
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), other=OTHERS)
def test_plain_rules_follow(gap: int, most_atoms: int, data: st.DataObject, other: str) -> None:
    scenario = data.draw(scenarios(most_atoms, plain=True, nulls=True))
    steps = data.draw(st.lists(transactions(scenario), min_size=1, max_size=6))
    follow(scenario, steps, other, gap=gap)


@drawn_daily
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), other=OTHERS)
def test_programs_follow(data: st.DataObject, other: str) -> None:
    scenario = data.draw(scenarios(most_atoms=3, most_rules=4, nulls=True))
    steps = data.draw(st.lists(transactions(scenario), min_size=1, max_size=5))
    follow(scenario, steps, other)


@drawn_daily
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), other=OTHERS, budget=st.sampled_from((0, 200, 1000)))
def test_rules_follow_with_little_memory(data: st.DataObject, other: str, budget: int) -> None:
    """Down to one record per node: exact, however little is recorded apart."""
    scenario = data.draw(scenarios(3, plain=True))
    steps = data.draw(st.lists(transactions(scenario), min_size=1, max_size=5))
    follow(scenario, steps, other, gap=0, budget=budget)


@pytest.mark.parametrize("gap", [0, 8])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_long_runs_of_single_changes(gap: int, seed: int) -> None:
    """Edges of a dense, skewed graph come and go: an iterator passes over keys that become matches later.

    A match that only a region finds has to be recorded by every participant, or its end goes unnoticed.
    """
    random = np.random.default_rng(seed)
    vertices, steps = (16, 60) if numba.config.DISABLE_JIT else (40, 500)
    skewed = (vertices * random.random((4 * vertices, 2)) ** 2).astype(int)
    workspace = Workspace(record_gap=gap)
    load_set(workspace, "edge", skewed, columns=["a", "b"])
    workspace.install("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
    edges = {tuple(edge) for edge in skewed.tolist()}
    for step in range(steps):
        edge = tuple((vertices * random.random(2) ** 2).astype(int).tolist())
        with workspace.transaction() as transaction:
            if edge in edges:
                transaction.erase("edge", [edge])
            else:
                transaction.insert("edge", [edge])
        edges ^= {edge}
        if step % 20 == 19:
            workspace.verify()
    workspace.check_invariants()
