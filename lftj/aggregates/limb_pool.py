"""A pool of exact sums: fixed-point numbers of which only the limbs in use are kept.

A superaccumulator (:mod:`lftj.aggregates.superaccumulator`) has a limb for every power of
``2**32`` that a double can reach; a *maintained* sum per group cannot afford
all of them.  Kept of a number are its limbs from the lowest to the highest in
use, as uint32.  To add rows, a number is spread out in a dense accumulator,
and what comes out is written down sparse again.

Invariants (see :meth:`LimbPool.check_invariants`)

1. A number's limbs are its value in two's complement: the last one carries the
   sign, the lowest is not zero, and the last does not only repeat the sign of
   the one below it.  So equal values have equal limbs, however they came
   about, and zero has none.
2. Numbers of the pool lie apart, below ``used``.
3. ``used`` is at most twice ``n_limbs``, the number of limbs in use, plus 1,024.
4. Adding writes nothing to the pool: the sums come out as numbers of their own,
   which :meth:`LimbPool.publish` puts in place.
5. Publishing is done by one kernel call, and doing it twice is doing it once: whoever
   is interrupted may begin again.

Cost: adding is O(rows), three limbs each, and O(limbs in use) per number;
publishing O(limbs) amortised (a number that outgrows its place moves to the
end; the pool is moved together when less than half of it is in use).  Memory:
4 bytes per limb, up to twice that, and 10 bytes per number.  Doubles of similar
size take 2 to 4 limbs, those of all sizes together 66.

Source: ILFTJ 2.3.4, whose sparse superaccumulator keeps segments by number in
a map; contiguous ones take no keys, at the price of zeros in between.
"""

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from lftj.aggregates.limb_numbers import Numbers, load_number, plain
from lftj.aggregates.superaccumulator import (
    _CARRY_ROWS,
    _GUARD,
    _HALF,
    _LIMBS,
    _MASK,
    _add_doubles,
    _add_words,
    _carry,
)

SLACK_LIMBS = 1024

USED = 0  # places in a pool's totals: the limbs up to the last in use, and those in use
LIMBS = 1


# -- kernels ----------------------------------------------------------------


@part
def _trim(limbs, low, high):  # type: ignore[no-untyped-def]
    """Carry and narrow ``[low, high]`` to the limbs that invariant 1 keeps; ``high < low`` for zero."""
    if high < low:
        return low, high
    high = _carry(limbs, low, high)
    while low <= high and limbs[low] == 0:
        low += 1
    while high > low:
        top, below = limbs[high], limbs[high - 1]
        if (top != 0 or below >= _HALF) and (top != -1 or below < _HALF):
            break
        limbs[high] = 0
        limbs[high - 1] = below + top * (_MASK + 1)
        high -= 1
    return low, high


@part(makes_arrays=True)
def _write_down(limbs, low, high, number, starts, lows, lengths, stored):  # type: ignore[no-untyped-def]
    """Append the trimmed value of ``limbs`` to ``stored`` as ``number``; leaves ``limbs`` zero.

    The numbers before it are written down already.  Returns ``stored``, a larger copy when it was full.
    """
    start = starts[number - 1] + np.int64(lengths[number - 1]) if number > 0 else 0
    starts[number] = start
    if high < low:
        lows[number] = lengths[number] = 0
        return stored
    if start + _LIMBS > len(stored):
        larger = np.empty(2 * len(stored) + _LIMBS, np.uint32)
        for word in range(start):
            larger[word] = stored[word]
        stored = larger
    for index in range(low, high + 1):
        stored[start + index - low] = limbs[index] & _MASK
        limbs[index] = 0
    lows[number] = low
    lengths[number] = high - low + 1
    return stored


@kernel(makes_arrays=True)
def _add_float_rows(pool, slots, bits, weights, offsets, carry_rows, specials, starts, lows, lengths):  # type: ignore[no-untyped-def]
    """Sums of the pool's numbers and rows of doubles.  Returns their limbs.

    ``pool``: :class:`Numbers`, read.  ``slots``: (groups,) int64, distinct numbers of the pool.  ``bits``,
    ``weights``: (rows,) int64, doubles and how often each is added.  ``offsets``: (groups + 1,) int64,
    group g is rows ``[offsets[g], offsets[g + 1])``.  ``specials``: (groups, 3) int64, weights of NaN,
    +inf and -inf, added to.  ``starts``, ``lows``, ``lengths``: (groups,), written: those of the sums.
    """
    limbs = np.zeros(_LIMBS, np.int64)
    stored = np.empty(4 * len(slots) + _LIMBS, np.uint32)
    for group in range(len(slots)):
        low, high = load_number(pool, slots[group], limbs)
        low, high = _add_doubles(
            limbs, low, high, bits, weights, offsets[group], offsets[group + 1], carry_rows, specials[group]
        )
        low, high = _trim(limbs, low, high)
        stored = _write_down(limbs, low, high, group, starts, lows, lengths, stored)
    return stored


@kernel(makes_arrays=True)
def _add_integer_rows(pool, slots, words, weights, offsets, carry_rows, base, starts, lows, lengths):  # type: ignore[no-untyped-def]
    """Sums of the pool's numbers and rows of integers, whose lowest bit is at ``base``.

    ``words``: (rows, k) uint32, two's complement, lowest word first.  Otherwise as :func:`_add_float_rows`.
    """
    limbs = np.zeros(_LIMBS, np.int64)
    stored = np.empty(4 * len(slots) + _LIMBS, np.uint32)
    for group in range(len(slots)):
        low, high = load_number(pool, slots[group], limbs)
        uncarried = 0
        for row in range(offsets[group], offsets[group + 1]):
            low = min(low, (base >> 5) + _GUARD)
            high = max(high, low, _add_words(limbs, words, row, weights[row], base))
            uncarried += 1
            if uncarried == carry_rows:
                high = _carry(limbs, low, high)
                uncarried = 0
        low, high = _trim(limbs, low, high)
        stored = _write_down(limbs, low, high, group, starts, lows, lengths, stored)
    return stored


@kernel
def _put(pool, slots, numbers, totals):  # type: ignore[no-untyped-def]
    """Write ``numbers`` over those of ``slots``, in place where they fit and behind the used limbs where not.

    ``pool.limbs`` has room for all of them there.  ``totals``: int64, by USED and LIMBS, written.
    """
    for number in range(len(slots)):
        slot = slots[number]
        length = np.int64(numbers.lengths[number])
        totals[LIMBS] += length - np.int64(pool.lengths[slot])
        if length > np.int64(pool.lengths[slot]):
            pool.starts[slot] = totals[USED]
            totals[USED] += length
        pool.lows[slot] = numbers.lows[number]
        pool.lengths[slot] = length
        source, target = numbers.starts[number], pool.starts[slot]
        for place in range(length):
            pool.limbs[target + place] = numbers.limbs[source + place]


@kernel
def _move_together(starts, lengths, limbs, moved):  # type: ignore[no-untyped-def]
    """Copy the limbs in use to ``moved``, one number after the other; ``starts`` is written: a copy."""
    used = 0
    for number in range(len(starts)):
        start = starts[number]
        starts[number] = used
        for place in range(np.int64(lengths[number])):
            moved[used] = limbs[start + place]
            used += 1


# -- the pool ---------------------------------------------------------------


class LimbPool:
    """Exact sums, numbered from 0; those never published are zero.

    >>> from lftj.aggregates.limb_numbers import rounded_quotients
    >>> pool, one, no_specials = LimbPool(), np.ones(2, np.int64), np.zeros((1, 3), np.int64)
    >>> slots, offsets = np.array([5]), np.array([0, 2])
    >>> sums = pool.add_floats(slots, np.array([1.1e31, 0.5]), one, offsets, no_specials)
    >>> pool.publish(slots, sums)
    >>> sums = pool.add_floats(slots, np.array([-1.1e31, 0.0]), one, offsets, no_specials)
    >>> rounded_quotients(sums, no_specials, np.array([1])).tolist()
    [0.5]
    """

    def __init__(self) -> None:
        self._numbers = Numbers(
            np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.uint8), np.empty(0, np.uint32)
        )
        self._totals = np.zeros(2, np.int64)

    @property
    def n_limbs(self) -> int:
        """Limbs in use."""
        return int(self._totals[LIMBS])

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._numbers.nbytes

    def add_floats(
        self,
        slots: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray,
        offsets: np.ndarray,
        specials: np.ndarray,
    ) -> Numbers:
        """The numbers of ``slots`` plus ``weights[i] * values[i]`` over each one's rows; the pool stays.

        ``slots``: distinct, int64.  ``values``: float64.  ``weights``: int64.  ``offsets``: int64, slot s's
        rows are ``[offsets[s], offsets[s + 1])``.  ``specials``: int64, (slots, 3), the weights of NaN, +inf
        and -inf rows are added to it.  O(rows + limbs of the slots).
        """
        return self._added(_add_float_rows, slots, values.view(np.int64), weights, offsets, specials)

    def add_integers(
        self,
        slots: np.ndarray,
        words: np.ndarray,
        weights: np.ndarray,
        offsets: np.ndarray,
        lowest_bit: int,
    ) -> Numbers:
        """Like :meth:`add_floats`, for the whole numbers of ``words`` times ``2**lowest_bit``.

        ``words``: (rows, k) uint32, two's complement, lowest word first.
        """
        return self._added(_add_integer_rows, slots, words, weights, offsets, lowest_bit)

    def numbers(self, slots: np.ndarray) -> Numbers:
        """The numbers of ``slots`` as they are; they share the pool's limbs until the next publishing."""
        self._reserve_slots(int(slots.max(initial=-1)) + 1)
        starts, lows, lengths, limbs = self._numbers
        return Numbers(starts[slots], lows[slots], lengths[slots], limbs)

    def publish(self, slots: np.ndarray, numbers: Numbers) -> None:
        """Put ``numbers`` in place of the distinct ``slots``.  Amortised O(their limbs)."""
        self._reserve_limbs(int(numbers.lengths.sum(dtype=np.int64)))
        _put(self._numbers, plain(slots), numbers, self._totals)
        if self._totals[USED] > 2 * self.n_limbs + SLACK_LIMBS:
            self._take_together(self._numbers)

    def with_room(self, n_slots: int, n_limbs: int) -> tuple[Numbers, np.ndarray]:
        """The numbers of at least so many slots, with room for as many limbs behind those in use, and their
        totals: for kernels that publish as :meth:`publish` does, and keep the invariants."""
        if self._totals[USED] > 2 * self.n_limbs + SLACK_LIMBS // 2:
            self._take_together(self._numbers)
        self._reserve_slots(n_slots)
        self._reserve_limbs(n_limbs)
        return self._numbers, self._totals

    def remapped(self, kept: np.ndarray) -> LimbPool:
        """A pool of only the numbers of the slots ``kept``, which have the slots 0, 1, ... in this order."""
        pool = LimbPool()
        pool._take_together(self.numbers(kept))
        return pool

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module's header."""
        starts, lows, lengths, limbs = self._numbers
        used = int(self._totals[USED])
        assert int(lengths.sum(dtype=np.int64)) == self.n_limbs <= used <= len(limbs)
        assert used <= 2 * self.n_limbs + SLACK_LIMBS
        taken = np.zeros(used, np.int64)
        for start, low, length in zip(starts.tolist(), lows.tolist(), lengths.tolist(), strict=True):
            taken[start : start + length] += 1
            assert start + length <= used or not length
            assert low + length <= _LIMBS
            number = limbs[start : start + length].tolist()
            assert low == 0 if not number else number[0] != 0
            if length > 1:
                assert number[-1] != (_MASK if number[-2] >= _HALF else 0), "the last limb says something"
        assert int(taken.max(initial=0)) <= 1, "numbers lie apart"

    def _added(self, add, slots, summands, weights, offsets, last):  # type: ignore[no-untyped-def]
        self._reserve_slots(int(slots.max(initial=-1)) + 1)
        starts = np.empty(len(slots), np.int64)
        lows, lengths = np.empty((2, len(slots)), np.uint8)
        limbs = add(
            self._numbers,
            plain(slots),
            plain(summands),
            plain(weights),
            plain(offsets),
            _CARRY_ROWS,
            last,
            starts,
            lows,
            lengths,
        )
        return Numbers(starts, lows, lengths, limbs)

    def _reserve_slots(self, n_slots: int) -> None:
        starts, lows, lengths, limbs = self._numbers
        if n_slots > len(starts):
            added = max(n_slots, 2 * len(starts)) - len(starts)
            self._numbers = Numbers(
                np.append(starts, np.zeros(added, np.int64)),
                np.append(lows, np.zeros(added, np.uint8)),
                np.append(lengths, np.zeros(added, np.uint8)),
                limbs,
            )

    def _reserve_limbs(self, n_limbs: int) -> None:
        limbs, used = self._numbers.limbs, int(self._totals[USED])
        if used + n_limbs > len(limbs):
            larger = np.zeros(max(used + n_limbs, 2 * len(limbs)), np.uint32)  # which images have, too
            larger[:used] = limbs[:used]
            self._numbers = self._numbers._replace(limbs=larger)

    def _take_together(self, numbers: Numbers) -> None:
        """Hold these numbers, their limbs moved together."""
        starts, lows, lengths, limbs = numbers
        starts, totals = starts.copy(), np.full(2, lengths.sum(dtype=np.int64))
        moved = np.empty(int(totals[LIMBS]), np.uint32)
        _move_together(starts, lengths, limbs, moved)
        self._numbers, self._totals = Numbers(starts, lows, lengths, moved), totals
