"""Plots of the trace edit distance: operations, times, records."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from bench.distance.bound_fit import decade, least_bound, usable
from bench.distance.measurement import GAPS
from bench.distance.report import HOSTILE, DistanceResults, gap_title


def draw(results: DistanceResults, folder: Path) -> list[Path]:
    """Draw all plots; returns the files written, none when there are no points."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "lftj"  # the same data gives the same file
    if not usable(results.points):
        return []
    return [*_operations(results, folder), *_times(results, folder), *_records(results, folder)]


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    for file in files:
        metadata = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, dpi=150, bbox_inches="tight", metadata=metadata)
    pyplot.close(figure)
    return files


def _style(results: DistanceResults, name: str) -> dict[str, Any]:
    from matplotlib import colormaps

    place = results.families().index(name)
    marker = "x" if name in HOSTILE else "o"
    return {"color": colormaps["tab20"](place % 20), "marker": marker}


def _operations(results: DistanceResults, folder: Path) -> list[Path]:
    """Above: operations against the distance. Below: against the least bound of the ordinary workloads."""
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, len(GAPS), figsize=(6 * len(GAPS), 10), squeeze=False)
    for column, gap in enumerate(GAPS):
        above, below = grid[0][column], grid[1][column]
        ordinary = usable(results.of(gap, False)) or usable(results.of(gap))
        bound = least_bound(ordinary)
        for name in results.families():
            found = usable(results.of(gap, family=name))
            style = {**_style(results, name), "s": 14, "label": name}
            above.scatter([max(0.5, p.distance) for p in found], [p.operations for p in found], **style)
            below.scatter([bound.of(p) for p in found], [p.operations for p in found], **style)
        distances = [max(0.5, point.distance) for point in ordinary]
        sizes = math.log2(max(2, *(point.tuples for point in ordinary)))
        ends = [min(distances), max(distances)]
        label = f"{bound.c:.3g} distance log2(n), largest n"
        above.plot(ends, [bound.c * sizes * end for end in ends], "k--", linewidth=1, label=label)
        ends = [min(bound.of(p) for p in ordinary), max(bound.of(p) for p in ordinary)]
        below.plot(ends, ends, "k--", linewidth=1, label="operations = bound")
        above.set_xlabel("trace edit distance (0 drawn at 0.5)")
        below.set_xlabel(f"{bound.c:.3g} distance log2(n) + {bound.c_paid:.3g} (surgeries + dropped)")
        above.set_title(gap_title(gap), fontsize=10)
        for axes in (above, below):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylabel("maintenance operations of a commit")
            axes.grid(alpha=0.3)
    grid[0][-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.02, 1.0))  # hides no point
    return _save(figure, folder, "operations")


def _times(results: DistanceResults, folder: Path) -> list[Path]:
    """A panel per workload at its largest size: seconds of a commit against the change, by strategy."""
    from matplotlib import pyplot

    names = [
        name
        for name in results.families()
        if len({point.change for point in results.of(GAPS[0], family=name)}) > 1
    ]
    if not names:
        return []
    width = 3
    height = -(-len(names) // width)
    figure, grid = pyplot.subplots(height, width, figsize=(4.2 * width, 3.4 * height), squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(names):
            axes.set_visible(False)
            continue
        family = results.of(GAPS[0], family=names[place])
        largest = max(decade(point) for point in family)
        for gap, attribute, label, line in (
            (GAPS[0], "seconds", f"trace, {gap_title(GAPS[0])}", "-"),
            (GAPS[-1], "seconds", f"trace, {gap_title(GAPS[-1])}", "-"),
            (GAPS[0], "recompute_seconds", "recompute", "--"),
        ):
            here = [p for p in results.of(gap, family=names[place]) if decade(p) == largest]
            changes = sorted({point.change for point in here})
            medians = [
                statistics.median(getattr(p, attribute) for p in here if p.change == change)
                for change in changes
            ]
            axes.plot(changes, medians, line, marker="o", markersize=3, label=label)
        axes.set_title(f"{names[place]}, n = {max(p.tuples for p in family):,}", fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=7)
    grid[0][0].legend(fontsize=6)
    grid[-1][0].set_xlabel("tuples changed")
    grid[0][0].set_ylabel("seconds of a commit")
    figure.tight_layout()
    return _save(figure, folder, "times")


def _records(results: DistanceResults, folder: Path) -> list[Path]:
    """Records against the size of the data, a line per workload and gap."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 5))
    for name in results.families():
        for gap in GAPS:
            first: dict[int, tuple[int, int]] = {}
            for point in results.of(gap, family=name):
                if point.records:
                    first.setdefault(decade(point), (point.tuples, point.records))
            if not first:
                continue
            sizes, records = zip(*(first[size] for size in sorted(first)), strict=True)
            line = "-" if gap == GAPS[0] else "--"
            label = name if gap == GAPS[0] else None
            axes.plot(sizes, records, line, markersize=4, label=label, **_style(results, name))
    if not axes.lines:  # no workload keeps records
        pyplot.close(figure)
        return []
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("tuples")
    axes.set_ylabel("sensitivity records")
    axes.set_title(f"{gap_title(GAPS[0])} (solid), {gap_title(GAPS[-1])} (dashed)", fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=6)
    return _save(figure, folder, "records")
