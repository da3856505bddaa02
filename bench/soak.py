"""``python -m bench.soak``: many random changes of chained rules of all kinds, checked now and then.

    make soak                                      100,000 changes
    python -m bench.soak --changes 2000 --seed 7   fewer, from another seed
    python -m bench.soak --changes 1000000 --sizes-every 50000 --check-every 100000
                                                   what is held, and what commits took since the line before

Transactions have 1 to 200 changes: inserts and erasures, repetitions, no-ops,
tuples that come and go in one transaction, and empty ones.  Half of the notes that come are
texts that nobody has seen before.  The relations are
also kept as plain sets and compared.  Every head is verified and every
invariant checked each CHECK_EVERY changes and at the end.  The same seed makes
the same run.

Exit status: 0; 1 when something was wrong, with the seed and the number of the
transaction that showed it; 130 after Ctrl-C, with what was checked so far.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.report.counting_bar import counting_bar
from bench.soak_sizes import Sizes
from lftj.errors import VerificationError
from maintenance import Workspace

CHANGES = 100_000
CHECK_EVERY = 2_000
MOST_AT_ONCE = 200
KEYS = 24
"""Values of every column: few, so that changes meet."""

TUPLES = {"edge": 230, "node": 20, "barred": 60, "note": 40}
"""Sizes that the base relations move about."""

PROGRAM = """
link(a, b) <- edge(a, b), node(a), node(b).
triangle(a, b, c) <- link(a, b), link(b, c), link(a, c).
open(a, b, c) <- link(a, b), link(b, c), !link(a, c).
apart(a, c) <- barred(a, c), !edge(a, c), node(a).
kept(a, b, c) <- open(a, b, c), !barred(a, b), !apart(a, c).
hub(a) <- edge(a, b), edge(b, c), edge(a, c), barred(c, _).
between(a, c) <- link(a, b), link(b, c), barred(a, d), node(d), barred(e, c), node(e).
degree[a] = count(), highest[a] = max(b), sum_of[a] = sum(w), mean[a] = avg(w) <- link(a, b), w = b * 1.1.
least[a] = min(c), least_by[a, b] = min(c) <- open(a, b, c).
steep[a] = v <- degree[a] = d, highest[a] = h, v = h - d, v > 3.
silent(a) <- node(a), !hub(a), v = a + 1, !node(v).
guarded(a) <- hub(a), barred(b, c), triangle(b, c, _).
said(a, s) <- note(a, s, _), node(a).
unsaid(s) <- note(a, s, _), !node(a).
text[a] = concat(s), foremost[a] = min(s), hindmost[a] = max(s) <- said(a, s).
paid[a] = sum(v), price[a] = avg(w) <- note(a, _, w), v = w * 1.5.
"""

COLUMNS = {
    "edge": (pa.int64(), pa.int64()),
    "node": (pa.int64(),),
    "barred": (pa.int64(), pa.int64()),
    "note": (pa.int64(), pa.string(), pa.decimal128(12, 2)),
}

Row = tuple[Any, ...]
_console = Console(stderr=True, soft_wrap=True)


class Soak:
    """A workspace with the program, and its base relations as plain sets."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.relations: dict[str, set[Row]] = {name: set() for name in COLUMNS}
        self.workspace = Workspace()
        self.notes = 0
        for name, types in COLUMNS.items():
            rows = [self._row(name) for _ in range(TUPLES[name])]
            self.relations[name] = set(rows)
            columns = zip(types, zip(*sorted(self.relations[name]), strict=True), strict=True)
            arrays = {f"c{number}": pa.array(values, type_) for number, (type_, values) in enumerate(columns)}
            self.workspace.load(name, pa.table(arrays))
        self.workspace.install(PROGRAM)
        self.transactions = 0
        self.seconds: list[float] = []
        """Of the commits since the figures were told last."""
        self.most_moved = 0
        """The most rows that one of them moved for housekeeping."""

    def _row(self, relation: str) -> Row:
        """A random row, half of the time one that is there."""
        there = self.relations[relation]
        if there and self.generator.random() < 0.5:
            ordered = sorted(there)
            return ordered[int(self.generator.integers(len(ordered)))]
        keys = self.generator.integers(0, KEYS, len(COLUMNS[relation])).tolist()
        if relation == "note":
            self.notes += 1
            return keys[0], f"note {self.notes}", Decimal(self.notes % 100_000) / 4
        return tuple(keys)

    def transact(self, most: int) -> int:
        """Commit one transaction of at most so many changes; how many it staged."""
        largest = min(most, MOST_AT_ONCE)
        count = int(min(largest, self.generator.geometric(0.08) - 1, most))
        if self.generator.random() < 0.05:
            count = largest
        staged: dict[str, dict[Row, int]] = {name: {} for name in COLUMNS}
        with self.workspace.transaction() as transaction:
            for _ in range(count):
                name = list(COLUMNS)[int(self.generator.integers(len(COLUMNS)))]
                wanted = 0.65 if len(self.relations[name]) < TUPLES[name] else 0.35
                row, weight = self._row(name), 1 if self.generator.random() < wanted else -1
                (transaction.insert if weight > 0 else transaction.erase)(name, [row])
                staged[name][row] = staged[name].get(row, 0) + weight
        self.seconds.append(transaction.stats.seconds)
        self.most_moved = max(self.most_moved, transaction.stats.housekeeping_rows)
        for name, rows in staged.items():
            self.relations[name] |= {row for row, weight in rows.items() if weight > 0}
            self.relations[name] -= {row for row, weight in rows.items() if weight < 0}
        self.transactions += 1
        return count

    def figures(self) -> str:
        """What is held, and of the commits since this was asked last the median, the slowest and the work."""
        seconds, moved = np.array(self.seconds), self.most_moved
        self.seconds, self.most_moved = [], 0
        median = float(np.median(seconds))
        times = seconds.max() / median
        return (
            f"{Sizes.of(self.workspace)}; slowest commit {seconds.max() * 1e3:.2f} ms, {times:.1f} times the"
            f" median of {median * 1e3:.2f} ms; at most {moved:,} rows moved"
        )

    def check(self) -> None:
        """Raise VerificationError or AssertionError when something is wrong."""
        self.workspace.verify()
        self.workspace.check_invariants()
        for name, rows in self.relations.items():
            table = self.workspace[name].table
            held = set(zip(*(column.to_pylist() for column in table.columns), strict=True))
            assert held == rows, f"{name} holds other tuples than were staged"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="Soak maintained rules.")
    parser.add_argument("--changes", type=int, default=CHANGES, metavar="N", help=f"default {CHANGES:,}")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default 1")
    parser.add_argument(
        "--check-every", type=int, default=CHECK_EVERY, metavar="N", help=f"changes; default {CHECK_EVERY:,}"
    )
    parser.add_argument("--sizes-every", type=int, metavar="N", help="print what is held every N changes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen = _arguments(arguments)
    started = time.perf_counter()
    soak = Soak(chosen.seed)
    made = checked = sized = 0
    try:
        with counting_bar(_console) as progress:
            bar = progress.add_task("changes", total=chosen.changes)
            while made < chosen.changes:
                made += soak.transact(chosen.changes - made)
                if made - checked >= chosen.check_every or made >= chosen.changes:
                    soak.check()
                    checked = made
                if chosen.sizes_every and made - sized >= chosen.sizes_every:
                    sized = made
                    print(f"{made:,} changes: {soak.figures()}", flush=True)
                progress.update(bar, completed=made)
    except KeyboardInterrupt:
        print(f"interrupted: {checked:,} changes of seed {chosen.seed} are checked")
        return 130
    except (VerificationError, AssertionError) as error:
        where = f"between changes {checked:,} and {made:,}, transaction {soak.transactions:,}"
        print(f"seed {chosen.seed}, {where}: {type(error).__name__}: {error}")
        return 1
    seconds = time.perf_counter() - started
    heads = ", ".join(f"{name} {soak.workspace[name].count:,}" for name in soak.workspace._heads)
    print(f"{made:,} changes in {soak.transactions:,} transactions, all checked, {seconds:.0f} s; {heads}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
