"""The table of the grid: views, the changes that are put to them, and who keeps them.

Each view is a rule program with its question in SQL and, where the peer has one, the name of
differential dataflow's view.  Heads that would be too large to keep in seconds are grouped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench import graphs
from bench.grid import recursive_views
from bench.grid.changes import Rows, Stream, around_hub, drawn
from bench.grid.streams import EDGE, drawn_from, replayed, rows_of, sizes, window_of
from bench.grid.view import OF_SUMS, OF_THRESHOLDS, Setting, View
from bench.joins.patterns import TRIANGLE_RULE
from bench.maintenance import existence, order_book

TRIANGLE_SQL = (
    "SELECT r.src, r.dst, s.dst FROM edge r, edge s, edge t "
    "WHERE r.dst = s.src AND s.dst = t.dst AND r.src = t.src"
)


def _on_rmat(
    name: str,
    title: str,
    scale: int,
    rule: str,
    sql: str,
    settings: tuple[Setting, ...],
    *,
    differential: str = "",
    pathway: str = "",
    note: str = "",
) -> View:
    """A rule with one head over the edges of an RMAT graph."""
    return View(
        f"{name}-rmat-{scale}",
        f"{title}, RMAT {scale}/8",
        EDGE,
        rule,
        {(rule.partition("[")[0].partition("(")[0],): sql},
        drawn_from("edge", f"rmat-{scale}"),
        settings,
        differential,
        pathway,
        note=note,
    )


def triangles(scale: int, *settings: Setting) -> View:
    peers = dict.fromkeys(("differential", "pathway"), "triangles")
    return _on_rmat("triangles", "triangles", scale, TRIANGLE_RULE, TRIANGLE_SQL, settings, **peers)


def four_cycles(scale: int, *settings: Setting) -> View:
    return _on_rmat(
        "four-cycles",
        "4-cycles, by their least vertex",
        scale,
        "cycles[a] = count() <- edge(a, b), edge(b, c), edge(a, d), edge(d, c), b < d.",
        "SELECT ab.src, count(*) FROM edge ab, edge bc, edge ad, edge dc WHERE ab.dst = bc.src "
        "AND ad.src = ab.src AND dc.src = ad.dst AND dc.dst = bc.dst AND ab.dst < ad.dst GROUP BY ab.src",
        settings,
        note="two paths of two edges from the least vertex to the same end, in the graph whose edges go "
        "from the smaller to the larger vertex.",
    )


def three_paths(scale: int, *settings: Setting) -> View:
    return _on_rmat(
        "three-paths",
        "paths of three edges, by their beginning",
        scale,
        "paths[a] = count() <- edge(a, b), edge(b, c), edge(c, d).",
        "SELECT r.src, count(*) FROM edge r, edge s, edge t "
        "WHERE r.dst = s.src AND s.dst = t.src GROUP BY r.src",
        settings,
        pathway="paths",
    )


def degrees(scale: int, *settings: Setting) -> View:
    return _on_rmat(
        "degrees",
        "degrees",
        scale,
        "degree[a] = count() <- edge(a, _).",
        "SELECT src, count(*) FROM edge GROUP BY src",
        settings,
        **dict.fromkeys(("differential", "pathway"), "degrees"),
    )


def choices(scale: int, *settings: Setting) -> View:
    return _on_rmat(
        "choices",
        "doubles by a choice, sum by group",
        scale,
        "cost[a] = sum(p) <- edge(a, b), p = if(b % 2 = 0, b * 0.5, b / 3).",
        "SELECT src, sum(CASE WHEN dst % 2 = 0 THEN dst * 0.5e0 ELSE dst / 3 END) FROM edge GROUP BY src",
        settings,
    )


def two_path_sums(scale: int, *settings: Setting) -> View:
    return _on_rmat(
        "two-path-sums",
        "paths of two edges, sum by group",
        scale,
        "total[a] = sum(c) <- edge(a, b), edge(b, c).",
        "SELECT r.src, sum(s.dst)::BIGINT FROM edge r, edge s WHERE r.dst = s.src GROUP BY r.src",
        settings,
        **dict.fromkeys(("differential", "pathway"), "sums"),
    )


_Q6_SQL = (
    "SELECT i.tag, count(*) FROM knows ab, knows bc, interest i "
    "WHERE ab.dst = bc.src AND bc.dst = i.person AND ab.src <> bc.dst{more} GROUP BY i.tag"
)
_NOT_KNOWN = " AND NOT EXISTS (SELECT 1 FROM knows ac WHERE ac.src = ab.src AND ac.dst = bc.dst)"


def _some_persons(setting: Setting) -> Stream:
    """LSQB's ``knows`` and ``interest`` of every second person."""
    knows, interest = rows_of("lsqb/knows"), rows_of("lsqb/interest")
    persons = np.unique(knows)[::2]
    among = knows[np.isin(knows, persons).all(axis=1)]
    found = drawn(among, setting.kind, setting.size, setting.count, "knows")
    return Stream(
        {**found.tables, "interest": interest[np.isin(interest[:, 0], persons)]}, found.transactions
    )


def lsqb(number: int, *settings: Setting) -> View:
    negated = ", !knows(a, c)" if number == 9 else ""
    return View(
        f"lsqb-q{number}",
        f"LSQB q{number} by tag, scale 0.1, every second person",
        {"knows": ("src", "dst"), "interest": ("person", "tag")},
        f"q{number}[t] = count() <- knows(a, b), knows(b, c), interest(c, t), a != c{negated}.",
        {(f"q{number}",): _Q6_SQL.format(more=_NOT_KNOWN if number == 9 else "")},
        _some_persons,
        settings,
        note="changes of knows; a tag's count is of the pairs of persons two steps apart.",
    )


EXISTENCE_SQL = (
    "SELECT DISTINCT r.src FROM e r, e s, e t WHERE r.dst = s.src AND s.dst = t.dst AND r.src = t.src"
)


def hubs(name: str, *settings: Setting) -> View:
    return View(
        f"existence-{name}",
        f"existence (vertices at the beginning of a triangle), window of {name}",
        {"e": ("src", "dst")},
        existence.RULE,
        {("hub",): EXISTENCE_SQL},
        window_of(name),
        settings,
        "hubs",
        note=f"the last {existence.WINDOWS[name][0]:,} arrivals without self-loops.",
    )


def star_sums(n_orders: int, *settings: Setting) -> View:
    tables = {name: f"orders-{n_orders}/{name}" for name in ("customer", "orders", "lineitem")}
    beside = {name: tables[name] for name in ("customer", "orders")}
    return View(
        f"star-sums-{n_orders}",
        f"star join with sums, {n_orders // 10:,} customers, {n_orders:,} orders",
        {
            "customer": ("custkey", "segment"),
            "orders": ("orderkey", "custkey"),
            "lineitem": ("orderkey", "linenumber"),
        },
        "spent[s] = sum(n) <- customer(c, s), orders(o, c), lineitem(o, n).",
        {
            ("spent",): "SELECT segment, sum(linenumber)::BIGINT FROM customer c, orders o, lineitem l "
            "WHERE c.custkey = o.custkey AND o.orderkey = l.orderkey GROUP BY segment"
        },
        drawn_from("lineitem", tables["lineitem"], beside),
        settings,
        note="changes of lineitem.",
    )


def order_books(table: str, *settings: Setting) -> View:
    return View(
        table,
        f"aggregates of an {table.replace('-', ' ', 1)}",
        dict.fromkeys(order_book.RELATIONS, order_book.COLUMNS),
        order_book.RULES,
        order_book.SQL,
        replayed(table),
        settings,
        note="ten heads: sums, best prices and their quotients by broker and side, volumes by price level.",
    )


def finance(table: str, *settings: Setting) -> View:
    return View(
        table.replace("order-book", "finance"),
        f"range sums over an {table.replace('-', ' ', 1)}",
        dict.fromkeys(order_book.RELATIONS, order_book.COLUMNS),
        order_book.FINANCE_RULES,
        order_book.FINANCE_SQL,
        replayed(table),
        settings,
        kept_by=OF_SUMS,
        note="AXF and BSP of DBToaster's finance views: by broker, sums over pairs of far prices "
        "and over pairs in the order of time.",
    )


def five(table: str, *settings: Setting) -> View:
    """Without the ways that list pairs of rows: a bar that moves meets all of them."""
    return View(
        table.replace("order-book", "finance-five"),
        f"five finance views of an {table.replace('-', ' ', 1)}",
        dict.fromkeys(order_book.RELATIONS, order_book.COLUMNS),
        order_book.FIVE_RULES,
        order_book.FIVE_SQL,
        replayed(table),
        settings,
        kept_by=OF_THRESHOLDS,
        note="VWAP, AXF, BSP, PSP and MST, all of them after each transaction.",
    )


def hub_graph(neighbours: int) -> Rows:
    """A vertex with so many neighbours, and twice as many edges among these, drawn at random."""
    generator = np.random.default_rng(1)
    ends = 1 + generator.integers(0, neighbours, (2, 2 * neighbours))
    spokes = np.arange(1, neighbours + 1)
    source = np.concatenate([0 * spokes, ends[0]])
    return np.column_stack(graphs.oriented(source, np.concatenate([spokes, ends[1]])))


def hub_triangles(neighbours: int, *settings: Setting) -> View:
    def stream(setting: Setting) -> Stream:
        return around_hub(hub_graph(neighbours), setting.kind, setting.count, "edge")

    return View(
        f"hub-{neighbours}",
        f"triangles around a hub of {neighbours:,} neighbours",
        EDGE,
        TRIANGLE_RULE,
        {("tri",): TRIANGLE_SQL},
        stream,
        settings,
        "triangles",
        "triangles",
        note="by edges: single edges of the hub. By nodes: all edges of a vertex in one transaction, however "
        "many these are.",
    )


def grid() -> list[View]:
    """What every strategy and peer keeps; about 20 minutes on two slow cores."""
    all_sizes = (1, 10, 100, 1_000, 10_000)
    return [
        triangles(14, *sizes(*all_sizes), *sizes(kinds=("insert", "erase", "window"), at=1)),
        four_cycles(10, *sizes(1, 10, 100)),
        three_paths(11, *sizes(1, 10, 100, 1_000)),
        lsqb(6, *sizes(1, 10, 100)),
        lsqb(9, *sizes(1, 10, 100)),
        hubs("random-8", Setting("window", 1), Setting("window", 10), Setting("window", 100)),
        degrees(14, *sizes(*all_sizes)),
        two_path_sums(14, *sizes(*all_sizes)),
        star_sums(30_000, *sizes(*all_sizes)),
        order_books("order-book", *(Setting("replay", size) for size in all_sizes)),
        finance("order-book", *(Setting("replay", size) for size in (1, 100, 1_000))),
        five("order-book", *(Setting("replay", size) for size in (1, 100, 1_000))),
        hub_triangles(13_000, Setting("hub by edges", 1), Setting("hub by nodes", 100)),
        *recursive_views.recursions(),
    ]


def beside_differential() -> list[View]:
    """docs/design/targets.md, "Maintenance beside differential dataflow": `auto`, `trace` and the peer."""
    kept_by = ("lftj:delta", "lftj:trace", "lftj:stages", "lftj", "differential")
    mixed = tuple(Setting("mixed", size) for size in (1, 10, 100, 1_000, 10_000))
    views = [
        triangles(17, *mixed),
        degrees(17, Setting("mixed", 1_000)),
        two_path_sums(14, Setting("mixed", 1), Setting("mixed", 100)),
        hubs("mathoverflow", Setting("window", 1), Setting("window", 100)),
        triangles(14, Setting("mixed", 1, in_flight=1_000)),
    ]
    views[-1] = replace(
        views[-1],
        title=f"{views[-1].title}, many transactions in flight",
        note="differential dataflow is handed 1,000 transactions before they are waited for; the others "
        "commit one after the other.",
    )
    return [
        replace(view, name=f"beside-{view.name}", kept_by=tuple(filter(view.kept_by.__contains__, kept_by)))
        for view in [*views, *recursive_views.recursions()]
        if view.differential
    ]


def quick() -> list[View]:
    """Small generated views of every kind: some seconds in all."""
    return [
        triangles(8, *sizes(1, 10, at=10), Setting("mixed", 1, in_flight=100)),
        four_cycles(8, *sizes(1, kinds=())),
        three_paths(8, *sizes(10, kinds=())),
        replace(hubs("random-8", Setting("window", 10)), name="existence-quick"),
        degrees(8, *sizes(10, kinds=("window",), at=10)),
        two_path_sums(8, *sizes(10, kinds=("insert", "erase"), at=10)),
        star_sums(1_000, *sizes(100, kinds=())),
        order_books("order-book-2000", Setting("replay", 100)),
        finance("order-book-2000", Setting("replay", 100)),
        five("order-book-2000", Setting("replay", 100)),
        hub_triangles(200, Setting("hub by edges", 1), Setting("hub by nodes", 100)),
        *recursive_views.quick(),
    ]


def named(name: str) -> View:
    """The view called ``name``.  Raises KeyError.

    >>> named("degrees-rmat-14").heads
    ('degree',)
    """
    for view in [*grid(), *beside_differential(), *quick()]:
        if view.name == name:
            return view
    raise KeyError(f"no view is called {name!r}")
