"""Columns of codes of a wide relation's rows, each coded when it is asked for first.

Column 0 is the rows' own codes (:mod:`lftj.values.rows`), which no two rows share; the others are those that
the relation was declared with.  What nobody reads is never coded, and may hold what a column that is read
must not: NULL where the relation keeps none, a number without a code.  Estimates read some rows alone.

Invariant: a column that was coded stays as it is; whoever holds these columns holds its codes.

Cost: of a column its values, once; of few rows the bytes are looked up once for all columns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast, overload

import numpy as np
import pyarrow as pa

from lftj.errors import NullError, RangeError
from lftj.values.collector import Coded
from lftj.values.domain import null_mask, where_null
from lftj.values.kinds import plain_array
from lftj.values.schema import Schema

if TYPE_CHECKING:  # they bring the compiler
    from lftj.values.dictionary import DictionaryDomain
    from lftj.values.rows import PackedRows
    from lftj.values.unscaled import Numbers

DRAWN = 1 << 12
"""Rows that are drawn for estimates."""

FEW_ROWS = 1 << 12
"""The bytes of so many rows are held for the next columns."""


class Fetch(NamedTuple):
    """A column of a wide relation that is read off its rows when they are found, not searched."""

    relation: str
    schema: Schema
    column: int
    row: str
    """The variable that is the row's code."""

    def columns(self, rows: np.ndarray) -> WideColumns:
        """All columns of rows of these codes."""
        return WideColumns(self.relation, self.schema, rows)


class WideColumns(Sequence[np.ndarray]):
    """One int64 array per column of the schema, of as many items as there are rows.

    >>> from lftj.values.domains import Domains
    >>> from lftj.values.rows import RowDomain
    >>> from lftj.values.schema import wide_schema
    >>> schema = wide_schema(pa.schema({"a": pa.int8(), "b": pa.string()}), Domains(), nullable=False)
    >>> rows = schema.rows.codes([pa.array([7, 9], pa.int8()), pa.array(["x", "y"])])
    >>> columns = WideColumns("r", schema, rows)
    >>> columns[1].tolist(), columns.coded
    ([7, 9], (1,))
    """

    def __init__(self, name: str, schema: Schema, rows: np.ndarray) -> None:
        """``rows``: their codes, increasing where they are those of a relation."""
        self._name = name
        self._schema = schema
        self._columns: dict[int, np.ndarray] = {}
        self._packed: PackedRows | None = None
        self._sample: WideColumns | None = None
        self._lock = threading.Lock()
        self.rows = rows = np.ascontiguousarray(rows, np.int64)
        rows.flags.writeable = False

    def __len__(self) -> int:
        return len(self._schema.columns)

    @overload
    def __getitem__(self, number: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, number: slice) -> list[np.ndarray]: ...
    def __getitem__(self, number: int | slice) -> np.ndarray | list[np.ndarray]:
        """A column's codes, read-only.  Raises NullError and RangeError, which name the column and a row."""
        if isinstance(number, slice):
            return [self[place] for place in range(len(self))[number]]
        number = range(len(self))[number]
        if number == 0:
            return self.rows
        with self._lock:
            found = self._columns.get(number)
            if found is None:
                found = self._columns[number] = self._code(number)
            return found

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))

    def codes(self, number: int) -> np.ndarray:
        """As an item."""
        return self[number]

    def numbers(self, number: int) -> Numbers | None:
        """A column of decimals without codes as whole numbers; None of others, and where they need more."""
        if number in self._columns or self._schema.columns[number].type.domain.name != "decimal":
            return None
        domain, few = self._schema.rows, self._few()
        return domain.numbers(self.rows, number - 1) if few is None else domain.integers(few, number - 1)

    def values(self, number: int, wanted: pa.DataType) -> pa.Array:
        """A column's values, as an array of a type that holds them."""
        values = self._values(number).combine_chunks()
        return values if values.type == wanted else plain_array(values).cast(wanted)

    def drawn(self, number: int) -> np.ndarray | None:
        """The codes of a column in ``DRAWN`` rows, drawn at random, less NULL; one may be drawn twice.

        None where all codes are there already, and of a relation with few rows.
        """
        if number in self._columns or not number or len(self.rows) <= 4 * DRAWN:
            return None
        with self._lock:
            if self._sample is None:
                places = np.random.default_rng(0).integers(0, len(self.rows), DRAWN)
                self._sample = WideColumns(self._name, self._schema, self.rows[np.sort(places)])
        return self._sample._some(number)

    def _some(self, number: int) -> np.ndarray:
        """The codes of a column, of values that are there and have some."""
        with self._lock:
            if number not in self._columns:
                values = self._values(number).drop_null()
                try:
                    codes = self._schema.columns[number].type.domain.encode(values)
                except RangeError:
                    codes = np.empty(0, np.int64)
                self._columns[number] = codes
            return self._columns[number]

    def label(self, number: int) -> str:
        """The name of a column."""
        return self._schema.columns[number].name

    def refuse_null(self, number: int) -> None:
        """Raise NullError where a column that may not hold NULL does; nothing is coded."""
        if number and number not in self._columns and not self._schema.columns[number].type.nullable:
            self._refuse_null(number, self._values(number))

    @property
    def coded(self) -> tuple[int, ...]:
        """The columns that were asked for, by number."""
        return tuple(sorted(self._columns))

    @property
    def held(self) -> Coded:
        """All codes of domains that have a dictionary."""
        columns = dict(self._columns)
        types = {number: self._schema.columns[number].type for number in columns}
        coded = [(types[number].domain, codes) for number, codes in columns.items()]
        held = [(self._schema.rows, self.rows), *(each for each in coded if each[0].collector is not None)]
        return held if self._sample is None else [*held, *self._sample.held]

    @property
    def nbytes(self) -> int:
        drawn = 0 if self._sample is None else self._sample.nbytes
        return self.rows.nbytes + sum(codes.nbytes for codes in list(self._columns.values())) + drawn

    def _code(self, number: int) -> np.ndarray:
        column, few = self._schema.columns[number], self._few()
        if few is not None:
            numbers = self._schema.rows.integers(few, number - 1)
            if numbers is not None:
                return column.type.domain.of_numbers(numbers)
            texts = self._schema.rows.texts(few, number - 1)
            if texts is not None:
                return cast("DictionaryDomain", column.type.domain).of_bytes(*texts)
        values = self._values(number)
        try:
            if not column.type.nullable:
                self._refuse_null(number, values)
            codes = column.type.encode(values)
        except RangeError as error:
            raise RangeError(f"relation {self._name!r}, column {column.name!r}: {error}") from None
        codes = np.ascontiguousarray(codes, np.int64).view()
        codes.flags.writeable = False
        return codes

    def _few(self) -> PackedRows | None:
        """The bytes of the rows where these are few and do not wait."""
        domain = self._schema.rows
        if self._packed is None and not domain.waits and len(self.rows) <= FEW_ROWS:
            self._packed = domain.packed(self.rows)
        return self._packed

    def _values(self, number: int) -> pa.ChunkedArray:
        domain, few = self._schema.rows, self._few()
        if few is None:
            return domain.column(self.rows, number - 1)
        return pa.chunked_array(domain.unpacked(few, number - 1), domain.types[number - 1])

    def _refuse_null(self, number: int, values: pa.ChunkedArray) -> None:
        missing = null_mask(values)
        if missing is not None:
            label = self._schema.columns[number].name
            raise NullError(
                f"relation {self._name!r}, column {label!r}: {where_null(missing)}, and a rule"
                ' reads this column; load with nulls="drop" to leave such rows out, or with nulls="keep"'
            )


def with_read_columns(name: str, schema: Schema, rows: np.ndarray, read: Iterable[int]) -> np.ndarray:
    """Codes of a wide relation's rows, and of the columns that something reads; the others are 0."""
    columns = WideColumns(name, schema, rows)
    found = np.zeros((len(columns), len(rows)), np.int64)
    for number in {0, *read}:
        found[number] = columns[number]
    return found
