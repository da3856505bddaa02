"""Hashes of values that are the same in every process, and parts of an axis by them.

Invariant: equal values have equal hashes, whatever the types of the columns that they
stand in (:meth:`lftj.values.domains.Domain.hashes`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lftj.values.domains import Domains

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)


def hashes_of(column: pa.Array | pa.ChunkedArray, domains: Domains) -> np.ndarray:
    """The hash of each value of a column without NULL, uint64.

    >>> same = [pa.array([7], pa.int8()), pa.array([7], pa.int64())]
    >>> [int(hashes_of(column, Domains())[0]) % 1000 for column in same]
    [604, 604]
    """
    domain = domains.of(column.type)
    codes = domain.encode(column)
    return mixed(domain.hashes(np.ascontiguousarray(codes)))


def mixed(values: np.ndarray) -> np.ndarray:
    """The values scattered over 64 bits, one to one (splitmix64's last step)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> _SHIFTS[0])) * _MULTIPLIERS[0]
        values = (values ^ (values >> _SHIFTS[1])) * _MULTIPLIERS[1]
    return values ^ (values >> _SHIFTS[2])


def parts(hashes: np.ndarray, axis: str, share: int) -> np.ndarray:
    """The part of the axis, 0 to ``share - 1``, that each value belongs to; axes are cut independently."""
    salted = mixed(hashes ^ np.uint64(zlib.crc32(axis.encode())))
    return ((salted >> _HALF) * np.uint64(share) >> _HALF).astype(np.int64)


def row_hashes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The hash of each row from those of its values; of rows without columns, one zero."""
    if not columns:
        return np.zeros(1, np.uint64)
    combined = columns[0]
    for column in columns[1:]:
        combined = mixed(combined) ^ column
    return mixed(combined)
