"""The finance views of DBToaster's benchmark as rules over an order book, and by hand.

Bids and asks are (time, id, broker, volume, price).  The README of the data says what
each sums; a head without rows stands for sums over nothing.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

COLUMNS = ["time", "id", "broker", "volume", "price"]

Row = tuple[int, ...]
Event = tuple[str, int, Row]
"""The side, 1 or -1, and the row that comes or goes."""

Book = Mapping[str, set[Row]]

AXF = "axf[b] = sum(d) <- bids(_, _, b, w, p), asks(_, _, b, v, q), abs(p - q) > 1000, d = v - w."
BSP = "bsp[b] = sum(d) <- bids(t, _, b, v, p), bids(u, _, b, w, q), t > u, d = v * p - w * q."
BSV = """
    twice[b] = sum(x) <- bids(_, _, b, v, p), bids(_, _, b, w, q),
        x = cast(v * p, "decimal(38, 0)") * (w * q).
"""
INSIDE = """
    {side}_total[] = sum(v) <- {side}(_, _, _, v, _).
    {side}_bar[] = upper_quantile(p, 0.25, v) <- {side}(_, _, _, v, p).
"""
VWAP = "vwap[] = sum(x) <- bids(_, _, _, v, p), bids_bar[] = bar, p >= bar, x = v * p."
MST = """
    mst[b] = sum(d) <- bids(_, _, b, v, p), bids_bar[] = m, p >= m,
        asks(_, _, _, w, q), asks_bar[] = n, q >= n, d = w * q - v * p.
"""
PSP = """
    psp[] = sum(d) <- bids(_, _, _, v, p), bids_total[] = t, 10000 * v > t,
        asks(_, _, _, w, q), asks_total[] = u, 10000 * w > u, d = q - p.
"""
BY_PRICE = """
    total[] = sum(v) <- bids(_, _, _, v, _).
    at[p] = sum(v) <- bids(_, _, _, v, p).
    from[p] = sum(v) <- at[p] = _, at[q] = v, q >= p.
    vwap[] = sum(x) <- bids(_, _, _, v, p), from[p] = s, at[p] = o, total[] = t, t > 4 * (s - o), x = v * p.
"""
"""The volume-weighted price again, by the volume above each price: for volumes of either sign."""
PROGRAM = "\n".join([AXF, BSP, BSV, *(INSIDE.format(side=side) for side in ("bids", "asks")), VWAP, MST, PSP])

ANSWERS = {
    "axf": "axfinder",
    "bsp": "brokerspread",
    "twice": "brokervariance",
    "mst": "missedtrades",
    "psp": "pricespread",
    "vwap": "vwap",
}
"""The published results of each view; those of BSV, half of ``twice``, were added up in floats."""


def events(folder: Path, size: str) -> list[Event]:
    """The order book's changes in their order."""
    table = pq.read_table(folder / "dbtoaster-finance" / f"orderbook-{size}.parquet")
    rows = zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)
    relations, weights = table["relation"].to_pylist(), table["weight"].to_pylist()
    return [
        (relation.lower(), weight, tuple(map(int, row)))
        for relation, weight, row in zip(relations, weights, rows, strict=True)
    ]


def answer(folder: Path, view: str, size: str) -> dict[Row, float]:
    """What DBToaster published, by group; groups whose sum is 0 are left out."""
    path = folder / "dbtoaster-finance" / "answers" / f"{ANSWERS[view]}_{size}.csv"
    with path.open(encoding="utf-8") as file:
        rows = [[float(field) for field in line] for line in csv.reader(file) if line]
    return {tuple(map(int, keys)): value for *keys, value in rows if value}


def by_hand(book: Book) -> dict[str, dict[Row, int]]:
    """Every view from the rows alone; of BSV twice the sum.  Groups whose sum is 0 are left out."""
    bids, asks = book["bids"], book["asks"]
    inside = {side: _inside(rows) for side, rows in book.items()}
    large = {side: _large(rows) for side, rows in book.items()}
    views: dict[str, dict[Row, int]] = {
        "axf": _added((b[2], a[3] - b[3]) for b, a in _pairs(bids, asks, 2) if abs(b[4] - a[4]) > 1000),
        "bsp": _added((x[2], _worth(x) - _worth(y)) for x, y in _pairs(bids, bids, 2) if x[0] > y[0]),
        "twice": _added((x[2], _worth(x) * _worth(y)) for x, y in _pairs(bids, bids, 2)),
        "mst": _added((b[2], _worth(a) - _worth(b)) for b in inside["bids"] for a in inside["asks"]),
        "psp": {(): sum(a[4] - b[4] for b in large["bids"] for a in large["asks"])},
        "vwap": {(): sum(map(_worth, inside["bids"]))},
    }
    return {name: {group: value for group, value in view.items() if value} for name, view in views.items()}


def _worth(row: Row) -> int:
    return row[3] * row[4]


def _pairs(left: Iterable[Row], right: Iterable[Row], column: int) -> Iterator[tuple[Row, Row]]:
    right = list(right)
    return ((x, y) for x in left for y in right if x[column] == y[column])


def _added(parts: Iterable[tuple[int, int]]) -> dict[Row, int]:
    sums: dict[Row, int] = {}
    for group, value in parts:
        sums[group,] = sums.get((group,), 0) + value
    return sums


def _inside(rows: Iterable[Row]) -> list[Row]:
    """Those with less than a quarter of the volume at higher prices."""
    rows = list(rows)
    at_price: Counter[int] = Counter()
    for row in rows:
        at_price[row[4]] += row[3]
    above: dict[int, int] = {}
    total = 0
    for price in sorted(at_price, reverse=True):
        above[price] = total
        total += at_price[price]
    return [row for row in rows if total > 4 * above[row[4]]]


def _large(rows: Iterable[Row]) -> list[Row]:
    """Those with more than a ten thousandth of the volume."""
    rows = list(rows)
    total = sum(row[3] for row in rows)
    return [row for row in rows if 10000 * row[3] > total]
