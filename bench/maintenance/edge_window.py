"""A window that slides over a stream of edges, with a rule kept up to date: what a child of the harness runs.

Invariants

1. The relation holds the distinct edges among the last ``window`` arrivals.
2. After every transaction the change of the head is that which strategy `delta` finds, or the run fails.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import pyarrow as pa

from bench.graphs import distinct
from bench.maintenance.existence import STEPS, WARM_UP_STEPS
from bench.maintenance.maintained import timed_change
from bench.report.repetition import Times, percentiles
from bench.workload import Workload
from maintenance import Workspace

Edge = tuple[int, int]

COUNTED = ("surgeries", "regions", "matches", "opens", "nexts", "seeks")
COMPARED = COUNTED[2:]
"""What is set against the operations of the delta rules; surgeries and regions are shown apart."""


def window_steps(
    source: np.ndarray, destination: np.ndarray, window: int
) -> Iterator[list[tuple[int, Edge]]]:
    """The changes of each step after the first full window: one arrival, then one departure.

    +1: the edge was not there; -1: its last arrival in the window leaves.

    >>> ends = np.array([1, 2, 1, 3]), np.array([5, 6, 5, 7])
    >>> list(window_steps(*ends, window=2))
    [[], [(1, (3, 7)), (-1, (2, 6))]]
    """
    edges = list(zip(source.tolist(), destination.tolist(), strict=True))
    held = Counter(edges[:window])
    for arrives, leaves in zip(edges[window:], edges, strict=False):
        changes = []
        held[arrives] += 1
        if held[arrives] == 1:
            changes.append((1, arrives))
        held[leaves] -= 1
        if not held[leaves]:
            changes.append((-1, leaves))
        yield changes


class Window:
    """``load``, ``first``, ``times``, ``figures`` are called in this order."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table]) -> None:
        self.rule = workload.queries["lftj"]
        self.head = self.rule.partition("(")[0]
        self.window = workload.window
        source, destination = (column.to_numpy() for column in tables["e"].columns)
        proper = source != destination
        self.source, self.destination = source[proper], destination[proper]
        self.workspace = Workspace()
        self.delta = Workspace()
        self._seconds: list[float] = []
        self._counted = Counter[str]()
        self._by_rules = 0
        self._steps = 0
        self._head_changes = 0

    def load(self) -> None:
        """The first full window."""
        first = distinct(self.source[: self.window], self.destination[: self.window])
        self.workspace.load("e", {"src": first[0], "dst": first[1]})
        self.delta.load("e", {"src": first[0], "dst": first[1]})
        self.delta.install(self.rule, "delta")

    def first(self) -> int:
        self.workspace.install(self.rule)
        return self.workspace[self.head].count

    def times(self, least: int, spend: float) -> Iterator[Times]:
        steps = window_steps(self.source, self.destination, self.window)
        for changes in islice(steps, WARM_UP_STEPS):
            for sign, edge in changes:
                self._change(sign, edge)
        self._counted.clear()
        self._head_changes = 0
        self._by_rules = 0
        gc.collect()
        for changes in islice(steps, STEPS):
            self._steps += 1
            for sign, edge in changes:
                taken = self._change(sign, edge)
                self._seconds.append(taken[0])
                yield taken
        self.workspace.verify()

    def _change(self, sign: int, edge: Edge) -> Times:
        """One transaction, and the same change by the delta rules."""
        transaction, taken = timed_change(self.workspace, "e", edge, sign)
        stats = transaction.stats[self.head]
        for name in COUNTED:
            self._counted[name] += getattr(stats, name)
        expected = self._change_by_rules(sign, edge)
        if stats.head_changes or expected:
            found = sorted(zip(*transaction.changes[self.head].to_pydict().values(), strict=True))
            assert found == expected, (
                f"{sign:+d} {edge}: the head changes by {found}, by delta rules {expected}"
            )
        self._head_changes += stats.head_changes
        return taken

    def _change_by_rules(self, sign: int, edge: Edge) -> list[tuple[int, int]]:
        """The same change by the delta rules: the head's changes, sorted; operations are counted."""
        transaction, _ = timed_change(self.delta, "e", edge, sign)
        stats = transaction.stats[self.head]
        self._by_rules += stats.opens + stats.nexts + stats.seeks
        return sorted(zip(*transaction.changes[self.head].to_pydict().values(), strict=True))

    def figures(self) -> dict[str, float]:
        """Means per change, where nothing else is said."""
        changes = len(self._seconds)
        operations = sum(self._counted[name] for name in COMPARED)
        n_edges = self.workspace["e"].count
        records = self.workspace._heads[self.head].n_records
        return {
            **percentiles(self._seconds),
            "steps": self._steps,
            "changes": changes,
            "head changes": self._head_changes,
            "operations and matches": operations / changes,
            **{name: self._counted[name] / changes for name in COUNTED},
            "operations of delta rules": self._by_rules / changes,
            "operations ratio": self._by_rules / operations if operations else math.inf,
            "edges in the window": n_edges,
            "records/edge": records / n_edges,
            "sensitivity MiB": self.workspace.sensitivity_bytes / 2**20,
        }
