"""Rules that are kept up to date, those with full heads.

Floors and goals: docs/design/targets.md "Maintenance".

Variants of lftj stand beside it in the same run:

None: strategy `auto`, except where the install of recorded rules is measured.
``trace``: every change followed by records.
``recompute``: the rule evaluated whole, which a commit saves.
``exact records``: ``record_gap=0``, the records of the trace as ILFTJ has them.
``without records``: strategy `delta`.
``plain evaluation``: the rule evaluated whole, with nothing recorded.
``one transaction``: the rule installed first, then all tuples inserted at once.
"""

from __future__ import annotations

from bench.joins.patterns import RMAT_COUNTS, TRIANGLE_RULE
from bench.joins.recursion import CLOSURE_RULES
from bench.workload import Target, Workload

COMMITS = 2_000
"""Timed single-edge transactions of a commit workload."""

WARM_UP_COMMITS = 200

CHURNED = 300
"""Edges that are erased and put back."""

IN_FLIGHT, BATCHES = 1_000, 20
"""Transactions of one call, and timed calls."""

BULK_TARGETS = (Target("ratio", 20, 100, "pathway"), Target("memory ratio", 5, 20, "pathway"))


def commits(scale: int) -> Workload:
    """Transactions of one edge each, half of them erasing, on the triangles of an RMAT graph."""
    targets = (Target("seconds", 0.001, 0.0002),) if scale == 17 else ()
    return Workload(
        f"commit-rmat-{scale}",
        f"commit of one edge, triangles, RMAT {scale}/8",
        {"edge": f"rmat-{scale}"},
        dict.fromkeys(("lftj", "lftj:trace", "lftj:exact records", "lftj:recompute"), TRIANGLE_RULE),
        RMAT_COUNTS[scale],
        task="commit",
        targets=targets,
        note=f"{COMMITS:,} transactions after {WARM_UP_COMMITS} to warm up, each from its beginning to the "
        "end of its commit; an erased edge is drawn from those that are there, an inserted one is new or one "
        "that was erased; the head is verified at the end. recompute: the whole rule evaluated with "
        "`db.query`, indexes built.",
    )


def closure_churn(graph: str, expected: int, title: str, targets: tuple[Target, ...] = ()) -> Workload:
    """Transactions of one edge each, half of them erasing, on the transitive closure of a graph."""
    return Workload(
        f"put-back-closure-{graph.replace('/', '-')}",
        f"commit of one edge, transitive closure, {title}",
        {"edge": graph},
        dict.fromkeys(("lftj", "lftj:recompute"), CLOSURE_RULES),
        expected,
        task="put back",
        targets=targets,
        note=f"{CHURNED:,} edges drawn from the graph, each erased and then put back; strategy `stages`; the "
        "first erasure, which counts all derivations once, is not timed; the head is verified at the end. "
        "recompute: the closure evaluated with `db.query`, indexes built.",
    )


def batches(scale: int) -> Workload:
    """Transactions of one edge each, many of them in one call."""
    targets = (Target("seconds", IN_FLIGHT / 28_558, IN_FLIGHT / 28_558 / 3),) if scale == 14 else ()
    return Workload(
        f"apply-many-rmat-{scale}",
        f"apply_many, triangles RMAT {scale}/8, of 1, {IN_FLIGHT:,} in flight",
        {"edge": f"rmat-{scale}"},
        dict.fromkeys(("lftj", "lftj:one by one"), TRIANGLE_RULE),
        RMAT_COUNTS[scale],
        task="batch",
        targets=targets,
        note=f"{BATCHES} times {IN_FLIGHT:,} transactions of one edge, changes as in `commit`, each time in "
        "one call, which gives every transaction's change of the head; one by one: a commit each. The floor "
        "is differential dataflow's 28,558 changes a second.",
    )


def view_building(scale: int) -> Workload:
    """Installing the triangle rule, with recording on, against evaluating it."""
    floors = (Target("ratio", 1 / 4, 1 / 2, "lftj:plain evaluation"), Target("bytes/record", 24, 12))
    return Workload(
        f"build-rmat-{scale}",
        f"install the triangle rule, RMAT {scale}/8",
        {"edge": f"rmat-{scale}"},
        dict.fromkeys(
            ("lftj", "lftj:exact records", "lftj:without records", "lftj:plain evaluation"), TRIANGLE_RULE
        ),
        RMAT_COUNTS[scale],
        task="install",
        targets=floors if scale == 17 else (),
        note="each run is a fresh workspace that is loaded and indexed before the time is taken; plain "
        "evaluation is `db.query`. bytes/record: `sensitivity_bytes` by the number of records.",
    )


def bulk_loads(name: str, scale: int, targets: tuple[Target, ...] = ()) -> Workload:
    """From tables in memory to a head that is kept up to date."""
    return Workload(
        name,
        f"bulk load with the triangle view on, RMAT {scale}/8",
        {"edge": f"rmat-{scale}"},
        {
            "lftj": TRIANGLE_RULE,
            "lftj:one transaction": TRIANGLE_RULE,
            "pathway": "triangles",
        },
        RMAT_COUNTS[scale],
        task="bulk load",
        targets=targets,
        note="lftj loads the relation and installs the rule; Pathway joins twice, in its static mode, and "
        "counts.",
    )
