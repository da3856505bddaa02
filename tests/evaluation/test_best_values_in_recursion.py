"""oracle: min and max that go round, against Bellman-Ford, spreading labels, and bottlenecks width by width.

Random programs of the textbook's kind are in ``test_fixpoint.py``.
"""

from __future__ import annotations

from decimal import Decimal
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import errors
from lftj.evaluation import growing_relation, recursive_body
from support.rows import rows_of
from support.shortest_paths import SHORTEST, bellman_ford

Edges = list[tuple[int, int, int]]
PAIRS = "dist[x, y] = min(w) <- road(x, y, w)."
LABELS = """
    label[x] = min(x2) <- (road(x, _, _) ; road(_, x, _)), x2 = x.
    label[y] = min(n) <- label[x] = n, (road(x, y, _) ; road(y, x, _)).
"""
WIDEST = """
    wide[y] = max(w) <- start(x), road(x, y, w).
    wide[y] = max(c) <- wide[x] = n, road(x, y, w), road(_, _, c), c <= n, c <= w.
"""

NODES = st.integers(0, 12)
ROADS = st.lists(st.tuples(NODES, NODES, st.integers(0, 5)), min_size=1, max_size=40)


def database(edges: Edges, starts: tuple[int, ...] = (0,)) -> lftj.Database:
    db = lftj.Database()
    db.load("road", list(dict.fromkeys(edges)), columns=["a", "b", "w"])
    db.load("start", [(x,) for x in starts], columns=["x"])
    return db


def bottlenecks(edges: Edges, start: int) -> dict[int, int]:
    """Per width, from the largest on, what is reached by roads that are no narrower."""
    found: dict[int, int] = {}
    for width in sorted({w for _, _, w in edges}, reverse=True):
        reached, before = {b for a, b, w in edges if a == start and w >= width}, set()
        while reached != before:
            before = reached
            reached = reached | {b for a, b, w in edges if a in reached and w >= width}
        for node in reached:
            found.setdefault(node, width)
    return found


@given(ROADS, st.sets(NODES, min_size=1, max_size=3))
def test_shortest_paths(edges: Edges, starts: set[int]) -> None:
    db = database(edges, tuple(starts))
    found = rows_of(db.query(SHORTEST))
    assert dict(found) == bellman_ford(edges, tuple(starts)) and len(dict(found)) == len(found)
    assert db.count(SHORTEST) == len(found)


@given(ROADS)
def test_distances_of_all_pairs_however_they_are_written(edges: Edges) -> None:
    db = database(edges)
    expected = {}
    for a in {a for a, _, _ in edges}:
        first = [(-1, b, w) for x, b, w in edges if x == a]
        expected |= {(a, b): n for b, n in bellman_ford([*first, *edges], (-1,)).items() if b != -1}
    for recursive in (
        "dist[x, z] = min(m) <- dist[x, y] = n, road(y, z, w), m = n + w.",
        "dist[x, z] = min(m) <- road(x, y, w), dist[y, z] = n, m = n + w.",
        "dist[x, z] = min(m) <- dist[x, y] = n, dist[y, z] = k, m = n + k.",
        "dist[x, z] = min(m) <- back[z, x] = m. "
        "back[z, x] = min(m) <- dist[x, y] = n, dist[y, z] = k, m = n + k.",
    ):
        with (
            mock.patch.object(recursive_body, "PIECE_ROWS", 3),
            mock.patch.object(recursive_body, "LEAST_PIECE", 2),
            mock.patch.object(growing_relation, "STATISTICS_ROWS", 4),
        ):
            small = rows_of(db.query(PAIRS + recursive, head="dist"))
        found = rows_of(db.query(PAIRS + recursive, head="dist"))
        assert {(x, y): n for x, y, n in found} == expected and len(found) == len(expected)
        assert sorted(small) == sorted(found)


@given(ROADS)
def test_components_by_least_label(edges: Edges) -> None:
    label = {node: node for a, b, _ in edges for node in (a, b)}
    for _ in label:
        for a, b, _ in edges:
            label[a] = label[b] = min(label[a], label[b])
    assert dict(rows_of(database(edges).query(LABELS))) == label


@given(ROADS)
def test_widest_paths(edges: Edges) -> None:
    assert dict(rows_of(database(edges).query(WIDEST))) == bottlenecks(edges, 0)


@pytest.mark.parametrize("kind", ["text", "decimal", "float", "date"])
def test_values_of_every_kind(kind: str) -> None:
    made = {
        "text": lambda n: f"n{9 - n}",
        "decimal": lambda n: Decimal(n) / 10,
        "float": lambda n: n / 3 - 1,
        "date": lambda n: n,
    }[kind]
    type_ = {"date": pa.date32()}.get(kind)
    db = lftj.Database()
    names = pa.array([made(n) for n in range(9)], type_)
    db.load("edge", {"a": [1, 2, 4, 5, 7], "b": [2, 3, 5, 6, 7]})
    db.load("name", {"x": list(range(9)), "n": names})
    text = "best[x] = {0}(n) <- name(x, n). best[y] = {0}(n) <- best[x] = n, (edge(x, y) ; edge(y, x))."
    groups = [[1, 2, 3], [4, 5, 6], [7], [0], [8]]
    values = names.to_pylist()
    for function, best in (("min", min), ("max", max)):
        expected = {x: best(values[y] for y in group) for group in groups for x in group}
        assert dict(rows_of(db.query(text.format(function)))) == expected


def test_decimals_that_are_computed() -> None:
    db = lftj.Database()
    db.load("road", {"a": [1, 2, 1], "b": [2, 3, 3], "w": [Decimal("0.25"), Decimal("9.5"), Decimal("11.0")]})
    text = "d[y] = min(w) <- road(1, y, w). d[y] = min(m) <- d[x] = n, road(x, y, w), m = n + w, m < 99."
    assert dict(rows_of(db.query(text))) == {2: Decimal("0.25"), 3: Decimal("9.75")}


def test_a_round_follows_the_keys_that_got_better_and_nothing_else() -> None:
    n = 200
    db = database([(i, i + 1, 1) for i in range(n)])
    (recursion,) = db.explain(SHORTEST, analyze=True).recursion
    assert f"{n + 1} rounds with new tuples: {n + 1} tuples, from {n + 1} rows that were found" in recursion
    # Two ways of many steps and one: the value that came late is followed once more.
    db = database([*((i, i + 1, 0) for i in range(n)), (0, n, 5), (n, n + 1, 1)])
    (recursion,) = db.explain(SHORTEST, analyze=True).recursion
    assert f"{n + 4} tuples, from {n + 4} rows" in recursion


def test_what_reads_the_values_reads_the_last_ones() -> None:
    db = database([(0, 1, 5), (0, 2, 1), (2, 1, 1)])
    assert rows_of(db.query(SHORTEST + " far(y) <- dist[y] = n, n > 1.")) == [(1,)]
    assert rows_of(db.query(SHORTEST + " total[] = sum(n) <- dist[_] = n.")) == [(3,)]
    found = db.query(SHORTEST + " way(x, y) <- dist[x] = n, road(x, y, w), dist[y] = m, m = n + w.")
    assert sorted(rows_of(found)) == [(0, 2), (2, 1)]


def test_a_negative_cycle_is_stopped() -> None:
    db = database([(0, 1, 1), (1, 2, -2), (2, 1, 1)])
    with pytest.raises(
        errors.RoundLimitError, match=r"dist still gave new tuples after 30 rounds, at last dist"
    ):
        db.query(SHORTEST, max_rounds=30)
    assert dict(rows_of(database([(0, 1, 3), (1, 2, -2), (2, 1, 2)]).query(SHORTEST))) == {0: 0, 1: 3, 2: 1}


def test_bad_values() -> None:
    db = lftj.Database()
    db.load("start", {"x": [1]})
    db.load("road", {"a": [1, 2], "b": [2, 3], "w": [np.inf, -np.inf]})
    with pytest.raises(errors.NanError, match="relation 'dist', column 'min'"):
        db.query(SHORTEST.replace("n = 0.", "n = 0.0."))
    db.load("road", {"a": [1, 2], "b": [2, 3], "w": [2**63 - 1, 1]})
    with pytest.raises(errors.RangeError, match=r"m = n \+ w"):
        db.query(SHORTEST)


def test_prepared_programs() -> None:
    db = database([(0, 1, 5), (1, 2, 1), (3, 2, 1)])
    shortest = db.prepare(
        "dist[x] = min(n) <- road(x, _, _), x = $start, n = 0."
        " dist[y] = min(m) <- dist[x] = n, road(x, y, w), m = n + w + $toll."
    )
    assert dict(rows_of(shortest(start=0, toll=0))) == {0: 0, 1: 5, 2: 6}
    assert dict(rows_of(shortest(start=3, toll=2))) == {3: 0, 2: 3}
