"""``python -m bench.trace_distance``: does the cost of maintenance follow the trace edit distance?

    python -m bench.trace_distance               everything, into bench/results/trace-distance/
    python -m bench.trace_distance --quick       small data, less than a minute
    python -m bench.trace_distance --only star   workloads whose name has this in it

A selection writes into bench/results/selection/trace-distance/ or, with
``--quick``, bench/results/quick/trace-distance/; ``--out`` names another folder.
Exit status: 0; 1 when a head was wrong; 130 after Ctrl-C, which leaves what there is.

Where the full trace of a size is longer than the limit, this size and the larger
ones are left out and the report says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.distance import plots as distance_plots
from bench.distance.bound_fit import Point
from bench.distance.measurement import Skipped, measure
from bench.distance.report import DistanceResults
from bench.distance.workloads import FAMILIES, Family
from bench.report import machine
from bench.report.counting_bar import counting_bar
from bench.report.options import Options, is_selected, results_folder
from lftj.errors import VerificationError

LIMIT = 8_000_000
"""Operations of a full trace that are worth comparing."""

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 1_000)
FEWER_FROM = 1_000_000
"""Tuples from which on a change is repeated less often."""

REPEATS = {1: 9, 10: 5, 100: 5, 1_000: 3, 10_000: 2}
FEWER_REPEATS = {1: 4, 10: 2, 100: 2, 1_000: 2, 10_000: 1}
QUICK_REPEATS = {1: 3, 10: 2, 100: 1}
"""Change size to the number of random changes of that size."""

_console = Console(stderr=True, soft_wrap=True)


def _arguments(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, str]:
    """What was chosen, and how results name it."""
    options = Options(
        "python -m bench.trace_distance", "Measure operations against trace edit distance.", "workload"
    )
    options.parser.add_argument(
        "--limit", type=int, default=LIMIT, metavar="N", help=f"longest full trace (default {LIMIT:,})"
    )
    chosen = options.parse(arguments)
    options.refuse_unmatched(chosen, (family.name for family in FAMILIES))
    chosen.families = [family for family in FAMILIES if is_selected(chosen, family.name)]
    return chosen, options.words(chosen, "quick")


def _repeats(quick: bool, size: int) -> dict[int, int]:
    if quick:
        return QUICK_REPEATS
    return FEWER_REPEATS if size >= FEWER_FROM else REPEATS


def _measure_all(
    results: DistanceResults, steps: list[tuple[Family, int]], chosen: argparse.Namespace, folder: Path
) -> None:
    with counting_bar(_console) as progress:
        bar = progress.add_task("measuring", total=len(steps))
        for family, size in steps:
            title = f"{family.name}, {size:,} tuples"

            def show(stage: str, title: str = title) -> None:
                progress.update(bar, description=f"{title}: {stage}")

            shorter = [s.size for s in results.skipped if s.family == family.name]
            if shorter:  # not even installed: records of such a trace may not fit the memory
                found: list[Point] | Skipped = Skipped(family.name, size, f"left out as {min(shorter):,} is")
            else:
                found = measure(family, size, _repeats(chosen.quick, size), chosen.limit, show)
            if isinstance(found, Skipped):
                results.skipped.append(found)
                _console.print(f"{title}: not measured, {found.reason}", highlight=False)
            else:
                results.points += found
                _console.print(f"{title}: {len(found)} points", highlight=False)
            results.write(folder)
            progress.advance(bar)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen, options = _arguments(arguments)
    folder = results_folder(chosen, bool(options), "trace-distance")
    results = DistanceResults(machine.describe(), options)
    sizes = QUICK_SIZES if chosen.quick else SIZES
    steps = [(family, size) for family in chosen.families for size in sizes]
    status = 0
    try:
        _measure_all(results, steps, chosen, folder)
        results.complete = True
    except KeyboardInterrupt:
        status = 130
    except VerificationError as error:
        _console.print(f"a head is wrong, so nothing measured on it counts: {error}", highlight=False)
        status = 1
    results.write(folder)
    try:
        distance_plots.draw(results, folder)
    except ImportError:
        _console.print("matplotlib is not installed: no plots; install lftj[bench]")
    print(results.as_markdown())
    return status


if __name__ == "__main__":
    sys.exit(main())
