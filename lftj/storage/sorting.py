"""Sorted distinct rows of ``int64`` columns.

Columns are packed, side by side, into 64-bit words: each takes as many bits as
its largest value less its smallest one needs.  Rows that fit one word are sorted as
words and unpacked; wider ones are sorted word by word, from the last to the
first, by a stable sort that carries the other word or the rows' numbers along.

Invariants

1. The result's rows increase strictly, lexicographically, first column first.
2. The result's arrays are new: they share no memory with the input.

Cost: O(n) per 8 bits of a row (:mod:`lftj.storage.radix`), and two to four arrays of n
items beside input and result.  Sorted input costs one comparison of neighbours.
Few rows are sorted by numpy alone, without the compiled kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

SMALL_ROWS = 1 << 10
"""Up to this many rows numpy's sort is as good as a compiled one."""

SMALL_WORDS = 1 << 19
"""Up to this many one-word rows numpy's sort takes less than loading the compiled ones, once per process."""

_WORD_BITS = 64
_BLOCK_ROWS = 1 << 15


def sort_distinct(columns: Sequence[np.ndarray], stable_from: int | None = None) -> list[np.ndarray]:
    """The distinct rows of int64 ``columns``, all of one length, in lexicographic order.

    ``stable_from``: rows that agree on the columns before this one are known to stand in the order of
    the columns from it on already, as those of ``[b, a]`` do with 1, when the rows ``[a, b]`` are sorted.

    >>> [column.tolist() for column in sort_distinct([np.array([2, 1, 2]), np.array([5, 9, 5])])]
    [[1, 2], [9, 5]]
    """
    rows = _sorted_rows(columns, None, stable_from)
    return rows.columns if rows.first is None else [column[rows.first] for column in rows.columns]


def sort_rows(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rows of int64 ``columns``, at least one, in lexicographic order; equal ones stay.

    >>> [column.tolist() for column in sort_rows([np.array([2, 1, 2]), np.array([5, 9, 5])])]
    [[1, 2, 2], [9, 5, 5]]
    """
    return _sorted_rows(columns, None, None, repeats=True).columns


def sort_distinct_weighted(
    columns: Sequence[np.ndarray], weights: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The distinct rows of int64 ``columns`` in lexicographic order, with the sum of each one's ``weights``.

    Rows whose weights add up to 0 stay.  The caller sees to it that the sums fit 64 bits.

    >>> columns, weights = sort_distinct_weighted([np.array([7, 5, 7])], np.array([1, 4, -3]))
    >>> columns[0].tolist(), weights.tolist()
    ([5, 7], [4, -2])
    """
    rows = _sorted_rows(columns, np.array(weights, dtype=np.int64), None)
    assert rows.cargo is not None
    if rows.first is None:
        return rows.columns, rows.cargo
    sums = np.add.reduceat(rows.cargo, np.flatnonzero(rows.first))
    return [column[rows.first] for column in rows.columns], sums


def sorted_order(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The rows' numbers in lexicographic order of the rows, equal ones as they come.

    >>> sorted_order([np.array([2, 1, 2]), np.array([5, 9, 4])]).tolist()
    [1, 2, 0]
    """
    if len(columns[0]) <= SMALL_ROWS:
        return np.lexsort(columns[::-1])
    columns = [np.ascontiguousarray(column, dtype=np.int64) for column in columns]
    if _order_found(columns)[0]:
        return np.arange(len(columns[0]))
    return _order_by_words(columns, _layout(columns), len(columns))


def first_of_equal(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Of sorted rows: a mask of those that differ from the row before.

    >>> first_of_equal([np.array([1, 1, 2]), np.array([3, 3, 3])]).tolist()
    [True, False, True]
    """
    first = np.zeros(len(columns[0]), dtype=bool)
    first[:1] = True
    for column in columns:
        mark_changes(first, column)
    return first


def mark_changes(first: np.ndarray, column: np.ndarray) -> None:
    """Set ``first``, a bool per row, also where a column differs from the row before."""
    first[1:] |= column[1:] != column[:-1]


def first_rows_of_equal(columns: Sequence[np.ndarray], n_rows: int) -> np.ndarray:
    """Of ``n_rows`` sorted rows: the numbers of those that differ from the row before, int64.

    Rows without columns are all equal.

    >>> first_rows_of_equal([np.array([1, 1, 2])], 3).tolist(), first_rows_of_equal([], 3).tolist()
    ([0, 2], [0])
    """
    return np.flatnonzero(first_of_equal(columns)) if columns else np.arange(min(n_rows, 1))


@dataclass
class _Rows:
    """Sorted rows with what they carry; ``first`` marks the first of equal ones, None if all are distinct."""

    columns: list[np.ndarray]
    cargo: np.ndarray | None
    first: np.ndarray | None


@dataclass(frozen=True)
class _Field:
    """A column's place in a word: its value less ``base``, in ``bits`` bits from ``shift`` on."""

    base: int
    bits: int
    shift: int


def _sorted_rows(
    columns: Sequence[np.ndarray], cargo: np.ndarray | None, stable_from: int | None, repeats: bool = False
) -> _Rows:
    """``repeats``: equal rows may stay, unmarked."""
    if len(columns[0]) < 2:
        return _Rows([np.array(column, dtype=np.int64) for column in columns], cargo, None)
    columns = [np.ascontiguousarray(column, dtype=np.int64) for column in columns]
    in_order, distinct = _order_found(columns)
    if in_order:
        copies = [column.copy() for column in columns]
        return _Rows(copies, cargo, None if distinct else first_of_equal(columns))
    if len(columns[0]) <= SMALL_ROWS:
        return _gathered(columns, np.lexsort(columns[::-1]), cargo)
    unsorted_columns = len(columns) if stable_from is None else stable_from
    layout = _layout(columns)
    if cargo is None and len(layout) == 1:
        words, _ = _sort(_pack(columns, layout[0]), None, layout[0], unsorted_columns)
        return _Rows(_unpack(words if repeats else _without_repeats(words), layout[0]), None, None)
    if cargo is None and len(layout) == 2:
        return _sorted_pairs(columns, layout, unsorted_columns)
    if len(layout) == 1:
        words, cargo = _sort(_pack(columns, layout[0]), cargo, layout[0], unsorted_columns)
        first = first_of_equal([words])
        return _Rows(_unpack(words, layout[0]), cargo, None if first.all() else first)
    return _gathered(columns, _order_by_words(columns, layout, unsorted_columns), cargo)


def _sorted_pairs(columns: list[np.ndarray], layout: list[list[_Field]], unsorted_columns: int) -> _Rows:
    """Rows of two words: each is carried along while the other is sorted, instead of the rows' numbers."""
    width = len(layout[0])
    high, low = _pack(columns[:width], layout[0]), _pack(columns[width:], layout[1])
    if unsorted_columns > width:
        low, carried = _sort(low, high.view(np.int64), layout[1], unsorted_columns - width)
        assert carried is not None
        high = carried.view(np.uint64)
    high, carried = _sort(high, low.view(np.int64), layout[0], unsorted_columns)
    assert carried is not None
    low = carried.view(np.uint64)
    first = first_of_equal([high, low])
    return _Rows(_unpack(high, layout[0]) + _unpack(low, layout[1]), None, None if first.all() else first)


def _order_found(columns: list[np.ndarray]) -> tuple[bool, bool]:
    """Whether the rows are in order as they are, and then whether they are distinct."""
    distinct = True
    for start in range(0, len(columns[0]) - 1, _BLOCK_ROWS):
        less: np.ndarray | None = None
        equal: np.ndarray | None = None
        for column in columns:
            block = column[start : start + _BLOCK_ROWS + 1]
            before, after = block[:-1], block[1:]
            if less is None or equal is None:
                less, equal = before < after, before == after
            else:
                less |= equal & (before < after)
                equal &= before == after
        assert less is not None
        assert equal is not None
        if not (less | equal).all():
            return False, False
        distinct = distinct and not equal.any()
    return True, distinct


def _layout(columns: list[np.ndarray]) -> list[list[_Field]]:
    """Per word its consecutive columns, as many as fit; the first of them has the word's highest bits."""
    words: list[list[_Field]] = []
    free = 0
    for column in reversed(columns):
        base = int(column.min())
        bits = (int(column.max()) - base).bit_length()
        if bits > free or not words:
            words.insert(0, [])
            free = _WORD_BITS
        words[0].insert(0, _Field(base, bits, _WORD_BITS - free))
        free -= bits
    return words


def _pack(columns: Sequence[np.ndarray], fields: list[_Field]) -> np.ndarray:
    words = np.zeros(len(columns[0]), dtype=np.uint64)
    for block in _blocks(len(words)):
        for column, field in zip(columns, fields, strict=True):
            if field.bits:
                part = column[block].view(np.uint64) - np.uint64(field.base % (1 << _WORD_BITS))
                part <<= np.uint64(field.shift)
                words[block] |= part
    return words


def _unpack(words: np.ndarray, fields: list[_Field]) -> list[np.ndarray]:
    columns = []
    for field in fields:
        column = np.empty(len(words), dtype=np.uint64)
        if field.bits:
            mask, base = np.uint64((1 << field.bits) - 1), np.uint64(field.base % (1 << _WORD_BITS))
            for block in _blocks(len(words)):
                part = words[block] >> np.uint64(field.shift)
                part &= mask
                np.add(part, base, out=column[block])
        else:
            column.view(np.int64)[:] = field.base
        columns.append(column.view(np.int64))
    return columns


def _without_repeats(words: np.ndarray) -> np.ndarray:
    """The distinct ones of sorted words, moved together in place."""
    n_kept = 0
    last: np.uint64 | None = None
    for block in _blocks(len(words)):
        part = words[block]
        first = first_of_equal([part])
        first[0] = last is None or part[0] != last
        last = part[-1]
        kept = part if first.all() else part[first]
        if n_kept != block.start or len(kept) < len(part):
            words[n_kept : n_kept + len(kept)] = kept
        n_kept += len(kept)
    return words[:n_kept]


def _blocks(n_rows: int) -> Iterator[slice]:
    """Slices small enough that what is computed on the way stays in the processor's cache."""
    for start in range(0, n_rows, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, n_rows))


def _sort(
    words: np.ndarray, cargo: np.ndarray | None, fields: list[_Field], unsorted_columns: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Words and cargo in the order of the words; fields from ``unsorted_columns`` on are in order already."""
    if cargo is None and len(words) <= SMALL_WORDS:
        return np.sort(words), None
    from lftj.storage import radix

    low_bit = fields[unsorted_columns - 1].shift if unsorted_columns < len(fields) else 0
    high_bit = fields[0].shift + fields[0].bits
    spare = np.empty_like(words)
    if cargo is None:
        return spare if radix.sort_words(words, spare, low_bit, high_bit) else words, None
    spare_cargo = np.empty_like(cargo)
    if radix.sort_words_carrying(words, spare, cargo, spare_cargo, low_bit, high_bit):
        return spare, spare_cargo
    return words, cargo


def _order_by_words(
    columns: list[np.ndarray], layout: list[list[_Field]], unsorted_columns: int
) -> np.ndarray:
    """The rows' numbers in the order of the rows."""
    order = np.arange(len(columns[0]))
    stop = len(columns)
    for fields in reversed(layout):
        start = stop - len(fields)
        if start < unsorted_columns:
            packed = _pack(columns[start:stop], fields)
            if stop < unsorted_columns:  # a word was sorted already
                packed = packed[order]
            _, carried = _sort(packed, order, fields, unsorted_columns - start)
            assert carried is not None
            order = carried
        stop = start
    return order


def _gathered(columns: list[np.ndarray], order: np.ndarray, cargo: np.ndarray | None) -> _Rows:
    gathered = [column[order] for column in columns]
    first = first_of_equal(gathered)
    return _Rows(gathered, None if cargo is None else cargo[order], None if first.all() else first)
