"""`wraps_around`: for what calls kernels whose integers are to wrap around, such as hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numba import config

Function = TypeVar("Function", bound=Callable[..., object])


def wraps_around(function: Function) -> Function:
    """Compiled kernels wrap around in silence; those that run as plain Python do so too below this one."""
    return np.errstate(over="ignore")(function) if config.DISABLE_JIT else function
