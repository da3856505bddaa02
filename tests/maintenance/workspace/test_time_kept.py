"""Windows of equal length, intervals and durations in rules that are kept, against brute force in Python."""

from __future__ import annotations

import datetime
import itertools
import random
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest

import lftj
from maintenance import Workspace

PROGRAM = """
volume[s, w] = sum(q) <- trade(s, t, q, _), w = tumble(t, 10s, 1s).
seen[w] = count() <- trade(_, t, _, _), w = tumble(t, 1m).
busy(s, w) <- volume[s, w] = v, v > 5.
near(e, f) <- trade(s, t, _, e), trade(s, u, _, f), u >= t, u <= t + 5s, e != f.
after[e] = count() <- trade(s, t, _, e), quote(s, u), u > t, u - t <= 7s.
paid[] = sum(q) <- trade(s, t, q, _), quote(s, u), u <= t - 2s.
quiet(e) <- trade(s, t, _, e), w = tumble(t, 10s), !active(s, w).
active(s, w) <- quote(s, u), w = tumble(u, 10s).
longest[s] = max(d) <- trade(s, t, _, _), trade(s, u, _, _), d = u - t.
total[s] = sum(d) <- quote(s, u), d = u - 2026-01-01T00:00:00.
hopping[w] = count() <- trade(_, t, _, _), w in hop(t, 20s, 5s).
paying[s, w] = sum(q) <- trade(s, t, q, _), w in hop(t, 20s, 10s, 3s).
inside(s, w) <- quote(s, u), w in hop(u, 20s, 10s).
met(e, f) <- trade(s, t, _, e), trade(s, u, _, f), w in hop(t, 20s, 10s), w in hop(u, 20s, 10s), e < f.
apart(e) <- trade(s, t, _, e), w in hop(t, 20s, 10s), !inside(s, w).
again[w] = n <- hopping[w] = n, hopping[v] = m, v = w + 5s, n <= m.
day(e, d) <- trade(_, t, _, e), d = cast(t, "date") + 36h, t - d > -12h.
number(e, n) <- trade(_, t, _, e), n = epoch_ms(t) - cast(2026-01-01T00:00:00, "int64") / 1000.
"""

BEGIN = datetime.datetime(2026, 1, 1)
SECOND = datetime.timedelta(seconds=1)
Trades = dict[int, tuple[str, datetime.datetime | None, int]]
Quotes = set[tuple[str, datetime.datetime]]


def begin(moment: datetime.datetime, length: int, offset: int = 0) -> datetime.datetime:
    seconds = (moment - BEGIN) // SECOND
    return BEGIN + (seconds - (seconds - offset) % length) * SECOND


def hops(moment: datetime.datetime, length: int, step: int, offset: int = 0) -> list[datetime.datetime]:
    first = begin(moment, step, offset)
    every = (first - n * step * SECOND for n in range(-(-length // step)))
    return [one for one in every if moment - one < length * SECOND]


def expected(rows: Trades, quotes: Quotes) -> dict[str, set[Any]]:
    trades = [(e, s, t, q) for e, (s, t, q) in rows.items() if t is not None]
    sums: dict[str, dict[Any, Any]] = {name: defaultdict(int) for name in ("volume", "seen", "after", "paid")}
    longest: dict[str, datetime.timedelta] = {}
    total: dict[str, datetime.timedelta] = defaultdict(datetime.timedelta)
    near = set()
    for _, s, t, q in trades:
        sums["volume"][s, begin(t, 10, 1)] += q
        sums["seen"][begin(t, 60)] += 1
    for (e, s, t, _), (f, other, u, _) in itertools.product(trades, trades):
        if s == other:
            longest[s] = max(longest.get(s, u - t), u - t)
            if e != f and t <= u <= t + 5 * SECOND:
                near.add((e, f))
    for (e, s, t, q), (other, u) in itertools.product(trades, quotes):
        if s == other and t < u and u - t <= 7 * SECOND:
            sums["after"][e] += 1
        if s == other and u <= t - 2 * SECOND:
            sums["paid"][()] += q
    for s, u in quotes:
        total[s] += u - BEGIN
    active = {(s, begin(u, 10)) for s, u in quotes}
    inside = {(s, w) for s, u in quotes for w in hops(u, 20, 10)}
    hopping = Counter(w for _, _, t, _ in trades for w in hops(t, 20, 5))
    paying: dict[Any, int] = defaultdict(int)
    for _, s, t, q in trades:
        for w in hops(t, 20, 10, 3):
            paying[s, w] += q
    midnights = {e: datetime.datetime(t.year, t.month, t.day) + 36 * 3600 * SECOND for e, _, t, _ in trades}
    return {
        "volume": {(*key, value) for key, value in sums["volume"].items()},
        "seen": set(sums["seen"].items()),
        "busy": {key for key, value in sums["volume"].items() if value > 5},
        "near": near,
        "after": set(sums["after"].items()),
        "paid": {(value,) for value in sums["paid"].values()},
        "quiet": {(e,) for e, s, t, _ in trades if (s, begin(t, 10)) not in active},
        "active": active,
        "hopping": set(hopping.items()),
        "paying": {(*key, value) for key, value in paying.items()},
        "inside": inside,
        "met": {
            (e, f)
            for (e, s, t, _), (f, other, u, _) in itertools.product(trades, trades)
            if s == other and e < f and set(hops(t, 20, 10)) & set(hops(u, 20, 10))
        },
        "apart": {(e,) for e, s, t, _ in trades if any((s, w) not in inside for w in hops(t, 20, 10))},
        "again": {(w, n) for w, n in hopping.items() if n <= hopping.get(w + 5 * SECOND, -1)},
        "longest": set(longest.items()),
        "total": set(total.items()),
        "day": {(e, midnights[e]) for e, _, t, _ in trades if t - midnights[e] > -12 * 3600 * SECOND},
        "number": {(e, (t - BEGIN) / SECOND * 1000.0) for e, _, t, _ in trades},
    }


def trade_table(rows: Trades) -> pa.Table:
    columns: list[list[Any]] = [[], [], [], []]
    for e, (s, t, q) in rows.items():
        for column, value in zip(columns, (s, t, q, e), strict=True):
            column.append(value)
    types = {"s": pa.string(), "t": pa.timestamp("ms"), "q": pa.int64(), "e": pa.int64()}
    return pa.table({name: pa.array(c, of) for c, (name, of) in zip(columns, types.items(), strict=True)})


def quote_table(rows: Quotes) -> pa.Table:
    sides = [[row[place] for row in rows] for place in (0, 1)]
    return pa.table({"s": pa.array(sides[0], pa.string()), "u": pa.array(sides[1], pa.timestamp("ms"))})


def drawn(choice: random.Random) -> datetime.datetime:
    hours = choice.choice((0, 0, 0, 23, 24))
    return BEGIN + hours * 3600 * SECOND + choice.randint(-25, 40) * SECOND


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "recompute", "auto"])
@pytest.mark.parametrize("wide", [False, True])
def test_rules_with_times_are_kept(strategy: str, wide: bool) -> None:
    choice = random.Random(f"{strategy} {wide}")
    numbers = itertools.count()
    trades: Trades = {}
    quotes: Quotes = {(choice.choice("ab"), drawn(choice)) for _ in range(8)}

    def new_trades(n: int) -> Trades:
        return {
            next(numbers): (
                choice.choice("ab"),
                None if choice.random() < 0.1 else drawn(choice),
                choice.randint(-3, 9),
            )
            for _ in range(n)
        }

    trades |= new_trades(15)
    workspace = Workspace()
    table = trade_table(trades)
    filled = {f"c{n}": pa.array(["x"] * len(table)) for n in range(4)} if wide else {}
    workspace.load("trade", pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **filled}),
                   nulls="keep")  # fmt: skip
    workspace.load("quote", quote_table(quotes))
    program = PROGRAM
    if wide:
        program = PROGRAM.replace("trade(s, t, q, _)", "trade(s: s, t: t, q: q, e: _)")
        for written in ("(_, t, _, _)", "(s, t, _, e)", "(s, u, _, f)", "(s, t, q, _)", "(_, t, _, e)",
                        "(s, t, _, _)", "(s, u, _, _)"):  # fmt: skip
            terms = written.strip("()").split(", ")
            named = ", ".join(f"{name}: {term}" for name, term in zip("stqe", terms, strict=True))
            program = program.replace(f"trade{written}", f"trade({named})")
    workspace.install(program, strategy)

    def check() -> None:
        wanted = expected(trades, quotes)
        assert {name: set(workspace[name]) for name in wanted} == wanted

    check()
    for _ in range(8):
        gone = dict(choice.sample(sorted(trades.items()), min(3, len(trades))))
        new = new_trades(choice.choice((1, 4)))
        lost, found = {choice.choice(sorted(quotes))}, {(choice.choice("abc"), drawn(choice))}
        with workspace.transaction() as transaction:
            for change, rows in ((transaction.erase, gone), (transaction.insert, new)):
                changed = trade_table(rows)
                more = [pa.array(["x"] * len(changed)) for _ in filled]
                columns = [*changed.columns, *more]
                change("trade", pa.table(columns, names=[*changed.column_names, *filled]))
            transaction.erase("quote", quote_table(lost))
            transaction.insert("quote", quote_table(found))
        trades = {e: row for e, row in trades.items() if e not in gone} | new
        quotes = (quotes - lost) | found
        check()
    workspace.verify()


def test_a_failed_expression_rolls_the_transaction_back() -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"t": pa.array([0], pa.timestamp("us"))}))
    workspace.install("later(u) <- r(t), u = t + 1h. window(w) <- r(t), w = tumble(t, 1d).")
    least = pa.table({"t": pa.array([-(2**63) + 1], pa.timestamp("us"))})
    most = pa.table({"t": pa.array([2**63 - 1], pa.timestamp("us"))})
    for rows, call in ((least, r"tumble\(t, 1d\)"), (most, r"t \+ 1h")):
        refused = pytest.raises(lftj.errors.RangeError, match=f"{call} does not fit type timestamp")
        with refused, workspace.transaction() as transaction:
            transaction.insert("r", rows)
        assert set(workspace["r"]) == {(datetime.datetime(1970, 1, 1),)}
    workspace.verify()


def test_views_over_windows_fail_where_the_rule_does_and_nowhere_else() -> None:
    """A view computes for rows that join with nothing, too: where a window does not fit, there is none."""
    workspace = Workspace()
    second = [BEGIN + n * SECOND for n in range(40)]
    trades = pa.table(
        {"s": [n % 2 for n in range(40)], "t": pa.array(second, pa.timestamp("ns")), "q": [1] * 40}
    )
    workspace.load("trade", trades)
    workspace.load("begun", pa.table({"s": [0], "w": pa.array([BEGIN], pa.timestamp("ns"))}))
    workspace.load("seen", {"s": [0, 0, 1], "n": [1, 2, 3]})
    rule = "paid[] = sum(v) <- trade(s, t, q), begun(s, w), seen(s, n), w = tumble(t, 10s), v = q * n."
    workspace.install(rule, "views")
    assert "view" in str(workspace.explain_maintenance("paid"))
    assert set(workspace["paid"]) == {(5 * 3,)}
    least = pa.array([-(2**63) + 1], pa.timestamp("ns"))
    with workspace.transaction() as transaction:
        transaction.insert("trade", pa.table({"s": [7], "t": least, "q": [1]}))
    assert set(workspace["paid"]) == {(5 * 3,)}
    refused = pytest.raises(lftj.errors.RangeError, match=r"tumble\(t, 10s\) does not fit")
    with refused, workspace.transaction() as transaction:
        transaction.insert("trade", pa.table({"s": [0], "t": least, "q": [1]}))
    with workspace.transaction() as transaction:
        transaction.erase("trade", pa.table({"s": [0], "t": trades["t"][:1], "q": [1]}))
    assert set(workspace["paid"]) == {(4 * 3,)}
    workspace.verify()
