"""The search: leapfrog triejoin as one compiled, resumable state machine, for all rules.

It gives what lies below given bindings, over versions of indices, and records of what it depended on where
they are asked for.  At each depth a node is opened, and the way in which its matches are found is chosen
then: step by step as in LFTJ section 3, so that what is recorded is the trace (docs/design/engine.md section
4), or, where nothing is recorded and only bases have tuples, in blocks (:mod:`lftj.search.machine.block`).

A plan may have a *tail* (:mod:`lftj.search.machine.tail`): then there is one row, of all
depths, for each binding of the variables before it that holds.

The search starts from *regions*.  A region is a binding of the first d variables, or of
d - 1 and an interval of the next (the whole evaluation is the region with d = 1 and all
keys).  Along fixed coordinates only membership is tested (docs/design/engine.md section
5): the first participant that lacks its key records that point and the region is done.
Where none does, all record the last coordinate: an iterator may have passed over it
before it was a match (invariant 2).

Where paths are asked for, a region comes with the interval of the record that named it.  Where its path
fails at the last coordinate for want of a key, the participant whose turn comes after the record's own and
that lacks the key records more than the point: all of its gap that is inside of the interval
(:mod:`lftj.search.machine.gap`).  That part the other record need not cover any longer.

Sorted regions share the path that they have in common.

Invariants

1. Between two calls the state describes the search completely; the caller may
   change the buffers of rows and records, and must then clear ``logged``.
2. Coverage (docs/design/engine.md section 4): for every node reached and every key within
   the conditions' bounds, all participants hold it and are covered, or one
   that lacks it is.  In a tail that holds, the witness is covered.
3. Rows come in key order within one region.
4. Where not all depths are listed, a row is a binding of those that are, with the number of assignments
   below it in the column behind; of a region that binds more of them, with those of the region alone.

5. Where one success below some depths is enough, and others come behind them, these go back over them:
   ``back`` says to which depth.

Cost: as leapfrog triejoin, O(log runs) more where runs have tuples.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import int64

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.conditions import condition_bounds
from lftj.search.machine.apart import goes_apart, list_apart
from lftj.search.machine.block import bind_match, fill_block, has_keys, has_match, is_on_bases, open_block
from lftj.search.machine.counted import count_below
from lftj.search.machine.cursor import bind_indexes, extend, flush, holds, open_cursor
from lftj.search.machine.gap import gap_around
from lftj.search.machine.node import (
    ALIGN_END,
    ALIGN_LOG_FULL,
    accept,
    align,
    begin_records,
    close_node,
    has_room,
    open_negations,
    open_node,
    step,
)
from lftj.search.machine.plain import is_plain, list_plain, open_plain
from lftj.search.machine.rows import begin_weights, emit, emit_counted
from lftj.search.machine.tail import enter_tail, keep_witness, same_tail, tail_has_room
from lftj.search.records import (
    CURSOR,
    MOVE_ALIGN,
    MOVE_BEGIN,
    MOVE_NEXT,
    MOVE_OPEN,
    MOVE_REGION,
    NODE,
    PATH,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_LOG_FULL,
    STATUS_PAUSED,
    WAY_APART,
    WAY_BLOCKS,
    WAY_EQUAL,
    WAY_PLAIN,
    WAY_STEPS,
    cursor_at,
    node_at,
    path_at,
    search_at,
    stream_at,
)

SEARCH_REGIONS = (int64, int64[::1], int64[:, ::1], int64[:, ::1], int64)
"""The types of its arguments."""


@kernel
def search_regions(where, indexes, regions, rows, budget):
    """:func:`run_search` of the Search at an address, for Python.

    indexes: int64, the address of the memory of each index's version, by number; the same in each call.
    """
    search = search_at(where)
    if search.move == MOVE_BEGIN:
        begin(search, indexes)
    status = run_search(search, regions, rows, budget)
    add_up_counts(search)
    return status


@part
def run_search(search, regions, rows, budget):
    """Run until all regions are done, buffers are full or the budget of operations is spent; a STATUS_*.

    search: what it leads to (lftj.search.records) is written.  regions: int64 (n, 2 + depths), sorted: number
    of bound variables d >= 1, end of the interval of the last of them, the values; read only.
    rows: int64 (depths, capacity), written from column ``search.rows`` on.
    """
    search.work, search.budget = 0, budget
    while search.work <= budget:
        if search.move == MOVE_REGION:
            if search.region == regions.shape[0]:
                return STATUS_DONE
            status = begin_region(search, regions, rows)
        else:
            status = visit(search, node_at(search.nodes + search.depth * NODE), regions, rows)
        if status != STATUS_DONE:
            return status
    return STATUS_PAUSED


@part
def begin(search, indexes):
    """Let a search begin with its first region, over the versions that :func:`search_regions` gets."""
    bind_indexes(search, indexes)
    search.depth = search.rows = search.weight = 0
    search.region = search.floor = search.valid = search.failed_regions = search.held = 0
    search.move, search.failed, search.outer = MOVE_REGION, -1, 1
    if not search.counts_on:
        for depth in range(search.depths):
            node = node_at(search.nodes + depth * NODE)
            node.opens = node.nexts = node.seeks = 0


@part
def add_up_counts(search):
    """Add the operations of all depths up, for who asks of the search."""
    search.opens = search.nexts = search.seeks = 0
    for depth in range(search.depths):
        node = node_at(search.nodes + depth * NODE)
        search.opens += node.opens
        search.nexts += node.nexts
        search.seeks += node.seeks


# -- regions -----------------------------------------------------------------------------------


@part
def begin_region(search, regions, rows):
    """Follow the next region's path; what it leads to comes next, if it holds.  A STATUS_*."""
    region, tail = search.region, search.tail
    bound = regions[region, 0]
    value, end = regions[region, 1 + bound], regions[region, 1]
    fixed = bound if value == end else bound - 1
    if search.rows == rows.shape[1]:
        return STATUS_FULL
    for depth in range(fixed):
        if not has_room(node_at(search.nodes + depth * NODE)):
            return STATUS_LOG_FULL
    search.region = region + 1
    if bound > tail:
        if search.held > 0 and same_tail(search, regions, region, search.held - 1):
            return STATUS_DONE
        if region == 0 or not same_tail(search, regions, region, region - 1):
            enter_tail(search)
    held = follow_path(search, regions, region, fixed)
    if search.paths:
        path_at(search.paths + region * PATH).failed = search.depths if held else search.failed
    if not held:
        search.failed_regions += 1
    elif fixed == search.depths:
        if search.n_factors:
            begin_weights(search, True)
        emit(search, rows)
        emit_counted(search, rows)
        if tail < search.depths:
            keep_witness(search)
            search.held = region + 1
    else:
        search.depth = search.floor = fixed
        search.low, search.high = KEY_MIN, KEY_MAX
        if fixed < bound:
            search.low, search.high = value, end
        search.move = MOVE_OPEN
    return STATUS_DONE


@part
def follow_path(search, regions, region, fixed):
    """Test the first ``fixed`` coordinates of a region one depth after the other; False: one of them failed.

    Cursors of depths that the region shares with the one before stay as they are.
    """
    shared = np.int64(0)
    if region > 0:
        limit = min(fixed, max(search.valid, search.failed + 1))
        while shared < limit and regions[region, 2 + shared] == regions[region - 1, 2 + shared]:
            shared += 1
    if search.failed >= 0 and shared > search.failed:
        return False  # where the region before failed
    depth = min(shared, search.valid)
    search.failed = -1
    keys = view(search.keys, search.depths)
    while depth < fixed:
        key = regions[region, 2 + depth]
        node = node_at(search.nodes + depth * NODE)
        search.valid = depth
        path = np.int64(0)
        if search.paths and depth + 1 == fixed:
            path = search.paths + region * PATH
        if not on_path(search, node, key, depth + 1 == fixed, path):
            search.failed = depth
            return False
        keys[depth] = key
        stamp(search, node)
        depth += 1
    search.valid = fixed
    return True


@part
def on_path(search, node, key, is_last, path):
    """Whether all participants of a depth hold the key and nothing refuses it; land them on it.

    The first participant that lacks it records that point, or its gap.  If none does, the node has a new
    match at the path's last coordinate, which all of them have to record: some may have passed over it.
    path: the region's Path where it is asked for and this is its last coordinate, else 0.
    """
    begin_records(node)
    low, high = condition_bounds(search.keys, node.conditions, node.n_conditions, KEY_MIN, KEY_MAX)
    if key < low or key > high:
        return False
    count = node.n_participants
    turn = first_turn(node, path)
    for number in range(turn, turn + count):
        cursor = cursor_at(node.participants + (number if number < count else number - count) * CURSOR)
        open_cursor(cursor)
        node.opens += 1
        search.work += 1
        held = holds(cursor, key)
        low = high = key
        if path and not held:
            low, high = cover_gap(search, node, cursor, key, path_at(path))
        if is_last or not held:
            extend(search, node, cursor, low, high, False)
        if not held:
            flush(search, node, cursor)
            return False
    open_negations(node)
    accepted = accept(search, node, key)
    close_node(search, node)
    return accepted


@part
def first_turn(node, path):
    """The number, among a depth's participants, of the one after that whose record names the region, or 0."""
    if path:
        matched = path_at(path).matched
        for number in range(node.n_participants - 1):
            stream = cursor_at(node.participants + number * CURSOR).stream
            if stream and stream_at(stream).number == matched:
                return np.int64(number + 1)
    return np.int64(0)


@part
def cover_gap(search, node, cursor, key, path):
    """What a participant that lacks the last coordinate records: its gap within the interval asked for."""
    low, high = path.low, path.high
    if low >= high:
        return key, key
    start, end = gap_around(cursor, key)
    node.seeks += 1
    search.work += 1
    low, high = max(low, start), min(high, end)
    path.gap_low, path.gap_high = low, high
    return low, high


# -- nodes -------------------------------------------------------------------------------------


@part(forceinline=True)
def visit(search, node, regions, rows):
    """Go on at the open depth: open its node, bind its next match, or leave it.  A STATUS_*."""
    depth = search.depth
    if search.records and not may_go_on(search, node):
        return STATUS_LOG_FULL
    if search.move == MOVE_OPEN:
        if search.rows == rows.shape[1] and (depth == search.listed or node.n_participants == 0):
            return STATUS_FULL
        if search.records and depth == search.tail and regions[search.region - 1, 0] <= depth:
            enter_tail(search)
        search.move = MOVE_ALIGN
        if not open_in_its_way(search, node):
            leave(search, node, rows)
            return STATUS_DONE
    way = node.way
    if way == WAY_BLOCKS:
        return visit_block(search, node, rows)
    if way == WAY_STEPS:
        return visit_step(search, node, rows)
    if way == WAY_EQUAL:
        return visit_equal(search, node, rows)
    return list_rest(search, node, rows)


@part(forceinline=True)
def may_go_on(search, node):
    """Whether logs take what one more step may record."""
    if not has_room(node):
        return False
    return search.depth + 1 < search.depths or search.tail == search.depths or tail_has_room(search)


@part(forceinline=True)
def open_in_its_way(search, node):
    """Open the node, and choose the way in which its matches are found; False: it has none."""
    depth = search.depth
    low, high = KEY_MIN, KEY_MAX
    if depth == search.floor:
        low, high = search.low, search.high
    low, high = condition_bounds(search.keys, node.conditions, node.n_conditions, low, high)
    search.work += 1
    if search.n_factors and depth + 1 == search.depths:
        begin_weights(search, False)
    if is_on_bases(search, node):
        node.way = WAY_PLAIN if node.lists_matches else WAY_BLOCKS
        return open_block(search, node, low, high)
    if low == KEY_MIN and high == KEY_MAX and open_plain(search, node):
        node.way = WAY_PLAIN
        return True
    node.way = WAY_STEPS
    if not open_node(search, node, low, high):
        return False
    if node.n_participants == 0:
        node.way = WAY_EQUAL
        return low == high
    if depth + 1 == search.depths:
        if is_plain(node):
            node.way = WAY_PLAIN
        elif goes_apart(node):
            node.way = WAY_APART
    return True


@part(forceinline=True)
def visit_block(search, node, rows):
    """Bind the next match that waits, or try more of the leader's keys, or leave the node."""
    if search.depth + 1 == search.depths and search.rows == rows.shape[1]:
        return STATUS_FULL
    search.move = MOVE_NEXT
    while not has_match(node) and has_keys(node) and search.work <= search.budget:
        fill_block(search, node)
    if node.counts_below and has_match(node):
        count_below(search, node, node_at(search.nodes + (search.depth + 1) * NODE))
    if has_match(node):
        bind(search, node, rows, bind_match(node))
    elif not has_keys(node):
        leave(search, node, rows)
    return STATUS_DONE


@part(forceinline=True)
def visit_step(search, node, rows):
    """Bind the next match of the leapfrog, or leave the node."""
    found = ALIGN_END
    if search.move != MOVE_NEXT or step(search, node):
        search.move = MOVE_ALIGN
        found = align(search, node)
    if found == ALIGN_END:
        leave(search, node, rows)
    elif found == ALIGN_LOG_FULL:
        return STATUS_LOG_FULL
    elif search.depth + 1 == search.depths and search.rows == rows.shape[1]:
        return STATUS_FULL
    else:
        key = cursor_at(node.participants).key
        search.move = MOVE_NEXT
        if accept(search, node, key):
            bind(search, node, rows, key)
    return STATUS_DONE


@part
def visit_equal(search, node, rows):
    """Bind the one key of a node that nothing but an equality binds, and leave it afterwards."""
    if search.move == MOVE_NEXT:
        leave(search, node, rows)
    else:
        search.move = MOVE_NEXT
        if accept(search, node, node.high):
            bind(search, node, rows, node.high)
    return STATUS_DONE


@part(forceinline=True)
def list_rest(search, node, rows):
    """Write all matches that the innermost node has left, and leave it."""
    if search.rows == rows.shape[1]:
        return STATUS_FULL
    if node.way == WAY_PLAIN:
        status = list_plain(search, node, rows)
    else:
        status = list_apart(search, node, rows)
    if status == STATUS_DONE:
        leave(search, node, rows)
    elif status == STATUS_FULL and search.listed < search.depths:
        return STATUS_DONE  # they are counted: the rows are free again
    return status


@part(forceinline=True)
def bind(search, node, rows, key):
    """After a match: what comes next.  A whole binding is emitted, and ends its tail."""
    depth = search.depth
    view(search.keys, search.depths)[depth] = key
    stamp(search, node)
    if depth + 1 < search.depths:
        search.depth, search.move = depth + 1, MOVE_OPEN
        return
    emit(search, rows)
    search.move = MOVE_NEXT
    if search.tail < search.depths:
        if search.records:
            keep_witness(search)
        if search.floor < search.tail:
            search.depth = search.tail - 1
        else:
            search.held = search.region
            search.move = MOVE_REGION
            emit_counted(search, rows)


@part(forceinline=True)
def stamp(search, node):
    """A key is bound: whatever was made of the one before is out of date."""
    search.stamp += 1
    node.stamp = search.stamp


@part(forceinline=True)
def leave(search, node, rows):
    """The node has no further match: go back to the one above, or to the next region."""
    close_node(search, node)
    is_done = node.back < search.floor
    if is_done or search.depth == search.listed:
        emit_counted(search, rows)
    if is_done:
        search.move = MOVE_REGION
    else:
        search.depth = node.back
        search.move = MOVE_NEXT
