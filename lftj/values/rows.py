"""Rows as values: one code stands for all columns of a row of a *wide* relation.

What rules read of a relation with many columns is coded column by column, when it is asked for first
(:mod:`lftj.storage.wide_columns`).  What identifies a row, whoever reads what, is the code of the row as a
whole: its bytes in a dictionary that the relation has for itself.

    nulls, a bit a column | columns of fixed width | lengths of the others | their bytes

Kernels pack rows out of the memory of a batch, which they find by the Arrow C data interface, and read
columns of integers, moments and decimals off the bytes; other columns become Arrow arrays again.

Invariants

1. Two rows have one code exactly when they are equal column by column, NULL equal to NULL, NaN to NaN, and
   -0.0 to 0.0: all of a column is of one Arrow type, its floats are brought to one form, and its lists are
   packed (:mod:`lftj.values.lists`).
2. The rows that a relation was loaded with, all different, have the codes 0, 1, 2, ... in their order.
   Until somebody asks for the code of a row they *wait* as the Arrow table that they came in.

Cost: O(bytes of the rows) to code them and to give values of theirs back; nothing where rows wait.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view, view32
from lftj.values.byte_words import copy_bytes, view8
from lftj.values.collector import Collector
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import ArrowColumn, chunks_of, joined, taken_as_it_is, without_views
from lftj.values.interner import code_of, has_room
from lftj.values.kinds import kind, plain_array, plain_type, typed_array
from lftj.values.lists import packed, unpacked
from lftj.values.unscaled import SCALES, Numbers, numbers_of_array

PIECE_ROWS = 1 << 16
"""So many rows at most are packed or unpacked at a time."""

FEW_ROWS = 1 << 13
"""Numbers of fewer rows are worked out for these alone, until so many were asked for as there are rows."""

_LENGTH_BYTES = 4
PLAIN, BOOLEAN, FLOAT, LARGE = range(4)
"""Forms of values: as they are; bits; floats, which are brought to one form; texts with wide bounds."""

WIDTH, PLACE, FORM, REFUSES, VALUES, BOUNDS, NULLS, FIRST = range(8)
"""Fields of a column: width, place and form as :class:`_Packing` has them; whether it refuses NULL; addresses
of its values, of the bounds of texts, and of its bits of validity, 0 where there are none; and which of these
bits, and of those of booleans, is the first row's."""

_N_FIELDS = 8
_NULL_COUNT, _OFFSET, _BUFFERS, _CHILDREN = 1, 2, 5, 6
"""Fields of a ``struct ArrowArray`` of the Arrow C data interface, by their words of 64 bits."""

_ARRAY_WORDS = 7

_MOST_BYTES = 2**31 - 1
"""Of an array of ``string`` or ``binary``."""


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class PackedRows:
    """Some rows' bytes: ``block`` has the part of fixed width, uint8 (n, width); the others begin behind."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray, width: int) -> None:
        self.data = data
        self.offsets = offsets
        if len(data) == width * (len(offsets) - 1):
            self.block = data.reshape(-1, width)
        else:
            self.block = np.empty((len(offsets) - 1, width), np.uint8)
            _copy_starts(data, offsets, self.block)


class RowDomain(DictionaryDomain):
    """The rows of one relation.

    >>> domain = RowDomain([pa.int64(), pa.string()], Collector())
    >>> columns = [pa.array([7, None, 7]), pa.array(["a", None, "a"])]
    >>> domain.codes(columns).tolist(), domain.column(np.array([1, 0]), 1).to_pylist()
    ([0, 1, 0], [None, 'a'])
    """

    def __init__(self, types: Sequence[pa.DataType], collector: Collector) -> None:
        """``types``: the Arrow types of the columns."""
        super().__init__("row", pa.large_binary(), collector)
        self.types = tuple(types)
        self._waiting: pa.Table | None = None
        self._entering = threading.Lock()
        self._numbers: dict[int, Numbers | None] = {}  # of columns of rows that wait
        self._asked: dict[int, int] = {}  # rows of these that numbers were asked for
        self._packings: list[_Packing] = []
        place = (len(self.types) + 7) // 8
        for arrow_type in self.types:
            self._packings.append(_packing(arrow_type, place))
            place += self._packings[-1].width or _LENGTH_BYTES
        self._block_bytes = place
        self._prepare()

    def _prepare(self) -> None:
        """What the kernel works with."""
        self._fields: dict[int, np.ndarray] = {}  # by the columns that refuse NULL
        self._plan = np.empty((len(self.types), _N_FIELDS), np.int64)
        self._row = np.empty(2 * self._block_bytes, np.uint8)

    def __getstate__(self) -> dict[str, object]:
        emptied: dict[str, object] = {"_entering": None, "_numbers": {}, "_asked": {}}
        return {**super().__getstate__(), **emptied, "_fields": {}, "_plan": None, "_row": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._entering = threading.Lock()
        self._prepare()

    @cached_property
    def _are_plain(self) -> bool:
        return all(one.is_plain for one in self._packings)

    @property
    def in_block(self) -> list[tuple[int, int]]:
        """Of each column where its values stand in the block, and their width; 0 where the length does."""
        return [(one.place, one.width) for one in self._packings]

    @property
    def block_bytes(self) -> int:
        """Of the part of fixed width."""
        return self._block_bytes

    def is_signed(self, number: int) -> bool:
        """Whether a column's values may be below 0, where they are numbers."""
        return self._packings[number].is_signed

    def has_numbers(self, number: int) -> bool:
        """Whether a column is of whole numbers: integers, moments in their units, decimals, booleans."""
        its = self._packings[number]
        return its.scale is not None or its.form == BOOLEAN

    def codes_of_bytes(self, values: bytes, ends: Sequence[int]) -> list[int]:
        self.enter_waiting()
        return super().codes_of_bytes(values, ends)

    @property
    def waits(self) -> bool:
        """Whether rows wait."""
        return self._waiting is not None

    def wait(self, table: pa.Table) -> None:
        """Let a table's rows, all different, have the first codes; the domain has none yet."""
        assert not self.n_codes
        self._waiting = table

    def codes(self, columns: Sequence[ArrowColumn]) -> np.ndarray:
        """Codes of rows, int64; those of new ones are entered.  ``columns``: of exactly :attr:`types`."""
        self.enter_waiting()
        return joined([self._codes_of(batch) for batch in _batches(columns)], np.int64)

    def codes_where_known(self, batch: pa.RecordBatch, columns: int) -> np.ndarray | None:
        """The same of a batch; None, and nothing is entered, where one of some columns holds NULL.

        ``columns``: a bit for each, the first column's the lowest.
        """
        self.enter_waiting()
        codes = self._codes_of(batch, refused=columns)
        return None if len(codes) < batch.num_rows else codes

    def find(self, columns: Sequence[ArrowColumn]) -> int | None:
        """The code of one row, or None where no row is equal to it."""
        self.enter_waiting()
        codes = self._codes_of(_batch([chunks_of(column)[0] for column in columns]), add=False)
        return int(codes[0]) if codes[0] >= 0 else None

    def column(self, codes: np.ndarray, number: int) -> pa.ChunkedArray:
        """Values of a column of the rows with these codes."""
        waiting = self._waiting
        if waiting is not None:
            column = waiting.column(number)
            return column if _is_all(codes, len(column)) else taken_as_it_is(column, codes)
        pieces = [self.unpacked(self.packed(piece), number) for piece in _pieces(codes)]
        return pa.chunked_array([array for piece in pieces for array in piece], self.types[number])

    def numbers(self, codes: np.ndarray, number: int) -> Numbers | None:
        """A column of decimals of these rows as whole numbers; None where one needs more bits, or is NULL.

        While rows wait they are worked out for all rows when so many were asked for, and then no more.
        """
        waiting = self._waiting
        if waiting is None:
            if len(codes) > PIECE_ROWS:
                return _numbers_of(self.column(codes, number))
            return self.integers(self.packed(codes), number)
        if number not in self._numbers:
            self._asked[number] = self._asked.get(number, 0) + len(codes)
            if len(codes) < FEW_ROWS and self._asked[number] < waiting.num_rows:
                return _numbers_of(self.column(codes, number))
            self._numbers[number] = _numbers_of(waiting.column(number))
        found = self._numbers[number]
        if found is None or not len(codes):
            return _numbers_of(self.column(codes, number))
        first = int(codes[0])
        places = slice(first, first + len(codes)) if _in_a_row(codes) else codes
        return found._replace(values=found.values[places])

    def columns(self, codes: np.ndarray) -> list[pa.ChunkedArray]:
        """Values of all columns."""
        waiting = self._waiting
        if waiting is not None:
            return [self.column(codes, number) for number in range(len(self.types))]
        arrays: list[list[pa.Array]] = [[] for _ in self.types]
        for piece in _pieces(codes):
            rows = self.packed(piece)
            for number, parts in enumerate(arrays):
                parts += self.unpacked(rows, number)
        return [pa.chunked_array(parts, type_) for parts, type_ in zip(arrays, self.types, strict=True)]

    @property
    def nbytes(self) -> int:
        waiting = self._waiting
        numbers = [found.values for found in list(self._numbers.values()) if found is not None]
        return super().nbytes + sum(array.nbytes for array in numbers) + (waiting.nbytes if waiting else 0)

    def enter_waiting(self) -> None:
        """Enter the rows that wait; after that none do."""
        if self._waiting is None:
            return
        with self._entering:
            waiting = self._waiting
            if waiting is not None:
                with self._lock:
                    self._interner.reserve(waiting.num_rows, self._n_bytes(waiting))
                parts = [self._codes_of(batch) for batch in _batches(waiting.columns)]
                assert _is_all(joined(parts, np.int64), waiting.num_rows), "rows that wait are different"
                self.collector.settle(self)
                self._waiting = None
                self._numbers = {}

    def _codes_of(self, batch: pa.RecordBatch, refused: int = 0, add: bool = True) -> np.ndarray:
        """The code of each row, -1 of those that have none and are not added; none at all, and nothing is
        added, where one of the refused columns, by their bits, holds NULL."""
        if not self._are_plain:
            batch = _batch([_plain(array) for array in batch.columns])
        _, exported = batch.__arrow_c_array__()  # which lives as long as the kernel reads it
        where, n_rows, interner = _pointer(exported, b"arrow_array"), batch.num_rows, self._interner
        codes, lacking = np.empty(n_rows, np.int64), np.zeros(1, np.int64)
        fields, block = self._fields_refusing(refused), self._block_bytes
        done = 0
        with self._lock:
            while done < n_rows:
                table, following = interner.table, interner.following
                done = _codes_of_rows(
                    where, fields, block, self._plan, self._row, table, following, add, done, codes, lacking
                )
                if done < 0:
                    return codes[:0]
                if done < n_rows:  # for want of room
                    n_bytes = int(lacking[0])
                    if n_bytes > len(self._row):
                        self._row = np.empty(2 * n_bytes, np.uint8)
                    interner.make_room(1, n_bytes)
        del exported
        return codes

    def _fields_refusing(self, columns: int) -> np.ndarray:
        """What the kernel is told of the columns, where some, by their bits, refuse NULL."""
        found = self._fields.get(columns)
        if found is None:
            rows = [(*one[:3], columns >> number & 1) for number, one in enumerate(self._packings)]
            found = self._fields[columns] = np.array(rows, np.int64).reshape(-1, REFUSES + 1)
        return found

    def _n_bytes(self, table: pa.Table) -> int:
        """What a table's rows take when they are packed, or a little more."""
        behind = 0
        for column, one in zip(table.columns, self._packings, strict=True):
            if not one.width:
                bounds = (8 if one.form == LARGE else 4) * len(column) if one.is_plain else 0
                behind += column.nbytes - bounds
        return table.num_rows * self._block_bytes + behind

    def packed(self, codes: np.ndarray) -> PackedRows:
        """The bytes of some rows that have codes.  Not while rows wait."""
        return PackedRows(*self._interner.taken(codes), self._block_bytes)

    def unpacked(self, rows: PackedRows, number: int) -> list[pa.Array]:
        """A column's values of some rows; in several arrays where one can't hold them."""
        plain = plain_type(self.types[number])
        block, one = rows.block, self._packings[number]
        missing = (block[:, number >> 3] & np.uint8(1 << (number & 7))) != 0
        validity = None
        if missing.any():
            validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        if one.width:
            values = np.ascontiguousarray(block[:, one.place : one.place + one.width])
            if one.form == BOOLEAN:
                bits = pa.py_buffer(np.packbits(values.reshape(-1), bitorder="little"))
                array = pa.Array.from_buffers(plain, len(values), [validity, bits])
            else:
                array = pa.Array.from_buffers(plain, len(values), [validity, pa.py_buffer(values)])
            return [typed_array(array, self.types[number])]
        data, offsets, _ = self._stretches(rows, number)
        large = pa.large_string() if kind(plain) == "string" else pa.large_binary()
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        array = pa.Array.from_buffers(large, len(block), buffers)
        if kind(plain) == "list":
            return [typed_array(unpacked(array, plain), self.types[number])]
        return [typed_array(part, self.types[number]) for part in _halved(array, plain)]

    def texts(self, rows: PackedRows, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """A column of texts or binary strings of some rows: their bytes, uint8, and offsets, int64, one more.

        None of other columns, and where one is NULL.
        """
        if self._packings[number].width or kind(plain_type(self.types[number])) == "list":
            return None
        data, offsets, is_whole = self._stretches(rows, number)
        return (data, offsets) if is_whole else None

    def _stretches(self, rows: PackedRows, number: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """The values of a column of no fixed width, as of :meth:`texts`, and whether none is NULL."""
        places = np.array([one.place for one in self._packings[: number + 1] if not one.width])
        starts, offsets = np.empty(len(rows.block), np.int64), np.empty(len(rows.offsets), np.int64)
        is_whole = _find_stretches(rows.block, rows.offsets, number, places, starts, offsets)
        data = np.empty(int(offsets[-1]), np.uint8)
        _copy_values(rows.data, starts, offsets, data)
        return data, offsets, is_whole

    def integers(self, rows: PackedRows, number: int) -> Numbers | None:
        """A column of integers of some rows, or one of decimals as whole numbers, moments as their units.

        None of other columns, and where a value needs more than 64 bits, has the code of NULL or is NULL.
        """
        one = self._packings[number]
        if one.scale is None:
            return None
        found, ends = np.empty(len(rows.block), np.int64), np.empty(2, np.int64)
        if not _integers_of(rows.block, number, one.place, one.width, one.is_signed, found, ends):
            return None
        return Numbers(found, one.scale, int(ends[0]), int(ends[1]))


class _Packing(NamedTuple):
    """How a column is packed.

    ``width``: bytes of each value, 0 where they differ; ``place``: in the block, of the value or its length.
    ``is_plain``: arrays are taken as they come.  ``scale``: of decimals, 0 of what is counted in whole units,
    None of all others; ``is_signed``: whether these may be below 0.
    """

    width: int
    place: int
    form: int
    is_plain: bool
    scale: int | None
    is_signed: bool


def _packing(arrow_type: pa.DataType, place: int) -> _Packing:
    plain = _plain(pa.nulls(0, arrow_type)).type
    varies = kind(plain) in ("string", "binary") and not pa.types.is_fixed_size_binary(plain)
    form, width = PLAIN, 0
    if varies:
        form = LARGE if plain in (pa.large_string(), pa.large_binary()) else PLAIN
    elif pa.types.is_boolean(plain):
        form, width = BOOLEAN, 1
    else:
        form, width = FLOAT if pa.types.is_floating(plain) else PLAIN, plain.bit_width // 8
    is_signed = not pa.types.is_unsigned_integer(plain)
    return _Packing(width, place, form, plain == arrow_type, _scale(plain), is_signed)


def _scale(plain: pa.DataType) -> int | None:
    if pa.types.is_decimal(plain):
        return plain.scale if plain.scale in SCALES else None
    is_counted = pa.types.is_temporal(plain) and plain != pa.date64()  # which is in milliseconds
    return 0 if (pa.types.is_integer(plain) and plain != pa.uint64()) or is_counted else None


def _plain(array: pa.Array) -> pa.Array:
    array = without_views(plain_array(array))
    return packed(array) if kind(array.type) == "list" else array


def _halved(array: pa.Array, plain: pa.DataType) -> list[pa.Array]:
    """A large array in pieces that narrower offsets can address, where a type has these."""
    narrow = plain in (pa.string(), pa.binary())
    if not narrow or len(array) < 2 or array.nbytes <= _MOST_BYTES:
        return [array]
    half = len(array) // 2
    return _halved(array[:half], plain) + _halved(array[half:], plain)


def _batches(columns: Sequence[ArrowColumn]) -> list[pa.RecordBatch]:
    """Rows in pieces of which every column is one array."""
    if len(columns[0]) <= PIECE_ROWS:
        chunks = [chunks_of(column) for column in columns]
        if all(len(arrays) == 1 for arrays in chunks):
            return [_batch([array for (array,) in chunks])]
    table = pa.Table.from_arrays(list(columns), _names(len(columns)))
    return table.to_batches(max_chunksize=PIECE_ROWS)


def _batch(arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, _names(len(arrays)))


def _names(n_columns: int) -> list[str]:
    """Any."""
    return [str(number) for number in range(n_columns)]


def _pieces(codes: np.ndarray) -> list[np.ndarray]:
    return [codes[start : start + PIECE_ROWS] for start in range(0, len(codes), PIECE_ROWS)]


def _is_all(codes: np.ndarray, n_rows: int) -> bool:
    """Whether the codes are 0, 1, 2, ... of all rows."""
    return len(codes) == n_rows and (not n_rows or bool(codes[0] == 0 and _in_a_row(codes)))


def _in_a_row(codes: np.ndarray) -> bool:
    """Whether each code, of at least one, is one more than the one before."""
    as_far = int(codes[-1]) - int(codes[0]) == len(codes) - 1
    return as_far and bool((codes[1:] > codes[:-1]).all())


def _numbers_of(column: pa.ChunkedArray) -> Numbers | None:
    return None if column.null_count else numbers_of_array(column.combine_chunks())


@part
def _is_null(plan, column, row):
    if plan[column, NULLS] == 0:
        return False
    bit = plan[column, FIRST] + row
    return (view8(plan[column, NULLS], (bit >> 3) + 1)[bit >> 3] >> np.uint8(bit & 7)) & np.uint8(1) == 0


@part
def _stretch(plan, column, row):
    """Where a text or binary string begins in the column's bytes, and where it ends."""
    if plan[column, FORM] == LARGE:
        large = view(plan[column, BOUNDS], row + 2)
        return large[row], large[row + 1]
    small = view32(plan[column, BOUNDS], row + 2)
    return np.int64(small[row]), np.int64(small[row + 1])


@part
def _plan(exported, fields, plan):
    """Write what is read of columns; as :func:`_codes_of_rows` has them."""
    columns = view(view(exported, _ARRAY_WORDS)[_CHILDREN], len(plan))
    first = view(exported, _ARRAY_WORDS)[_OFFSET]
    for column in range(len(plan)):
        its = view(columns[column], _ARRAY_WORDS)
        width = fields[column, WIDTH]
        buffers = view(its[_BUFFERS], 2 if width else 3)
        start = first + its[_OFFSET]
        plan[column, WIDTH] = width
        plan[column, PLACE] = fields[column, PLACE]
        plan[column, FORM] = fields[column, FORM]
        plan[column, REFUSES] = fields[column, REFUSES]
        plan[column, FIRST] = start
        plan[column, NULLS] = buffers[0] if its[_NULL_COUNT] else 0
        plan[column, BOUNDS] = buffers[1] + start * (8 if fields[column, FORM] == LARGE else 4)
        plan[column, VALUES] = buffers[2] if width == 0 else buffers[1]
        if width and fields[column, FORM] != BOOLEAN:
            plan[column, VALUES] += width * start


@part
def _is_refused(plan, n_rows):
    """Whether a column that refuses NULL holds one."""
    for column in range(len(plan)):
        if plan[column, REFUSES] and plan[column, NULLS]:
            for row in range(n_rows):
                if _is_null(plan, column, row):
                    return True
    return False


@part
def _length_of_row(plan, block_bytes, row):
    """So many bytes it takes."""
    length = block_bytes
    for column in range(len(plan)):
        if plan[column, WIDTH] == 0 and not _is_null(plan, column, row):
            begin, end = _stretch(plan, column, row)
            length += end - begin
    return length


@part
def _one_form(packed, place, width):
    """Bring a float of little-endian bytes to one form: -0.0 to 0.0, and all NaN to one."""
    bits = np.uint64(0)
    for byte in range(width):
        bits |= np.uint64(packed[place + byte]) << np.uint64(8 * byte)
    fraction = 10 if width == 2 else 23 if width == 4 else 52
    infinity = (np.uint64(1) << np.uint64(8 * width - 1)) - (np.uint64(1) << np.uint64(fraction))
    magnitude = bits & ((np.uint64(1) << np.uint64(8 * width - 1)) - np.uint64(1))
    if magnitude == 0:
        bits = magnitude
    elif magnitude > infinity:
        bits = infinity | np.uint64(1) << np.uint64(fraction - 1)
    for byte in range(width):
        packed[place + byte] = np.uint8(bits >> np.uint64(8 * byte) & np.uint64(255))


@part
def _pack_row(plan, block_bytes, row, packed):
    """Write a row; packed: uint8, with room for it."""
    place = block_bytes
    for byte in range(block_bytes):
        packed[byte] = 0
    for column in range(len(plan)):
        own = plan[column, PLACE]
        width = plan[column, WIDTH]
        if _is_null(plan, column, row):
            packed[column >> 3] |= np.uint8(1 << (column & 7))
        elif plan[column, FORM] == BOOLEAN:
            bit = plan[column, FIRST] + row
            values = view8(plan[column, VALUES], (bit >> 3) + 1)
            packed[own] = values[bit >> 3] >> np.uint8(bit & 7) & np.uint8(1)
        elif width:
            copy_bytes(plan[column, VALUES] + width * row, packed.ctypes.data + own, width)
            if plan[column, FORM] == FLOAT:
                _one_form(packed, own, width)
        else:
            start, end = _stretch(plan, column, row)
            length = end - start
            for byte in range(_LENGTH_BYTES):
                packed[own + byte] = np.uint8((length >> (8 * byte)) & 255)
            copy_bytes(plan[column, VALUES] + start, packed.ctypes.data + place, length)
            place += length


@kernel
def _codes_of_rows(exported, fields, block_bytes, plan, packed, table, following, add, first, codes, lacking):
    """Write codes of rows from ``first`` on, -1 for none; returns how many rows are through, -1 where they
    are refused.

    exported: the address of a ``struct ArrowArray`` of them.  fields: int64 (columns, 4), WIDTH, PLACE, FORM
    and REFUSES.  plan: int64 (columns, _N_FIELDS), written; packed: uint8, where a row is put together.
    table, following, add: as :func:`~lftj.values.interner.code_of` has them.  codes: int64 (n,), written;
    lacking: int64 (1,), written: bytes of the first row that is not through, as ``packed`` or a table lacks
    room for it.
    """
    _plan(exported, fields, plan)
    if first == 0 and _is_refused(plan, len(codes)):
        return -1
    for row in range(first, len(codes)):
        length = _length_of_row(plan, block_bytes, row)
        if length > len(packed) or (add and not has_room(table, following, length)):
            lacking[0] = length
            return row
        _pack_row(plan, block_bytes, row, packed)
        codes[row] = code_of(packed.ctypes.data, length, table, following, add)
    return len(codes)


@part
def is_null_in(row, column):
    """Whether a column of a packed row, at an address, is NULL."""
    return view8(row, (column >> 3) + 1)[column >> 3] >> np.uint8(column & 7) & np.uint8(1) != 0


@part
def integer_in(row, place, width, is_signed):
    """The value of a packed row, at an address, that has so many bytes in its block; KEY_MIN where it is
    that, or has more than 64 bits."""
    block, value = view8(row, place + width), np.int64(0)
    for byte in range(min(width, 8)):
        value |= np.int64(block[place + byte]) << (8 * byte)
    if is_signed and width < 8:
        value -= (value >> (8 * width - 1)) << (8 * width)
    for byte in range(8, width):
        if block[place + byte] != np.uint8(value >> 63 & 255):
            return np.int64(KEY_MIN)
    return value


@part
def stretch_in(row, block_bytes, places):
    """Where a value of no fixed width begins in a packed row, at an address, and its length.

    places: int64, in the block, of the lengths of this value, last, and of those that come before.
    """
    start, length = np.int64(block_bytes), np.int64(0)
    for place in places:
        start += length
        length = np.int64(0)
        lengths = view8(row, place + _LENGTH_BYTES)
        for byte in range(_LENGTH_BYTES):
            length |= np.int64(lengths[place + byte]) << (8 * byte)
    return start, length


@kernel
def _integers_of(block, column, place, width, is_signed, found, ends):
    """Write a column's values, and the least and the most; returns whether all are there and fit.

    block: uint8 (n, width of the block); found: int64 (n,), written; ends: int64 (2,), written.
    """
    least, most = np.int64(KEY_MAX), np.int64(KEY_MIN)
    for row in range(block.shape[0]):
        where = block.ctypes.data + block.shape[1] * row
        if is_null_in(where, column):
            return False
        value = integer_in(where, place, width, is_signed)
        if value == KEY_MIN:
            return False
        found[row] = value
        least, most = min(least, value), max(most, value)
    ends[0], ends[1] = (least, most) if block.shape[0] else (0, 0)
    return True


@kernel
def _find_stretches(block, bounds, column, places, starts, offsets):
    """Write where a column's values begin, and where each is to be of all behind each other; returns whether
    none is NULL.

    block: uint8 (n, width of the block); bounds: int64 (n + 1,), of the rows; places: int64, in the block, of
    the lengths of this column's values, last, and of those that come before.  starts, offsets: int64 (n,) and
    (n + 1,), written.
    """
    is_whole = True
    offsets[0] = 0
    for row in range(block.shape[0]):
        where = block.ctypes.data + block.shape[1] * row
        start, length = stretch_in(where, block.shape[1], places)
        starts[row] = bounds[row] + start
        offsets[row + 1] = offsets[row] + length
        if is_null_in(where, column):
            is_whole = False
    return is_whole


@kernel
def _copy_starts(data, offsets, block):
    """Write the first bytes of each value; block: uint8 (n, width), and no value is shorter."""
    for row in range(block.shape[0]):
        width = block.shape[1]
        copy_bytes(data.ctypes.data + offsets[row], block.ctypes.data + width * row, width)


@kernel
def _copy_values(data, starts, offsets, copied):
    """Write what begins at each start, one behind the other; offsets: int64 (n + 1,), where each is to be."""
    for row in range(len(starts)):
        begin, end = offsets[row], offsets[row + 1]
        if end > begin:
            copy_bytes(data.ctypes.data + starts[row], copied.ctypes.data + begin, end - begin)
