"""Views of the grid whose rules are recursive: paths, components, and the text of a document."""

from __future__ import annotations

from bench.grid.streams import EDGE, drawn_from, sizes, typed, window_of
from bench.grid.view import OF_RECURSION, Setting, View
from bench.joins.recursion import (
    CLOSURE_RULES,
    CLOSURE_SQL,
    COMPONENT_RULES,
    COMPONENT_SQL,
    CRDT_RULES,
)
from bench.maintenance import document, existence

LAST_START = 100
"""The last vertex of which is asked what it reaches; differential dataflow's view says the same."""


def closures(graph: str, title: str, *settings: Setting) -> View:
    return View(
        f"closure-{graph}",
        f"transitive closure, {title}",
        EDGE,
        CLOSURE_RULES,
        {("path",): CLOSURE_SQL.format(of="a, b")},
        drawn_from("edge", graph),
        settings,
        "closure",
        kept_by=OF_RECURSION,
        note="what is to be inserted is held back at first, so larger transactions begin with fewer paths.",
        bodies=("edge(a, b)", "path(a, b), edge(b, c)"),
    )


def reached(name: str, *settings: Setting) -> View:
    return View(
        f"reach-{name}",
        f"what {LAST_START} vertices reach, window of {name}",
        {"e": ("src", "dst")},
        f"reach(a, b) <- e(a, b), a <= {LAST_START}. reach(a, c) <- reach(a, b), e(b, c).",
        {
            ("reach",): f"WITH RECURSIVE reach(a, b) AS (SELECT src, dst FROM e WHERE src <= {LAST_START}"
            " UNION SELECT reach.a, e.dst FROM reach, e WHERE reach.b = e.src) SELECT a, b FROM reach"
        },
        window_of(name),
        settings,
        "reach",
        kept_by=OF_RECURSION,
        note=f"from each of the vertices numbered up to {LAST_START}; the last "
        f"{existence.WINDOWS[name][0]:,} arrivals without self-loops.",
        bodies=(f"e(a, b), a <= {LAST_START}", "reach(a, b), e(b, c)"),
    )


def components(graph: str, title: str, *settings: Setting) -> View:
    return View(
        f"components-{graph}",
        f"connected components by least label, {title}",
        EDGE,
        COMPONENT_RULES,
        {("label",): COMPONENT_SQL.format(of="x, l")},
        drawn_from("edge", graph),
        settings,
        "labels",
        kept_by=OF_RECURSION,
        note="a vertex is there as long as it has an edge.",
        bodies=("edge(x, _)", "edge(_, x)", "label[x] = l, edge(x, y)", "label[x] = l, edge(y, x)"),
    )


def texts(name: str, tables: str, title: str, *settings: Setting) -> View:
    """``tables``: the names of the document's tables, with ``{}`` for ``insert`` and ``remove``."""
    return View(
        name,
        f"text of a document from its edits, {title}",
        document.COLUMNS,
        CRDT_RULES,
        {("result",): ""},
        typed(tables),
        settings,
        kept_by=("lftj:recompute", "lftj"),
        note="two recursions with aggregates and negation between them; peers are not asked.",
        bodies=(
            "sibling(c, n, d, m)",
            "insert(c, n, pc, pn), !sibling(c, n, _, _), later(pc, pn, d, m)",
            "value(c, n), next(c, n, d, m)",
            "next_by_blanks(c, n, v, w), next(v, w, d, m), !value(v, w)",
        ),
    )


def recursions() -> list[View]:
    """docs/design/targets.md, "Recursion"."""
    return [
        closures("upward-3000-4436", "3,000 nodes, 4,436 edges upward", *sizes(1, 10, 100, kinds=())),
        reached("mathoverflow", Setting("window", 1), Setting("window", 100)),
        components("email-enron", "email-enron", *sizes(1, 100, kinds=())),
        texts(
            "crdt", "recursion/crdt-{}", "259,778 edits", Setting("keystrokes", 1), Setting("keystrokes", 100)
        ),
    ]


def quick() -> list[View]:
    """Small generated ones."""
    return [
        closures("upward-300-440", "300 nodes, 440 edges upward", Setting("mixed", 1)),
        reached("random-8", Setting("window", 10)),
        components("upward-600-400", "600 nodes, 400 edges", Setting("mixed", 1)),
        texts("crdt-2000", "document-2000/{}", "2,667 edits", Setting("keystrokes", 1)),
    ]
