"""Variances from the exact sums of numbers and of their squares.

    variance = (n * Q - S * S) / (n * (n - 1)),    var_pop = (n * Q - S * S) / (n * n)

with S the sum and Q that of the squares.  In doubles that loses all digits where the mean is much larger
than the deviation; here nothing is lost before the end.

Invariants

1. S and Q are exact; the quotient is rounded once.  The square of a double is the sum of two: of the
   nearest one and of what that is off by, exact down to 2**-1074.
2. Equal multisets of numbers have equal variances, whatever came and went.
3. Of one number, whatever it is, the variance is 0; of several with NaN or an infinity among them it is NaN.

Cost: that of four sums per row, and some microseconds per group that is read: integers of Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.exact_sums import ExactSums
from lftj.aggregates.group_names import GroupNames, spelled_call
from lftj.aggregates.limb_numbers import Numbers, whole_number
from lftj.aggregates.limb_pool import LimbPool
from lftj.aggregates.sum_values import decimal_scale, doubles, values_of_floats, words, words_of_integers
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate, Variable
from lftj.values.names import VARIANCES
from lftj.values.schema import ColumnType

LARGEST = 2.0**511
"""Numbers up to here have squares whose sums are doubles."""

_SPLIT = 2.0**27 + 1
_UNIT = 1074  # sums of doubles count units of 2**-1074
_MASK = np.uint64(2**32 - 1)


class ExactVariances:
    """The numbers of one ``variance`` or ``var_pop`` head, two for each group; as :class:`ExactSums`.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> float_ = ColumnType(Domains().of(pa.float64()), pa.float64())
    >>> schema = Schema((Column("variance", float_),), functional=True)
    >>> head = CheckedHead("spread", (), Aggregate("variance", (Variable("c"),)), schema, (0, 0))
    >>> exact, ones = ExactVariances(head, {"c": float_}), np.ones(2, np.int64)
    >>> specials = np.zeros((1, 3), np.int64)
    >>> codes, pools = float_.domain.encode(pa.array([1e15, 1e15 + 2])), (LimbPool(), LimbPool())
    >>> numbers = exact.added(pools, np.array([0]), codes, ones, np.array([0, 2]), specials)
    >>> exact.values(GroupNames(head, {}, []), numbers, specials, np.array([2])).to_pylist()
    [2.0]
    """

    n_numbers = 2
    is_whole = are_codes = False

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        assert isinstance(head.value, Aggregate)
        (argument,) = head.value.arguments
        assert isinstance(argument, Variable)
        self._head = head
        self._type = types[argument.name]
        self._less = 1 if head.value.function == "variance" else 0
        self.has_specials = self._type.domain.name == "float"

    def added(
        self,
        pools: Sequence[LimbPool],
        slots: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        offsets: np.ndarray,
        specials: np.ndarray,
        are_unscaled: bool = False,
    ) -> tuple[Numbers, ...]:
        """The pools' numbers of the distinct ``slots`` plus the rows; see :meth:`ExactSums.added`.

        Raises RangeError for a number whose square is no double.
        """
        sums, squares = pools
        if not self.has_specials:
            numbers = words_of_integers(codes) if are_unscaled else words(codes, self._type)
            squared = squares.add_integers(slots, _squares_of_words(numbers), weights, offsets, 0)
            return sums.add_integers(slots, numbers, weights, offsets, 0), squared
        values = doubles(codes, self._type)
        finite = np.where(np.isfinite(values), values, 0.0)
        self._refuse_large(finite)
        parts, ignored = _squares_of_doubles(finite), np.zeros_like(specials)
        squared = squares.add_floats(slots, parts, np.repeat(weights, 2), 2 * offsets, ignored)
        return sums.add_floats(slots, values, weights, offsets, specials), squared

    def values(
        self, groups: GroupNames, numbers: Sequence[Numbers], specials: np.ndarray, counts: np.ndarray
    ) -> pa.Array:
        """The variances of groups; of one whose count is 0, any."""
        sums, squares = numbers
        scale = decimal_scale(self._type)
        found = np.where(specials.any(axis=1) & (counts > 1), np.nan, 0.0)
        for group in np.flatnonzero((counts > 1) & (found == 0)).tolist():
            n, total, square = int(counts[group]), whole_number(sums, group), whole_number(squares, group)
            divisor = n * (n - self._less)
            if self.has_specials:
                square <<= _UNIT
                divisor <<= 2 * _UNIT
            deviation = max(n * square - total * total, 0)
            found[group] = deviation * 10 ** max(-2 * scale, 0) / (divisor * 10 ** max(2 * scale, 0))
        return values_of_floats(groups, found)

    def _refuse_large(self, values: np.ndarray) -> None:
        large = np.abs(values) > LARGEST
        if large.any():
            assert isinstance(self._head.value, Aggregate)
            raise RangeError(
                f"{shown_name(self._head.relation)} = {spelled_call(self._head.value)}: the square of"
                f" {values[large][0]} is no float64; divide the numbers, and multiply what comes out"
            )


def exact_sums(head: CheckedHead, types: Mapping[str, ColumnType]) -> ExactSums | ExactVariances:
    """The numbers of a head whose values are found from sums."""
    assert isinstance(head.value, Aggregate)
    return (ExactVariances if head.value.function in VARIANCES else ExactSums)(head, types)


def _squares_of_doubles(values: np.ndarray) -> np.ndarray:
    """Two doubles for each, one behind the other, that add up to its square (Dekker 1971).

    >>> _squares_of_doubles(np.array([2.0**30 + 1])).tolist()
    [1.1529215067543306e+18, 1.0]
    """
    square = values * values
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    low = values - high
    error = low * low - ((square - high * high) - 2 * high * low)
    return np.stack([square, error], axis=1).ravel()


def _squares_of_words(numbers: np.ndarray) -> np.ndarray:
    """The squares of whole numbers, (rows, k) words, in 2k + 1 words.

    >>> _squares_of_words(np.array([[2**32 - 3, 2**32 - 1], [0, 1]], np.uint32)).tolist()
    [[9, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
    """
    n_words = numbers.shape[1]
    negative = numbers[:, -1] >> 31 == 1
    parts = np.where(negative[:, np.newaxis], ~numbers, numbers).astype(np.uint64).T
    parts[0] += negative.astype(np.uint64)
    _carry(parts)
    found = np.zeros((2 * n_words + 1, len(numbers)), np.uint64)
    for left in range(n_words):
        for right in range(n_words):
            product = parts[left] * parts[right]
            found[left + right] += product & _MASK
            found[left + right + 1] += product >> np.uint64(32)
    _carry(found)
    return np.ascontiguousarray(found.T.astype(np.uint32))


def _carry(parts: np.ndarray) -> None:
    """Let each word of numbers have 32 bits; the last has room for what comes up to it."""
    for word in range(len(parts) - 1):
        parts[word + 1] += parts[word] >> np.uint64(32)
        parts[word] &= _MASK
