"""Plots of the results as PNG and SVG: times, memory, growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.engine import title
from bench.report.results import Results
from bench.report.sweep import Sweep

_COLOURS = {
    "lftj": "#1b7837",
    "duckdb": "#e08214",
    "ladybug": "#762a83",
    "graphblas": "#2166ac",
    "pathway": "#b2182b",
    "spark": "#8c510a",
    "differential": "#d6604d",
    "datafrog": "#35978f",
}


def colour(engine: str) -> str:
    """The same for an engine and its variants, in every plot."""
    return _COLOURS[engine.partition(":")[0]]


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw all plots that the results have data for; returns the files written."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "lftj"  # the same data gives the same file
    written: list[Path] = []
    if any(row.median for rows in results.measurements.values() for row in rows):
        written += _bars(results, folder, "times", "median seconds of a run (log)", lambda row: row.median)
        written += _bars(
            results,
            folder,
            "memory",
            "peak memory of the process, MiB (log)",
            lambda row: row.peak_bytes / 2**20 if row.peak_bytes and row.status == "ok" else None,
        )
    for sweep in results.sweeps:
        if any(sweep.curve(engine) for engine in sweep.engines()):
            written += _growth(sweep, folder)
    return written


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    for file in files:
        figure.savefig(
            file, dpi=150, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else {}
        )
    pyplot.close(figure)
    return files


def _bars(results: Results, folder: Path, name: str, label: str, value: Any) -> list[Path]:
    """Horizontal bars, one group per workload, one bar per engine; an arrow for a run out of time."""
    from matplotlib import pyplot

    workloads = [
        workload
        for workload in results.workloads
        if any(value(row) is not None for row in results.measurements[workload.name])
    ]
    rows = [(workload, row) for workload in workloads for row in results.measurements[workload.name]]
    rows = [(workload, row) for workload, row in rows if value(row) is not None or row.limit_seconds]
    if not rows:
        return []
    figure, axes = pyplot.subplots(figsize=(9, 0.6 + 0.22 * len(rows) + 0.22 * len(workloads)))
    position = 0.0
    ticks: list[tuple[float, str]] = []
    seen: set[str] = set()
    for workload in workloads:
        here = [row for owner, row in rows if owner is workload]
        ticks.append((position + (len(here) - 1) / 2, workload.title))
        for row in here:
            label_once = title(row.engine) if row.engine not in seen else None
            seen.add(row.engine)
            hatch = "//" if ":" in row.engine else None
            found = value(row)
            if found is not None:
                axes.barh(position, found, 0.85, color=colour(row.engine), hatch=hatch, label=label_once)
            elif name == "times" and row.limit_seconds is not None:
                axes.barh(
                    position,
                    row.limit_seconds,
                    0.85,
                    fill=False,
                    edgecolor=colour(row.engine),
                    linestyle="--",
                    label=label_once,
                )
                axes.annotate(" out of time", (row.limit_seconds, position), va="center", fontsize=7)
            position += 1
        position += 1
    axes.set_yticks([tick for tick, _ in ticks], [text for _, text in ticks], fontsize=8)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    return _save(figure, folder, name)


def _growth(sweep: Sweep, folder: Path) -> list[Path]:
    """Time against size on log-log axes, quartiles as a band, the exponent in the legend."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for engine in sweep.engines():
        curve = sweep.curve(engine)
        if not curve:
            continue
        sizes, times = zip(*curve, strict=True)
        exponent = sweep.exponent(engine)
        label = title(engine) + (f", grows as size^{exponent:.2f}" if exponent is not None else "")
        style = "--" if ":" in engine else "-"
        axes.plot(sizes, times, marker="o", linestyle=style, color=colour(engine), label=label)
        bands = {
            point.size: point.measurement.quartiles
            for point in sweep.points
            if point.measurement.engine == engine and point.measurement.quartiles
        }
        if bands:
            low, high = zip(*bands.values(), strict=True)
            axes.fill_between(list(bands), low, high, color=colour(engine), alpha=0.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(sweep.unit)
    axes.set_ylabel("median seconds of a run")
    axes.set_title(sweep.title, fontsize=10)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    return _save(figure, folder, f"growth-{sweep.name}")
