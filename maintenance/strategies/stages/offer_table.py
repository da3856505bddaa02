"""`OfferTable`: of a head ``dist[x] = min(d)`` every value that is offered for a key, and which of them is
there.

An *offer* is a tuple that an instance gives.  Offers of one key are a *group*; the best one of those that
have instances is the group's *current* one, and alone a fact.  A relation without such a value is the case in
which all columns are the key.

Each offer has a slot as in :mod:`maintenance.strategies.stages.stage_table`, and beside its fields

    HIGH(f)    at least the largest high of its instances, so that all are solid at the rank HIGH + 1
    GROUP(f)   the number of its group
    NEXT(f)    the slot + 1 of another offer of the group, 0 at the end of its list

Invariants

1. ``groups`` has per group the slot + 1 of its current offer, 0 without one, and of the last one that came,
   which begins its list.  ``group_places`` are those of the keys of each group's first slot
   (:mod:`lftj.storage.row_places`).
2. Only a current offer has a rank.  Between two steps it is the best of the offers of its group that have
   instances, and every group that has such an offer has a current one.
3. A slot is of no more use when it has no instances.

Cost: as of a `StageTable`, and 24 bytes per offer, 16 per group and 16 to 32 for its places; to find a
group's best offer takes the time of its offers.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from copy import copy

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.storage.best_values import is_better, ranks_in
from lftj.storage.row_places import entry_of, number_at, place_of
from lftj.storage.signed_rows import Columns, row_order, table_of
from lftj.values.schema import Schema
from maintenance.strategies.stages.stage_table import (
    J_RANK,
    J_SLOT,
    JOURNALED,
    LEAST_ROOM,
    RANK,
    REGISTERS,
    SLOT_FIELDS,
    SLOTS,
    SOLID,
    TOTAL,
    StageTable,
    slot_of,
    write_down,
)

# -- fields of a slot, behind those of a StageTable
HIGH, GROUP, NEXT = SLOT_FIELDS, SLOT_FIELDS + 1, SLOT_FIELDS + 2

# -- fields of a group
CURRENT, LAST = 0, 1

# -- registers, behind those of a StageTable
N_GROUPS = REGISTERS
N_KEYS = REGISTERS + 1  # columns of a key
LARGEST = REGISTERS + 2  # 1: the best value is the largest one, 0: the least


class OfferTable(StageTable):
    """One head's.

    ``extremum``: ``"min"`` or ``"max"`` of its last column; None where that is part of the key.
    """

    fields = SLOT_FIELDS + 3
    gone_by = TOTAL

    def __init__(self, schema: Schema, extremum: str | None, journaled: bool = True) -> None:
        arity = len(schema.columns)
        super().__init__(arity, journaled)
        self._domain = schema.columns[-1].type.domain
        n_keys = arity if extremum is None else arity - 1
        self._registers = np.append(self._registers, [0, n_keys, int(extremum == "max")])
        self._groups = np.zeros((LEAST_ROOM, 2), np.int64)
        self._group_places = np.zeros(2 * LEAST_ROOM, np.int64)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._groups.nbytes + self._group_places.nbytes

    # -- a step ---------------------------------------------------------------------

    @wraps_around
    def gain(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Count instances that came; returns groups that have no current offer, or one that is beaten by
        them.

        A group may be named several times.
        """
        table = table_of(columns, len(highs))
        ranks = ranks_in(self._domain)
        touched = np.empty(table.shape[1], np.int64)
        progress = np.zeros(2, np.int64)
        while True:
            _gain(
                table, highs, ranks, progress, self._rows, self._slots, self._places, self._journal,
                self._registers, self._groups, self._group_places, touched,
            )  # fmt: skip
            done, n_touched = progress.tolist()
            if done == table.shape[1]:
                return touched[:n_touched].copy()
            self._make_room()

    def best(self, groups: np.ndarray) -> np.ndarray:
        """The slot of the best offer of each group that has instances, -1 without any."""
        found = np.empty(len(groups), np.int64)
        ranks = ranks_in(self._domain)
        _best(groups, self._rows, self._slots, self._groups, ranks, self._registers, found)
        return found

    def current(self, groups: np.ndarray) -> np.ndarray:
        """The slot of each group's current offer, -1 without one."""
        return self._groups[groups, CURRENT] - 1

    def groups_of(self, slots: np.ndarray) -> np.ndarray:
        return self._slots[slots, GROUP]

    def enter(self, slots: np.ndarray) -> None:
        """Offers become the current ones of their groups, which have none, at ranks at which all is solid."""
        self._write_down(slots)
        self._slots[slots, RANK] = self._slots[slots, HIGH] + 1
        self._slots[slots, SOLID] = self._slots[slots, TOTAL]
        self._groups[self._slots[slots, GROUP], CURRENT] = slots + 1

    def take_out(self, slots: np.ndarray) -> None:
        """Current offers are so no more."""
        self._write_down(slots)
        super().take_out(slots)
        self._groups[self._slots[slots, GROUP], CURRENT] = 0

    def _write_down(self, slots: np.ndarray) -> None:
        done = 0
        while (done := _write_all(slots, done, self._slots, self._journal, self._registers)) < len(slots):
            self._make_room()

    def keep(self) -> None:
        slots = self._journal[: self.n_journaled, J_SLOT]
        self._slots[slots[self._slots[slots, TOTAL] == 0], HIGH] = 0
        super().keep()

    def drop(self) -> None:
        journal = self._journal[: self.n_journaled]
        slots = journal[:, J_SLOT]
        groups = self._slots[slots, GROUP]
        self._groups[groups[self._groups[groups, CURRENT] == slots + 1], CURRENT] = 0
        was = journal[:, J_RANK] > 0
        self._groups[groups[was], CURRENT] = slots[was] + 1
        super().drop()

    # -- what there is ----------------------------------------------------------------

    @property
    def n_facts(self) -> int:
        """How many groups have a current offer."""
        return int(np.count_nonzero(self._groups[:, CURRENT]))

    def offers(self) -> tuple[list[np.ndarray], np.ndarray]:
        """All offers that have instances, sorted, and how many; int64 (n,)."""
        there = np.flatnonzero(self._slots[: self.n_slots, TOTAL])
        columns = list(np.ascontiguousarray(self._rows[there].T))
        order = row_order(columns) if len(there) else there
        return [column[order] for column in columns], self._slots[there[order], TOTAL]

    @wraps_around
    def _room_for(self, room: int) -> None:
        fresh = copy(self)
        super(OfferTable, fresh)._room_for(room)
        fresh._registers = self._registers.copy()
        fresh._registers[N_GROUPS] = 0
        fresh._groups = np.zeros((room, 2), np.int64)
        fresh._group_places = np.zeros_like(fresh._places)
        _group_all(
            self.n_slots, fresh._rows, fresh._slots, fresh._groups, fresh._group_places, fresh._registers
        )
        self.__dict__.update(fresh.__dict__)

    @wraps_around
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header; between two steps."""
        super().check_invariants()
        n, n_groups, n_keys = self.n_slots, int(self._registers[N_GROUPS]), int(self._registers[N_KEYS])
        every = np.arange(n_groups)
        assert (self.current(every) == self.best(every)).all()
        there = np.flatnonzero(self._slots[:n, RANK])
        assert sorted(there) == sorted(slot for slot in self.current(every) if slot >= 0)
        assert (self._slots[there, HIGH] + 1 >= 1).all()
        keys = [tuple(row) for row in self._rows[:n, :n_keys].tolist()]
        assert len(set(keys)) == n_groups == len(set(zip(keys, self._slots[:n, GROUP].tolist(), strict=True)))
        listed = []
        for slot in (self._groups[:n_groups, LAST] - 1).tolist():
            while slot >= 0:
                listed.append(slot)
                slot = int(self._slots[slot, NEXT]) - 1
        assert sorted(listed) == list(range(n))


@part
def _group_of(slot, rows, slots, places, registers):
    """The group of a slot's key, a new one where there was none; arguments as of _gain."""
    n_keys, group = registers[N_KEYS], registers[N_GROUPS]
    if n_keys == 0:
        registers[N_GROUPS] = 1
        return np.int64(0)
    place, tag = place_of(rows.T[:n_keys], slot, rows.T, places)
    first = number_at(places, place)
    if first >= 0:
        return slots[first, GROUP]
    registers[N_GROUPS] = group + 1
    places[place] = entry_of(slot, tag)
    return group


@part
def _enter_group(slot, rows, slots, groups, places, registers):
    """Put a slot into its group; arguments as of _gain."""
    group = _group_of(slot, rows, slots, places, registers)
    slots[slot, GROUP] = group
    slots[slot, NEXT] = groups[group, LAST]
    groups[group, LAST] = slot + 1


@kernel
def _gain(
    table, highs, ranks, progress, rows, slots, places, journal, registers, groups, group_places, touched
):
    """See :meth:`OfferTable.gain`; ends early where there is no room.

    table: int64 (columns, n), offers; highs: int64 (n,); ranks: int64, by code of a value, or empty.
    progress: int64 (2,), how many instances are done, and how many groups are named; rows: int64 (room,
    columns); slots: int64 (room, fields); places: int64 (a power of 2,); journal: int64 (room,
    JOURNAL_FIELDS); registers: int64, with N_GROUPS and what follows; groups: int64 (room, 2); group_places:
    int64 (a power of 2,); touched: int64 (n,), groups; all nine written.
    """
    n_keys, largest, n_touched = registers[N_KEYS], registers[LARGEST], progress[1]
    for instance in range(progress[0], table.shape[1]):
        progress[0], progress[1] = instance, n_touched
        if registers[JOURNALED] == len(journal):
            return
        n_slots = registers[SLOTS]
        slot = slot_of(table, instance, rows, places, registers)
        if slot < 0:
            return
        if slot == n_slots:
            _enter_group(slot, rows, slots, groups, group_places, registers)
        write_down(slot, slots, journal, registers)
        slots[slot, TOTAL] += 1
        slots[slot, HIGH] = max(slots[slot, HIGH], highs[instance])
        if slots[slot, RANK] > 0:
            if highs[instance] < slots[slot, RANK]:
                slots[slot, SOLID] += 1
            continue
        group = slots[slot, GROUP]
        current = groups[group, CURRENT] - 1
        if current < 0 or is_better(rows[slot, n_keys], rows[current, n_keys], ranks, largest):
            touched[n_touched] = group
            n_touched += 1
    progress[0], progress[1] = table.shape[1], n_touched


@kernel
def _best(of, rows, slots, groups, ranks, registers, found):
    """See :meth:`OfferTable.best`; of: int64 (n,), groups; found: int64 (n,), written; others as of _gain."""
    value, largest = rows.shape[1] - 1, registers[LARGEST]
    for number in range(len(of)):
        best = np.int64(-1)
        slot = groups[of[number], LAST] - 1
        while slot >= 0:
            is_first = best < 0 or is_better(rows[slot, value], rows[best, value], ranks, largest)
            if slots[slot, TOTAL] > 0 and is_first:
                best = slot
            slot = slots[slot, NEXT] - 1
        found[number] = best


@kernel
def _write_all(of, first, slots, journal, registers):
    """Enter slots into the journal, from number ``first`` on; of: int64 (n,); returns how many are done."""
    for number in range(first, len(of)):
        if registers[JOURNALED] == len(journal):
            return number
        write_down(of[number], slots, journal, registers)
    return len(of)


@kernel
def _group_all(n, rows, slots, groups, places, registers):
    """Enter the first ``n`` slots into groups, none of which is there yet; arguments as of _gain."""
    for slot in range(n):
        _enter_group(slot, rows, slots, groups, places, registers)
        if slots[slot, RANK] > 0:
            groups[slots[slot, GROUP], CURRENT] = slot + 1
