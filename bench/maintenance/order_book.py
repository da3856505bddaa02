"""Group-by aggregates over an order book that changes: rules, SQL, and changes.

The bids and the asks of DBToaster's experiments are 100,485 changes in all.  Per broker and side:
exact sums of price times volume and of volume, their quotient (the volume-weighted average price),
the best price; per price level: the sum of the volumes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

COLUMNS = ("time", "id", "broker", "volume", "price")
RELATIONS = {"bids": "BIDS", "asks": "ASKS"}
"""Relations to what the changes call them."""

_SIDE = """
{side}_value[b] = sum(v), {side}_volume[b] = sum(w), best_{side}[b] = {best}(p)
    <- {relation}(_, _, b, w, p), v = p * w.
{side}_vwap[b] = x <- {side}_value(b, v), {side}_volume(b, w), w > 0, x = v / w.
{side}_level[p] = sum(w) <- {relation}(_, _, _, w, p).
"""
_SIDES = (("bid", "bids", "max"), ("ask", "asks", "min"))
RULES = "".join(_SIDE.format(side=side, relation=relation, best=best) for side, relation, best in _SIDES)

BROKER_HEADS = ("{side}_value", "{side}_volume", "best_{side}", "{side}_vwap")
"""Heads with one tuple per broker, in the order of the columns of the SQL by broker."""

_BY_BROKER = """
SELECT broker, sum(price * volume)::BIGINT AS value, sum(volume)::BIGINT AS volume, {best}(price) AS best,
    CASE WHEN sum(volume) > 0 THEN sum(price * volume)::BIGINT / sum(volume)::BIGINT END AS vwap
FROM {relation} GROUP BY broker"""
_BY_LEVEL = "SELECT price, sum(volume)::BIGINT AS volume FROM {relation} GROUP BY price"

SQL: dict[tuple[str, ...], str] = {}
"""The heads that a statement answers, by its columns after the first; to the statement."""
for _side, _relation, _best in _SIDES:
    SQL[tuple(head.format(side=_side) for head in BROKER_HEADS)] = _BY_BROKER.format(
        best=_best, relation=_relation
    )
    SQL[(f"{_side}_level",)] = _BY_LEVEL.format(relation=_relation)

FINANCE_RULES = """
axf[b] = sum(d) <- bids(_, _, b, w, p), asks(_, _, b, v, q), abs(p - q) > 1000, d = v - w.
bsp[b] = sum(d) <- bids(t, _, b, v, p), bids(u, _, b, w, q), t > u, d = v * p - w * q.
"""
"""Two of DBToaster's finance views, whose sides an inequality joins: "axfinder" and "brokerspread"."""

FINANCE_SQL: dict[tuple[str, ...], str] = {
    ("axf",): "SELECT b.broker, sum(a.volume - b.volume)::BIGINT FROM bids b, asks a "
    "WHERE b.broker = a.broker AND abs(b.price - a.price) > 1000 GROUP BY b.broker",
    ("bsp",): "SELECT x.broker, sum(x.volume * x.price - y.volume * y.price)::BIGINT FROM bids x, bids y "
    "WHERE x.broker = y.broker AND x.time > y.time GROUP BY x.broker",
}


FIVE_RULES = f"""{FINANCE_RULES}
bid_total[] = sum(v), bid_bar[] = upper_quantile(p, 0.25, v) <- bids(_, _, _, v, p).
ask_total[] = sum(v), ask_bar[] = upper_quantile(p, 0.25, v) <- asks(_, _, _, v, p).
vwap[] = sum(x) <- bids(_, _, _, v, p), bid_bar[] = bar, p >= bar, x = v * p.
mst[b] = sum(d) <- bids(_, _, b, v, p), bid_bar[] = m, p >= m,
    asks(_, _, _, w, q), ask_bar[] = n, q >= n, d = w * q - v * p.
psp[] = sum(d) <- bids(_, _, _, v, p), bid_total[] = t, 10000 * v > t,
    asks(_, _, _, w, q), ask_total[] = u, 10000 * w > u, d = q - p.
"""
"""Five of them: also "vwap", "missedtrades" and "pricespread", whose sums go over what passes a threshold."""

_INSIDE = """(SELECT * FROM (SELECT *, sum(volume) OVER () AS total, coalesce(sum(volume) OVER
    (ORDER BY price DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS higher
    FROM {}) WHERE total > 4 * higher)"""
_LARGE = """(SELECT count(*) AS n, sum(price) AS prices FROM {0}
    WHERE 10000 * volume > (SELECT sum(volume) FROM {0}))"""

FIVE_SQL: dict[tuple[str, ...], str] = {
    **FINANCE_SQL,
    ("vwap",): f"SELECT sum(price * volume)::BIGINT FROM {_INSIDE.format('bids')} b",
    ("mst",): "SELECT broker, (count(*) * any_value(worth) - sum(volume * price) * any_value(n))::BIGINT "
    f"FROM {_INSIDE.format('bids')} b, "
    f"(SELECT sum(volume * price) AS worth, count(*) AS n FROM {_INSIDE.format('asks')}) a GROUP BY broker",
    ("psp",): "SELECT (b.n * a.prices - a.n * b.prices)::BIGINT "
    f"FROM {_LARGE.format('bids')} b, {_LARGE.format('asks')} a",
}


def random_changes(count: int) -> pa.Table:
    """Changes of an order book, in the form of the published ones: 2 of 5 erase a row that is there."""
    generator = np.random.default_rng(count)
    held: list[tuple[object, ...]] = []
    rows = []
    for number in range(count):
        if held and generator.random() < 0.4:
            place = int(generator.integers(len(held)))
            row, held[place] = held[place], held[-1]
            held.pop()
            rows.append((row[0], -1, *row[1:]))
            continue
        side = ("BIDS", "ASKS")[int(generator.integers(2))]
        broker, volume, price = int(generator.integers(5)), int(generator.integers(0, 4)), 0
        price = 100 * int(generator.integers(90, 110))
        row = (side, number // 3, number, broker, 50 * volume, price)
        held.append(row)
        rows.append((row[0], 1, *row[1:]))
    names = ("relation", "weight", *COLUMNS)
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
