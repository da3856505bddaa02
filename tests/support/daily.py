"""`drawn_daily`: tests of random programs that have other examples every day, under numba's bounds checks.

Elsewhere they have the same ones in every run, so that who changes something sees what it did.  A failure
is shown with its program; ``LFTJ_SEED`` asks for the examples of another day, by its ordinal number.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import Any

import hypothesis
import numba

SEED = int(os.environ.get("LFTJ_SEED") or datetime.date.today().toordinal())


def drawn_daily(test: Callable[..., Any]) -> Callable[..., Any]:
    """``test``: made by ``given``, or a state machine.

    >>> drawn_daily(hypothesis.given(hypothesis.strategies.integers())(lambda n: None)).__name__
    '<lambda>'
    """
    return hypothesis.seed(SEED)(test) if numba.config.BOUNDSCHECK else test
