"""Bits of ``int64``: DuckDB's ``&``, ``|``, ``xor``, ``~``, ``<<`` and ``>>``.

Cost: whole-array operations.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused

_WIDTH = 64


def shifted_left(numbers: pa.Array, places: pa.Array) -> pa.Array:
    """Raises :class:`Refused` for what is below 0, and where a bit would be lost.

    >>> shifted_left(pa.array([3, 0]), pa.array([2, 99])).to_pylist()
    [12, 0]
    """
    values, by = numbers.to_numpy(), places.to_numpy()
    if (values < 0).any() or (by < 0).any():
        raise Refused("no shift to the left of or by a number below 0")
    near = np.minimum(by, _WIDTH - 1)
    if (values > np.iinfo(np.int64).max >> near).any():
        raise Refused("a shift to the left loses bits")
    return pa.array(values << near)


def shifted_right(numbers: pa.Array, places: pa.Array) -> pa.Array:
    """With the sign; 0 where it is by less than 0 or by all bits.

    >>> shifted_right(pa.array([-5, 5, -5]), pa.array([1, -1, 64])).to_pylist()
    [-3, 0, 0]
    """
    values, by = numbers.to_numpy(), places.to_numpy()
    within = (by >= 0) & (by < _WIDTH)
    return pa.array(np.where(within, values >> np.where(within, by, 0), 0))


KERNELS: dict[str, tuple[int, Kernel]] = {
    "bitwise_and": (2, pc.bit_wise_and),
    "bitwise_or": (2, pc.bit_wise_or),
    "bitwise_xor": (2, pc.bit_wise_xor),
    "bitwise_not": (1, pc.bit_wise_not),
    "shift_left": (2, shifted_left),
    "shift_right": (2, shifted_right),
}
"""How many numbers each takes, and what it does."""
