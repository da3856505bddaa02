"""laws: an index that nobody asks for is given back, and what that costs, counted in rows (ski rental).

Between two questions the policy pays at most twice the better of keeping the index and of building it for the
second one, and a step: the adversary may ask whenever it likes, knowing the rule.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import pytest

from indices.housekeeping import housekeeping
from lftj.storage import upkeep
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation_version import IndexKey, RelationVersion
from lftj.storage.upkeep import STEP_ROWS, build_cost
from maintenance import Workspace
from support.bodies import relation

pytestmark = pytest.mark.compiled

REVERSED: IndexKey = ((1, 0), ())
N_ROWS = 300


@contextlib.contextmanager
def counted_steps(costs: list[int]) -> Iterator[None]:
    """Each step of an index enters what it cost."""
    advance = IndexVersion.advance

    def counting(index: IndexVersion, columns: np.ndarray, weights: np.ndarray) -> IndexVersion:
        moved = housekeeping.rows
        following = advance(index, columns, weights)
        costs.append(STEP_ROWS + len(weights) + housekeeping.rows - moved)
        return following

    with mock.patch.object(IndexVersion, "advance", counting), mock.patch.object(upkeep, "BUILD_LEAST", 512):
        yield


def cost_of(asks: list[bool], asking: Callable[[RelationVersion, bool], None]) -> tuple[int, int]:
    """What a relation's changes cost, and how often the reversed index was built, first of all included.

    Before each change ``asking`` may ask for the index, given the version and whether the adversary does.
    """
    version = RelationVersion(relation("r", 2, [(i, i) for i in range(N_ROWS)]))
    costs: list[int] = []
    n_builds = 0
    with counted_steps(costs):
        for number, ask in enumerate(asks):
            was_there = REVERSED in version.index_keys
            asking(version, ask)
            n_builds += REVERSED in version.index_keys and not was_there
            version = version.advance([np.array([-1 - number]), np.array([number])], np.array([1]))
    return sum(costs) + n_builds * build_cost(N_ROWS + len(asks)), n_builds


def asked_by_adversary(version: RelationVersion, ask: bool) -> None:
    if ask:
        version.index_at(REVERSED)


def never_asked(version: RelationVersion, ask: bool) -> None:
    """The relation without the index: what its other index costs."""


def always_asked(version: RelationVersion, ask: bool) -> None:
    version.index_at(REVERSED)


@pytest.mark.parametrize("period", [1, 3, 7, 8, 9, 40, 400])
def test_what_is_asked_now_and_then_costs_twice_the_better(period: int) -> None:
    generator = np.random.default_rng(period)
    asks = (generator.random(400) < 1 / period).tolist()
    others, _ = cost_of(asks, never_asked)
    kept, _ = cost_of(asks, always_asked)
    kept -= others
    rebuilt = sum(asks) * build_cost(N_ROWS + len(asks))
    taken, n_builds = cost_of(asks, asked_by_adversary)
    taken -= others
    longest_step = STEP_ROWS + 1 + 512  # where runs of some hundred tuples are merged at once
    assert taken <= 2 * min(kept, rebuilt) + build_cost(N_ROWS + len(asks)) + n_builds * longest_step


def test_an_index_that_is_asked_for_stays() -> None:
    version = RelationVersion(relation("r", 2, [(i, i) for i in range(50)]))
    version.index_at(REVERSED)
    for number in range(200):
        version.index_at(REVERSED)
        version = version.advance([np.array([-1 - number]), np.array([number])], np.array([1]))
    assert REVERSED in version.index_keys


def test_versions_that_are_there_keep_it_and_it_is_built_again() -> None:
    first = version = RelationVersion(relation("r", 2, [(i, i % 7) for i in range(50)]))
    held = first.index_at(REVERSED)
    n_steps = build_cost(50) // STEP_ROWS + 1
    before = housekeeping.given_back
    for number in range(n_steps):
        assert number > 2 or REVERSED in version.index_keys, "not at once"
        version = version.advance([np.array([-1 - number]), np.array([3])], np.array([1]))
    assert REVERSED not in version.index_keys
    assert housekeeping.given_back == before + 1
    assert first.index_at(REVERSED) is held
    assert held.n_tuples == 50
    again = version.index_at(REVERSED)
    assert again.n_tuples == 50 + n_steps
    version.check_invariants()
    first.check_invariants()


def test_a_commit_says_what_it_gave_back() -> None:
    """A query's index is given back, those of the installed rule stay; the query is answered all the same."""
    ws = Workspace()
    ws.load("edge", [(i, i + 1) for i in range(40)] + [(7, 7)], columns=["src", "dst"])
    ws.install("two(a, c) <- edge(a, b), edge(b, c).", strategy="delta")
    question = "loop(a) <- edge(a, a)."
    assert ws.query(question).to_pylist() == [{"a": 7}]
    assert "edge           41 rows, 3 indices" in str(ws.explain_maintenance())
    given_back = 0
    for number in range(60):
        with ws.transaction() as tx:
            tx.insert("edge", [(100 + number, number)])
        given_back += tx.stats.indices_given_back
    assert given_back == 1
    assert "edge           101 rows, 2 indices" in str(ws.explain_maintenance())
    assert ws.query(question).to_pylist() == [{"a": 7}]
    ws.verify()
    ws.check_invariants()
