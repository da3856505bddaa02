"""Bit-packed interval records: the layout of a run, and the kernels that write and read its fields.

A *record* is (prefix columns; closed interval [lo, hi]; context columns), all
``int64``.  A *run* is an immutable set of records, kept as three arrays of bit
rows, one after another in a pool of 64-bit words:

- records, sorted by (prefix, lo, hi, context): lo and hi, then the context columns;
- groups, one row for each distinct prefix, in order: the prefix columns, then
  the number of the group's first record;
- maxima, the scan of :mod:`indices.max_scan`: the greatest hi of every 16
  records, of every 16 of those, and so on.

Its dead records are marked apart (:mod:`indices.record_marks`).

Each field of a row takes as many bits as its offsets from the run's least value
need; rows follow each other without padding, so a field may lie across two words.

Invariants

1. Of two rows as binary numbers, the less is the one that comes first: a row's
   first field has its highest bits, and a field's code grows with its value.
2. ``lo = KEY_MIN`` means minus infinity, ``hi = KEY_MAX`` plus infinity.  A
   bounded record keeps lo as an offset (the *anchor*) and hi as its *length*
   hi - lo; the length's code of all ones means plus infinity, if the run has such records.
3. A record that starts at minus infinity keeps hi as its anchor, and length 0.
   The *bound bit* above the anchor tells: 0 here, 1 else; it is there if the run has such records.
   [-inf, +inf] has an anchor of all ones and the infinite length.
4. Each of the three arrays starts at a word's first bit.  A pool has one word more than its runs, since
   reading or writing a field touches the word behind it as well, without effect.

Cost: O(1) to read a field.  Memory in bits per record: 1 + bits(range of ends) +
bits(longest finite interval) + bits(range of each context column), and
bits(range of ends) / 15 for the maxima; per group bits(range of each prefix
column) + bits(records).  With 17-bit keys and one context column these are 53
bits a record, 6.6 bytes.  With c context columns of full 64-bit range and intervals
from one end of that range to the other it is 16.7 + 8 c bytes, 24.7 for c = 1;
with intervals between neighbours among n such keys it is log2(n) bits less.

A run's row in the *table* (int64, see the column numbers below) says where its arrays are and how its
fields are laid out: the kernels need no more than pool and table, for any number of columns and runs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.array_views import view_of
from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN

WORD_BITS = 64
_ALL_ONES = np.uint64(2**64 - 1)

# -- the columns of a run's row in the table ----------------------------------

RECORDS = 0  # number of records
GROUPS = 1  # number of distinct prefixes
RECORDS_AT = 2  # where the records start: a bit's number in the pool; so for the next two
GROUPS_AT = 3
MAXIMA_AT = 4
RECORD_BITS = 5
GROUP_BITS = 6
BOUND_BITS = 7  # 1 if some record starts at minus infinity, else 0
ANCHOR_BASE = 8
ANCHOR_BITS = 9
LENGTH_BITS = 10
LENGTH_SHIFT = 11  # the bits below the length; the anchor and then the bound bit follow above it
INFINITE = 12  # 1 if some record ends at plus infinity, else 0
END_BASE = 13  # what the maxima are offsets from: one less than the least of them, for nodes that have none
END_BITS = 14
START_BITS = 15  # of a group's first record's number
WORDS = 16  # of the whole run, in the pool
CONTEXT_TOP = 17  # the bits up to the first context column's highest; the others follow below it
SERIAL = 18  # number of the run among all that its index ever had
DEAD = 19  # how many records are dead
DEAD_AT = 20  # where their bit map starts: a bit's number in the marks; -1: none is dead
FIELDS = 21  # from here on: base and bits of each prefix column, then of each context column

words_at = view_of(np.uint64)
"""The words of a run, for kernels: how many, and one more, from an address on."""

# -- bits ---------------------------------------------------------------------


@part
def read_bits(pool, at, bits):
    """The ``bits`` (0 to 64) from bit number ``at`` on, as uint64.

    pool: uint64; there is a word behind the one of the last bit.
    """
    if bits == 0:
        return np.uint64(0)
    word = at >> 6
    shift = at & 63
    # Both words always: whether a field lies across two is no pattern that a processor could foresee.
    value = pool[word] >> np.uint64(shift)
    value |= (pool[word + 1] << np.uint64(1)) << np.uint64(63 - shift)
    return value & (_ALL_ONES >> np.uint64(64 - bits))


@part
def write_bits(pool, at, bits, value):
    """Put ``value`` (uint64, below ``2**bits``) there; the bits have to be 0 before.  pool: as above."""
    if bits == 0:
        return
    word = at >> 6
    shift = at & 63
    pool[word] |= value << np.uint64(shift)
    pool[word + 1] |= (value >> np.uint64(1)) >> np.uint64(63 - shift)


@part
def replace_bits(pool, at, bits, value):
    """Put ``value`` (uint64, below ``2**bits``) there, whatever the bits are.  pool: as above."""
    if bits == 0:
        return
    word = at >> 6
    shift = at & 63
    mask = _ALL_ONES >> np.uint64(64 - bits)
    pool[word] &= ~(mask << np.uint64(shift))
    pool[word + 1] &= ~((mask >> np.uint64(1)) >> np.uint64(63 - shift))
    write_bits(pool, at, bits, value)


@part
def signed(code):
    """The int64 of the same bits as a uint64."""
    return np.uint64(code).view(np.int64)


@part
def unsigned(value):
    """The uint64 of the same bits as an int64."""
    return np.int64(value).view(np.uint64)


# -- reading a run ------------------------------------------------------------


@part
def read_low(pool, table, run, record):
    """A record's lo; KEY_MIN for minus infinity."""
    at = table[run, RECORDS_AT] + record * table[run, RECORD_BITS] + table[run, LENGTH_SHIFT]
    at += table[run, LENGTH_BITS]
    bits = table[run, ANCHOR_BITS]
    if table[run, BOUND_BITS] == 1 and read_bits(pool, at + bits, 1) == np.uint64(0):
        return np.int64(KEY_MIN)
    return signed(read_bits(pool, at, bits) + unsigned(table[run, ANCHOR_BASE]))


@part
def read_high(pool, table, run, record):
    """A record's hi; KEY_MAX for plus infinity."""
    at = table[run, RECORDS_AT] + record * table[run, RECORD_BITS] + table[run, LENGTH_SHIFT]
    base = unsigned(table[run, ANCHOR_BASE])
    return add_length(pool, at, table[run, LENGTH_BITS], table[run, INFINITE], table[run, ANCHOR_BITS], base)


@part
def add_length(pool, at, length_bits, infinite, anchor_bits, base):
    """The hi of the record whose length starts at bit ``at``.  base: uint64."""
    length = read_bits(pool, at, length_bits)
    if infinite == 1 and length == _ALL_ONES >> np.uint64(64 - length_bits):
        return np.int64(KEY_MAX)
    return signed(read_bits(pool, at + length_bits, anchor_bits) + base + length)


@kernel
def read_start(pool, table, run, group):
    """The number of the group's first record; behind the last group, the number of records."""
    if group == table[run, GROUPS]:
        return table[run, RECORDS]
    at = table[run, GROUPS_AT] + group * table[run, GROUP_BITS]
    return signed(read_bits(pool, at, table[run, START_BITS]))


@part
def read_column(pool, at, base, bits):
    """A prefix or context column's value."""
    return signed(read_bits(pool, at, bits) + unsigned(base))


@kernel
def unpack_run(pool, table, run, prefix_width, context_width, rows, first_row):
    """Write the run's records, in order, into ``rows`` from column ``first_row`` on.

    ``rows``: int64 (prefix_width + 2 + context_width, at least first_row + records): prefix, lo, hi, context.
    """
    group = -1
    group_stop = 0
    for record in range(table[run, RECORDS]):
        row = first_row + record
        if record == group_stop:
            group += 1
            group_stop = read_start(pool, table, run, group + 1)
            at = table[run, GROUPS_AT] + (group + 1) * table[run, GROUP_BITS]
            for column in range(prefix_width):
                bits = table[run, FIELDS + 2 * column + 1]
                at -= bits
                rows[column, row] = read_column(pool, at, table[run, FIELDS + 2 * column], bits)
        else:
            for column in range(prefix_width):
                rows[column, row] = rows[column, row - 1]
        rows[prefix_width, row] = read_low(pool, table, run, record)
        rows[prefix_width + 1, row] = read_high(pool, table, run, record)
        unpack_context(pool, table, run, record, prefix_width, context_width, rows, prefix_width + 2, row)


@part
def unpack_context(pool, table, run, record, prefix_width, context_width, rows, first_column, row):
    """Write a record's context into column ``row`` of ``rows``, int64, from ``first_column`` on."""
    at = table[run, RECORDS_AT] + record * table[run, RECORD_BITS] + table[run, CONTEXT_TOP]
    for column in range(context_width):
        field = FIELDS + 2 * (prefix_width + column)
        bits = table[run, field + 1]
        at -= bits
        rows[first_column + column, row] = read_column(pool, at, table[run, field], bits)


@part
def unpack_record(pool, table, run, record, group, prefix_width, context_width, rows, row):
    """Write a record of a group into column ``row`` of ``rows``, int64: prefix, lo, hi, context."""
    at = table[run, GROUPS_AT] + (group + 1) * table[run, GROUP_BITS]
    for column in range(prefix_width):
        bits = table[run, FIELDS + 2 * column + 1]
        at -= bits
        rows[column, row] = read_column(pool, at, table[run, FIELDS + 2 * column], bits)
    rows[prefix_width, row] = read_low(pool, table, run, record)
    rows[prefix_width + 1, row] = read_high(pool, table, run, record)
    unpack_context(pool, table, run, record, prefix_width, context_width, rows, prefix_width + 2, row)


# -- writing rows -------------------------------------------------------------


@kernel
def measure_ends(lo, hi):
    """What the layout of the ends depends on.  lo, hi: int64 (n,), n > 0.

    Returns (rows with lo > hi, records that start at minus infinity, that end at plus infinity, least and
    greatest anchor, longest finite bounded interval as uint64, least and greatest finite hi).
    """
    reversed_rows = opens = infinites = 0
    least_anchor = least_end = np.int64(KEY_MAX)
    greatest_anchor = greatest_end = np.int64(KEY_MIN)
    longest = np.uint64(0)
    for row in range(len(lo)):
        low = lo[row]
        high = hi[row]
        if low > high:
            reversed_rows += 1
        if high == KEY_MAX:
            infinites += 1
        else:
            least_end = min(least_end, high)
            greatest_end = max(greatest_end, high)
        anchor = low
        if low == KEY_MIN:
            opens += 1
            anchor = high
            if high == KEY_MAX:
                continue
        elif high != KEY_MAX:
            longest = max(longest, unsigned(high) - unsigned(low))
        least_anchor = min(least_anchor, anchor)
        greatest_anchor = max(greatest_anchor, anchor)
    return reversed_rows, opens, infinites, least_anchor, greatest_anchor, longest, least_end, greatest_end


@kernel
def pack_ends(lo, hi, table, run, rows, stride):
    """Write bound bit, anchor and length of each record into ``rows``, uint64, ``stride`` bits a row."""
    shift = table[run, LENGTH_SHIFT]
    length_bits = table[run, LENGTH_BITS]
    anchor_bits = table[run, ANCHOR_BITS]
    base = unsigned(table[run, ANCHOR_BASE])
    bound_bit = table[run, BOUND_BITS]
    for row in range(len(lo)):
        low = lo[row]
        high = hi[row]
        at = row * stride + shift
        length = np.uint64(0)
        if high == KEY_MAX:
            length = _ALL_ONES >> np.uint64(64 - length_bits)
        elif low != KEY_MIN:
            length = unsigned(high) - unsigned(low)
        write_bits(rows, at, length_bits, length)
        at += length_bits
        if low != KEY_MIN:
            write_bits(rows, at, anchor_bits, unsigned(low) - base)
            write_bits(rows, at + anchor_bits, bound_bit, np.uint64(1))
        elif high != KEY_MAX:
            write_bits(rows, at, anchor_bits, unsigned(high) - base)
        elif anchor_bits > 0:
            write_bits(rows, at, anchor_bits, _ALL_ONES >> np.uint64(64 - anchor_bits))


@kernel
def pack_column(column, rows, at, stride, bits, base):
    """Write a column's offsets from ``base`` into ``rows``, uint64: row i's at bit ``at + i * stride``."""
    for row in range(len(column)):
        write_bits(rows, at + row * stride, bits, unsigned(column[row]) - unsigned(base))
