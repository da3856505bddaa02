"""`Patience`: how long whoever pulls waits for the next thing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

LOOK_AGAIN = 0.5
"""Seconds after which whoever waits looks whether it is enough."""


class Patience:
    """So many seconds without anything, None being no end, or until somebody says that it is enough."""

    def __init__(self, seconds: float | None, is_enough: Callable[[], bool] = lambda: False) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._is_enough = is_enough
        self.renew()

    def renew(self) -> None:
        """Something came."""
        self._ends = time.monotonic() + self._seconds

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is wanted, even if it is there."""
        return self._is_enough()

    @property
    def is_over(self) -> bool:
        return self.is_stopped or time.monotonic() >= self._ends

    @property
    def left(self) -> float:
        """Seconds to wait for, until one looks again."""
        return 0.0 if self.is_stopped else max(0.0, min(LOOK_AGAIN, self._ends - time.monotonic()))
