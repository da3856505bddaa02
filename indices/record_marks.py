"""Marks of dead records: which records of a run count no more, until a merge leaves them out.

A run is immutable but for its marks.  The first record of a run that dies gets the run a bit map, one
bit per record, among the *marks* of all runs; the scan's maxima above a dead record are lowered
(:mod:`indices.max_scan`), so a stab steps over dead records as over those that end before its key.  A record
of the tail dies by an interval that holds no key.

A record is known by the serial number of its run, or of the tail, and its number there.  Each run and each
tail has a serial number of its own, so of a record that was packed or merged meanwhile the mark is lost, and
nothing else is marked.

Invariants

1. ``DEAD`` of a run is the number of its bits that are set; its bit map starts at ``DEAD_AT``, a word's first
   bit, or it has none and DEAD_AT is -1.
2. The scan holds the exact maxima of the living; of a node without any it says KEY_MIN.
3. To mark what is marked changes nothing.

Cost: O(16 log n) per block of 16 records in which some die, less where a maximum stays; a bit per record of a
run that has dead ones.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from indices.max_scan import FAN_OUT, is_dead, read_maximum, replace_maximum
from indices.record_packing import DEAD, DEAD_AT, RECORDS, SERIAL, WORD_BITS, WORDS, read_high, words_at


def words_of_marks(n_records: int) -> int:
    """How many words the bit map of so many records has.

    >>> words_of_marks(64), words_of_marks(65)
    (1, 2)
    """
    return -(-n_records // WORD_BITS)


def living(marks: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Which records of a run live, bool (records,); ``row``: the run's, of the table."""
    n_records, at = int(row[RECORDS]), int(row[DEAD_AT])
    if at < 0:
        return np.ones(n_records, np.bool_)
    first = at // WORD_BITS
    words = marks[first : first + words_of_marks(n_records)]
    return np.unpackbits(words.view(np.uint8), count=n_records, bitorder="little") == 0


def with_bit_maps(table: np.ndarray, marks: np.ndarray, runs: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """A table and marks in which some runs that have no bit map have one, with no bit set."""
    table, n_words = table.copy(), len(marks)
    for run in runs:
        table[run, DEAD_AT] = n_words * WORD_BITS
        n_words += words_of_marks(int(table[run, RECORDS]))
    return table, np.concatenate([marks, np.zeros(n_words - len(marks), np.uint64)])


def only_marks(table: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The marks of the table's runs alone, one bit map after another; their places are set anew."""
    parts, n_words = [], 0
    for row in table:
        if row[DEAD_AT] >= 0:
            first, length = int(row[DEAD_AT]) // WORD_BITS, words_of_marks(int(row[RECORDS]))
            parts.append(marks[first : first + length])
            row[DEAD_AT] = n_words * WORD_BITS
            n_words += length
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


@kernel
def count_records(table, tail, tail_rows, prefix_width):
    """How many records of runs and tail live, and how many of the runs are dead.  Arrays: as below."""
    lives = dead = 0
    for run in range(table.shape[0]):
        lives += table[run, RECORDS] - table[run, DEAD]
        dead += table[run, DEAD]
    for row in range(tail_rows):
        lives += tail[prefix_width, row] <= tail[prefix_width + 1, row]
    return lives, dead


@kernel
def mark_dead(addresses, table, marks, tail, tail_rows, tail_serial, prefix_width, runs, records):
    """Let records be dead: those that are still where ``runs`` and ``records`` say.

    addresses: int64, where the words of each run stand; marks: uint64; table: int64, a row per run; tail:
    int64 (columns, any), of which the first ``tail_rows`` count.  The words and all of these but the
    addresses are written.  runs, records: int64 (n,), read only: the serial number of a run that has a bit
    map, or of the tail, and the record's number in it.
    """
    for number in range(len(runs)):
        serial, record = runs[number], records[number]
        if serial == tail_serial:
            if record < tail_rows:
                tail[prefix_width, record] = KEY_MAX
                tail[prefix_width + 1, record] = KEY_MIN
            continue
        run = 0
        while run < table.shape[0] and table[run, SERIAL] != serial:
            run += 1
        if run == table.shape[0]:
            continue
        if not is_dead(marks, table, run, record):
            at = table[run, DEAD_AT] + record
            marks[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
            table[run, DEAD] += 1
        block = record // FAN_OUT
        last = (
            number + 1 == len(runs) or runs[number + 1] != serial or records[number + 1] // FAN_OUT != block
        )
        if last:  # of those that follow each other in one block
            pool = words_at(addresses[run], table[run, WORDS] + 1)
            _lower_maxima(pool, table, run, marks, block)


@part
def _lower_maxima(pool, table, run, marks, node):
    """Let the maxima above a block of records be those of the living; ``node``: the block's."""
    size = table[run, RECORDS]
    level_at = 0
    below_at = -1
    going = True
    while going:
        first = node * FAN_OUT
        maximum = np.int64(KEY_MIN)
        for child in range(first, min(first + FAN_OUT, size)):
            if below_at >= 0:
                maximum = max(maximum, read_maximum(pool, table, run, below_at + child))
            elif not is_dead(marks, table, run, child):
                maximum = max(maximum, read_high(pool, table, run, child))
        changed = read_maximum(pool, table, run, level_at + node) != maximum
        if changed:
            replace_maximum(pool, table, run, level_at + node, maximum)
        size = (size + FAN_OUT - 1) // FAN_OUT
        below_at = level_at
        level_at += size
        node //= FAN_OUT
        going = changed and size > 1
