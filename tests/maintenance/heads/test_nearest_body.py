"""oracle: ``latest`` and ``next`` as they are kept, by every strategy, against assignments listed by hand."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintenance import Workspace
from maintenance.image import read_image, write_image
from support.turns import drawn_in_turns, share

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Trade = tuple[Any, Any, Any, int]
"""s, t, o, e"""
Quote = tuple[Any, Any, int]
"""s, u, p"""

STRATEGIES = ("trace", "delta", "views", "auto", "recompute")
NOON = datetime.datetime(2026, 3, 2, 12)

TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int64": (pa.int64(), lambda n: n),
    "int8": (pa.int8(), lambda n: n),
    "ends": (pa.int64(), lambda n: n + 2**63 - 8 if n > 3 else n - 2**63 + 1),
    "date": (pa.date32(), lambda n: datetime.date(2026, 3, 2) + datetime.timedelta(n)),
    "timestamp": (pa.timestamp("us"), lambda n: NOON + datetime.timedelta(seconds=n)),
    "zoned": (
        pa.timestamp("s", "Europe/Vienna"),
        lambda n: (NOON + datetime.timedelta(seconds=n)).replace(tzinfo=datetime.UTC),
    ),
    "float": (pa.float64(), lambda n: [-math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, 1e300, math.inf][n]),
    "text": (pa.string(), lambda n: "abcdefgh"[n]),
    "decimal": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
}
"""Of keys, by numbers from 0 to 7."""

TIMES = ("timestamp", "zoned")
SEARCHED = ("int64", "int8", "ends", "date", "timestamp", "zoned", "float")


@dataclass(frozen=True)
class Shape:
    """A body behind its atoms, and what it says of numbers; ``whole``: of keys that have differences."""

    text: str
    holds: Callable[[int, int, int], bool]  # t, o, u
    whole: bool = False
    largest: bool = True
    searched: bool = True


SHAPES = (
    Shape("u <= t", lambda t, o, u: u <= t),
    Shape("t > u", lambda t, o, u: u < t),
    Shape("u >= t", lambda t, o, u: u >= t, largest=False),
    Shape("u > t", lambda t, o, u: u > t, largest=False),
    Shape("u <= t, u >= o", lambda t, o, u: o <= u <= t),
    Shape("u > t, o > u", lambda t, o, u: t < u < o, largest=False),
    Shape("u <= t, u >= t - {2}", lambda t, o, u: t - 2 <= u <= t, whole=True),
    Shape("u >= t, u < t + {3}", lambda t, o, u: t <= u < t + 3, whole=True, largest=False),
    Shape("u + {1} <= t", lambda t, o, u: u + 1 <= t, whole=True),
    Shape("w = t + {1}, u <= w", lambda t, o, u: u <= t + 1, whole=True),
    Shape("d = t - u, d >= {0}, d < {3}", lambda t, o, u: 0 <= t - u < 3, whole=True),
    Shape("u <= t, p > e", lambda t, o, u: u <= t, searched=False),
    Shape("u <= t, u <= o", lambda t, o, u: u <= t and u <= o, searched=False),
    Shape("u != t", lambda t, o, u: u != t, searched=False),
    Shape("u <= t, e > 2, p != 5", lambda t, o, u: u <= t),
)

PERS: dict[str, Callable[[Trade, Quote], Any]] = {
    "": lambda a, b: a,
    ", per: e": lambda a, b: a[3],
    ", per: s, per: t, per: o, per: e": lambda a, b: a,
    ", per: t": lambda a, b: a[1],
    ", per: s": lambda a, b: a[0],
    ", per: p": lambda a, b: b[2],
}


def rule_of(shape: Shape, per: str, kind: str, shared: bool) -> str:
    unit = "s" if kind in TIMES else ""
    text = shape.text
    for number in range(5):
        text = text.replace(f"{{{number}}}", f"{number}{unit}")
    s = "s" if shared or ": s" in per else "_"
    function = "latest" if shape.largest else "next"
    other = "s" if shared else "_"
    return f"at(e, p) <- trade({s}, t, o, e), quote({other}, u, p), {text}, {function}(u{per})."


def by_hand(
    trades: Iterable[Trade], quotes: Sequence[Quote], shape: Shape, per: str, kind: str, shared: bool
) -> set[tuple[int, int]]:
    """Trades and quotes by numbers; None is NULL."""

    def number(n: int) -> int:  # -0.0 and 0.0 are one
        return 2 if kind == "float" and n == 3 else n

    best: dict[Any, int] = {}
    pairs = []
    for a in trades:
        s, t, o, e = a
        for b in quotes:
            z, u, p = b
            if shared and (s is None or s != z):
                continue
            if None in (t, u) or ("o" in shape.text and o is None):
                continue
            if not shape.holds(number(t), 0 if o is None else number(o), number(u)):
                continue
            if ("p > e" in shape.text and not p > e) or ("p != 5" in shape.text and not (e > 2 and p != 5)):
                continue
            group = PERS[per](a, b)
            if per == ", per: t":
                group = number(t)
            pairs.append((group, e, p, number(u)))
            chosen = best.setdefault(group, number(u))
            best[group] = (max if shape.largest else min)(chosen, number(u))
    return {(e, p) for group, e, p, u in pairs if u == best[group]}


def table_of(rows: Iterable[tuple[Any, ...]], kind: str, names: Sequence[str]) -> pa.Table:
    arrow, value = TYPES[kind]

    def shown(name: str, one: Any) -> Any:
        return value(one) if name in "tou" and one is not None else one

    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    types = {name: arrow if name in "tou" else pa.string() if name == "s" else pa.int64() for name in names}
    return pa.table(
        {
            name: pa.array([shown(name, one) for one in column], types[name])
            for name, column in zip(names, columns, strict=True)
        }
    )


TRADE, QUOTE = ("s", "t", "o", "e"), ("s", "u", "p")
symbols = st.sampled_from(["a", "b", None])
keys = st.one_of(st.integers(0, 7), st.integers(2, 4), st.none())


def trades(least: int) -> st.SearchStrategy[list[Trade]]:
    return st.lists(st.tuples(symbols, keys, keys), max_size=6).map(
        lambda found: [(*one, least + number) for number, one in enumerate(found)]
    )


def quotes(least: int) -> st.SearchStrategy[list[Quote]]:
    return st.lists(st.tuples(symbols, keys), max_size=6).map(
        lambda found: [(*one, least + number) for number, one in enumerate(found)]
    )


@drawn_in_turns
@settings(max_examples=share(150), deadline=None)
@given(data=st.data(), shape=st.sampled_from(SHAPES), per=st.sampled_from(sorted(PERS)), shared=st.booleans())
def test_oracle_what_is_nearest_follows(data: st.DataObject, shape: Shape, per: str, shared: bool) -> None:
    whole = ("int64", "date", "timestamp", "zoned")
    kind = data.draw(st.sampled_from(whole if shape.whole else sorted(TYPES)))
    strategy = data.draw(st.sampled_from(STRATEGIES))
    rule = rule_of(shape, per, kind, shared)
    some, others = data.draw(trades(0)), data.draw(quotes(0))
    ws = Workspace()
    ws.load("trade", table_of([("a", 0, 0, -1), *some], kind, TRADE), nulls="keep")
    ws.load("quote", table_of([("a", 0, -1), *others], kind, QUOTE), nulls="keep")
    with ws.transaction() as tx:
        tx.erase("trade", table_of([("a", 0, 0, -1)], kind, TRADE))
        tx.erase("quote", table_of([("a", 0, -1)], kind, QUOTE))
    ws.install(rule, strategy=strategy)
    assert set(ws["at"]) == by_hand(some, others, shape, per, kind, shared)
    for number in range(1, data.draw(st.integers(1, 4)) + 1):
        came, more = data.draw(trades(10 * number)), data.draw(quotes(10 * number))
        gone = data.draw(st.sets(st.sampled_from(some))) if some else set()
        fewer = data.draw(st.sets(st.sampled_from(others))) if others else set()
        with ws.transaction() as tx:
            tx.erase("trade", table_of(gone, kind, TRADE))
            tx.erase("quote", table_of(fewer, kind, QUOTE))
            tx.insert("trade", table_of(came, kind, TRADE))
            tx.insert("quote", table_of(more, kind, QUOTE))
        some = [one for one in some if one not in gone] + came
        others = [one for one in others if one not in fewer] + more
        assert set(ws["at"]) == by_hand(some, others, shape, per, kind, shared)
        ws.check_invariants()
    ws.verify()


def is_searched(ws: Workspace, head: str) -> bool:
    return "one search for each" in str(ws.explain_maintenance(head))


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.text)
def test_what_is_searched_and_what_is_listed(shape: Shape, kind: str) -> None:
    """Of every type and form whether there is one search for each asker; where there is none, why."""
    if shape.whole and kind not in ("int64", "date", "timestamp", "zoned"):
        pytest.skip("it has no differences")
    ws = Workspace()
    ws.load("trade", table_of([("a", 0, 0, 0)], kind, TRADE))
    ws.load("quote", table_of([("a", 0, 0)], kind, QUOTE))
    ws.install(rule_of(shape, "", kind, True), strategy="delta")
    head = "at_latest" if shape.largest else "at_next"
    assert is_searched(ws, head) == (shape.searched and kind in SEARCHED)
    if not is_searched(ws, head):
        assert "nearest     no search for it: " in str(ws.explain_maintenance(head))


def history(n: int) -> tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]:
    """A trade and a quote in turn, of ten symbols."""
    names = [f"s{number}" for number in range(10)]
    return (
        [(names[number * 7 % 10], 2 * number, number) for number in range(n)],
        [(names[number * 3 % 10], 2 * number + 1, number) for number in range(n)],
    )


def followed(n: int, rule: str, strategy: str) -> tuple[Workspace, int]:
    """A workspace with a history, and the operations of a transaction of twenty events behind it."""
    asks, answers = history(n + 10)
    ws = Workspace()
    ws.load("trade", asks[:n], columns=["s", "t", "e"])
    ws.load("quote", answers[:n], columns=["s", "u", "p"])
    ws.install(rule, strategy=strategy)
    with ws.transaction() as tx:
        tx.insert("trade", asks[n:])
        tx.insert("quote", answers[n:])
    return ws, sum(figures.operations for figures in tx.stats.rules.values())


ASOF = "at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u)."
BY_HAND = (
    "at[e, s] = max(u) <- trade(s, t, e), quote(s, u, _), u <= t. out(e, p) <- at[e, s] = u, quote(s, u, p)."
)


@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "auto"])
@pytest.mark.parametrize("rule", [ASOF, BY_HAND, ASOF.replace("(u)", "(u, per: e)")])
def test_operations_of_a_commit_do_not_grow_with_history(rule: str, strategy: str) -> None:
    _, few = followed(1_000, rule, strategy)
    _, more = followed(4_000, rule, strategy)
    ws, most = followed(16_000, rule, strategy)
    assert more <= 1.2 * few and most <= 1.3 * few
    ws.verify()


@pytest.mark.parametrize("strategy", ["trace", "delta", "auto"])
def test_a_late_quote_takes_what_the_trades_take_that_change(strategy: str) -> None:
    ws, _ = followed(16_000, ASOF, strategy)
    taken = {}
    for n_trades in (1, 8, 64):
        begin, name = 1_000 * n_trades, f"x{n_trades}"
        with ws.transaction() as tx:  # trades of a symbol without quotes between them
            tx.insert(
                "trade", [(name, begin + number, 100_000 + begin + number) for number in range(n_trades)]
            )
        with ws.transaction() as tx:
            tx.insert("quote", [(name, begin - 1, begin)])
        assert len(tx.changes["at"]) == n_trades
        taken[n_trades] = sum(figures.operations for figures in tx.stats.rules.values())
        with ws.transaction() as tx:
            tx.insert("quote", [(name, begin + n_trades, begin + 1)])  # the next ones begin behind it
        assert sum(figures.operations for figures in tx.stats.rules.values()) < 40
    assert taken[64] < 64 * taken[1]
    assert taken[8] - taken[1] < 8 * taken[1]
    ws.verify()


def test_a_limit_bounds_what_a_late_quote_reads() -> None:
    """A thousand trades have no quote after that one; it is too old for all but ten."""
    ws = Workspace()
    ws.load("trade", [("a", number, number) for number in range(1_000)], columns=["s", "t", "e"])
    ws.load("quote", [("b", 0, 0)], columns=["s", "u", "p"])
    ws.install("at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, u > t - 10, latest(u).", strategy="delta")
    with ws.transaction() as tx:
        tx.insert("quote", [("a", 5, 1)])
    assert len(tx.changes["at"]) == 10
    assert tx.stats.rules["at_latest"].nexts < 30


@pytest.mark.parametrize("strategy", ["trace", "delta", "auto"])
def test_a_transaction_that_fails_leaves_what_was_there(strategy: str) -> None:
    ws = Workspace()
    ws.load("trade", [("a", 2, 1)], columns=["s", "t", "e"])
    ws.load("quote", [("a", 1, 7)], columns=["s", "u", "p"])
    ws.install(f'{ASOF} bad[e] = x <- at(e, p), x = if(p < 9, p, error("too much")).', strategy=strategy)
    with pytest.raises(Exception, match="too much"), ws.transaction() as tx:
        tx.insert("quote", [("a", 2, 9)])
        tx.insert("trade", [("a", 3, 2)])
    with ws.transaction() as tx:
        tx.insert("trade", [("a", 3, 3)])
    assert set(ws["at"]) == {(1, 7), (3, 7)}
    ws.verify()
    ws.check_invariants()


def test_an_image_has_it_all(tmp_path: Any) -> None:
    ws, _ = followed(100, ASOF, "auto")
    write_image(ws, tmp_path / "image")
    again = read_image(tmp_path / "image")
    with again.transaction() as tx:
        tx.insert("trade", [("s1", 10_000, 10_000)])
    assert len(tx.changes["at"]) == 1
    again.verify()


def test_several_choices_in_a_rule_each_by_its_own_atom() -> None:
    ws = Workspace()
    ws.load("trade", [("a", 5, 1), ("b", 6, 2), ("b", 1, 3)], columns=["s", "t", "e"])
    ws.load("quote", [("a", 4, 10), ("a", 6, 11), ("b", 2, 12)], columns=["s", "u", "p"])
    ws.load("rate", [(3, 20), (6, 21)], columns=["v", "r"])
    ws.install(
        "at(e, p, r) <- trade(s, t, e), quote(s, u, p), rate(v, r), u <= t, v <= t, latest(u), latest(v)."
    )
    assert set(ws["at"]) == {(1, 10, 20), (2, 12, 21)}
    with ws.transaction() as tx:
        tx.insert("rate", [(0, 22), (5, 23)])
        tx.insert("quote", [("b", 1, 13)])
    assert set(ws["at"]) == {(1, 10, 23), (2, 12, 21), (3, 13, 22)}
    ws.verify()


def test_sums_over_what_was_chosen_count_every_assignment() -> None:
    """Equal trades of a bag are two, and so are two quotes at one time."""
    ws = Workspace()
    ws.load("trade", [("a", 5, 2), ("a", 5, 2), ("a", 9, 1)], columns=["s", "t", "q"], bag=True)
    ws.load("quote", [("a", 4, 10), ("a", 4, 11), ("a", 9, 100)], columns=["s", "u", "p"])
    ws.install("worth[s] = sum(x) <- trade(s, t, q), quote(s, u, p), u <= t, latest(u), x = q * p.")
    assert set(ws["worth"]) == {("a", 2 * 2 * (10 + 11) + 100)}
    with ws.transaction() as tx:
        tx.erase("trade", [("a", 5, 2)])
        tx.insert("quote", [("a", 5, 3)])
    assert set(ws["worth"]) == {("a", 2 * 3 + 100)}
    ws.verify()


def test_sides_of_several_atoms_filters_and_negated_atoms() -> None:
    ws = Workspace()
    ws.load("trade", [("a", 5, 1), ("a", 6, 2), ("b", 7, 3)], columns=["s", "t", "e"])
    ws.load("account", [(1, "x"), (2, "y"), (3, "x")], columns=["e", "who"])
    ws.load("quote", [("a", 1, 10), ("a", 4, 11), ("b", 7, 12), ("b", 6, 13)], columns=["s", "u", "p"])
    ws.load("venue", [(10,), (12,), (13,)], columns=["p"])
    ws.load("halted", [("a", 9), ("b", 7)], columns=["s", "u"])
    ws.install(
        'best[s, t] = max(u) <- trade(s, t, e), account(e, "x"), '
        "quote(s, u, p), venue(p), !halted(s, u), u <= t.",
        strategy="delta",
    )
    assert is_searched(ws, "best")
    assert set(ws["best"]) == {("a", 5, 1), ("b", 7, 6)}
    with ws.transaction() as tx:
        tx.insert("venue", [(11,)])
        tx.erase("halted", [("b", 7)])
        tx.insert("account", [(2, "x")])
    assert set(ws["best"]) == {("a", 5, 4), ("a", 6, 4), ("b", 7, 7)}
    ws.verify()


@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "auto", "recompute"])
def test_values_that_are_groups_of_their_own_are_all_there(strategy: str) -> None:
    ws = Workspace()
    ws.load("a", [(2,)], columns=["x"])
    ws.load("b", [(5,), (3,)], columns=["y"])
    ws.install(
        "h[y, x] = min(y) <- a(x), b(y), y >= x. g(y) <- a(x), b(y), y >= x, next(y, per: y).", strategy
    )
    assert sorted(ws["h"]) == [(3, 2, 3), (5, 2, 5)] and sorted(ws["g"]) == [(3,), (5,)]
    with ws.transaction() as tx:
        tx.insert("a", [(4,)])
    assert sorted(ws["h"]) == [(3, 2, 3), (5, 2, 5), (5, 4, 5)]
    assert len(ws.query("q[y, x] = min(y) <- a(x), b(y), y >= x.")) == 3
