"""``python -m bench.trace_distance``: does the cost of maintenance follow the trace edit distance?

    python -m bench.trace_distance               everything, into bench/results/trace-distance/
    python -m bench.trace_distance --quick       small data, less than a minute
    python -m bench.trace_distance --only star   workloads whose name has this in it
    python -m bench.trace_distance --sizes 100000,1000000 --minutes 30
                                                 two sizes; what is not begun within half an hour is left out

A selection writes into bench/results/selection/trace-distance/ or, with
``--quick``, bench/results/quick/trace-distance/; ``--out`` names another folder.
Exit status: 0; 1 when a head was wrong; 130 after Ctrl-C, which leaves what there is.

Where the full trace of a size is longer than the limit, this size and the larger
ones are left out and the report says so; so it does of what the time did not
suffice for: smaller data come first, of all workloads.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
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
    options.parser.add_argument(
        "--sizes", type=_sizes, metavar="N,N", help="tuples of the data, in place of the usual sizes"
    )
    options.parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="N", help="begin nothing when so many are over"
    )
    chosen = options.parse(arguments)
    options.refuse_unmatched(chosen, (family.name for family in FAMILIES))
    chosen.families = [family for family in FAMILIES if is_selected(chosen, family.name)]
    words = options.words(chosen, "quick")
    if chosen.sizes:
        words = "; ".join(filter(None, (words, f"sizes {', '.join(map(str, chosen.sizes))}")))
    return chosen, words


def _sizes(text: str) -> tuple[int, ...]:
    """Sizes as ``--sizes`` has them, ascending."""
    try:
        sizes = sorted(map(int, text.split(",")))
    except ValueError:
        sizes = [0]
    if sizes[0] < 10:
        raise argparse.ArgumentTypeError(
            f"{text!r}: numbers of tuples, at least 10, with commas between them"
        )
    return tuple(sizes)


def _repeats(quick: bool, size: int) -> dict[int, int]:
    if quick:
        return QUICK_REPEATS
    return FEWER_REPEATS if size >= FEWER_FROM else REPEATS


def _measure_all(
    results: DistanceResults, steps: list[tuple[Family, int]], chosen: argparse.Namespace, folder: Path
) -> None:
    end = time.monotonic() + 60 * chosen.minutes
    with counting_bar(_console) as progress:
        bar = progress.add_task("measuring", total=len(steps))
        for family, size in steps:
            title = f"{family.name}, {size:,} tuples"

            def show(stage: str, title: str = title) -> None:
                progress.update(bar, description=f"{title}: {stage}")

            shorter = [s.size for s in results.skipped if s.family == family.name]
            if time.monotonic() > end:
                found: list[Point] | Skipped = Skipped(family.name, size, "the time was over")
            elif shorter:  # not even installed: records of such a trace may not fit the memory
                found = Skipped(family.name, size, f"left out as {min(shorter):,} is")
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
    sizes = chosen.sizes or (QUICK_SIZES if chosen.quick else SIZES)
    steps = [(family, size) for size in sizes for family in chosen.families]
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
