"""The columns of the relations that rules read; of the others nobody asks what they hold.

A column is *read* where some atom has a variable or a constant for it.  Another one may hold NULL, NaN,
arrays or whatever Spark has: before anything looks at the relation, it is replaced.

    e(a, b, _, _)      e: a, b, true, true           where rows only have to be there
                       e: a, b, text of both, true   where the others tell rows apart

Others tell rows apart below an aggregate that counts every row, ``count`` and ``sum`` but not ``min``, and
wherever rows go one by one: of two that agree in what is read, one is erased, and the other is still there.

Invariants

1. A relation keeps names, number and order of its columns; read as a whole it is the same DataFrame.
2. Texts of two rows are equal exactly if they agree in all columns that are not read: NULL is a value, and
   -0.0 is 0.0.  What is longer than ``_PLAIN`` characters stands there by its SHA-256.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from lftj.errors import SourceError, UnknownRelationError
from lftj.language.parser import parse
from lftj.language.strata import atoms_of
from lftj.language.syntax import Atom, Rule, Wildcard
from spark_bridge.placing.char_columns import char_length, refuse_padded
from spark_bridge.placing.event_time import TimeSettings, streams_of, time_columns
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.schemas import (
    BINARY,
    arrow_schema,
    column_names,
    plain,
    with_required,
    without_null,
)

_PLAIN = 64
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
_EXTREMA = ("min", "max")


@dataclass(frozen=True)
class ReadRelation:
    """A relation's columns in order, which of them are read, and whether the others tell its rows apart."""

    name: str
    fields: tuple[StructField, ...]
    read: frozenset[str]
    by_row: bool

    @property
    def unread(self) -> tuple[StructField, ...]:
        return tuple(field for field in self.fields if field.name not in self.read)

    def columns(self, of: Mapping[str, Column]) -> list[Column]:
        """The relation's columns, given each as it is, with those that are not read replaced."""
        unread = self.unread if self.by_row else ()
        text = _text([of[field.name] for field in unread], unread) if unread else None
        columns = []
        for field in self.fields:
            if field.name in self.read:
                columns.append(of[field.name])
            else:
                columns.append(F.lit(True) if text is None else text)
                text = None
        return [column.alias(field.name) for column, field in zip(columns, self.fields, strict=True)]

    @property
    def schema(self) -> StructType:
        """Of :meth:`frame`."""
        types = iter([(StringType(), True)] if self.by_row else [])
        fields = []
        for field in self.fields:
            if field.name not in self.read:
                type_, nullable = next(types, (BooleanType(), False))
                field = StructField(field.name, type_, nullable)
            fields.append(field)
        return StructType(fields)

    def frame(self, frame: DataFrame) -> DataFrame:
        """A DataFrame of the relation."""
        if not self.unread:
            return frame
        of, placed = by_place(frame)
        return placed.select(*self.columns({name: F.col(column) for name, column in of.items()}))

    def each_once(self, frame: DataFrame) -> DataFrame:
        """A DataFrame of the relation whose rows are told apart, each once; nothing else is replaced."""
        if all(_told_apart(field.dataType) for field in self.unread):
            return frame.distinct()  # Spark tells the rows apart as their texts do
        return self.frame(frame).distinct()


@dataclass(frozen=True)
class ReadColumns:
    """The relations of a program by name, each with the columns that are read."""

    relations: Mapping[str, ReadRelation]

    @classmethod
    def of(
        cls,
        rule: str,
        relations: Mapping[str, DataFrame],
        *,
        by_row: bool = False,
        keys: Mapping[str, Collection[str]] | None = None,
    ) -> ReadColumns:
        """``by_row``: rows go one by one, so that all columns tell them apart.  ``keys`` are read, too.

        Raises RuleSyntaxError, and SourceError as :func:`~spark_bridge.placing.schemas.column_names` does.
        """
        names = column_names(relations)
        program = parse(rule)
        read = {name: set((keys or {}).get(name, ())) for name in names}
        counted: set[str] = set(names) if by_row else set()
        for each in program.rules:
            for atom in atoms_of(each.body):
                if atom.relation in read:
                    read[atom.relation].update(_read(atom, names[atom.relation]))
                    if not atom.negated and (atom.functional or _counts(each)):
                        counted.add(atom.relation)
        return cls(
            {
                name: ReadRelation(name, tuple(frame.schema), frozenset(read[name]), name in counted)
                for name, frame in relations.items()
            }
        )

    def char_lengths(self) -> dict[str, list[set[int]]]:
        """By relation, of each column that is read the n of its type ``char(n)``."""
        return {
            name: [
                {n} if field.name in relation.read and (n := char_length(field)) else set()
                for field in relation.fields
            ]
            for name, relation in self.relations.items()
        }

    def unread(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """Of some relations the columns that are not read, with Spark's names of their types."""
        return {
            name: {field.name: plain(field.dataType).simpleString() for field in relation.unread}
            for name, relation in self.relations.items()
            if name in names and relation.unread
        }

    def frames(self, relations: Mapping[str, DataFrame]) -> ReadFrames:
        """The relations, with what is not read replaced."""
        return ReadFrames(self, relations)


class ReadFrames(Mapping[str, DataFrame]):
    """Relations as a program reads them, each made when it is asked for."""

    def __init__(self, columns: ReadColumns, relations: Mapping[str, DataFrame]) -> None:
        self._columns, self._relations = columns, relations
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            self._made[name] = self._columns.relations[name].frame(self._relations[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)


def checked_keys(
    key: Mapping[str, Sequence[str]], relations: Mapping[str, DataFrame]
) -> dict[str, tuple[str, ...]]:
    """By relation the columns in which no two of its rows agree.

    Raises UnknownRelationError, and SourceError for columns that are not there, or none.
    """
    for name, columns in key.items():
        if name not in relations:
            raise UnknownRelationError(f"key of {name!r}: relations are {', '.join(relations)}")
        wrong = [column for column in columns if column not in relations[name].columns]
        if wrong or not columns or isinstance(columns, str) or len(set(columns)) < len(columns):
            raise SourceError(
                f"key of {name!r} is {columns!r}; it is a list of different columns out of"
                f" {', '.join(relations[name].columns)}"
            )
    return {name: tuple(columns) for name, columns in key.items()}


def read_program(
    rule: str, head: str | None, relations: Mapping[str, DataFrame], nulls: InputNulls
) -> tuple[ProgramText, Mapping[str, DataFrame], ReadColumns]:
    """A program that cells evaluate, and the relations as it reads them.

    Raises as :func:`read_text`, RuleError for what cells can't, and TypeClashError.
    """
    text, frames, columns = read_text(rule, head, relations, nulls)
    refuse_padded(text.rules, columns.char_lengths())
    return text, frames, columns


def read_text(
    rule: str,
    head: str | None,
    relations: Mapping[str, DataFrame],
    nulls: InputNulls,
    *,
    by_row: bool = False,
    keys: Mapping[str, Collection[str]] | None = None,
    times: TimeSettings | None = None,
) -> tuple[ProgramText, Mapping[str, DataFrame], ReadColumns]:
    """A program, and the relations as it reads them.

    ``nulls``: with "keep" the columns that are read may hold NULL where Spark says so, else none does.
    ``by_row`` and ``keys`` as for :meth:`ReadColumns.of`.  ``times``: which relations are streams, beside
    those that the rules declare; of None none is.  Raises RuleError, SourceError, StreamError, and
    UnsupportedTypeError for columns that are read.
    """
    moments = time_columns(parse(rule), times) if times is not None else {}
    read = {**(keys or {}), **{name: (column,) for name, column in moments.items()}}
    columns = ReadColumns.of(rule, relations, by_row=by_row, keys=read)
    frames = columns.frames(relations)
    schemas = tuple((name, arrow_schema(name, of.schema)) for name, of in columns.relations.items())
    if nulls != "keep":
        schemas = tuple((name, without_null(schema)) for name, schema in schemas)
    schemas = tuple(
        (name, with_required(schema, moments[name]) if name in moments else schema)
        for name, schema in schemas
    )
    streams = streams_of(parse(rule), dict(schemas), times) if times is not None else ()
    text = ProgramText(rule, head, schemas, streams=streams)
    return text, frames, columns


def by_place(frame: DataFrame) -> tuple[dict[str, str], DataFrame]:
    """What columns are called by name, in a DataFrame that calls them by their places.

    Spark takes names that differ in case only for one, and reads points in them.
    """
    columns = {name: f"c{place}" for place, name in enumerate(frame.columns)}
    return columns, frame.toDF(*columns.values())


def _read(atom: Atom, names: Sequence[str]) -> list[str]:
    """The columns for which an atom has something; what is wrong with it the checker says."""
    at = [column.name for column in atom.names] if atom.names else list(names)
    read = [name for name, term in zip(at, atom.terms, strict=False) if not isinstance(term, Wildcard)]
    return [*read, names[-1]] if atom.functional else read


def _counts(rule: Rule) -> bool:
    """Whether an aggregate of the rule takes every assignment."""
    return any(aggregate.function not in _EXTREMA for head in rule.heads for aggregate in head.aggregates)


def _text(columns: Sequence[Column], fields: Sequence[StructField]) -> Column:
    """What tells the values of some columns from all others."""
    parts = [
        _written(column, field.dataType).alias(f"c{place}")
        for place, (column, field) in enumerate(zip(columns, fields, strict=True))
    ]
    text = F.to_json(F.struct(*parts), _JSON)
    return F.when(F.length(text) <= _PLAIN, text).otherwise(F.sha2(text, 256))


def _told_apart(type_: DataType) -> bool:
    """Whether Spark's DISTINCT tells values of a type apart as their texts do."""
    if isinstance(plain(type_), StringType):
        return isinstance(type_, StringType) and type_.collation == BINARY
    return isinstance(type_, AtomicType)


def _written(column: Column, type_: DataType) -> Column:
    if isinstance(plain(type_), StringType):
        return column.cast("binary")  # whatever the collation, and what is no UTF-8 too
    if isinstance(type_, FloatType | DoubleType):
        return column.cast("double") + F.lit(0.0)
    return column
