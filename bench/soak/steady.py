"""Whether a soak stays as it was: what no commit may take, and how far what is held may grow, in counters.

A commit's own *rows* are those that came or went in relations and heads.  What it takes is set beside what an
ordinary one takes: the median over all commits, and for each of its rows the median per row.

1. No commit takes more than WORST times that: operations of evaluation, and rows moved for order and space.
2. What a workspace holds, kind by kind (:mod:`bench.soak.sizes`), is in the second half of the run at most
   GROWTH times what it was in the first.  But runs fill up until they are merged into bases: how the tuples
   are shared between them says nothing.

Times are told and not judged: they belong to a machine and to what else it does.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from bench.soak.sizes import Sizes
from maintenance.stats import TransactionStats

WORST = 20
LEAST_MOVED = 1 << 12
"""Rows that a commit may always be taken to move: one piece of a merge into a base."""

GROWTH = 1.3
SHARES = {"base_tuples", "run_tuples"}
ROOM = {"bytes": 1 << 16, "count": 1 << 8}
"""What small structures may vary by beside that: arrays have room for growth, and groups come and go."""

FEWEST = 100
"""Commits, and SAMPLES sizes, below which nothing can be said."""
SAMPLES = 8


class Worst(NamedTuple):
    """The commit that took the most, beside what an ordinary one would have for as many rows."""

    number: int
    rows: int
    taken: int
    times: float


class Steadiness:
    """What the commits of a run took, and what was held meanwhile.

    >>> steady = Steadiness()
    >>> for taken in (10, 12, 11, 500):
    ...     steady.enter_counts(rows=1, operations=taken, moved=0, seconds=0.0)
    >>> steady.worst("operations")
    Worst(number=4, rows=1, taken=500, times=21.73913043478261)
    """

    def __init__(self) -> None:
        self._rows, self._seconds = array("q"), array("d")
        self._taken = {"operations": array("q"), "moved": array("q")}
        self._sizes: list[Sizes] = []
        self._told = 0  # commits that figures() has spoken of

    @property
    def n_commits(self) -> int:
        return len(self._rows)

    @property
    def says_something(self) -> bool:
        """Whether there were commits enough."""
        return self.n_commits >= FEWEST

    def enter(self, stats: TransactionStats) -> None:
        """A commit's figures."""
        rows = sum([*stats.inserted.values(), *stats.erased.values()])
        self.enter_counts(
            rows=rows + sum([rule.head_changes for rule in stats.rules.values()]),
            operations=sum([rule.operations for rule in stats.rules.values()]),
            moved=stats.housekeeping_rows,
            seconds=stats.seconds,
        )

    def enter_counts(self, rows: int, operations: int, moved: int, seconds: float) -> None:
        self._rows.append(rows)
        self._seconds.append(seconds)
        self._taken["operations"].append(operations)
        self._taken["moved"].append(moved)

    def enter_sizes(self, sizes: Sizes) -> None:
        """What is held now; asked for at even distances."""
        self._sizes.append(sizes)

    def worst(self, what: str) -> Worst:
        """Of ``operations``, or of rows ``moved``; there is a commit that changed something."""
        rows, taken = np.array(self._rows), np.array(self._taken[what])
        changed = rows > 0
        ordinary = float(np.median(taken[changed]))
        if what == "moved":
            ordinary = max(ordinary, LEAST_MOVED)
        times = taken / (ordinary + float(np.median(taken[changed] / rows[changed])) * rows)
        number = int(times.argmax())
        return Worst(number + 1, int(rows[number]), int(taken[number]), float(times[number]))

    def check(self) -> None:
        """Raise AssertionError where the module's statements do not hold; few commits say nothing."""
        if self.says_something:
            for what, name in (("operations", "took {:,} operations"), ("moved", "moved {:,} rows")):
                worst = self.worst(what)
                assert worst.times <= WORST, (
                    f"transaction {worst.number:,}, of {worst.rows:,} rows that came or went,"
                    f" {name.format(worst.taken)}, {worst.times:.1f} times what an ordinary one does"
                )
        if len(self._sizes) >= SAMPLES:
            self._check_growth()

    def _check_growth(self) -> None:
        half = len(self._sizes) // 2
        first, second = (
            [asdict(sizes) for sizes in part] for part in (self._sizes[:half], self._sizes[half:])
        )
        for name in [name for name in first[0] if name not in SHARES]:
            before, after = (max(sizes[name] for sizes in part) for part in (first, second))
            room = ROOM["bytes" if name.endswith("bytes") else "count"]
            assert after <= GROWTH * before + room, (
                f"{name.replace('_', ' ')} grew while the data stayed: at most {before:,} in the first half"
                f" of the run and {after:,} in the second"
            )

    def figures(self) -> str:
        """Of the commits since this was asked last the median, the slowest and the work."""
        seconds, moved = np.array(self._seconds[self._told :]), self._taken["moved"][self._told :]
        self._told = self.n_commits
        median = float(np.median(seconds))
        return (
            f"slowest commit {seconds.max() * 1e3:.2f} ms, {seconds.max() / median:.1f} times the median of"
            f" {median * 1e3:.2f} ms; at most {max(moved):,} rows moved"
        )

    def __str__(self) -> str:
        """What was found, for the end of a run that changed something."""
        operations, moved = self.worst("operations"), self.worst("moved")
        seconds = np.array(self._seconds)
        slowest = " and ".join(f"{part:.2f}" for part in np.quantile(seconds, (0.5, 0.999)) * 1e3)
        return (
            f"no commit took more than {operations.times:.1f} times the operations of an ordinary one of its"
            f" size, or moved more than {moved.times:.1f} times the rows; median and p99.9 {slowest} ms,"
            f" slowest {seconds.max() * 1e3:.2f} ms or {seconds.max() / np.median(seconds):.1f} medians"
        )
