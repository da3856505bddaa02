"""A view's plots as one SVG: time and operations by change size, latencies, memory."""

from __future__ import annotations

import io
from typing import Any

from bench.grid.cell import Cell
from bench.grid.results import GridResults
from bench.grid.view import View
from bench.peers.engine import title
from bench.report.plots import colour

_DASHES = {
    "": "-",
    "trace": "--",
    "delta": "-.",
    "recompute": ":",
    "stages": (0, (5, 1)),
    "views": (0, (1, 1)),
}
_SHARES = {"p50": 50, "p90": 90, "p99": 99, "max": 100}


def style(engine: str) -> dict[str, Any]:
    """Colour by engine, dashes by strategy.

    >>> style("lftj:trace")["linestyle"]
    '--'
    """
    return {"color": colour(engine), "linestyle": _DASHES[engine.partition(":")[2]], "label": title(engine)}


def draw(results: GridResults, view: View) -> str | None:
    """SVG text; None where no cell of the view has figures."""
    import matplotlib

    matplotlib.use("Agg")
    cells = [cell for cell in results.of(view) if cell.status == "ok"]
    if not cells:
        return None
    from matplotlib import pyplot

    # the same data gives the same file, and words stay words
    with matplotlib.rc_context({"svg.hashsalt": "lftj", "svg.fonttype": "none", "font.size": 8}):
        figure, ((times, latencies), (operations, memory)) = pyplot.subplots(2, 2, figsize=(10, 7))
        engines = [engine for engine in view.kept_by if any(cell.engine == engine for cell in cells)]
        kind = view.settings[0].kind
        for engine in engines:
            mine = [cell for cell in cells if cell.engine == engine]
            by_size = sorted((cell for cell in mine if cell.kind == kind), key=lambda cell: cell.size)
            _times(times, engine, by_size)
            _latencies(latencies, engine, by_size[:1])
            _operations(operations, engine, by_size)
        _memory(memory, engines, cells)
        for axes in (times, operations):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(f"changes of a transaction, {kind}")
        times.set_ylabel("ms of processor time of a commit, quartiles")
        latencies.set_yscale("log")
        latencies.set_ylabel("ms of processor time")
        latencies.set_xlabel(f"commits, {view.settings[0].title}")
        operations.set_ylabel("operations a change")
        for axes in (times, latencies, operations):
            axes.grid(alpha=0.3)
        times.legend(fontsize=7)
        figure.tight_layout()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return text.getvalue()


def _times(axes: Any, engine: str, cells: list[Cell]) -> None:
    sizes = [cell.size for cell in cells]
    axes.plot(sizes, [cell.percentile(50) for cell in cells], marker="o", markersize=3, **style(engine))
    low, high = ([cell.percentile(share) for cell in cells] for share in (25, 75))
    axes.fill_between(sizes, low, high, color=colour(engine), alpha=0.15)


def _latencies(axes: Any, engine: str, cells: list[Cell]) -> None:
    for cell in cells:
        found = [cell.percentile(share) for share in _SHARES.values()]
        axes.plot(list(_SHARES), found, marker="o", markersize=3, **style(engine))


def _operations(axes: Any, engine: str, cells: list[Cell]) -> None:
    counted = [(cell.size, cell.per_change(cell.operations)) for cell in cells if cell.operations]
    if counted:
        axes.plot(*zip(*counted, strict=True), marker="o", markersize=3, **style(engine))


def _memory(axes: Any, engines: list[str], cells: list[Cell]) -> None:
    for place, engine in enumerate(engines):
        peaks = [cell.peak_bytes for cell in cells if cell.engine == engine and cell.peak_bytes]
        if peaks:
            axes.barh(place, max(peaks) / 2**20, color=colour(engine))
    axes.set_yticks(range(len(engines)), [title(engine) for engine in engines])
    axes.invert_yaxis()
    axes.set_xlabel("peak memory of the process, MiB")
