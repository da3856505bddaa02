"""Runs of interval records: building one, and checking it.

:mod:`indices.record_packing` says what a run is.  A :class:`RunImage` is a run
that is measured, sorted and free of duplicates, but not yet written: its size is known.

Invariants (:func:`check_run` asserts them)

1. Groups have strictly increasing prefixes; each has at least one record.
2. Within a group, records are strictly increasing by (lo, hi, context): there are no duplicates.
3. The scan holds the exact maxima, of the records that are not dead.

Cost: that of the sort, and a few passes over the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.errors import KeyOrderError
from indices.keys import KEY_MIN
from indices.max_scan import (
    FAN_OUT,
    nodes_of_scan,
    read_maximum,
    write_lowest_maxima,
    write_upper_maxima,
)
from indices.record_packing import (
    ANCHOR_BASE,
    ANCHOR_BITS,
    BOUND_BITS,
    CONTEXT_TOP,
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
    START_BITS,
    WORD_BITS,
    WORDS,
    measure_ends,
    pack_column,
    pack_ends,
    read_bits,
    read_start,
    signed,
    unpack_run,
    write_bits,
)
from indices.record_sort import code_bits_in_row, number_prefixes, sort_rows

_ALL_ONES = np.uint64(2**64 - 1)


def table_width(prefix_width: int, context_width: int) -> int:
    """How many columns a table of runs has."""
    return FIELDS + 2 * (prefix_width + context_width)


def plain_column(column: np.ndarray) -> np.ndarray:
    """The column as kernels take it: int64, contiguous, writable; a copy only where it has to be."""
    plain = np.ascontiguousarray(column, dtype=np.int64)
    return plain if plain.flags.writeable else plain.copy()


def words_of_run(row: np.ndarray, n_records: int) -> int:
    """How many words of a pool a run takes that is laid out as ``row`` says, with so many records."""
    bits = (
        n_records * int(row[RECORD_BITS]),
        int(row[GROUPS]) * int(row[GROUP_BITS]),
        nodes_of_scan(n_records) * int(row[END_BITS]),
    )
    return sum(-(-part // WORD_BITS) for part in bits)


class Measured(NamedTuple):
    """What the layout of a run depends on, of one record or more."""

    n_records: int
    n_groups: int
    ends: tuple[int, ...]
    """What :func:`indices.record_packing.measure_ends` gives."""
    prefix_ranges: tuple[tuple[int, int], ...]
    """Least and greatest value of each prefix column."""
    context_ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        groups: Sequence[np.ndarray],
        n_groups: int,
        lo: np.ndarray,
        hi: np.ndarray,
        context: Sequence[np.ndarray],
    ) -> Measured:
        """``groups``: the distinct prefixes' columns."""
        ends = tuple(int(end) for end in measure_ends(lo, hi))
        return cls(len(lo), n_groups, ends, _ranges(groups), _ranges(context))

    def joined(self, other: Measured) -> Measured:
        """Of the records of both, of which no group is the same.

        >>> one, two = (Measured.of([], 0, np.array([k]), np.array([9]), [np.array([k])]) for k in (4, 7))
        >>> one.joined(two) == Measured.of([], 0, np.array([4, 7]), np.array([9, 9]), [np.array([4, 7])])
        True
        """
        pairs = list(zip(self.ends, other.ends, strict=True))
        least, greatest, longest, least_end, greatest_end = pairs[3:]
        ends = (
            *(sum(pair) for pair in pairs[:3]),
            *(min(least), max(greatest), max(longest), min(least_end), max(greatest_end)),
        )
        ranges = [
            tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(mine, others, strict=True))
            for mine, others in (
                (self.prefix_ranges, other.prefix_ranges),
                (self.context_ranges, other.context_ranges),
            )
        ]
        return Measured(
            self.n_records + other.n_records, self.n_groups + other.n_groups, ends, ranges[0], ranges[1]
        )


def _ranges(columns: Sequence[np.ndarray]) -> tuple[tuple[int, int], ...]:
    return tuple((int(column.min()), int(column.max())) for column in columns)


def lay_out(measured: Measured, by_context: bool = False) -> np.ndarray:
    """A table row, int64, with everything but places and words: how such records are packed.

    ``by_context``: the context stands above the ends.  Raises :class:`KeyOrderError` for an interval with
    lo > hi.
    """
    prefix_width = len(measured.prefix_ranges)
    reversed_rows, opens, infinites = measured.ends[:3]
    least_anchor, greatest_anchor, longest, least_end, greatest_end = measured.ends[3:]
    if reversed_rows:
        raise KeyOrderError(f"{reversed_rows} intervals end before they start")
    row = np.zeros(table_width(prefix_width, len(measured.context_ranges)), np.int64)
    infinite = int(infinites > 0)
    row[RECORDS], row[GROUPS], row[DEAD_AT] = measured.n_records, measured.n_groups, -1
    row[BOUND_BITS], row[INFINITE] = opens > 0, infinite
    if least_anchor <= greatest_anchor:
        row[ANCHOR_BASE], row[ANCHOR_BITS] = least_anchor, (greatest_anchor - least_anchor).bit_length()
    row[LENGTH_BITS] = (longest + infinite).bit_length()
    if least_end <= greatest_end:
        row[END_BASE] = max(least_end - 1, KEY_MIN)
        row[END_BITS] = (greatest_end - int(row[END_BASE]) + infinite).bit_length()
    else:
        row[END_BITS] = 1
    for number, (least, greatest) in enumerate((*measured.prefix_ranges, *measured.context_ranges)):
        field = FIELDS + 2 * number
        row[field], row[field + 1] = least, (greatest - least).bit_length()
    bits = row[FIELDS + 1 :: 2]
    row[START_BITS] = (measured.n_records - 1).bit_length()
    row[GROUP_BITS] = row[START_BITS] + bits[:prefix_width].sum()
    context_bits = bits[prefix_width:].sum()
    row[RECORD_BITS] = context_bits + row[LENGTH_BITS] + row[ANCHOR_BITS] + row[BOUND_BITS]
    row[LENGTH_SHIFT] = 0 if by_context else context_bits
    row[CONTEXT_TOP] = row[RECORD_BITS] if by_context else context_bits
    return row


@part
def _differ(rows, words, row):  # type: ignore[no-untyped-def]
    """Whether the row is another than the one before."""
    word = 0
    while word < words and rows[row * words + word] == rows[(row - 1) * words + word]:
        word += 1
    return word < words


@kernel
def _count_distinct(rows, words, starts):  # type: ignore[no-untyped-def]
    """How many rows differ from the one before or begin a bucket."""
    count = 0
    for bucket in range(len(starts) - 1):
        for row in range(starts[bucket], starts[bucket + 1]):
            if row == starts[bucket] or _differ(rows, words, row):
                count += 1
    return count


@kernel
def _store(rows, words, starts, row_bits, code_bits, group_starts, pool):  # type: ignore[no-untyped-def]
    """Write the distinct rows' bits into the pool from its start, and each group's first record's number.

    rows, starts: as :func:`indices.record_sort.sort_rows` gave them.
    """
    record = 0
    last_code = -1
    for bucket in range(len(starts) - 1):
        for row in range(starts[bucket], starts[bucket + 1]):
            if row != starts[bucket] and not _differ(rows, words, row):
                continue
            low_code = signed(read_bits(rows, row * words * WORD_BITS + row_bits, code_bits))
            code = (bucket << code_bits) | low_code
            if code != last_code:
                group_starts[code] = record
                last_code = code
            place = record * row_bits
            for word in range(words):
                bits = min(WORD_BITS, row_bits - word * WORD_BITS)
                if bits > 0:
                    value = rows[row * words + word] & (_ALL_ONES >> np.uint64(WORD_BITS - bits))
                    write_bits(pool, place + word * WORD_BITS, bits, value)
            record += 1


class RecordRun:
    """A run: its table row, without serial number and marks, and its words, uint64, with one more behind."""

    __slots__ = ("row", "words")

    def __init__(self, row: np.ndarray) -> None:
        """A run that is laid out so, with room for RECORDS records; all its bits are 0."""
        n_records = int(row[RECORDS])
        row[WORDS] = words_of_run(row, n_records)
        row[RECORDS_AT] = 0
        row[GROUPS_AT] = -(-n_records * int(row[RECORD_BITS]) // WORD_BITS) * WORD_BITS
        groups_words = -(-int(row[GROUPS]) * int(row[GROUP_BITS]) // WORD_BITS)
        row[MAXIMA_AT] = row[GROUPS_AT] + groups_words * WORD_BITS
        self.row = row
        self.words = np.zeros(int(row[WORDS]) + 1, np.uint64)

    def __len__(self) -> int:
        """How many records it has, dead ones included."""
        return int(self.row[RECORDS])

    @property
    def nbytes(self) -> int:
        return self.words.nbytes

    @property
    def address(self) -> int:
        """Where its words stand."""
        return int(self.words.ctypes.data)

    def write_groups(self, first: int, prefixes: Sequence[np.ndarray], starts: np.ndarray) -> None:
        """Groups from number ``first`` on: their prefixes' columns, their first records."""
        row, stride = self.row, int(self.row[GROUP_BITS])
        start_at = int(row[GROUPS_AT]) + first * stride
        at = start_at + stride
        for number, column in enumerate(prefixes):
            base, bits = row[FIELDS + 2 * number :][:2].tolist()
            at -= bits
            pack_column(column, self.words, at, stride, bits, base)
        pack_column(starts, self.words, start_at, stride, int(row[START_BITS]), 0)

    def write_records(self, first: int, rows: np.ndarray, prefix_width: int) -> None:
        """Records from number ``first`` on, a multiple of 64, and the scan's lowest nodes above them.

        ``rows``: int64 (prefix, lo, hi, context; records).
        """
        row, n_records = self.row, rows.shape[1]
        stride = int(row[RECORD_BITS])
        at = first * stride
        words = self.words[at // WORD_BITS :]
        lo, hi, *context = rows[prefix_width:]
        pack_ends(lo, hi, row[None], 0, words, stride)
        at = int(row[CONTEXT_TOP])
        for number, column in enumerate(context):
            base, bits = row[FIELDS + 2 * (prefix_width + number) :][:2].tolist()
            at -= bits
            pack_column(column, words, at, stride, bits, base)
        write_lowest_maxima(self.words, row[None], 0, first, first + n_records)


@dataclass(frozen=True)
class RunImage:
    """A run before it is written; made by :meth:`of`."""

    row: np.ndarray
    """Its table row, without the places."""

    groups: list[np.ndarray]
    """The distinct prefixes' columns, in order."""

    rows: np.ndarray
    words: int
    starts: np.ndarray
    """What :func:`indices.record_sort.sort_rows` gave."""

    code_bits: int

    @classmethod
    def of(
        cls,
        prefix: Sequence[np.ndarray],
        lo: np.ndarray,
        hi: np.ndarray,
        context: Sequence[np.ndarray],
        by_context: bool = False,
    ) -> RunImage:
        """Measure, sort and reduce to the distinct ones: records given as columns of :func:`plain_column`.

        There is at least one.  ``by_context``: they are sorted by (prefix, context, lo, hi); such a run
        can be unpacked, but not stabbed.  Raises :class:`KeyOrderError` for an interval with lo > hi.
        """
        codes, groups = number_prefixes(prefix, len(lo))
        n_groups = len(groups[0]) if groups else 1
        row = lay_out(Measured.of(groups, n_groups, lo, hi, context), by_context)
        row_bits = int(row[RECORD_BITS])
        code_bits = code_bits_in_row(len(lo), n_groups)
        words = max(1, -(-(row_bits + code_bits) // WORD_BITS))
        rows = np.zeros(len(lo) * words + 1, np.uint64)
        pack_ends(lo, hi, row[None], 0, rows, WORD_BITS * words)
        at = int(row[CONTEXT_TOP])
        for number, column in enumerate(context):
            base, bits = row[FIELDS + 2 * (len(prefix) + number) :][:2].tolist()
            at -= bits
            pack_column(column, rows, at, WORD_BITS * words, bits, base)
        rows, starts = sort_rows(rows, words, row_bits, codes, n_groups, code_bits)
        row[RECORDS] = _count_distinct(rows, words, starts)
        row[WORDS] = words_of_run(row, int(row[RECORDS]))
        return cls(row, groups, rows, words, starts, code_bits)

    def written(self) -> RecordRun:
        """The run itself."""
        run = RecordRun(self.row)
        row = run.row
        group_starts = np.empty(int(row[GROUPS]), np.int64)
        _store(
            self.rows, self.words, self.starts, int(row[RECORD_BITS]), self.code_bits, group_starts, run.words
        )
        run.write_groups(0, self.groups, group_starts)
        write_lowest_maxima(run.words, row[None], 0, 0, len(run))
        write_upper_maxima(run.words, row[None], 0)
        return run


def unpack(runs: Sequence[RecordRun], prefix_width: int, context_width: int) -> np.ndarray:
    """The records of some runs, run after run: int64 (prefix_width + 2 + context_width, records)."""
    rows = np.empty((prefix_width + 2 + context_width, sum(map(len, runs))), np.int64)
    first_row = 0
    for run in runs:
        unpack_run(run.words, run.row[None], 0, prefix_width, context_width, rows, first_row)
        first_row += len(run)
    return rows


def check_run(run: RecordRun, prefix_width: int, context_width: int, lives: np.ndarray | None = None) -> None:
    """Assert the invariants of a run, and that its table row fits it.

    ``lives``: bool (records,), which are not dead; None: all of them.
    """
    row, pool, table = run.row, run.words, run.row[None]
    n_records, n_groups = int(row[RECORDS]), int(row[GROUPS])
    assert n_records >= n_groups >= 1
    assert prefix_width > 0 or n_groups == 1
    rows = unpack([run], prefix_width, context_width)
    lo, hi = rows[prefix_width], rows[prefix_width + 1]
    assert (lo <= hi).all()
    order = np.lexsort(rows[::-1])
    assert np.array_equal(order, np.arange(n_records)), "records are not sorted"
    assert (rows[:, 1:] != rows[:, :-1]).any(axis=0).all(), "a record is there twice"
    starts = [read_start(pool, table, 0, group) for group in range(n_groups + 1)]
    first = np.ones(n_records, bool)
    first[1:] = (rows[:prefix_width, 1:] != rows[:prefix_width, :-1]).any(axis=0)
    assert starts == [*np.flatnonzero(first).tolist(), n_records], "groups are not the distinct prefixes"
    level, node = hi if lives is None else np.where(lives, hi, KEY_MIN), 0
    while len(level) > 1 or node == 0:
        level = np.maximum.reduceat(level, np.arange(0, len(level), FAN_OUT))
        for maximum in level.tolist():
            assert read_maximum(pool, table, 0, node) == maximum, "a maximum is wrong"
            node += 1
    assert node == nodes_of_scan(n_records)
    assert int(row[WORDS]) == words_of_run(row, n_records)
