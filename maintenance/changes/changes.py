"""What a user hands to a transaction, as code columns of a relation, and changes as tables for the user."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indices.compiled import kernel
from lftj.errors import ChangeError, DataError, SourceError
from lftj.files.sources import RowWidthError, array_of_numpy, gathered, read_table, too_large
from lftj.storage.codes_table import shown_values
from lftj.storage.signed_rows import Columns
from lftj.values.domain import NULL_CODE, null_mask, taken_as_it_is, where_null
from lftj.values.domains import Domains
from lftj.values.exact_casts import InexactError, converts, exactly
from lftj.values.kinds import plain_type
from lftj.values.schema import Column, Schema
from lftj.values.spelling import spelled
from maintenance.changes.labels import op_label, txn_label, weight_label
from maintenance.changes.operations import operations
from maintenance.changes.signed import Signed

_INT64 = pa.int64()

_WITHOUT_WEIGHT = "; insert() and erase() take rows without one"
MOST_WEIGHT = 2**31
"""Weights are no larger, so that the sums of a transaction's stay within 64 bits."""


def encode_rows(
    name: str, schema: Schema, source: Any, domains: Domains, read: Collection[int] = ()
) -> Columns:
    """Rows of a source, in any form that ``load`` takes, as one int64 column per shown column of the schema.

    Of a wide relation there is one column, the rows' codes; ``read``: the columns in which NULL is refused
    where the relation keeps none, by number.  Rows may repeat.  Raises ChangeError, NullError and the errors
    of reading the source.
    """
    quick = _plain_integers(name, schema, source)
    if quick is not None:
        return quick
    rows = _plain_wide_rows(schema, source, read)
    if rows is not None:
        return [rows]
    return _codes(name, schema, _read(name, _types(schema), source, schema.key).columns, domains, read)


def encode_keys(name: str, schema: Schema, source: Any, domains: Domains) -> Signed:
    """Keys of a source, in any form that ``load`` takes, as what erases the rows of them."""
    types = {column: each for column, each in _types(schema).items() if column in schema.key}
    values = _read(name, {column: types[column] for column in schema.key}, source).columns
    return _erased(schema, _key_codes(name, schema, values, domains))


def encode_zset(
    name: str, schema: Schema, source: Any, domains: Domains, read: Collection[int] = ()
) -> Signed:
    """Rows of a source with a column ``weight``, or ``op``, in any place (:mod:`maintenance.changes.labels`).

    Raises ChangeError when there is none, when a weight is not an integer or beyond MOST_WEIGHT, and for
    what is no operation (:mod:`maintenance.changes.operations`).
    """
    quick = _plain_table(schema, source)
    if quick is not None:
        return Signed(*quick)
    if isinstance(source, list | tuple) and not len(source):
        source = pa.schema({**_types(schema), weight_label(schema): pa.int64()}).empty_table()
    return _signed(name, schema, source, domains, read, [])[0]


def encode_timed_zset(
    name: str, schema: Schema, source: Any, domains: Domains, read: Collection[int] = ()
) -> tuple[Signed, pa.ChunkedArray | None]:
    """The same, and the column ``txn``; None where there is none.

    Raises ChangeError as :func:`encode_zset`, and for a transaction that is NULL.
    """
    label = txn_label(schema)
    rows, table = _signed(name, schema, source, domains, read, [label])
    if label not in table.column_names:
        return rows, None
    transactions = table.column(label)
    if transactions.null_count:
        row = int(np.argmax(transactions.is_null().to_numpy()))
        raise ChangeError(f"changes of {name!r}: the {label} of row {row} (counting from 0) is NULL")
    return rows, transactions


def _signed(
    name: str,
    schema: Schema,
    source: Any,
    domains: Domains,
    read: Collection[int],
    optional: Sequence[str],
) -> tuple[Signed, pa.Table]:
    """Rows with weights or operations, and the table that they stand in."""
    columns, weight, op = list(_types(schema)), weight_label(schema), op_label(schema)
    try:
        table = _with_all_columns(source, [*columns, weight])
    except RowWidthError as error:
        raise _of_another_width(name, error, [*columns, weight], _WITHOUT_WEIGHT) from None
    except SourceError as error:
        raise ChangeError(f"changes of {name!r}: {error}") from None
    names = table.column_names
    sign = op if op in names and weight not in names else weight
    if sign not in names and set(columns) <= set(names):
        raise ChangeError(f"changes of {name!r} have no column {weight!r}, +1 or -1{_WITHOUT_WEIGHT}")
    check_columns(name, names, [*columns, sign], optional)
    if sign == weight:
        return Signed(*_encoded(name, schema, table.select([*columns, weight]), domains, read)), table
    weights, resets = operations(name, schema, table.column(op))
    values, has_row = table.select(columns).columns, weights != 0
    if has_row.all():
        return Signed(_codes(name, schema, values, domains, read), weights, resets), table
    known = [table.column(label) for label in schema.key]
    erased = _erased(schema, _key_codes(name, schema, known, domains))
    rows = np.array(erased.columns)
    rows[:, has_row] = _codes(name, schema, values, domains, read, has_row)
    return Signed(rows, weights, resets, erased.keys), table


def _erased(schema: Schema, keys: np.ndarray) -> Signed:
    """What erases the rows of some keys."""
    n = keys.shape[1]
    rows = np.zeros((len(schema.identity), n), np.int64)
    return Signed(rows, np.zeros(n, np.int64), np.ones(n, bool), keys)


def _encoded(
    name: str, schema: Schema, table: pa.Table, domains: Domains, read: Collection[int]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows and weights of a table whose last column has these."""
    weights = table.column(table.num_columns - 1)
    if not pa.types.is_integer(weights.type):
        raise ChangeError(f"changes of {name!r}: the weight is of type {weights.type}, not an integer")
    if weights.null_count:
        row = int(np.argmax(weights.is_null().to_numpy()))
        raise ChangeError(f"changes of {name!r}: the weight of row {row} (counting from 0) is NULL")
    numbers = weights.to_numpy()
    if len(numbers) and (numbers.max() > MOST_WEIGHT or numbers.min() < -MOST_WEIGHT):
        row = int(np.argmax((numbers > MOST_WEIGHT) | (numbers < -MOST_WEIGHT)))
        raise ChangeError(
            f"changes of {name!r}: the weight of row {row} (counting from 0) is {numbers[row]};"
            f" weights are from -{MOST_WEIGHT:,} to {MOST_WEIGHT:,}"
        )
    return _codes(name, schema, table.columns[:-1], domains, read), numbers.astype(np.int64)


def change_table(schema: Schema, columns: Columns, weights: np.ndarray) -> pa.Table:
    """A change as its columns' values and an int64 ``weight``, +1 or -1."""
    weight = array_of_numpy(np.ascontiguousarray(weights, np.int64))
    names = [column.name for column in schema.shown.columns]
    return pa.Table.from_arrays([*shown_values(schema, columns), weight], [*names, weight_label(schema)])


def _plain_integers(name: str, schema: Schema, source: Any) -> np.ndarray | None:
    """The quick way for a list of tuples of ints into int64 columns; None where it does not apply."""
    if not isinstance(source, list | tuple) or not source:
        return None
    if schema.wide or not schema.shown.is_whole:
        return None
    width = len(schema.shown.columns)
    for row in source:
        if type(row) is not tuple or len(row) != width:
            return None
        for value in row:
            if type(value) is not int:
                return None
    try:
        matrix = np.array(source, dtype=np.int64)
    except OverflowError:
        values = (value for row in source for value in row)
        raise ChangeError(f"changes of {name!r}: {too_large(values, width)}") from None
    if matrix.min() == NULL_CODE:
        return None
    return np.ascontiguousarray(matrix.T)


def _plain_table(schema: Schema, source: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The quick way for an Arrow table of int64 columns, in order; None where it does not apply.

    Such columns have no offsets that could lead nowhere, so there is nothing to validate.
    """
    if type(source) is not pa.Table or schema.wide or not schema.shown.is_whole:
        return None
    given, names = source.schema, [column.name for column in schema.shown.columns]
    if given.names != [*names, weight_label(schema)] or given.types != [_INT64] * (len(names) + 1):
        return None
    batches = source.to_batches()
    if len(batches) != 1:
        return None
    try:
        rows = batches[0].to_tensor(row_major=False).to_numpy().T
    except pa.ArrowTypeError:  # there are NULLs
        return None
    return (rows[:-1], rows[-1]) if _are_plain(rows, NULL_CODE, MOST_WEIGHT) else None


def _plain_wide_rows(schema: Schema, source: Any, read: Collection[int]) -> np.ndarray | None:
    """The quick way for an Arrow table of a wide relation's columns and types; None where it does not apply.

    Only offsets and dictionaries could lead nowhere.
    """
    if not schema.wide or type(source) is not pa.Table:
        return None
    like, domain, given = schema.shown.arrow, schema.rows, source.schema
    if not given.equals(like) and (given.names != like.names or given.types != like.types):
        return None
    batches = source.to_batches()
    if len(batches) != 1:
        return None
    (batch,) = batches
    try:
        batch.validate(full=True)
    except (pa.ArrowException, ValueError):
        return None  # which says more
    refusing = schema.required_bits
    for number in read:
        if number and not schema.columns[number].type.nullable:
            refusing |= 1 << (number - 1)
    return domain.codes_where_known(batch, refusing)


@kernel
def _are_plain(rows, least, most):  # type: ignore[no-untyped-def]
    """Whether no column of int64 (columns, n) has the least number, and the last one none beyond most."""
    plain = True
    last = rows.shape[0] - 1
    for column in range(last):
        for row in range(rows.shape[1]):
            plain &= rows[column, row] != least
    for row in range(rows.shape[1]):
        plain &= (-most <= rows[last, row]) & (rows[last, row] <= most)
    return plain


def _types(schema: Schema) -> dict[str, pa.DataType]:
    return {column.name: column.type.arrow for column in schema.shown.columns}


def _of_another_width(name: str, error: RowWidthError, columns: Sequence[str], way_out: str) -> ChangeError:
    shown = ", ".join(columns)
    return ChangeError(f"changes of {name!r}: {error.found}; a row is ({shown}){way_out}")


def _read(name: str, types: Mapping[str, pa.DataType], source: Any, key: Sequence[str] = ()) -> pa.Table:
    """A source with exactly these columns, in this order; one without names has them so already.

    ``key``: that of the relation, where these are all of its columns.
    """
    wanted = list(types)
    if isinstance(source, list | tuple) and not len(source):
        return pa.schema(types).empty_table()
    try:
        table = _with_all_columns(source, wanted)
    except RowWidthError as error:
        by_key = f"; erase_keys({name!r}, ...) takes keys alone" if error.width == len(key) else ""
        raise _of_another_width(name, error, wanted, by_key) from None
    except SourceError as error:
        raise ChangeError(f"changes of {name!r}: {error}") from None
    if key and len(key) < len(wanted) and set(table.column_names) == set(key):
        raise ChangeError(
            f"changes of {name!r} have the key alone, {', '.join(key)}; a row is ({', '.join(wanted)});"
            f" erase_keys({name!r}, ...) takes keys alone"
        )
    check_columns(name, table.column_names, wanted)
    return table.select(wanted)


def _with_all_columns(source: Any, names: Sequence[str]) -> pa.Table:
    """The source with all columns that it has; ``names`` are for one whose columns have none."""
    source = gathered(source)
    if _is_rows(source):
        return read_table(source, names)
    try:
        return read_table(source)
    except SourceError:
        if not isinstance(source, str | os.PathLike):
            raise
        return read_table(source, names)  # CSV without a header; what else is wrong is said again


def _is_rows(source: Any) -> bool:
    """Whether the source is tuples, or an array without names."""
    if isinstance(source, np.ndarray):
        return source.dtype.names is None
    if isinstance(source, list | tuple) and (
        not source or isinstance(source[0], str | os.PathLike | Mapping | pa.RecordBatch | pa.Table)
    ):
        return not source
    named = ("__arrow_c_stream__", "__arrow_c_array__", "read", "fetchall", "is_directed")
    return isinstance(source, Iterable) and not (
        isinstance(source, str | os.PathLike | Mapping) or any(hasattr(source, name) for name in named)
    )


def check_columns(
    relation: str, names: Sequence[str], required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """See that changes have the columns that they must have and no others.  Raises ChangeError."""
    for name in names:
        if name in required or name in optional:
            continue
        free = [other for other in (*required, *optional) if other not in names]
        near = difflib.get_close_matches(name, free, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there may be {', '.join((*required, *optional))}"
        raise ChangeError(f"changes of {relation!r} have no column {name!r}; {hint}")
    for name in required:
        if name not in names:
            like = f" and, if they like, {', '.join(optional)}" if optional else ""
            raise ChangeError(
                f"there is no column {name!r}; changes of {relation!r} have {', '.join(required)}{like}"
            )


def _takes_null(schema: Schema, number: int, read: Collection[int]) -> bool:
    """Whether changes may hold NULL in a column."""
    column = schema.columns[number]
    return column.type.nullable or (schema.wide and number not in read and not column.required)


def _codes(
    name: str,
    schema: Schema,
    values_of: Sequence[pa.ChunkedArray],
    domains: Domains,
    read: Collection[int],
    taken: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The codes of rows.  ``taken``: bool (n,), which of them; None: all."""
    columns: list[Any] = []
    for number, values in zip(schema.declared, values_of, strict=True):
        declared = schema.columns[number]
        missing = None if _takes_null(schema, number, read) else null_mask(values)
        if missing is not None and taken is not None:
            missing = missing & taken if (missing & taken).any() else None
        if missing is not None:
            why = "the column is declared NOT NULL: give a value, or load the relation without that"
            if declared.name in schema.key:
                why = "the column is one of the key: give a value"
            elif schema.stream is not None and declared.name == schema.stream.time:
                why = "the column is the time of a stream: give a value"
            elif not declared.required:
                why = 'the relation was loaded without nulls="keep"'
            raise ChangeError(f"changes of {name!r}, column {declared.name!r}: {where_null(missing)}; {why}")
        if taken is not None:
            values = taken_as_it_is(values, np.flatnonzero(taken))
        if schema.wide:
            if values.type != declared.type.arrow:
                values = _cast(name, declared.name, values, declared.type.arrow)
            columns.append(values if values.type == declared.type.arrow else values.cast(declared.type.arrow))
        else:
            columns.append(_column_codes(name, declared, values, domains))
    return [schema.rows.codes(columns)] if schema.wide else columns


def _key_codes(
    name: str, schema: Schema, values_of: Sequence[pa.ChunkedArray], domains: Domains
) -> np.ndarray:
    """The codes of keys, int64 (columns of the key, n)."""
    codes = []
    for number, values in zip(schema.key_numbers, values_of, strict=True):
        declared, missing = schema.columns[number], null_mask(values)
        if missing is not None:
            raise ChangeError(
                f"changes of {name!r}, column {declared.name!r}: {where_null(missing)}; the column is one of"
                " the key: give a value"
            )
        codes.append(_column_codes(name, declared, values, domains))
    return np.array(codes)


def _column_codes(name: str, declared: Column, values: pa.ChunkedArray, domains: Domains) -> np.ndarray:
    domain = declared.type.domain
    if values.type != declared.type.arrow:
        values = _cast(name, declared.name, values, declared.type.arrow)
        domain = domains.of(values.type)
    try:
        codes = domain.encode_nullable(values) if declared.type.nullable else domain.encode(values)
    except DataError as error:
        raise type(error)(f"changes of {name!r}, column {declared.name!r}: {error}") from None
    return np.ascontiguousarray(codes, dtype=np.int64)


def _cast(name: str, column: str, values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Values in a type of the relation's domain, if all of them are exactly values of the relation's type."""
    if not converts(values.type, wanted):
        if not len(values):
            return pa.chunked_array([], wanted)
        first = spelled(values.slice(0, 1).combine_chunks())
        raise ChangeError(
            f"changes of {name!r}, column {column!r}: the values are of type {values.type}, the relation's of"
            f" type {wanted}; row 0 (counting from 0) is {first}: cast the values before,"
            f" {_way_out(name, plain_type(values.type), wanted)}"
        )
    try:
        return exactly(values, wanted)
    except InexactError as error:
        nearest = f", or take the nearest by table.cast(ws[{name!r}].schema, safe=False)"
        raise ChangeError(
            f"changes of {name!r}, column {column!r}, row {error.row} (counting from 0): type {wanted} does"
            f" not hold {spelled(error.value)} exactly: cast it before to a value that the type holds"
            + nearest
            * pa.types.is_floating(plain_type(wanted))
        ) from None


def _way_out(name: str, source: pa.DataType, wanted: pa.DataType) -> str:
    """How values become such of another domain."""
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(wanted):
        if source.tz is None:
            return "as pyarrow.compute.assume_timezone(values, zone) does"
        return "as pyarrow.compute.local_timestamp(values) does for the local time"
    return f"as in table.cast(ws[{name!r}].schema)"
