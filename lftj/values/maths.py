"""Functions of floats: roots, powers, logarithms and trigonometry.

What has no value is refused, as a division by zero is: the logarithm of 0, a root below 0, a sine of
infinity.  What a float can't hold is infinite, or 0, as a product is.  Values are those of the C library, so
each row's is the same whatever stands beside it, and the same as DuckDB's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused

_UNARY: dict[str, Kernel] = {
    "sqrt": pc.sqrt_checked,
    "exp": pc.exp,
    "ln": pc.ln_checked,
    "log2": pc.log2_checked,
    "log10": pc.log10_checked,
    "sin": pc.sin_checked,
    "cos": pc.cos_checked,
    "tan": pc.tan_checked,
    "asin": pc.asin_checked,
    "acos": pc.acos_checked,
    "atan": pc.atan,
}


def _power(bases: pa.Array, exponents: pa.Array) -> pa.Array:
    by_zero = pc.and_(pc.equal(bases, 0.0), pc.less(exponents, 0.0))
    if pc.any(by_zero).as_py():
        raise Refused("division by zero")
    powers = pc.power(bases, exponents)
    known = pc.invert(pc.or_(pc.is_nan(bases), pc.is_nan(exponents)))
    if pc.any(pc.and_(pc.is_nan(powers), known)).as_py():
        raise Refused("no root of a number below 0")
    return powers


def _checked(name: str, function: Callable[[pa.Array], pa.Array], numbers: pa.Array) -> pa.Array:
    try:
        return function(numbers)
    except pa.ArrowInvalid:
        raise Refused(f"{name} has no value") from None


KERNELS: dict[str, Kernel] = {
    **{name: partial(_checked, name, function) for name, function in _UNARY.items()},
    "power": _power,
    "atan2": pc.atan2,
}
"""Of arrays of ``float64``."""

ARITIES = {name: 2 if name in ("power", "atan2") else 1 for name in KERNELS}
