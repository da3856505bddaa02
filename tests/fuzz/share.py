"""The share of ``make fuzz`` that the tests play."""

from __future__ import annotations

from fuzz.draw import draw
from fuzz.outcome import Found, in_a_process, judged
from support.daily import SEED
from support.turns import share

PIECES = 8
"""So many tests, that processes may share."""

CASES = share(6)
"""In a piece."""

SECONDS = 300.0
"""A piece that takes longer is stuck."""


def found_in(piece: int, odd: bool) -> Found | None:
    """What is wrong in a piece of the cases of odd or even numbers, and how to play it again."""
    first = piece * CASES * 2 + odd
    numbers = range(first, first + 2 * CASES, 2)
    repeat = f"make fuzz SEED={SEED} CASE="

    def play() -> Found | None:
        for number in numbers:
            found = judged(draw(SEED, number))
            if found is not None:
                return Found(f"{repeat}{number}: {found.sign}", found.what)
        return None

    return in_a_process(play, f"one of {repeat}{numbers}", SECONDS)
