"""`StageTable`: of every fact of a recursive head its rank and two counters.

Design: docs/design/strategies.md sections 2.3 and 2.4.

    total(f)   the instances of all rules with head f whose body facts are present
    rank(f)    of a present fact at least 1
    solid(f)   the instances whose recursive body facts all have a rank below rank(f)

An *instance* is an assignment of all variables of a body.  Its *high* is the largest rank of its recursive
body facts, 0 without any; it is solid for its head where that is below the head's rank.

Of a head ``dist[x] = min(d)`` every value that has instances is an *offer*, and the offers of one key are a
*group*; the best one is the group's *current* one, and alone a fact.  A relation without such a value is the
case in which all columns are the key: each fact is a group, whose number is its slot.

A fact's *slot* is its number in a :class:`~lftj.storage.row_table.RowTable`.  Slots are changed in place: a
*journal* has what a slot held before a step first changed it, which says what the step did, and lets it be
undone.

Invariants

1. By slot and by group there is as much room as for facts and keys, or more.  A group's slots are a list.
2. A slot whose fact is not there has solid 0, and the rank 0 without instances; else, with a minus, one at
   which all of its instances are solid.
3. The journal has every slot that the step changed, once, with what was there before it: a slot's
   ``STEP`` is the number of the step that wrote it down, 0 at first.  So dropping a step may be done again.
4. Between two steps the facts are the best offers of all groups, and ``1 <= solid <= total`` for each: it has
   a proof from facts of lower ranks.
5. The first ``_n_ordered`` slots are in the order of their facts.

Cost: O(1) per instance; to find a group's best offer takes the time of its offers.  Memory per slot: 8 bytes
per column, 32 for the counters and 8 to 16 for the places; of offers 16 more, and per group 16 and its key.
Slots without instances are given back when they are more than half.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from indices.wrapping import wraps_around
from lftj.storage.best_values import IN_ORDER, ranks_in
from lftj.storage.row_table import RowTable
from lftj.storage.signed_rows import Columns, row_order, table_of
from lftj.values.domain import Domain
from maintenance.strategies.stages import counters
from maintenance.strategies.stages.counters import (
    CURRENT,
    GONE,
    GROUP,
    GROUP_FIELDS,
    J_RANK,
    J_SLOT,
    J_TOTAL,
    JOURNAL_FIELDS,
    JOURNALED,
    KEPT_SLOTS,
    LARGEST,
    LAST,
    LINK_FIELDS,
    NEXT,
    RANK,
    REGISTERS,
    SLOT_FIELDS,
    STEP,
    STEPS,
    TOTAL,
)

LEAST_ROOM = 1 << 8


class Best(NamedTuple):
    """Which of the values of a key is the fact: of the last column, by the order of its domain."""

    domain: Domain
    is_largest: bool


class StageTable:
    """One head's.

    >>> table = StageTable(1)
    >>> new = table.gain([np.array([7, 7, 5])], np.array([0, 0, 4]))
    >>> table.enter(table.coming(new))
    >>> table.rows_of(new).tolist(), table.ranks([np.array([5, 6, 7])]).tolist()
    ([[7, 5]], [5, 0, 1])
    >>> table.keep()
    >>> table.lose([np.array([7, 7])], np.array([0, 0])).tolist()
    [0]
    """

    def __init__(self, arity: int, best: Best | None = None, journaled: bool = True) -> None:
        """``best``: None where all columns are the key.

        ``journaled``: else nothing is written down before :meth:`begin`.
        """
        self._best = best
        self._registers = np.zeros(REGISTERS, np.int64)
        self._registers[STEPS] = int(journaled)
        self._registers[LARGEST] = int(best is not None and best.is_largest)
        self._facts = RowTable(arity, LEAST_ROOM)
        self._slots = np.zeros((LEAST_ROOM, SLOT_FIELDS), np.int64)
        self._journal = np.empty((LEAST_ROOM, JOURNAL_FIELDS), np.int64)
        room = 0 if best is None else LEAST_ROOM
        self._keys = RowTable(arity - 1 if best else 0, room)
        self._links = np.zeros((room, LINK_FIELDS), np.int64)
        self._groups = np.zeros((room, GROUP_FIELDS), np.int64)
        self._n_ordered = 0

    def expect(self, columns: Columns) -> None:
        """Give slots to facts that will come, without a best value; they are sorted and distinct, and the
        table is empty.

        What comes together, as facts that have their first columns in common do, then stands together.
        """
        assert self.n_slots == 0 and self._best is None, "slots are expected once"
        n = len(columns[0])
        self._facts = RowTable.of(table_of(columns, n), max(LEAST_ROOM, n + n // 4))
        self._slots = np.zeros((self._facts.room, SLOT_FIELDS), np.int64)
        self._registers[KEPT_SLOTS] = self._n_ordered = n

    @property
    def n_slots(self) -> int:
        return self._facts.n_rows

    @property
    def n_journaled(self) -> int:
        """How many slots the step has changed."""
        return int(self._registers[JOURNALED])

    @property
    def n_facts(self) -> int:
        return int(np.count_nonzero(self._slots[: self.n_slots, RANK] > 0))

    @property
    def nbytes(self) -> int:
        arrays = self._slots, self._journal, self._links, self._groups
        return self._facts.nbytes + self._keys.nbytes + sum(array.nbytes for array in arrays)

    # -- a step ---------------------------------------------------------------------

    @wraps_around
    def gain(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances that came, with these heads and highs; returns groups whose fact is not their best
        offer by that.

        Each once where it is a fact; of several offers it may be named several times.
        """
        table, progress, named = table_of(columns, len(highs)), np.zeros(2, np.int64), np.empty_like(highs)
        while True:
            counters.gain(
                table, highs, self._value_ranks, progress, self._facts.arrays, self._slots, self._journal,
                self._registers, self._keys.arrays, self._links, self._groups, named,
            )  # fmt: skip
            if self._is_done(progress, len(highs)):
                return named[: progress[1]].copy()

    @wraps_around
    def lose(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances that went; returns the slots of facts whose solid support is gone by that."""
        table, progress, named = table_of(columns, len(highs)), np.zeros(2, np.int64), np.empty_like(highs)
        while True:
            counters.lose(
                table, highs, progress, self._facts.arrays, self._slots, self._journal, self._registers, named
            )
            if self._is_done(progress, len(highs)):
                return named[: progress[1]].copy()

    def _is_done(self, progress: np.ndarray, n: int) -> bool:
        """Whether all of n instances are counted; else there is room for more."""
        done = int(progress[0])
        assert done >= 0, "an instance went that had not been there"
        if done < n:
            self._make_room()
        return done == n

    @property
    def _value_ranks(self) -> np.ndarray:
        return IN_ORDER if self._best is None else ranks_in(self._best.domain)

    def left(self, slots: np.ndarray) -> np.ndarray:
        """Groups whose fact left and that may have another offer, or still have this one."""
        return self._links[slots, GROUP] if self._best else slots[self._slots[slots, RANK] < 0]

    def beaten(self, groups: np.ndarray) -> np.ndarray:
        """The slots of their facts that are not their best offers."""
        if self._best is None:
            return groups[:0]
        current = self._groups[groups, CURRENT] - 1
        return current[(current >= 0) & (current != self._best_of(groups))]

    def coming(self, groups: np.ndarray) -> np.ndarray:
        """The slots of the best offers of those that have no fact."""
        if self._best is None:
            return groups[self._slots[groups, RANK] < 0]
        slots = self._best_of(groups[self._groups[groups, CURRENT] == 0])
        return slots[slots >= 0]

    def _best_of(self, groups: np.ndarray) -> np.ndarray:
        found = np.empty(len(groups), np.int64)
        own = self._facts.arrays, self._slots, self._links, self._groups, self._value_ranks, self._registers
        counters.best_offers(groups, *own, found)
        return found

    def enter(self, slots: np.ndarray) -> None:
        """Offers become facts, at ranks at which all of their instances are solid."""
        self._each(slots, counters.enter)

    def take_out(self, slots: np.ndarray, top: int) -> None:
        """Facts leave; ``top``: no rank is larger."""
        self._each(slots, counters.take_out, top)

    def _each(self, slots: np.ndarray, change: Callable[..., Any], *arguments: int) -> None:
        """Change slots by a kernel, with room made where it ends early."""
        done = 0
        while True:
            own = self._slots, self._journal, self._registers, self._links, self._groups
            done = change(slots, done, *arguments, *own)
            if done == len(slots):
                return
            self._make_room()

    def change(self) -> tuple[list[np.ndarray], np.ndarray]:
        """What the step did so far: sorted facts, 1 where one came and -1 where one went."""
        journal = self._journal[: self.n_journaled]
        before, after = journal[:, J_RANK] > 0, self._slots[journal[:, J_SLOT], RANK] > 0
        changed = before != after
        columns, came = self.rows_of(journal[changed, J_SLOT]), after[changed]
        order = row_order(columns) if len(came) else np.empty(0, np.int64)
        return list(columns[:, order]), np.where(came[order], 1, -1)

    def keep(self) -> None:
        """The step stands.  May be done again."""
        journal = self._journal[: self.n_journaled]
        if len(journal):
            went = np.count_nonzero(self._slots[journal[:, J_SLOT], TOTAL] == 0)
            self._next_step(int(went) - int(np.count_nonzero(journal[:, J_TOTAL] == 0)))

    def drop(self) -> None:
        """The step is undone.  May be done again."""
        journal = self._journal[: self.n_journaled]
        if len(journal):
            slots = journal[:, J_SLOT]
            if self._best is not None:
                groups = self._links[slots, GROUP]
                self._groups[groups[self._groups[groups, CURRENT] == slots + 1], CURRENT] = 0
                was = journal[:, J_RANK] > 0
                self._groups[groups[was], CURRENT] = slots[was] + 1
            self._slots[slots, :STEP] = journal[:, J_RANK:]
            self._next_step(0)

    def begin(self) -> None:
        """From now on what is changed is written down; all facts so far are there."""
        self._registers[KEPT_SLOTS] = self.n_slots
        self._next_step(0)

    def _next_step(self, more_gone: int) -> None:
        """``more_gone``: slots that are gone, beside those that came with the step."""
        came = self.n_slots - int(self._registers[KEPT_SLOTS])
        _, _, steps, gone, largest = self._registers.tolist()
        self._registers[:] = np.array([self.n_slots, 0, steps + 1, gone + came + more_gone, largest])

    @wraps_around
    def tidy(self) -> None:
        """Give back the slots without instances, where they are more than half.  Nothing is staged."""
        if 2 * int(self._registers[GONE]) <= max(LEAST_ROOM, self.n_slots):
            return
        there = np.flatnonzero(self._slots[: self.n_slots, TOTAL])
        n, fresh = len(there), copy(self)
        fresh._registers = self._registers.copy()
        fresh._registers[[KEPT_SLOTS, GONE]] = n, 0
        fresh._facts = self._facts.compacted(there, max(LEAST_ROOM, 2 * n))
        fresh._slots = _with_room(self._slots[there], fresh._facts.room)
        fresh._n_ordered = int(np.searchsorted(there, self._n_ordered))
        if self._best is not None:
            fresh._keys = RowTable(self._keys.arity, LEAST_ROOM)
            groups = fresh._keys.find_or_add(fresh._facts.rows()[:-1])
            fresh._links = np.zeros((fresh._facts.room, LINK_FIELDS), np.int64)
            fresh._groups = np.zeros((fresh._keys.room, GROUP_FIELDS), np.int64)
            counters.link_all(groups, fresh._slots, fresh._links, fresh._groups)
        self.__dict__.update(fresh.__dict__)

    # -- what there is ----------------------------------------------------------------

    @wraps_around
    def ranks(self, columns: Columns) -> np.ndarray:
        """The rank of each of these facts, 0 where it is not there."""
        table = table_of(columns, len(columns[0]))
        found = np.empty(table.shape[1], np.int64)
        counters.ranks_of_facts(table, self._facts.arrays, self._slots, found)
        return found

    def ranks_of(self, slots: np.ndarray) -> np.ndarray:
        """Those of some slots; above 0 where they are facts."""
        return self._slots[slots, RANK]

    def rows_of(self, slots: np.ndarray) -> np.ndarray:
        """The facts of some slots, int64 (columns, n)."""
        return self._facts.rows_of(slots)

    def facts_of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The facts of some slots, sorted, int64 (columns, n), and their ranks."""
        if len(slots) and slots.max() < self._n_ordered:
            slots = np.sort(slots)
            return self.rows_of(slots), self.ranks_of(slots)
        rows, ranks = self.rows_of(slots), self.ranks_of(slots)
        order = row_order(rows)
        return rows.take(order, axis=1), ranks[order]

    def facts(self) -> tuple[list[np.ndarray], np.ndarray]:
        """All facts that are there, sorted, and for each rank, solid and total; int64 (n, 3)."""
        return self._sorted(np.flatnonzero(self._slots[: self.n_slots, RANK] > 0))

    def offers(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The same of all that has instances."""
        return self._sorted(np.flatnonzero(self._slots[: self.n_slots, TOTAL]))

    def _sorted(self, slots: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        columns = self.rows_of(slots)
        order = row_order(columns) if len(slots) else slots
        return list(columns[:, order]), self._slots[slots[order], :STEP]

    @wraps_around
    def _make_room(self) -> None:
        """Twice the room for what is full: lines of the journal, slots, groups."""
        if self.n_journaled == len(self._journal):
            self._journal = _with_room(self._journal, 2 * len(self._journal))
        if self.n_slots == self._facts.room:
            room = 2 * self.n_slots
            self._slots = _with_room(self._slots, room)
            if self._best is not None:
                self._links = _with_room(self._links, room)
            self._facts.make_room()
        if self._best is not None and self._keys.n_rows == self._keys.room:
            self._groups = _with_room(self._groups, 2 * self._keys.room)
            self._keys.make_room()

    @wraps_around
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header; between two steps."""
        n, n_groups = self.n_slots, self._keys.n_rows
        self._facts.check_invariants()
        assert self._facts.room <= len(self._slots) and self.n_journaled == 0
        rank, solid, total = self._slots[:n, :STEP].T
        there = rank > 0
        assert (solid[~there] == 0).all() and ((rank == 0) == (total == 0)).all()
        assert (solid[there] >= 1).all() and (solid <= total).all()
        assert int(self._registers[GONE]) == np.count_nonzero(total == 0)
        ordered = self._facts.rows(0, self._n_ordered)
        assert self._n_ordered <= n and (row_order(ordered) == np.arange(self._n_ordered)).all()
        if self._best is None:
            assert (rank >= 0).all() and not n_groups + len(self._links)
            return
        self._keys.check_invariants()
        assert self._keys.room <= len(self._groups) and self._facts.room <= len(self._links)
        current = self._groups[:n_groups, CURRENT] - 1
        assert (current == self._best_of(np.arange(n_groups))).all()
        assert np.array_equal(np.flatnonzero(there), np.sort(current[current >= 0]))
        keys = self._keys.rows()[:, self._links[:n, GROUP]]
        assert np.array_equal(keys, self._facts.rows()[:-1])
        listed = []
        for slot in (self._groups[:n_groups, LAST] - 1).tolist():
            while slot >= 0:
                listed.append(slot)
                slot = int(self._links[slot, NEXT]) - 1
        assert sorted(listed) == list(range(n))


def _with_room(rows: np.ndarray, room: int) -> np.ndarray:
    """Rows of an array, with room for more behind them, 0 so far."""
    wider = np.zeros((room, rows.shape[1]), np.int64)
    wider[: len(rows)] = rows
    return wider
