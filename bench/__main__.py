"""``python -m bench``: measure, and write results, plots and the machine's description.

    python -m bench                        joins and maintenance, into bench/results/
    python -m bench --quick                small generated workloads, some seconds
    python -m bench --only triangles       workloads whose name has this in it
    python -m bench --engines lftj,duckdb  these engines only
    python -m bench --list                 the workloads, and nothing is run

Floors and goals: docs/design/targets.md.

A selection writes into its own folder below the results (``quick``,
``selection``), so it never replaces the whole.  Exit status: 0; 1 when an
answer was wrong or something failed; 2 for a wrong command; 130 after Ctrl-C,
which leaves partial results that say so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench import harness, workloads
from bench.peers import engine
from bench.report import machine, plots, sweep
from bench.report.counting_bar import counting_bar
from bench.report.markdown import number
from bench.report.measurement import Measurement
from bench.report.options import Options, is_selected, results_folder
from bench.report.results import Results
from bench.spark import workloads as spark_workloads
from bench.workload import IN_SPARK, MAINTENANCE, Workload

_console = Console(stderr=True, soft_wrap=True)


def _arguments(arguments: Sequence[str] | None, in_spark: bool) -> tuple[argparse.Namespace, str]:
    """What was chosen, and how results name it."""
    command = "python -m bench" + (".spark" if in_spark else "")
    options = Options(command, "Measure lftj and its peers.", "workload", engine.NAMES)
    parser = options.parser
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="for one run or one load (default 120)"
    )
    parser.add_argument("--list", action="store_true", help="name the workloads and stop")
    chosen = options.parse(arguments)
    of = spark_workloads if in_spark else workloads
    chosen.workloads = of.quick() if chosen.quick else of.full()
    chosen.sweeps = [] if in_spark else _sweeps(chosen.quick)
    names = [workload.name for workload in chosen.workloads] + [found.name for found, _ in chosen.sweeps]
    if chosen.list:
        print("\n".join(names))
        parser.exit(0)
    options.refuse_unmatched(chosen, names)
    chosen.workloads = [workload for workload in chosen.workloads if is_selected(chosen, workload.name)]
    chosen.sweeps = [(found, steps) for found, steps in chosen.sweeps if is_selected(chosen, found.name)]
    return chosen, options.words(chosen, "quick")


def _sweeps(quick: bool) -> list[tuple[sweep.Sweep, list[tuple[int, Workload]]]]:
    scales, doublings = (range(8, 11), range(2)) if quick else (range(10, 18), range(10))
    return [
        (
            sweep.Sweep("sweep-rmat", "Triangles of RMAT graphs, edge factor 8", "edges drawn"),
            workloads.sweep_triangles(scales),
        ),
        (
            sweep.Sweep("sweep-adversarial", "The adversarial triangle", "edges of each relation"),
            workloads.sweep_adversarial(doublings),
        ),
        (
            sweep.Sweep("commit-sweep", "Commits of one edge, triangles of RMAT graphs", "edges drawn"),
            workloads.sweep_commits(scales),
        ),
    ]


def _keys(workload: Workload, engines: list[str]) -> list[str]:
    """Engines, then their variants of this workload, lftj first.

    Engines that have no query are there too, so that the results say so; not
    where the one side keeps rules up to date, or works in Spark, and the other does not.
    """
    engines = [
        name
        for name in engines
        if name in workload.queries
        or (workload.task not in MAINTENANCE | IN_SPARK and name not in engine.ASKED_APART)
    ]
    variants = [key for key in workload.queries if ":" in key and key.partition(":")[0] in engines]
    keys = []
    for name in engines:
        keys += [name, *(key for key in variants if key.partition(":")[0] == name)]
    return keys


def _say(what: str) -> None:
    _console.print(what, highlight=False)


def _line(workload: Workload, row: Measurement) -> str:
    name = f"{escape(workload.title)}  [bold]{engine.title(row.engine)}[/bold]"
    if row.median is None:
        colour = "red" if row.status in ("wrong answer", "failed") else "yellow"
        return f"{name}  [{colour}]{row.status}[/{colour}] {escape(row.detail)}"
    memory = f", peak {row.peak_bytes / 2**20:,.0f} MiB" if row.peak_bytes else ""
    return f"{name}  {number(row.median)} s, median of {len(row.times)}{memory}"


def _measure_all(
    chosen: argparse.Namespace, results: Results, folder: Path, ask: Callable[[Workload, str], Measurement]
) -> None:
    for workload in chosen.workloads:
        for key in _keys(workload, chosen.engines):
            results.add(workload, ask(workload, key))
            results.write(folder)
    for found, steps in chosen.sweeps:
        results.sweeps.append(found)
        askable = [key for key in _keys(steps[0][1], chosen.engines) if key in steps[0][1].queries]
        sweep.run(found, steps, askable, results.measurements, ask)
        results.write(folder)


def main(arguments: Sequence[str] | None = None, in_spark: bool = False) -> int:
    """Run the command, or ``python -m bench.spark``; returns the exit status."""
    chosen, options = _arguments(arguments, in_spark)
    folder = results_folder(chosen, bool(options), "spark" if in_spark else "")
    asked = {key.partition(":")[0] for w in chosen.workloads for key in w.queries}
    engine.prepare(sorted(asked.intersection(chosen.engines)), _say)
    results = Results(machine.describe(), options)
    results.planned = [(w.title, key) for w in chosen.workloads for key in _keys(w, chosen.engines)]
    steps = sum(len(_keys(w, chosen.engines)) for _, steps in chosen.sweeps for _, w in steps)
    status = 0
    with (
        tempfile.TemporaryDirectory(prefix="lftj-bench-") as tables,
        counting_bar(_console) as progress,
    ):
        bar = progress.add_task("measuring", total=len(results.planned) + steps)

        def ask(workload: Workload, key: str) -> Measurement:
            def show(stage: str) -> None:
                progress.update(bar, description=f"{escape(workload.name)}, {engine.title(key)}: {stage}")

            row = harness.measure(
                workload,
                key,
                Path(tables),
                runs=3 if chosen.quick else 5,
                spend=0.1 if chosen.quick else 1.0,
                limit=chosen.limit,
                progress=show,
            )
            progress.advance(bar)
            _console.print(_line(workload, row), highlight=False)
            return row

        try:
            _measure_all(chosen, results, folder, ask)
            results.complete = True
        except KeyboardInterrupt:
            status = 130
    results.write(folder)
    try:
        plots.draw(results, folder)
    except ImportError:
        _console.print("matplotlib is not installed: no plots; install lftj[bench]")
    print(results.as_markdown())
    _console.print(f"{'partial results' if status else 'results'} are in {_shown(folder)}", highlight=False)
    if status == 0 and results.wrong():
        return 1
    return status


def _shown(folder: Path) -> str:
    """The folder as the user would type it."""
    try:
        return str(folder.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


if __name__ == "__main__":
    sys.exit(main())
