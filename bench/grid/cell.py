"""`Cell`: what came of one strategy or peer on one view with one setting; and whether cells agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

Status = Literal[
    "ok", "differs", "time limit", "not installed", "no view", "no data", "failed", "interrupted"
]

Sums = tuple[int, int]
"""Weight and checksum of all heads (:mod:`bench.digest`)."""


@dataclass
class Cell:
    """Times are seconds; ``processor`` times are of all threads of whole commits.

    Attributes:
        view: A name of :mod:`bench.grid.views`.
        engine: Of its ``kept_by``.
        setting: The setting's title.
        kind, size: Of the changes.
        status: "ok" when every result was right and at least one commit was timed.
        detail: Why it is not ok.
        load_processor: From tables in memory to the view.
        processor: Of each timed commit.
        seconds: That passed, of each timed commit.
        changes: Of relations, in each timed commit.
        head_changes: In each timed commit; those of differential dataflow are not netted, and of a side
            that asks the whole question again they are not known.
        operations: Counted by lftj's strategies, in all timed commits; None for others.
        instances: Of a recursion kept by lftj, assignments of its rules' bodies that came or went in all
            timed commits; evaluated anew, all there are after each.  None for others.
        peak_bytes: Of the process, which went through all settings of the view.
        digests: After so many transactions: weight and checksum.
    """

    view: str
    engine: str
    setting: str
    kind: str
    size: int
    status: Status = "failed"
    detail: str = ""
    load_processor: float | None = None
    processor: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    head_changes: int | None = None
    operations: int | None = None
    instances: int | None = None
    peak_bytes: int | None = None
    digests: dict[int, Sums] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """Changes per second of processor time.

        >>> Cell("v", "lftj", "mixed 2", "mixed", 2, "ok", processor=[0.5, 0.5], changes=[2, 2]).rate
        4.0
        """
        return sum(self.changes) / sum(self.processor) if self.status == "ok" else None

    @property
    def rates(self) -> tuple[float, float] | None:
        """Quartiles of the rates of single commits, the spread of ``rate``."""
        if self.status != "ok" or len(self.processor) < 2:
            return None
        first, third = np.percentile(np.array(self.changes) / np.array(self.processor), (25, 75))
        return float(first), float(third)

    def percentile(self, share: float) -> float | None:
        """Milliseconds of processor time below which this share of the commits stays, in percent."""
        return 1e3 * float(np.percentile(self.processor, share)) if self.status == "ok" else None

    def per_change(self, counted: int | None) -> float | None:
        """``operations``, ``instances`` or ``head_changes`` by changes of relations; None where not known."""
        return counted / sum(self.changes) if self.status == "ok" and counted is not None else None

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Cell:
        """The cell that ``as_json`` was made of."""
        digests = {int(place): (sums[0], sums[1]) for place, sums in found["digests"].items()}
        return cls(**{**found, "digests": digests})


def compare(cells: Iterable[Cell]) -> None:
    """Mark the cells of one view and setting that differ from those before them, and drop their times.

    After as many transactions all have to have the same weight and checksum.

    >>> first, second = (Cell("v", name, "mixed 1", "mixed", 1, "ok") for name in ("duckdb", "lftj"))
    >>> first.digests, second.digests = {0: (1, 9)}, {0: (1, 8)}
    >>> compare([first, second])
    >>> second.status, second.detail
    ('differs', 'from duckdb after 0 transactions: weight 1, checksum 8, not 1 and 9')
    """
    known: dict[int, tuple[str, Sums]] = {}
    for cell in cells:
        if cell.status != "ok":
            continue
        for place, sums in sorted(cell.digests.items()):
            engine, expected = known.setdefault(place, (cell.engine, sums))
            if sums != expected:
                cell.status = "differs"
                cell.detail = (
                    f"from {engine} after {place:,} transactions: weight {sums[0]:,}, checksum {sums[1]}, "
                    f"not {expected[0]:,} and {expected[1]}"
                )
                cell.processor, cell.seconds, cell.changes = [], [], []
                break
