"""Lists as values: ``[3, 1, NULL]``, of whatever can be a value, lists too.

A dictionary holds a list as bytes that are ordered as lists are: by the first element that differs, what
ends before what goes on, and NULL behind all values (as arrays are in PostgreSQL, 9.19, and lists in DuckDB).
Of an element there are::

    of fixed width    1 | the code, or the decimal's whole number, big-endian, sign flipped    NULL: 2 | 0 ...
    of any length     1 | the bytes, with 1 1 for 0 and 1 2 for 1 | 0                          NULL: 2 | 0

Invariants

1. Two lists have the same bytes exactly when they are as long and equal in every place, NULL equal to NULL,
   NaN to NaN, and -0.0 to 0.0, whatever the width and encoding of their elements.
2. No element's bytes begin another's, so the order of the bytes is that of the lists.

Cost: whole-array operations over the elements; 9 bytes an element, of decimals 33, of texts two more than
they have, and those of an inner list again.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.collector import Collector
from lftj.values.dictionary import DECIMAL, DictionaryDomain, canonical_decimals
from lftj.values.domain import ArrowColumn, Domain, chunks_of, spread, without_views
from lftj.values.floating import FloatDomain
from lftj.values.kinds import cast_decimal, kind, plain_array, plain_type, typed_array
from lftj.values.literals import Value, literal_kind
from lftj.values.unscaled import VALUE_BYTES
from lftj.values.whole import new_domain

_KNOWN, _NULL, _END = 1, 2, 0
_CODE_BYTES = 8
_SIGN = np.uint64(1 << 63)
_MOST = 2**31 - 1
"""Elements that the offsets of an array of type ``list`` can count."""


class ListDomain(DictionaryDomain):
    """Lists whose elements have one domain.

    >>> domain = ListDomain("list[integer]", Collector())
    >>> domain.encode(pa.array([[1, 2], [], [1, 2], [None]])).tolist(), domain.ranks().tolist()
    ([0, 1, 0, 2], [1, 0, 2])
    >>> domain.decode(np.array([2, 0]), pa.list_(pa.int8())).to_pylist()
    [[None], [1, 2]]
    """

    def __init__(self, name: str, collector: Collector) -> None:
        super().__init__(name, pa.large_binary(), collector)

    def find(self, lists: pa.Array) -> int | None:
        """The code of the one list of an array, or None where it has none."""
        data, offsets = self._bytes_of(packed(lists))
        with self._lock:
            return self._interner.find(data[offsets[0] : offsets[1]].tobytes())

    def _literal(self, value: Value) -> tuple[pa.Scalar | None, bool]:
        raise TypeClashError(f"a {literal_kind(value)} can't be compared with a list: no rule writes lists")

    def _hashable(self, column: ArrowColumn) -> ArrowColumn:
        return pa.chunked_array([packed(chunk) for chunk in chunks_of(column)], pa.large_binary())

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        return unpacked(self.taken(codes), arrow_type)


def packed(lists: pa.Array) -> pa.LargeBinaryArray:
    """The bytes of each list; NULL where it is NULL.

    Raises :class:`~lftj.errors.RangeError` for an element that no dictionary and no key could hold.

    >>> packed(pa.array([["a"], [None], None])).to_pylist()
    [b'\\x01a\\x00', b'\\x02\\x00', None]
    """
    data, bounds = _packed_elements(lists.flatten())
    known = lists.is_valid().to_numpy(zero_copy_only=False) if lists.null_count else None
    buffers = [_validity(known), pa.py_buffer(bounds[offsets_of(lists)]), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)


def unpacked(packed_lists: pa.LargeBinaryArray, arrow_type: pa.DataType) -> pa.Array:
    """Inverse of :func:`packed`: lists of a type that they all fit.  Raises ``pa.ArrowInvalid`` otherwise.

    >>> unpacked(packed(pa.array([["a"], [None], None])), pa.list_(pa.string())).to_pylist()
    [['a'], [None], None]
    """
    data, bounds = _bytes_of(packed_lists)
    data, bounds = data[bounds[0] : bounds[-1]], bounds - bounds[0]
    element = arrow_type.value_type
    width = _width(element)
    if width is None:
        ends = np.flatnonzero(data == _END)
        values = _varying(data, ends, element)
        offsets = np.searchsorted(ends, bounds)
    else:
        values = _fixed(data.reshape(-1, 1 + width), element)
        offsets = bounds // (1 + width)
    known = packed_lists.is_valid().to_numpy(zero_copy_only=False) if packed_lists.null_count else None
    return array_of_lists(offsets, values, arrow_type, known)


def offsets_of(lists: pa.Array) -> np.ndarray:
    """Where the elements of each list begin among those of all, int64, one more; a NULL has none.

    >>> offsets_of(pa.array([[5, 6], None, [7]])[1:]).tolist()
    [0, 0, 1]
    """
    return _offsets(pc.fill_null(pc.list_value_length(lists), 0).to_numpy())


def array_of_lists(
    offsets: np.ndarray, elements: pa.Array, arrow_type: pa.DataType, known: np.ndarray | None = None
) -> pa.Array:
    """Lists of a type; list i has ``elements[offsets[i]:offsets[i + 1]]``, of that type's elements.

    ``known``: bool, False where a list is NULL.  Raises ``pa.ArrowInvalid`` for too many elements.

    >>> array_of_lists(np.array([0, 2, 2]), pa.array([5, 6]), pa.list_(pa.int64())).to_pylist()
    [[5, 6], []]
    """
    is_large = pa.types.is_large_list(arrow_type)
    if not is_large and len(elements) > _MOST:
        raise pa.ArrowInvalid(f"{len(elements)} elements, more than an array of type {arrow_type} holds")
    buffers = [_validity(known), pa.py_buffer(offsets.astype(np.int64 if is_large else np.int32))]
    return pa.Array.from_buffers(arrow_type, len(offsets) - 1, buffers, children=[elements])


def _width(element: pa.DataType) -> int | None:
    """Bytes of each value of a type; None where they differ."""
    name = kind(element)
    if name in ("string", "binary", "list"):
        return None
    return VALUE_BYTES if name == "decimal" else _CODE_BYTES


def _packed_elements(elements: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all elements, uint8, and where each begins, int64, one more."""
    elements = without_views(plain_array(elements))
    width = _width(elements.type)
    if width is None:
        texts = packed(elements) if kind(elements.type) == "list" else elements.cast(pa.large_binary())
        texts = pc.replace_substring(pc.replace_substring(texts, b"\x01", b"\x01\x02"), b"\x00", b"\x01\x01")
        begin, end, nothing = (pa.scalar(one, pa.large_binary()) for one in (b"\x01", b"\x00", b""))
        texts = pc.binary_join_element_wise(begin, texts, end, nothing)
        return _bytes_of(pc.fill_null(texts, pa.scalar(b"\x02\x00", pa.large_binary())))
    known = elements.is_valid().to_numpy(zero_copy_only=False)
    block = np.zeros((len(elements), 1 + width), np.uint8)
    block[:, 0] = np.where(known, _KNOWN, _NULL)
    block[known, 1:] = _keys(elements.drop_null())
    return block.reshape(-1), np.arange(len(elements) + 1) * (1 + width)


def _keys(values: pa.Array) -> np.ndarray:
    """Of values of fixed width without NULL: bytes in their order, uint8 (n, width)."""
    if kind(values.type) == "decimal":
        data = np.frombuffer(canonical_decimals(values).buffers()[1], np.uint8)[: VALUE_BYTES * len(values)]
        keys = np.ascontiguousarray(data.reshape(-1, VALUE_BYTES)[:, ::-1])
        keys[:, 0] ^= np.uint8(0x80)
        return keys
    codes = _ordered_domain(values.type).encode(values).view(np.uint64) ^ _SIGN
    return codes.astype(">u8").view(np.uint8).reshape(-1, _CODE_BYTES)


def _fixed(block: np.ndarray, element: pa.DataType) -> pa.Array:
    """Inverse of :func:`_keys`, with NULLs; block: uint8 (n, 1 + width)."""
    missing = block[:, 0] == _NULL
    keys = np.ascontiguousarray(block[~missing, 1:] if missing.any() else block[:, 1:])
    plain = plain_type(element)
    if kind(plain) == "decimal":
        keys[:, 0] ^= np.uint8(0x80)
        data = np.ascontiguousarray(keys[:, ::-1])
        values = cast_decimal(pa.Array.from_buffers(DECIMAL, len(data), [None, pa.py_buffer(data)]), plain)
    else:
        codes = (keys.reshape(-1).view(">u8").astype(np.uint64) ^ _SIGN).view(np.int64)
        values = _ordered_domain(plain).decode(codes, plain)
    return typed_array(spread(values, missing), element)


def _varying(data: np.ndarray, ends: np.ndarray, element: pa.DataType) -> pa.Array:
    """The elements of any length that ``data`` is of, uint8; ``ends``: where each has its last byte."""
    begins = np.append(0, ends + 1)
    missing = data[begins[:-1]] == _NULL
    inner = np.ones(len(data), bool)
    inner[begins[:-1]] = inner[ends] = False
    text = data[inner]
    buffers = [
        _validity(~missing if missing.any() else None),
        pa.py_buffer(_offsets(ends - begins[:-1] - 1)),
        pa.py_buffer(text),
    ]
    values = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
    if (text == 1).any():  # pairs that begin with 1 are met from the left, the first kind before the other
        values = pc.replace_substring(values, b"\x01\x01", b"\x00")
        values = pc.replace_substring(values, b"\x01\x02", b"\x01")
    plain = plain_type(element)
    if kind(plain) == "list":
        return typed_array(unpacked(values, plain), element)
    return typed_array(values.cast(plain), element)


def _ordered_domain(plain: pa.DataType) -> Domain:
    """One for elements alone: it keeps no NULL, so all numbers have codes."""
    name = kind(plain)
    return FloatDomain() if name == "float" else new_domain(name, plain)


def _bytes_of(values: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8), bounds


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _validity(known: np.ndarray | None) -> pa.Buffer | None:
    return None if known is None else pa.py_buffer(np.packbits(known, bitorder="little"))
