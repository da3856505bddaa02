"""Values of one type as those of another of the same kind: exactly, or refused.

Kinds that are no number, and timestamps with and without a zone, never become one another: an instant is no
local time.  But a timestamp without zone is a date, where it has no time of day, as all dates of pandas are.
Integers become floats and decimals, which become no integers.  Lists become others as their elements do.

Cost: whole-array operations; of what is refused the first row is found by bisection.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, first_refused
from lftj.values.comparisons import compare_arrays
from lftj.values.domain import ArrowColumn, chunks_of
from lftj.values.kinds import cast_decimal, kind, plain_array, plain_type, typed_array


class InexactError(Exception):
    """A value that the type does not hold.  ``row``: its place; ``value``: an array of it alone."""

    def __init__(self, row: int, value: pa.Array) -> None:
        super().__init__(row, value)
        self.row = row
        self.value = value


def converts(source: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can be some of another, if they are not too large or too fine.

    >>> converts(pa.int64(), pa.decimal128(12, 2)), converts(pa.timestamp("s"), pa.time64("us"))
    (True, False)
    """
    source, wanted = plain_type(source), plain_type(wanted)
    if pa.types.is_null(source) or source == wanted:
        return True
    before, after = kind(source), kind(wanted)
    if before == after == "list":
        return converts(source.value_type, wanted.value_type)
    if before == after == "timestamp":
        return (source.tz is None) == (wanted.tz is None)
    if before == "timestamp" and after == "date":
        return source.tz is None
    return before != "other" and (before == after or (before == "integer" and after in ("float", "decimal")))


def exactly(column: ArrowColumn, wanted: pa.DataType) -> pa.ChunkedArray:
    """The values in a type of the domain of ``wanted``, all of which ``wanted`` holds; NULL stays.

    The type of ``column`` :func:`converts`.  Raises :class:`InexactError`.

    >>> exactly(pa.array([1, 250]), pa.decimal128(4, 2)).to_pylist()
    Traceback (most recent call last):
    lftj.values.exact_casts.InexactError: (1, <pyarrow.lib.Int64Array object at ...>
    [
      250
    ])
    """
    plain = plain_type(wanted)
    chunks = [plain_array(chunk) for chunk in chunks_of(column)]
    if not chunks:
        return pa.chunked_array([], plain)
    convert = _conversion(chunks[0].type, plain)
    done, first = [], 0
    for chunk in chunks:
        try:
            done.append(convert(chunk))
        except pa.ArrowInvalid:
            row = first_refused(convert, [chunk])
            raise InexactError(first + row, chunk.slice(row, 1)) from None
        first += len(chunk)
    return pa.chunked_array(done)


def _conversion(source: pa.DataType, wanted: pa.DataType) -> Kernel:
    """Raises ``pa.ArrowInvalid`` where it would be inexact."""
    before, after = kind(source), kind(wanted)
    if source == wanted or before == "string":
        return lambda values: values
    if before == "binary":
        return lambda values: _of_width(values, wanted)
    if before == after == "list":
        return partial(_lists, _conversion(*(plain_type(one.value_type) for one in (source, wanted))), wanted)
    if after == "float":
        return lambda values: _floats(values, wanted)
    if before == "timestamp" and after == "date":
        return lambda values: _dates(values, wanted)
    if after == "decimal" and before in ("integer", "decimal"):
        return lambda values: cast_decimal(_decimals(values), wanted)
    return lambda values: values.cast(wanted)


def _dates(moments: pa.Array, wanted: pa.DataType) -> pa.Array:
    """pyarrow's own cast takes the day of any time."""
    dates = moments.cast(wanted)
    if not dates.cast(moments.type).equals(moments):
        raise pa.ArrowInvalid("not exact")
    return dates


def _of_width(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not pa.types.is_fixed_size_binary(wanted):
        return values
    values = values.cast(pa.large_binary())
    if pc.any(pc.not_equal(pc.binary_length(values), wanted.byte_width)).as_py():
        raise pa.ArrowInvalid("of another width")
    return values


def _lists(convert: Kernel, wanted: pa.DataType, lists: pa.Array) -> pa.Array:
    """``convert``: what makes plain elements of theirs."""
    from lftj.values.lists import array_of_lists, offsets_of  # with the compiler

    elements = typed_array(convert(plain_array(lists.flatten())), wanted.value_type)
    known = lists.is_valid().to_numpy(zero_copy_only=False) if lists.null_count else None
    return array_of_lists(offsets_of(lists), elements, wanted, known)


def _decimals(numbers: pa.Array) -> pa.Array:
    return numbers if pa.types.is_decimal(numbers.type) else numbers.cast(pa.decimal128(20, 0))


def _floats(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_null(numbers.type):
        return numbers.cast(wanted)
    # numpy's way: pyarrow has no cast from integers to float16.
    there = numbers.drop_null()
    with np.errstate(over="ignore"):
        floats = there.to_numpy(zero_copy_only=False).astype(wanted.to_pandas_dtype())
    wide = pa.array(floats.astype(np.float64))
    same = _equal(there, wide)
    if not same.all():
        raise pa.ArrowInvalid("not exact")
    if not numbers.null_count:
        return pa.array(floats, wanted)
    return pc.replace_with_mask(pa.nulls(len(numbers), wide.type), numbers.is_valid(), wide).cast(wanted)


def _equal(numbers: pa.Array, floats: pa.Array) -> np.ndarray:
    """NaN is NaN here."""
    if pa.types.is_unsigned_integer(numbers.type) and numbers.type.bit_width == 64:
        # Where float64 rounds up to 2**64 the integer is odd: no float equals it.
        values, rounded = numbers.to_numpy(), floats.to_numpy()
        fits = rounded < 2.0**64
        same: np.ndarray = np.where(fits, rounded, 0.0).astype(np.uint64) == values
        return same & fits
    if kind(numbers.type) == "float":
        wide = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
        there = floats.to_numpy()
        return (wide == there) | (np.isnan(wide) & np.isnan(there))
    return compare_arrays("=", numbers, floats).to_numpy(zero_copy_only=False)
