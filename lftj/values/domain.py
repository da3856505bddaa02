"""Domains: how values of Arrow columns become the ``int64`` codes that the engine joins.

A domain is a set of values that may meet in a join, whatever the width or
encoding of the columns that they stand in: ``int8`` and ``uint64`` are both
*integer*, a dictionary-encoded string and a string view are both *string*.

Invariants

1. Two values of one domain are equal exactly when their codes are equal
   (floats: ``-0.0`` equals ``0.0``, and every NaN is the one :data:`NAN_CODE`).
2. In an ordered domain a smaller value has a smaller code; NaN has the largest.
3. ``decode(encode(column), column.type)`` gives the column back, value by
   value and of the same Arrow type (of floats: without sign of zero and NaN payload).
4. A code never changes its meaning while anybody holds it (:mod:`lftj.values.collector`), of an
   ordered domain never.
5. Of a domain that keeps NULL :data:`NULL_CODE` is the code of NULL, and of no value: a value that would
   have it is refused.

Cost: whole-array operations throughout; ``int64``, timestamp, duration and
``time64`` columns in one chunk are taken without a copy.

Which types have which domain: :mod:`lftj.values.domains`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from indices.keys import KEY_MIN
from lftj.errors import RangeError, TypeClashError
from lftj.values.kinds import typed_array
from lftj.values.literals import Value, literal_kind

if TYPE_CHECKING:
    from lftj.values.collector import Collector
    from lftj.values.unscaled import Numbers

EMPTY_INTERVAL = (0, -1)
"""What :meth:`Domain.interval` returns when no code fits."""

NAN_CODE = int(np.float64("nan").view(np.int64))
"""The code of NaN in the float domain: above that of infinity."""

NULL_CODE = KEY_MIN
"""The code of NULL in a domain that keeps it: below those of all values."""

ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray


class Domain(ABC):
    """A set of values with their ``int64`` codes; compared by identity."""

    name: str
    ordered: bool = True
    integral: bool = False
    collector: Collector | None = None
    """Frees codes that nobody holds any more, of a domain that has a dictionary."""
    keeps_null: bool = False
    """Whether columns of it may hold NULL."""

    def __repr__(self) -> str:
        return f"<Domain {self.name}>"

    def encode(self, column: ArrowColumn) -> np.ndarray:
        """Codes of a column without NULLs, ``int64``, of its length.

        The array may share the column's memory: copy it before writing.
        Raises :class:`~lftj.errors.RangeError` when a value has no code (``uint64`` above ``2**63 - 1``).

        >>> from lftj.values.domains import Domains
        >>> Domains().of(pa.int8()).encode(pa.array([3, -1], pa.int8())).tolist()
        [3, -1]
        """
        if isinstance(column.type, pa.BaseExtensionType):
            storage = pa.chunked_array([c.storage for c in chunks_of(column)], column.type.storage_type)
            return self.encode(storage)
        if pa.types.is_dictionary(column.type):
            return self._encode_dictionary(column)
        return self._encode_plain(column)

    def of_numbers(self, numbers: Numbers) -> np.ndarray:
        """Codes of values that were read as whole numbers: of integers, of moments, of decimals."""
        return numbers.values

    def encode_nullable(self, column: ArrowColumn) -> np.ndarray:
        """Like :meth:`encode`, of a column that may hold NULL; from now on the domain keeps NULL.

        >>> from lftj.values.domains import Domains
        >>> Domains().of(pa.int8()).encode_nullable(pa.array([3, None], pa.int8())).tolist() == [3, NULL_CODE]
        True
        """
        self.keep_null()
        missing = null_mask(column)
        if missing is None:
            return self.encode(column)
        codes = np.full(len(column), NULL_CODE, np.int64)
        codes[~missing] = self.encode(taken(column, np.flatnonzero(~missing)))
        return codes

    def keep_null(self) -> None:
        """From now on columns may hold NULL.  Raises RangeError where a value has its code already."""
        self.keeps_null = True

    def claim(self, codes: np.ndarray) -> None:
        """See that no code of values is that of NULL.  Raises RangeError.

        Only the least of 64-bit numbers would have it (:mod:`lftj.values.whole`).
        """
        assert not (self.keeps_null and len(codes) and codes.min() == NULL_CODE)

    def decode(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        """The values of ``codes`` as an array of exactly ``arrow_type``, a type of this domain.

        Raises :class:`~lftj.errors.RangeError` when a value does not fit the type,
        or all of them together don't: an array of ``string`` or ``binary`` holds 2 GiB at most, one of
        ``list`` as many elements.

        >>> from lftj.values.domains import Domains
        >>> Domains().of(pa.date32()).decode(np.array([0, 20484]), pa.date32()).to_pylist()
        [datetime.date(1970, 1, 1), datetime.date(2026, 1, 31)]
        """
        if isinstance(arrow_type, pa.BaseExtensionType):
            return arrow_type.wrap_array(self.decode(codes, arrow_type.storage_type))
        if self.keeps_null:
            missing = codes == NULL_CODE
            if missing.any():
                return self._decode_with_null(codes, missing, arrow_type)
        try:
            if pa.types.is_dictionary(arrow_type):
                return self._decode_dictionary(codes, arrow_type)
            return self._decode_plain(codes, arrow_type)
        except pa.ArrowInvalid as error:
            raise RangeError(f"values of domain {self.name} don't fit type {arrow_type}: {error}") from None

    def decode_chunked(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.ChunkedArray:
        """Like :meth:`decode`, for any number of codes: in several chunks where one array can't hold them.

        >>> from lftj.values.domains import Domains
        >>> Domains().of(pa.int8()).decode_chunked(np.array([1, 2]), pa.int8()).num_chunks
        1
        """
        return pa.chunked_array(self._decode_parts(codes, arrow_type), arrow_type)

    def _decode_parts(self, codes: np.ndarray, arrow_type: pa.DataType) -> list[pa.Array]:
        try:
            return [self.decode(codes, arrow_type)]
        except RangeError:
            types = pa.types
            narrow = any(is_it(arrow_type) for is_it in (types.is_string, types.is_binary, types.is_list))
            if not narrow or len(codes) < 2:
                raise
        half = len(codes) // 2
        return self._decode_parts(codes[:half], arrow_type) + self._decode_parts(codes[half:], arrow_type)

    @abstractmethod
    def encode_constant(self, value: Value) -> int | None:
        """The code of a rule's literal; None when no value of this domain equals it.

        Never adds to a dictionary.  Raises :class:`~lftj.errors.TypeClashError`
        when the literal's kind can't be of this domain.

        >>> from decimal import Decimal
        >>> from lftj.values.domains import Domains
        >>> integer = Domains().of(pa.int32())
        >>> integer.encode_constant(5), integer.encode_constant(Decimal("2.5"))
        (5, None)
        """

    def code_of_constant(self, value: Value, lasting: bool = True) -> int | None:
        """Like :meth:`encode_constant`, and adds to the dictionary: later rows may hold the value.

        ``lasting``: the code keeps its value for ever, whoever holds it.
        """
        return self.encode_constant(value)

    def interval(self, operator: str, value: Value) -> tuple[int, int]:
        """For ordered domains: the closed interval ``(lo, hi)`` of the codes x with ``x operator value``.

        ``operator`` is one of ``< <= > >= =``.  ``lo > hi`` when there are none.
        NaN, as in IEEE 754, is in no interval.  Raises :class:`~lftj.errors.TypeClashError`.

        >>> from decimal import Decimal
        >>> from lftj.values.domains import Domains
        >>> integer = Domains().of(pa.int64())
        >>> integer.interval("=", 7), integer.interval("<", Decimal("2.5"))[1]
        ((7, 7), 2)
        """
        raise TypeError(f"domain {self.name} is not ordered: use select()")

    def steps(self, value: Value) -> int | None:
        """By how much a code grows where a literal is added to its value; None where codes don't tell.

        >>> from datetime import timedelta
        >>> from lftj.values.domains import Domains
        >>> milliseconds = Domains().of(pa.timestamp("ms"))
        >>> milliseconds.steps(timedelta(seconds=10)), milliseconds.steps(timedelta(microseconds=1))
        (10000, None)
        """
        return None

    def select(self, operator: str, value: Value, among: np.ndarray | None = None) -> np.ndarray:
        """For unordered domains: the sorted codes x in the dictionary with ``x operator value``.

        ``among``: of these codes only, increasing and none of NULL.  ``operator`` is one of
        ``< <= > >= = !=``.  Raises :class:`~lftj.errors.TypeClashError`.

        >>> from lftj.values.domains import Domains
        >>> string = Domains().of(pa.string())
        >>> string.encode(pa.array(["pear", "apple", "plum"])).tolist(), string.select("<", "pg").tolist()
        ([0, 1, 2], [0, 1])
        """
        raise TypeError(f"domain {self.name} is ordered: use interval()")

    def known(self) -> np.ndarray:
        """For unordered domains: all codes that have a value, increasing."""
        raise TypeError(f"domain {self.name} is ordered: it has no dictionary")

    @property
    def size(self) -> int:
        """For unordered domains: how many codes there are, about."""
        raise TypeError(f"domain {self.name} is ordered: it has no dictionary")

    def ranks(self) -> np.ndarray:
        """For unordered domains: at index c the place of code c in the order of values.

        >>> from lftj.values.domains import Domains
        >>> string = Domains().of(pa.string())
        >>> string.encode(pa.array(["pear", "apple", "plum"])).tolist(), string.ranks().tolist()
        ([0, 1, 2], [1, 0, 2])
        """
        raise TypeError(f"domain {self.name} is ordered: codes are ranks")

    def places(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For unordered domains: numbers in the order of the codes' values, and the code of each number.

        Few codes are sorted by themselves, O(m log m), whatever the size of the dictionary.

        >>> from lftj.values.domains import Domains
        >>> string = Domains().of(pa.string())
        >>> places, codes = string.places(string.encode(pa.array(["pear", "apple", "plum", "pear"])))
        >>> places.tolist(), codes.tolist()
        ([1, 0, 2, 1], [1, 0, 2])
        """
        raise TypeError(f"domain {self.name} is ordered: codes are places")

    def hashes(self, codes: np.ndarray) -> np.ndarray:
        """A hash of each code's value, uint64: equal values have equal ones, in every process.

        Ordered domains have the same codes in every process, so a code serves as it is.

        >>> from lftj.values.domains import Domains
        >>> integer = Domains().of(pa.int8())
        >>> integer.hashes(np.array([3, 3])).tolist()
        [3, 3]
        """
        return codes.view(np.uint64)

    @abstractmethod
    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        """Codes of a column of a type that is neither dictionary-encoded nor an extension."""

    @abstractmethod
    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        """Inverse of :meth:`_encode_plain`."""

    def _decode_with_null(self, codes: np.ndarray, missing: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        return spread(self.decode(codes[~missing], arrow_type), missing)

    def _encode_dictionary(self, column: ArrowColumn) -> np.ndarray:
        """Each dictionary's used values once, then one gather per chunk."""
        parts = []
        for chunk in chunks_of(column):
            # A dictionary may hold values, even NULL, that no row uses: they get no code.
            indices = chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            used = np.zeros(len(chunk.dictionary), dtype=bool)
            used[indices] = True
            codes = np.zeros(len(used), dtype=np.int64)
            codes[used] = self.encode(without_views(chunk.dictionary).filter(pa.array(used)))
            parts.append(codes[indices])
        return joined(parts, np.int64)

    def _decode_dictionary(self, codes: np.ndarray, arrow_type: pa.DictionaryType) -> pa.Array:
        encoded = pa.array(codes, pa.int64()).dictionary_encode()
        values = self.decode(encoded.dictionary.to_numpy(), arrow_type.value_type)
        indices = encoded.indices.cast(arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=arrow_type.ordered)

    def _clash(self, value: Value) -> TypeClashError:
        return TypeClashError(f"a {literal_kind(value)} can't be compared with values of type {self.name}")


def chunks_of(column: ArrowColumn) -> list[pa.Array]:
    """A column's arrays, whether it is one or several.

    >>> len(chunks_of(pa.array([1])))
    1
    """
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    """One array of all parts, the part itself when there is only one.

    >>> joined([np.array([1]), np.array([2])], np.int64).tolist(), joined([], np.int64).tolist()
    ([1, 2], [])
    """
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def null_mask(column: ArrowColumn) -> np.ndarray | None:
    """Which rows are NULL, by themselves or by their dictionary; None when no row is.

    >>> null_mask(pa.array([1, None])).tolist(), null_mask(pa.array([1]))
    ([False, True], None)
    """
    chunks = [chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in chunks_of(column)]
    if not any(chunk.null_count or _has_null_in_dictionary(chunk) for chunk in chunks):
        return None
    mask = np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in chunks])
    return mask if mask.any() else None


def _has_null_in_dictionary(chunk: pa.Array) -> bool:
    return pa.types.is_dictionary(chunk.type) and chunk.dictionary.null_count > 0


def taken(column: ArrowColumn, rows: np.ndarray) -> ArrowColumn:
    """Those rows of a column, in a type of the same domain.

    >>> taken(pa.array([5, 6, 7]), np.array([0, 2])).to_pylist()
    [5, 7]
    """
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in chunks_of(column)], column.type.storage_type)
    return without_views(column).take(pa.array(rows))


def spread(values: pa.Array, missing: np.ndarray) -> pa.Array:
    """The values one after the other in the rows that are not missing; NULL in those.

    >>> spread(pa.array([5, 6]), np.array([False, True, False])).to_pylist()
    [5, None, 6]
    """
    if not missing.any():
        return values
    places = np.cumsum(~missing) - 1
    found = without_views(values).take(pa.array(places, mask=missing))
    return found if found.type == values.type else found.cast(values.type)


def taken_as_it_is(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Those rows of a column, in its own type.

    >>> taken_as_it_is(pa.chunked_array([["a", "b"]], pa.string_view()), np.array([1])).type
    DataType(string_view)
    """
    found = taken(column, rows)
    if found.type == column.type:
        return found
    return pa.chunked_array([typed_array(chunk, column.type) for chunk in chunks_of(found)], column.type)


def where_null(missing: np.ndarray) -> str:
    """Of rows of which some are NULL: the first, and how many more, for messages.

    >>> where_null(np.array([False, True, True]))
    'NULL in row 1 (counting from 0) and in 1 more'
    """
    n_nulls = int(np.count_nonzero(missing))
    more = f" and in {n_nulls - 1:,} more" if n_nulls > 1 else ""
    return f"NULL in row {int(missing.argmax())} (counting from 0){more}"


def without_views(column: ArrowColumn) -> ArrowColumn:
    """View types, for which most of pyarrow's functions are missing, as their large counterparts.

    >>> without_views(pa.array(["a"], pa.string_view())).type
    DataType(large_string)
    """
    plain = viewless(column.type)
    return column if plain == column.type else column.cast(plain)


def viewless(arrow_type: pa.DataType) -> pa.DataType:
    """The type, with the large counterparts of view types, in lists too.

    >>> viewless(pa.string_view()), viewless(pa.list_(pa.binary_view())), viewless(pa.int8())
    (DataType(large_string), ListType(list<item: large_binary>), DataType(int8))
    """
    types = pa.types
    if types.is_string_view(arrow_type):
        return pa.large_string()
    if types.is_binary_view(arrow_type):
        return pa.large_binary()
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        element = viewless(arrow_type.value_type)
        if element != arrow_type.value_type:
            return pa.list_(element) if types.is_list(arrow_type) else pa.large_list(element)
    return arrow_type
