"""Functions of floats: roots, powers, logarithms and trigonometry.

What has no value is refused, as a division by zero is: the logarithm of 0, a root below 0, a sine of
infinity.  With ``ieee_`` before its name a function gives infinity or NaN there, as IEEE 754 has it.  What a
float can't hold is infinite, or 0, as a product is.  Values are those of the C library, so each row's is the
same whatever stands beside it, and the same as DuckDB's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused

_PARTIAL: dict[str, tuple[Kernel, Kernel]] = {
    "sqrt": (pc.sqrt_checked, pc.sqrt),
    "ln": (pc.ln_checked, pc.ln),
    "log": (pc.log10_checked, pc.log10),
    "log2": (pc.log2_checked, pc.log2),
    "log10": (pc.log10_checked, pc.log10),
    "sin": (pc.sin_checked, pc.sin),
    "cos": (pc.cos_checked, pc.cos),
    "tan": (pc.tan_checked, pc.tan),
    "asin": (pc.asin_checked, pc.asin),
    "acos": (pc.acos_checked, pc.acos),
}
"""What has no value for some numbers: refusing these, and as IEEE 754 has it."""


def sign(numbers: pa.Array) -> pa.Array:
    """-1, 0 or 1 as ``int64``, of any numbers; 0 of NaN.

    >>> sign(pa.array([-2.5, 0.0, float("nan")])).to_pylist()
    [-1, 0, 0]
    """
    signs = pc.sign(numbers).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pa.array(np.nan_to_num(signs).astype(np.int64))


def _cube_roots(numbers: pa.Array) -> pa.Array:
    return pa.array([math.cbrt(number) for number in numbers.to_pylist()], pa.float64())


def _remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False)))


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
    **{name: partial(_checked, name, refusing) for name, (refusing, _) in _PARTIAL.items()},
    "exp": pc.exp,
    "atan": pc.atan,
    "cbrt": _cube_roots,
    "degrees": lambda angles: pc.multiply(angles, 180.0 / math.pi),
    "radians": lambda angles: pc.multiply(angles, math.pi / 180.0),
    "power": _power,
    "atan2": pc.atan2,
    **{f"ieee_{name}": plain for name, (_, plain) in _PARTIAL.items()},
    "ieee_power": pc.power,
    "ieee_div": pc.divide,
    "ieee_mod": _remainders,
}
"""Of arrays of ``float64``."""

_OF_TWO = ("power", "atan2", "ieee_power", "ieee_div", "ieee_mod")
ARITIES = {name: 2 if name in _OF_TWO else 1 for name in KERNELS}
