"""Maintained ``sum`` and ``avg`` of whole numbers by group: of integers, durations, and decimals in units of
their last digit.

Specification: docs/design/engine.md section 6.

Such a sum needs no limbs (:mod:`maintenance.groups.sums`), which come and go, but a few words, which stay
where they are.  A sum of integers is published as it is, one of decimals by its code; what the declared type
does not hold is refused.  An average is the sum by the group's count, rounded once.

Invariants

1. A slot's words are the sum of the values of the multiset that is there now, in two's complement, the
   lowest first.  They hold it: there are two more than a value has, and less than 2**62 assignments.
2. A group that is gone has the sum 0; so have slots that were never kept.
3. ``stage`` writes nothing that is published.  ``add`` does, while nothing was ever kept: ``drop`` then
   takes all of it away.

Cost: O(rows), a multiplication for each word of a value.  Memory: 4 bytes for each word of a sum, up to twice
that: 16 of integers, 24 of decimals of up to 38 digits.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from indices.compiled import kernel, part
from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.limb_numbers import plain
from lftj.aggregates.sum_values import (
    codes_of_decimals,
    decimal_scale,
    encoded,
    n_summand_words,
    quotients,
    values_of_sums,
    words,
    words_of_integers,
)
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.storage.signed_rows import Columns
from lftj.values.floating import float_codes
from lftj.values.schema import ColumnType
from maintenance.groups.accumulator import Accumulator, GroupRows

MORE_WORDS = 2
"""Words of a sum beyond those of its summands."""

CARRY_ROWS = 2**24  # a row adds less than 2**36 to a word
_MASK = 2**32 - 1
_SMALL = 2**31


@part
def _add_product(sums, word, number, weight):  # type: ignore[no-untyped-def]
    """Add ``number * weight``, which is below 2**63, at a word of ``sums``, int64 (words,), not carried."""
    product = number * weight
    sums[word] += product & _MASK
    sums[word + 1] += product >> 32


@part
def _carry(sums):  # type: ignore[no-untyped-def]
    """Let each of the words have 32 bits; the last has what comes up to it."""
    for word in range(len(sums) - 1):
        sums[word + 1] += sums[word] >> 32
        sums[word] &= _MASK


@kernel(makes_arrays=True)
def with_summands(stored, slots, summands, weights, offsets, carry_rows):  # type: ignore[no-untyped-def]
    """The slots' sums with the weighted summands of each one's rows: uint32 (groups, words).

    Also the lowest two words of each, int64 (groups,), and whether that holds all of them.
    stored: uint32 (slots, words), read; slots: int64, (groups,); summands: uint32 (rows, words - MORE_WORDS);
    weights: int64, by row; offsets: int64, slot s's rows are ``[offsets[s], offsets[s + 1])``; carry_rows:
    rows after which words are carried.
    """
    n_words, n_parts = stored.shape[1], summands.shape[1]
    out, values, fits = np.empty((len(slots), n_words), np.uint32), np.empty(len(slots), np.int64), True
    sums = np.empty(n_words, np.int64)
    for group in range(len(slots)):
        for word in range(n_words):
            sums[word] = stored[slots[group], word]
        begin = offsets[group]
        while begin < offsets[group + 1]:
            end = min(offsets[group + 1], begin + carry_rows)
            for row in range(begin, end):
                weight = weights[row]
                for word in range(n_parts):
                    number = np.int64(summands[row, word])
                    if word == n_parts - 1 and number >= _SMALL:
                        number -= _MASK + 1
                    if -_SMALL < weight < _SMALL:
                        _add_product(sums, word, number, weight)
                    else:  # 2**31 times the upper bits, and the others
                        upper = number * (weight >> 31)
                        _add_product(sums, word, upper & _MASK, np.int64(_SMALL))
                        _add_product(sums, word + 1, upper >> 32, np.int64(_SMALL))
                        _add_product(sums, word, number, weight & (_SMALL - 1))
            _carry(sums)
            begin = end
        for word in range(n_words):
            out[group, word] = sums[word] & _MASK
        values[group] = np.int64(out[group, 0]) | np.int64(out[group, 1]) << 32
        extension = (values[group] >> 63) & _MASK
        for word in range(2, n_words):
            fits = fits and out[group, word] == extension
    return out, values, fits


@kernel(makes_arrays=True)
def words_of(numbers, n_words):  # type: ignore[no-untyped-def]
    """The words of numbers, int64 (rows,), that these hold: uint32 (rows, n_words), the lowest first."""
    out = np.empty((len(numbers), n_words), np.uint32)
    for row in range(len(numbers)):
        number = numbers[row]
        for word in range(n_words):
            out[row, word] = number & _MASK
            number >>= 32
    return out


@kernel
def _publish(stored, slots, sums):  # type: ignore[no-untyped-def]
    """Write sums by slot.  stored: uint32 (slots, words), written; sums: uint32 (groups, words)."""
    for group in range(len(slots)):
        for word in range(stored.shape[1]):
            stored[slots[group], word] = sums[group, word]


class WholeSums(Accumulator):
    """The accumulator of a ``sum`` of integers or durations that is declared as such.

    Slots that were never kept have no members.
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        assert isinstance(head.value, Aggregate)
        (argument,) = head.value.arguments
        assert isinstance(argument, Variable)
        self._head = head
        self._types = types
        self._type = types[argument.name]
        self.n_words = n_summand_words(self._type) + MORE_WORDS
        self._sums = np.zeros((0, self.n_words), np.uint32)
        self._staged: tuple[np.ndarray, np.ndarray] | None = None  # slots and their sums
        self._is_building = False

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._sums.nbytes

    def stage(self, rows: GroupRows) -> np.ndarray:
        """The codes of the groups' new values, int64; nothing is published.

        Raises :class:`~lftj.errors.RangeError`, naming head and group, for a sum that its type does not hold;
        then nothing is staged.
        """
        assert self._staged is None, "what was staged has to be kept or dropped first"
        sums, values, fits = self._with(rows)
        found = self._of_step(rows, sums, values, fits)
        self._staged = rows.slots, sums
        return found

    def add(self, rows: GroupRows) -> None:
        assert self._staged is None, "what was staged has to be kept or dropped first"
        self._is_building = True
        sums, _, _ = self._with(rows)
        _publish(self._sums, rows.slots, sums)

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self._codes(keys, self._sums[slots], counts)

    def _with(self, rows: GroupRows) -> tuple[np.ndarray, np.ndarray, bool]:
        """The groups' sums with the rows, the lowest 64 bits of these, and whether that holds them."""
        missing = rows.n_slots - len(self._sums)
        if missing > 0:
            room = np.zeros((max(missing, len(self._sums)), self.n_words), np.uint32)
            self._sums = np.concatenate([self._sums, room])
        return with_summands(
            self._sums, rows.slots, self._summands(rows), rows.weights, rows.offsets, CARRY_ROWS
        )

    def _summands(self, rows: GroupRows) -> np.ndarray:
        """The words of each row's value."""
        (codes,) = rows.arguments
        return plain(words_of_integers(codes))

    def _of_step(self, rows: GroupRows, sums: np.ndarray, values: np.ndarray, fits: bool) -> np.ndarray:
        """The codes of the groups' values, which are given with their sums."""
        return values if fits else self._codes(rows.keys, sums, rows.counts)

    def _codes(self, keys: Columns, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The codes of groups' values; of a group whose count is 0 any."""
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
        low, high = self._sums.view(np.int64).T
        assert (low >> 63 == high).all(), "int64 holds every sum"


class DecimalSums(WholeSums):
    """The accumulator of a ``sum`` of decimals, or of whole numbers that is declared as one."""

    def _summands(self, rows: GroupRows) -> np.ndarray:
        (codes,) = rows.arguments
        if not rows.are_unscaled:
            return plain(words(codes, self._type))
        return words_of(codes, self.n_words - MORE_WORDS)

    def _of_step(self, rows: GroupRows, sums: np.ndarray, values: np.ndarray, fits: bool) -> np.ndarray:
        return self._codes(rows.keys, sums, rows.counts)

    def _codes(self, keys: Columns, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        groups = GroupNames(self._head, self._types, list(keys))
        if decimal_scale(self._type) == decimal_scale(groups.declared):
            found = codes_of_decimals(groups, sums)
            if found is not None:
                return found
        return encoded(groups, values_of_sums(groups, sums, self._type))

    def _check_own(self) -> None:
        """All sums were looked at when they were published."""


class WholeAverages(DecimalSums):
    """The accumulator of an ``avg`` of whole numbers."""

    def _codes(self, keys: Columns, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return float_codes(quotients(sums, np.maximum(counts, 1), decimal_scale(self._type)))
