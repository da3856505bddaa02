"""As ``test_share.py``, over kernels that check their bounds: so ``make test`` runs what is marked here."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.outcome import outcome
from fuzz.scripts import corpus, read
from fuzz.share import PIECES, found_in

pytestmark = [pytest.mark.kernel, pytest.mark.compiled]


@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.stem)
def test_what_was_found_before(path: Path) -> None:
    assert outcome(read(path)) is None


@pytest.mark.parametrize("piece", range(PIECES))
def test_cases_of_the_day(piece: int) -> None:
    assert found_in(piece, odd=False) is None
