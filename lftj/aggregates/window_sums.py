"""Exact sums over spans of rows: ``sum`` and ``avg`` of windows.

A column's values become whole numbers of one unit: integers as they are, decimals in units of their last
digit, floats in a power of two that all are multiples of.  Running sums of these are exact; a value is
rounded once, where it is read.  Numbers have 64 bits where no sum can leave these, else they are Python's.

Invariants

1. A sum does not depend on the unit, nor on what is added up first: the state behind some rows
   (:data:`SumState`) is the same however they were cut in pieces.
2. NaN and infinities are no part of the number; which of them there are stands beside it.

Cost: O(n) in whole-array operations; where numbers are Python's some tenths of a microsecond a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lftj.aggregates.sum_values import decimal_scale, doubles
from lftj.values.schema import ColumnType

EXACT = Context(prec=100)

SumState = tuple[Fraction, int, int]
"""The sum of the finite values; how many there are, or whether any; which specials."""

Value = TypeVar("Value")

_SAFE_SUM = 2**62
_EXACT_DOUBLE = 2**53
_LEAST_NORMAL = 900
"""A whole number of 64 bits over two to a higher power than this may be no normal double."""

_INFINITE, _NEGATIVE_INFINITE, _NAN = 1, 2, 4
_SPECIAL_SUMS = np.array([0.0, np.inf, -np.inf, *[np.nan] * 5])
"""Of what there is of these, as a sum of theirs."""


@dataclass(frozen=True)
class Spans:
    """Half-open ranges of rows, int64, and what comes before each."""

    first: np.ndarray
    last: np.ndarray
    parts: np.ndarray
    """Of each span the number of its partition."""
    carried: Sequence[Any] | None = None
    """By number of the partition, the state before its rows; None: nothing is before them."""

    @property
    def lengths(self) -> np.ndarray:
        return self.last - self.first

    def added(self, numbers: np.ndarray) -> np.ndarray:
        """The sum of the numbers of each span; of any type with exact sums.

        >>> Spans(np.array([0, 1]), np.array([3, 2]), np.zeros(2, int)).added(np.array([1, 2, 3])).tolist()
        [6, 2]
        """
        sums = np.zeros(len(numbers) + 1, numbers.dtype)
        np.cumsum(numbers, out=sums[1:])
        return sums[self.last] - sums[self.first]


@dataclass(frozen=True)
class Sums:
    """Of each span, the sum of its finite values and of those before them; ``unit`` whole numbers are 1.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> float_ = ColumnType(Domains().of(pa.float64()), pa.float64())
    >>> codes, every = float_.domain.encode(pa.array([0.5, 1e16, -1e16])), np.array([3])
    >>> sums = Sums.of(codes, np.ones(3, bool), float_, Spans(every - 3, every, every - 3))
    >>> sums.doubles(average=False).to_pylist(), sums.states(average=True)
    ([0.5], [(Fraction(1, 2), 3, 0)])
    """

    totals: np.ndarray
    """int64, or Python's whole numbers."""
    counts: np.ndarray
    """How many values; 0 only where there are none."""
    specials: np.ndarray
    unit: int

    @classmethod
    def of(cls, codes: np.ndarray, known: np.ndarray, type_: ColumnType, spans: Spans) -> Sums:
        """``known``: which of the codes are no NULL; the states of spans are :data:`SumState`."""
        before: Sequence[SumState] = spans.carried or ()
        least_unit = max((total.denominator for total, _, _ in before), default=1)
        counts = spans.added(known.astype(np.int64))
        specials = np.zeros(len(spans.first), np.int64)
        if type_.domain.name == "float":
            values = np.where(known, doubles(np.where(known, codes, 0), type_), 0.0)
            finite = np.isfinite(values)
            if not finite.all():
                specials = _specials(values, spans)
            numbers, unit = _whole_floats(np.where(finite, values, 0.0), least_unit)
        elif type_.domain.name == "decimal":
            digits = decimal_scale(type_)
            unit = 10**digits
            decimals = type_.domain.decode(codes, type_.arrow).to_pylist()
            numbers = _objects([0 if one is None else int(one.scaleb(digits, EXACT)) for one in decimals])
        else:
            numbers, unit = np.where(known, codes, 0), 1
        carried = [int(total * unit) for total, _, _ in before]
        most = max(map(abs, carried), default=0)
        if numbers.dtype != object:
            total = int(np.abs(numbers.astype(np.float64)).sum())
            numbers = numbers.astype(object) if total + most >= _SAFE_SUM else numbers
        totals = spans.added(numbers)
        if before:
            totals = totals + np.array(carried, numbers.dtype)[spans.parts]
            counts = counts + np.array([count for _, count, _ in before], np.int64)[spans.parts]
            specials = specials | np.array([special for _, _, special in before], np.int64)[spans.parts]
        return cls(totals, counts, specials, unit)

    def states(self, average: bool) -> list[SumState]:
        """What comes before rows behind each span.  Where no average is wanted no more counts than whether
        there is a value.
        """
        counts = (self.counts if average else np.minimum(self.counts, 1)).tolist()
        parts = zip(self.totals.tolist(), counts, self.specials.tolist(), strict=True)
        return [(Fraction(total, self.unit), count, special) for total, count, special in parts]

    def doubles(self, average: bool) -> pa.Array:
        """The sums, or averages, float64, rounded once; NULL of no value."""
        counts = np.maximum(self.counts, 1) if average else np.ones(len(self.counts), np.int64)
        specials = _SPECIAL_SUMS[self.specials]
        shift = self.unit.bit_length() - 1
        if (
            self.totals.dtype != object
            and np.abs(self.totals).max(initial=0) < _EXACT_DOUBLE
            and self.unit == 1 << shift
            and shift <= _LEAST_NORMAL
        ):
            rounded = np.ldexp(self.totals / counts, -shift) + specials
        else:
            parts = zip(self.totals.tolist(), counts.tolist(), specials.tolist(), strict=True)
            rounded = np.array([special + _quotient(total, self.unit * n) for total, n, special in parts])
        return pa.array(rounded, pa.float64(), mask=self.counts == 0)

    def whole(self) -> pa.Array:
        """The sums of whole numbers, int64; NULL of no value.  Raises OverflowError, ArrowInvalid."""
        if self.totals.dtype == object:
            return pa.array(self._known(self.totals.tolist()), pa.int64())
        return pa.array(self.totals, pa.int64(), mask=self.counts == 0)

    def decimals(self, declared: pa.DataType) -> pa.Array:
        """The sums of decimals in a type; NULL of no value.  Raises ArrowInvalid."""
        digits = len(str(self.unit)) - 1
        found = [Decimal(total).scaleb(-digits, EXACT) for total in self.totals.tolist()]
        return pa.array(self._known(found), declared)

    def _known(self, values: list[Value]) -> list[Value | None]:
        return [value if n else None for value, n in zip(values, self.counts.tolist(), strict=True)]


def _whole_floats(values: np.ndarray, least_unit: int) -> tuple[np.ndarray, int]:
    """Finite floats as whole numbers, and how many of these are 1: a power of two, as is ``least_unit``, the
    least that it may be.

    >>> numbers, unit = _whole_floats(np.array([0.75, -2.0]), 1)
    >>> numbers.tolist(), unit
    ([3, -8], 4)
    """
    fractions, exponents = np.frexp(values)
    numbers = (fractions * 2.0**53).astype(np.int64)
    zeros = np.frexp((numbers & -numbers).astype(np.float64))[1].astype(np.int64) - 1  # behind the last 1
    there = numbers != 0
    exponents = np.where(there, exponents - 53 + zeros, 0).astype(np.int64)
    numbers = np.where(there, numbers >> np.maximum(zeros, 0), 0)
    least = min(int(exponents.min(initial=0)), 1 - least_unit.bit_length())
    shifts = np.where(there, exponents - least, 0)
    if int((shifts + 53).max(initial=0)) < 62:
        return numbers << shifts, 1 << -least
    shifted = [number << shift for number, shift in zip(numbers.tolist(), shifts.tolist(), strict=True)]
    return _objects(shifted), 1 << -least


def _specials(values: np.ndarray, spans: Spans) -> np.ndarray:
    """Which of NaN and infinities each span has."""
    found = np.zeros(len(spans.first), np.int64)
    marks = (values == np.inf, _INFINITE), (values == -np.inf, _NEGATIVE_INFINITE), (np.isnan(values), _NAN)
    for there, bit in marks:
        found[spans.added(there.astype(np.int64)) > 0] |= bit
    return found


def _quotient(dividend: int, divisor: int) -> float:
    """Rounded once; beyond all floats infinite."""
    try:
        return dividend / divisor
    except OverflowError:
        return math.inf if dividend > 0 else -math.inf


def _objects(numbers: list[int]) -> np.ndarray:
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found
