"""Relations: sets of rows of ``int64`` codes, sorted, with their indices.

Invariants

1. ``codes`` are read-only, one array per column, all of ``n_rows`` items; the
   rows increase strictly in the declared column order, those of a wide relation by their own codes.
2. A code stands for NULL in columns of nullable types only; elsewhere rows with NULL are refused or left out
   at load.
3. A relation never changes.  Indices are a cache on it: each is built once,
   by the first thread that asks, and is the same object ever after.

A maintained relation will be a list of versions that each name a base relation
and later runs: invariant 3 is what lets versions share the base and its indices.

Cost: loading encodes each column once and sorts the rows once.  An index costs
one more sort, of the digits only that the declared order leaves unsorted; the
declared order itself and its prefixes cost none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from lftj.errors import FunctionalConflictError, NanError, NullError, RangeError, UnsupportedTypeError
from lftj.process import debug
from lftj.process.progress import bar
from lftj.storage.bags import all_copies
from lftj.storage.catalog import IndexKey, SearchView
from lftj.storage.codes_table import table_of_codes
from lftj.storage.second_rows import keyed_schema, refuse_second_rows
from lftj.storage.sorting import first_of_equal, sort_distinct
from lftj.storage.trie import Trie
from lftj.storage.wide_columns import WideColumns
from lftj.values.collector import Held
from lftj.values.domain import NAN_CODE, ArrowColumn, Domain, null_mask, taken, taken_as_it_is, where_null
from lftj.values.domains import Domains
from lftj.values.functional import conflict
from lftj.values.schema import Schema, copy_column, declared_column, wide_schema
from lftj.values.streams import Stream

Nulls = Literal["refuse", "drop", "keep"]

FEW = 4
"""Of a relation with so many times as many rows a column is coded in some of them alone."""


class _Entry:
    """An index that is asked for: whoever holds the lock first builds it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.trie: Trie | None = None


class Relation:
    """A relation in memory; make one with :meth:`from_table` or :meth:`from_codes`.

    Attributes:
        name: As rules write it.
        schema: Names, domains and Arrow types of the columns.
        codes: int64 (n_rows,) per column, read-only.
        n_rows: Number of distinct rows.
        dropped_rows: Rows that were left out because of a NULL.
        duplicate_rows: Rows that were left out because an equal one is there.

    >>> table = pa.table({"src": [2, 1, 2], "dst": [3, 2, 3]})
    >>> edge = Relation.from_table("edge", table, Domains())
    >>> edge, edge.duplicate_rows, edge.to_table().to_pylist()
    (<Relation edge(src: int64, dst: int64), 2 rows>, 1, [{'src': 1, 'dst': 2}, {'src': 2, 'dst': 3}])
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        codes: Sequence[np.ndarray],
        dropped_rows: int = 0,
        duplicate_rows: int = 0,
    ) -> None:
        """``codes``: sorted distinct rows; from now on read-only."""
        if debug.enabled:
            debug.check_rows(codes[:1] if schema.wide else codes, f"relation {name!r}")
        self.name = name
        self.schema = schema
        self.codes = codes if isinstance(codes, WideColumns) else tuple(codes)
        self.n_rows = len(self.codes[0])
        self.dropped_rows = dropped_rows
        self.duplicate_rows = duplicate_rows
        self._first_nan: dict[int, int | None] = {}
        self._is_function = False
        self._indices: dict[IndexKey, _Entry] = {}
        self._lock = threading.Lock()  # of the dictionary; an entry has its own
        if not schema.wide:
            for column in self.codes:
                column.flags.writeable = False
        schema.hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values (:mod:`lftj.values.collector`)."""
        if isinstance(self.codes, WideColumns):
            return [Held(self, self.codes.held)]
        return [Held(self, [(domain, self.codes[number]) for number, domain in self.schema.dictionaries])]

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name}: {column.type.arrow}" for column in self.schema.shown.columns)
        return f"<Relation {self.name}({columns}), {self.n_rows:,} rows>"

    @classmethod
    def from_table(
        cls,
        name: str,
        table: pa.Table,
        domains: Domains,
        nulls: Nulls = "refuse",
        progress: bool | None = False,
        bag: bool = False,
        wide: bool = False,
        key: Sequence[str] = (),
    ) -> Relation:
        """Load a table of at least one column.

        ``nulls``: what to do with rows that hold a NULL.  With ``"keep"`` all columns may hold some whose
        fields are not declared otherwise (``nullable=False``).
        ``bag``: keep each row as often as it is there (:mod:`lftj.storage.bags`).  ``wide``: code columns
        when they are asked for (:mod:`lftj.storage.wide_columns`); what "refuse" refuses is told then.
        ``key``: columns, declared not nullable, in which no two rows agree.

        Raises :class:`~lftj.errors.NullError`, :class:`~lftj.errors.UnsupportedTypeError`,
        :class:`~lftj.errors.RangeError`; all name relation and column; KeyConflictError.
        """
        if nulls not in ("refuse", "drop", "keep"):
            raise ValueError(f"nulls is {nulls!r}; it can be 'refuse', 'drop' or 'keep'")
        keep = nulls == "keep"
        lease = domains.collector.lease()
        if nulls != "drop":
            _refuse_declared(name, table)
        if wide:
            return cls._of_wide_table(name, table, domains, nulls, progress).with_key(key)
        kept = None if keep else _rows_without_null(name, table, nulls)
        n_loaded = table.num_rows if kept is None else len(kept)
        columns, codes = [], []
        first_nan: dict[int, int | None] = {}
        with bar(f"loading {name}", progress) as advance:
            for position, (field, values) in enumerate(zip(table.schema, table.columns, strict=True)):
                label, keeps = field.name, keep and field.nullable
                if pa.types.is_null(values.type) and not n_loaded:
                    values = pa.chunked_array([], pa.int64())  # no value, so any type will do
                arrow_type = values.type
                try:
                    domain = domains.of(arrow_type)
                    values = values if kept is None else taken(values, kept)
                except UnsupportedTypeError as error:
                    raise UnsupportedTypeError(f"relation {name!r}, column {label!r}: {error}") from None
                encode = _encoder(name, label, domain, keeps)
                try:
                    encoded = encode(values)
                except RangeError:
                    refused, why = _first_refused(encode, values)
                    refused = refused if kept is None else int(kept[refused])
                    raise RangeError(
                        f"relation {name!r}, column {label!r}, row {refused} (counting from 0): {why}"
                    ) from None
                if domain.name == "float":
                    row = _first_nan(encoded)
                    first_nan[position] = row if row is None or kept is None else int(kept[row])
                columns.append(declared_column(field, arrow_type, domain, keep))
                codes.append(encoded)
                advance((position + 1) / (table.num_columns + 1))
            if bag:
                columns.append(copy_column(domains))
                distinct = all_copies(codes)
            else:
                distinct = sort_distinct(codes)
        schema = Schema(tuple(columns), bag=bag)
        relation = cls(name, schema, distinct, table.num_rows - n_loaded, n_loaded - len(distinct[0]))
        relation._first_nan = first_nan
        del lease  # not before the relation holds the codes
        return relation.with_key(key)

    @classmethod
    def _of_wide_table(
        cls, name: str, table: pa.Table, domains: Domains, nulls: Nulls, progress: bool | None
    ) -> Relation:
        n_read = table.num_rows
        with bar(f"loading {name}", progress) as advance:
            if nulls == "drop":
                kept = _rows_without_null(name, table, nulls)
                table = table if kept is None else _rows_of(table, kept)
            if not table.num_rows:
                table = table.cast(pa.schema([_with_some_type(field) for field in table.schema]))
            for field in table.schema:
                try:
                    domain = domains.of(field.type)
                    if nulls == "keep" and field.nullable:
                        domain.keep_null()
                except (UnsupportedTypeError, RangeError) as error:
                    raise type(error)(f"relation {name!r}, column {field.name!r}: {error}") from None
            schema = wide_schema(table.schema, domains, nulls == "keep")
            n_kept = table.num_rows
            n_rows = _enter_distinct(schema, table)
            advance(1.0)
        rows = WideColumns(name, schema, np.arange(n_rows))
        return cls(name, schema, rows, n_read - n_kept, n_kept - n_rows)

    def with_key(self, key: Sequence[str]) -> Relation:
        """The relation with these columns as its key; itself where they are so already.

        Raises NullError where one of them may be NULL, KeyConflictError where two rows agree in all of them.
        """
        if tuple(key) == self.schema.key:
            return self
        schema = keyed_schema(self.name, self.schema, key)
        keyed = Relation(self.name, schema, self.codes, self.dropped_rows, self.duplicate_rows)
        keyed._first_nan = self._first_nan
        refuse_second_rows(self.name, schema, keyed.index(schema.key_levels))
        return keyed

    def with_stream(self, stream: Stream | None) -> Relation:
        """The relation as a stream; itself where it is none.  Its time is declared NOT NULL."""
        if stream is None:
            return self
        schema = self.schema.with_stream(stream)
        timed = Relation(self.name, schema, self.codes, self.dropped_rows, self.duplicate_rows)
        timed._first_nan = self._first_nan
        return timed

    @classmethod
    def from_codes(cls, name: str, schema: Schema, codes: Sequence[np.ndarray]) -> Relation:
        """A derived relation.  ``codes``: int64 columns of sorted distinct rows, read-only from now on."""
        return cls(name, schema, codes)

    def relation(self) -> Relation:
        """Itself: a relation is the one version of its own."""
        return self

    def columns(self) -> Sequence[np.ndarray]:
        """``codes``, as a version has them."""
        return self.codes

    def column(self, number: int) -> np.ndarray:
        """The codes of one column."""
        return self.codes[number]

    def taken(self, number: int, rows: np.ndarray) -> np.ndarray:
        """The codes of one column in some rows, by place; of few of a wide relation only they are coded."""
        codes = self.codes
        if isinstance(codes, WideColumns) and FEW * len(rows) < self.n_rows and number not in codes.coded:
            codes.refuse_null(number)
            return WideColumns(self.name, self.schema, codes.rows[rows])[number]
        return codes[number][rows]

    def first(self, n: int) -> Sequence[np.ndarray]:
        """The first ``n`` rows."""
        if isinstance(self.codes, WideColumns):
            return WideColumns(self.name, self.schema, self.codes.rows[:n])
        return [column[:n] for column in self.codes]

    def holds(self, row: Sequence[int]) -> bool:
        """Whether a row of codes is there; O(log n) per column.

        >>> edge = Relation.from_table("edge", pa.table({"a": [1, 1, 2], "b": [5, 6, 5]}), Domains())
        >>> edge.holds([1, 6]), edge.holds([2, 6])
        (True, False)
        """
        start, end = 0, self.n_rows
        for codes, code in zip(self.codes, row, strict=not self.schema.wide):
            among, wanted = codes[start:end], np.int64(code)
            end = start + int(np.searchsorted(among, wanted, side="right"))
            start += int(np.searchsorted(among, wanted))
        return start < end

    def to_table(self) -> pa.Table:
        """The rows in the types that they were loaded in, sorted by codes.

        Raises :class:`~lftj.errors.RangeError` for a derived value that its type can't hold.
        """
        return table_of_codes(self.schema, self.codes)

    def index(
        self,
        columns: tuple[int, ...],
        equal: tuple[tuple[int, int], ...] = (),
    ) -> Trie:
        """The trie over the distinct projection to ``columns`` (at least one), in their order.

        ``equal``: only rows whose codes agree on each of these pairs of columns.  The last of ``columns``
        may be the number behind all columns': a level with a key for each row, whatever its other columns
        are.

        >>> edge = Relation.from_table("edge", pa.table({"a": [1, 1, 2], "b": [5, 6, 5]}), Domains())
        >>> [keys.tolist() for keys in edge.index((1, 0)).keys]
        [[5, 6], [1, 2, 1]]
        """
        with self._lock:  # all threads that want this index meet at one entry
            entry = self._indices.setdefault((columns, equal), _Entry())
        with entry.lock:
            if entry.trie is None:
                entry.trie = self._build(columns, equal)
            return entry.trie

    def code(self, column: int) -> None:
        """Have the values of a column in its dictionary."""
        self.codes[column]

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        """Of the indices that are there already."""
        with self._lock:
            return frozenset(self._indices)

    def view(self, key: IndexKey) -> SearchView:
        """The index of a key as searches read it (:mod:`lftj.storage.catalog`)."""
        return SearchView(self.index(*key), None)

    def n_branches(self, key: IndexKey, level: int) -> int:
        """How many distinct prefixes of ``level + 1`` columns an index has."""
        return self.view(key).n_branches(level)

    @property
    def statistics_of(self) -> Relation:
        """What its statistics are kept with (:mod:`lftj.planning.statistics`)."""
        return self

    def statistics_column(self, column: int) -> tuple[np.ndarray, bool]:
        """The codes of a column, and whether they are sorted."""
        return self.codes[column], column == 0

    def _build(self, columns: tuple[int, ...], equal: tuple[tuple[int, int], ...]) -> Trie:
        codes, arity, n_rows = self.codes, len(self.codes), self.n_rows
        numbered = columns[-1] == arity
        projected = [codes[column] for column in (columns[:-1] if numbered else columns)]
        if equal:
            agree = np.logical_and.reduce([codes[first] == codes[second] for first, second in equal])
            projected, n_rows = [column[agree] for column in projected], int(np.count_nonzero(agree))
        if numbered:
            return Trie.of_rows(projected, n_rows)
        if columns == tuple(range(arity)):
            return Trie.from_sorted(projected)
        if columns == tuple(range(len(columns))):
            first = first_of_equal(projected)
            return Trie.from_sorted([column[first] for column in projected])
        return Trie.from_sorted(sort_distinct(projected, _unsorted_columns(columns, arity)))

    @property
    def nbytes(self) -> int:
        """Memory of the codes and of the indices built so far; dictionaries belong to their domains."""
        if isinstance(self.codes, WideColumns):
            arrays = {id(self.codes): self.codes.nbytes + self.schema.rows.nbytes}
        else:
            arrays = {id(column): column.nbytes for column in self.codes}
        for entry in list(self._indices.values()):
            trie = entry.trie
            if trie is not None:
                arrays |= {id(array): array.nbytes for array in trie.arrays()}
        return sum(arrays.values())

    def refuse_nan(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NanError` if the column holds NaN: it is going to be used as a key."""
        if self.schema.columns[column].type.domain.name != "float":
            return
        if column not in self._first_nan:
            self._first_nan[column] = _first_nan(self.codes[column])
        row = self._first_nan[column]
        if row is not None:
            label = self.schema.columns[column].name
            raise NanError(
                f"relation {self.name!r}, column {label!r}: NaN in row {row} (counting from 0);"
                " NaN equals nothing, so a rule can't use this column as a key: load it without such rows"
            )

    def refuse_null(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NullError` if a column of a wide relation holds NULL that must not."""
        if isinstance(self.codes, WideColumns):
            self.codes.refuse_null(column)

    def check_functional(self) -> None:
        """Raise :class:`~lftj.errors.FunctionalConflictError` if the last column is no function."""
        if self._is_function:
            return
        declared = self.schema.shown.columns
        rows = sort_distinct(self.codes[1:]) if self.schema.wide else self.codes
        row = conflict(rows)
        if row is not None:
            names = [column.name for column in declared]
            shown = [
                f"{column.name}={column.type.spelled(codes[row])}"
                for column, codes in zip(declared, rows, strict=True)
            ]
            key = f"for {', '.join(shown[:-1])} " if shown[:-1] else ""
            other = declared[-1].type.spelled(rows[-1][row + 1])
            raise FunctionalConflictError(
                f"relation {self.name!r} can't be read as a function of {', '.join(names[:-1]) or 'nothing'}:"
                f" {key}there are two values, {shown[-1]} and {names[-1]}={other}"
            )
        self._is_function = True

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        assert len(self.codes) == len(self.schema.columns)
        coded = [self.codes[0]] if self.schema.wide else self.codes
        assert all(column.dtype == np.int64 and len(column) == self.n_rows for column in coded)
        assert not any(column.flags.writeable for column in coded)
        rows = list(zip(*(column.tolist() for column in coded), strict=True))
        assert all(row < following for row, following in pairwise(rows)), "rows increase"
        for entry in self._indices.values():
            if entry.trie is not None:
                entry.trie.check_invariants()


def _enter_distinct(schema: Schema, table: pa.Table) -> int:
    """Let the distinct rows of a table have the first codes of a wide relation; how many they are.

    Where columns of numbers tell the rows apart these wait; else all are coded, to find those that are alike.
    """
    plain = []
    for column, values in zip(schema.shown.columns, table.columns, strict=True):
        domain = column.type.domain
        if domain.ordered and domain.name != "float" and not values.null_count:
            with suppress(RangeError):  # which is told when the column is read
                plain.append(domain.encode(values))
    n_rows = table.num_rows
    if n_rows < 2 or any(
        len(sort_distinct(columns)[0]) == n_rows for columns in (plain[:1], plain) if columns
    ):
        schema.rows.wait(table)
        return n_rows
    return len(np.unique(schema.rows.codes(table.columns)))


def _rows_of(table: pa.Table, rows: np.ndarray) -> pa.Table:
    columns = [taken_as_it_is(column, rows) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _with_some_type(field: pa.Field) -> pa.Field:
    """Of a column without a value any type will do."""
    return field.with_type(pa.int64()) if pa.types.is_null(field.type) else field


def _unsorted_columns(columns: tuple[int, ...], arity: int) -> int:
    """Of rows sorted by 0, 1, 2, ...: how many of ``columns`` a stable sort by ``columns`` has to look at.

    >>> _unsorted_columns((1, 0), 2), _unsorted_columns((2, 0, 1), 3), _unsorted_columns((1, 2, 0), 3)
    (1, 1, 2)
    """
    for prefix in range(len(columns)):
        # Rows that agree on the prefix stand in the order of the other columns.
        others = [column for column in range(arity) if column not in columns[:prefix]]
        if list(columns[prefix:]) == others[: len(columns) - prefix]:
            return prefix
    return len(columns)


def _first_nan(codes: np.ndarray) -> int | None:
    is_nan = codes == NAN_CODE
    return int(is_nan.argmax()) if is_nan.any() else None


def _encoder(name: str, label: str, domain: Domain, keep: bool) -> Callable[[ArrowColumn], np.ndarray]:
    """What gives a column's codes; those of NULL too, if they are kept."""
    if not keep:
        return domain.encode
    try:
        domain.keep_null()
    except RangeError as error:
        raise RangeError(f"relation {name!r}, column {label!r}: {error}") from None
    return domain.encode_nullable


def _first_refused(
    encode: Callable[[ArrowColumn], np.ndarray], column: ArrowColumn
) -> tuple[int, RangeError]:
    """The first row without a code, given that there is one, and what is wrong with it: by bisection."""
    low, high = 0, len(column)  # rows before low have codes, one of low..high-1 has none
    while True:
        middle = (low + high + 1) // 2
        try:
            encode(column.slice(low, middle - low))
            low = middle
        except RangeError as error:
            if middle - low == 1:
                return low, error
            high = middle


def _refuse_declared(name: str, table: pa.Table) -> None:
    """Raise NullError where a column that is declared NOT NULL holds one."""
    for field, column in zip(table.schema, table.columns, strict=True):
        missing = None if field.nullable else null_mask(column)
        if missing is not None:
            raise NullError(
                f"relation {name!r}, column {field.name!r}: {where_null(missing)}, and the column is declared"
                ' NOT NULL (nullable=False): declare it otherwise, or pass nulls="drop" to leave the rows out'
            )


def _rows_without_null(name: str, table: pa.Table, nulls: Nulls) -> np.ndarray | None:
    """The numbers of the rows without NULL, or None for all; with "refuse" the first NULL raises."""
    has_null: np.ndarray | None = None
    for label, column in zip(table.column_names, table.columns, strict=True):
        mask = null_mask(column)
        if mask is None:
            continue
        if nulls == "refuse":
            raise NullError(
                f"relation {name!r}, column {label!r}: {where_null(mask)};"
                ' pass nulls="drop" to leave such rows out, or nulls="keep"'
            )
        has_null = mask if has_null is None else has_null | mask
    return None if has_null is None else np.flatnonzero(~has_null)
