"""Signed rows added up: the distinct rows, sorted, whose weights don't cancel.

    net(rows) = {row: sum of its weights}, less those of weight 0

What every stage of maintenance does with the rows that the one before hands on.

Invariants

1. The result's rows increase strictly, lexicographically; no weight is 0.
2. The result's arrays are new.

Cost: O(n) where rows come in order; one row, all that many a commit has, takes no kernel call.  Else of
fewer than ``PACKED_ROWS`` rows O(n log n) comparisons of rows; of up to ``MANY_ROWS`` that fit a word with
their number one sort of words, which is many times as quick; beyond, the sort of :mod:`lftj.storage.sorting`.
What is sorted already is merged.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from lftj.storage.sorting import sort_distinct_weighted, sorted_order

Columns = Sequence[np.ndarray] | np.ndarray
"""int64 columns of one length: an array each, or the rows of an array (columns, rows)."""

FEW_ROWS = 1 << 10
"""Up to this many rows comparing them is as quick as packing them column by column."""

PACKED_ROWS = 64
MANY_ROWS = 1 << 17
"""From so many rows on packing them, each with its number, pays; and up to so many."""

_IN_ORDER, _TOO_WIDE = 0, -1


def net_rows(columns: Columns, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The net rows as one array (columns, rows), and their weights.

    The caller sees to it that sums of weights fit 64 bits.  Without columns there is one row at most, the
    empty one.

    >>> rows, weights = net_rows([np.array([7, 5, 7]), np.array([1, 1, 1])], np.array([1, 4, -1]))
    >>> rows.tolist(), weights.tolist()
    ([[5], [1]], [4])
    """
    if len(weights) == 1 and weights[0]:
        return np.array(columns, np.int64).reshape(-1, 1), np.array(weights, np.int64)
    few = len(weights) <= FEW_ROWS or not len(columns)
    if few or len(weights) <= MANY_ROWS:
        table, weights = table_of(columns, len(weights)), np.array(weights, np.int64)
        if len(columns) and len(weights) >= PACKED_ROWS:
            words = np.empty(len(weights), np.int64)
            number_bits = _packed(table, words)
            if number_bits > 0:
                words.sort()
                return _net_of_words(table, weights, words, number_bits)
            few = few or number_bits == _IN_ORDER
        if few:
            return _net(table, weights)
    sorted_columns, sums = sort_distinct_weighted(list(columns), weights)
    present = sums != 0
    if present.all():
        return np.array(sorted_columns), sums
    return np.array([column[present] for column in sorted_columns]), sums[present]


def gathered(parts: Sequence[tuple[Columns, np.ndarray]]) -> tuple[Columns, np.ndarray]:
    """Signed rows of several parts, of which there is at least one, one behind the other.

    >>> columns, signs = gathered([([np.array([7])], np.array([1])), ([np.array([5])], np.array([-1]))])
    >>> columns[0].tolist(), signs.tolist()
    ([7, 5], [1, -1])
    """
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(pieces) for pieces in zip(*(columns for columns, _ in parts), strict=True)]
    return columns, np.concatenate([signs for _, signs in parts])


def difference(
    new: Columns, new_weights: np.ndarray, old: Columns, old_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The net rows of ``new`` less ``old``, both sorted and distinct, and their weights: O(n), by one merge.

    >>> rows, weights = difference([np.array([1, 2])], np.array([1, 1]), [np.array([2, 5])], np.array([1, 1]))
    >>> rows.tolist(), weights.tolist()
    ([[1, 5]], [1, -1])
    """
    new_table, old_table = table_of(new, len(new_weights)), table_of(old, len(old_weights))
    n_rows = _difference(new_table, new_weights, old_table, old_weights, new_table[:, :0], new_weights[:0])
    rows, weights = np.empty((len(new_table), n_rows), np.int64), np.empty(n_rows, np.int64)
    _difference(new_table, new_weights, old_table, old_weights, rows, weights)
    return rows, weights


def table_of(columns: Columns, n_rows: int) -> np.ndarray:
    """Columns as one array (columns, rows); itself if it is one.  None of them may be read-only then."""
    if isinstance(columns, np.ndarray):
        return np.ascontiguousarray(columns)
    return np.array(columns, np.int64) if len(columns) else np.empty((0, n_rows), np.int64)


def row_order(columns: Columns) -> np.ndarray:
    """The rows' numbers in lexicographic order of the rows, equal ones as they come.

    >>> row_order([np.array([2, 1, 2]), np.array([5, 9, 4])]).tolist()
    [1, 2, 0]
    """
    n_rows = len(columns[0])
    if n_rows <= FEW_ROWS:
        return _order(table_of(columns, n_rows))
    return sorted_order(list(columns))


@part
def _less(table, left, right):
    """Whether row ``left`` comes before row ``right``."""
    for column in range(table.shape[0]):
        if table[column, left] != table[column, right]:
            return table[column, left] < table[column, right]
    return False


@kernel(makes_arrays=True)
def _order(table):
    """The numbers of the rows in the order of the rows: merging ordered stretches of 1, 2, 4, ... rows."""
    n = table.shape[1]
    order, spare = np.arange(n), np.empty(n, np.int64)
    row = 1
    while row < n and not _less(table, row, row - 1):
        row += 1
    length = 1 if row < n else n
    while length < n:
        for start in range(0, n, 2 * length):
            middle, end = min(start + length, n), min(start + 2 * length, n)
            left, right = start, middle
            for place in range(start, end):
                if right == end or (left < middle and not _less(table, order[right], order[left])):
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        order, spare = spare, order
        length *= 2
    return order


@part
def _bits(number):
    """How many bits a number >= 0 takes."""
    bits = np.int64(0)
    while number > 0:
        number >>= 1
        bits += 1
    return bits


@kernel
def _packed(table, words):
    """Write each row and its number as one word, in the order of the rows; how many bits the number takes.

    table: int64 (columns, n), n > 1; words: int64 (n,), written.  _IN_ORDER, and nothing is written, where
    rows do not descend; _TOO_WIDE where they take more than 63 bits.
    """
    columns, n = table.shape
    row = 1
    while row < n and not _less(table, row, row - 1):
        row += 1
    if row == n:
        return _IN_ORDER
    number_bits = _bits(n - 1)
    used = number_bits
    for column in range(columns):
        low, high = table[column, 0], table[column, 0]
        for row in range(n):
            low, high = min(low, table[column, row]), max(high, table[column, row])
        if low < 0 and high > KEY_MAX + low:
            return _TOO_WIDE
        bits = _bits(high - low)
        used += bits
        if used > 63:
            return _TOO_WIDE
        if column == 0:
            for row in range(n):
                words[row] = table[column, row] - low
        else:
            for row in range(n):
                words[row] = words[row] << bits | table[column, row] - low
    for row in range(n):
        words[row] = words[row] << number_bits | row
    return number_bits


@part(makes_arrays=True)
def rows_by_number(table, numbers):
    """Some rows of a table, int64 (columns, len(numbers)); table: int64 (columns, n), numbers: int64."""
    columns = table.shape[0]
    rows = np.empty((columns, len(numbers)), np.int64)
    for column in range(columns):
        for place in range(len(numbers)):
            rows[column, place] = table[column, numbers[place]]
    return rows


@part(makes_arrays=True)
def first_rows(table, n):
    """The first ``n`` rows of a table, int64 (columns, rows), copied; a slice takes longer to compile."""
    rows = np.empty((table.shape[0], n), np.int64)
    for column in range(table.shape[0]):
        for row in range(n):
            rows[column, row] = table[column, row]
    return rows


@kernel(makes_arrays=True)
def _net_of_words(table, weights, words, number_bits):
    """:func:`_net` of rows that stand in order as :func:`_packed` words; words: written."""
    n = table.shape[1]
    mask = (np.int64(1) << number_bits) - 1
    sums = np.empty(n, np.int64)
    kept = 0
    row = 0
    while row < n:
        first, word, total = words[row] & mask, words[row] >> number_bits, np.int64(0)
        while row < n and words[row] >> number_bits == word:
            total += weights[words[row] & mask]
            row += 1
        if total != 0:
            words[kept], sums[kept] = first, total
            kept += 1
    return rows_by_number(table, words[:kept]), sums[:kept].copy()


@kernel(makes_arrays=True)
def _net(table, weights):
    """See :func:`net_rows`; table: int64 (columns, n), weights: int64 (n,)."""
    n = table.shape[1]
    order = _order(table)
    sums = np.empty(n, np.int64)
    kept = 0  # order[0 .. kept) are the net rows so far, sums[0 .. kept) their weights
    row = 0
    while row < n:
        first, total = order[row], np.int64(0)
        while row < n and not _less(table, first, order[row]):
            total += weights[order[row]]
            row += 1
        if total != 0:
            order[kept], sums[kept] = first, total
            kept += 1
    return rows_by_number(table, order[:kept]), sums[:kept].copy()


@kernel
def _difference(new, new_weights, old, old_weights, rows, weights):
    """Write what :func:`difference` gives, as far as there is room; returns how many rows that are.

    new, old, rows: int64 (columns, n) each; new_weights, old_weights, weights: int64 (n,) each.
    """
    columns, room = rows.shape
    i, j, n = np.int64(0), np.int64(0), np.int64(0)
    while i < new.shape[1] or j < old.shape[1]:
        order = np.int64(0)
        if j == old.shape[1]:
            order = np.int64(-1)
        elif i == new.shape[1]:
            order = np.int64(1)
        else:
            for column in range(columns):
                if new[column, i] != old[column, j]:
                    order = np.int64(-1) if new[column, i] < old[column, j] else np.int64(1)
                    break
        weight = np.int64(0)
        if order <= 0:
            weight += new_weights[i]
        if order >= 0:
            weight -= old_weights[j]
        if weight != 0:
            if n < room:
                for column in range(columns):
                    rows[column, n] = new[column, i] if order <= 0 else old[column, j]
                weights[n] = weight
            n += 1
        i += order <= 0
        j += order >= 0
    return n
