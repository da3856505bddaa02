"""Cases that take turns: of many or long ones each run of ``make test`` takes a third, of three days all.

Marked ``in_turns`` are tests whose cases together take seconds.  ``LFTJ_TURN`` says whose turn it is, 0, 1 or
2; ``make test`` gives the day's, ``make test TURN=all`` and whoever calls pytest have all cases.  What a turn
takes is the same each time.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import hypothesis
import pytest

N_TURNS = 3


def turn_of(said: str) -> int | None:
    """Whose turn it is; None: all have theirs.

    >>> turn_of("1"), turn_of("all"), turn_of("")
    (1, None, None)
    """
    if said in ("", "all"):
        return None
    if said not in map(str, range(N_TURNS)):
        raise pytest.UsageError(f"LFTJ_TURN is {said!r}; it is 0, 1, 2 or all")
    return int(said)


TURN = turn_of(os.environ.get("LFTJ_TURN", ""))


def later(tests: Iterable[str], turn: int) -> set[str]:
    """Those of the tests, given by their names, whose turn is another one.

    Cases of one test take turns in the order in which they are given, tests without cases by their names.

    >>> sorted(later(["a.py::t[z]", "a.py::t[y]", "b.py::u", "a.py::t[x]", "a.py::v"], 0))
    ['a.py::t[x]', 'a.py::t[y]', 'b.py::u']
    """
    families: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        function, has_cases, _ = test.partition("[")
        families[function if has_cases else ""].append(test)
    families[""].sort()
    return {test for family in families.values() for n, test in enumerate(family) if n % N_TURNS != turn}


def share(examples: int) -> int:
    """How many of so many random examples a turn has."""
    return examples if TURN is None else -(-examples // N_TURNS)


def drawn_in_turns(test: Callable[..., Any]) -> Callable[..., Any]:
    """``test``, made by ``given``, or a state machine: each turn has examples of its own, a :func:`share`."""
    return test if TURN is None else hypothesis.seed(TURN)(test)
