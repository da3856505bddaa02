"""Doubles in the commit machine, by their codes (:mod:`lftj.values.floating`): what is computed of them, and
exact sums by group.

Sums are those of :class:`~maintenance.groups.sums.GroupSums`, in its pool of limbs: what a commit adds is
staged beside them, and written over them when it is published.

Invariants

1. What is no finite number, or is made of one that is none, is left to the general way; so are the sums of an
   aggregate that keeps such numbers.
2. What is staged has room in the pool, as that keeps it (:mod:`lftj.aggregates.limb_pool`).

Cost: O(rows + limbs of the groups that change).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import int64, types, uint8, uint32

from indices.array_views import view_of
from indices.calls_by_address import caller_of, code_address
from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import Record, record_at
from lftj.aggregates.limb_numbers import Numbers, _round_numbers
from lftj.aggregates.limb_pool import LIMBS, SLACK_LIMBS, USED, _add_float_rows, _put
from lftj.aggregates.superaccumulator import _CARRY_ROWS as CARRY_ROWS
from lftj.memory import address, view
from lftj.values.byte_words import view8
from maintenance.groups.sums import GroupSums
from maintenance.machine.records import DONE, LEFT, ROOM

INFINITY = 0x7FF << 52
"""The bits of the largest double."""

MOST_EXACT = 2**53
"""Whole numbers up to here are doubles."""

PLUS, MINUS, TIMES, BY, MAGNITUDE, QUOTIENT = range(6)
"""What is computed: of two doubles, MAGNITUDE of the first one, and QUOTIENT of two whole numbers."""

_LIMBS_PER_GROUP = 4
"""What a commit has room for, on average; doubles of similar size take 2 to 4."""

view_u32 = view_of(np.uint32)

_NUMBERS = types.NamedTuple((int64[::1], uint8[::1], uint8[::1], uint32[::1]), Numbers)
_ADD = (
    *(_NUMBERS, int64[::1], int64[::1], int64[::1], int64[::1], int64),
    *(int64[:, ::1], int64[::1], uint8[::1], uint8[::1]),
)
_ROUND = (_NUMBERS, int64[:, ::1], int64[::1], int64[::1])

add_at_address = caller_of(_add_float_rows, _ADD)
round_at_address = caller_of(_round_numbers, _ROUND)


class FloatSums(Record):
    """The sums of an aggregate, by slot, and by group those that are staged."""

    starts: int  # the arrays of the pool's Numbers, and for how many slots and limbs
    lows: int
    lengths: int
    n_slots: int
    limbs: int
    room: int
    totals: int
    staged_starts: int  # likewise, for as many groups as the op has room for
    staged_lows: int
    staged_lengths: int
    staged_limbs: int
    staged_room: int
    specials: int  # by group how many NaN and infinities there are: none
    has_specials: int  # whether the aggregate keeps any
    add: int  # where the code of _add_float_rows is, and that of _round_numbers
    round: int


sums_at = record_at(FloatSums)


# -- what is computed --------------------------------------------------------------------------------


@part
def flipped(bits):
    """The code of a double's bits, and the bits of a code."""
    return bits ^ ((bits >> 63) & KEY_MAX)


@part
def double_of(code):
    return np.int64(flipped(code)).view(np.float64)


@part
def code_of(bits):
    """The code of a double's bits; KEY_MIN where that is not finite."""
    return np.int64(KEY_MIN) if bits & KEY_MAX >= INFINITY else flipped(bits)


@part
def computed(what, left, right):
    """The code of what is computed of two codes, or whole numbers; KEY_MIN for what is left."""
    value = 0.0
    if what == QUOTIENT:
        if right == 0 or not (-MOST_EXACT <= left <= MOST_EXACT and -MOST_EXACT <= right <= MOST_EXACT):
            return np.int64(KEY_MIN)
        value = np.float64(left) / np.float64(right)
    else:
        one, other = double_of(left), double_of(right)
        if what == PLUS:
            value = one + other
        elif what == MINUS:
            value = one - other
        elif what == TIMES:
            value = one * other
        elif what == MAGNITUDE:
            value = abs(one)
        elif other == 0.0:
            return np.int64(KEY_MIN)
        else:
            value = one / other
    return code_of(np.float64(value + 0.0).view(np.int64))


# -- sums --------------------------------------------------------------------------------------------


@part
def _kept(its):
    return Numbers(
        view(its.starts, its.n_slots),
        view8(its.lows, its.n_slots),
        view8(its.lengths, its.n_slots),
        view_u32(its.limbs, its.room),
    )


@part
def _staged(its, n):
    return Numbers(
        view(its.staged_starts, n),
        view8(its.staged_lows, n),
        view8(its.staged_lengths, n),
        view_u32(its.staged_limbs, its.staged_room),
    )


@part(makes_arrays=True)
def float_sums(its, is_average, groups, codes, weights, offsets):
    """The codes of groups' new sums or averages, int64 (groups,), and a status; the sums are staged.

    groups: as ``_open_groups`` has them; codes: int64, of the rows, group g's are
    ``[offsets[g], offsets[g + 1])``.
    """
    n = groups.shape[1]
    found, bits = np.zeros(n, np.int64), np.empty(len(codes), np.int64)
    if its.has_specials:
        return found, LEFT
    for row in range(len(codes)):
        bits[row] = flipped(codes[row])
        if bits[row] & KEY_MAX >= INFINITY:
            return found, LEFT
    kept, staged, specials = _kept(its), _staged(its, n), view(its.specials, 3 * n).reshape((n, 3))
    limbs = add_at_address(
        its.add,
        *(kept, groups[0], bits, weights, offsets, CARRY_ROWS, specials),
        *(staged.starts, staged.lows, staged.lengths),
    )
    used, more, added = np.int64(0), np.int64(0), np.int64(0)
    for number in range(n):
        length, before = np.int64(staged.lengths[number]), np.int64(kept.lengths[groups[0, number]])
        used, more = used + length, more + length - before
        added += length if length > before else 0
        found[number] = max(groups[2, number], 1) if is_average else 1
    if used > its.staged_room:
        return found, LEFT
    totals = view(its.totals, 2)
    if totals[USED] + added > min(its.room, 2 * (totals[LIMBS] + more) + SLACK_LIMBS):
        return found, ROOM
    for limb in range(used):
        staged.limbs[limb] = limbs[limb]
    round_at_address(its.round, staged, specials, found.copy(), found)
    for number in range(n):
        found[number] = code_of(found[number])
        if found[number] == KEY_MIN:
            return found, LEFT
    return found, DONE


@part(makes_arrays=True)
def averages(sums, counts, divisor):
    """The codes of sums by so many times the counts, and a status: LEFT where not both are doubles as they
    stand."""
    quotients = np.zeros(len(sums), np.float64)
    for its in range(len(sums)):
        if counts[its] > MOST_EXACT // divisor or not -MOST_EXACT <= sums[its] <= MOST_EXACT:
            return sums, LEFT
        if counts[its] > 0:
            quotients[its] = sums[its] / (counts[its] * divisor)
    codes = quotients.view(np.int64)
    for its in range(len(codes)):
        codes[its] = flipped(codes[its])
    return codes, DONE


@part
def publish_float_sums(its, slots):
    """Write the sums that are staged over those of the slots."""
    _put(_kept(its), slots, _staged(its, len(slots)), view(its.totals, 2))


class SumsInPool:
    """The sums of an aggregate, and room for those of a commit of so many rows."""

    def __init__(self, sums: GroupSums, rows: int) -> None:
        self._sums = sums
        self._words = np.zeros(FloatSums.LENGTH, np.int64)
        self._starts, self._specials = np.zeros(rows, np.int64), np.zeros((rows, 3), np.int64)
        self._lows, self._lengths = np.zeros((2, rows), np.uint8)
        self._limbs = np.zeros(_LIMBS_PER_GROUP * rows + SLACK_LIMBS, np.uint32)
        self._kept: tuple[np.ndarray, ...] = ()
        its = FloatSums(self._words)
        staged: list[np.ndarray] = [self._starts, self._lows, self._lengths, self._limbs, self._specials]
        its.staged_starts, its.staged_lows, its.staged_lengths, its.staged_limbs, its.specials = map(
            address, staged
        )
        its.staged_room = len(self._limbs)
        its.add, its.round = code_address(_add_float_rows, _ADD), code_address(_round_numbers, _ROUND)

    @property
    def record(self) -> int:
        """The address of the FloatSums."""
        return address(self._words)

    def bind(self, n_slots: int) -> None:
        """Have room for so many slots, and for a commit, and the addresses of what is kept now."""
        (pool,) = self._sums._pools
        arrays, totals = pool.with_room(n_slots, len(self._limbs))
        its = FloatSums(self._words)
        its.starts, its.lows, its.lengths, its.limbs = map(address, arrays)
        its.n_slots, its.room, its.totals = len(arrays.starts), len(arrays.limbs), address(totals)
        its.has_specials = self._sums._n_special > 0
        self._kept = (*arrays, totals)
