"""`DistanceResults`: what ``python -m bench.trace_distance`` found, as JSON, CSV and Markdown.

Every sentence of the report is computed from the points; nothing is asserted
that they do not show.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bench.distance.bound_fit import (
    GROWS,
    SMALL_RATIO,
    Bound,
    Point,
    crossover,
    decade,
    fails,
    growth,
    least_bound,
    least_squares,
    usable,
    worst,
)
from bench.distance.measurement import GAPS, Skipped
from bench.distance.workloads import FAMILIES
from bench.report import machine
from bench.report.markdown import number, table

_TITLES = {family.name: family.title for family in FAMILIES}
HOSTILE = {family.name: family.hostile for family in FAMILIES if family.hostile}


def gap_title(gap: int) -> str:
    """
    >>> gap_title(0), gap_title(8)
    ('exact records', 'records over gaps of 8')
    """
    return f"records over gaps of {gap}" if gap else "exact records"


@dataclass
class DistanceResults:
    """All points of one run, in the order in which they were measured."""

    machine: dict[str, Any]
    options: str = ""
    complete: bool = False
    points: list[Point] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    # -- selections ------------------------------------------------------------------

    def of(self, gap: int, hostile: bool | None = None, family: str = "") -> list[Point]:
        """The points of a gap; of hostile families only, of ordinary ones only, or of one family."""
        return [
            point
            for point in self.points
            if point.gap == gap
            and (hostile is None or (point.family in HOSTILE) == hostile)
            and (not family or point.family == family)
        ]

    def families(self) -> list[str]:
        return list(dict.fromkeys(point.family for point in self.points))

    def failing(self, gap: int) -> list[str]:
        """Families whose worst ratio grows with the data and is no longer small."""
        found = {name: usable(self.of(gap, family=name)) for name in self.families()}
        return [name for name, points in found.items() if points and fails(points)]

    # -- writing ---------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types; :meth:`from_json` reads it."""
        return {
            "complete": self.complete,
            "options": self.options,
            "machine": self.machine,
            "points": [asdict(point) for point in self.points],
            "skipped": [asdict(size) for size in self.skipped],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> DistanceResults:
        """What :meth:`as_json` wrote."""
        points = [Point(**point) for point in found["points"]]
        skipped = [Skipped(**size) for size in found["skipped"]]
        return cls(found["machine"], found["options"], found["complete"], points, skipped)

    def as_csv(self) -> str:
        """The points, a line each."""
        stream = io.StringIO()
        names = [column.name for column in fields(Point)]
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in self.points)
        return stream.getvalue()

    def write(self, folder: Path) -> None:
        """Write results.json, points.csv and report.md; each appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            "results.json": json.dumps(self.as_json()) + "\n",
            "points.csv": self.as_csv(),
            "report.md": self.as_markdown(),
        }
        for name, text in contents.items():
            part = folder / f"{name}.part"
            part.write_text(text, encoding="utf-8")
            part.replace(folder / name)

    def as_markdown(self) -> str:
        """The report that people read."""
        parts = ["# Trace edit distance and what maintenance costs\n"]
        if not self.complete:
            parts.append("**Partial: the run ended early.**\n")
        if self.options:
            parts.append(f"A selection: {self.options}.\n")
        parts += [_CLAIM, "## Machine\n", machine.as_markdown(self.machine) + "\n"]
        if usable(self.points):
            parts += ["## What was found\n", *self._findings()]
            parts += ["## The fit\n", self._fits() + "\n", _FIT_LEGEND]
            parts += ["## By workload\n", self._by_family() + "\n", _FAMILY_LEGEND]
            parts += ["## Where recomputing is cheaper\n", self._crossovers() + "\n", _CROSSOVER_LEGEND]
            parts += ["## Records\n", self._records() + "\n"]
        if self.skipped:
            lines = [f"- {s.family} at {s.size:,} tuples: {s.reason}" for s in self.skipped]
            parts += ["## Not measured\n", "\n".join(lines) + "\n"]
        parts += ["Plots: operations.png, times.png, records.png; all points: points.csv.\n"]
        return "\n".join(parts)

    def _findings(self) -> list[str]:
        lines = []
        for gap in GAPS:
            ordinary, everything = usable(self.of(gap, False)), usable(self.of(gap))
            if ordinary:
                bound, hardest = least_bound(ordinary), worst(ordinary)
                growing = [name for name in self.failing(gap) if name not in HOSTILE]
                lines.append(
                    f"- {gap_title(gap).capitalize()}, ordinary workloads ({len(ordinary):,} commits): "
                    f"operations <= {number(bound.c)} * distance * log2(n) + {number(bound.c_paid)} * "
                    f"(surgeries + dropped) bounds all of them; the worst is {_case(hardest)}. "
                    + _growing(growing, "no ordinary workload's ratio grows with the data")
                )
            hostile = usable(self.of(gap, True))
            if hostile:
                bound = least_bound(everything)
                growing = [name for name in self.failing(gap) if name in HOSTILE]
                lines.append(
                    f"- {gap_title(gap).capitalize()}, hostile workloads included ({len(everything):,} "
                    f"commits): the least bound is {number(bound.c)} * distance * log2(n) + "
                    f"{number(bound.c_paid)} * (surgeries + dropped); the worst is "
                    f"{_case(worst(everything))}. "
                    + _growing(growing, "no hostile workload's ratio grows with the data")
                )
        failing = [name for name in self.families() if any(name in self.failing(gap) for gap in GAPS)]
        lines += [f"- Why {name} is hard: {HOSTILE[name]}." for name in self.families() if name in HOSTILE]
        several = len({decade(point) for point in self.points}) > 1
        verdict = "One size of data was measured, so growth cannot be told."
        if several and failing:
            verdict = f"**The claim fails** for {', '.join(failing)}: their ratio grows with the data."
        elif several:
            verdict = "**The claim holds** on everything that was measured: no ratio grows with the data."
        return [verdict + "\n", "\n".join(lines) + "\n"]

    def _fits(self) -> str:
        rows = []
        for gap in GAPS:
            for title, hostile in (("ordinary", False), ("all", None)):
                found = usable(self.of(gap, hostile))
                if found:
                    least, fitted = least_bound(found), least_squares(found)
                    slack = statistics.median(least.of(point) / point.operations for point in found)
                    rows.append(
                        [
                            gap_title(gap),
                            title,
                            f"{len(found):,}",
                            *_pair(least),
                            number(slack),
                            *_pair(fitted),
                        ]
                    )
        heads = ["records", "workloads", "commits", "c", "c'", "bound / operations", "c fitted", "c' fitted"]
        return table(heads, rows)

    def _by_family(self) -> str:
        rows = []
        for name in self.families():
            for gap in GAPS:
                found = usable(self.of(gap, family=name))
                if found:
                    regions = sum(point.regions for point in found)
                    power = growth(found)
                    hardest = worst(found)
                    rows.append(
                        [
                            _TITLES[name] + (" (hostile)" if name in HOSTILE else ""),
                            gap_title(gap),
                            f"{max(point.tuples for point in found):,}",
                            number(statistics.median(point.ratio for point in found)),
                            number(hardest.ratio),
                            " / ".join(
                                f"{part:,}"
                                for part in (
                                    hardest.operations,
                                    hardest.distance,
                                    hardest.surgeries,
                                    hardest.dropped,
                                )
                            ),
                            "" if power is None else f"{power:.2f}",
                            f"{100 * sum(p.empty_regions for p in found) / regions:.0f} %" if regions else "",
                            number(statistics.median(point.touched / point.operations for point in found)),
                        ]
                    )
        heads = [
            "workload", "records", "n up to", "ratio, median", "ratio, worst",
            "its operations / distance / surgeries / dropped", "worst grows as n to the power",
            "regions in vain", "touched / operations",
        ]  # fmt: skip
        return table(heads, rows)

    def _crossovers(self) -> str:
        rows = []
        for name in self.families():
            for size in sorted({decade(point) for point in self.points if point.family == name}):
                cells = [_TITLES[name], f"10^{size}"]
                for gap in GAPS:
                    here = [p for p in self.of(gap, family=name) if decade(p) == size]
                    at = crossover(here)
                    largest = max(point.change for point in here)
                    cells.append(f"not up to {largest:,}" if at is None else number(at))
                single = [p for p in self.of(GAPS[-1], family=name) if decade(p) == size and p.change == 1]
                for attribute in ("seconds", "recompute_seconds"):
                    times = [1000 * getattr(point, attribute) for point in single]
                    cells.append(number(statistics.median(times)) if times else "")
                rows.append(cells)
        heads = ["workload", "n", *(gap_title(gap) for gap in GAPS), "one tuple: trace ms", "recompute ms"]
        return table(heads, rows)

    def _records(self) -> str:
        rows = []
        for name in self.families():
            for size in sorted({decade(point) for point in self.points if point.family == name}):
                for gap in GAPS:
                    first = next(p for p in self.of(gap, family=name) if decade(p) == size)
                    rows.append(
                        [
                            _TITLES[name],
                            f"{first.tuples:,}",
                            f"{first.trace:,}",
                            gap_title(gap),
                            f"{first.records:,}",
                            number(first.records / first.tuples),
                            number(first.record_bytes / first.records) if first.records else "",
                        ]
                    )
        heads = ["workload", "n", "trace", "kept", "records", "per tuple", "bytes per record"]
        return table(heads, rows)


def _pair(bound: Bound) -> tuple[str, str]:
    return number(bound.c), number(bound.c_paid)


def _case(point: Point) -> str:
    return (
        f"{point.family} with n = {point.tuples:,} and a change of {point.change:,}: {point.operations:,} "
        f"operations, distance {point.distance:,}, {point.surgeries:,} surgeries, {point.matches:,} matches, "
        f"{point.dropped:,} records dropped"
    )


def _growing(names: Iterable[str], none: str) -> str:
    listed = ", ".join(names)
    return f"The ratio grows with the data for {listed}." if listed else none[0].upper() + none[1:] + "."


_CLAIM = (
    "The claim: maintenance operations <= c * (trace edit distance) * log2(n) + c' * (surgeries + dropped "
    "records), with one c and one c' for all workloads. Operations are those of evaluation, matches and "
    "surgeries. A record that a commit finds dead is dropped, once, and was left by an operation of an "
    "earlier trace: over all commits no more are dropped than traces had edits, so the bound is amortised. "
    "The distance is exact: the size of the symmetric difference of the two full traces of plain leapfrog "
    "triejoin, before and after, in the key order that is maintained. n is the number of tuples of the "
    "body's relations.\n"
)
_FIT_LEGEND = (
    "c and c' are the least pair (in the mean of bound over operations) that bounds every commit; the fitted "
    "pair has the least squared error relative to the operations, and bounds nothing. Any finite set of "
    "commits has a bound: it says something where it is small and close.\n"
)
_FAMILY_LEGEND = (
    "ratio: operations / (distance * log2(n) + surgeries + dropped). The worst ratio of each size grows as "
    f"that power of n; where that is above {GROWS} and the worst ratio above {SMALL_RATIO:g}, the claim "
    "counts as failing (a smaller one is what a few operations for one surgery come to). Regions in vain led "
    "nowhere: garbage, a coarse record, or a branch that another atom lacks. touched: what stabbing the "
    "records looked at, which operations do not count.\n"
)
_CROSSOVER_LEGEND = (
    "The change, in tuples, from which on a commit by recomputation takes less time; times are of whole "
    "commits, medians, one thread.\n"
)
