"""oracle: ASOF joins against rows chosen by hand, and against DuckDB where the nearest row is one."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj import Database
from lftj.errors import UnsupportedSqlError
from maintenance import Workspace
from support import peer
from support.rows import rows_of

Row = tuple[Any, ...]
NOON = datetime.datetime(2026, 3, 2, 12)
HOLDS: dict[str, Callable[[int, int], bool]] = {
    ">=": lambda t, u: t >= u,
    ">": lambda t, u: t > u,
    "<=": lambda t, u: t <= u,
    "<": lambda t, u: t < u,
}
TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "bigint": (pa.int64(), lambda n: n),
    "timestamp": (pa.timestamp("us"), lambda n: NOON + datetime.timedelta(seconds=n)),
    "date": (pa.date32(), lambda n: datetime.date(2026, 3, 2) + datetime.timedelta(n)),
    "double": (pa.float64(), lambda n: n / 4),
}


def sql_of(kind: str, sign: str, shared: bool) -> str:
    keys = "trade.s = quote.s and " if shared else ""
    return (
        f"select trade.e, quote.u, quote.p from trade asof {kind} join quote on {keys}trade.t {sign} quote.u"
    )


def by_hand(trades: Sequence[Row], quotes: Sequence[Row], kind: str, sign: str, shared: bool) -> Counter[Row]:
    """Of several nearest rows the one with the least p, NULLs last."""
    found: Counter[Row] = Counter()
    for s, t, e in trades:
        fits = [
            (u, p)
            for z, u, p in quotes
            if None not in (t, u) and HOLDS[sign](t, u) and (not shared or (s is not None and s == z))
        ]
        if fits:
            nearest = (max if ">" in sign else min)(u for u, _ in fits)
            least = min((p is None, p or 0) for u, p in fits if u == nearest)
            found[e, nearest, None if least[0] else least[1]] += 1
        elif kind == "left":
            found[e, None, None] += 1
    return found


def table_of(rows: Sequence[Row], names: Sequence[str], kind: str) -> pa.Table:
    arrow, value = TYPES[kind]
    types = {"s": pa.string(), "t": arrow, "u": arrow}
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table(
        {
            name: pa.array(
                [value(one) if name in "tu" and one is not None else one for one in column],
                types.get(name, pa.int64()),
            )
            for name, column in zip(names, columns, strict=True)
        }
    )


def values(found: Counter[Row], kind: str) -> Counter[Row]:
    of = TYPES[kind][1]
    return Counter({(e, None if u is None else of(u), p): often for (e, u, p), often in found.items()})


symbols = st.sampled_from(["a", "b", None])
times = st.one_of(st.integers(0, 6), st.none())
trades = st.lists(st.tuples(symbols, times, st.integers(0, 2)), max_size=7)
quotes = st.lists(st.tuples(symbols, times, st.one_of(st.integers(0, 3), st.none())), max_size=7)
TRADE, QUOTE = ("s", "t", "e"), ("s", "u", "p")


@pytest.mark.in_turns
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_oracle_each_row_with_its_nearest(data: st.DataObject) -> None:
    """Of bags with equal rows and NULLs, once and through random transactions."""
    kind, sign = data.draw(st.sampled_from(["", "left"])), data.draw(st.sampled_from(sorted(HOLDS)))
    type_, shared = data.draw(st.sampled_from(sorted(TYPES))), data.draw(st.booleans())
    some, others = data.draw(trades), data.draw(quotes)
    ws = Workspace()
    for name, rows, names in (("trade", some, TRADE), ("quote", others, QUOTE)):
        ws.load(name, table_of(rows, names, type_), nulls="keep", bag=True)
    sql = sql_of(kind, sign, shared)
    expected = values(by_hand(some, others, kind, sign, shared), type_)
    assert Counter(rows_of(ws.sql(sql))) == expected
    ws.sql(f"create view v as {sql}")
    assert Counter(rows_of(ws.sql("select * from v"))) == expected
    for _ in range(data.draw(st.integers(1, 3))):
        came, more = data.draw(trades), data.draw(quotes)
        gone = [one for one in some if data.draw(st.booleans())]
        fewer = [one for one in others if data.draw(st.booleans())]
        with ws.transaction() as tx:
            tx.erase("trade", table_of(gone, TRADE, type_))
            tx.erase("quote", table_of(fewer, QUOTE, type_))
            tx.insert("trade", table_of(came, TRADE, type_))
            tx.insert("quote", table_of(more, QUOTE, type_))
        some = [*(Counter(some) - Counter(gone)).elements(), *came]
        others = [*(Counter(others) - Counter(fewer)).elements(), *more]
        found = Counter(rows_of(ws.sql("select * from v")))
        assert found == values(by_hand(some, others, kind, sign, shared), type_)
    ws.verify()


@pytest.mark.in_turns
@pytest.mark.parametrize("sign", sorted(HOLDS))
@pytest.mark.parametrize("kind", ["", "left"])
@pytest.mark.parametrize("type_", sorted(TYPES))
def test_oracle_as_duckdb_has_it(kind: str, sign: str, type_: str) -> None:
    asks = [(s, t, 10 * number + t) for number, s in enumerate(["a", "b", None]) for t in range(0, 9, 2)]
    asks += [("a", None, 50), ("c", 3, 51), ("a", 4, 52)]
    answers = [(s, u, 10 * number + u) for number, s in enumerate(["a", "b"]) for u in range(1, 8, 3)]
    answers += [("a", None, 60), (None, 4, 61)]
    duck, db = peer.connection(), Database()
    for name, rows, names in (("trade", asks, TRADE), ("quote", answers, QUOTE)):
        table = table_of(rows, names, type_)
        db.load(name, table, nulls="keep", bag=True)
        duck.register(name, table)
    for sql in (
        sql_of(kind, sign, True),
        f"select e, p from trade asof {kind} join (select s, u as t, p from quote) q using (s, t)",
        f"select e, p from trade asof {kind} join quote q"
        f" on q.s = trade.s and q.u {sign} trade.t and q.p > 3",
        f"select s, sum(p) from (select trade.s, p from trade asof {kind} join quote q"
        f" on q.s = trade.s and q.u {sign} trade.t) group by s",
    ):
        assert Counter(rows_of(db.sql(sql))) == Counter(duck.execute(sql).fetchall()), sql


def test_operations_of_a_commit_do_not_grow_with_history() -> None:
    taken = []
    for n in (1_000, 4_000, 16_000):
        ws = Workspace()
        ws.load("trade", [(f"s{k * 7 % 10}", 2 * k, k) for k in range(n)], columns=list(TRADE))
        ws.load("quote", [(f"s{k * 3 % 10}", 2 * k + 1, k) for k in range(n)], columns=list(QUOTE))
        ws.sql(f"create view v as {sql_of('left', '>=', True)}")
        assert "one search for each" in str(ws.explain_maintenance("v"))
        with ws.transaction() as tx:
            tx.insert("trade", [(f"s{k % 10}", 2 * n + k, n + k) for k in range(20)])
            tx.insert("quote", [(f"s{k % 10}", 2 * n + k, n + k) for k in range(20)])
        taken.append(sum(figures.operations for figures in tx.stats.rules.values()))
    assert taken[2] <= 1.3 * taken[0]


def test_a_scalar_subquery_of_the_nearest_is_one_search_too() -> None:
    ws = Workspace()
    ws.load("trade", [("a", 5, 1), ("b", 1, 2)], columns=list(TRADE))
    ws.load("quote", [("a", 4, 10), ("a", 6, 11)], columns=list(QUOTE))
    ws.sql(
        "create view v as select e,"
        " (select max(u) from quote where quote.s = trade.s and quote.u <= trade.t) m from trade"
    )
    assert set(rows_of(ws.sql("select * from v"))) == {(1, 4), (2, None)}
    assert "one search for each" in str(ws.explain_maintenance("v"))


@pytest.mark.parametrize("kind", ["right", "full"])
def test_others_are_refused(kind: str) -> None:
    db = Database()
    db.load("trade", [("a", 5, 1)], columns=list(TRADE))
    db.load("quote", [("a", 4, 10)], columns=list(QUOTE))
    with pytest.raises(UnsupportedSqlError, match=f"a join of kind asof {kind}"):
        db.sql(sql_of(kind, ">=", True))
