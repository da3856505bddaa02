"""``python -m bench.record_gaps``: what each width of ``record_gap`` costs and saves under strategy `trace`.

    python -m bench.record_gaps             into bench/results/record-gaps.md
    python -m bench.record_gaps --quick     a small graph, printed alone

A wider gap makes fewer records, so installing is quicker and takes less memory, while each change meets
more of them (docs/design/engine.md section 5).  The default (:data:`maintenance.heads.keeping.RECORD_GAP`) is
the width at which neither side gains much by going on.  Every width sees the same changes in turn with the
others, so that a slower minute of the machine falls on all of them; the heads are compared at the end.
Times are processor time of one thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa

from bench import graphs
from bench.maintenance.edge_stream import Edge, EdgeStream
from bench.report.markdown import number, table
from bench.report.options import HOME
from maintenance import Workspace
from maintenance.heads.keeping import RECORD_GAP

GAPS = (0, 1, 3, 5, RECORD_GAP, 17, 33)
BUILDS = 3
"""The best of so many."""

_HEAD = "h"


@dataclass(frozen=True)
class _Question:
    title: str
    rule: str
    scale: int
    commits: int


_TRIANGLE = "edge(a, b), edge(b, c), edge(a, c)"

QUESTIONS = [
    _Question("triangles, RMAT 14/8", f"{_HEAD}(a, b, c) <- {_TRIANGLE}.", 14, 1_000),
    _Question("vertices with a triangle, RMAT 14/8", f"{_HEAD}(a) <- {_TRIANGLE}.", 14, 1_000),
    _Question(
        "4-cliques, RMAT 11/8",
        f"{_HEAD}(a, b, c, d) <- {_TRIANGLE}, edge(a, d), edge(b, d), edge(c, d).",
        11,
        1_000,
    ),
    _Question(
        "open paths, RMAT 10/8", f"{_HEAD}(a, b, c) <- edge(a, b), edge(b, c), !edge(a, c).", 10, 1_000
    ),
]
QUICK = [_Question("triangles, RMAT 8/8", f"{_HEAD}(a, b, c) <- {_TRIANGLE}.", 8, 50)]


@dataclass
class _Kept:
    """One workspace that keeps the rule with one width, and what its commits took."""

    workspace: Workspace
    build: float
    records: int = 0
    operations: list[int] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def commit(self, weight: int, edge: Edge) -> None:
        started = time.thread_time()
        with self.workspace.transaction() as transaction:
            (transaction.insert if weight > 0 else transaction.erase)("edge", [edge])
        self.seconds.append(time.thread_time() - started)
        stats = transaction.stats[_HEAD]
        self.operations.append(stats.opens + stats.nexts + stats.seeks)
        self.matches.append(stats.matches)
        self.records = stats.records


def _edges(scale: int) -> np.ndarray:
    """(m, 2): distinct edges from the smaller to the larger vertex, in a random order."""
    edges = np.stack(graphs.oriented(*graphs.rmat(scale)), axis=1)
    return np.random.default_rng(1).permutation(edges)


def _loaded(edges: np.ndarray, gap: int) -> Workspace:
    workspace = Workspace(record_gap=gap)
    workspace.load("edge", pa.table({"a": edges[:, 0], "b": edges[:, 1]}))
    return workspace


def _installed(question: _Question, edges: np.ndarray, gap: int) -> _Kept:
    """The rule installed; the least processor time of a few times that this took."""
    found = []
    for _ in range(BUILDS):
        workspace = _loaded(edges, gap)
        workspace.count(question.rule, threads=1)  # the indices of a query are those of the rule
        started = time.thread_time()
        workspace.install(question.rule, "trace", threads=1)
        found.append(time.thread_time() - started)
    return _Kept(workspace, min(found))


def _plain(question: _Question, edges: np.ndarray) -> float:
    """Least processor time of a query that gives the same rows."""
    workspace = _loaded(edges, 0)
    found = []
    for _ in range(BUILDS + 1):
        started = time.thread_time()
        workspace.query(question.rule, threads=1)
        found.append(time.thread_time() - started)
    return min(found[1:])


def measure(question: _Question) -> Iterator[list[str]]:
    """A row of the table for each width.  Raises AssertionError where two heads differ."""
    edges = _edges(question.scale)
    present, fresh = edges[: -question.commits], edges[-question.commits :]
    kept = {gap: _installed(question, present, gap) for gap in GAPS}
    changes = EdgeStream(
        [(a, b) for a, b in present.tolist()], iter([(a, b) for a, b in fresh.tolist()]), seed=1
    )
    for turn, (weight, edge) in enumerate(islice(changes, question.commits)):
        for gap in GAPS if turn % 2 == 0 else GAPS[::-1]:
            kept[gap].commit(weight, edge)
    if len({len(one.workspace[_HEAD]) for one in kept.values()}) != 1:
        raise AssertionError(f"{question.title}: the widths do not find the same")
    plain = _plain(question, present)
    for gap, one in kept.items():
        quartiles = np.quantile(one.seconds, (0.25, 0.5, 0.75)) * 1e3
        yield [
            question.title,
            f"{gap}, the default" if gap == RECORD_GAP else str(gap),
            f"{one.records:,}",
            number(one.workspace.sensitivity_bytes / 1e6),
            number(one.build / plain),
            number(statistics.fmean(one.operations)),
            number(statistics.fmean(one.matches)),
            f"{quartiles[1]:.3f} ({quartiles[0]:.3f} - {quartiles[2]:.3f})",
        ]


HEADS = [
    "rule, edges",
    "record_gap",
    "records",
    "MB",
    "install / query",
    "operations, mean",
    "matches, mean",
    "commit of one edge, ms: median (quartiles)",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.record_gaps", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a small graph, printed alone")
    quick = parser.parse_args().quick
    rows: list[list[str]] = []
    for question in QUICK if quick else QUESTIONS:
        print(question.title, file=sys.stderr)
        rows += measure(question)
    text = table(HEADS, rows)
    print(text)
    if not quick:
        HOME.mkdir(parents=True, exist_ok=True)
        heading = (
            "# Widths of record_gap\n\nStrategy `trace`, the same changes in turn, one thread's time.\n\n"
        )
        (HOME / "record-gaps.md").write_text(heading + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
