"""`Sweep`: one question over inputs of growing size, so that the growth shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.peers.engine import title
from bench.report.markdown import number, table
from bench.report.measurement import Measurement
from bench.workload import Workload


@dataclass(frozen=True)
class Point:
    """One engine at one size."""

    size: int
    measurement: Measurement


@dataclass
class Sweep:
    """Measurements of several engines over growing sizes.

    Attributes:
        name: Short, for file names.
        title: For headings and plots.
        unit: What ``size`` counts.
    """

    name: str
    title: str
    unit: str
    points: list[Point] = field(default_factory=list)

    def engines(self) -> list[str]:
        """In the order in which they were first measured."""
        return list(dict.fromkeys(point.measurement.engine for point in self.points))

    def curve(self, engine: str) -> list[tuple[int, float]]:
        """(size, median seconds) of an engine, where it has one."""
        return [
            (point.size, point.measurement.median)
            for point in self.points
            if point.measurement.engine == engine and point.measurement.median is not None
        ]

    def exponent(self, engine: str) -> float | None:
        """Slope of the upper half of the curve on log-log axes: time grows as size to this power.

        None when that half has fewer than three points.

        >>> sweep = Sweep("s", "t", "rows")
        >>> for size in (10, 20, 40, 80, 160):
        ...     sweep.points.append(Point(size, Measurement("w", "lftj", 1, runs=[size**2 / 7])))
        >>> round(sweep.exponent("lftj"), 3)
        2.0
        """
        curve = self.curve(engine)
        upper = [(math.log(size), math.log(time)) for size, time in curve[len(curve) // 2 :]]
        if len(upper) < 3:
            return None
        middle_size = sum(size for size, _ in upper) / len(upper)
        middle_time = sum(time for _, time in upper) / len(upper)
        rise = sum((size - middle_size) * (time - middle_time) for size, time in upper)
        return rise / sum((size - middle_size) ** 2 for size, _ in upper)

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "points": [{"size": point.size, **point.measurement.as_json()} for point in self.points],
            "exponents": {engine: self.exponent(engine) for engine in self.engines()},
        }

    def as_markdown(self) -> str:
        """Median seconds by size and engine, with the exponents of growth below."""
        engines = self.engines()
        rows = []
        for size in sorted({point.size for point in self.points}):
            here = {
                point.measurement.engine: point.measurement for point in self.points if point.size == size
            }
            cells = [
                number(found.median) or found.status if (found := here.get(engine)) else ""
                for engine in engines
            ]
            rows.append([f"{size:,}", *cells])
        rows.append(["grows as size to the power", *(number(self.exponent(engine)) for engine in engines)])
        heads = [self.unit, *(f"{title(engine)} s" for engine in engines)]
        return f"### {self.title}\n\n{table(heads, rows)}"


def run(
    sweep: Sweep,
    steps: list[tuple[int, Workload]],
    engines: list[str],
    known: dict[str, list[Measurement]],
    measure: Callable[[Workload, str], Measurement],
) -> None:
    """Measure every engine at every size, from small to large.

    An engine that ran out of time or failed is not asked about larger sizes.

    Args:
        sweep: Takes the points, each as soon as it is known.
        steps: Size and workload, by size.
        engines: Whom to ask.
        known: Measurements made already, by workload; these are not repeated.
        measure: Makes one measurement.
    """
    out: set[str] = set()
    for size, workload in steps:
        for engine in engines:
            if engine in out:
                continue
            done = [row for row in known.get(workload.name, []) if row.engine == engine]
            found = done[0] if done else measure(workload, engine)
            sweep.points.append(Point(size, found))
            if found.status != "ok":
                out.add(engine)
