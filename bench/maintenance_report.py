"""``python -m bench.maintenance_report``: strategies and peers on the whole grid, as one HTML page.

    python -m bench.maintenance_report                    into bench/results/maintenance/
    python -m bench.maintenance_report --quick            small generated views, some minutes
    python -m bench.maintenance_report --beside           the larger views of "beside differential dataflow"
    python -m bench.maintenance_report --only triangles   views whose name has this in it
    python -m bench.maintenance_report --engines lftj,duckdb

Writes ``results.json`` after every cell, and ``report.html`` at the end.  A selection writes into its own
folder below the results (``quick``, ``selection``), so it never replaces the whole.  Exit status: 0; 1 when
results differed or something failed; 2 for a wrong command; 130 after Ctrl-C, which leaves what there is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench.grid import views
from bench.grid.cell import Cell, compare
from bench.grid.measurement import measure
from bench.grid.page import page
from bench.grid.results import GridResults, write_whole
from bench.grid.view import KEPT_BY, View
from bench.peers.engine import prepare, title
from bench.report import machine
from bench.report.counting_bar import counting_bar
from bench.report.markdown import number
from bench.report.options import Options, is_selected, results_folder

SECONDS = 1.5
"""Of processor time for a cell."""

_console = Console(stderr=True, soft_wrap=True)


def _arguments(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, str]:
    """What was chosen, and how results name it."""
    options = Options(
        "python -m bench.maintenance_report", "Measure who keeps views up to date.", "view", KEPT_BY
    )
    parser = options.parser
    parser.add_argument("--beside", action="store_true", help="larger views, beside differential dataflow")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"for a cell (default {SECONDS})")
    chosen = options.parse(arguments)
    if chosen.quick and chosen.beside:
        parser.error("--quick and --beside are different views")
    found = views.quick() if chosen.quick else views.beside_differential() if chosen.beside else views.grid()
    options.refuse_unmatched(chosen, (view.name for view in found))
    chosen.views = [
        replace(view, kept_by=tuple(engine for engine in view.kept_by if engine in chosen.engines))
        for view in found
        if is_selected(chosen, view.name)
    ]
    if chosen.seconds is None:
        chosen.seconds = SECONDS / 10 if chosen.quick else SECONDS
    return chosen, options.words(chosen, "quick", "beside")


def _line(view: View, cell: Cell) -> str:
    name = f"{escape(view.title)}, {cell.setting}  [bold]{title(cell.engine)}[/bold]"
    if cell.rate is None:
        colour = "red" if cell.status in ("differs", "failed") else "yellow"
        return f"{name}  [{colour}]{cell.status}[/{colour}] {escape(cell.detail)}"
    return f"{name}  {number(cell.rate)} changes/s, {len(cell.processor)} commits"


def _build_peer(chosen: argparse.Namespace) -> None:
    """Have the program of differential dataflow up to date, where it is asked; say so where it can't be."""
    if any(view.differential and "differential" in view.kept_by for view in chosen.views):
        with _console.status("cargo builds differential dataflow; the first time takes minutes"):
            prepare(["differential"], lambda what: _console.print(what, highlight=False))


def _measure_all(chosen: argparse.Namespace, results: GridResults, folder: Path) -> None:
    with counting_bar(_console) as progress:
        bar = progress.add_task("measuring", total=results.missing())
        for view in chosen.views:
            for engine in view.kept_by:

                def show(stage: str, name: str = f"{view.name}, {title(engine)}") -> None:
                    progress.update(bar, description=f"{escape(name)}: {stage}")

                for cell in measure(view, engine, chosen.seconds, show):
                    results.cells.append(cell)
                    compare(results.of(view, cell.setting))
                    results.write(folder)
                    if cell.status != "no view":
                        _console.print(_line(view, cell), highlight=False)
                    progress.advance(bar)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen, options = _arguments(arguments)
    is_selection = options not in ("", "beside")
    folder = results_folder(chosen, is_selection, "maintenance-beside" if chosen.beside else "maintenance")
    try:
        _build_peer(chosen)
    except KeyboardInterrupt:
        return 130
    results = GridResults(machine.describe(), options, chosen.views, chosen.seconds)
    status = 0
    try:
        _measure_all(chosen, results, folder)
        results.complete = True
    except KeyboardInterrupt:
        status = 130
    results.write(folder)
    write_whole(folder / "report.html", page(results))
    _console.print(f"{'partial results' if status else 'results'}: {folder / 'report.html'}", highlight=False)
    return 1 if status == 0 and results.wrong() else status


if __name__ == "__main__":
    sys.exit(main())
