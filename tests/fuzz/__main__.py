"""``make fuzz``: random programs over random data, all ways to run and to keep them, against other oracles.

    make fuzz                          five minutes, by the seed of the day
    make fuzz SECONDS=3600 SEED=7      an hour; ONLY=kept plays cases of one kind
    make fuzz CASE=1234 SEED=7         one case once more

The corpus, what was found before, comes first.  Each processor has a process that plays cases one after the
other; a case may end its process or hang it.  What is found is made smaller and written as a script to
``fuzz-found/``, one for each thing that looks like a fault of its own.  With ``NUMBA_BOUNDSCHECK=1`` kernels
check their bounds.

Exit status: 0 where nothing was found, else 1.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

import lftj
from fuzz.case import Case
from fuzz.draw import KINDS, draw
from fuzz.minimise import minimise
from fuzz.outcome import Found, outcome
from fuzz.scripts import corpus, read, script
from fuzz.sql.postgres import cluster
from fuzz.sql.tally import told
from fuzz.workers import Line, Worker
from support.daily import SEED

FOUND = Path("fuzz-found")
MINIMISING = 120.0
"""Seconds for each find."""

MOST_SCRIPTS = 12
MOST_DISPUTES = 10
TELL_EVERY = 30.0
"""Seconds."""

_console = Console(stderr=True, soft_wrap=True)


@dataclass
class Tally:
    """What was played, and what was found: the first case of each sign, and how often it came."""

    cases: int = 0
    said: int = 0
    commits: int = 0
    rules: int = 0
    finds: dict[str, tuple[int, Found]] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)
    of_sql: Counter[str] = field(default_factory=Counter)
    disputes: list[str] = field(default_factory=list)

    def add(self, line: Line) -> None:
        if "end" in line.said:
            self.cases += 1
            self.said += bool(line.said.get("said", False))
            self.commits += line.said["commits"]
            self.rules += line.said["rules"]
            self.of_sql.update(line.said["counts"])
            self.disputes += line.said["disputes"]
            if "found" in line.said:
                self.find(line.said["end"], Found(*line.said["found"]))
        elif line.died:
            self.find(line.worker.at, Found(line.died, f"the process ended: {line.died}"))

    def find(self, number: int, found: Found) -> None:
        if found.sign not in self.finds:
            self.finds[found.sign] = (number, found)
            _console.print(f"case {number}: {found.sign}: {found.what[:300]}", markup=False)
        self.often[found.sign] += 1

    def __str__(self) -> str:
        return (
            f"{self.cases} cases ({self.said} that the oracle could judge), {self.rules} rules,"
            f" {self.commits} commits, {sum(self.often.values())} found"
        )


def run(seed: int, seconds: float, workers: int, only: str | None, first: bool) -> Tally:
    """Play cases for so long.  ``first``: only until something is found."""
    lines: queue.Queue[Line] = queue.Queue()
    end = time.time() + seconds
    working = {Worker(seed, place, workers, end, only, lines) for place in range(workers)}
    tally, told = Tally(), time.monotonic()
    try:
        while working and not (first and tally.finds):
            try:
                line = lines.get(timeout=1.0)
                tally.add(line)
                if line.died is not None:
                    working.discard(line.worker)
                    if line.died and time.time() < end:
                        line.worker.go_on()
                        working.add(line.worker)
            except queue.Empty:
                for one in working:
                    one.end_if_it_hangs()
            if time.monotonic() - told > TELL_EVERY:
                told = time.monotonic()
                _console.print(f"{tally}, {max(0.0, end - time.time()):.0f} s to go")
    except KeyboardInterrupt:
        _console.print("interrupted")
    finally:
        for one in working:
            one.end()
    return tally


def write_down(seed: int, number: int, case: Case, found: Found) -> Path:
    """The case as a script, made smaller where that is what it takes to find the same."""
    again = outcome(case)
    smaller = case
    if again is not None:
        smaller = minimise(
            case, lambda one: (o := outcome(one)) is not None and o.sign == again.sign, MINIMISING
        )
        found = outcome(smaller) or again
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"seed_{seed}_case_{number}.py"
    often = "" if again is not None else "  (Not found again when it was played alone.)"
    path.write_text(
        script(smaller, f"Seed {seed}, case {number}: {found.sign}: {found.what}{often}"), encoding="utf-8"
    )
    return path


def repeat(scripts: list[Path]) -> int:
    """How many of the cases are wrong (again)."""
    wrong = 0
    for path in scripts:
        found = outcome(read(path))
        if found is not None:
            wrong += 1
            _console.print(f"{path}: {found.sign}: {found.what[:300]}", markup=False)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description="Random programs against other oracles.")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=SEED, help="default: by the date")
    parser.add_argument("--only", choices=[maker.__name__ for maker, _ in KINDS])
    parser.add_argument("--case", type=int, help="play this case and no other")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--first", action="store_true", help="stop at the first find, and don't make it smaller"
    )
    parser.add_argument("--without-corpus", action="store_true", help="only new cases")
    given = parser.parse_args()
    os.environ.setdefault("LFTJ_DEBUG", "1")
    lftj.warm_up()  # a case that waits for the compiler would look stuck
    if given.case is not None:
        case = draw(given.seed, given.case, given.only)
        found = outcome(case)
        print(script(case, found.what if found else "nothing found"))
        return int(found is not None)
    scripts = [] if given.without_corpus else corpus()
    wrong = repeat(scripts)
    with cluster() as there:
        if not there:
            _console.print("without PostgreSQL: it is not installed")
        tally = run(given.seed, given.seconds, given.workers, given.only, given.first)
    for sign, (number, found) in list(tally.finds.items())[:MOST_SCRIPTS]:
        if not given.first:
            path = write_down(given.seed, number, draw(given.seed, number, given.only), found)
            _console.print(f"{path}: {sign}, {tally.often[sign]} times", markup=False)
    if tally.of_sql:
        print(f"SQL: {told(tally.of_sql)}")
        for dispute in sorted(tally.disputes, key=len)[:MOST_DISPUTES]:
            print(f"  oracles differ: {dispute}")
    checked = ", with bounds checks" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
    print(f"seed {given.seed}{checked}: {tally}; of the corpus {len(scripts)} repeated, {wrong} wrong")
    return int(bool(wrong or tally.finds))


if __name__ == "__main__":
    sys.exit(main())
