"""A share of ``make fuzz``: what was found before (the corpus), and cases of the day's seed.

Cases of odd numbers are played here, those of even ones by ``test_share_with_bounds_checks.py``; each piece
in a process of its own, for a case may be the end of one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.outcome import outcome
from fuzz.scripts import corpus, read
from fuzz.share import PIECES, found_in


@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.stem)
def test_what_was_found_before(path: Path) -> None:
    assert outcome(read(path)) is None


@pytest.mark.parametrize("piece", range(PIECES))
def test_cases_of_the_day(piece: int) -> None:
    assert found_in(piece, odd=True) is None
