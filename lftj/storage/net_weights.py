"""Net weights of prefixes in a version of an index: how many tuples begin with each, and what follows.

    weight(prefix) = base tuples below it + sum over the runs of the weights below it

Rows come in any order.  In the base a block of them goes down a level together
(:mod:`lftj.storage.seek_many`).  In runs a key is sought by galloping from where the one before
it stood, where they ascend, as changes do, and the prefix that two rows share is not sought again.

Invariant: what is found does not depend on the order of the rows.

Cost: per row and level O(log n) in the base and in each run; of m ascending rows over the n tuples of a run
O(log(n / m)) amortised; per level of the base the logarithm of the block's widest node, and one load at the
first level of a base with a rank table.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.storage.runs import directory_of, first_key_from
from lftj.storage.seek import from_end, gallop
from lftj.storage.seek_many import BLOCK, halve, seek_root
from lftj.storage.signed_rows import rows_by_number
from lftj.storage.version_memory import INDEX, LEVEL, RUN, first_run, index_at, level_at, run_at

# -- what is known of the row that was walked last, by level -----------------------------------
W_START = 0  # the range of keys below its prefix
W_END = 1
W_PLACE = 2  # where a larger key may be at the earliest
W_WEIGHT = 3  # of runs: the net weight that was found
WALK_FIELDS = 4


@part
def shared_levels(rows, row):
    """How many first levels a row has in common with the one before it."""
    shared = np.int64(0)
    if row > 0:
        while shared < rows.shape[0] and rows[shared, row] == rows[shared, row - 1]:
            shared += 1
    return shared


@part
def _place_of(keys, rows, row, level, is_known, walk):
    """The least position of a node's keys that is not below the row's key.

    is_known: whether the node is the one in which the row before was sought.
    """
    start, end, key = walk[W_START, level], walk[W_END, level], rows[level, row]
    if is_known and key > rows[level, row - 1]:
        return gallop(keys, walk[W_PLACE, level], end, key)
    return from_end(keys, start, end, key)


@part(makes_arrays=True)
def _base_weights(where, rows, out):
    """Write the number of base tuples below every prefix of the rows; arguments as for net_weights."""
    index = index_at(where)
    path, n = rows.shape
    if path == 0 or level_at(where + INDEX).length == 0:
        out[:] = 0
        return
    starts, spans = np.empty(min(n, BLOCK), np.int64), np.empty(min(n, BLOCK), np.int64)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        seek_root(where, rows[0, first:last], starts, spans)
        for level in range(path):
            its = level_at(where + INDEX + level * LEVEL)
            keys, wanted = view(its.keys, its.length), rows[level, first:last]
            if level > 0:
                halve(keys, wanted, starts, spans)
            is_last = level + 1 == index.levels
            for row in range(last - first):
                place = starts[row]
                held = spans[row] > 0 and keys[place] == wanted[row]
                if is_last:
                    out[level, first + row] = np.int64(held)
                    continue
                out[level, first + row], starts[row], spans[row] = 0, 0, 0
                if held:
                    leaves, children = view(its.leaves, place + 2), view(its.children, place + 2)
                    out[level, first + row] = leaves[place + 1] - leaves[place]
                    starts[row], spans[row] = children[place], children[place + 1] - children[place]


@part
def _add_run_weights(run, length, directory, levels, rows, walk, out):
    """Add a run's net weight below every prefix of the rows; run: its flat array.  Else as net_weights."""
    path, n = rows.shape
    walk[W_START, 0], walk[W_END, 0] = 0, length
    sums = run[levels * length :]
    held = np.int64(0)
    for row in range(n):
        shared = shared_levels(rows, row)
        level = min(shared, held)
        for above in range(level):
            out[above, row] += walk[W_WEIGHT, above]
        if shared > held:
            continue
        held = level
        if held == 0 and len(directory) > 0:
            key = rows[0, row]
            ascends = row > 0 and key > rows[0, row - 1]
            number = first_key_from(directory, walk[W_PLACE, 0] if ascends else np.int64(0), key)
            walk[W_PLACE, 0] = number
            place = directory[2 * number + 1]
            if place == length or directory[2 * number] != key:
                continue
            after = directory[2 * number + 3]
            walk[W_WEIGHT, 0] = sums[after] - sums[place]
            out[0, row] += walk[W_WEIGHT, 0]
            held = np.int64(1)
            if path > 1:
                walk[W_START, 1], walk[W_END, 1] = place, after
        while held < path:
            column = run[held * length : (held + 1) * length]
            end, key = walk[W_END, held], rows[held, row]
            place = _place_of(column, rows, row, held, held == level and row > 0, walk)
            walk[W_PLACE, held] = place
            if place == end or column[place] != key:
                break
            after = place + 1
            if held + 1 < levels:
                after = gallop(column, after, end, key + 1) if key < KEY_MAX else end
            walk[W_PLACE, held], walk[W_WEIGHT, held] = after, sums[after] - sums[place]
            out[held, row] += walk[W_WEIGHT, held]
            held += 1
            if held < path:
                walk[W_START, held], walk[W_END, held] = place, after


@part(makes_arrays=True)
def net_weights(where, rows, out):
    """Net weight of every prefix of every row: ``out[l, i]`` for the branch rows[0..l, i] of the index.

    where: address of the Index; rows: int64 (levels of the path, n), all of the index's levels or the first
    ones; out: int64, of the same shape, written.
    """
    index = index_at(where)
    levels = index.levels
    walk = np.empty((WALK_FIELDS, max(1, rows.shape[0])), np.int64)
    _base_weights(where, rows, out)
    for number in range(index.runs):
        run = run_at(first_run(where) + number * RUN)
        flat = view(run.rows, (levels + 1) * run.length + 1)
        _add_run_weights(flat, run.length, directory_of(run), levels, rows, walk, out)


@part(makes_arrays=True)
def multiply_by_tuples(where, path, out):
    """Multiply ``out[i]`` by the number of tuples that begin with path[:, i]; False: int64 won't hold it.

    where: address of the Index; path: int64 (levels of the prefix, n); out: int64 (n,), written.
    """
    weights = np.empty(path.shape, dtype=np.int64)
    net_weights(where, path, weights)
    for row in range(path.shape[1]):
        weight = weights[path.shape[0] - 1, row]
        if weight > 0 and abs(out[row]) > KEY_MAX // weight:
            return False
        out[row] *= weight
    return True


@kernel(makes_arrays=True)
def multiply_weights(memory, path, out):
    """:func:`multiply_by_tuples` of a version's memory, for Python."""
    return multiply_by_tuples(memory.ctypes.data, path, out)


@kernel(makes_arrays=True)
def present(memory, rows, out):
    """Net weight of each whole tuple: ``out[i]`` of rows[:, i]; int64 (levels, n) and (n,)."""
    weights = np.empty(rows.shape, dtype=np.int64)
    net_weights(memory.ctypes.data, rows, weights)
    for row in range(rows.shape[1]):
        out[row] = weights[rows.shape[0] - 1, row]


@kernel(makes_arrays=True)
def changing(memory, order, rows, weights):
    """The tuples whose presence is another than the sign of their weight says, and those signs.

    memory: that of a version; order: int64 (levels,), the column that each level of the index has; rows:
    int64 (columns, n); weights: int64 (n,), none 0.  Returns int64 (columns, m) and (m,).
    """
    n = len(weights)
    path, held = np.empty((len(order), n), np.int64), np.empty((len(order), n), np.int64)
    for level in range(len(order)):
        for row in range(n):
            path[level, row] = rows[order[level], row]
    net_weights(memory.ctypes.data, path, held)
    places = np.empty(n, np.int64)
    found = 0
    for row in range(n):
        if (held[-1, row] > 0) != (weights[row] > 0):
            places[found] = row
            found += 1
    signs = np.empty(found, np.int64)
    for place in range(found):
        signs[place] = 1 if weights[places[place]] > 0 else -1
    return rows_by_number(rows, places[:found]), signs


@kernel(makes_arrays=True)
def surgeries(memory, rows, weights, levels_out, rows_out, signs_out):
    """Branches that a change inserted or erased (ILFTJ 4.2.1); returns how many.

    memory: that of the version *after* the change; rows: int64 (levels, n), the changed tuples,
    sorted; weights: int64 (n,), +1 or -1.  Surgery i is the branch of level ``levels_out[i]`` whose keys
    are rows[0..level, rows_out[i]], inserted or erased as ``signs_out[i]`` says; the outputs have room for
    levels * n items and are filled in the order of the tuples.
    """
    levels, n = rows.shape
    new = np.empty((levels, n), dtype=np.int64)
    net_weights(memory.ctypes.data, rows, new)
    found = np.int64(0)
    for row in range(n):
        # From the first level at which this tuple leaves the path of the one before.
        for level in range(shared_levels(rows, row), levels):
            change = weights[row]
            after = row + 1
            while after < n:
                same = True
                for above in range(level + 1):
                    if rows[above, after] != rows[above, row]:
                        same = False
                        break
                if not same:
                    break
                change += weights[after]
                after += 1
            old = new[level, row] - change
            if (old > 0) != (new[level, row] > 0):
                levels_out[found] = level
                rows_out[found] = row
                signs_out[found] = 1 if new[level, row] > 0 else -1
                found += 1
    return found
