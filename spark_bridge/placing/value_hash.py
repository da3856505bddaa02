"""Hashes of values that are the same in every process, and parts of an axis by them.

Invariant: equal values have equal hashes, whatever the types of the columns that they
stand in (:meth:`lftj.values.domains.Domain.hashes`), and so have NULLs.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lftj.values.domain import null_mask, taken
from lftj.values.domains import Domains

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)
_OF_NULL = np.uint64(0x6E756C6C)


def hashes_of(column: pa.Array | pa.ChunkedArray, domains: Domains) -> np.ndarray:
    """The hash of each value of a column, uint64; NULL has one, too, whatever the type.

    >>> same = [pa.array([7], pa.int8()), pa.array([7], pa.int64())]
    >>> [int(hashes_of(column, Domains())[0]) % 1000 for column in same]
    [604, 604]
    """
    domain = domains.of(column.type)
    missing = null_mask(column)
    known = column if missing is None else taken(column, np.flatnonzero(~missing))
    hashes = mixed(domain.hashes(np.ascontiguousarray(domain.encode(known))))
    if missing is None:
        return hashes
    found = np.full(len(column), _OF_NULL)
    found[~missing] = hashes
    return found


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
