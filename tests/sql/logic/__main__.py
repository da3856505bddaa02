"""Run files of tests in the format of sqllogictest, and count what came of their queries.

    python -m sql.logic [FILE or FOLDER ...]      those under $LFTJ_SLT where none is named
        --engine once | kept | duckdb             how a query is answered (once)
        --most N                                  queries of each file
        --show WHAT                               outcomes that are printed (wrong raised crashed)

The exit status is 1 where an answer is wrong, or something was raised or crashed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sql.logic.engines import ENGINES
from sql.logic.play import Outcome, play

FAULTS = ("wrong", "raised", "crashed")
SUFFIXES = (".test", ".slt", ".slt.part")


def files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES))
        else:
            yield path


def _play(path: Path, engine: str, most: int | None, most_seconds: int) -> Iterator[Outcome]:
    return play(path.read_text(encoding="utf-8", errors="replace"), ENGINES[engine], most_seconds, most)


def construct(said: str) -> str:
    """A refusal without what differs from text to text.

    >>> construct("line 3: EXCLUDE of a window is not kept yet: 'x'")
    'line _: EXCLUDE of a window is not kept yet: _'
    """
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "_", said)[:90]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--engine", choices=ENGINES, default="once")
    parser.add_argument("--most", type=int)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--show", nargs="*", default=FAULTS)
    asked = parser.parse_args()
    paths = asked.paths or [Path(os.environ["LFTJ_SLT"])] if asked.paths or "LFTJ_SLT" in os.environ else []
    counts: Counter[str] = Counter()
    said: dict[str, Counter[str]] = {}
    for path in files(paths):
        own: Counter[str] = Counter()
        for outcome in _play(path, asked.engine, asked.most, asked.seconds):
            own[outcome.what] += 1
            if outcome.said:
                said.setdefault(outcome.what, Counter())[construct(outcome.said)] += 1
            if outcome.what in asked.show:
                print(f"  {path}:{outcome.line}: {outcome.what}: {outcome.said}\n    {outcome.text}")
        counts.update(own)
        print(
            f"{path}: {', '.join(f'{n} {what}' for what, n in own.most_common()) or 'no queries'}", flush=True
        )
    for what, number in counts.most_common():
        print(f"{number:>8}  {what}")
        for words, often in said.get(what, Counter()).most_common(40):
            print(f"        {often:>6}  {words}")
    return 1 if any(counts[what] for what in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
