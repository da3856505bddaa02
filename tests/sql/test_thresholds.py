"""Nested monotone thresholds: against DuckDB through weights below 0 and back, and what an event costs.

The three texts of DBToaster's finance views, and each way in which a sum beyond a key can be compared with a
share of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

import pyarrow as pa
import pytest

from maintenance import Workspace
from sql.answers import Row, difference, rows_of
from support import peer

pytest.importorskip("lftj.sql")

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")  # MST and PSP are some

VWAP = """
    select sum(b1.price * b1.volume) as s from bids b1
    where 0.25 * (select sum(b3.volume) from bids b3)
        > (select sum(b2.volume) from bids b2 where b2.price > b1.price)
"""
MST = """
    select b.broker_id, sum(a.price * a.volume - b.price * b.volume) as s from bids b, asks a
    where 0.25 * (select sum(a1.volume) from asks a1)
            > (select sum(a2.volume) from asks a2 where a2.price > a.price)
        and 0.25 * (select sum(b1.volume) from bids b1)
            > (select sum(b2.volume) from bids b2 where b2.price > b.price)
    group by b.broker_id
"""
PSP = """
    select sum(a.price - b.price) as s from bids b, asks a
    where b.volume > 0.0001 * (select sum(b1.volume) from bids b1)
        and a.volume > 0.0001 * (select sum(a1.volume) from asks a1)
"""
BY_BROKER = f"select b1.broker_id, count(*) as n, max(volume) as v{VWAP.partition('as s')[2]} group by 1"
TEXTS = {"VWAP": VWAP, "MST": MST, "PSP": PSP, "by broker": BY_BROKER}
COMPARED = {
    f"{compared} {beyond} {share}": f"""
        select sum(b1.price * b1.volume) as s from bids b1
        where {share} * (select sum(volume) from bids) {compared}
            (select sum(b2.volume) from bids b2 where b2.price {beyond} b1.price)
    """
    for compared, beyond, share in itertools.product(
        ("<", "<=", ">", ">="), ("<", "<=", ">", ">="), (0.25, 0.6)
    )
}

SCHEMA = pa.schema([(name, pa.int64()) for name in ("broker_id", "volume", "price")])


Bag = list[tuple[int | None, ...]]


@dataclass
class Day:
    """One transaction, and what is so behind it.

    Attributes:
        changes: By side, the rows that go and those that come.
        right: DuckDB's answer.
        shown: The kind, and all rows.
    """

    changes: dict[str, tuple[pa.Table, pa.Table]]
    right: list[Row]
    shown: str


@cache
def days(name: str, text: str, number: int) -> list[Day]:
    """Of bids and asks as bags, where values may be NULL: mostly few rows each, drawn by the name."""
    random, connection = Random(name), peer.connection()
    bags: dict[str, Bag] = {"bids": [], "asks": []}
    found = []
    for _ in range(number):
        kind, changes = random.choice(KINDS), {}
        for side, rows in bags.items():
            gone, came = change(random, kind, rows)
            changes[side] = arrow(gone), arrow(came)
            connection.register(side, arrow(rows))
        found.append(Day(changes, connection.execute(text).fetchall(), f"{kind}: {bags}"))
    return found


def change(random: Random, kind: str, rows: Bag) -> tuple[Bag, Bag]:
    """Changes the rows, to regular weights or not by its kind; those that went and those that came."""
    volumes: tuple[int | None, ...] = {"zero": (0,), "negative": (-7, 1), "null": (None, 2)}.get(
        kind, (0, 1, 2, 5, 9)
    )
    prices = (1, 2, 3, 4, 5, 6, None) if kind == "no key" else (1, 2, 3, 4, 5, 6)
    others = [row for row in rows if kind == "empty" or (row[1] or -1) < 0 or row[2] is None]
    gone = others if kind in ("empty", "regular") else []
    gone += random.sample(rows, min(len(rows), 1)) if not gone and rows else []
    came = [
        (random.randrange(2), random.choice(volumes), random.choice(prices))
        for _ in range(0 if kind == "empty" else random.randrange(1, 4))
    ]
    for row in gone:
        rows.remove(row)
    rows += came
    return gone, came


def check_days(name: str, text: str, number: int, strategy: str, by_bar: bool) -> Workspace:
    ws = Workspace()
    for side in ("bids", "asks"):
        ws.load(side, arrow([]), nulls="keep", bag=True)
    ws.create_view("kept", text, strategy=strategy)
    assert ("_by_bar" in str(ws.explain_maintenance("kept"))) == by_bar
    for place, day in enumerate(days(name, text, number)):
        with ws.transaction() as tx:
            for side, (gone, came) in day.changes.items():
                tx.erase(side, gone)
                tx.insert(side, came)
        found = difference(rows_of(ws["kept"].to_arrow()), day.right)
        assert found is None, f"{place}, {found}\n{day.shown}"
    return ws


def arrow(rows: Sequence[tuple[int | None, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


KINDS = ("regular", "regular", "regular", "negative", "null", "no key", "zero", "empty", "regular")


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.parametrize("strategy", ["auto", "views", "delta", "trace", "recompute"])
@pytest.mark.parametrize("name", TEXTS)
def test_weights_turn_negative_and_back(name: str, strategy: str) -> None:
    check_days(name, TEXTS[name], 30, strategy, by_bar=name != "PSP").verify()


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.parametrize("name", COMPARED)
def test_each_way_to_compare(name: str) -> None:
    check_days(name, COMPARED[name], 25, "auto", by_bar=True)


@cache
def sides(n_rows: int) -> dict[str, pa.Table]:
    random = Random(n_rows)
    ranges = {"broker_id": range(7), "volume": range(1, 100), "price": range(1000, 1000 + n_rows)}
    return {
        side: pa.table({name: random.choices(values, k=n_rows) for name, values in ranges.items()})
        for side in ("bids", "asks")
    }


def large_book(n_rows: int, nulls: Literal["refuse", "keep"] = "refuse") -> Workspace:
    ws = Workspace()
    for side, table in sides(n_rows).items():
        ws.load(side, table, nulls=nulls, bag=True)
    return ws


def operations(name: str, n_rows: int, nulls: Literal["refuse", "keep"]) -> int:
    """Of 40 transactions of one row each, the first ones aside, which make scan trees."""
    ws, random = large_book(n_rows, nulls), Random(7)
    ws.create_view("kept", TEXTS[name])
    taken = []
    for _ in range(60):
        row = {
            "broker_id": [3],
            "volume": [random.randrange(100)],
            "price": [random.randrange(1000, 1000 + n_rows)],
        }
        with ws.transaction() as tx:
            tx.insert(random.choice(("bids", "asks")), pa.table(row))
        taken.append(sum(figures.operations for figures in tx.stats.rules.values()))
    return sum(taken[20:])


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.parametrize("nulls", ["refuse", "keep"])
@pytest.mark.parametrize("name", ["VWAP", "MST", "PSP"])
def test_an_event_takes_the_logarithm_of_the_rows(name: str, nulls: Literal["refuse", "keep"]) -> None:
    few, many = (operations(name, n_rows, nulls) for n_rows in (1_000, 64_000))
    assert many < 2 * few + 400, (few, many)  # as many more rows take 64 times as much, or 1.6 times


@pytest.mark.compiled
def test_explain_says_which_form_is_used() -> None:
    ws = large_book(50)
    ws.create_view("kept", VWAP)
    assert "kept is kept_by_bar" in str(ws.explain_maintenance("kept"))
    wrong = pa.table({"broker_id": [1], "volume": [-5], "price": [1000]})
    with ws.transaction() as tx:
        tx.insert("bids", wrong)
    assert "kept is kept_in_general" in str(ws.explain_maintenance("kept"))
    with ws.transaction() as tx:
        tx.erase("bids", wrong)
    assert "kept is kept_by_bar" in str(ws.explain_maintenance("kept"))
    ws.create_view("kept", MST, replace=True)
    ws.create_view("kept", VWAP, replace=True)
    ws.verify()


@pytest.mark.compiled
def test_a_folder_has_them(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "shop") as ws:
        for side in ("bids", "asks"):
            ws.load(side, pa.table({"broker_id": [1, 2], "volume": [3, 5], "price": [7, 9]}))
        ws.create_view("kept", VWAP)
        shown = str(ws.explain_maintenance("kept"))
    with Workspace.open(tmp_path / "shop") as ws:
        assert str(ws.explain_maintenance("kept")).splitlines()[:12] == shown.splitlines()[:12]
        assert ws.views["kept"].split() == VWAP.split()
        with ws.transaction() as tx:
            tx.insert("bids", pa.table({"broker_id": [1], "volume": [-4], "price": [8]}))
        ws.verify()


RULES = """
    total[] = sum(v) <- bids(v, _).
    asked(p) <- bids(_, p).
    above[p] = sum(v) <- asked(p), bids(v, q), q > p.
    vwap[] = sum(x) <- bids(v, p), total[] = t, above[p] = s, 4 * s < t, x = v * p.
"""


@pytest.mark.compiled
def test_rules_written_by_hand() -> None:
    random, ws, plain = Random(3), Workspace(), Workspace()
    for one in (ws, plain):
        one.load("bids", pa.table({"volume": pa.array([], pa.int64()), "price": pa.array([], pa.int64())}))
    ws.install(RULES, results="vwap")
    plain.install(RULES)
    assert "vwap is vwap_by_bar" in str(ws.explain_maintenance("vwap"))
    rows: list[tuple[int, int]] = []
    for _ in range(40):
        came = [(random.choice((0, 1, 2, 9, 30, -1)), random.randrange(8)) for _ in range(2)]
        gone = random.sample(rows, min(len(rows), 2)) if len(rows) > 6 else []
        came = [row for row in dict.fromkeys(came) if row not in rows]
        rows = [row for row in rows + came if row not in gone]
        for one in (ws, plain):
            with one.transaction() as tx:
                tx.erase("bids", gone)
                tx.insert("bids", came)
        assert ws["vwap"].to_arrow().to_pylist() == plain["vwap"].to_arrow().to_pylist()
    ws.verify()


@pytest.mark.compiled
@pytest.mark.parametrize(
    "rules",
    [
        RULES.replace("4 * s < t", "4 * s < t, s > 2"),  # the sum is asked twice
        RULES.replace("4 * s < t", "3 * s < t"),  # a share without an end
        RULES.replace("above[p] = s, 4 * s < t", "above[p] = s, 4 * s < t + 1"),
        RULES.replace("asked(p) <- bids(_, p)", "asked(p) <- bids(_, p), p > 3"),  # not of all keys
        RULES.replace("x = v * p", "x = v * s"),
        RULES.replace("q > p", "q > p, v > 1"),
        RULES.replace("total[] = sum(v) <- bids(v, _)", "total[] = sum(v) <- bids(_, v)"),
    ],
)
def test_what_is_no_threshold_stays(rules: str) -> None:
    ws = Workspace()
    ws.load("bids", pa.table({"volume": [3, 5, 4], "price": [7, 9, 2]}))
    ws.install(rules, results="vwap")
    assert "thresholds" not in str(ws.explain_maintenance("vwap"))
