"""What a run of many transactions came to: sums and percentiles of their figures, as a table to read.

Cost: 8 bytes per transaction and head, for the percentiles of the times.
"""

from __future__ import annotations

import io
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lftj.values.shown_text import counted
from maintenance.stats import RuleStats, TransactionStats

_COUNTS = {
    "changes": "head_changes",
    "surgeries": "surgeries",
    "matches": "matches",
    "regions": "regions",
    "operations": "operations",
}
"""What is added up of a head's figures, by the title of its column."""


@dataclass
class _HeadFigures:
    strategy: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    seconds: array[float] = field(default_factory=lambda: array("d"))

    def add(self, stats: RuleStats, n_transactions: int) -> None:
        self.strategy = stats.strategy
        self.counts.update({title: getattr(stats, name) for title, name in _COUNTS.items()})
        self.seconds.extend([stats.seconds / n_transactions] * n_transactions)


class Summary:
    """Sums over transactions."""

    def __init__(self) -> None:
        self.transactions = 0
        self.changes = 0
        self.no_changes = 0
        self.late = 0
        self.expired = 0
        self._seconds = array("d")
        self._heads: dict[str, _HeadFigures] = {}

    def add(self, n_changes: int, stats: TransactionStats, n_transactions: int = 1) -> None:
        """Count transactions that were committed in one call and had ``n_changes`` rows.

        Each is taken to have its share of the time.
        """
        self.transactions += n_transactions
        self.changes += n_changes
        self.no_changes += sum(stats.no_changes.values())
        self.late += sum(stats.late.values())
        self.expired += sum(stats.expired.values())
        self._seconds.extend([stats.seconds / n_transactions] * n_transactions)
        for head, figures in stats.rules.items():
            self._heads.setdefault(head, _HeadFigures()).add(figures, n_transactions)

    def render(self, rows: Mapping[str, int]) -> str:
        """The summary as text; ``rows``: tuples of each head, all of which get a line.

        Times of a head are of the transactions that changed what it reads.

        >>> print(Summary().render({"tri": 3}))
        0 transactions, 0 changes in, 0 no-ops
         head  strategy  rows  changes  surgeries  matches  regions  operations  p50 ms  p90 ms  max ms
        ────────────────────────────────────────────────────────────────────────────────────────────────
         tri                3        0          0        0        0           0       -       -       -
        """
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True, collapse_padding=True)
        for label in ("head", "strategy"):
            table.add_column(label, no_wrap=True)
        for label in ("rows", *_COUNTS, "p50 ms", "p90 ms", "max ms"):
            table.add_column(label, justify="right", no_wrap=True)
        for head, n_rows in rows.items():
            figures = self._heads.get(head, _HeadFigures())
            counts = (n_rows, *(figures.counts[title] for title in _COUNTS))
            times = _milliseconds(figures.seconds)
            table.add_row(head, figures.strategy, *(f"{count:,}" for count in counts), *times)
        page = io.StringIO()
        # As wide as it is: a terminal that is narrower breaks lines, where rich would leave figures out.
        Console(file=page, width=1000, color_system=None, highlight=False).print(table)
        lines = [line.rstrip() for line in page.getvalue().splitlines()]
        return "\n".join([self._first_line(), *lines])

    def _first_line(self) -> str:
        counts = [
            counted(count, noun) + more
            for count, noun, more in (
                (self.transactions, "transaction", ""),
                (self.changes, "change", " in"),
                (self.no_changes, "no-op", ""),
            )
        ]
        of_streams = ((self.late, "row", " too late"), (self.expired, "row", " expired"))
        counts += [counted(count, noun) + more for count, noun, more in of_streams if count]
        if self._seconds:
            p50, p90, most = _milliseconds(self._seconds)
            counts.append(f"a commit takes {p50} ms (p50), {p90} (p90), {most} (max)")
        return ", ".join(counts)


def _milliseconds(seconds: array[float]) -> tuple[str, str, str]:
    """Half, nine tenths and all of the times are at most so long."""
    if not seconds:
        return "-", "-", "-"
    p50, p90, most = np.quantile(np.frombuffer(seconds), (0.5, 0.9, 1.0))
    return f"{p50 * 1000:.3g}", f"{p90 * 1000:.3g}", f"{most * 1000:.3g}"
