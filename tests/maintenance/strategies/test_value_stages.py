"""oracle: min and max inside a recursion, kept by `stages`, against Bellman-Ford and labels that spread."""

from __future__ import annotations

import io
from random import Random
from unittest import mock

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.image import read_image, write_image
from maintenance.strategies.stages import stages, step
from support.rows import rows_of
from support.shortest_paths import SHORTEST, bellman_ford

Road = tuple[int, int, int]
Roads = set[Road]
LABELS = """
    label[x] = min(l) <- name(x, l).
    label[y] = min(l) <- label[x] = l, (edge(x, y) ; edge(y, x)).
"""


def distances(roads: Roads, strategy: str = "stages", text: str = SHORTEST, **options: int) -> Workspace:
    workspace = Workspace()
    workspace.load("road", sorted(roads), columns=["a", "b", "w"])
    workspace.load("start", [(0,)], columns=["x"])
    workspace.install(text, strategy, **options)
    return workspace


def commit(workspace: Workspace, gone: Roads, new: Roads) -> tuple[int, int]:
    """Erase and insert roads; the instances that were counted, and whether it was evaluated anew."""
    with workspace.transaction() as transaction:
        transaction.erase("road", sorted(gone) or [])
        transaction.insert("road", sorted(new) or [])
    figures = transaction.stats.rules.get("dist")
    return (figures.instances, figures.recomputed) if figures else (0, 0)


def check(workspace: Workspace, roads: Roads) -> None:
    assert dict(rows_of(workspace["dist"].table)) == bellman_ford(roads)
    workspace.check_invariants()


@pytest.mark.parametrize("seed", range(12))
def test_random_roads(seed: int) -> None:
    """Weights of 0 too, so that values alone say nothing about what rests on what."""
    random = Random(seed)
    n_nodes, heaviest = random.choice((5, 9, 14)), random.choice((0, 1, 3))
    roads: Roads = set()

    def road() -> Road:
        return random.randrange(n_nodes), random.randrange(n_nodes), random.randint(0, heaviest)

    workspace = distances(roads | {(0, 1, 1)})
    roads = {(0, 1, 1)}
    with mock.patch.object(step, "PIECE_FACTS", random.choice((1, 3, 1 << 12))):
        for _ in range(25):
            gone = set(random.sample(sorted(roads), min(len(roads), random.choice((0, 0, 1, 2, 5)))))
            new = {road() for _ in range(random.choice((0, 1, 2, 6)))} - roads
            _, recomputed = commit(workspace, gone, new)
            assert not recomputed
            roads = (roads - gone) | new
            check(workspace, roads)
    workspace.verify()


@pytest.mark.parametrize("rule", ["not linear", "negative weights"])
def test_other_rules(rule: str) -> None:
    """All pairs by joining them with themselves; weights by heights, so that no cycle is negative."""
    random, n_nodes = Random(rule), 7
    heights = [random.randrange(4) for _ in range(n_nodes)]

    def road() -> Road:
        a, b = random.randrange(n_nodes), random.randrange(n_nodes)
        lift = heights[b] - heights[a] if rule == "negative weights" else 0
        return a, b, random.randint(0, 2) + lift

    text = SHORTEST
    if rule == "not linear":
        text = (
            "far[x, y] = min(w) <- road(x, y, w)."
            " far[x, z] = min(m) <- far[x, y] = n, far[y, z] = k, m = n + k."
            " dist[y] = min(n) <- far[0, y] = n, y != 0."
        )
    roads = {road() for _ in range(8)}
    workspace = distances(roads, text=text) if rule != "not linear" else distances(roads, "auto", text)
    for _ in range(30):
        gone = set(random.sample(sorted(roads), min(len(roads), random.choice((0, 1, 2)))))
        new = {road() for _ in range(random.choice((0, 1, 2)))} - roads
        commit(workspace, gone, new)
        roads = (roads - gone) | new
        expected = bellman_ford(roads)
        expected.pop(0, None) if rule == "not linear" else None
        assert dict(rows_of(workspace["dist"].table)) == expected
        workspace.check_invariants()
    workspace.verify()


def test_a_cycle_without_weight_does_not_hold_itself() -> None:
    cycle = {(1, 2, 0), (2, 3, 0), (3, 1, 0)}
    workspace = distances({(0, 1, 4), *cycle})
    commit(workspace, {(0, 1, 4)}, set())
    assert rows_of(workspace["dist"].table) == [(0, 0)]
    commit(workspace, set(), {(0, 2, 7)})
    check(workspace, {(0, 2, 7), *cycle})


def test_an_erasure_with_another_way_as_short_looks_at_nothing_behind_it() -> None:
    n = 60
    path = {(i, i + 1, 1) for i in range(2, n)}
    both = {(0, 1, 1), (1, 2, 1), (0, -1, 1), (-1, 2, 1)}
    workspace = distances({*path, *both})
    commit(workspace, set(), {(n, 0, 1)})
    for erased in ((1, 2, 1), (-1, 2, 1)):
        counted = [commit(workspace, {erased}, set())[0], commit(workspace, set(), {erased})[0]]
        assert counted == [1, 1]
        check(workspace, {*path, *both, (n, 0, 1)})
    # Without both everything behind goes and comes; by a longer way it only moves.
    commit(workspace, {(1, 2, 1)}, set())
    assert commit(workspace, {(-1, 2, 1)}, {(1, 2, 3)})[0] <= 2 * (n + 1)
    check(workspace, {*path, *both, (n, 0, 1), (1, 2, 3)} - {(1, 2, 1), (-1, 2, 1)})


def test_insertions_are_followed_as_far_as_values_get_better() -> None:
    n = 50
    path = {(i, i + 1, 1) for i in range(n)}
    workspace = distances(path)
    commit(workspace, set(), {(n, n + 1, 1)})
    assert commit(workspace, set(), {(0, n, n)})[0] == 1
    assert commit(workspace, set(), {(0, n - 1, 3)})[0] <= 8
    check(workspace, {*path, (n, n + 1, 1), (0, n, n), (0, n - 1, 3)})


@pytest.mark.parametrize("strategy", ["stages", "auto", "recompute"])
def test_everything_goes_and_comes_back(strategy: str) -> None:
    """More offers than there is room for at first; slots and groups are given back."""
    n = 700
    roads = {(i, i + 1, i % 3) for i in range(n)} | {(i, i + 2, 2) for i in range(0, n, 2)}
    workspace = distances(roads, strategy)
    for _ in range(2):
        commit(workspace, roads, set())
        check(workspace, set())
        commit(workspace, set(), roads)
        check(workspace, roads)
    commit(workspace, {(i, j, w) for i, j, w in roads if i >= 20}, set())
    check(workspace, {(i, j, w) for i, j, w in roads if i < 20})
    workspace.verify()


def test_components_split_and_join_by_the_least_label() -> None:
    random, n_nodes = Random(5), 12
    names = {x: f"{random.choice('abc')}{x}" for x in range(n_nodes)}
    workspace = Workspace()
    workspace.load("name", sorted(names.items()), columns=["x", "l"])
    edges = {(0, 1), (1, 2)}
    workspace.load("edge", sorted(edges), columns=["a", "b"])
    workspace.install(LABELS, "stages")
    for number in range(40):
        edge = random.randrange(n_nodes), random.randrange(n_nodes)
        changed = {edge} | ({random.choice(sorted(edges))} if edges else set())
        with workspace.transaction() as transaction:
            transaction.erase("edge", sorted(changed & edges) or [])
            transaction.insert("edge", sorted(changed - edges) or [])
            if number % 5 == 4:
                transaction.erase("name", [(edge[0], names[edge[0]])])
                names[edge[0]] = f"{random.choice('abc')}{number}"
                transaction.insert("name", [(edge[0], names[edge[0]])])
        edges ^= changed
        label = dict(names)
        for _ in label:
            for a, b in edges:
                label[a] = label[b] = min(label[a], label[b])
        assert dict(rows_of(workspace["label"].table)) == label
        assert not transaction.stats["label"].recomputed
        workspace.check_invariants()
    workspace.verify()


def test_a_transaction_that_fails_leaves_all_as_it_was() -> None:
    roads = {(0, 1, 2), (1, 2, 2), (0, 2, 9)}
    workspace = distances(roads, max_rounds=40)
    commit(workspace, set(), {(2, 3, 1)})
    held = sorted(rows_of(workspace["dist"].table))
    for _ in range(2):
        with pytest.raises(errors.RoundLimitError, match="dist still gave new tuples after 40 rounds"):
            commit(workspace, {(1, 2, 2)}, {(2, 1, -12)} | {(1, 2, 1)})
        with pytest.raises(ZeroDivisionError), workspace.transaction() as transaction:
            transaction.erase("road", [(0, 1, 2)])
            raise ZeroDivisionError
        assert sorted(rows_of(workspace["dist"].table)) == held
        workspace.check_invariants()
    commit(workspace, {(0, 1, 2)}, set())
    check(workspace, {(1, 2, 2), (0, 2, 9), (2, 3, 1)})
    workspace.verify()


def test_a_commit_beyond_its_budget_is_evaluated_again() -> None:
    n = 40
    path = {(i, i + 1, 1) for i in range(n)}
    workspace = distances(path, "auto")
    with mock.patch.object(stages, "LEAST_BUDGET", 20):
        recomputed = [
            commit(workspace, gone, new)[1]
            for gone, new in ((set(), {(n, n + 1, 1)}), ({(0, 1, 1)}, {(0, 1, 2)}), (set(), {(n, 0, 1)}))
        ]
    assert recomputed == [0, 1, 0]
    check(workspace, {*path, (n, n + 1, 1), (0, 1, 2), (n, 0, 1)} - {(0, 1, 1)})
    workspace.verify()


def test_a_value_that_rests_on_itself_is_evaluated_again() -> None:
    """3 gives 2, and in its place 2 has nothing to stand on: without the 3 both have to go."""
    workspace = Workspace()
    workspace.load("first", [(3,)], columns=["x"])
    workspace.load("other", [(2,)], columns=["x"])
    workspace.install("b[] = min(x) <- first(x). b[] = min(y) <- b[] = x, other(y), x < 4.", "stages")
    assert rows_of(workspace["b"].table) == [(2,)]
    for change, rows in (("erase", []), ("insert", [(2,)]), ("erase", [])):
        with workspace.transaction() as transaction:
            getattr(transaction, change)("first", [(3,)])
        assert rows_of(workspace["b"].table) == rows and transaction.stats["b"].instances == 0
        workspace.check_invariants()
        workspace.verify()
    described = str(workspace.explain_maintenance("b"))
    assert "evaluated again by each commit: a value rests on a worse one of its own key" in described


def test_a_value_that_comes_to_rest_on_itself_during_a_commit() -> None:
    workspace = Workspace()
    workspace.load("first", [(3,)], columns=["x"])
    workspace.load("other", [(5,)], columns=["x"])
    workspace.install("b[] = min(x) <- first(x). b[] = min(y) <- b[] = x, other(y), x < 4.", "stages")
    for change, name, value, expected in (
        ("insert", "other", 7, 3),
        ("insert", "other", 2, 2),
        ("erase", "other", 2, 3),
        ("erase", "first", 3, None),
    ):
        with workspace.transaction() as transaction:
            getattr(transaction, change)(name, [(value,)])
        assert rows_of(workspace["b"].table) == ([] if expected is None else [(expected,)])
        workspace.check_invariants()
    workspace.verify()


def test_what_keeps_it() -> None:
    workspace = distances({(0, 1, 1)}, "auto")
    described = str(workspace.explain_maintenance("dist"))
    assert "stages, a rank and two counters per value that is offered for a key" in described
    assert "the first commit counts all assignments once" in described
    commit(workspace, set(), {(1, 2, 1)})
    assert "the first commit" not in str(workspace.explain_maintenance("dist"))
    file = io.BytesIO()
    write_image(workspace, file)
    again = read_image(file.getvalue())
    for one in (workspace, again):
        commit(one, {(0, 1, 1)}, {(0, 2, 5), (2, 1, 0)})
        check(one, {(1, 2, 1), (0, 2, 5), (2, 1, 0)})
        one.verify()
