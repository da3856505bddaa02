"""How long an answer may take, and how much its joins may find, for those who answer others.

Invariants

1. It holds for the thread, or the asynchronous task, that has set it: searches look at it between two slices,
   recursions between two rounds, wherever their other threads are.
2. Where it is used up the call ends as by any error: what is shared, such as indices, is whole.

Cost: where there is none, a look at a variable for each slice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lftj.errors import LimitError

LOOK_AGAIN = 0.05
"""Seconds after which whoever waits for other threads looks."""


class _Allowance:
    def __init__(self, seconds: float, n_bytes: float) -> None:
        self.seconds, self.n_bytes = seconds, n_bytes
        self.ends, self.left = time.monotonic() + seconds, n_bytes


_held: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowed(seconds: float = math.inf, n_bytes: float = math.inf) -> Iterator[None]:
    """A block whose answers may take so long together, and find so many bytes, 8 for each value of a row.

    Raises LimitError amid the block.

    >>> with allowed(n_bytes=100):
    ...     spend(60)
    ...     spend(60)
    Traceback (most recent call last):
    lftj.errors.LimitError: the answer takes more than 100 bytes of rows on its way: ask for less
    """
    token = _held.set(_Allowance(seconds, n_bytes))
    try:
        yield
    finally:
        _held.reset(token)


def is_limited() -> bool:
    """Whether it is to be looked at again and again."""
    return _held.get() is not None


def spend(n_bytes: int = 0) -> None:
    """So much was found.  Raises LimitError where it is too much, or it took too long."""
    held = _held.get()
    if held is None:
        return
    held.left -= n_bytes
    if held.left < 0:
        raise LimitError(
            f"the answer takes more than {held.n_bytes:,} bytes of rows on its way: ask for less"
        )
    if time.monotonic() > held.ends:
        raise LimitError(f"the answer takes longer than {held.seconds:g} s: ask for less")
