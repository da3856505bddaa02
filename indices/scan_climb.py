"""The kernels of a scan tree: descend to a leaf, change it, climb back.

:mod:`indices.scan_tree` states the tree's invariants, which hold before and
after every kernel here, and the cost.  A climb does at each level what the
level below left to do: enter a new sibling, or mend a node that holds too
little, and then copy key and aggregate of the node into its parent's slot.  Where the slot
has both already, nothing above changes, and the climb ends; not in a tree with GROUPED columns,
whose aggregates depend on last keys too.

What the kernels take, and who may write it

- ``leaves``, ``inners``: the two pools; written by insert, update, erase and build.
- ``state``: (5,) int64, ROOT, HEIGHT (0: the root is a leaf), SIZE, TOUCHED
  (nodes visited so far), GROUPED (the tree's ``grouped``); written by all but GROUPED.
- ``path``: (LEVELS, 2) int64, scratch: on the way to a leaf, the inner node and
  the slot at each level; row 0 is unused.
- ``combine``, ``identity``: the monoid's operation and identity over the values' type.  The
  identity stands for no records; nothing is ever combined with it, so a semigroup will do.
- ``keys``: (rows, columns) int64, ``values``: (rows,), never written.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import kernel, part
from indices.node_pool import (
    CAPACITY,
    USED,
    compare,
    drop_slot,
    fold,
    give_node,
    pour_left,
    pour_right,
    put_slot,
    room,
    slots_below,
    split_node,
    take_node,
)

ROOT, HEIGHT, SIZE, TOUCHED, GROUPED = range(5)
LEVELS = 32
"""More levels than 64-bit row numbers allow, at MINIMUM slots a node."""

MINIMUM = 5
"""Slots that every node but the root has at least."""

FULL_ENOUGH = 12
"""Slots of a node that the bulk constructor fills; siblings that hold as many together become one."""


@part
def _descend(leaves, inners, state, path, key):
    """The leaf that holds the key or would; leaves the way there in ``path``."""
    node = state[ROOT]
    for level in range(state[HEIGHT], 0, -1):
        slot = max(slots_below(inners, node, key, 1) - 1, 0)
        path[level, 0] = node
        path[level, 1] = slot
        node = inners.children[node, slot]
    state[TOUCHED] += state[HEIGHT] + 1
    return node


@part
def _total(leaves, inners, state, node, level, combine, identity):
    """The combination of a node, all of whose keys agree in the first GROUPED columns; else the identity."""
    pool = inners if level > 0 else leaves
    if state[GROUPED] > 0:
        last = node
        for _ in range(level):
            last = inners.children[last, inners.lengths[last] - 1]
        end = leaves.lengths[last] - 1
        for column in range(state[GROUPED]):
            if pool.keys[node, 0, column] != leaves.keys[last, end, column]:
                return identity
    return fold(pool, node, 0, pool.lengths[node], combine, identity)


@part
def _refresh(leaves, inners, state, child, level, node, slot, combine, identity):
    """Copy key and aggregate of ``child``, a node of the level, into its slot in its parent ``node``.

    Returns whether what stands above may have to change with it.
    """
    below = inners if level > 0 else leaves
    changes = state[GROUPED] > 0
    for column in range(below.keys.shape[2]):
        changes = changes or inners.keys[node, slot, column] != below.keys[child, 0, column]
        inners.keys[node, slot, column] = below.keys[child, 0, column]
    total = _total(leaves, inners, state, child, level, combine, identity)
    changes = changes or total != inners.values[node, slot] or total == 0  # -0.0 equals 0.0
    inners.values[node, slot] = total
    return changes


@part
def _enter(pool, node, slot, key, value, child):
    """Put a slot into a node, splitting it if it is full.  Returns the new right sibling or -1."""
    if pool.lengths[node] < CAPACITY:
        put_slot(pool, node, slot, key, value, child)
        return -1
    right = split_node(pool, node)
    length = pool.lengths[node]
    if slot <= length:
        put_slot(pool, node, slot, key, value, child)
    else:
        put_slot(pool, right, slot - length, key, value, child)
    return right


@part
def _insert(leaves, inners, state, path, key, value, combine, identity):
    """Insert a record; False if its key is there."""
    node = _descend(leaves, inners, state, path, key)
    slot = slots_below(leaves, node, key, 0)
    if slot < leaves.lengths[node] and compare(leaves, node, slot, key) == 0:
        return False
    state[SIZE] += 1
    right = _enter(leaves, node, slot, key, value, -1)
    below = leaves
    for level in range(1, state[HEIGHT] + 1):
        parent = path[level, 0]
        at = path[level, 1]
        changes = _refresh(leaves, inners, state, node, level - 1, parent, at, combine, identity)
        if right < 0 and not changes:
            return True
        if right >= 0:
            state[TOUCHED] += 1
            total = _total(leaves, inners, state, right, level - 1, combine, identity)
            right = _enter(inners, parent, at + 1, below.keys[right, 0], total, right)
        node = parent
        below = inners
    if right >= 0:
        state[TOUCHED] += 2
        root = take_node(inners)
        total = _total(leaves, inners, state, node, state[HEIGHT], combine, identity)
        put_slot(inners, root, 0, below.keys[node, 0], total, node)
        total = _total(leaves, inners, state, right, state[HEIGHT], combine, identity)
        put_slot(inners, root, 1, below.keys[right, 0], total, right)
        state[ROOT] = root
        state[HEIGHT] += 1
    return True


@kernel
def insert_records(leaves, inners, state, path, keys, values, first, combine, identity, done):
    """Insert records from row ``first`` on; ``done``: (rows,) bool, written: whether the key was new.

    Returns the first row not inserted: that is the number of rows, or a row for which the pools may
    not have room.
    """
    for row in range(first, len(keys)):
        if room(leaves) < 1 or room(inners) < state[HEIGHT] + 1:
            return row
        done[row] = _insert(leaves, inners, state, path, keys[row], values[row], combine, identity)
    return len(keys)


@kernel
def update_records(leaves, inners, state, path, keys, values, combine, identity, done):
    """Replace values; ``done``: (rows,) bool, written: whether the key was there."""
    for row in range(len(keys)):
        node = _descend(leaves, inners, state, path, keys[row])
        slot = slots_below(leaves, node, keys[row], 0)
        done[row] = slot < leaves.lengths[node] and compare(leaves, node, slot, keys[row]) == 0
        if not done[row]:
            continue
        leaves.values[node, slot] = values[row]
        for level in range(1, state[HEIGHT] + 1):
            parent = path[level, 0]
            at = path[level, 1]
            if not _refresh(leaves, inners, state, node, level - 1, parent, at, combine, identity):
                break
            node = parent


@part
def _mend(leaves, inners, state, level, parent, at, combine, identity):
    """Give the too short child at slot ``at`` of ``parent`` slots of a sibling, or make one of the two.

    ``level``: of the child.
    """
    pool = inners if level > 0 else leaves
    left_slot = max(at - 1, 0)
    left = inners.children[parent, left_slot]
    right = inners.children[parent, left_slot + 1]
    total = pool.lengths[left] + pool.lengths[right]
    if total <= FULL_ENOUGH:
        pour_left(pool, left, right, pool.lengths[right])
        give_node(pool, right)
        drop_slot(inners, parent, left_slot + 1)
    else:
        move = pool.lengths[left] - (total >> 1)
        if move > 0:
            pour_right(pool, left, right, move)
        else:
            pour_left(pool, left, right, -move)
        _refresh(leaves, inners, state, right, level, parent, left_slot + 1, combine, identity)
    _refresh(leaves, inners, state, left, level, parent, left_slot, combine, identity)


@part
def _erase(leaves, inners, state, path, key, combine, identity):
    """Erase a record; False if its key is not there."""
    node = _descend(leaves, inners, state, path, key)
    slot = slots_below(leaves, node, key, 0)
    if slot == leaves.lengths[node] or compare(leaves, node, slot, key) != 0:
        return False
    state[SIZE] -= 1
    drop_slot(leaves, node, slot)
    below = leaves
    for level in range(1, state[HEIGHT] + 1):
        parent = path[level, 0]
        if below.lengths[node] < MINIMUM:
            state[TOUCHED] += 1
            _mend(leaves, inners, state, level - 1, parent, path[level, 1], combine, identity)
        elif not _refresh(leaves, inners, state, node, level - 1, parent, path[level, 1], combine, identity):
            return True
        node = parent
        below = inners
    if state[HEIGHT] > 0 and inners.lengths[state[ROOT]] == 1:
        root = state[ROOT]
        state[ROOT] = inners.children[root, 0]
        state[HEIGHT] -= 1
        give_node(inners, root)
    return True


@kernel
def erase_records(leaves, inners, state, path, keys, combine, identity, done):
    """Erase records; ``done``: (rows,) bool, written: whether the key was there."""
    for row in range(len(keys)):
        done[row] = _erase(leaves, inners, state, path, keys[row], combine, identity)


@part
def _pair(left, n_left, right, n_right, combine):
    """Two values combined, or the one of them that is of any slots at all."""
    if n_left == 0:
        return right
    return left if n_right == 0 else combine(left, right)


@part
def _query(leaves, inners, state, low, high, combine, identity):
    """The values of all records with ``low <= key <= high``, combined in key order."""
    node = state[ROOT]
    level = state[HEIGHT]
    # One way down as long as both ends lie below the same child.
    while level > 0:
        start = max(slots_below(inners, node, low, 1) - 1, 0)
        stop = max(slots_below(inners, node, high, 1) - 1, 0)
        state[TOUCHED] += 1
        if start != stop:
            break
        node = inners.children[node, start]
        level -= 1
    if level == 0:
        state[TOUCHED] += 1
        start = slots_below(leaves, node, low, 0)
        stop = slots_below(leaves, node, high, 1)
        return fold(leaves, node, start, stop, combine, identity)
    if start > stop:
        return identity
    # Then two.  ``left`` is what lies right of the way to ``low`` so far, ``right`` what lies left of
    # the way to ``high``; what is found further down comes before ``left`` and after ``right``.
    left = fold(inners, node, start + 1, stop, combine, identity)
    n_left = stop - start - 1
    right = identity
    n_right = 0
    left_node = inners.children[node, start]
    right_node = inners.children[node, stop]
    for _ in range(level - 1):
        start = max(slots_below(inners, left_node, low, 1) - 1, 0)
        total = fold(inners, left_node, start + 1, inners.lengths[left_node], combine, identity)
        n_total = inners.lengths[left_node] - start - 1
        left = _pair(total, n_total, left, n_left, combine)
        n_left += n_total
        stop = max(slots_below(inners, right_node, high, 1) - 1, 0)
        total = fold(inners, right_node, 0, stop, combine, identity)
        right = _pair(right, n_right, total, stop, combine)
        n_right += stop
        left_node = inners.children[left_node, start]
        right_node = inners.children[right_node, stop]
    state[TOUCHED] += 2 * level
    start = slots_below(leaves, left_node, low, 0)
    total = fold(leaves, left_node, start, leaves.lengths[left_node], combine, identity)
    n_total = leaves.lengths[left_node] - start
    left = _pair(total, n_total, left, n_left, combine)
    n_left += n_total
    stop = slots_below(leaves, right_node, high, 1)
    total = fold(leaves, right_node, 0, stop, combine, identity)
    right = _pair(right, n_right, total, stop, combine)
    return _pair(left, n_left, right, n_right + stop, combine)


@kernel
def query_ranges(leaves, inners, state, lows, highs, combine, identity, out):
    """Aggregates of the closed ranges ``[lows[row], highs[row]]``; ``out``: (rows,), written."""
    for row in range(len(lows)):
        out[row] = _query(leaves, inners, state, lows[row], highs[row], combine, identity)


@part
def _sum_below(leaves, inners, state, key, zero):
    """The values of all records with lesser keys, added up."""
    node = state[ROOT]
    total = zero
    for _ in range(state[HEIGHT]):
        slot = max(slots_below(inners, node, key, 1) - 1, 0)
        for before in range(slot):
            total += inners.values[node, before]
        node = inners.children[node, slot]
    for before in range(slots_below(leaves, node, key, 0)):
        total += leaves.values[node, before]
    return total


@kernel
def find_sums(leaves, inners, state, lows, limits, zero, keys, found):
    """The first record, from ``lows[row]`` on, with which their values add up to more than ``limits[row]``.

    Of a tree of sums of values from 0, ``limits`` from 0 too.  ``keys``: (rows, columns), ``found``: (rows,)
    bool, both written: whether there is one.
    """
    for row in range(len(lows)):
        most = _sum_below(leaves, inners, state, lows[row], zero) + limits[row]
        node = state[ROOT]
        total = zero
        for _ in range(state[HEIGHT]):
            slot = 0
            while slot < inners.lengths[node] - 1 and total + inners.values[node, slot] <= most:
                total += inners.values[node, slot]
                slot += 1
            node = inners.children[node, slot]
        slot = 0
        while slot < leaves.lengths[node] and total + leaves.values[node, slot] <= most:
            total += leaves.values[node, slot]
            slot += 1
        state[TOUCHED] += 2 * (state[HEIGHT] + 1)
        found[row] = slot < leaves.lengths[node]
        for column in range(keys.shape[1]):
            keys[row, column] = leaves.keys[node, slot, column] if found[row] else 0


@kernel
def build(leaves, inners, state, keys, values, combine, identity):
    """Fill empty pools, which have room, with records whose keys are strictly increasing."""
    count = len(keys)
    nodes = max((count + FULL_ENOUGH - 1) // FULL_ENOUGH, 1)
    for number in range(nodes):
        node = take_node(leaves)
        for row in range(number * count // nodes, (number + 1) * count // nodes):
            put_slot(leaves, node, leaves.lengths[node], keys[row], values[row], -1)
    state[SIZE] = count
    first = 0
    below = leaves
    while nodes > 1:
        # The nodes of the level below are rows ``[first, first + count)`` of their pool.
        count = nodes
        nodes = (count + FULL_ENOUGH - 1) // FULL_ENOUGH
        first_parent = inners.rows[USED]
        for number in range(nodes):
            node = take_node(inners)
            for row in range(number * count // nodes, (number + 1) * count // nodes):
                child = first + row
                total = _total(leaves, inners, state, child, state[HEIGHT], combine, identity)
                put_slot(inners, node, inners.lengths[node], below.keys[child, 0], total, child)
        first = first_parent
        below = inners
        state[HEIGHT] += 1
    state[ROOT] = first
