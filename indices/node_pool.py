"""Pools of tree nodes: rows of arrays, each a short sorted list of (key, value, child).

A node is a row number.  Its first ``lengths[node]`` slots are in use: a key of
some columns, a value, and in pools of inner nodes a child.  Here is what is
done inside one node or between two of them; :mod:`indices.scan_tree` says
which nodes.

Invariants

1. A node's keys in use are strictly increasing, compared column by column.
2. A row is in use (``lengths >= 0``) or on the free list, whose links are kept
   in ``lengths`` as ``-2 - next row``, the next of the last being -1; never both.
3. Rows ``rows[USED]`` and beyond have never been in use; ``rows[FREE]`` rows are on the list that
   begins at ``rows[HEAD]``.

Arrays of a pool, all C-ordered and written by the kernels of this package only

- ``keys``: (rows, CAPACITY, columns) int64
- ``values``: (rows, CAPACITY) int64 or float64
- ``children``: (rows, CAPACITY) int64, row numbers; in a pool of leaves (rows, 0)
- ``lengths``: (rows,) int64
- ``rows``: (3,) int64: USED, HEAD, FREE

Cost: O(CAPACITY) for what a kernel does in a node.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part

CAPACITY = 16
"""Slots of a node."""

USED, HEAD, FREE = range(3)
_NONE = -1  # the row after the free list's last


class Pool(NamedTuple):
    """The arrays of a pool of nodes; the module's header gives their shapes."""

    keys: np.ndarray
    values: np.ndarray
    children: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self)


def new_pool(rows: int, columns: int, dtype: np.dtype, leaves: bool) -> Pool:
    """A pool with room for ``rows`` nodes, none of them in use.

    >>> new_pool(4, 2, np.dtype(np.int64), leaves=True).keys.shape
    (4, 16, 2)
    """
    return Pool(
        np.zeros((rows, CAPACITY, columns), np.int64),
        np.zeros((rows, CAPACITY), dtype),
        np.zeros((rows, 0 if leaves else CAPACITY), np.int64),
        np.zeros(rows, np.int64),
        np.array([0, _NONE, 0], np.int64),
    )


def grown_pool(pool: Pool) -> Pool:
    """The pool with room for twice as many nodes: its arrays copied into larger ones.

    >>> grown_pool(new_pool(4, 1, np.dtype(np.int64), leaves=True)).lengths.shape
    (8,)
    """
    return Pool(
        _twice(pool.keys), _twice(pool.values), _twice(pool.children), _twice(pool.lengths), pool.rows
    )


def _twice(array: np.ndarray) -> np.ndarray:
    larger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def room(pool):
    """How many more nodes can be taken."""
    return len(pool.lengths) - pool.rows[USED] + pool.rows[FREE]


@part
def take_node(pool):
    """An empty node, from the free list if there is one; the caller has seen to :func:`room`."""
    if pool.rows[FREE] > 0:
        node = pool.rows[HEAD]
        pool.rows[HEAD] = -2 - pool.lengths[node]
        pool.rows[FREE] -= 1
    else:
        node = pool.rows[USED]
        pool.rows[USED] += 1
    pool.lengths[node] = 0
    return node


@part
def give_node(pool, node):
    """Put the node on the free list."""
    pool.lengths[node] = -2 - pool.rows[HEAD]
    pool.rows[HEAD] = node
    pool.rows[FREE] += 1


@part
def compare(pool, node, slot, key):
    """-1, 0 or 1 as the slot's key is less than, equal to or greater than ``key``, (columns,) int64."""
    for column in range(len(key)):
        here = pool.keys[node, slot, column]
        if here < key[column]:
            return -1
        if here > key[column]:
            return 1
    return 0


@part
def slots_below(pool, node, key, inclusive):
    """How many slots have a key less than ``key``, or equal to it where ``inclusive`` is 1 rather than 0."""
    low = 0
    high = pool.lengths[node]
    while low < high:
        # Slots before ``low`` are below, those from ``high`` on are not.
        middle = (low + high) >> 1
        if compare(pool, node, middle, key) < inclusive:
            low = middle + 1
        else:
            high = middle
    return low


@part
def fold(pool, node, start, stop, combine, identity):
    """The values of slots ``[start, stop)`` combined from left to right."""
    if start >= stop:
        return identity
    result = pool.values[node, start]
    for slot in range(start + 1, stop):
        result = combine(result, pool.values[node, slot])
    return result


@part
def copy_slots(pool, source, start, stop, target, at):
    """Copy slots ``[start, stop)`` of ``source`` to ``target`` from slot ``at`` on; lengths stay.

    The nodes may be one and the same, and the ranges overlap.
    """
    columns = pool.keys.shape[2]
    inner = pool.children.shape[1] != 0
    backwards = at > start
    for step in range(stop - start):
        offset = stop - start - 1 - step if backwards else step
        for column in range(columns):
            pool.keys[target, at + offset, column] = pool.keys[source, start + offset, column]
        pool.values[target, at + offset] = pool.values[source, start + offset]
        if inner:
            pool.children[target, at + offset] = pool.children[source, start + offset]


@part
def put_slot(pool, node, slot, key, value, child):
    """Make room at ``slot`` and write there; the node is not full.  ``child`` is ignored in leaves."""
    copy_slots(pool, node, slot, pool.lengths[node], node, slot + 1)
    for column in range(len(key)):
        pool.keys[node, slot, column] = key[column]
    pool.values[node, slot] = value
    if pool.children.shape[1] != 0:
        pool.children[node, slot] = child
    pool.lengths[node] += 1


@part
def drop_slot(pool, node, slot):
    """Take a slot away; those behind it move up."""
    copy_slots(pool, node, slot + 1, pool.lengths[node], node, slot)
    pool.lengths[node] -= 1


@part
def split_node(pool, node):
    """Move the upper half of a node's slots to a new node; returns that."""
    right = take_node(pool)
    length = pool.lengths[node]
    copy_slots(pool, node, length >> 1, length, right, 0)
    pool.lengths[right] = length - (length >> 1)
    pool.lengths[node] = length >> 1
    return right


@part
def pour_left(pool, left, right, slots):
    """Move the first ``slots`` slots of ``right`` to the end of ``left``."""
    copy_slots(pool, right, 0, slots, left, pool.lengths[left])
    copy_slots(pool, right, slots, pool.lengths[right], right, 0)
    pool.lengths[left] += slots
    pool.lengths[right] -= slots


@part
def pour_right(pool, left, right, slots):
    """Move the last ``slots`` slots of ``left`` to the front of ``right``."""
    copy_slots(pool, right, 0, pool.lengths[right], right, slots)
    copy_slots(pool, left, pool.lengths[left] - slots, pool.lengths[left], right, 0)
    pool.lengths[left] -= slots
    pool.lengths[right] += slots
