"""`BestValues`: the best value per key of those that came so far, least or largest, round by round.

A recursion with ``min`` or ``max`` finds values for the same keys over and over.  Here a value is looked up
and compared in one step, so that what is found is netted as it comes, key by key.

Invariants

1. A group's number is that of its key in a :class:`~lftj.storage.row_table.RowTable`.
2. ``found`` is the best value that came for a group; ``values`` the best of all rounds before this one, and
   is not set for groups that came in this round, which are the last ones.
3. ``changed`` are the groups whose best value got better in this round, each once.

Cost: O(1) per value, amortised; memory per group 8 bytes per key column, 32 for values and marks, and 8 to 16
for the places, up to twice for growth.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.storage.row_table import NO_ROOM, RowTable, find_or_add
from lftj.storage.signed_rows import Columns, table_of
from lftj.values.domain import Domain

LEAST_ROOM = 1 << 8

# -- registers
CHANGED = 0  # groups, in this round
ROUND = 1  # its number, at least 1
REGISTERS = 2

IN_ORDER = np.zeros(0, np.int64)
"""Instead of ranks, where codes are in the order of their values."""


def ranks_in(domain: Domain) -> np.ndarray:
    """At each code its place in the order of values; ``IN_ORDER`` where codes are in that order."""
    return IN_ORDER if domain.ordered else domain.ranks()


class Improved(NamedTuple):
    """What a round did.

    ``keys``: int64 (columns, n), of the groups that are better; ``values``: int64 (n,), now; ``before``:
    those that the last groups but ``n_new`` had, int64 (n - n_new,).
    """

    keys: np.ndarray
    values: np.ndarray
    before: np.ndarray
    n_new: int


class BestValues:
    """The best of int64 codes by keys of ``n_keys`` int64 columns, which may be none.

    >>> best = BestValues(1, largest=False)
    >>> best.add([np.array([7, 7, 8])], np.array([3, 2, 5]), IN_ORDER).tolist()
    [0, 1, 2]
    >>> best.next_round().values.tolist()
    [2, 5]
    >>> best.add([np.array([7, 8])], np.array([2, 4]), IN_ORDER).tolist()
    [1]
    >>> improved = best.next_round()
    >>> improved.keys.tolist(), improved.values.tolist(), improved.before.tolist()
    ([[8]], [4], [5])
    """

    def __init__(self, n_keys: int, largest: bool) -> None:
        """``largest``: the best value is the largest one, else the least."""
        self._largest = int(largest)
        self._registers = np.array([0, 1])
        self._n_before = 0
        self._keys = RowTable(n_keys, LEAST_ROOM)
        self._values = np.empty(LEAST_ROOM, np.int64)
        self._found = np.empty(LEAST_ROOM, np.int64)
        self._rounds = np.zeros(LEAST_ROOM, np.int64)
        self._changed = np.empty(LEAST_ROOM, np.int64)

    @property
    def n_groups(self) -> int:
        """Those of this round too."""
        return self._keys.n_rows

    @wraps_around
    def add(self, keys: Columns, values: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Enter values, any number per key; returns which rows were better than all that came before them.

        ``ranks``: of the values' codes (:func:`ranks_in`).
        """
        n = len(values)
        table = table_of(keys, n)
        values = np.array(values)  # kernels take what may be written to
        better = np.empty(n, np.int64)
        progress = np.zeros(2, np.int64)
        while True:
            _improve(
                table, values, ranks, self._largest, progress, self._keys.arrays, self._found, self._rounds,
                self._changed, self._registers, better,
            )  # fmt: skip
            done, n_better = progress.tolist()
            if done == n:
                return better[:n_better]
            self._grow()

    def _grow(self) -> None:
        more = np.zeros(len(self._found), np.int64)
        self._values, self._found = np.append(self._values, more), np.append(self._found, more)
        self._rounds, self._changed = np.append(self._rounds, more), np.append(self._changed, more)
        self._keys.make_room()

    def next_round(self) -> Improved:
        """What got better since the last time."""
        changed = np.sort(self._changed[: self._registers[CHANGED]])
        n_new = self.n_groups - self._n_before
        before = self._values[changed[: len(changed) - n_new]]
        values = self._values[changed] = self._found[changed]
        self._n_before = self.n_groups
        self._registers[CHANGED] = 0
        self._registers[ROUND] += 1
        return Improved(self._keys.rows_of(changed), values, before, n_new)

    def columns(self) -> list[np.ndarray]:
        """Keys and best values as of the last round, in the order of their coming."""
        n = self._n_before
        return [*self._keys.rows(0, n), self._values[:n]]

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        n = self.n_groups
        self._keys.check_invariants()
        changed = self._changed[: self._registers[CHANGED]].tolist()
        assert sorted(changed) == np.flatnonzero(self._rounds[:n] == self._registers[ROUND]).tolist()
        assert set(range(self._n_before, n)) <= set(changed)


@part
def is_better(code, other, ranks, largest):
    """Whether a code's value is better than another's; ranks: int64, by code, or empty where codes are
    ordered.
    """
    here, there = code, other
    if len(ranks) > 0:
        here, there = ranks[code], ranks[other]
    return here > there if largest else here < there


@kernel
def _improve(table, values, ranks, largest, progress, keys, found, rounds, changed, registers, better):
    """See :meth:`BestValues.add`; ends early where there is no room.

    table: int64 (columns, n), keys; values: int64 (n,), codes; ranks: int64, by code, or empty; largest: 0 or
    1.  progress: int64 (2,), how many rows are done, and how many are better; keys: Rows; found, rounds,
    changed: int64 (room,); registers: int64 (REGISTERS,); better: int64 (n,), the rows that are; all seven
    written.
    """
    n_better = progress[1]
    for row in range(progress[0], table.shape[1]):
        n_groups = keys[2][0]
        group = find_or_add(table, row, keys)
        if group == NO_ROOM:
            progress[0], progress[1] = row, n_better
            return
        if group == n_groups:
            rounds[group] = 0
        elif not is_better(values[row], found[group], ranks, largest):
            continue
        found[group] = values[row]
        better[n_better] = row
        n_better += 1
        if rounds[group] != registers[ROUND]:
            rounds[group] = registers[ROUND]
            changed[registers[CHANGED]] = group
            registers[CHANGED] += 1
    progress[0], progress[1] = table.shape[1], n_better
