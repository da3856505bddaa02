"""What a relation's columns hold: names, domains and Arrow types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lftj.values.collector import Coded, Holder
from lftj.values.domain import ArrowColumn, Domain
from lftj.values.domains import Domains
from lftj.values.kinds import common_type, kind
from lftj.values.spelling import spelled
from lftj.values.streams import Stream

if TYPE_CHECKING:
    from lftj.values.rows import RowDomain


@dataclass(frozen=True)
class ColumnType:
    """The domain a column's or variable's values live in, and the Arrow type they come out as.

    ``nullable``: whether one may be NULL.  ``literal``: of a variable that is null or a decimal literal; it
    takes the type of what else a head's column holds.
    """

    domain: Domain
    arrow: pa.DataType
    nullable: bool = False
    literal: bool = False

    def encode(self, column: ArrowColumn) -> np.ndarray:
        """Codes of a column of the type, NULL's too where it may be there; raises as the domain does."""
        return self.domain.encode_nullable(column) if self.nullable else self.domain.encode(column)

    def joined(self, other: ColumnType) -> ColumnType | None:
        """The type that holds the values of both; None where they have no domain in common.

        Raises TypeClashError for decimals with too many digits.
        """
        nullable = self.nullable or other.nullable
        for literal, beside in ((self, other), (other, self)):
            is_null = literal.arrow == pa.null()
            if literal.literal and (is_null or (kind(beside.arrow) == "float" and not beside.literal)):
                return replace(beside, nullable=nullable)
        if self.domain is not other.domain:
            return None
        arrow = common_type(self.arrow, other.arrow)
        return ColumnType(self.domain, arrow, nullable, self.literal and other.literal)

    def spelled(self, code: int) -> str:
        """The value of a code, as a rule's text would have it (:mod:`lftj.values.spelling`)."""
        return spelled(self.domain.decode(np.array([code], dtype=np.int64), self.arrow))


@dataclass(frozen=True)
class Column:
    """``required``: declared NOT NULL, as an Arrow field with ``nullable=False`` is: no row has NULL there,
    also where a relation keeps NULLs or nothing reads the column."""

    name: str
    type: ColumnType
    required: bool = False


MOST_NARROW = 6
"""A relation is wide whose columns, those with a dictionary counted twice, are more."""


def is_wide(types: Iterable[pa.DataType]) -> bool:
    """Whether a relation with such columns has codes for whole rows (:mod:`lftj.values.rows`).

    >>> is_wide([pa.int64()] * 6), is_wide([pa.int64(), pa.string(), pa.string(), pa.string()])
    (False, True)
    """
    return (
        sum(2 if kind(type_) in ("string", "binary", "decimal", "list") else 1 for type_ in types)
        > MOST_NARROW
    )


def copy_column(domains: Domains) -> Column:
    """The last of a bag: its name is none that a rule could write."""
    return Column("#", ColumnType(domains.of(pa.int64()), pa.int64()))


def declared_column(field: pa.Field, type_: pa.DataType, domain: Domain, nullable: bool) -> Column:
    """A column of a relation that is loaded: as a field declares it, of this type and domain.

    ``nullable``: whether the relation keeps NULLs.
    """
    type_of = ColumnType(domain, type_, nullable and field.nullable)
    return Column(field.name, type_of, required=not field.nullable)


def wide_schema(columns: Iterable[pa.Field], domains: Domains, nullable: bool) -> Schema:
    """The schema of a wide relation with columns of these names and types.

    ``nullable``: all may hold NULL that are not declared otherwise, or none.
    """
    from lftj.values.rows import RowDomain

    fields = list(columns)
    declared = [declared_column(field, field.type, domains.of(field.type), nullable) for field in fields]
    rows = RowDomain([field.type for field in fields], domains.collector)
    return Schema((Column("#", ColumnType(rows, pa.large_binary())), *declared), wide=True)


@dataclass(frozen=True)
class Schema:
    """Columns of a relation.  ``functional``: the last column is the value of the others.

    ``bag``: the last column numbers the copies of equal rows (:mod:`lftj.storage.bags`); only the engine sees
    it.  ``wide``: the first column is the row's code, which only the engine sees either, and the others are
    coded when they are asked for (:mod:`lftj.storage.wide_columns`); no bag is wide.
    ``key``: names of columns in which no two rows agree (:mod:`lftj.storage.keyed`); empty where none are
    declared so.  No bag has a key.
    ``stream``: what makes it one; no stream has a key.
    """

    columns: tuple[Column, ...]
    functional: bool = False
    bag: bool = False
    wide: bool = False
    key: tuple[str, ...] = ()
    stream: Stream | None = None

    @cached_property
    def shown(self) -> Schema:
        """What users see: less the numbers of copies, or the rows' codes."""
        if self.wide:
            return replace(self, columns=self.columns[1:], wide=False)
        return replace(self, columns=self.columns[:-1], bag=False) if self.bag else self

    @cached_property
    def floats(self) -> tuple[int, ...]:
        """The columns that may hold NaN, by number."""
        return tuple(n for n, column in enumerate(self.columns) if column.type.domain.name == "float")

    @cached_property
    def rows(self) -> RowDomain:
        """Of a wide relation: the domain of its rows' codes."""
        from lftj.values.rows import RowDomain

        domain = self.columns[0].type.domain
        assert isinstance(domain, RowDomain)
        return domain

    @cached_property
    def identity(self) -> tuple[int, ...]:
        """Columns in which no two rows agree: all, or of a wide relation the rows' codes."""
        return (0,) if self.wide else tuple(range(len(self.columns)))

    @cached_property
    def identity_set(self) -> frozenset[int]:
        return frozenset(self.identity)

    @cached_property
    def key_numbers(self) -> tuple[int, ...]:
        """The columns of the key, by number."""
        numbers = {column.name: number for number, column in enumerate(self.columns)}
        return tuple(numbers[name] for name in self.key)

    def with_key(self, key: Sequence[str]) -> Schema:
        """The same with these columns as the key, which so are NOT NULL."""
        return replace(self, columns=self._required(key), key=tuple(key))

    def with_stream(self, stream: Stream) -> Schema:
        """The same as a stream, whose time so is NOT NULL."""
        return replace(self, columns=self._required([stream.time]), stream=stream)

    def _required(self, names: Collection[str]) -> tuple[Column, ...]:
        return tuple(replace(one, required=True) if one.name in names else one for one in self.columns)

    @cached_property
    def time_number(self) -> int:
        """The column of a stream's time, by number."""
        assert self.stream is not None
        return next(n for n, column in enumerate(self.columns) if column.name == self.stream.time)

    @cached_property
    def kept_levels(self) -> tuple[tuple[int, ...], ...]:
        """The columns of indices that every version has: by which rows are found by key, or by time.

        >>> column = Column("a", ColumnType(Domains().of(pa.int64()), pa.int64()))
        >>> Schema((column, replace(column, name="t")), stream=Stream("t")).kept_levels
        ((1, 0),)
        """
        if self.stream is None:
            return (self.key_levels,) if self.key else ()
        first = self.time_number
        return ((first, *(number for number in self.identity if number != first)),)

    @cached_property
    def key_levels(self) -> tuple[int, ...]:
        """The columns of the index by which a row is found by its key: those of the key come first.

        >>> column = Column("a", ColumnType(Domains().of(pa.int64()), pa.int64()))
        >>> Schema((column, replace(column, name="id")), key=("id",)).key_levels
        (1, 0)
        """
        numbers = self.key_numbers
        return (*numbers, *(number for number in self.identity if number not in numbers))

    @cached_property
    def declared(self) -> tuple[int, ...]:
        """The columns that a user declared, by number."""
        return tuple(range(1 if self.wide else 0, len(self.columns) - self.bag))

    @cached_property
    def required_bits(self) -> int:
        """Which of the shown columns are declared NOT NULL: a bit for each, the first one's the lowest."""
        return sum(1 << place for place, column in enumerate(self.shown.columns) if column.required)

    @cached_property
    def dictionaries(self) -> tuple[tuple[int, Domain], ...]:
        """The columns whose domains have a dictionary, by number."""
        numbered = enumerate(column.type.domain for column in self.columns)
        return tuple((number, domain) for number, domain in numbered if domain.collector is not None)

    @cached_property
    def is_whole(self) -> bool:
        """Whether all columns are int64."""
        return all(column.type.arrow == pa.int64() for column in self.columns)

    def hold(self, holder: Holder, came: Sequence[np.ndarray] | np.ndarray | None = None) -> None:
        """The values of what a holder has in these columns stay as long as it lives.

        ``came``: columns of codes, as for :meth:`lftj.values.collector.Collector.hold`; of those that are
        coded when they are asked for, the ones that were.
        """
        if not self.dictionaries:
            return
        coded: Coded | None = getattr(came, "held", None)
        if came is not None and coded is None:
            coded = [(domain, came[number]) for number, domain in self.dictionaries]
        for collector in {domain.collector for _, domain in self.dictionaries}:
            assert collector is not None
            collector.hold(holder, coded)

    @cached_property
    def keeps_null(self) -> bool:
        """Whether a column may hold NULL."""
        return any(column.type.nullable for column in self.columns)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns' names and Arrow types."""
        return pa.schema([(column.name, column.type.arrow) for column in self.columns])

    def as_declared(self, table: pa.Table) -> pa.Table:
        """A table of the shown columns whose fields say which are declared NOT NULL, as one to load does."""
        columns = self.shown.columns
        fields = [pa.field(each.name, each.type.arrow, nullable=not each.required) for each in columns]
        return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
