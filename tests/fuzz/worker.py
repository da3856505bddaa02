"""A process that plays cases one after the other and says so, a line each: ``python -m fuzz.worker``.

Lines are JSON.  ``{"begin": n}`` comes before case n is played, so that who reads them knows which case it
was where the process dies; ``{"end": n, "said": true, ...}`` after it, with ``found`` if it was wrong.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from fuzz.case import ApplyMany, Case, Commit, text
from fuzz.draw import draw
from fuzz.minimise import minimise
from fuzz.outcome import Found, found_by, judged
from fuzz.play import play
from fuzz.sql import tally
from fuzz.sql.tree import constructs


def commits(case: Case) -> int:
    """How many transactions the case has."""
    return sum(
        len(step.transactions) if isinstance(step, ApplyMany) else isinstance(step, Commit)
        for step in case.steps
    )


APART = 5.0
"""Seconds to make a find of SQL small enough to tell it from others."""


def told_apart(case: Case, found: Found) -> Found:
    """Its sign with what the smallest statement is made of that finds the same; played in this process."""

    def same(one: Case) -> bool:
        again = judged(one)
        return again is not None and again.sign == found.sign

    counts = tally.taken()
    smaller = minimise(case, same, APART)
    again = judged(smaller) or found
    tally.taken()
    tally.put(counts)
    parts = "; ".join(constructs(smaller.statements))
    return Found(f"{found.sign} [{parts}]", f"{again.what}\n{text(smaller)}")


def work(seed: int, first: int, by: int, end: float, only: str | None) -> None:
    """Play cases first, first + by, ... until the clock shows ``end``."""
    number = first
    while time.time() < end:
        _say({"begin": number})
        case = draw(seed, number, only)
        answer: dict[str, Any] = {"end": number, "commits": commits(case), "rules": len(case.program)}
        try:
            answer["said"] = play(case)
        except KeyboardInterrupt:
            return
        except BaseException as error:
            found = found_by(case, error)
            if case.kind == "sql":
                found = told_apart(case, found)
            answer["found"] = [found.sign, found.what]
        answer["counts"], answer["disputes"] = tally.taken()
        _say(answer)
        number += by


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("seed", "first", "by"):
        parser.add_argument(name, type=int)
    parser.add_argument("end", type=float)
    parser.add_argument("--only")
    given = parser.parse_args()
    work(given.seed, given.first, given.by, given.end, given.only)


if __name__ == "__main__":
    main()
