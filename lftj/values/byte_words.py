"""Bytes in memory, eight at a time: copied, compared, hashed.

For kernels; all are given by address, and whoever calls keeps alive what stands there.

Cost: O(bytes / 8).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.array_views import view_of
from indices.compiled import part

view8 = view_of(np.uint8)
_view64 = view_of(np.uint64, aligned=False)

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
"""Odd: no bit of a word is lost; of the finalizer of MurmurHash3 (Appleby 2011)."""


@part
def copy_bytes(source, target, n_bytes):
    """Copy what does not overlap."""
    n_words = n_bytes >> 3
    words, copied = _view64(source, n_words), _view64(target, n_words)
    for word in range(n_words):
        copied[word] = words[word]
    rest = n_words << 3
    last, end = view8(source, n_bytes), view8(target, n_bytes)
    for byte in range(rest, n_bytes):
        end[byte] = last[byte]


@part
def same_bytes(one, other, n_bytes):
    """Whether the bytes at two addresses are equal."""
    n_words = n_bytes >> 3
    left, right = _view64(one, n_words), _view64(other, n_words)
    for word in range(n_words):
        if left[word] != right[word]:
            return False
    first, second = view8(one, n_bytes), view8(other, n_bytes)
    byte = n_words << 3
    while byte < n_bytes and first[byte] == second[byte]:
        byte += 1
    return byte == n_bytes


@part
def hash_bytes(where, n_bytes):
    """A hash of 64 bits, uint64: the same in every process."""
    value = _SEED ^ np.uint64(n_bytes)
    n_words = n_bytes >> 3
    words = _view64(where, n_words)
    for word in range(n_words):
        value = (value ^ words[word]) * _FACTOR
        value ^= value >> np.uint64(32)
    rest = np.uint64(0)
    tail = view8(where, n_bytes)
    for byte in range(n_words << 3, n_bytes):
        rest = rest << np.uint64(8) | np.uint64(tail[byte])
    value = (value ^ rest) * _FACTOR
    return value ^ value >> np.uint64(32)
