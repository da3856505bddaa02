"""The work that reaches every kernel of maintenance, for :func:`lftj.warm_up`.

Each step is a workspace of its own over a few rows: rules of one kind, installed and
changed.  A test names the kernels that no step reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from indices.complement import missing
from indices.interval_tree import IntervalTree
from indices.max_scan import M_RECORD, M_RUN
from indices.monoid import COUNT
from indices.record_joining import join_smallest_gaps
from indices.record_merge import RecordMerge
from indices.record_run import RunImage
from indices.record_sort import number_prefixes
from indices.scan_tree import ScanTree
from indices.sensitivity import SensitivityIndex
from lftj.aggregates.limb_numbers import whole_words
from lftj.aggregates.limb_pool import LimbPool
from lftj.database.warming import CLOSURE, EDGES, SHORTEST, SUMS, TRIANGLES, VALUES
from lftj.storage.row_table import RowTable
from lftj.storage.runs import DIRECTORY_LEAST, IndexRun, RunMerge
from lftj.storage.support import SupportVersion
from lftj.values.domains import Domains
from maintenance.groups.boundaries import group_boundaries
from maintenance.strategies.stages.stage_table import LEAST_ROOM, Best, StageTable
from maintenance.strategies.trace.cut_records import cut_records
from maintenance.strategies.trace.dead_records import drop_contained
from maintenance.workspace.workspace import Workspace

HUBS = "hub(a) <- edge(a, b), edge(b, c), edge(a, c)."

_RULES = (
    TRIANGLES,
    "two(a, c) <- edge(a, b), edge(b, c).",
    HUBS,
    "alone(a, b) <- edge(a, b), !edge(b, a).",
    "far(a, c) <- edge(a, b), edge(b, c), !edge(a, c), a < c.",
    "n[a] = count() <- edge(a, b), edge(b, c).",
    "least[a] = min(c) <- edge(a, b), edge(b, c). most[a] = max(c) <- edge(a, b), edge(b, c).",
    "next[a] = b <- edge(a, b), a < 1.",
    "above(a, c) <- edge(a, b), edge(_, c), c > b, next(c).",
    "all(sum(b), count(), min(b)) <- edge(a, b).",
    "kinds(a, count(), count(distinct b)) <- edge(a, b).",
)


def steps() -> Sequence[Callable[[], object]]:
    return [
        *(partial(_maintain, rules, strategy) for strategy in ("trace", "delta") for rules in _RULES),
        partial(_maintain, TRIANGLES, "trace", sensitivity_bytes={"tri": 1 << 10}),
        partial(_maintain, HUBS, "trace", order={"hub": ["a", "b", "c"]}),
        partial(_maintain, TRIANGLES, "recompute"),
        partial(_maintain, CLOSURE, "stages"),
        partial(_maintain, SHORTEST, "stages"),
        _batch,
        _single_changes,
        _keyed,
        _sums,
        _thresholds,
        _rare,
    ]


def _maintain(rules: str, strategy: str, **options: Any) -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["src", "dst"])
    workspace.install(rules, strategy, **options)
    for source in (1, 2, 5):
        with workspace.transaction() as transaction:
            transaction.insert("edge", [(source, 5), (5, 6)])
            transaction.erase("edge", [(2, 3)])
        workspace.query("pair(a, b) <- edge(a, b).")
        with workspace.transaction() as transaction:
            transaction.insert("edge", [(2, 3)])
            transaction.erase("edge", [(source, 5), (1, 2)])
        with workspace.transaction() as transaction:
            transaction.insert("edge", [(1, 2)])
    workspace.verify()


def _batch() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["src", "dst"])
    workspace.install(f"{TRIANGLES} far[a] = sum(c) <- edge(a, b), edge(b, c).", "delta")
    rows = {"src": [1, 5, 1, 5], "dst": [5, 6, 6, 6], "weight": [1, 1, 1, -1], "txn": [1, 1, 2, 3]}
    workspace.apply_many({"edge": rows})
    with workspace.transaction() as transaction:
        transaction.apply("edge", pa.table({"src": [7], "dst": [8], "weight": [1]}))
    workspace.verify()


def _single_changes() -> None:
    workspace = Workspace(single_changes="machine")
    workspace.load("edge", EDGES, columns=["src", "dst"])
    workspace.install(f"{TRIANGLES} far[a] = sum(c) <- edge(a, b), edge(b, c).", "delta")
    workspace.install("part(a, x) <- edge(a, _), x = round(a / 3, 1).", "delta")
    published = workspace._published
    machine = published.machine
    assert machine is not None
    with published.lock:
        machine.make(published)  # it would wait for many transactions, as it is not compiled yet
    for source in range(4):
        with workspace.transaction() as transaction:
            transaction.insert("edge", [(source, 5)])
    machine.end()
    workspace.verify()


def _keyed() -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"], key=["src"])
    for source in (1, 2):
        with workspace.transaction() as transaction:
            transaction.upsert("edge", [(source, 5)])


def _sums() -> None:
    workspace = Workspace()
    workspace.load("value", VALUES)
    workspace.install(SUMS)
    for _ in range(2):
        with workspace.transaction() as transaction:
            transaction.erase("value", VALUES)
        with workspace.transaction() as transaction:
            transaction.insert("value", VALUES)
    workspace.verify()


def _thresholds() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["src", "dst"])
    workspace.install(
        """
        bar[] = upper_quantile(b, 0.5) <- edge(_, b).
        above[] = sum(a) <- edge(a, b), bar[] = m, b >= m.
        """,
        "views",
    )
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(1, 9), (2, 9)])
        transaction.erase("edge", [(2, 3)])
    workspace.verify()


def _rare() -> None:
    """What it takes large data, a failure or several cells to reach."""
    ones = np.ones(1, np.int64)
    IntervalTree.from_intervals(ones, ones).check_invariants()
    ScanTree(COUNT).insert_many(np.arange(1000))
    list(missing(ScanTree.from_sorted([2, 3], None, COUNT), 1, 4))
    index = SensitivityIndex(0, 0)
    index.record([], ones, ones, [])
    index.drop(*index.find([], ones)[M_RUN : M_RECORD + 1])
    cut_records(np.zeros((5, 1), np.int64), np.zeros((2, 1), np.int64), np.zeros(1, np.int64))
    drop_contained(np.zeros((4, 1), np.int64), np.zeros(1, np.int64), np.ones(1, np.bool_))
    join_smallest_gaps(np.array([[0, 0], [1, 5], [2, 6]]), 1, 1)
    number_prefixes([np.array([-1 << 62, 1 << 62])] * 2, 2)
    supports = SupportVersion(2).step([ones, ones], ones)[0]
    supports.below([ones], 1)
    supports.neighbours(np.ones((2, 1), np.int64), np.zeros(1, np.bool_), 1, (1, False), backwards=False)
    LimbPool().remapped(np.empty(0, np.int64))
    LimbPool().add_integers(ones, np.ones((1, 1), np.uint32), ones, np.array([0, 1]), 0)
    whole_words(LimbPool().numbers(ones), 1)
    IndexRun(np.zeros(4 * DIRECTORY_LEAST, np.int64), DIRECTORY_LEAST)
    run = IndexRun(np.array([1, 0, 1]), 1)
    RunMerge(run, run).advance(4)
    records = RunImage.of([], ones, ones, []).written()
    RecordMerge(records, records, np.stack([records.row] * 2), np.empty(0, np.uint64), 0, 0).advance(4)
    many = np.arange(2 * LEAST_ROOM)
    facts = StageTable(1)
    facts.enter(facts.gain([many], np.zeros_like(many)))
    facts.keep()
    offers = StageTable(2, Best(Domains().of(pa.int64()), is_largest=False))
    for count in (offers.gain, offers.lose):
        count([many, many], np.zeros_like(many))
        offers.keep()
    offers.tidy()
    groups = RowTable(1)
    groups.find_or_add([ones])
    groups.truncate(0)
    group_boundaries(np.ones((1, 1), np.int64), 1)
