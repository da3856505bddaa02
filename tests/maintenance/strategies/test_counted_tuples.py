"""Trailing variables of aggregates are counted below branches, not listed: operations and values."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import RangeError
from maintenance import Workspace
from support.rows import rows_of

HUB = 20_000


def operations(ws: Workspace, head: str, **changes: list[tuple[int, int]]) -> int:
    with ws.transaction() as tx:
        for tell, rows in changes.items():
            getattr(tx, tell)("edge", rows)
    stats = tx.stats[head]
    return stats.opens + stats.nexts + stats.seeks


@pytest.mark.parametrize("strategy", ["trace", "delta"])
def test_an_edge_into_a_hub_costs_what_an_edge_into_a_leaf_does(strategy: str) -> None:
    ws = Workspace()
    ws.load("edge", [(0, 10 + i) for i in range(HUB)] + [(1, 2), (2, 3)], columns=["a", "b"])
    ws.install("n[a] = count() <- edge(a, b), edge(b, c). s[a] = sum(b) <- edge(a, b), edge(b, c).", strategy)
    for head in ("n", "s"):
        assert operations(ws, head, insert=[(5, 0), (6, 2)]) < 40
        assert operations(ws, head, insert=[(0, 5_000_000)]) < 40
        assert operations(ws, head, erase=[(5, 0), (0, 5_000_000)], insert=[(0, 2)]) < 60
        assert operations(ws, head, erase=[(6, 2), (0, 2)]) < 60
    assert "tuples of edge(b, c) are counted below" in str(ws.explain_maintenance("n"))
    ws.verify()


RULES = (
    "h[a] = count() <- e(a, b), f(b, c).",
    "h[b] = count() <- e(a, b), f(b, c).",
    "h[a] = count() <- e(a, b), f(b, c), f(b, d).",
    "h[] = count() <- e(a, b), e(b, c).",
    "h[a] = sum(b) <- e(a, b), f(b, c), !e(b, a).",
    "h[a] = sum(b) <- e(a, b), e(a, c), f(c, d), a <= b.",
    "h[a] = max(b) <- e(a, b), f(b, c).",
    "h[a] = avg(b) <- e(a, b), f(b, c), f(d, a).",
    "h[a] = count() <- g(a, b, c), f(b, d).",
    "h[b] = count() <- g(a, b, a), e(b, c).",
)
KEYS = st.integers(0, 5)
PAIRS = st.sets(st.tuples(KEYS, KEYS), max_size=12)
STEPS = st.lists(st.tuples(PAIRS, PAIRS, st.sets(st.tuples(KEYS, KEYS, KEYS), max_size=8)), max_size=5)


@pytest.mark.parametrize(("strategy", "gap"), [("trace", 0), ("trace", 8), ("delta", 0)])
@given(st.sampled_from(RULES), PAIRS, PAIRS, STEPS, st.integers(0, 2**32 - 1))
def test_counts_follow_random_changes(
    strategy: str,
    gap: int,
    rule: str,
    e: set[tuple[int, int]],
    f: set[tuple[int, int]],
    steps: list[tuple[set[tuple[int, int]], set[tuple[int, int]], set[tuple[int, int, int]]]],
    seed: int,
) -> None:
    random = Random(seed)
    ws = Workspace(record_gap=gap)
    for name, rows, width in (("e", e, 2), ("f", f, 2), ("g", set(), 3)):
        columns = [pa.array([row[i] for row in sorted(rows)], pa.int64()) for i in range(width)]
        ws.load(name, pa.table(columns, names=list("xyz"[:width])))
    ws.install(rule, strategy)
    for toggled in steps:
        with ws.transaction() as tx:
            for name, rows in zip("efg", toggled, strict=True):
                there = set(ws[name])
                tx.erase(name, sorted(rows & there))
                tx.insert(name, [row for row in sorted(rows - there) if random.random() < 0.8])
        expected = ws.query(rule.replace("h[", "again[", 1))
        assert Counter(rows_of(ws["h"].table)) == Counter(rows_of(expected))
        ws.check_invariants()


def test_a_count_beyond_int64_is_an_error() -> None:
    ws = Workspace()
    names = ["a", *"bcdefg"]
    for name in names[1:]:
        ws.load(name, [(1, i) for i in range(1_500)], columns=["x", "y"])
    ws.load("a", pa.table({"x": pa.array([], pa.int64())}))
    body = ", ".join(f"{name}(x, {name})" for name in names[1:])
    ws.install(f"n[x] = count() <- a(x), {body}.")
    with pytest.raises(RangeError), ws.transaction() as tx:
        tx.insert("a", [(1,)])
    assert ws["n"].count == ws["a"].count == 0
