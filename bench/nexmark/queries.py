"""`QUERIES`: the 24 queries of Nexmark, as rules and as SQL.

The SQL is what is published for Flink and RisingWave, with ``event`` beside what it shows; where that leaves
open which row comes first, it is by ``event``.  The rules are what somebody writes who knows the data; their
head ``out`` has the columns of the SQL in their order.  DuckDB has no windows as functions of a table, so
queries with these have another text for it.

Source: Tucker, Tufte, Papadimos, Maier, "NEXMark - A Benchmark for Queries over Data Streams", 2002, for the
first eight; github.com/nexmark/nexmark for 9 to 22; RisingWave's documentation for 23 (a join of all three).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

_BID = "auction: a, bidder: b, price: p, date_time: t, event: e"
_PAGE = "auction: a, bidder: b, price: p, channel: c, url: u, date_time: t, event: e"
_IN_TIME = "A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires"
_VALID = "auction(id: a, date_time: s, expires: x{more}), bid({bid}), t >= s, t <= x"


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        name: ``q0`` to ``q23``.
        rules: The program, whose result is ``out``.
        sql: A SELECT.
        duckdb: The same for DuckDB where it takes another text.
        tables: Relations beside the events, which don't change.
    """

    name: str
    rules: str
    sql: str
    duckdb: str | None = None
    tables: Mapping[str, pa.Table] = field(default_factory=dict, hash=False)

    @property
    def peer(self) -> str:
        return self.duckdb or self.sql


_RANKS = ("", " if p < 10000", " if (p >= 10000, p < 1000000)", " if p >= 1000000")
_SQL_RANKS = (
    "",
    " FILTER (WHERE price < 10000)",
    " FILTER (WHERE price >= 10000 AND price < 1000000)",
    " FILTER (WHERE price >= 1000000)",
)


def _counts(what: str) -> str:
    """A count for all and for each rank of prices; ``what``: an argument, or none."""
    return ", ".join(f"count({what}{rank})" for rank in _RANKS).replace("( if", "(if")


def _sql_counts(what: str) -> str:
    return ", ".join(f"count({what}){rank}" for rank in _SQL_RANKS)


_COUNTS = ", ".join(map(_counts, ("", "distinct b", "distinct a")))
_SQL_COUNTS = ", ".join(map(_sql_counts, ("*", "DISTINCT bidder", "DISTINCT auction")))

_ALL = [
    Query(
        "q0",
        f"out(a, b, p, t, e) <- bid({_BID}).",
        "SELECT auction, bidder, price, date_time, event FROM bid",
    ),
    Query(
        "q1",
        f"out(a, b, q, t, e) <- bid({_BID}), q = 0.908 * p.",
        "SELECT auction, bidder, 0.908 * price AS price, date_time, event FROM bid",
    ),
    Query(
        "q2",
        "out(a, p, e) <- bid(auction: a, price: p, event: e), a % 123 = 0.",
        "SELECT auction, price, event FROM bid WHERE auction % 123 = 0",
    ),
    Query(
        "q3",
        """
out(n, c, s, a) <- auction(id: a, seller: p, category: 10), person(id: p, name: n, city: c, state: s),
                   s in ("OR", "ID", "CA").
""",
        """
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
""",
    ),
    Query(
        "q4",
        f"""
final[a, k] = max(p) <- {_VALID.format(more=", category: k", bid="auction: a, price: p, date_time: t")}.
out[k] = avg(p) <- final[_, k] = p.
""",
        f"""
SELECT Q.category, AVG(Q.final)
FROM (SELECT MAX(B.price) AS final, A.category FROM auction A, bid B WHERE {_IN_TIME}
      GROUP BY A.id, A.category) Q
GROUP BY Q.category
""",
    ),
    Query(
        "q5",
        """
num[a, w] = count() <- bid(auction: a, date_time: t, event: _), w in hop(t, 10s, 2s).
most[w] = max(n) <- num[_, w] = n.
out(a, n, w) <- num[a, w] = n, most[w] = n.
""",
        """
WITH bids AS (
  SELECT auction, count(*) AS num, window_start, window_end
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end)
SELECT B.auction, B.num, B.window_start
FROM bids AS B
JOIN (SELECT max(num) AS maxn, window_start, window_end FROM bids GROUP BY window_start, window_end) AS M
  ON B.window_start = M.window_start AND B.window_end = M.window_end AND B.num >= M.maxn
""",
        """
WITH bids AS (
  SELECT auction, count(*) AS num, time_bucket(INTERVAL 2 SECONDS, date_time) - k * INTERVAL 2 SECONDS AS w
  FROM bid, range(5) AS r(k) GROUP BY ALL)
SELECT auction, num, w FROM bids JOIN (SELECT max(num) AS maxn, w FROM bids GROUP BY w) USING (w)
WHERE num = maxn
""",
    ),
    Query(
        "q6",
        f"""
best(a, l, p, t, e) <-
    {_VALID.format(more=", seller: l", bid="auction: a, price: p, date_time: t, event: e")},
    top(1, by: (p desc, t, e), per: a).
out(l, m, e) <- best(_, l, p, t, e), m = avg(p, by: (t, e), per: l, rows: (-10, 0)).
""",
        f"""
SELECT Q.seller,
  AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.date_time, Q.event
                     ROWS BETWEEN 10 PRECEDING AND CURRENT ROW), Q.event
FROM (SELECT A.seller, B.price AS final, B.date_time, B.event,
        ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time, B.event) AS rownum
      FROM auction A, bid B WHERE {_IN_TIME}) Q
WHERE Q.rownum <= 1
""",
    ),
    Query(
        "q7",
        f"""
most[w] = max(p) <- bid(price: p, date_time: t), w = tumble(t, 10s).
out(a, p, b, t, e) <- bid({_BID}), w = tumble(t, 10s), most[w] = p.
""",
        """
SELECT B.auction, B.price, B.bidder, B.date_time, B.event
FROM bid B
JOIN (SELECT MAX(price) AS maxprice, window_start, window_end
      FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
      GROUP BY window_start, window_end) M
ON B.price = M.maxprice AND B.date_time >= M.window_start AND B.date_time < M.window_end
""",
        """
SELECT auction, price, bidder, date_time, event
FROM bid JOIN (SELECT time_bucket(INTERVAL 10 SECONDS, date_time) AS w, max(price) AS p FROM bid GROUP BY w)
ON price = p AND time_bucket(INTERVAL 10 SECONDS, date_time) = w
""",
    ),
    Query(
        "q8",
        """
came(p, n, w) <- person(id: p, name: n, date_time: t), w = tumble(t, 10s).
sold(p, w) <- auction(seller: p, date_time: t), w = tumble(t, 10s).
out(p, n, w) <- came(p, n, w), sold(p, w).
""",
        """
SELECT P.id, P.name, P.window_start
FROM (SELECT id, name, window_start, window_end
      FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
      GROUP BY id, name, window_start, window_end) P
JOIN (SELECT seller, window_start, window_end
      FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
      GROUP BY seller, window_start, window_end) A
ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end
""",
        """
SELECT DISTINCT id, name, p.w
FROM (SELECT *, time_bucket(INTERVAL 10 SECONDS, date_time) AS w FROM person) p
JOIN (SELECT seller, time_bucket(INTERVAL 10 SECONDS, date_time) AS w FROM auction) a
ON p.id = a.seller AND p.w = a.w
""",
    ),
    Query(
        "q9",
        f"""
win(a, b, p, t, e) <- {_VALID.format(more="", bid=_BID)}, top(1, by: (p desc, t, e), per: a).
out(a, i, r, s, x, l, k, b, p, t, e) <-
    win(a, b, p, t, e),
    auction(id: a, initial: i, reserve: r, date_time: s, expires: x, seller: l, category: k).
""",
        f"""
SELECT id, initial, reserve, date_time, expires, seller, category, bidder, price, bid_time, bid_event
FROM (SELECT A.*, B.bidder, B.price, B.date_time AS bid_time, B.event AS bid_event,
        ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time, B.event) AS rownum
      FROM auction A, bid B WHERE {_IN_TIME})
WHERE rownum <= 1
""",
    ),
    Query(
        "q10",
        f"""
out(a, b, p, t, e, d, m) <- bid({_BID}), d = strftime(t, "%Y-%m-%d"), m = strftime(t, "%H:%M").
""",
        """
SELECT auction, bidder, price, date_time, event, strftime(date_time, '%Y-%m-%d'), strftime(date_time, '%H:%M')
FROM bid
""",
    ),
    Query(
        "q11",
        """
after(b, t, e, f) <- bid(bidder: b, date_time: t, event: e), l = lag(t, by: (t, e), per: b),
                     f = if(t <= l + 10s, null, t).
of(b, s, t, e)    <- after(b, t, e, f), s = max(f, by: (t, e), per: b).
out(b, count(), s, max(t)) <- of(b, s, t, e).
""",
        """
SELECT bidder, count(*) AS bid_count, starttime, max(date_time) AS endtime
FROM (SELECT *, max(first) OVER (PARTITION BY bidder ORDER BY date_time, event) AS starttime
      FROM (SELECT bidder, date_time, event,
              CASE WHEN date_time <= lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time, event)
                        + INTERVAL '10' SECOND THEN NULL ELSE date_time END AS first
            FROM bid))
GROUP BY bidder, starttime
""",
    ),
    Query(
        "q12",
        """
out[b, w] = count() <- bid(bidder: b, date_time: t, event: _), w = tumble(t, 10s).
""",
        """
SELECT bidder, window_start, count(*) AS bid_count
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end
""",
        """
SELECT bidder, time_bucket(INTERVAL 10 SECONDS, date_time) AS w, count(*) FROM bid GROUP BY bidder, w
""",
    ),
    Query(
        "q13",
        f"""
out(a, b, p, t, e, v) <- bid({_BID}), side_input(k, v), a % 10000 = k.
""",
        """
SELECT B.auction, B.bidder, B.price, B.date_time, B.event, S.value
FROM bid B JOIN side_input S ON B.auction % 10000 = S.key
""",
        tables={
            "side_input": pa.table({"key": range(10_000), "value": [f"value {n}" for n in range(10_000)]})
        },
    ),
    Query(
        "q14",
        """
out(a, b, q, h, t, e, n) <-
    bid(auction: a, bidder: b, price: p, url: u, date_time: t, event: e),
    q = 0.908 * p, q > 1000000, q < 50000000,
    h = if((hour(t) >= 8, hour(t) <= 18), "dayTime",
        if((hour(t) <= 6 ; hour(t) >= 20), "nightTime", "otherTime")),
    n = length(u) - length(replace(u, "c", "")).
""",
        """
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
       WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
       ELSE 'otherTime' END AS bidTimeType,
  date_time, event, length(url) - length(replace(url, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
""",
    ),
    Query(
        "q15",
        f"""
out(d, {_COUNTS}) <-
    bid(auction: a, bidder: b, price: p, date_time: t, event: _), d = strftime(t, "%Y-%m-%d").
""",
        f"""
SELECT strftime(date_time, '%Y-%m-%d') AS day, {_SQL_COUNTS}
FROM bid GROUP BY strftime(date_time, '%Y-%m-%d')
""",
    ),
    Query(
        "q16",
        f"""
out(c, d, max(m), {_COUNTS}) <-
    bid(auction: a, bidder: b, price: p, channel: c, date_time: t, event: _),
    d = strftime(t, "%Y-%m-%d"), m = strftime(t, "%H:%M").
""",
        f"""
SELECT channel, strftime(date_time, '%Y-%m-%d') AS day, max(strftime(date_time, '%H:%M')) AS minute,
  {_SQL_COUNTS}
FROM bid GROUP BY channel, strftime(date_time, '%Y-%m-%d')
""",
    ),
    Query(
        "q17",
        f"""
out(a, d, {_counts("")}, min(p), max(p), avg(p), sum(p)) <-
    bid(auction: a, price: p, date_time: t, event: _), d = strftime(t, "%Y-%m-%d").
""",
        f"""
SELECT auction, strftime(date_time, '%Y-%m-%d') AS day, {_sql_counts("*")},
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price)::BIGINT AS sum_price
FROM bid GROUP BY auction, strftime(date_time, '%Y-%m-%d')
""",
    ),
    Query(
        "q18",
        f"out(a, b, p, c, u, t, e) <- bid({_PAGE}), top(1, by: (t desc, e desc), per: (b, a)).",
        """
SELECT auction, bidder, price, channel, url, date_time, event
FROM (SELECT *,
        ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, event DESC) AS rank_number
      FROM bid)
WHERE rank_number <= 1
""",
    ),
    Query(
        "q19",
        f"out(a, b, p, c, u, t, e, r) <- bid({_PAGE}), r = top(10, by: (p desc, e), per: a).",
        """
SELECT *
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, event) AS rank_number FROM bid)
WHERE rank_number <= 10
""",
    ),
    Query(
        "q20",
        f"""
out(a, b, p, c, u, t, e, i, r, s, x, l) <-
    bid({_PAGE}),
    auction(id: a, initial: i, reserve: r, date_time: s, expires: x, seller: l, category: 10).
""",
        """
SELECT auction, bidder, price, channel, url, B.date_time, B.event,
  initial, reserve, A.date_time, expires, seller
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10
""",
    ),
    Query(
        "q21",
        f"""
out(a, b, p, c, i, e) <-
    bid({_PAGE}), l = lower(c),
    (l in ("apple", "google", "facebook", "baidu") ; contains(u, "channel_id=")),
    i = if(l = "apple", "0", if(l = "google", "1", if(l = "facebook", "2", if(l = "baidu", "3",
           regexp_extract(u, "(&|^)channel_id=([^&]*)", 2))))).
""",
        """
SELECT auction, bidder, price, channel,
  CASE WHEN lower(channel) = 'apple' THEN '0'
       WHEN lower(channel) = 'google' THEN '1'
       WHEN lower(channel) = 'facebook' THEN '2'
       WHEN lower(channel) = 'baidu' THEN '3'
       ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id, event
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
   OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
""",
    ),
    Query(
        "q22",
        f"""
out(a, b, p, c, x, y, z, e) <-
    bid({_PAGE}), x = split_part(u, "/", 4), y = split_part(u, "/", 5), z = split_part(u, "/", 6).
""",
        """
SELECT auction, bidder, price, channel,
  split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3, event
FROM bid
""",
    ),
    Query(
        "q23",
        """
out(p, e, b, n, c, s, a, i, r, t, x, k) <-
    bid(bidder: b, price: p, event: e),
    person(id: b, name: n, city: c, state: s),
    auction(id: a, initial: i, reserve: r, date_time: t, expires: x, seller: b, category: k).
""",
        """
SELECT B.price, B.event, P.id, P.name, P.city, P.state,
  A.id, A.initial, A.reserve, A.date_time, A.expires, A.category
FROM bid B JOIN person P ON P.id = B.bidder JOIN auction A ON A.seller = B.bidder
""",
    ),
]

QUERIES = {query.name: query for query in _ALL}
"""By name."""
