"""oracle: sums over two sides that an inequality joins, by range sums, against sums made by hand."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from maintenance.image import read_image, write_image
from maintenance.strategies.auto import view_choice
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Row = tuple[int, int, int]
Rows = Mapping[str, set[Row]]

COLUMNS = {"L": ("g", "x", "v"), "R": ("g", "y", "w")}
ENDS = (-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1)

TESTS: dict[str, Callable[[int, int], bool]] = {
    "x < y": operator.lt,
    "x <= y": operator.le,
    "y < x": operator.gt,
    "x >= y": operator.ge,
    "x != y": operator.ne,
}
"""Of any whole numbers."""

DISTANCES: dict[str, Callable[[int, int], bool]] = {
    "x - y > 2": lambda x, y: x - y > 2,
    "y + 1 >= x": lambda x, y: y + 1 >= x,
    "1 < -x + y": lambda x, y: y - x > 1,
    "abs(x - y) > 1": lambda x, y: abs(x - y) > 1,
    "abs(y - x + 1) <= 2": lambda x, y: abs(y - x + 1) <= 2,
    "3 > abs(x - y)": lambda x, y: abs(x - y) < 3,
    "abs(x - y) >= 2": lambda x, y: abs(x - y) >= 2,
    "2 * x > y": lambda x, y: 2 * x > y,
    "x + 2 * x <= 1 - y * 2 + 4 * y": lambda x, y: 3 * x <= 1 + 2 * y,
    "abs(3 * (x - 1) - 2 * y) > 2": lambda x, y: abs(3 * (x - 1) - 2 * y) > 2,
}
"""Of numbers whose differences are whole numbers too."""

HEADS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "sum(d) <- {}, d = v * w.": ("g", lambda v, w: v * w),
    "sum(d) <- {}, d = v - w.": ("g", lambda v, w: v - w),
    "count() <- {}.": ("g", lambda v, w: 1),
    "sum(w) <- {}.": ("", lambda v, w: w),
}
"""What is summed, by which groups."""


def rule(test: str, head: str) -> str:
    return f"h[{HEADS[head][0]}] = " + head.format(f"L(g, x, v), R(g, y, w), {test}")


def by_hand(rows: Rows, test: Callable[[int, int], bool], head: str) -> set[tuple[int, ...]]:
    group, of = HEADS[head]
    sums: dict[tuple[int, ...], int] = {}
    for g, x, v in rows["L"]:
        for other, y, w in rows["R"]:
            if g == other and test(x, y):
                key: tuple[int, ...] = (g,) if group else ()
                sums[key] = sums.get(key, 0) + of(v, w)
    return {(*key, value) for key, value in sums.items()}


def loaded(rows: Rows) -> Workspace:
    ws = Workspace(single_changes="general")
    for name, columns in COLUMNS.items():
        ws.load(name, sorted(rows[name]) or [(0, 0, 0)], columns=list(columns))
        if not rows[name]:
            with ws.transaction() as tx:
                tx.erase(name, [(0, 0, 0)])
    return ws


def has_range_sums(ws: Workspace) -> bool:
    return "range sums" in str(ws.explain_maintenance("h"))


def toggle(ws: Workspace, rows: Rows, changes: list[tuple[str, Row]]) -> dict[str, set[Row]]:
    """Erase the rows that are there, insert those that are not; the rows afterwards."""
    following = {name: set(there) for name, there in rows.items()}
    with ws.transaction() as tx:
        for name, row in changes:
            (tx.erase if row in rows[name] else tx.insert)(name, [row])
            following[name] ^= {row}
    return following


small = st.integers(-3, 3)
any_test = st.sampled_from([*TESTS, *DISTANCES])


def row_of(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Row]:
    return st.tuples(st.integers(0, 1), keys, small)


@settings(max_examples=40)
@given(data=st.data(), test=any_test, head=st.sampled_from(sorted(HEADS)), ends=st.booleans())
def test_oracle_any_inequality_follows(data: st.DataObject, test: str, head: str, ends: bool) -> None:
    keys = st.sampled_from(ENDS) | small if ends and test in TESTS else small
    rows = {name: data.draw(st.sets(row_of(keys), max_size=12)) for name in COLUMNS}
    ws = loaded(rows)
    ws.install(rule(test, head), strategy="views")
    assert has_range_sums(ws)
    holds = {**TESTS, **DISTANCES}[test]
    assert set(rows_of(ws["h"].table)) == by_hand(rows, holds, head)
    change = st.lists(
        st.tuples(st.sampled_from(sorted(COLUMNS)), row_of(keys)), min_size=1, max_size=5, unique=True
    )
    for changes in data.draw(st.lists(change, min_size=1, max_size=4)):
        rows = toggle(ws, rows, changes)
        assert set(rows_of(ws["h"].table)) == by_hand(rows, holds, head)
        ws.check_invariants()
    ws.verify()


@pytest.mark.parametrize("test", ["x > v * 0 + y", "x + u > u + y", "abs(x - y + 0 * u) > 1"])
def test_a_comparison_whose_other_variables_cancel_out(test: str) -> None:
    """They are read all the same: no two views alone are joined by it."""
    ws = loaded({"L": {(0, 1, 2), (1, 5, 0)}, "R": {(0, 2, 1), (1, 0, 3)}})
    ws.load("M", pa.table({"u": [1, 2, 2**40]}))
    ws.install(f"h[] = count() <- L(_, x, v), R(_, y, _), M(u), {test}.", strategy="views")
    with ws.transaction() as tx:
        tx.insert("L", [(0, 9, 9)])
        tx.erase("M", [(2,)])
    ws.verify()


BOTH = "h[g, k] = sum(d) <- L(g, x, v), R(k, y, w), {test}, d = v * w."
LEFT = "h[g] = sum(d) <- L(g, x, v), R(_, y, w), {test}, d = v - w."
BASE = {name: {(i % 2, (7 * i) % 160 - 80, i % 3 - 1) for i in range(160)} for name in COLUMNS}
"""Rows enough to plan by."""
RIGHT = "h[k, w] = count() <- L(_, x, v), R(k, y, w), {test}."


@settings(max_examples=15)
@given(data=st.data(), test=st.sampled_from(sorted(DISTANCES)), text=st.sampled_from([BOTH, LEFT, RIGHT]))
def test_oracle_each_side_may_have_groups_of_its_own(data: st.DataObject, test: str, text: str) -> None:
    rows = {name: there | data.draw(st.sets(row_of(small), max_size=9)) for name, there in BASE.items()}
    ws = loaded(rows)
    ws.install(text.format(test=test), strategy="views")
    assert has_range_sums(ws)

    def sums() -> set[tuple[int, ...]]:
        pairs = [(a, b) for a in rows["L"] for b in rows["R"] if DISTANCES[test](a[1], b[1])]
        of: Callable[[Row, Row], tuple[tuple[int, ...], int]] = {
            BOTH: lambda a, b: ((a[0], b[0]), a[2] * b[2]),
            LEFT: lambda a, b: ((a[0],), a[2] - b[2]),
            RIGHT: lambda a, b: ((b[0], b[2]), 1),
        }[text]
        found: dict[tuple[int, ...], int] = {}
        for key, value in itertools.starmap(of, pairs):
            found[key] = found.get(key, 0) + value
        return {(*key, value) for key, value in found.items()}

    assert set(rows_of(ws["h"].table)) == sums()
    change = st.lists(
        st.tuples(st.sampled_from(sorted(COLUMNS)), row_of(small)), min_size=1, max_size=5, unique=True
    )
    for changes in data.draw(st.lists(change, min_size=1, max_size=4)):
        rows = toggle(ws, rows, changes)
        assert set(rows_of(ws["h"].table)) == sums()
        ws.check_invariants()
    ws.verify()


def test_a_bound_that_moves_costs_the_logarithm_of_the_rows() -> None:
    """Each side is joined with one row of its own before the two are."""
    text = """
        low[] = min(x) <- L(_, x, _).  high[] = max(y) <- R(_, y, _).
        h[g] = sum(d) <- L(g, x, v), low[] = l, x > l + 40, R(_, y, w), high[] = m, 2 * y < m, d = v * w.
    """
    operations = []
    for n in (200, 3200):
        rows = dense(n)
        ws = loaded(rows)
        ws.install(text, strategy="views")
        assert str(ws.explain_maintenance("h")).count("range sums  of") == 2
        spent = 0
        for number in range(10):
            changes: list[tuple[str, Row]] = [("L", (0, -9 * number, 1)), ("R", (1, 4 * n + 9 * number, 2))]
            with ws.transaction() as tx:
                for name, row in changes:
                    tx.insert(name, [row])
                    rows[name].add(row)
            spent += sum(figures.operations for figures in tx.stats.rules.values())
        operations.append(spent)
        low, high = min(x for _, x, _ in rows["L"]), max(y for _, y, _ in rows["R"])
        right = sum(w for _, y, w in rows["R"] if 2 * y < high)
        left = {g: sum(v for h, x, v in rows["L"] if h == g and x > low + 40) for g in (0, 1)}
        assert set(rows_of(ws["h"].table)) == {(g, v * right) for g, v in left.items()}
        ws.check_invariants()
    assert operations[1] < 2 * operations[0]


def dense(n: int, seed: int = 3) -> dict[str, set[Row]]:
    """Many rows of few groups."""
    random = Random(seed)
    return {
        name: {(i % 2, random.randrange(4 * n), random.randrange(9)) for i in range(n)} for name in COLUMNS
    }


PRODUCT = next(iter(HEADS))


def operations_of_a_change(n: int, strategy: str) -> float:
    """Of an inequality that bounds no search: by one that does, delta counts a range where values are few."""
    rows = dense(n)
    ws = loaded(rows)
    ws.install(rule("2 * x > y", PRODUCT), strategy=strategy)
    random, operations = Random(4), 0
    for _ in range(20):
        with ws.transaction() as tx:
            tx.insert("L", [(random.randrange(2), random.randrange(4 * n), random.randrange(9))])
        operations += sum(figures.operations for figures in tx.stats.rules.values())
    return operations / 20


def test_a_change_costs_the_logarithm_of_the_rows() -> None:
    by_ranges = [operations_of_a_change(n, "views") for n in (200, 3200)]
    by_matches = [operations_of_a_change(n, "delta") for n in (200, 3200)]
    assert by_matches[1] > 8 * by_matches[0]
    assert by_ranges[1] < by_ranges[0] + 40
    assert 10 * by_ranges[1] < by_matches[1]


def test_rules_and_triggers_are_shown() -> None:
    ws = loaded(dense(200))
    ws.install(rule("x - y > 2", PRODUCT), strategy="views")
    shown = str(ws.explain_maintenance("h"))
    assert "h#view1[g, x] = sum(v) <- L(g, x, v)." in shown
    assert "h#view2[g, y] = sum(w) <- R(g, y, w)." in shown
    assert "range sums  of h#view1[g, x] and h#view2[g, y] where x - y > 2" in shown
    assert "batches     one transaction after the other: range sums follow the order of changes" in shown
    assert "h[g] += change(h#view1[g, x]) * sum(h#view2[g, y] where x - y > 2)" in str(ws.triggers("h"))


def test_what_is_rolled_back_leaves_no_trace() -> None:
    rows = dense(60)
    ws = loaded(rows)
    ws.load("big", [(1,)], columns=["z"])
    ws.install(rule("x < y", PRODUCT), strategy="views")
    ws.install("over[] = sum(z) <- h[_] = _, big(z).", strategy="delta")
    before = set(rows_of(ws["h"].table))
    for number in range(3):
        with pytest.raises(errors.RangeError), ws.transaction() as tx:  # of a head behind this one
            tx.insert("L", [(0, -5 - number, 7)])
            tx.erase("R", sorted(rows["R"])[:4])
            tx.insert("big", [(2**62,), (2**62 + 1,)])
        assert has_range_sums(ws)
        assert set(rows_of(ws["h"].table)) == before
        ws.check_invariants()
    rows = toggle(ws, rows, [("L", (0, -5, 7)), ("R", (0, 1, 3)), ("R", (1, 4, 1))])
    assert set(rows_of(ws["h"].table)) == by_hand(rows, operator.lt, PRODUCT)
    ws.verify()


def test_a_sum_beyond_64_bits_is_refused() -> None:
    rows = dense(60)
    ws = loaded(rows)
    ws.install(rule("x < y", PRODUCT), strategy="views")
    before = set(rows_of(ws["h"].table))
    with pytest.raises(errors.RangeError), ws.transaction() as tx:
        tx.insert("L", [(0, -5, 2**62)])
        tx.insert("R", [(0, 2**40, 2**62)])
    assert set(rows_of(ws["h"].table)) == before
    rows = toggle(ws, rows, [("L", (0, -5, 7))])
    assert set(rows_of(ws["h"].table)) == by_hand(rows, operator.lt, PRODUCT)


def test_sums_of_ranges_of_more_than_64_bits_are_listed() -> None:
    rows = dense(60)
    ws = loaded(rows)
    ws.install(rule("x < y", "sum(w) <- {}."), strategy="views")
    assert has_range_sums(ws)
    below_all = {-3: 2**62, -2: 2**62, -1: 1 - 2**62}
    changes: list[tuple[str, Row]] = [("R", (0, y, w)) for y, w in below_all.items()]
    rows = toggle(ws, rows, changes)
    assert "none: a partial sum does not fit 64 bits, and sums of ranges have no more" in str(
        ws.explain_maintenance("h")
    )
    rows = toggle(ws, rows, [("L", (0, -4, 0)), ("R", (0, -2, 2**62)), ("L", (0, -2, 1))])
    assert set(rows_of(ws["h"].table)) == by_hand(rows, operator.lt, "sum(w) <- {}.")
    ws.verify()


@pytest.mark.parametrize(
    "text",
    [
        "h[x] = sum(w) <- L(g, x, v), R(g, y, w), x < y.",
        "h[g] = sum(w) <- L(g, x, v), R(g, y, w), x < y, v < w.",
        "h[g] = sum(w) <- L(g, x, v), R(g, y, w), x + y > 2.",
        "h[g] = sum(w) <- L(g, x, v), R(g, y, w), x * x > y.",
        "h[g] = max(w) <- L(g, x, v), R(g, y, w), x < y.",
        "h[g] = sum(w) <- L(g, x, v), R(g, x, w), x < w.",
    ],
)
def test_other_bodies_go_as_before(text: str) -> None:
    rows = dense(60)
    ws, other = loaded(rows), loaded(rows)
    ws.install(text, strategy="views")
    other.install(text, strategy="recompute")
    assert not has_range_sums(ws)
    for one in (ws, other):
        toggle(one, rows, [("L", (0, 3, 1)), ("R", (0, 9, 5))])
    assert set(rows_of(ws["h"].table)) == set(rows_of(other["h"].table))


def test_floats_are_compared_row_by_row() -> None:
    ws = Workspace()
    ws.load("L", [(1, 0.5), (1, 1.0), (1, 2.5)], columns=["g", "x"])
    ws.load("R", [(1, 0.75), (1, float("inf"))], columns=["g", "y"])
    ws.install("h[g] = count() <- L(g, x), R(g, y), x < y.", strategy="views")
    other = Workspace()
    other.load("L", ws["L"].table)
    other.load("R", ws["R"].table)
    other.install("h[g] = count() <- L(g, x), R(g, y), x < y.", strategy="delta")
    assert not has_range_sums(ws)
    assert rows_of(ws["h"].table) == rows_of(other["h"].table)


def test_a_side_may_be_a_join_and_a_relation_may_be_both_sides() -> None:
    rows = dense(200)
    ws = loaded(rows)
    ws.load("S", [(x, x % 7) for x in range(800)], columns=["x", "s"])
    ws.install(
        """
        joined[g] = sum(d) <- L(g, x, v), S(x, s), R(g, y, w), x < y, d = s * w.
        same[g] = sum(d) <- L(g, x, v), L(g, y, w), x > y, d = v - w.
        """,
        strategy="views",
    )
    assert all("range sums" in str(ws.explain_maintenance(head)) for head in ("joined", "same"))
    for changes in ([("L", (0, 7, 5)), ("R", (1, 9, 2))], [("L", (0, 7, 4)), ("L", (0, 7, 5))]):
        rows = toggle(ws, rows, changes)
        left = [(g, x, x % 7) for g, x, v in rows["L"]]
        pairs = [(g, s * w) for g, x, s in left for h, y, w in rows["R"] if g == h and x < y]
        same = [(g, v - w) for g, x, v in rows["L"] for h, y, w in rows["L"] if g == h and x > y]
        for head, parts in (("joined", pairs), ("same", same)):
            sums: dict[int, int] = {}
            for g, value in parts:
                sums[g] = sums.get(g, 0) + value
            assert set(rows_of(ws[head].table)) == set(sums.items())
    ws.check_invariants()
    ws.verify()


def test_auto_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only operations count; what stepping rules takes is for ``test_view_choice.py``."""
    monkeypatch.setattr(view_choice, "STEP_OPERATIONS", 0)
    rows = dense(1500)
    ws = loaded(rows)
    ws.install(rule("2 * x > y", PRODUCT))
    for number in range(120):
        rows = toggle(ws, rows, [("LR"[number % 2], (number % 2, 3 * number, 1))])
    assert has_range_sums(ws)
    ws.verify()


def test_scan_trees_count_as_memory_of_views() -> None:
    rows = dense(2000)
    ws = Workspace(view_bytes=400_000)
    for name, columns in COLUMNS.items():
        ws.load(name, sorted(rows[name]), columns=list(columns))
    with pytest.raises(errors.ViewBudgetError, match="more than view_bytes=400,000"):
        ws.install(rule("x < y", PRODUCT), strategy="views")
    assert ws.heads == ()


def test_an_image_keeps_them() -> None:
    rows = dense(60)
    ws = loaded(rows)
    ws.install(rule("x < y", PRODUCT), strategy="views")
    written = pa.BufferOutputStream()
    write_image(ws, written)
    again = read_image(written.getvalue())
    rows = toggle(again, rows, [("L", (0, 7, 5)), ("R", (0, 70, 5))])
    assert set(rows_of(again["h"].table)) == by_hand(rows, operator.lt, PRODUCT)
    again.check_invariants()
