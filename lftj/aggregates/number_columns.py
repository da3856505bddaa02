"""Exact numbers as an Arrow column of bytes, and back; and their sums.

A value of the column is a number of :mod:`lftj.aggregates.limb_numbers`, as it stands there::

    position, limb, limb, ...      32 bits each, lowest byte first

the limbs in two's complement, the lowest one limb ``position``; a zero has
position 0 and no limb.  So a number travels between processes without a bit lost
and in no more bytes than it has limbs.

Invariants

1. ``numbers_of(columns_of(numbers))`` are the numbers.
2. Sums are exact: whatever is added in whatever order, equal sums have equal limbs.

Cost: O(limbs).  To be added, numbers are spread out in a window of limbs, the
same for some thousands at a time: numbers of similar size take little more than
their own limbs, those of all sizes 66 each, of some thousands at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.limb_numbers import Numbers, whole_words
from lftj.aggregates.limb_pool import LimbPool
from lftj.aggregates.superaccumulator import _GUARD, _LIMB_BITS, _LIMBS
from lftj.values.domain import ArrowColumn, chunks_of

_WORD = np.dtype("<u4")
_COLUMN_WORDS = 2**29 - 1  # what the offsets of an Arrow array of binary can count, in words
_ROOM = 4  # limbs above a number that adding up may take; no number of doubles or integers comes so high
_WINDOW_ROWS = 1 << 13  # numbers that are spread out at a time


def columns_of(numbers: Numbers) -> pa.ChunkedArray:
    """The numbers as a column of type ``binary``, in as many chunks as it takes.

    >>> numbers = LimbPool().add_integers(
    ...     np.arange(2), np.array([[7, 0], [0, 0]], np.uint32), np.ones(2, np.int64), np.arange(3), 0
    ... )
    >>> [value.as_py().hex(" ", 4) for value in columns_of(numbers)]
    ['02000000 07000000', '00000000']
    """
    lengths = numbers.lengths.astype(np.int64)
    ends = np.cumsum(lengths + 1)
    begins = ends - lengths - 1
    flat = np.empty(int(ends[-1]) if len(ends) else 0, _WORD)
    is_limb = np.ones(len(flat), dtype=bool)
    is_limb[begins] = False
    flat[begins] = numbers.lows
    limb_starts = np.cumsum(lengths) - lengths
    flat[is_limb] = numbers.limbs[
        np.arange(int(lengths.sum())) + np.repeat(numbers.starts - limb_starts, lengths)
    ]
    chunks = []
    for first, end in _stretches(np.append(0, ends), _COLUMN_WORDS):
        begin = int(begins[first])
        offsets = np.append(begins[first:end], ends[end - 1]) - begin
        data = flat[begin : int(ends[end - 1])]
        buffers = [None, pa.py_buffer((4 * offsets).astype(np.int32)), pa.py_buffer(data)]
        chunks.append(pa.Array.from_buffers(pa.binary(), end - first, buffers))
    return pa.chunked_array(chunks, pa.binary())


def numbers_of(column: ArrowColumn) -> Numbers:
    """Inverse of :func:`columns_of`, from binary of any width of offsets.

    ValueError for bytes that are no numbers.
    """
    return joined_numbers([_numbers_of_array(chunk.cast(pa.large_binary())) for chunk in chunks_of(column)])


def joined_numbers(parts: Sequence[Numbers]) -> Numbers:
    """The numbers of all parts, one part behind the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.limbs) for part in parts]
    shifts = np.cumsum([0, *sizes])
    return Numbers(
        np.concatenate([np.empty(0, np.int64), *(p.starts + s for p, s in zip(parts, shifts, strict=False))]),
        np.concatenate([np.empty(0, np.uint8), *(part.lows for part in parts)]),
        np.concatenate([np.empty(0, np.uint8), *(part.lengths for part in parts)]),
        np.concatenate([np.empty(0, np.uint32), *(part.limbs for part in parts)]),
    )


def taken(numbers: Numbers, places: np.ndarray) -> Numbers:
    """The numbers at some places; their limbs are shared."""
    return Numbers(numbers.starts[places], numbers.lows[places], numbers.lengths[places], numbers.limbs)


def sums_of(numbers: Numbers, offsets: np.ndarray) -> Numbers:
    """Sum g is that of the numbers ``[offsets[g], offsets[g + 1])``; all of one ``lowest_bit``.

    ``offsets``: int64.  There are less than ``2**63`` summands behind the numbers, as their counts say.

    >>> none = np.zeros((3, 3), np.int64)
    >>> values, one = np.array([1e308, 0.5, -1e308]), np.ones(3, np.int64)
    >>> three = LimbPool().add_floats(np.arange(3), values, one, np.arange(4), none)
    >>> from lftj.aggregates.limb_numbers import rounded_quotients
    >>> sums = sums_of(three, np.array([0, 3]))
    >>> rounded_quotients(sums, none[:1], np.array([1])).tolist()
    [0.5]
    """
    parts = []
    for first, end in _stretches(offsets, _WINDOW_ROWS):
        rows = slice(int(offsets[first]), int(offsets[end]))
        starts, lows, lengths = numbers.starts[rows], numbers.lows[rows], numbers.lengths[rows]
        used = lengths > 0
        ends = lows[used].astype(np.int64) + lengths[used]
        lowest = int(lows[used].min()) if len(ends) else _GUARD
        n_words = int(ends.max()) - lowest if len(ends) else 1
        # Moved down, so that the words of all of them begin at the lowest limb of any.
        moved = np.where(used, lows - (lowest - _GUARD), 0).astype(np.uint8)
        words = whole_words(Numbers(starts, moved, lengths, numbers.limbs), n_words)
        slots, ones = np.arange(end - first), np.ones(len(starts), np.int64)
        lowest_bit = _LIMB_BITS * (lowest - _GUARD)
        parts.append(
            LimbPool().add_integers(slots, words, ones, offsets[first : end + 1] - rows.start, lowest_bit)
        )
    return joined_numbers(parts)


def _numbers_of_array(array: pa.LargeBinaryArray) -> Numbers:
    if not len(array):
        return joined_numbers([])
    _, offset_buffer, data = array.buffers()
    bounds = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    n_bytes = int(bounds[-1] - bounds[0])
    sizes = np.diff(bounds)
    if array.null_count or (sizes < 4).any() or (sizes % 4).any():
        raise ValueError("these bytes are no exact numbers")
    words = np.frombuffer(data, np.uint8, n_bytes, int(bounds[0])).copy().view(_WORD).astype(np.uint32)
    begins, lengths = (bounds[:-1] - bounds[0]) // 4, sizes // 4 - 1
    lows = words[begins].astype(np.int64)
    # A kernel would write beyond its limbs.
    if not ((lengths == 0) | ((lows >= _GUARD) & (lows + lengths <= _LIMBS - _ROOM))).all():
        raise ValueError("these bytes are no exact numbers")
    return Numbers(begins + 1, lows.astype(np.uint8), lengths.astype(np.uint8), words)


def _stretches(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges of groups, together all of them: each of one group or of up to ``most`` rows.

    >>> list(_stretches(np.array([0, 5, 6, 7, 9]), 3))
    [(0, 1), (1, 3), (3, 4)]
    """
    first, n_groups = 0, len(offsets) - 1
    while first < n_groups:
        end = int(np.searchsorted(offsets, offsets[first] + most, "right")) - 1
        end = min(max(end, first + 1), n_groups)
        yield first, end
        first = end
