"""Sorting packed interval records by prefix first: prefix codes, buckets, radix sort.

Prefixes are numbered: their *codes* are dense and in order.  The records, packed
into rows of as few words as they need, are dealt into buckets of consecutive
codes (a counting sort), small enough that a bucket stays in the processor's cache. There it is
sorted by itself: by insertion if it is short, else by a radix sort of 8 bits a pass.  What a row needs of its
code besides the bucket's number, the code's low bits, stands above the record's bits.

Invariants

1. Codes are numbers from 0 on without gaps, and grow with the prefix, compared from its first column on.
2. A row of w words is a binary number, its word 0 the lowest; sorted rows do not decrease within a bucket.

Cost for n records: O(n) per 8 bits of a row; digits in which a bucket's rows all agree are
skipped.  Codes take a look-up in a table of the values where those lie dense, and elsewhere a sort
of the prefixes that differ from the record before.  Beside the columns it takes 8 bytes a record for
the codes, and 16 for each word.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.compiled import kernel, part
from indices.record_packing import WORD_BITS, pack_column, read_bits, signed, unsigned, write_bits

_BUCKET_ROWS = 1 << 12
_INSERTION_ROWS = 48
_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS
_LAST_DIGIT = np.uint64(_DIGITS - 1)


# -- buckets --------------------------------------------------------------------
# ``rows`` and arrays like it are uint64 (n * words + 1,): row i is ``rows[i * words : (i + 1) * words]``.


@kernel(makes_arrays=True)
def _deal(rows, words, codes, code_bits, row_bits, n_buckets, dealt):
    """Copy rows to their buckets in ``dealt``, with their code's low ``code_bits`` from bit ``row_bits`` on.

    Returns where each bucket starts, int64 (n_buckets + 1,).
    """
    starts = np.zeros(n_buckets + 1, np.int64)
    for row in range(len(codes)):
        starts[(codes[row] >> code_bits) + 1] += 1
    for bucket in range(n_buckets):
        starts[bucket + 1] += starts[bucket]
    places = starts.copy()
    mask = (1 << code_bits) - 1
    for row in range(len(codes)):
        code = codes[row]
        bucket = code >> code_bits
        place = places[bucket] * words
        places[bucket] += 1
        dealt[place] = rows[row * words]
        for word in range(1, words):
            dealt[place + word] = rows[row * words + word]
        write_bits(dealt, place * WORD_BITS + row_bits, code_bits, unsigned(code & mask))
    return starts


@part
def _less(rows, row, others, other, words):
    """Whether a row comes before one of ``others``."""
    for word in range(words - 1, 0, -1):
        if rows[row * words + word] != others[other * words + word]:
            return rows[row * words + word] < others[other * words + word]
    return rows[row * words] < others[other * words]


@part
def _copy(rows, row, others, other, words):
    """Let a row be as one of ``others``."""
    for word in range(words):
        rows[row * words + word] = others[other * words + word]


@part
def _sort_by_insertion(rows, spare, words, start, stop):
    """Sort the rows from start to stop; row ``start`` of ``spare`` is written."""
    for row in range(start + 1, stop):
        if not _less(rows, row, rows, row - 1, words):
            continue
        _copy(spare, start, rows, row, words)
        place = row
        while place > start and _less(spare, start, rows, place - 1, words):
            _copy(rows, place, rows, place - 1, words)
            place -= 1
        _copy(rows, place, spare, start, words)


@part
def _count_digits(rows, words, start, stop, counts):
    """Fill ``counts``, int64 (digits, _DIGITS): how often each digit has each value.  Digits above are 0."""
    counts[:] = 0
    for row in range(start, stop):
        for word in range(words):
            rest = rows[row * words + word]
            for digit in range(8 * word, min(8 * word + 8, len(counts))):
                counts[digit, signed(rest & _LAST_DIGIT)] += 1
                rest >>= np.uint64(_DIGIT_BITS)


@part
def _scatter(rows, spare, words, start, stop, digit, places):
    """Copy the rows from start to stop into ``spare``, each to the next place of its digit's value."""
    of_word = digit >> 3
    shift = np.uint64((digit & 7) * _DIGIT_BITS)
    if words == 1:
        for row in range(start, stop):
            word = rows[row]
            value = signed((word >> shift) & _LAST_DIGIT)
            place = places[value]
            places[value] = place + 1
            spare[place] = word
        return
    for row in range(start, stop):
        value = signed((rows[row * words + of_word] >> shift) & _LAST_DIGIT)
        _copy(spare, places[value], rows, row, words)
        places[value] += 1


@part
def _sort_by_digits(rows, spare, words, start, stop, places):
    """Sort the rows from start to stop; those rows of ``spare`` are written.  ``places``: scratch."""
    _count_digits(rows, words, start, stop, places)
    swapped = False
    for digit in range(len(places)):
        shift = np.uint64((digit & 7) * _DIGIT_BITS)
        first = signed((rows[start * words + (digit >> 3)] >> shift) & _LAST_DIGIT)
        if places[digit, first] == stop - start:
            continue
        before = start
        for value in range(_DIGITS):
            count = places[digit, value]
            places[digit, value] = before
            before += count
        if swapped:
            _scatter(spare, rows, words, start, stop, digit, places[digit])
        else:
            _scatter(rows, spare, words, start, stop, digit, places[digit])
        swapped = not swapped
    if swapped:
        for word in range(start * words, stop * words):
            rows[word] = spare[word]


@kernel(makes_arrays=True)
def _sort_buckets(rows, spare, words, starts, used_bits):
    """Sort each bucket of ``rows``; ``spare`` is as long, and is written."""
    places = np.empty(((used_bits + _DIGIT_BITS - 1) // _DIGIT_BITS, _DIGITS), np.int64)
    for bucket in range(len(starts) - 1):
        start = starts[bucket]
        stop = starts[bucket + 1]
        if stop - start <= _INSERTION_ROWS:
            _sort_by_insertion(rows, spare, words, start, stop)
        else:
            _sort_by_digits(rows, spare, words, start, stop, places)


# -- codes ------------------------------------------------------------------------


@kernel(makes_arrays=True)
def _number_dense(codes, column, base, width, n_codes):
    """Replace each code by the rank of the pair (code, value) among those that occur.

    codes: int64 (n,) below ``n_codes``, written.  column: int64 (n,), in ``[base, base + width)``.
    Returns, int64 (pairs,), a row where each occurs.
    """
    rows = np.full(n_codes * width, -1, np.int64)
    for row in range(len(codes)):
        rows[codes[row] * width + (column[row] - base)] = row
    n_pairs = 0
    for pair in range(len(rows)):
        n_pairs += rows[pair] >= 0
    first_rows = np.empty(n_pairs, np.int64)
    rank = 0
    for pair in range(len(rows)):
        if rows[pair] >= 0:
            first_rows[rank] = rows[pair]
            rows[pair] = rank
            rank += 1
    for row in range(len(codes)):
        codes[row] = rows[codes[row] * width + (column[row] - base)]
    return first_rows


def _number_by_sorting(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(each row's code, int64; a row where each code occurs), by sorting rows that differ from the last."""
    n_rows = len(columns[0])
    first = np.zeros(n_rows, bool)
    first[0] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    heads = np.flatnonzero(first)
    columns = [column[heads] for column in columns]
    head_bits = len(heads).bit_length()
    bases = [int(column.min()) for column in columns]
    bits = [(int(column.max()) - base).bit_length() for column, base in zip(columns, bases, strict=True)]
    row_bits = head_bits + sum(bits)
    words = -(-row_bits // WORD_BITS)
    rows = np.zeros(len(heads) * words + 1, np.uint64)
    pack_column(np.arange(len(heads)), rows, 0, WORD_BITS * words, head_bits, 0)
    at = row_bits
    for column, base, column_bits in zip(columns, bases, bits, strict=True):
        at -= column_bits
        pack_column(column, rows, at, WORD_BITS * words, column_bits, base)
    _sort_buckets(rows, np.empty_like(rows), words, np.array([0, len(heads)]), row_bits)
    codes, first_heads = _codes_of_sorted(rows, words, head_bits, row_bits, len(heads))
    return np.repeat(codes, np.diff(heads, append=n_rows)), heads[first_heads]


@kernel(makes_arrays=True)
def _codes_of_sorted(rows, words, head_bits, row_bits, n_rows):
    """(code of each head, int64; a head where each code occurs, int64).

    ``rows``: sorted; a row's low ``head_bits`` (1 to 63) are a head's number, the bits above its prefix.
    """
    codes = np.empty(n_rows, np.int64)
    heads = np.empty(n_rows, np.int64)
    n_codes = 0
    for row in range(n_rows):
        head = signed(read_bits(rows, row * words * WORD_BITS, head_bits))
        new = row == 0
        for word in range(words):
            if not new:
                difference = rows[row * words + word] ^ rows[(row - 1) * words + word]
                new = (difference >> np.uint64(head_bits if word == 0 else 0)) != np.uint64(0)
        if new:
            heads[n_codes] = head
            n_codes += 1
        codes[head] = n_codes - 1
    return codes, heads[:n_codes].copy()


def number_prefixes(prefix: Sequence[np.ndarray], n_rows: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """(each row's code, int64; the distinct prefixes' columns, in order).

    >>> codes, distinct = number_prefixes([np.array([7, 5, 7])], 3)
    >>> codes.tolist(), distinct[0].tolist()
    ([1, 0, 1], [5, 7])
    """
    codes = np.zeros(n_rows, np.int64)
    rows = np.zeros(1, np.int64)
    for number, column in enumerate(prefix):
        base = int(column.min())
        width = int(column.max()) - base + 1
        if width * len(rows) > 2 * n_rows:
            codes, rows = _number_by_sorting([codes, *prefix[number:]])
            break
        rows = _number_dense(codes, column, base, width, len(rows))
    return codes, [column[rows] for column in prefix]


# -- rows -------------------------------------------------------------------------


def code_bits_in_row(n_rows: int, n_codes: int) -> int:
    """How many of its code's low bits a row has to hold, so that buckets are of a good size.

    >>> code_bits_in_row(1 << 20, 1 << 16), code_bits_in_row(100, 100)
    (8, 7)
    """
    buckets_bits = (n_rows // _BUCKET_ROWS).bit_length() - 1
    return max(0, (n_codes - 1).bit_length() - max(0, buckets_bits))


def sort_rows(
    rows: np.ndarray, words: int, row_bits: int, codes: np.ndarray, n_codes: int, code_bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sort packed records by (code, row); ``rows`` is spent.

    ``rows``: uint64 (n * words + 1,); of each row ``row_bits`` are used, and ``code_bits`` more fit;
    ``codes``: int64 (n,), below ``n_codes``.  Returns (sorted rows; where each bucket
    starts, int64).  A row's code is its bucket's number times ``2**code_bits`` plus the number in the bits
    from ``row_bits`` on.

    >>> rows, starts = sort_rows(np.array([3, 1, 2, 0], np.uint64), 1, 2, np.zeros(3, np.int64), 1, 0)
    >>> rows[:3].tolist(), starts.tolist()
    ([1, 2, 3], [0, 3])
    """
    dealt = np.empty_like(rows)
    n_buckets = ((n_codes - 1) >> code_bits) + 1
    starts = _deal(rows, words, codes, code_bits, row_bits, n_buckets, dealt)
    _sort_buckets(dealt, rows, words, starts, row_bits + code_bits)
    return dealt, starts
