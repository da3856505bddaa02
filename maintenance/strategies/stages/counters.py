"""Counting instances in and out: the arrays of a `StageTable` and the kernels that write them
(:mod:`maintenance.strategies.stages.stage_table`).

Arrays, all int64

- ``facts``: Rows, of the slots' facts
- ``slots``: (room, SLOT_FIELDS)
- ``journal``: (room, JOURNAL_FIELDS)
- ``registers``: (REGISTERS,)
- ``keys``: Rows, of the groups' keys
- ``links``: (room, LINK_FIELDS), by slot; (0, LINK_FIELDS) where each slot is a group of its own
- ``groups``: (room, GROUP_FIELDS)
- ``ranks``: by code of a value, or empty (:func:`lftj.storage.best_values.ranks_in`)
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from lftj.storage.best_values import is_better
from lftj.storage.row_table import NO_ROOM, find, find_or_add

# -- fields of a slot
RANK, SOLID, TOTAL, STEP = range(4)
SLOT_FIELDS = 4

# -- fields of a line of the journal: the slot, and what it held
J_SLOT, J_RANK, J_SOLID, J_TOTAL = range(4)
JOURNAL_FIELDS = 4

# -- of a slot that has rivals: its group, and the slot + 1 of another of them, 0 at the end of their list
GROUP, NEXT = range(2)
LINK_FIELDS = 2

# -- fields of a group: the slot + 1 of its current offer, 0 without one; that of the first in its list
CURRENT, LAST = range(2)
GROUP_FIELDS = 2

# -- registers
KEPT_SLOTS = 0  # how many slots there were when the step began
JOURNALED = 1  # lines of the journal
STEPS = 2  # the number of the step that is going on
GONE = 3  # slots without instances, as of when the step began
LARGEST = 4  # 1: the best value is the largest one, 0: the least
REGISTERS = 5


@part(forceinline=True)
def _write_down(slot, slots, journal, registers):
    """Enter a slot into the journal, which has room, unless this step did already."""
    if slots[slot, STEP] != registers[STEPS]:
        slots[slot, STEP] = registers[STEPS]
        line = registers[JOURNALED]
        journal[line, J_SLOT] = slot
        for field in range(STEP):
            journal[line, J_RANK + field] = slots[slot, field]
        registers[JOURNALED] = line + 1


@kernel
def gain(table, highs, ranks, progress, facts, slots, journal, registers, keys, links, groups, named):
    """See :meth:`StageTable.gain`; ends early where there is no room.

    table: int64 (columns, n), heads; highs: int64 (n,).  progress: int64 (2,), how many instances are done,
    and how many groups are named; named: int64 (n,), groups; both and the seven between them written.
    """
    n_named, n_keys, has_rivals = progress[1], keys[0].shape[0], len(links) > 0
    own_keys, offers = table[:n_keys], facts[0]
    for instance in range(progress[0], table.shape[1]):
        progress[0], progress[1] = instance, n_named
        if registers[JOURNALED] == len(journal):
            return
        if has_rivals and keys[2][0] == keys[0].shape[1]:
            return
        n_slots = facts[2][0]
        slot = find_or_add(table, instance, facts)
        if slot == NO_ROOM:
            return
        if slot == n_slots and has_rivals:
            _link(slot, find_or_add(own_keys, instance, keys), links, groups)
        _write_down(slot, slots, journal, registers)
        rank = slots[slot, RANK]
        slots[slot, TOTAL] += 1
        if rank > 0:
            slots[slot, SOLID] += highs[instance] < rank
            continue
        slots[slot, RANK] = min(rank, -highs[instance] - 1)
        if has_rivals:
            group = links[slot, GROUP]
            current = groups[group, CURRENT] - 1
            is_named = current < 0 or is_better(
                table[n_keys, instance], offers[n_keys, current], ranks, registers[LARGEST]
            )
        else:
            group, is_named = slot, rank == 0
        if is_named:
            named[n_named] = group
            n_named += 1
    progress[0], progress[1] = table.shape[1], n_named


@kernel
def lose(table, highs, progress, facts, slots, journal, registers, fallen):
    """See :meth:`StageTable.lose`; as gain, but of instances -1 are done where a head has none.

    fallen: int64 (n,), the slots of facts that have fallen, written.
    """
    n_fallen = progress[1]
    for instance in range(progress[0], table.shape[1]):
        progress[0], progress[1] = instance, n_fallen
        if registers[JOURNALED] == len(journal):
            return
        slot = find(table, instance, facts)
        if slot < 0 or slots[slot, TOTAL] == 0:
            progress[0] = -1
            return
        _write_down(slot, slots, journal, registers)
        slots[slot, TOTAL] -= 1
        if highs[instance] < slots[slot, RANK]:
            slots[slot, SOLID] -= 1
            if slots[slot, SOLID] == 0:
                fallen[n_fallen] = slot
                n_fallen += 1
        elif slots[slot, TOTAL] == 0 and slots[slot, RANK] < 0:
            slots[slot, RANK] = 0
    progress[0], progress[1] = table.shape[1], n_fallen


@kernel
def enter(of, first, slots, journal, registers, links, groups):
    """See :meth:`StageTable.enter`; of: int64 (n,), slots.

    Begins with number ``first`` and ends early where there is no room; returns how many are done.
    """
    for number in range(first, len(of)):
        if registers[JOURNALED] == len(journal):
            return number
        slot = of[number]
        _write_down(slot, slots, journal, registers)
        slots[slot, RANK] = -slots[slot, RANK]
        slots[slot, SOLID] = slots[slot, TOTAL]
        if len(links) > 0:
            groups[links[slot, GROUP], CURRENT] = slot + 1
    return len(of)


@kernel
def take_out(of, first, top, slots, journal, registers, links, groups):
    """See :meth:`StageTable.take_out`; as enter."""
    for number in range(first, len(of)):
        if registers[JOURNALED] == len(journal):
            return number
        slot = of[number]
        _write_down(slot, slots, journal, registers)
        if slots[slot, TOTAL] == 0:
            slots[slot, RANK] = 0
        else:
            is_all_solid = slots[slot, SOLID] == slots[slot, TOTAL]
            slots[slot, RANK] = -slots[slot, RANK] if is_all_solid else -top - 1
        slots[slot, SOLID] = 0
        if len(links) > 0:
            groups[links[slot, GROUP], CURRENT] = 0
    return len(of)


@kernel
def best_offers(of, facts, slots, links, groups, ranks, registers, found):
    """The slot of the best offer of each group that has instances, -1 without any.

    of: int64 (n,), groups; found: int64 (n,), written.
    """
    codes, largest = facts[0][facts[0].shape[0] - 1], registers[LARGEST]
    for number in range(len(of)):
        best = np.int64(-1)
        slot = groups[of[number], LAST] - 1
        while slot >= 0:
            is_first = best < 0 or is_better(codes[slot], codes[best], ranks, largest)
            if slots[slot, TOTAL] > 0 and is_first:
                best = slot
            slot = links[slot, NEXT] - 1
        found[number] = best


@kernel
def ranks_of_facts(table, facts, slots, found):
    """See :meth:`StageTable.ranks`; table: int64 (columns, n); found: int64 (n,), written."""
    for fact in range(table.shape[1]):
        slot = find(table, fact, facts)
        found[fact] = max(slots[slot, RANK], 0) if slot >= 0 else 0


@kernel
def link_all(of, slots, links, groups):
    """Put the first slots into their groups, in which none is yet; of: int64 (n,), the group of each."""
    for slot in range(len(of)):
        _link(slot, of[slot], links, groups)
        if slots[slot, RANK] > 0:
            groups[of[slot], CURRENT] = slot + 1


@part
def _link(slot, group, links, groups):
    """Put a slot into a group."""
    links[slot, GROUP] = group
    links[slot, NEXT] = groups[group, LAST]
    groups[group, LAST] = slot + 1
