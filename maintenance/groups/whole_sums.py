"""Maintained ``sum`` and ``avg`` of integers and durations by group: one number of 128 bits each.

Specification: docs/design/engine.md section 6.

What a sum of integers is published as, it is: there is nothing to round, and a sum that int64
does not hold is refused; an average is the sum by the group's count, rounded once.  So both take no
limbs (:mod:`maintenance.groups.sums`), which come and go, but four words, which stay where they are.

Invariants

1. A slot's words are the sum of the values of the multiset that is there now, in two's complement, the
   lowest first.  They hold it: there are less than 2**62 assignments.
2. A group that is gone has the sum 0; so have slots that were never kept.
3. ``stage`` writes nothing that is published.  ``add`` does, while nothing was ever kept: ``drop`` then
   takes all of it away.

Cost: O(rows), two multiplications each.  Memory: 16 bytes per slot, up to twice that.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from indices.compiled import kernel, part
from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.sum_values import quotients, values_of_sums
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.storage.signed_rows import Columns
from lftj.values.floating import float_codes
from lftj.values.schema import ColumnType
from maintenance.groups.accumulator import Accumulator, GroupRows

WORDS = 4
_MASK = 2**32 - 1
_SMALL = 2**31
_CARRY_ROWS = 2**24  # a row adds less than 2**35 to a word


@part
def _carry(sums, w0, w1, w2, w3):  # type: ignore[no-untyped-def]
    """Write a number of four words that may be wider than 32 bits to ``sums``, int64 (WORDS,), carried."""
    w1 += w0 >> 32
    w2 += w1 >> 32
    sums[0] = w0 & _MASK
    sums[1] = w1 & _MASK
    sums[2] = w2 & _MASK
    sums[3] = w3 + (w2 >> 32)


@kernel(makes_arrays=True)
def _added(stored, slots, codes, weights, offsets, carry_rows):  # type: ignore[no-untyped-def]
    """The slots' sums with ``weights[i] * codes[i]`` over each one's rows: uint32 (groups, WORDS).

    Also their values, int64 (groups,), and whether that holds all of them.
    stored: uint32 (slots, WORDS), read; slots: int64, (groups,); codes, weights: int64, by row; offsets:
    int64, slot s's rows are ``[offsets[s], offsets[s + 1])``; carry_rows: rows after which words are carried.
    """
    out, values, fits = np.empty((len(slots), WORDS), np.uint32), np.empty(len(slots), np.int64), True
    sums = np.empty(WORDS, np.int64)
    for group in range(len(slots)):
        for word in range(WORDS):
            sums[word] = stored[slots[group], word]
        if sums[3] >= _SMALL:
            sums[3] -= _MASK + 1
        begin = offsets[group]
        while begin < offsets[group + 1]:
            end = min(offsets[group + 1], begin + carry_rows)
            w0, w1, w2, w3 = sums[0], sums[1], sums[2], sums[3]
            for row in range(begin, end):
                low, high, weight = codes[row] & _MASK, codes[row] >> 32, weights[row]
                if not -_SMALL < weight < _SMALL:  # 2**31 times the upper bits, then the others
                    first, second = low * (weight >> 31), high * (weight >> 31)
                    shifted = (first & _MASK) << 31
                    w0 += shifted & _MASK
                    w1 += shifted >> 32
                    shifted = (first >> 32) << 31
                    w1 += shifted & _MASK
                    w2 += shifted >> 32
                    shifted = (second & _MASK) << 31
                    w1 += shifted & _MASK
                    w2 += shifted >> 32
                    shifted = (second >> 32) << 31
                    w2 += shifted & _MASK
                    w3 += shifted >> 32
                    weight &= _SMALL - 1
                first, second = low * weight, high * weight
                w0 += first & _MASK
                w1 += (first >> 32) + (second & _MASK)
                w2 += second >> 32
            _carry(sums, w0, w1, w2, w3)
            begin = end
        for word in range(WORDS):
            out[group, word] = sums[word] & _MASK
        values[group] = sums[0] | sums[1] << 32
        fits = fits and sums[2] | sums[3] << 32 == values[group] >> 63
    return out, values, fits


@kernel
def _publish(stored, slots, sums):  # type: ignore[no-untyped-def]
    """Write sums by slot.  stored: uint32 (slots, WORDS), written; sums: uint32 (groups, WORDS)."""
    for group in range(len(slots)):
        for word in range(WORDS):
            stored[slots[group], word] = sums[group, word]


class WholeSums(Accumulator):
    """The accumulator of a ``sum`` whose values are whole numbers."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        assert isinstance(head.value, Aggregate)
        (argument,) = head.value.arguments
        assert isinstance(argument, Variable)
        self._head = head
        self._types = types
        self._type = types[argument.name]
        self._sums = np.zeros((0, WORDS), np.uint32)
        self._staged: tuple[np.ndarray, np.ndarray] | None = None  # slots and their sums
        self._is_building = False

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._sums.nbytes

    def stage(self, rows: GroupRows) -> np.ndarray:
        """The groups' new sums, int64; nothing is published.

        Raises :class:`~lftj.errors.RangeError`, naming head and group, for a sum that int64 does not hold;
        then nothing is staged.
        """
        assert self._staged is None, "what was staged has to be kept or dropped first"
        sums, values, fits = self._with(rows)
        if not fits:
            self._codes(rows.keys, sums)  # raises
        self._staged = rows.slots, sums
        return values

    def add(self, rows: GroupRows) -> None:
        assert self._staged is None, "what was staged has to be kept or dropped first"
        self._is_building = True
        sums, _, _ = self._with(rows)
        _publish(self._sums, rows.slots, sums)

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self._codes(keys, self._sums[slots])

    def _with(self, rows: GroupRows) -> tuple[np.ndarray, np.ndarray, bool]:
        """The groups' sums with the rows, their values, and whether int64 holds these."""
        missing = rows.n_slots - len(self._sums)
        if missing > 0:
            room = np.zeros((max(missing, len(self._sums)), WORDS), np.uint32)
            self._sums = np.concatenate([self._sums, room])
        (codes,) = rows.arguments
        return _added(self._sums, rows.slots, codes, rows.weights, rows.offsets, _CARRY_ROWS)

    def _codes(self, keys: Columns, sums: np.ndarray) -> np.ndarray:
        """The sums as int64, which are the codes of the values."""
        low, high = sums.view(np.int64).T
        if not np.array_equal(low >> 63, high):
            values_of_sums(GroupNames(self._head, self._types, list(keys)), sums, self._type)  # raises
        return np.ascontiguousarray(low)

    def _keep_own(self) -> None:
        self._is_building = False
        if self._staged is not None:
            _publish(self._sums, *self._staged)
            self._staged = None

    def _drop_own(self) -> None:
        if self._is_building:
            self._sums[:] = 0
            self._is_building = False
        self._staged = None

    def remapped(self, kept: np.ndarray) -> WholeSums:
        """One whose slot i is slot ``kept[i]`` of this; the others are gone.  Nothing is staged."""
        assert self._staged is None
        sums = type(self)(self._head, self._types)
        sums._sums = self._sums[kept]
        return sums

    def _check_own(self) -> None:
        assert self._sums.shape[1] == WORDS
        low, high = self._sums.view(np.int64).T
        assert (low >> 63 == high).all(), "int64 holds every sum"


class WholeAverages(WholeSums):
    """The accumulator of an ``avg`` of whole numbers."""

    def stage(self, rows: GroupRows) -> np.ndarray:
        """The codes of the groups' new averages, int64; nothing is published."""
        assert self._staged is None, "what was staged has to be kept or dropped first"
        sums, _, _ = self._with(rows)
        self._staged = rows.slots, sums
        return _averages(sums, rows.counts)

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return _averages(self._sums[slots], counts)

    def _check_own(self) -> None:
        assert self._sums.shape[1] == WORDS


def _averages(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The codes of ``sum / count``, of a group whose count is 0 any.  sums: uint32 (groups, WORDS)."""
    return float_codes(quotients(sums, np.maximum(counts, 1), 0))
