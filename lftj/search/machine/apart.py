"""The innermost node in one loop, under a prefix where runs have tuples and nothing is recorded.

The keys that runs have stand *apart*: each is looked up in every participant, base and runs.  Between two of
them only the bases count, and there ranges are intersected as those of a plain node are
(:mod:`lftj.search.machine.plain`).  The matches are those that :mod:`lftj.search.machine.node` gives.

Invariant: what is ahead of a cursor, in its base from its position on and in its runs, is beyond every key
that was tried.

Cost of a node: the shortest range and the keys of the runs, of which there are no more, times the logarithm
of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.machine.block import kept_matches
from lftj.search.machine.cursor import holds, seek_runs
from lftj.search.machine.plain import list_common, range_below
from lftj.search.machine.rows import take_matches
from lftj.search.records import CURSOR, RANGE, STATUS_DONE, STATUS_FULL, cursor_at, range_at
from lftj.storage.seek import gallop
from lftj.storage.version_memory import index_at


@part
def goes_apart(node):
    """Whether an open node is listed so: runs have no more tuples in it than its shortest participant."""
    if not node.lists_matches or node.log:
        return False
    shortest, apart = KEY_MAX, np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        length = cursor.end - cursor.position
        if cursor.active:
            for number in range(index_at(cursor.index).runs):
                its = range_at(cursor.ranges + number * RANGE)
                ahead = max(0, its.stop - its.start)
                length += ahead
                apart += ahead
        shortest = min(shortest, length)
    return apart <= shortest


@part
def list_apart(search, node, rows):
    """Write the matches of such a node, from where its participants stand; a STATUS_*."""
    while True:
        some, key = next_apart(node)
        status = list_before(search, node, rows, some, key)
        if status != STATUS_DONE or not some:
            return status
        at = search.rows
        if at == rows.shape[1]:
            return STATUS_FULL
        if all_hold(search, node, key):
            keys = rows[search.scratch]
            keys[at] = key
            take_matches(search, rows, at, kept_matches(search, node, keys, at, np.int64(1)))
        if key == node.high:
            return STATUS_DONE
        pass_key(node, key)


@part
def next_apart(node):
    """Whether a run has a key ahead that may match, and the least."""
    some, least = False, node.high
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if cursor.active:
            held, key = seek_runs(cursor, KEY_MIN)
            if held and key <= least:
                some, least = True, key
    return some, least


@part
def list_before(search, node, rows, some, key):
    """Write what all bases have ahead below ``key``, or, if not ``some``, all that may match; a STATUS_*."""
    leader = np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        start, end = cursor.position, cursor.end
        if some:
            end = gallop(view(cursor.keys, end), start, end, key)
        else:
            start, end = range_below(cursor, node.high)
        cursor.stop = end
        if leader == 0 or end - start < cursor_at(leader).stop - cursor_at(leader).position:
            leader = np.int64(where)
    first = cursor_at(leader)
    if first.position < first.stop:
        node.leader, node.staged, node.others = leader, 0, node.n_participants - 1
        node.keys, node.position, node.stop = first.keys, first.position, first.stop
        status = list_common(search, node, rows)
        first.position = node.position
        if status != STATUS_DONE:
            return status
    for where in range(node.participants, node.negations, CURSOR):
        cursor_at(where).position = cursor_at(where).stop
    return STATUS_DONE


@part
def all_hold(search, node, key):
    """Whether all participants have the key.  Counted are those that do: landing passes others so too."""
    for where in range(node.participants, node.negations, CURSOR):
        search.work += 1
        if not holds(cursor_at(where), key):
            return False
        node.seeks += 1
    return True


@part
def pass_key(node, key):
    """Lead all participants beyond a key that nothing before is ahead of; there are greater ones."""
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        position, end = cursor.position, cursor.end
        if position < end and view(cursor.keys, end)[position] == key:
            cursor.position = position + 1
        if cursor.active:
            seek_runs(cursor, key + 1)
