"""`judge`: a workload's measurements against its targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.peers.engine import title
from bench.report.measurement import Measurement
from bench.workload import Target, Workload


@dataclass(frozen=True)
class Verdict:
    """What a target asked, and what was measured.

    Attributes:
        value: The ratio, seconds or rows per second; None when it cannot be known.
        at_least: The peer ran out of time, so the true ratio is larger than ``value``.
        reason: Why ``value`` is None.
    """

    workload: str
    target: Target
    value: float | None
    at_least: bool = False
    reason: str = ""

    def _reaches(self, bound: float | None) -> bool | None:
        if self.value is None or bound is None:
            return None
        if self.target.measure in ("seconds", "bytes/record", "p99 ms"):
            return self.value <= bound
        if self.value < bound and self.at_least:
            return None
        return self.value >= bound

    @property
    def floor_reached(self) -> bool | None:
        """None when there is no floor, or the measurement cannot tell.

        >>> Verdict("w", Target("ratio", 4, 10, "duckdb"), 5.0).floor_reached
        True
        """
        return self._reaches(self.target.floor)

    @property
    def goal_reached(self) -> bool | None:
        """None when there is no goal, or the measurement cannot tell.

        >>> Verdict("w", Target("seconds", 2, 1), 1.5).goal_reached
        False
        """
        return self._reaches(self.target.goal)

    @property
    def asks(self) -> str:
        """What is measured, in words."""
        if self.target.measure == "ratio":
            return f"times faster than {title(self.target.peer)}"
        if self.target.measure == "memory ratio":
            return f"peak memory of {title(self.target.peer)} / lftj's"
        if self.target.measure == "operations ratio":
            return "operations of delta rules / lftj's"
        return self.target.measure


def ratio(measurements: Iterable[Measurement], peer: str) -> tuple[float | None, bool, str]:
    """The peer's median over lftj's; whether it is only a lower bound; why there is none.

    A peer that ran out of time counts with the time it was given.
    """
    found = {measurement.engine: measurement for measurement in measurements}
    ours, theirs = found.get("lftj"), found.get(peer)
    if ours is None or ours.status != "ok" or ours.median is None:
        return None, False, f"lftj: {ours.status if ours else 'not asked'}"
    if theirs is None:
        return None, False, f"{title(peer)}: not asked"
    if theirs.median is not None and theirs.status in ("ok", "time limit"):
        return theirs.median / ours.median, False, ""
    if theirs.status == "time limit" and theirs.limit_seconds is not None:
        return theirs.limit_seconds / ours.median, True, ""
    return None, False, f"{title(peer)}: {theirs.status}"


def memory_ratio(measurements: Iterable[Measurement], peer: str) -> tuple[float | None, str]:
    """The peer's peak memory over lftj's; why there is none."""
    found = {measurement.engine: measurement for measurement in measurements}
    ours, theirs = found.get("lftj"), found.get(peer)
    for engine, row in (("lftj", ours), (peer, theirs)):
        if row is None or row.status != "ok" or not row.peak_bytes:
            return None, f"{title(engine)}: {row.status if row else 'not asked'}"
    assert ours is not None and theirs is not None and ours.peak_bytes and theirs.peak_bytes
    return theirs.peak_bytes / ours.peak_bytes, ""


def judge(workload: Workload, measurements: Iterable[Measurement]) -> list[Verdict]:
    """One verdict per target of the workload."""
    measurements = list(measurements)
    verdicts = []
    for target in workload.targets:
        if target.measure == "ratio":
            value, at_least, reason = ratio(measurements, target.peer)
            verdicts.append(Verdict(workload.name, target, value, at_least, reason))
            continue
        if target.measure == "memory ratio":
            value, reason = memory_ratio(measurements, target.peer)
            verdicts.append(Verdict(workload.name, target, value, reason=reason))
            continue
        ours = next((found for found in measurements if found.engine == "lftj"), None)
        if ours is None or ours.status != "ok" or ours.median is None:
            reason = f"lftj: {ours.status if ours else 'not asked'}"
            verdicts.append(Verdict(workload.name, target, None, reason=reason))
        else:
            figures = {"seconds": ours.median, "rows/s": workload.expected / ours.median, **ours.figures}
            value = figures[target.measure]
            verdicts.append(Verdict(workload.name, target, value))
    return verdicts
