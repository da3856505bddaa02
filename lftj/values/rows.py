"""Rows as values: one code stands for all columns of a row of a *wide* relation.

What rules read of a relation with many columns is coded column by column, when it is asked for first
(:mod:`lftj.storage.wide_columns`).  What identifies a row, whoever reads what, is the code of the row as a
whole: its bytes in a dictionary that the relation has for itself.

    nulls, a bit a column | columns of fixed width | lengths of the others | their bytes

Invariants

1. Two rows have one code exactly when they are equal column by column, NULL equal to NULL, NaN to NaN, and
   -0.0 to 0.0: all of a column is of one Arrow type, and its floats are brought to one form.
2. The rows that a relation was loaded with, all different, have the codes 0, 1, 2, ... in their order.
   Until somebody asks for the code of a row they *wait* as the Arrow table that they came in.

Cost: O(bytes of the rows) to code them and to give values of theirs back; nothing where rows wait.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from indices.array_views import view_of
from indices.compiled import kernel, part
from lftj.memory import address, view, view32
from lftj.values.collector import Collector
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import ArrowColumn, chunks_of, taken_as_it_is, without_views
from lftj.values.kinds import kind, plain_array, plain_type, typed_array
from lftj.values.unscaled import Numbers, numbers_of_array

PIECE_ROWS = 1 << 16
"""So many rows at most are packed or unpacked at a time."""

_LENGTH_BYTES = 4
WIDTH, PLACE, VALUES, BOUNDS, IS_LARGE, NULLS, FIRST = range(7)
"""Fields of a column: width and place as :class:`_Packing` has them; addresses of its values, of the bounds
of texts, and of its bits of validity, 0 where there are none; and which of these bits is the first row's."""

_MOST_BYTES = 2**31 - 1
"""Of an array of ``string`` or ``binary``."""


view8 = view_of(np.uint8)


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
        self._packings: list[_Packing] = []
        place = (len(self.types) + 7) // 8
        for arrow_type in self.types:
            self._packings.append(_packing(arrow_type, place))
            place += self._packings[-1].width or _LENGTH_BYTES
        self._block_bytes = place

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_entering": None, "_numbers": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._entering = threading.Lock()

    @cached_property
    def varying(self) -> list[int]:
        """The columns whose arrays are more than values one behind the other."""
        packings = enumerate(self._packings)
        return [number for number, one in packings if not one.width or not one.is_plain]

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
        self._enter()
        return self._codes(columns)

    def _codes(self, columns: Sequence[ArrowColumn]) -> np.ndarray:
        parts = []
        for arrays in _aligned(columns):
            data, offsets = self._packed(arrays)
            with self._lock:
                parts.append(self._interner.codes(data, offsets))
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def find(self, columns: Sequence[ArrowColumn]) -> int | None:
        """The code of one row, or None where no row is equal to it."""
        self._enter()
        data, _ = self._packed([chunks_of(column)[0] for column in columns])
        with self._lock:
            return self._interner.find(data.tobytes())

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

        While rows wait they are worked out once, for all rows.
        """
        waiting = self._waiting
        if waiting is None:
            return _numbers_of(self.column(codes, number))
        if number not in self._numbers:
            self._numbers[number] = _numbers_of(waiting.column(number))
        found = self._numbers[number]
        if found is None or not len(codes):
            return _numbers_of(self.column(codes, number))
        first, last = int(codes[0]), int(codes[-1])
        in_a_row = last - first == len(codes) - 1 and bool((np.diff(codes) == 1).all())
        return found._replace(values=found.values[slice(first, last + 1) if in_a_row else codes])

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

    def _enter(self) -> None:
        """Enter the rows that wait; after that none do."""
        if self._waiting is None:
            return
        with self._entering:
            waiting = self._waiting
            if waiting is not None:
                with self._lock:
                    self._interner.reserve(waiting.num_rows, self._n_bytes(waiting))
                codes = self._codes(waiting.columns)
                assert _is_all(codes, waiting.num_rows), "rows that wait are different"
                self.collector.settle(self)
                self._waiting = None
                self._numbers = {}

    def _packed(self, arrays: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of rows one behind the other, and int64 offsets; ``arrays``: a column each."""
        n_rows = len(arrays[0])
        read = [_read(array, one) for array, one in zip(arrays, self._packings, strict=True)]
        plan = np.array([fields for fields, _ in read], np.int64)
        offsets = np.empty(n_rows + 1, np.int64)
        _measure_rows(plan, self._block_bytes, offsets)
        packed = np.empty(int(offsets[-1]), np.uint8)
        _pack_rows(plan, self._block_bytes, offsets, packed)
        del read  # what the plan has addresses of
        return packed, offsets

    def _n_bytes(self, table: pa.Table) -> int:
        """What a table's rows take when they are packed, or a little more."""
        behind = [column for column, one in zip(table.columns, self._packings, strict=True) if not one.width]
        return table.num_rows * self._block_bytes + sum(column.nbytes for column in behind)

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
            if one.is_boolean:
                bits = pa.py_buffer(np.packbits(values.reshape(-1), bitorder="little"))
                array = pa.Array.from_buffers(plain, len(values), [validity, bits])
            else:
                array = pa.Array.from_buffers(plain, len(values), [validity, pa.py_buffer(values)])
            return [typed_array(array, self.types[number])]
        starts = rows.offsets[:-1] + self._block_bytes
        lengths = np.zeros(len(block), np.int64)
        for other in self._packings[: number + 1]:
            if not other.width:
                starts = starts + lengths
                items = np.ascontiguousarray(block[:, other.place : other.place + _LENGTH_BYTES])
                lengths = items.view(np.uint32).reshape(-1).astype(np.int64)
        offsets = np.zeros(len(block) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        _copy_values(rows.data, starts, offsets, data)
        large = pa.large_string() if kind(plain) == "string" else pa.large_binary()
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        array = pa.Array.from_buffers(large, len(block), buffers)
        return [typed_array(part, self.types[number]) for part in _halved(array, plain)]


class _Packing(NamedTuple):
    """How a column is packed.

    ``width``: bytes of each value, 0 where they differ; ``place``: in the block, of the value or its length.
    ``is_plain``: arrays are taken as they come.  ``floats``: their type, where the values are some.
    """

    width: int
    place: int
    is_plain: bool
    is_boolean: bool
    floats: type[np.floating[Any]] | None


def _packing(arrow_type: pa.DataType, place: int) -> _Packing:
    plain = plain_type(arrow_type)
    is_boolean = pa.types.is_boolean(plain)
    varies = kind(plain) in ("string", "binary") and not pa.types.is_fixed_size_binary(plain)
    width = 0 if varies else 1 if is_boolean else plain.bit_width // 8
    is_plain = plain == arrow_type and plain not in (pa.string_view(), pa.binary_view())
    floats = plain.to_pandas_dtype() if pa.types.is_floating(plain) else None
    return _Packing(width, place, is_plain, is_boolean, floats)


def _read(array: pa.Array, one: _Packing) -> tuple[tuple[int, ...], object]:
    """A column as the kernels see it, and what has to live as long as they run."""
    if not one.is_plain:
        array = without_views(plain_array(array))
    if one.is_boolean:
        array = array.cast(pa.uint8())
    buffers, first = array.buffers(), array.offset
    nulls = buffers[0].address if array.null_count else 0
    kept: object = array
    if one.floats is not None:
        data = np.frombuffer(buffers[1], np.uint8, one.width * len(array), one.width * first)
        floats = data.view(one.floats) + one.floats(0.0)  # -0.0 + 0.0 is 0.0
        floats[np.isnan(floats)] = np.nan
        return (one.width, one.place, address(floats), 0, 0, nulls, first), (floats, array)
    if one.width:
        values = 0 if buffers[1] is None else buffers[1].address + one.width * first
        return (one.width, one.place, values, 0, 0, nulls, first), kept
    is_large = array.type in (pa.large_string(), pa.large_binary())
    bounds = buffers[1].address + (8 if is_large else 4) * first
    values = 0 if buffers[2] is None else buffers[2].address
    return (0, one.place, values, bounds, int(is_large), nulls, first), kept


def _halved(array: pa.Array, plain: pa.DataType) -> list[pa.Array]:
    """A large array in pieces that narrower offsets can address, where a type has these."""
    narrow = plain in (pa.string(), pa.binary())
    if not narrow or len(array) < 2 or array.nbytes <= _MOST_BYTES:
        return [array]
    half = len(array) // 2
    return _halved(array[:half], plain) + _halved(array[half:], plain)


def _aligned(columns: Sequence[ArrowColumn]) -> list[list[pa.Array]]:
    """Rows in pieces of which every column is one array."""
    if len(columns[0]) <= PIECE_ROWS:
        chunks = [chunks_of(column) for column in columns]
        if all(len(arrays) == 1 for arrays in chunks):
            return [[array for (array,) in chunks]]
    table = pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])
    return [batch.columns for batch in table.to_batches(max_chunksize=PIECE_ROWS)]


def _pieces(codes: np.ndarray) -> list[np.ndarray]:
    return [codes[start : start + PIECE_ROWS] for start in range(0, len(codes), PIECE_ROWS)]


def _is_all(codes: np.ndarray, n_rows: int) -> bool:
    """Whether the codes are 0, 1, 2, ... of all rows."""
    return len(codes) == n_rows and (
        not n_rows or bool(codes[0] == 0 and codes[-1] == n_rows - 1 and (np.diff(codes) == 1).all())
    )


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
    if plan[column, IS_LARGE]:
        large = view(plan[column, BOUNDS], row + 2)
        return large[row], large[row + 1]
    small = view32(plan[column, BOUNDS], row + 2)
    return np.int64(small[row]), np.int64(small[row + 1])


@kernel
def _measure_rows(plan, block_bytes, offsets):
    """Write where each row begins, int64 (n + 1,); plan: int64 (columns, 7), with the fields above."""
    offsets[0] = 0
    for row in range(len(offsets) - 1):
        length = block_bytes
        for column in range(len(plan)):
            if plan[column, WIDTH] == 0 and not _is_null(plan, column, row):
                start, end = _stretch(plan, column, row)
                length += end - start
        offsets[row + 1] = offsets[row] + length


@kernel
def _pack_rows(plan, block_bytes, offsets, packed):
    """Write the rows; packed: uint8, as many as :func:`_measure_rows` found."""
    for row in range(len(offsets) - 1):
        begin = offsets[row]
        place = begin + block_bytes
        for byte in range(block_bytes):
            packed[begin + byte] = 0
        for column in range(len(plan)):
            own = begin + plan[column, PLACE]
            width = plan[column, WIDTH]
            if _is_null(plan, column, row):
                packed[begin + (column >> 3)] |= np.uint8(1 << (column & 7))
            elif width:
                values = view8(plan[column, VALUES], width * (row + 1))
                for byte in range(width):
                    packed[own + byte] = values[width * row + byte]
            else:
                start, end = _stretch(plan, column, row)
                values = view8(plan[column, VALUES], end)
                length = end - start
                for byte in range(_LENGTH_BYTES):
                    packed[own + byte] = np.uint8((length >> (8 * byte)) & 255)
                for byte in range(length):
                    packed[place + byte] = values[start + byte]
                place += length


@kernel
def _copy_starts(data, offsets, block):
    """Write the first bytes of each value; block: uint8 (n, width), and no value is shorter."""
    for row in range(block.shape[0]):
        start = offsets[row]
        for byte in range(block.shape[1]):
            block[row, byte] = data[start + byte]


@kernel
def _copy_values(data, starts, offsets, copied):
    """Write what begins at each start, one behind the other; offsets: int64 (n + 1,), where each is to be."""
    for row in range(len(starts)):
        start, begin = starts[row], offsets[row]
        for byte in range(offsets[row + 1] - begin):
            copied[begin + byte] = data[start + byte]
