"""`StageTable`: of every fact of a recursive head its rank and two counters.

Design: docs/design/strategies.md section 2.3.

    total(f)   the instances of all rules with head f whose body facts are present
    rank(f)    of a present fact at least 1, else 0
    solid(f)   the instances whose recursive body facts all have a rank below rank(f)

An *instance* is an assignment of all variables of a body.  Its *high* is the largest rank of its recursive
body facts, 0 without any; it is solid for its head where that is below the head's rank.

A hash table with linear probing, whose slots are numbered as their facts first came.  It is changed in place:
a *journal* has what a slot held before a step first changed it, which says what the step did, and lets it be
undone.

Invariants

1. ``places`` are those of the slots' rows (:mod:`lftj.storage.row_places`), at least twice as many as
   there is room for slots.
2. A slot whose fact is not there has rank and solid 0; its total is 0 between two steps.
3. The journal has every slot that the step changed, once, with what was there before it: a slot's
   ``STEP`` is the number of the step that wrote it down, 0 at first.  So dropping a step may be done again.
4. Between two steps a present fact has ``1 <= solid <= total``: it has a proof from facts of lower ranks.
5. The first ``_n_ordered`` slots are in the order of their facts.

Cost: O(1) per instance; 8 bytes per column, 32 for the counters and 16 to 32 for the places, per slot.  Slots
of facts that went are given back when they are more than half.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.storage.row_places import entry_of, number_at, numbers_in, place_of
from lftj.storage.signed_rows import Columns, row_order, table_of

LEAST_ROOM = 1 << 8

# -- fields of a slot
RANK, SOLID, TOTAL, STEP = 0, 1, 2, 3
SLOT_FIELDS = 4

# -- fields of a line of the journal: the slot, and what it held
J_SLOT, J_RANK, J_SOLID, J_TOTAL = 0, 1, 2, 3
JOURNAL_FIELDS = 4

# -- registers
SLOTS = 0  # how many there are
KEPT_SLOTS = 1  # and were when the step began
JOURNALED = 2  # lines of the journal
STEPS = 3  # the number of the step that is going on
GONE = 4  # slots whose fact is not there, as of when the step began
REGISTERS = 5


class StageTable:
    """One head's.

    >>> table = StageTable(1)
    >>> new = table.gain([np.array([7, 7, 5])], np.array([0, 0, 4]))
    >>> table.settle(new)
    >>> table.rows_of(new).tolist(), table.ranks([np.array([5, 6, 7])]).tolist()
    ([[7, 5]], [5, 0, 1])
    >>> table.keep()
    >>> table.lose([np.array([7, 7])], np.array([0, 0])).tolist()
    [0]
    """

    fields = SLOT_FIELDS
    gone_by = RANK
    """The field that is 0 in a slot of no more use."""

    def __init__(self, arity: int, journaled: bool = True) -> None:
        """``journaled``: else nothing is written down before :meth:`begin`."""
        self._arity = arity
        self._registers = np.zeros(REGISTERS, np.int64)
        self._registers[STEPS] = int(journaled)
        self._rows = np.empty((LEAST_ROOM, arity), np.int64)
        self._slots = np.zeros((LEAST_ROOM, self.fields), np.int64)
        self._journal = np.empty((LEAST_ROOM, JOURNAL_FIELDS), np.int64)
        self._places = np.zeros(2 * LEAST_ROOM, np.int64)
        self._n_ordered = 0

    @wraps_around
    def expect(self, columns: Columns) -> None:
        """Give slots to facts that will come; they are sorted and distinct, and the table is empty.

        What comes together, as facts that have their first columns in common do, then stands together.
        """
        assert self.n_slots == 0, "slots are expected once"
        rows = np.ascontiguousarray(table_of(columns, len(columns[0])).T)
        n = len(rows)
        self._rows, self._slots = rows, np.zeros((n, self.fields), np.int64)
        self._registers[[SLOTS, KEPT_SLOTS]] = self._n_ordered = n
        self._room_for(max(LEAST_ROOM, n + n // 4))

    @property
    def n_slots(self) -> int:
        return int(self._registers[SLOTS])

    @property
    def n_journaled(self) -> int:
        """How many slots the step has changed."""
        return int(self._registers[JOURNALED])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self._rows, self._slots, self._journal, self._places))

    # -- a step ---------------------------------------------------------------------

    def gain(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances that came, with these heads and highs; returns the slots of heads that are new.

        A new fact's rank is one more than the largest high of its instances; it grows with more of them until
        the fact is settled (:meth:`settle`).
        """
        return self._counted(_gain, columns, highs)

    def lose(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances that went; returns the slots of facts whose solid support is gone by that."""
        return self._counted(_lose, columns, highs)

    @wraps_around
    def _counted(self, counting: Callable[..., Any], columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances by a kernel, with room made where it ends early; returns the slots it names."""
        table = table_of(columns, len(highs))
        named = np.empty(table.shape[1], np.int64)
        progress = np.zeros(2, np.int64)
        while True:
            counting(
                table, highs, progress, self._rows, self._slots, self._places, self._journal, self._registers,
                named,
            )  # fmt: skip
            done, n_named = progress.tolist()
            assert done >= 0, "an instance went that had not been there"
            if done == table.shape[1]:
                return named[:n_named].copy()
            self._make_room()

    def settle(self, slots: np.ndarray) -> None:
        """Facts that :meth:`gain` found new have the ranks that they have."""
        self._slots[slots, RANK] = np.abs(self._slots[slots, RANK])

    def take_out(self, slots: np.ndarray) -> None:
        """Facts without solid support leave; the step has changed them already."""
        self._slots[slots, RANK] = 0
        self._slots[slots, SOLID] = 0

    def put_back(self, slots: np.ndarray, rank: int) -> None:
        """Facts that left, and have instances, come back at a rank above all others: these are all solid."""
        self._slots[slots, RANK] = rank
        self._slots[slots, SOLID] = self._slots[slots, TOTAL]

    def change(self) -> tuple[list[np.ndarray], np.ndarray]:
        """What the step did so far: sorted facts, 1 where one came and -1 where one went."""
        journal = self._journal[: self.n_journaled]
        before, after = journal[:, J_RANK] != 0, self._slots[journal[:, J_SLOT], RANK] != 0
        changed = before != after
        columns, came = self._rows[journal[changed, J_SLOT]].T, after[changed]
        order = row_order(list(columns)) if len(came) else np.empty(0, np.int64)
        return [column[order] for column in columns], np.where(came[order], 1, -1)

    def keep(self) -> None:
        """The step stands.  May be done again."""
        journal = self._journal[: self.n_journaled]
        if len(journal):
            went = np.count_nonzero(self._slots[journal[:, J_SLOT], self.gone_by] == 0)
            was_gone = np.count_nonzero(journal[:, J_RANK + self.gone_by] == 0)
            came = int(self._registers[SLOTS] - self._registers[KEPT_SLOTS])
            self._next_step(int(self._registers[GONE]) + int(went) - int(was_gone) + came)

    def drop(self) -> None:
        """The step is undone.  May be done again."""
        journal = self._journal[: self.n_journaled]
        if len(journal):
            self._slots[journal[:, J_SLOT], :STEP] = journal[:, J_RANK:]
            came = int(self._registers[SLOTS] - self._registers[KEPT_SLOTS])
            self._next_step(int(self._registers[GONE]) + came)

    def begin(self) -> None:
        """From now on what is changed is written down; all facts so far are there."""
        self._next_step(0)

    def _next_step(self, gone: int) -> None:
        slots, steps = self.n_slots, int(self._registers[STEPS]) + 1
        self._registers[:REGISTERS] = np.array([slots, slots, 0, steps, gone])

    @wraps_around
    def tidy(self) -> None:
        """Give back the slots of facts that are gone, where they are more than half.  Nothing is staged."""
        if 2 * int(self._registers[GONE]) <= max(LEAST_ROOM, self.n_slots):
            return
        there = np.flatnonzero(self._slots[: self.n_slots, self.gone_by])
        fresh = copy(self)
        fresh._registers = self._registers.copy()
        fresh._registers[:REGISTERS] = [len(there), len(there), 0, self._registers[STEPS], 0]
        fresh._rows, fresh._slots = self._rows[there], self._slots[there]
        fresh._n_ordered = int(np.searchsorted(there, self._n_ordered))
        fresh._room_for(max(LEAST_ROOM, 2 * len(there)))
        self.__dict__.update(fresh.__dict__)

    # -- what there is ----------------------------------------------------------------

    @wraps_around
    def ranks(self, columns: Columns) -> np.ndarray:
        """The rank of each of these facts, 0 where it is not there."""
        table = table_of(columns, len(columns[0]))
        found = np.empty(table.shape[1], np.int64)
        _ranks(table, self._rows, self._slots, self._places, found)
        return found

    def ranks_of(self, slots: np.ndarray) -> np.ndarray:
        return self._slots[slots, RANK]

    def totals_of(self, slots: np.ndarray) -> np.ndarray:
        return self._slots[slots, TOTAL]

    def rows_of(self, slots: np.ndarray) -> np.ndarray:
        """The facts of some slots, int64 (columns, n)."""
        return np.ascontiguousarray(self._rows[slots].T)

    def facts_of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The facts of some slots, sorted, int64 (columns, n), and their ranks."""
        if len(slots) and slots.max() < self._n_ordered:
            slots = np.sort(slots)
            return self.rows_of(slots), self.ranks_of(slots)
        rows, ranks = self.rows_of(slots), self.ranks_of(slots)
        order = row_order(list(rows))
        return np.ascontiguousarray(rows[:, order]), ranks[order]

    def facts(self) -> tuple[list[np.ndarray], np.ndarray]:
        """All facts that are there, sorted, and for each rank, solid and total; int64 (n, 3)."""
        there = np.flatnonzero(self._slots[: self.n_slots, RANK])
        columns = list(np.ascontiguousarray(self._rows[there].T))
        order = row_order(columns) if len(there) else there
        return [column[order] for column in columns], self._slots[there[order], :STEP]

    @wraps_around
    def _make_room(self) -> None:
        """Room for twice as many slots, and lines of the journal, of that which is full."""
        n = self.n_slots
        if self.n_journaled == len(self._journal):
            journal = np.empty((2 * len(self._journal), JOURNAL_FIELDS), np.int64)
            journal[: self.n_journaled] = self._journal
            self._journal = journal
        if n == len(self._rows):
            self._room_for(2 * n)

    def _room_for(self, room: int) -> None:
        """Room for so many slots; made whole or not at all."""
        n = self.n_slots
        rows = np.empty((room, self._arity), np.int64)
        slots = np.zeros((room, self.fields), np.int64)
        places = np.zeros(1 << (2 * room - 1).bit_length(), np.int64)
        rows[:n], slots[:n] = self._rows[:n], self._slots[:n]
        _place(rows, n, places)
        self.__dict__.update(_rows=rows, _slots=slots, _places=places)

    @wraps_around
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header; between two steps."""
        n = self.n_slots
        assert n <= len(self._rows) == len(self._slots)
        assert 2 * len(self._rows) <= len(self._places) and self.n_journaled == 0
        assert sorted(numbers_in(self._places).tolist()) == list(range(n))
        rank, solid, total = self._slots[:n, :STEP].T
        there = rank != 0
        assert (rank >= 0).all() and (solid[~there] == 0).all()
        assert (total[~there] == 0).all() or self.gone_by == TOTAL
        assert (solid[there] >= 1).all() and (solid <= total).all()
        assert int(self._registers[GONE]) == np.count_nonzero(self._slots[:n, self.gone_by] == 0)
        ordered = self._rows[: self._n_ordered]
        assert self._n_ordered <= n and (row_order(list(ordered.T)) == np.arange(len(ordered))).all()
        places = np.zeros_like(self._places)
        _place(self._rows, n, places)
        assert np.array_equal(places, self._places)


@part(forceinline=True)
def slot_of(table, row, rows, places, registers):
    """The slot of a fact, int64 (columns, n) at ``row``, a new one where it has none; -1: there is no room.

    The others as of _gain.
    """
    place, tag = place_of(table, row, rows.T, places)
    if places[place] == 0:
        slot = registers[SLOTS]
        if slot == len(rows):
            return np.int64(-1)
        for column in range(table.shape[0]):
            rows[slot, column] = table[column, row]
        registers[SLOTS] = slot + 1
        places[place] = entry_of(slot, tag)
    return number_at(places, place)


@part(forceinline=True)
def write_down(slot, slots, journal, registers):
    """Enter a slot into the journal, which has room, unless this step did already."""
    if slots[slot, STEP] != registers[STEPS]:
        slots[slot, STEP] = registers[STEPS]
        line = registers[JOURNALED]
        journal[line, J_SLOT] = slot
        for field in range(STEP):
            journal[line, J_RANK + field] = slots[slot, field]
        registers[JOURNALED] = line + 1


@kernel
def _gain(table, highs, progress, rows, slots, places, journal, registers, new):
    """See :meth:`StageTable.gain`; ends early where there is no room.

    table: int64 (columns, n), heads; highs: int64 (n,).  progress: int64 (2,), how many instances are done,
    and how many slots are named; rows: int64 (room, columns); slots: int64 (room, SLOT_FIELDS); places: int64
    (a power of 2,); journal: int64 (room, JOURNAL_FIELDS); registers: int64 (REGISTERS,); new: int64 (n,),
    the slots of new facts; all seven written.
    """
    n_new = progress[1]
    for instance in range(progress[0], table.shape[1]):
        progress[0], progress[1] = instance, n_new
        if registers[JOURNALED] == len(journal):
            return
        slot = slot_of(table, instance, rows, places, registers)
        if slot < 0:
            return
        write_down(slot, slots, journal, registers)
        if slots[slot, RANK] == 0:
            new[n_new] = slot
            n_new += 1
        slots[slot, TOTAL] += 1
        if slots[slot, RANK] <= 0:  # new: what its rank will be, negative until it is settled
            slots[slot, RANK] = min(slots[slot, RANK], -highs[instance] - 1)
            slots[slot, SOLID] += 1
        elif highs[instance] < slots[slot, RANK]:
            slots[slot, SOLID] += 1
    progress[0], progress[1] = table.shape[1], n_new


@kernel
def _lose(table, highs, progress, rows, slots, places, journal, registers, fallen):
    """See :meth:`StageTable.lose`; arguments as of _gain, but of instances -1 are done where a head has none.

    fallen: int64 (n,), the slots of facts that have fallen, written.
    """
    n_fallen = progress[1]
    for instance in range(progress[0], table.shape[1]):
        progress[0], progress[1] = instance, n_fallen
        if registers[JOURNALED] == len(journal):
            return
        slot = number_at(places, place_of(table, instance, rows.T, places)[0])
        if slot < 0 or slots[slot, TOTAL] == 0:
            progress[0] = -1
            return
        write_down(slot, slots, journal, registers)
        slots[slot, TOTAL] -= 1
        if highs[instance] < slots[slot, RANK]:
            slots[slot, SOLID] -= 1
            if slots[slot, SOLID] == 0:
                fallen[n_fallen] = slot
                n_fallen += 1
    progress[0], progress[1] = table.shape[1], n_fallen


@kernel
def _ranks(table, rows, slots, places, found):
    """The rank of each fact of int64 (columns, n); found: int64 (n,), written; the others as of _gain."""
    for fact in range(table.shape[1]):
        slot = number_at(places, place_of(table, fact, rows.T, places)[0])
        found[fact] = slots[slot, RANK] if slot >= 0 else 0


@kernel
def _place(rows, n, places):
    """Enter the first ``n`` slots into empty places; rows: int64 (room, columns); places: int64, written."""
    for slot in range(n):
        place, tag = place_of(rows.T, slot, rows.T, places)
        places[place] = entry_of(slot, tag)
