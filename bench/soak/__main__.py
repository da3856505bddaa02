"""``python -m bench.soak``: many random changes, checked now and then, and what they took judged in the end.

    make soak                                      100,000 changes of chained rules of all kinds
    python -m bench.soak --changes 2000 --seed 7   fewer, from another seed
    python -m bench.soak --changes 1000000 --sizes-every 50000 --check-every 100000
                                                   what is held, and what commits took since the line before
    python -m bench.soak --edges 3000000 --changes 1000000 --check-every 500000
                                                   single edges of so many, at constant size

Every head is verified and every invariant checked each CHECK_EVERY changes and at the end.  Then what
commits took and what was held are judged by their counters (:mod:`bench.soak.steady`).  The same seed makes
the same run.

Exit status: 0; 1 when something was wrong, with the seed and the number of the
transaction that showed it; 130 after Ctrl-C, with what was checked so far.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console

from bench.report.counting_bar import counting_bar
from bench.soak.edges import EdgeSoak
from bench.soak.mixed import MixedSoak
from bench.soak.sizes import Sizes
from lftj.errors import VerificationError

CHANGES = 100_000
CHECK_EVERY = 2_000
SIZED = 64
"""How often in a run it is noted what is held."""

_console = Console(stderr=True, soft_wrap=True)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="Soak maintained rules.")
    parser.add_argument("--changes", type=int, default=CHANGES, metavar="N", help=f"default {CHANGES:,}")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default 1")
    parser.add_argument(
        "--check-every", type=int, default=CHECK_EVERY, metavar="N", help=f"changes; default {CHECK_EVERY:,}"
    )
    parser.add_argument("--sizes-every", type=int, metavar="N", help="print what is held every N changes")
    parser.add_argument(
        "--edges", type=int, metavar="N", help="single changes of a relation of N edges instead"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen = _arguments(arguments)
    started = time.perf_counter()
    soak: EdgeSoak | MixedSoak = (
        EdgeSoak(chosen.seed, chosen.edges) if chosen.edges else MixedSoak(chosen.seed)
    )
    made = checked = sized = told = 0
    try:
        with counting_bar(_console) as progress:
            bar = progress.add_task("changes", total=chosen.changes)
            while made < chosen.changes:
                made += soak.transact(chosen.changes - made)
                if made - checked >= chosen.check_every or made >= chosen.changes:
                    soak.check()
                    checked = made
                if (made - sized) * SIZED >= chosen.changes:
                    sized = made
                    soak.steady.enter_sizes(Sizes.of(soak.workspace))
                if chosen.sizes_every and made - told >= chosen.sizes_every:
                    told = made
                    sizes = Sizes.of(soak.workspace)
                    print(f"{made:,} changes: {sizes}; {soak.steady.figures()}", flush=True)
                progress.update(bar, completed=made)
        soak.steady.check()
    except KeyboardInterrupt:
        print(f"interrupted: {checked:,} changes of seed {chosen.seed} are checked")
        return 130
    except (VerificationError, AssertionError) as error:
        where = f"between changes {checked:,} and {made:,}, transaction {soak.transactions:,}"
        if checked == chosen.changes:
            where = f"over all {made:,} changes"
        print(f"seed {chosen.seed}, {where}: {type(error).__name__}: {error}")
        return 1
    seconds = time.perf_counter() - started
    heads = ", ".join(f"{name} {soak.workspace[name].count:,}" for name in soak.workspace._heads)
    print(f"{made:,} changes in {soak.transactions:,} transactions, all checked, {seconds:.0f} s; {heads}")
    if soak.steady.says_something:
        print(soak.steady)
    return 0


if __name__ == "__main__":
    sys.exit(main())
