"""The last depth in one loop, under a prefix where only bases have tuples: all matches are listed.

Where nothing records, any number of participants is intersected (:mod:`lftj.search.machine.block`), and of
the matches those are dropped that conditions and negated atoms refuse.  Where something does, one participant
is listed and two are merged (:mod:`lftj.search.machine.pair`), if nothing drops matches.  The matches are
those that :mod:`lftj.search.machine.node` gives, and records cover at least as much.

Cost of a node: the shortest range, times the logarithm of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.machine.block import count_met, drops_matches, kept_matches, meet
from lftj.search.machine.cursor import child_range
from lftj.search.machine.node import open_negations
from lftj.search.machine.pair import merge_pair
from lftj.search.machine.rows import count_range, take_matches
from lftj.search.records import CURSOR, STATUS_DONE, STATUS_FULL, cursor_at
from lftj.storage.seek import upper_bound


@part(forceinline=True)
def may_be_plain(node):
    """Whether a recording depth's nodes are plain where no participant has tuples of runs."""
    return node.lists_matches != 0 and node.log != 0 and node.n_participants <= 2 and not drops_matches(node)


@part(forceinline=True)
def is_plain(node):
    """Whether the node, all of whose participants are open, is plain."""
    if not may_be_plain(node):
        return False
    active = np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        active += cursor_at(where).active
    return active == 0


@part(forceinline=True)
def open_plain(search, node):
    """Open a plain node that records, without bounds, below others; False, and nothing done, if not."""
    if not may_be_plain(node):
        return False
    for where in range(node.participants, node.negations, CURSOR):
        parent = cursor_at(where).parent
        if parent == 0:
            return False
        above = cursor_at(parent)
        if above.active or above.at < 0:
            return False
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        cursor.position, cursor.end = child_range(cursor)
        cursor.active = 0
        cursor.record_low = KEY_MIN
        cursor.recording = cursor.stream != 0
    open_negations(node)
    node.high = KEY_MAX
    node.logged = 0
    node.turn = 0
    node.opens += node.n_participants
    return True


@part(forceinline=True)
def list_plain(search, node, rows):
    """Write the matches of a plain node, from where its participants stand; a STATUS_*."""
    if not node.log:
        return list_common(search, node, rows)
    if node.n_participants == 2:
        return merge_pair(search, node, rows)
    return list_one(search, node, rows)


@part
def range_below(cursor, high):
    """Half-open range of the keys up to ``high`` that are ahead of a cursor."""
    start, end = cursor.position, cursor.end
    if high != KEY_MAX:
        end = upper_bound(view(cursor.keys, end), start, end, high)
    return start, end


@part
def list_one(search, node, rows):
    """:func:`list_plain` for one participant that records: its keys."""
    cursor = cursor_at(node.participants)
    start, end = range_below(cursor, node.high)
    keys = view(cursor.keys, cursor.end)
    at = search.rows
    count = min(end - start, rows.shape[1] - at)
    out = rows[search.scratch]
    for match in range(count):
        out[at + match] = keys[start + match]
    take_matches(search, rows, at, count)
    stop = start + count
    cursor.position = stop
    cursor.key = keys[stop] if stop < cursor.end else KEY_MAX
    if cursor.recording:
        cursor.record_high = cursor.key
    node.nexts += count
    search.work += count
    return STATUS_DONE if stop == end else STATUS_FULL


@part(forceinline=True)
def may_count_range(search, node):
    """Whether all keys of the node's range are matches, and are only counted."""
    return search.listed < search.depths and node.n_participants == 1 and not drops_matches(node)


@part
def list_common(search, node, rows):
    """:func:`list_plain` where nothing records: the keys that all participants share, less those refused."""
    start, end = node.position, node.stop
    if may_count_range(search, node) and count_range(search, node, start, end):
        return STATUS_DONE
    at = search.rows
    stop = min(end, start + rows.shape[1] - at)
    node.position = stop
    out = rows[search.scratch]
    found, work = meet(node, start, stop, out, at)
    count_met(search, node, stop - start, work)
    take_matches(search, rows, at, kept_matches(search, node, out, at, found))
    return STATUS_DONE if stop == end else STATUS_FULL
