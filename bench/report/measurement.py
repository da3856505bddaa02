"""`Measurement`: what came of asking one engine one question."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal[
    "ok", "wrong answer", "time limit", "not installed", "no query", "no data", "failed", "interrupted"
]


@dataclass
class Measurement:
    """What came of one engine on one workload.  Times are seconds, memory is bytes.

    Attributes:
        engine: An engine's name or engine:variant.
        status: "ok" when the answer was right and at least one run was timed.
        detail: Why it is not ok.
        answer: The count found, also when it is wrong.
        checksum: Of the results, where the engine tells it and the workload knows it.
        open_seconds: Importing and opening the engine.
        load_seconds: Loading; None where loading is part of the run.
        first_seconds: The first run, whose answer was checked.
        runs: The timed runs after it.
        processor_seconds: Processor time of each of them, all threads together: where it is well below
            the threads' share of the time that passed, something else kept the machine busy.
        base_bytes: Peak memory when the engine was open and nothing loaded.
        peak_bytes: Peak memory of the whole process.
        limit_seconds: The time that was not enough, where the status is "time limit".
        figures: What else the process counted, by name with its unit.
    """

    workload: str
    engine: str
    threads: int
    status: Status = "failed"
    detail: str = ""
    version: str | None = None
    answer: int | None = None
    checksum: int | None = None
    open_seconds: float | None = None
    load_seconds: float | None = None
    first_seconds: float | None = None
    runs: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    base_bytes: int | None = None
    peak_bytes: int | None = None
    limit_seconds: float | None = None
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """The timed runs; the first run where the time limit left no other."""
        if not self.runs and self.first_seconds is not None and self.status == "time limit":
            return [self.first_seconds]
        return self.runs

    @property
    def median(self) -> float | None:
        """Median of the timed runs; None when there is none.

        >>> Measurement("w", "lftj", 1, runs=[3.0, 1.0, 2.0]).median
        2.0
        """
        return statistics.median(self.times) if self.times else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """First and third quartile of the timed runs, the spread; None when there are fewer than two.

        >>> Measurement("w", "lftj", 1, runs=[5.0, 1.0, 3.0, 4.0, 2.0]).quartiles
        (2.0, 4.0)
        """
        if len(self.times) < 2:
            return None
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return first, third

    def as_json(self) -> dict[str, Any]:
        """All attributes, the median and the quartiles.

        Of very many runs, such as single commits, only the percentiles 0 to 100 are kept.
        """
        found = {**asdict(self), "n_runs": len(self.runs), "median": self.median, "quartiles": self.quartiles}
        if len(self.runs) > MOST_RUNS:
            found["runs"] = _percentiles(self.runs)
            found["processor_seconds"] = _percentiles(self.processor_seconds)
        return found


MOST_RUNS = 200
"""So many runs are written one by one."""


def _percentiles(values: list[float]) -> list[float]:
    ordered = sorted(values)
    between = statistics.quantiles(ordered, n=100, method="inclusive") if len(ordered) > 1 else []
    return [*ordered[:1], *between, *ordered[-1:]]
