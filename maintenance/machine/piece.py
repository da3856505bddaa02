"""What one transaction did, read from the machine's log when somebody asks.

Invariants

1. The log is only written behind its end; an item that says how long a piece is is 0 until that is published.
2. A piece is decoded when it is first asked for; all that it needs it holds, the codes of values too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lftj.values.collector import Held
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import CodedChanges, held_codes
from maintenance.changes.head_changes import Changes
from maintenance.machine.program import Layout
from maintenance.machine.records import HEAD, Block
from maintenance.machine.wide_rows import change_of
from maintenance.stats import RuleStats, TransactionStats


class Piece:
    """Of a log from an item on; ``attempt``: the number of the transaction, which another that is published
    there has not."""

    __slots__ = ("__weakref__", "_attempt", "_layout", "_log", "_start", "is_begun", "lease", "seconds")

    def __init__(self, log: memoryview, start: int, attempt: int, layout: Layout) -> None:
        self._log, self._start, self._attempt, self._layout = log, start, attempt, layout
        self.lease = layout.lease.current
        """Until the codes are held."""
        self.seconds = 0.0
        self.is_begun = False
        """Whether it has to be settled, or told to somebody."""

    @property
    def is_published(self) -> bool:
        log, start = self._log, self._start
        return log[start] > 0 and log[start + 1] == self._attempt

    def _blocks(self) -> Iterator[tuple[str, Block, Change]]:
        log, at = np.asarray(self._log), self._start + HEAD
        end = self._start + int(log[self._start])
        while at < end:
            block = Block.view(log, at)
            n, arity = int(block.rows), self._layout.arities[int(block.relation)]
            at += Block.LENGTH
            items = log[at : at + n * (arity + 1)].reshape(arity + 1, n).copy()
            name = self._layout.names[int(block.relation)]
            yield name, block, self._change(name, items[:-1], items[-1])
            at += n * (arity + 1)

    def _change(self, name: str, rows: np.ndarray, weights: np.ndarray) -> Change:
        known = self._layout.staged.get(name)
        return Change(rows, weights) if known is None else change_of(name, known[3], rows, weights)

    def changed(self) -> dict[str, Change]:
        """The changes of all relations and heads that changed."""
        return {name: change for name, _, change in self._blocks() if len(change)}

    def held(self) -> list[Held]:
        """The codes that are to keep their values."""
        shown = self._layout.shown
        return held_codes(self, shown, self.changed() if self.is_published else {})

    def coded_changes(self) -> CodedChanges:
        """The changes of heads that a user knows of."""
        shown = self._layout.shown
        return CodedChanges(shown, {name: its for name, its in self.changed().items() if name in shown})

    def changes(self) -> Changes:
        """For ``tx.changes``."""
        return Changes(tuple(self._layout.shown), self.coded_changes())

    def stats(self) -> TransactionStats:
        """For ``tx.stats``."""
        layout = self._layout
        stats = TransactionStats(strategies=dict(layout.strategies), seconds=self.seconds, fast=1)
        for name, block, change in self._blocks():
            if name in layout.staged:
                inserted = int(np.count_nonzero(change.weights > 0))
                stats.inserted[name], stats.erased[name] = inserted, len(change) - inserted
                stats.no_changes[name] = max(0, int(block.staged) - len(change))
            else:
                stats.rules[name] = _figures(layout.strategies[name], layout.chosen[name], block)
        return stats


def _figures(strategy: str, chosen: tuple[str, ...], block: Block) -> RuleStats:
    figures = RuleStats(strategy, head_changes=int(block.rows), chosen=chosen)
    figures.opens, figures.nexts, figures.seeks = int(block.opens), int(block.nexts), int(block.seeks)
    figures.empty_regions, figures.surgeries = int(block.failed), int(block.surgeries)
    figures.regions = int(block.regions)
    return figures
