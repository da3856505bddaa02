"""The max-scan of a run of interval records: which of them hold a key.

Records lie sorted by lo.  The maxima of hi over every ``FAN_OUT`` records, over every
``FAN_OUT`` of those blocks, and so on up to a single node, are a static scan
tree beside them.  The records that hold key k are, among those with ``lo <= k`` (a binary search),
the ones with ``hi >= k``: nodes whose maximum is less than k are stepped over.

Invariants

1. Level 1 has ``ceil(records / FAN_OUT)`` nodes, each level above
   ``ceil(nodes below / FAN_OUT)``; the last has one.  Levels follow each other in the run's maxima.
2. Node j of level l holds the greatest hi of the living among the records ``[j * FAN_OUT**l,
   (j + 1) * FAN_OUT**l)``, exactly; KEY_MIN if none lives (:mod:`indices.record_marks`).
3. Blocks run on across groups (prefixes): the first and the last block of a group may hold a
   neighbour's maximum, which costs the look at a block in vain and no match.

Cost of one key, n records in the group, m matches: O(log n) for the binary searches, and O(FAN_OUT) for each
node that is entered.  A node inside the group is entered if it has a match in it, so those are at
most m on each of the log_16(n) levels, and fewer where matches stand together: O(log n + m) when they do,
O(log n + m log(n / m)) at worst.  What was touched is counted, in the unit of one record or one node.

Source: ILFTJ 3.2.  Departure: the tree is static and its fan-out is fixed; new intervals
go to a run of their own (:mod:`indices.sensitivity`).  The paper's O(log n + matches) is meant as above.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from indices.record_packing import (
    ANCHOR_BASE,
    ANCHOR_BITS,
    DEAD,
    DEAD_AT,
    END_BASE,
    END_BITS,
    FIELDS,
    GROUP_BITS,
    GROUPS,
    GROUPS_AT,
    INFINITE,
    LENGTH_BITS,
    LENGTH_SHIFT,
    MAXIMA_AT,
    RECORD_BITS,
    RECORDS,
    RECORDS_AT,
    SERIAL,
    WORDS,
    add_length,
    read_bits,
    read_column,
    read_high,
    read_low,
    read_start,
    replace_bits,
    signed,
    unpack_context,
    unsigned,
    words_at,
    write_bits,
)

_ALL_ONES = np.uint64(2**64 - 1)
_SHIFT = 4
FAN_OUT = 1 << _SHIFT

# -- the rows of what a stab writes, a match per column -------------------------

M_QUERY = 0
M_RUN = 1
M_RECORD = 2
M_LO = 3
M_HI = 4
M_CONTEXT = 5


def nodes_of_scan(n_records: int) -> int:
    """How many nodes the scan over so many records has.

    >>> nodes_of_scan(16), nodes_of_scan(17), nodes_of_scan(0)
    (1, 3, 0)
    """
    total, size = 0, n_records
    while size > 1 or (size == 1 and total == 0):
        size = -(-size // FAN_OUT)
        total += size
    return total


@kernel
def read_maximum(pool, table, run, node):
    """The maximum that is kept in the scan's ``node``, counted through all levels; KEY_MIN if none lives."""
    bits = table[run, END_BITS]
    code = read_bits(pool, table[run, MAXIMA_AT] + node * bits, bits)
    if code == np.uint64(0):
        return np.int64(KEY_MIN)
    if table[run, INFINITE] == 1 and code == _ALL_ONES >> np.uint64(64 - bits):
        return np.int64(KEY_MAX)
    return signed(code + unsigned(table[run, END_BASE]))


@part
def _code_of_maximum(table, run, maximum):
    """What stands in the scan for a maximum; KEY_MIN for none."""
    if maximum == KEY_MAX:
        return _ALL_ONES >> np.uint64(64 - table[run, END_BITS])
    if maximum == KEY_MIN:
        return np.uint64(0)
    return unsigned(maximum) - unsigned(table[run, END_BASE])


@part
def replace_maximum(pool, table, run, node, maximum):
    """Let the scan's ``node`` hold another maximum; KEY_MIN: none of its records lives."""
    bits = table[run, END_BITS]
    code = _code_of_maximum(table, run, maximum)
    replace_bits(pool, table[run, MAXIMA_AT] + node * bits, bits, code)


@part
def is_dead(marks, table, run, record):
    """Whether a record is marked as dead.  marks: uint64, the bit maps of all runs."""
    if table[run, DEAD] == 0:
        return False
    at = table[run, DEAD_AT] + record
    return (marks[at >> 6] >> np.uint64(at & 63)) & np.uint64(1) == np.uint64(1)


@kernel
def write_lowest_maxima(pool, table, run, start, stop):
    """Fill the scan's lowest nodes above the records from ``start`` to ``stop``, of which none is dead.

    ``start``: a node's first.  The scan's bits have to be 0 before, or what they will be.
    """
    bits = table[run, END_BITS]
    at = table[run, MAXIMA_AT]
    length_at = table[run, RECORDS_AT] + table[run, LENGTH_SHIFT]
    record_bits = table[run, RECORD_BITS]
    length_bits = table[run, LENGTH_BITS]
    infinite = table[run, INFINITE]
    anchor_bits = table[run, ANCHOR_BITS]
    anchor_base = unsigned(table[run, ANCHOR_BASE])
    for first in range(start, stop, FAN_OUT):
        maximum = np.int64(KEY_MIN)
        for record in range(first, min(first + FAN_OUT, stop)):
            record_at = length_at + record * record_bits
            hi = add_length(pool, record_at, length_bits, infinite, anchor_bits, anchor_base)
            maximum = max(maximum, hi)
        write_bits(pool, at + (first >> _SHIFT) * bits, bits, _code_of_maximum(table, run, maximum))


@kernel
def write_upper_maxima(pool, table, run):
    """Fill the run's scan above the lowest nodes, which are there; its bits have to be 0 before."""
    bits = table[run, END_BITS]
    at = table[run, MAXIMA_AT]
    below = 0  # the first node of the level below
    size = (table[run, RECORDS] + FAN_OUT - 1) >> _SHIFT
    node = size
    while size > 1:
        first_node = node
        for first in range(0, size, FAN_OUT):
            maximum = np.int64(KEY_MIN)
            for child in range(first, min(first + FAN_OUT, size)):
                maximum = max(maximum, read_maximum(pool, table, run, below + child))
            write_bits(pool, at + node * bits, bits, _code_of_maximum(table, run, maximum))
            node += 1
        below = first_node
        size = node - first_node


@part
def _compare_prefix(pool, table, run, prefix_width, group, queries, query):
    """-1, 0 or 1: how the group's prefix compares with ``queries[:prefix_width, query]``."""
    at = table[run, GROUPS_AT] + (group + 1) * table[run, GROUP_BITS]
    for column in range(prefix_width):
        field = FIELDS + 2 * column
        bits = table[run, field + 1]
        at -= bits
        value = read_column(pool, at, table[run, field], bits)
        if value < queries[column, query]:
            return -1
        if value > queries[column, query]:
            return 1
    return 0


@part
def _find_group(pool, table, run, prefix_width, queries, query):
    """(group of the query's prefix or -1, prefixes compared)."""
    low = 0
    high = table[run, GROUPS]
    touched = 0
    while low < high:
        # Invariant: groups before low have a lesser prefix, those from high on a greater one.
        middle = (low + high) >> 1
        touched += 1
        order = _compare_prefix(pool, table, run, prefix_width, middle, queries, query)
        if order == 0:
            return middle, touched
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return -1, touched


@part
def _stop_of_starts(pool, table, run, low, high, key):
    """(the first record of [low, high) whose lo exceeds the key, records compared)."""
    touched = 0
    while low < high:
        middle = (low + high) >> 1
        touched += 1
        if read_low(pool, table, run, middle) <= key:
            low = middle + 1
        else:
            high = middle
    return low, touched


@part
def _step_over(pool, table, run, record, key):
    """(the first record behind the nodes around ``record`` whose maximum is below the key, nodes read).

    ``record`` itself if already the lowest node's maximum is not.
    """
    node = record >> _SHIFT
    size = table[run, RECORDS]
    level_at = 0
    shift = 0
    touched = 0
    behind = record
    while size > 1 or shift == 0:
        size = (size + FAN_OUT - 1) >> _SHIFT
        shift += _SHIFT
        touched += 1
        if read_maximum(pool, table, run, level_at + node) >= key:
            break
        # Invariant: no record from ``record`` to before ``behind`` reaches the key.
        behind = (node + 1) << shift
        level_at += size
        node >>= _SHIFT
    return behind, touched


@part
def _stab_run(pool, table, run, marks, prefix_width, context_width, queries, query, out, count):
    """Append to ``out`` what one run knows of one query.  Returns (new count, touched)."""
    key = queries[prefix_width, query]
    if table[run, DEAD] == table[run, RECORDS]:
        return count, 1
    group, touched = _find_group(pool, table, run, prefix_width, queries, query)
    if group < 0:
        return count, touched
    record = read_start(pool, table, run, group)
    stop = read_start(pool, table, run, group + 1)
    stop, compared = _stop_of_starts(pool, table, run, record, stop, key)
    touched += compared
    while record < stop:
        # Invariant: matches before ``record`` are in ``out``; here a block, or the group, begins.
        behind, nodes = _step_over(pool, table, run, record, key)
        touched += nodes
        if behind > record:
            record = behind
            continue
        block_stop = min(((record >> _SHIFT) + 1) << _SHIFT, stop)
        touched += block_stop - record
        for match in range(record, block_stop):
            hi = read_high(pool, table, run, match)
            if hi >= key and not is_dead(marks, table, run, match):
                if count < out.shape[1]:
                    out[M_QUERY, count] = query
                    out[M_RUN, count] = table[run, SERIAL]
                    out[M_RECORD, count] = match
                    out[M_LO, count] = read_low(pool, table, run, match)
                    out[M_HI, count] = hi
                    unpack_context(
                        pool, table, run, match, prefix_width, context_width, out, M_CONTEXT, count
                    )
                count += 1
        record = block_stop
    return count, touched


@kernel
def stab_runs(
    addresses, table, marks, prefix_width, context_width, tail, tail_rows, tail_serial, queries, out
):
    """All living records of runs and tail that hold a query's key below a query's prefix.

    addresses: int64, where the words of each run stand; table: int64, a row per run; marks: uint64.
    ``tail``: int64 (prefix_width + 2 + context_width, any), records not packed yet: prefix, lo, hi, context;
    the first ``tail_rows`` count.  ``queries``: int64 (prefix_width + 1, n): prefix and key.  ``out``: int64
    (M_CONTEXT + context_width, capacity), written, a match per column: query number, which ascends, serial
    number of the run (of the tail: ``tail_serial``), number of the record in it, interval, context.  Returns
    (matches, touched); matches beyond the capacity are counted only.
    """
    count = 0
    touched = 0
    for query in range(queries.shape[1]):
        key = queries[prefix_width, query]
        for run in range(table.shape[0]):
            pool = words_at(addresses[run], table[run, WORDS] + 1)
            count, more = _stab_run(
                pool, table, run, marks, prefix_width, context_width, queries, query, out, count
            )
            touched += more
        touched += tail_rows
        for row in range(tail_rows):
            if tail[prefix_width, row] > key or tail[prefix_width + 1, row] < key:
                continue
            column = 0
            while column < prefix_width and tail[column, row] == queries[column, query]:
                column += 1
            if column < prefix_width:
                continue
            if count < out.shape[1]:
                out[M_QUERY, count] = query
                out[M_RUN, count] = tail_serial
                out[M_RECORD, count] = row
                out[M_LO, count] = tail[prefix_width, row]
                out[M_HI, count] = tail[prefix_width + 1, row]
                for context in range(context_width):
                    out[M_CONTEXT + context, count] = tail[prefix_width + 2 + context, row]
            count += 1
    return count, touched
