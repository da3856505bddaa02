"""Windows that are kept: as they are evaluated anew, whatever changes, and as much read as changes."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from maintenance import Workspace
from support.small_limits import near_marks

ORDERS = (
    "v",
    "v desc",
    "v desc nulls first",
    "x",
    "x desc nulls first",
    "d",
    "(v, x)",
    "(v, s)",
    "(v desc, k)",
    "(v, g, v desc)",
    "s",
    "m",
)
RANGES = ("(_, 0)", "(0, _)", "(-2, 1)", "(_, -1)", "(1, 3)", "(_, 2)", "(-1, _)", "(-3, -1)", "(_, _)")
FRACTIONS = ("(-1.5, 0.25)", "(_, -0.5)", "(-0.1, 0)")
COUNTED = (
    "count({by})",
    "sum(k{by})",
    "sum(x{by})",
    "sum(m{by})",
    "avg(v{by})",
    "min(s{by})",
    "max(x{by})",
    "max(v{by})",
)
PICKED = ("first(s{by})", "last(v{by})", "nth(v, 2{by})", "nth(s, 3{by})")
NUMBERED = (
    "row_number({by})",
    "rank({by})",
    "dense_rank({by})",
    "ntile(3{by})",
    "percent_rank({by})",
    "cume_dist({by})",
    "lag(s, 2{by})",
    "lead(v{by})",
    "top(5{by})",
)


def window(r: random.Random) -> str:
    """A window of some kind."""
    per = r.choice((", per: g", ", per: (g, g)", ""))
    if r.random() < 0.15:
        return r.choice(COUNTED).format(by=", per: g").replace("(, ", "(")
    order = r.choice(ORDERS)
    frame = ""
    function = r.choice((NUMBERED, COUNTED, COUNTED, PICKED))
    if function is not NUMBERED:
        single = order[0] in "vxdm" and order[0] != "("
        unit = r.choice(("rows", "groups", *["range"] * 2 * single, ""))
        frames = FRACTIONS if unit == "range" and order[0] in "xm" and r.random() < 0.5 else RANGES
        frame = f", {unit}: {r.choice(frames)}" if unit else ""
    return r.choice(function).format(by=f", by: {order}{per}{frame}").replace("(, ", "(")


def row(r: random.Random, k: int) -> tuple[Any, ...]:
    def maybe(value: Any) -> Any:
        return None if r.random() < 0.15 else value

    return (
        k,
        r.choice("ab"),
        maybe(r.choice((2**63 - 1, 1 - 2**63) if r.random() < 0.03 else range(-4, 12))),
        maybe(r.choice((0.5, -1.25, 1e16, 3.0, 0.1, 1e-300, float("inf"), float(r.randint(0, 9))))),
        maybe(Decimal(r.randint(-30, 30)).scaleb(-1)),
        maybe(datetime.date(2026, 1, r.randint(1, 28))),
        maybe(r.choice(("x", "yy", "äz", ""))),
    )


NAMES = ["k", "g", "v", "x", "m", "d", "s"]
TYPES = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.decimal128(9, 2), pa.date32(), pa.string())


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(NAMES)
    return pa.table([pa.array(column, type_) for column, type_ in zip(columns, TYPES, strict=True)], NAMES)


@pytest.fixture
def marks() -> Iterator[None]:
    with near_marks():
        yield


@pytest.mark.in_turns
@pytest.mark.usefixtures("marks")
@pytest.mark.parametrize("seed", range(12))
def test_as_evaluated_anew(seed: int) -> None:
    """Ties, NULL in the order, all that is erased, much that comes, and what comes at an end."""
    r = random.Random(seed)
    ws = Workspace()
    rows = {k: row(r, k) for k in range(r.choice((0, 3, 40, 150)))}
    ws.load("t", table(list(rows.values())), nulls="keep")
    windows = []
    for number in range(8):
        windows.append(window(r))
        bare = r.choice(("k, ", "", "g, k, "))
        rule = f"h{number}({bare}w) <- t(k, g, v, x, m, d, s), w = {windows[-1]}."
        ws.install(rule.replace("(, ", "("), strategy=r.choice(("delta", "trace")))
    for _ in range(10):
        gone = [
            k for k in rows if r.random() < r.choice((0.02, 0.02, 0.1, 1) if r.random() < 0.3 else (0.02,))
        ]
        with ws.transaction() as tx:
            tx.erase("t", table([rows.pop(k) for k in gone]))
            came = {k: row(r, k) for k in r.sample(range(400), r.choice((0, 1, 1, 2, 30))) if k not in rows}
            rows.update(came)
            tx.insert("t", table(list(came.values())))
        try:
            ws.verify()
            ws.check_invariants()
        except Exception as error:
            raise AssertionError(windows) from error


NEAR = (
    "lag(k, {}, by: v{}, per: g)",
    "lead(s, 1, by: (v, s))",
    "sum(k, by: (v, k), per: g, rows: (-{}, 2))",
    "count(by: v{1}, rows: (-2, -1))",
    "top({}, by: (v desc, s), per: g)",
)


@pytest.mark.usefixtures("marks")
@pytest.mark.parametrize("seed", range(8))
def test_as_much_is_read_as_values_depend_on(seed: int) -> None:
    """Rows that are alike in the order, few or many that change, partitions that come and go."""
    r = random.Random(seed)
    ws = Workspace()
    n = r.choice((5, 40, 200))

    def drawn(number: int) -> set[tuple[Any, ...]]:
        return {
            (r.randint(0, 2), r.randint(0, 60), r.choice("abcd"), r.randint(0, 3 * n)) for _ in range(number)
        }

    rows = drawn(n)
    ws.load("t", list(rows), columns=["g", "v", "s", "k"])
    for number, near in enumerate(NEAR):
        window = near.format(r.randint(1, 3), r.choice(("", " desc")))
        ws.install(f"h{number}(g, k, w) <- t(g, v, s, k), w = {window}.", strategy="delta")
        ws.install(f"q{number}(w) <- t(g, v, s, k), w = {window}.", strategy="delta")
    for _ in range(6):
        gone, came = (
            set(r.sample(sorted(rows), min(len(rows), r.choice((0, 1, 2, 30))))),
            drawn(r.choice((0, 1, 5))),
        )
        with ws.transaction() as tx:
            tx.erase("t", list(gone))
            tx.insert("t", list(came - (rows - gone)))
        rows = (rows - gone) | came
        ws.verify()


@pytest.mark.usefixtures("marks")
@pytest.mark.parametrize("unit", ["rows", "groups", "range"])
def test_frames_that_end_before_their_rows(unit: str) -> None:
    """Behind the place from which on the maximum is what it was, rows read what was before it."""
    ws = Workspace()
    ws.load("t", [(k, k) for k in range(40)], columns=["k", "v"])
    ws.install(f"h(k, w) <- t(k, v), w = max(v, by: k, {unit}: (_, -5)).", strategy="delta")
    for v in range(11, 36):
        with ws.transaction() as tx:
            tx.erase("t", [(10, 10)])
            tx.insert("t", [(10, v)])
        assert sorted(ws["h"]) == [(k, None if k < 5 else v if 15 <= k < v + 5 else k - 5) for k in range(40)]
        with ws.transaction() as tx:
            tx.erase("t", [(10, v)])
            tx.insert("t", [(10, 10)])
        assert sorted(ws["h"]) == [(k, None if k < 5 else k - 5) for k in range(40)]


N = 8_000
"""Rows of a partition whose times are even, two rows each."""

READ = {  # by window: what is read where a row comes behind all, or amid the others, but for what changes
    "row_number(by: (t, k), per: g)": (600, 600),
    "rank(by: t, per: g)": (600, 600),
    "dense_rank(by: t desc nulls first, per: g)": (600, 600),
    "sum(v, by: t, per: g)": (600, 600),
    "avg(x, by: t, per: g)": (600, 600),
    "max(v, by: t, per: g)": (600, 1200),
    "min(s, by: (t, s), per: g)": (600, 1200),
    "first(s, by: (t, k), per: g)": (600, 1200),
    "count(by: t, per: g, rows: (_, 5))": (1200, 1200),
    "sum(v, by: t, per: g, range: (-50, 10))": (250, 250),
    "sum(x, by: t desc, per: g, groups: (-3, 1))": (60, 60),
    "lag(v, 3, by: t, per: g)": (40, 40),
    "max(v, per: g)": (600, 600),
    "last(v, by: (t, k), per: g, range: (_, _))": (2 * N + 600, 600),
    "top(3, by: (t desc, k), per: g)": (30, 30),
}


@pytest.mark.parametrize("window", READ)
def test_a_commit_reads_what_changes(window: str) -> None:
    """Rows read are counted; other partitions are not read at all."""
    schema = {
        "k": pa.int64(),
        "g": pa.int64(),
        "t": pa.int64(),
        "v": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
    }
    ws = Workspace()
    rows = [(k, k // N, 2 * (k % N // 2), k * 7919 % 1000, k / 3, f"{k * 31 % 97}") for k in range(2 * N)]
    columns = [
        pa.array(column, type_)
        for column, type_ in zip(zip(*rows, strict=True), schema.values(), strict=True)
    ]
    ws.load("t", pa.table(columns, list(schema)))
    ws.install(f"h(k, w) <- t(k, g, t, v, x, s), w = {window}.", strategy="delta")
    descends = "desc" in window
    behind, amid = READ[window]
    for number, (at, most) in enumerate([(-7 if descends else N + 7, behind), (N // 2 + 1, amid)] * 2):
        with ws.transaction() as tx:
            tx.insert("t", [(3 * N + number, 0, at, 5, 0.1, "5")])
        stats = tx.stats.rules["h_window"]
        assert stats.window_rows <= most + 2 * stats.head_changes, (at, stats.window_rows, stats.head_changes)
    with ws.transaction() as tx:  # what is the same behind both
        tx.erase("t", [rows[N // 2], rows[N // 2 + 10]])
        tx.insert("t", [(*rows[N // 2 + 10][:2], rows[N // 2][2], *rows[N // 2 + 10][3:])])
        tx.insert("t", [(*rows[N // 2][:2], rows[N // 2 + 10][2], *rows[N // 2][3:])])
    assert tx.stats.rules["h_window"].window_rows <= 1200
    ws.verify()
    ws.check_invariants()
