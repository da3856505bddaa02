"""Maintained ``sum``, ``avg`` and variances by group: exact sums that take signed summands.

Specification: docs/design/engine.md section 6.

A sum is kept as the limbs in use of a fixed-point number (:mod:`lftj.aggregates.limb_pool`); those of
integers and decimals, and averages of these, are of whole numbers (:mod:`maintenance.groups.whole_sums`).
It is exact: what was added and taken back leaves no trace, and a value is rounded once, when it is read.
An average is the sum divided by the group's count; variances keep the sum of the squares beside that of the
numbers (:mod:`lftj.aggregates.exact_variances`).

Invariants

1. A group's number is the exact sum of the finite values of the multiset that
   is there now; equal multisets have equal limbs, whatever came and went.
2. NaN, +inf and -inf are counted by group, so that they too can be taken back;
   the counts take no memory while no group has any.
3. A group that is gone has no limbs.
4. ``stage`` writes nothing that is published.  ``add`` does, while nothing was ever kept: ``drop`` then
   takes all of it away.

Cost: O(rows + limbs of the groups that change).  Memory: 10 bytes per slot and
4 to 8 per limb: 2 to 4 limbs for values of similar size.  24 bytes per slot
while some group has a NaN or an infinity.

Source: ILFTJ 2.3.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lftj.aggregates.exact_sums import ExactSums
from lftj.aggregates.exact_variances import exact_sums
from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.limb_numbers import Numbers, without_numbers
from lftj.aggregates.limb_pool import LimbPool
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate
from lftj.storage.signed_rows import Columns
from lftj.values.schema import ColumnType
from maintenance.groups.accumulator import Accumulator, GroupRows


@dataclass(frozen=True)
class _Step:
    slots: np.ndarray
    numbers: tuple[Numbers, ...]
    specials: np.ndarray
    n_special: int  # slots that have any after it


class GroupSums(Accumulator):
    """The accumulator of variances, and of a ``sum`` or ``avg`` of floats.

    Slots that were never kept have no members.
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        self._head = head
        self._types = types
        self._sums = exact_sums(head, types)
        self._pools = self._new_pools()
        self._specials = np.empty((0, 3), np.int64)  # by slot: NaN, +inf, -inf; all zero beyond
        self._n_special = 0  # slots that have any
        self._staged: _Step | None = None
        self._is_building = False

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return sum(pool.nbytes for pool in self._pools) + self._specials.nbytes

    @property
    def is_of_doubles(self) -> bool:
        """Whether it adds up floats, to a ``sum`` or ``avg`` that is a ``float64``."""
        return type(self._sums) is ExactSums and self._sums.has_specials

    @property
    def is_average(self) -> bool:
        assert isinstance(self._head.value, Aggregate)
        return self._head.value.function == "avg"

    @property
    def n_limbs(self) -> int:
        """Limbs in use, of all groups."""
        return sum(pool.n_limbs for pool in self._pools)

    def stage(self, rows: GroupRows) -> np.ndarray:
        """Codes of the groups' new sums or averages, int64; nothing is published.

        Raises :class:`~lftj.errors.RangeError`, naming head and group, for a sum that its type does not
        hold; then nothing is staged.  O(rows + limbs of the groups).
        """
        assert self._staged is None, "what was staged has to be kept or dropped first"
        step = self._added(rows)
        values = self._codes(rows.keys, step.numbers, step.specials, rows.counts)
        self._staged = step
        return values

    def add(self, rows: GroupRows) -> None:
        """See :meth:`Accumulator.add`; O(rows + limbs of the groups)."""
        assert self._staged is None, "what was staged has to be kept or dropped first"
        self._is_building = True
        self._publish(self._added(rows))

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        numbers = tuple(pool.numbers(slots) for pool in self._pools)
        return self._codes(keys, numbers, self._specials_of(slots), counts)

    def _added(self, rows: GroupRows) -> _Step:
        """The groups' numbers with the rows."""
        specials = self._specials_of(rows.slots)
        (codes,) = rows.arguments
        numbers = self._sums.added(
            self._pools, rows.slots, codes, rows.weights, rows.offsets, specials, rows.are_unscaled
        )
        if not rows.counts.all():
            gone = rows.counts == 0
            numbers = tuple(without_numbers(its, gone) for its in numbers)
            specials[gone] = 0
        n_special = self._n_special
        if n_special or (self._sums.has_specials and specials.any()):
            n_special += _n_any(specials) - _n_any(self._specials_of(rows.slots))
        return _Step(rows.slots, numbers, specials, n_special)

    def _codes(
        self, keys: Columns, numbers: Sequence[Numbers], specials: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """The codes of sums or averages by group.  Raises :class:`~lftj.errors.RangeError`."""
        groups = GroupNames(self._head, self._types, list(keys))
        return groups.declared.domain.encode(self._sums.values(groups, numbers, specials, counts))

    def _publish(self, step: _Step) -> None:
        for pool, numbers in zip(self._pools, step.numbers, strict=True):
            pool.publish(step.slots, numbers)
        if step.n_special:
            self._reserve_specials(int(step.slots.max(initial=-1)) + 1)
            self._specials[step.slots] = step.specials
        elif self._n_special:
            self._specials = np.empty((0, 3), np.int64)
        self._n_special = step.n_special

    def _keep_own(self) -> None:
        self._is_building = False
        if self._staged is not None:
            self._publish(self._staged)
            self._staged = None

    def _drop_own(self) -> None:
        if self._is_building:
            self._pools, self._specials, self._n_special = self._new_pools(), np.empty((0, 3), np.int64), 0
            self._is_building = False
        self._staged = None

    def remapped(self, kept: np.ndarray) -> GroupSums:
        """One whose slot i is slot ``kept[i]`` of this; the others are gone.  Nothing is staged."""
        assert self._staged is None
        sums = GroupSums(self._head, self._types)
        sums._pools = tuple(pool.remapped(kept) for pool in self._pools)
        if self._n_special:
            sums._specials = self._specials_of(kept)
            sums._n_special = _n_any(sums._specials)
        return sums

    def _check_own(self) -> None:
        for pool in self._pools:
            pool.check_invariants()
        assert self._n_special == _n_any(self._specials)
        assert (self._n_special > 0) == (len(self._specials) > 0)
        assert (self._specials >= 0).all(), "a NaN or infinity went that had not been there"
        assert self._sums.has_specials or not self._n_special

    def _new_pools(self) -> tuple[LimbPool, ...]:
        return tuple(LimbPool() for _ in range(self._sums.n_numbers))

    def _specials_of(self, slots: np.ndarray) -> np.ndarray:
        """A copy of the slots' counts of NaN, +inf and -inf: (slots, 3)."""
        specials = np.zeros((len(slots), 3), np.int64)
        if not len(self._specials):
            return specials
        known = slots < len(self._specials)
        specials[known] = self._specials[slots[known]]
        return specials

    def _reserve_specials(self, n_slots: int) -> None:
        if n_slots > len(self._specials):
            room = max(n_slots, 2 * len(self._specials)) - len(self._specials)
            self._specials = np.append(self._specials, np.zeros((room, 3), np.int64), axis=0)


def _n_any(specials: np.ndarray) -> int:
    """How many rows hold something else than 0."""
    return int(specials.any(axis=1).sum())
