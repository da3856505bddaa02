"""Sums and averages as exact numbers: how summands are added to them and how values are read.

Shared by the sums that are maintained and by those that cells of one evaluation
add up apart (:mod:`lftj.aggregates.partial`): whatever way a number came about,
its value is the same.

Invariants

1. A number is the exact sum of the finite summands, each as often as it weighs; it is
   rounded once, where a value is read.
2. The lowest bit of a number has one weight for all numbers of a head: numbers of one
   head, from whatever process, may be added.

Cost: that of :mod:`lftj.aggregates.limb_pool` and :mod:`lftj.aggregates.sum_values`.

Source: ILFTJ 2.3.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.limb_numbers import UNIT_BITS, Numbers, rounded_quotients, whole_words
from lftj.aggregates.limb_pool import LimbPool
from lftj.aggregates.sum_values import (
    decimal_scale,
    doubles,
    n_summand_words,
    quotients,
    values_of_floats,
    values_of_sums,
    words,
    words_of_integers,
)
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.values.schema import ColumnType

_SUM_WORDS = 4
"""Words of a sum beyond those of its summands: weights and numbers of rows of 63 bits each."""


class ExactSums:
    """The numbers of one ``sum`` or ``avg`` head.

    ``has_specials``: whether there may be NaN and infinities, counted beside the numbers.
    ``is_whole``: whether the numbers are whole: of integers, durations and decimals.
    ``are_codes``: whether the sums are the values' codes: of integers and durations, declared as such.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> float_ = ColumnType(Domains().of(pa.float64()), pa.float64())
    >>> schema = Schema((Column("avg", float_),), functional=True)
    >>> head = CheckedHead("mean", (), Aggregate("avg", (Variable("c"),)), schema, (0, 0))
    >>> sums, specials, one = ExactSums(head, {"c": float_}), np.zeros((1, 3), np.int64), np.ones(1, np.int64)
    >>> codes = float_.domain.encode(pa.array([1.5]))
    >>> numbers = sums.added([LimbPool()], np.array([0]), codes, one, np.array([0, 1]), specials)
    >>> sums.values(GroupNames(head, {}, []), numbers, specials, np.array([2])).to_pylist()
    [0.75]
    """

    n_numbers = 1

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        assert isinstance(head.value, Aggregate)
        assert head.value.function in ("sum", "avg")
        (argument,) = head.value.arguments
        assert isinstance(argument, Variable)
        self._type = types[argument.name]
        self._is_average = head.value.function == "avg"
        kind = self._type.domain.name
        self.has_specials = kind == "float"
        declared = head.schema.columns[-1].type.domain.name
        self.is_whole = "float" not in ({kind} if self._is_average else {kind, declared})
        self.are_codes = not self._is_average and not {kind, declared} & {"float", "decimal"}
        # Averages of integers are rounded by the kernel of floats, which has its unit elsewhere.
        self._is_rounded = kind == "float" or (self._is_average and kind != "decimal")

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
        """The pool's numbers of the distinct ``slots`` plus the summands of ``codes``; the pool stays.

        There are ``n_numbers`` pools, and as many numbers for each slot.

        ``codes``, ``weights``: int64, by row; slot s's rows are ``[offsets[s], offsets[s + 1])``.
        ``are_unscaled``: in place of codes there are decimals in units of their type's last digit.
        ``specials``: int64, (slots, 3), the weights of NaN, +inf and -inf are added to it.
        """
        (pool,) = pools
        if self.has_specials:
            return (pool.add_floats(slots, doubles(codes, self._type), weights, offsets, specials),)
        lowest_bit = UNIT_BITS if self._is_rounded else 0
        summands = words_of_integers(codes) if are_unscaled else words(codes, self._type)
        return (pool.add_integers(slots, summands, weights, offsets, lowest_bit),)

    def values(
        self, groups: GroupNames, numbers: Sequence[Numbers], specials: np.ndarray, counts: np.ndarray
    ) -> pa.Array:
        """Sums or averages in the declared type; of a group whose count is 0, any.

        Raises :class:`~lftj.errors.RangeError`, naming head and group, for a sum that its type does not hold.
        """
        (exact,) = numbers
        if self._is_rounded:
            divisors = np.maximum(counts, 1) if self._is_average else np.ones_like(counts)
            return values_of_floats(groups, rounded_quotients(exact, specials, divisors))
        sums = whole_words(exact, n_summand_words(self._type) + _SUM_WORDS)
        if self._is_average:
            averages = quotients(sums, np.maximum(counts, 1), decimal_scale(self._type))
            return values_of_floats(groups, averages)
        return values_of_sums(groups, sums, self._type)
