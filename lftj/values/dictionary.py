"""Domains with a dictionary: string, binary, decimal.

A value's code is a number that no other value has, and it keeps it as long as anybody
holds the code (:mod:`lftj.values.collector`).  Codes carry no order of values:
:meth:`DictionaryDomain.ranks` gives it on demand.

Decimals of every precision and scale are brought to ``decimal256(76, 38)``
before they are looked up, so ``1.5`` and ``1.50`` are one value.  A value with
more than 38 digits before or after the point is refused.

Cost: a column costs one hash of its rows (pyarrow) and one of its distinct
values (:mod:`lftj.values.interner`), whatever the size of the dictionary.  Decoding costs
O(bytes of the values), of most decimals one look-up each (:mod:`lftj.values.unscaled`).  Order and ranks
cost one sort of the dictionary after it has changed.
"""

from __future__ import annotations

import copy
import decimal
import threading
import weakref
from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import RangeError, TypeClashError
from lftj.values.collector import Collector
from lftj.values.domain import ArrowColumn, Domain, chunks_of, joined, without_views
from lftj.values.interner import Interner
from lftj.values.kinds import cast_decimal
from lftj.values.literals import Value
from lftj.values.unscaled import (
    SCALE,
    SCALES,
    VALUE_BYTES,
    Numbers,
    UnscaledTable,
    numbers_of_array,
    value_bytes,
)

DECIMAL = pa.decimal256(76, SCALE)
"""The type that all decimals are brought to."""

FEW_VALUES = 1 << 8
"""Of so many none is looked for that repeats: to find its code again takes less."""

FIRST_ROWS = 1 << 10

_EXACT = decimal.Context(prec=200)
_BEYOND = Decimal(10) ** 38
_STEP = Decimal((0, (1,), -SCALE))
_LARGEST = _EXACT.subtract(_BEYOND, _STEP)


class CodeTable(Protocol):
    """What has entries for codes of a domain, which no code must outlive."""

    def forget(self, kept: np.ndarray) -> None:
        """Drop the entries of all codes but those that are ``kept``: bool, by code."""


def new_domain(name: str, collector: Collector | None = None) -> Domain:
    """An empty dictionary domain: ``string``, ``binary`` or ``decimal``.

    >>> new_domain("string").encode_constant("never seen") is None
    True
    """
    collector = collector or Collector()
    if name == "decimal":
        return DecimalDomain(collector)
    value_type = pa.large_string() if name == "string" else pa.large_binary()
    return DictionaryDomain(name, value_type, collector)


class DictionaryDomain(Domain):
    """Strings and binary strings.  Safe to use from several threads."""

    ordered = False
    collector: Collector

    def __init__(self, name: str, value_type: pa.DataType, collector: Collector) -> None:
        self.name = name
        self.collector = collector
        self._value_type = value_type
        self._interner = Interner()
        self._lock = threading.Lock()
        self._ranks = 0, np.empty(0, dtype=np.int64)  # and the interner's changes that they are of
        self._constants: dict[int, None] = {}  # codes that rules hold
        self._tables: weakref.WeakSet[CodeTable] = weakref.WeakSet()
        collector.add(self)

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): the values of one moment, whoever adds more meanwhile."""
        with self._lock:
            return {**self.__dict__, "_interner": copy.deepcopy(self._interner), "_tables": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Tables of codes come again by themselves."""
        self.__dict__.update(state)
        self._tables = weakref.WeakSet()
        self.collector.add(self)

    def encode_constant(self, value: Value) -> int | None:
        literal, exact = self._literal(value)
        if literal is None or not exact:
            return None
        data, offsets = self._bytes_of(pa.array([literal]))
        with self._lock:
            return self._interner.find(data[offsets[0] : offsets[1]].tobytes())

    def code_of_constant(self, value: Value, lasting: bool = True) -> int | None:
        literal, exact = self._literal(value)
        if literal is None or not exact:
            return None
        data, offsets = self._bytes_of(pa.array([literal]))
        with self._lock:
            code = int(self._interner.codes(data, offsets)[0])
            if lasting:
                self._constants[code] = None
        return code

    def select(self, operator: str, value: Value, among: np.ndarray | None = None) -> np.ndarray:
        literal, exact = self._literal(value)
        everything, values = self._all() if among is None else (among, self.taken(among))
        nothing = everything[:0]
        if not exact:
            # `literal` is the greatest value below what the rule says, and nothing lies between the two.
            if operator in ("=", "!="):
                return nothing if operator == "=" else everything
            operator = "<=" if operator in ("<", "<=") else ">"
        if literal is None:
            return nothing if operator == "<=" else everything
        matches = _comparison(operator)(values, literal)
        return everything[matches.to_numpy(zero_copy_only=False)]

    def ranks(self) -> np.ndarray:
        with self._lock:
            changes, n_codes = self._interner.changes, self._interner.n_codes
            found_at, ranks = self._ranks
            if found_at == changes:
                return ranks
            codes = np.flatnonzero(self._interner.has_value)
            values = self.taken(codes)
        ranks = np.zeros(n_codes, dtype=np.int64)
        ranks[codes[pc.array_sort_indices(values).to_numpy()]] = np.arange(len(codes))
        self._ranks = changes, ranks
        return ranks

    def places(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(codes) < len(self._interner):
            distinct, rows = np.unique(codes, return_inverse=True)
            order = pc.array_sort_indices(self.taken(distinct)).to_numpy()
            place_of_row = np.empty(len(order), dtype=np.int64)
            place_of_row[order] = np.arange(len(order))
            return place_of_row[rows], distinct[order]
        everything, values = self._all()
        code_of_rank = everything[pc.array_sort_indices(values).to_numpy()]
        ranks = np.zeros(int(everything[-1]) + 1 if len(everything) else 0, dtype=np.int64)
        ranks[code_of_rank] = np.arange(len(code_of_rank))
        return ranks[codes], code_of_rank

    @property
    def is_moving(self) -> bool:
        """Whether values are looked for that nobody needs any more: one that stays has to be encoded."""
        return self._interner.is_moving

    def code_of_bytes(self, value: bytes) -> int:
        """The code of a value, by what the dictionary has of it; it is entered where it has none.

        >>> new_domain("string").code_of_bytes("tea".encode())
        0
        """
        return self.codes_of_bytes(value, [0, len(value)])[0]

    def codes_of_bytes(self, values: bytes, ends: Sequence[int]) -> list[int]:
        """The same of several values, one behind the other; ``ends``: 0, and where each one ends."""
        with self._lock:
            return self._interner.codes(np.frombuffer(values, np.uint8), np.array(ends)).tolist()

    def values(self) -> pa.Array:
        """All values, in the order of their codes.

        >>> string = new_domain("string")
        >>> _ = string.encode(pa.array(["pear", "apple", "pear"]))
        >>> string.values().to_pylist()
        ['pear', 'apple']
        """
        return self._all()[1]

    def known(self) -> np.ndarray:
        with self._lock:
            return np.flatnonzero(self._interner.has_value)

    @property
    def size(self) -> int:
        return self._interner.n_codes

    @property
    def lock(self) -> threading.Lock:
        """Held by whoever enters values into the interner."""
        return self._lock

    @property
    def interner(self) -> Interner:
        """For kernels that enter values, under the lock, or read those whose codes they hold."""
        return self._interner

    def taken(self, codes: np.ndarray) -> pa.Array:
        """The values of codes, as an array of the dictionary's own type.  O(bytes of the values)."""
        return self._array_of(*self._interner.taken(codes))

    def hashes(self, codes: np.ndarray) -> np.ndarray:
        with self._lock:
            hashes = self._interner.hashes
        return hashes[codes]

    def _all(self) -> tuple[np.ndarray, pa.Array]:
        """All codes that have a value, increasing, and their values."""
        with self._lock:
            codes = np.flatnonzero(self._interner.has_value)
            return codes, self.taken(codes)

    # -- values that nobody needs any more (:mod:`lftj.values.collector`) ------------------

    def serve(self, table: CodeTable) -> None:
        """Have a table forget codes when their values go; as long as it lives."""
        self._tables.add(table)

    @property
    def n_values(self) -> int:
        """Values that are there."""
        return len(self._interner)

    @property
    def n_codes(self) -> int:
        """All codes are below; those of values that are gone are given again."""
        return self._interner.n_codes

    @property
    def n_added(self) -> int:
        """Values that ever were new."""
        return self._interner.n_added

    @property
    def is_nearly_full(self) -> bool:
        """Whether values would have to be moved for there to be room in time."""
        return self._interner.is_nearly_full

    def begin(self) -> np.ndarray:
        """From now on a value stays if it is encoded or kept; returns codes that have to be kept."""
        with self._lock:
            self._interner.begin()
            return np.array(list(self._constants), np.int64)

    def keep(self, codes: np.ndarray, first: int, last: int) -> int:
        """Have the values of ``codes[first:last]`` stay; returns ``last``.  What is no code is ignored."""
        with self._lock:
            return self._interner.keep(codes, first, last)

    def end(self) -> None:
        """All values that do not stay are gone."""
        with self._lock:
            if not self._interner.is_moving:
                return
            kept = self._interner.kept
            for table in list(self._tables):
                table.forget(kept)
            self._interner.end()

    @property
    def nbytes(self) -> int:
        """Memory that the dictionary takes."""
        return self._interner.nbytes + self._ranks[1].nbytes

    def _literal(self, value: Value) -> tuple[pa.Scalar | None, bool]:
        """The greatest possible value <= the literal (None: there is none), and whether the two are equal."""
        if not isinstance(value, str if self.name == "string" else bytes):
            raise self._clash(value)
        try:
            return pa.scalar(value, self._value_type), True
        except UnicodeEncodeError:
            raise TypeClashError(
                f"the string {value!r} is no Unicode text: it holds half a surrogate pair"
            ) from None

    def _hashable(self, column: ArrowColumn) -> ArrowColumn:
        """The column in a type that pyarrow can find the distinct values of."""
        return without_views(column)

    def _canonical(self, values: pa.Array) -> pa.Array:
        """Values of any type of this domain in the dictionary's type."""
        return values.cast(self._value_type)

    def _bytes_of(self, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Bytes and offsets of values in the dictionary's type, as the interner takes them."""
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
        return np.frombuffer(data if data is not None else b"", dtype=np.uint8), bounds

    def _array_of(self, data: np.ndarray, offsets: np.ndarray) -> pa.Array:
        """Inverse of :meth:`_bytes_of`."""
        return pa.Array.from_buffers(
            self._value_type, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        if len(column) == 0:
            return np.empty(0, dtype=np.int64)
        found = self._hashable(column)
        if len(column) <= FEW_VALUES:
            return joined([self._codes_of_values(chunk) for chunk in chunks_of(found)], np.int64)
        hashable = pa.chunked_array(chunks_of(found))
        if _mostly_differ(hashable):
            return joined([self._codes_of_values(chunk) for chunk in hashable.chunks], np.int64)
        encoded = hashable.dictionary_encode().unify_dictionaries()
        codes = self._codes_of_values(encoded.chunk(0).dictionary)
        return joined([codes.take(chunk.indices.to_numpy()) for chunk in encoded.chunks], np.int64)

    def _codes_of_values(self, values: pa.Array) -> np.ndarray:
        return self.of_bytes(*self._bytes_of(self._canonical(values)))

    def of_bytes(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Codes of texts or binary strings, int64; ``data``, ``offsets``: as the interner takes them."""
        with self._lock:
            return self._interner.codes(data, offsets)

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        return self.taken(codes).cast(arrow_type)


class DecimalDomain(DictionaryDomain):
    """Decimals, as values and as whole numbers."""

    def __init__(self, collector: Collector) -> None:
        super().__init__("decimal", DECIMAL, collector)
        self._unscaled: dict[int, UnscaledTable] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_unscaled": {}}

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(table.nbytes for table in list(self._unscaled.values()))

    def unscaled(self, codes: np.ndarray, scale: int) -> Numbers | None:
        """The values in units of ``10**-scale``; None where one is no whole number of 64 bits, or NULL.

        >>> decimal = new_domain("decimal")
        >>> decimal.unscaled(decimal.encode(pa.array([Decimal("1.5"), Decimal(2)])), 1).values.tolist()
        [15, 20]
        """
        if scale not in SCALES:
            return None
        if scale not in self._unscaled:
            table = UnscaledTable(scale, self._lock)
            if self._unscaled.setdefault(scale, table) is table:
                self.serve(table)
        return self._unscaled[scale].of(codes, self._interner)

    def encode_unscaled(self, numbers: Numbers) -> np.ndarray:
        """Inverse of :meth:`unscaled`: the scale is one of :data:`~lftj.values.unscaled.SCALES`."""
        values, least = numbers.values, np.int64(numbers.least)
        if len(values) <= FEW_VALUES:
            return self._codes_of(numbers)
        if numbers.most - numbers.least < len(values):  # there are fewer different ones than rows
            places = values - least
            is_there = np.zeros(numbers.most - numbers.least + 1, bool)
            is_there[places] = True
            found = np.flatnonzero(is_there)
            code_of = np.empty(len(is_there), np.int64)
            code_of[found] = self._codes_of(numbers._replace(values=found + least))
            return code_of.take(places)
        rows = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
        encoded = rows.dictionary_encode()
        codes = self._codes_of(numbers._replace(values=encoded.dictionary.to_numpy()))
        return codes[encoded.indices.to_numpy()]

    def of_numbers(self, numbers: Numbers) -> np.ndarray:
        return self.encode_unscaled(numbers)

    def _codes_of(self, numbers: Numbers) -> np.ndarray:
        """Codes of numbers, one after the other."""
        data = value_bytes(numbers)
        with self._lock:
            return self._interner.codes(data, np.arange(len(numbers.values) + 1) * VALUE_BYTES)

    def _literal(self, value: Value) -> tuple[pa.Scalar | None, bool]:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != value:
            raise self._clash(value)
        # A float counts as what its shortest form says: 1e-3 is 0.001, not the double next to it.
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if exact <= -_BEYOND:
            return None, False
        if exact >= _BEYOND:
            return pa.scalar(_LARGEST, DECIMAL), False
        floor = exact.quantize(_STEP, decimal.ROUND_FLOOR, _EXACT)
        return pa.scalar(floor, DECIMAL), floor == exact

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        numbers = [numbers_of_array(chunk) for chunk in chunks_of(column)]
        if None in numbers:
            return super()._encode_plain(column)
        return joined([self.encode_unscaled(one) for one in numbers if one is not None], np.int64)

    def _hashable(self, column: ArrowColumn) -> ArrowColumn:
        if column.type.bit_width < 128:
            return column.cast(pa.decimal128(column.type.precision, column.type.scale))
        return column

    def _canonical(self, values: pa.Array) -> pa.Array:
        return canonical_decimals(values)

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        numbers = self.unscaled(codes, arrow_type.scale)
        if numbers is not None and numbers.fits(arrow_type.precision):
            return numbers.array(arrow_type)
        return cast_decimal(self.taken(codes), arrow_type)

    def _bytes_of(self, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        data = np.frombuffer(values.buffers()[1], dtype=np.uint8)
        return data, (np.arange(len(values) + 1) + values.offset) * VALUE_BYTES

    def _array_of(self, data: np.ndarray, offsets: np.ndarray) -> pa.Array:
        return pa.Array.from_buffers(DECIMAL, len(offsets) - 1, [None, pa.py_buffer(data)])


def canonical_decimals(values: pa.Array) -> pa.Array:
    """Decimals of any type as :data:`DECIMAL`.  Raises :class:`~lftj.errors.RangeError`."""
    try:
        return cast_decimal(values, DECIMAL)
    except pa.ArrowInvalid:
        raise RangeError(
            f"a value of type {values.type} has more than 38 digits before or after the point,"
            " too many for a key"
        ) from None


def _mostly_differ(column: pa.ChunkedArray) -> bool:
    """Whether values hardly repeat, as the first of them show: then it takes longer to find those that do."""
    first = column[:FIRST_ROWS]
    return 4 * pc.count_distinct(first).as_py() > 3 * len(first)


def _comparison(operator: str) -> pc.Function:
    names = {
        "<": "less",
        "<=": "less_equal",
        ">": "greater",
        ">=": "greater_equal",
        "=": "equal",
        "!=": "not_equal",
    }
    return getattr(pc, names[operator])
