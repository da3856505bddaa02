"""`changed`: an INSERT, UPDATE, DELETE or MERGE as rows that go and come, staged all at once.

Which rows, the engine says (:mod:`maintenance.sql.parts`); DuckDB casts values to the relation's types and
fills in what is not given, by inserting them into an empty table, which is rolled back.  An INSERT that reads
no relation is DuckDB's alone, and not taken apart.  One with a conflict clause (ON CONFLICT, OR REPLACE, OR
IGNORE) is DuckDB's, too, over a table that has the rows of the keys that come, and no others.

Cost: that of the SELECTs; of a conflict clause O(log n) for each key that comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from lftj.errors import ChangeError, SqlError, UnsupportedSqlError
from lftj.statements.binder import Binder, quoted
from lftj.statements.kinds import known_duckdb
from lftj.values.schema import Schema
from maintenance.changes.labels import op_label, weight_label
from maintenance.sql.conflict_clause import ConflictClause, conflict_clause
from maintenance.sql.parts import (
    INCOMING,
    Deletion,
    Insertion,
    Part,
    Parts,
    Update,
    parts_of,
)

_GOING = "going rows"
_CHANGED = "changed rows"
_BY = "actions of rows"
_ACTIONS = {Insertion: "INSERT", Update: "UPDATE", Deletion: "DELETE"}
_INTO = re.compile(r'\s*insert\s+into\s+(?:main\s*\.\s*)?(\w+|"(?:[^"]|"")+")(?=[\s(])', re.IGNORECASE)


class Target(Protocol):
    """What a statement reads and changes."""

    @property
    def binder(self) -> Binder: ...

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """Of all that can be read."""

    def read(self, sql: str, names: set[str]) -> pa.Table:
        """The rows of a SELECT over some of these.  Raises as `Database.sql`."""

    def rows_of_keys(self, name: str, keys: pa.Table) -> pa.Table:
        """The rows that a relation has of some keys.  Raises as `Transaction.erase_keys`."""

    def refuse_head(self, name: str) -> None:
        """Raise ChangeError where a name is not that of a base relation."""

    def apply(self, relation: str, zset: pa.Table) -> None:
        """Stage rows with their weights or operations, all or none."""


def changed(sql: str, of: str, target: Target) -> pa.Table:
    """Stage what a statement of a kind does; its answer: ``Count`` of rows, or the rows of RETURNING.

    Raises SqlError, and what the target raises; then nothing is staged.
    """
    change = _Change(target)
    clause = conflict_clause(sql) if of == "INSERT" else None
    if clause is not None:
        return change.by_key(clause)
    found = change.whole_insert(sql) if of == "INSERT" else None
    return change.by_parts(sql) if found is None else found


def selected(sql: str, target: Target) -> pa.Table:
    """The answer of a SELECT."""
    return target.read(sql, _Change(target).names_in(sql) or set())


class _Change:
    """Of one statement."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tables = {name: schema.shown.arrow for name, schema in target.schemas.items()}
        self._names = {name.casefold(): name for name in self._tables}

    def names_in(self, sql: str) -> set[str] | None:
        """The relations that a SELECT or an INSERT reads; None: it is not one that DuckDB binds."""
        with self._target.binder.over(self._tables) as connection:
            try:
                named = connection.get_table_names(sql)
            except known_duckdb().Error:
                return None
        return {self._names[name.casefold()] for name in named if name.casefold() in self._names}

    def whole_insert(self, sql: str) -> pa.Table | None:
        """Of an INSERT that reads no relation; None: it is another."""
        sql = sql.rstrip().rstrip(";")
        into = _INTO.match(sql)
        if into is None or ";" in sql or "returning" in sql.lower() or self.names_in(sql) != set():
            return None
        name = self._base(into[1].strip('"').replace('""', '"'))
        rows = self._tried(f"{sql}\nRETURNING *", f"INSERT into {name!r}")
        self._stage(name, [], [rows])
        return _count(len(rows))

    def by_parts(self, sql: str) -> pa.Table:
        """Of a statement that is taken apart."""
        self._target.binder.check(sql, self._tables)
        parts = parts_of(sql)
        name = self._base(parts.target)
        gone, came = [], []
        for part in parts.parts:
            going, coming = self._rows(name, part)
            gone.append(going)
            came.append(coming)
        if len(gone) > 1:
            self._refuse_twice(name, gone)
        changed = [
            going if isinstance(part, Deletion) else coming
            for part, going, coming in zip(parts.parts, gone, came, strict=True)
        ]
        answer = (
            _count(sum(map(len, changed)))
            if parts.returning is None
            else self._returned(name, parts, changed)
        )
        self._stage(name, gone, came)
        return answer

    def by_key(self, clause: ConflictClause) -> pa.Table:
        """Of an INSERT with a conflict clause."""
        with clause.checked():
            self._target.binder.check(clause.plain, self._tables)
        parts = parts_of(clause.plain)
        name, (part,) = self._base(parts.target), parts.parts
        assert isinstance(part, Insertion)
        key = self._target.schemas[name].key
        if not key:
            raise clause.refused(
                UnsupportedSqlError,
                f"{name!r} has no key, by which a row would be there already: CREATE TABLE with a PRIMARY KEY"
                " gives one, and load() with key=[...]",
            )
        given = self._given(part)
        coming = self._inserted(name, part, given)
        self._refuse_several(name, key, coming)
        whole = clause.replaces and given.num_columns == coming.num_columns
        there = self._tables[name].empty_table()
        if not whole:
            there = self._target.rows_of_keys(name, coming.select(key))
        answer, gone, came = self._met(name, clause, part, given, there)
        if not whole:
            self._stage(name, [gone], [came])
        elif len(came):
            label = op_label(self._target.schemas[name])
            rows = self._together(name, [came])
            self._target.apply(name, rows.append_column(label, pa.repeat("U", len(rows))))
        return answer

    def _met(
        self, name: str, clause: ConflictClause, part: Insertion, given: pa.Table, there: pa.Table
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """What an INSERT answers where rows are there, those that go by it, and those that come."""
        table, key = quoted(name), self._target.schemas[name].key
        with self._trial(clause.told, **{INCOMING: given, _GOING: there}) as connection:
            connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(map(quoted, key))})")
            connection.execute(f"INSERT INTO {table} SELECT * FROM {quoted(_GOING)}")
            connection.execute(f"CREATE TEMP TABLE {quoted(_CHANGED)} AS FROM {table}")
            answer = connection.sql(clause.of(part.statement)).to_arrow_table()
            gone, came = (
                connection.sql(f"FROM {one} EXCEPT FROM {other}").to_arrow_table()
                for one, other in ((quoted(_CHANGED), table), (table, quoted(_CHANGED)))
            )
        return answer, gone, came

    def _refuse_several(self, name: str, key: Sequence[str], rows: pa.Table) -> None:
        """Raise ChangeError where different rows of one key come."""
        columns = ", ".join(map(quoted, key))
        each = f"SELECT DISTINCT * FROM {quoted(INCOMING)}"
        asked = f"SELECT {columns} FROM ({each}) GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
        for several in self._tried(asked, "", **{INCOMING: rows}).to_pylist():
            said = ", ".join(f"{column}={value!r}" for column, value in several.items())
            raise ChangeError(
                f"INSERT into {name!r}: different rows come of key {said}, and which of them counts is not"
                " said: let one come, as by a SELECT with GROUP BY"
            )

    def _given(self, part: Insertion) -> pa.Table:
        rows = self._read(part.rows)
        return rows if part.by_name else _numbered(rows)

    def _inserted(self, name: str, part: Insertion, given: pa.Table) -> pa.Table:
        """The rows of a SELECT as they come into a relation."""
        statement = f"{part.statement} RETURNING *"
        return self._tried(statement, f"INSERT into {name!r}", **{INCOMING: given})

    def _returned(self, name: str, parts: Parts, changed: Sequence[pa.Table]) -> pa.Table:
        """The rows of RETURNING, of what each part has changed."""
        actions = [
            pa.repeat(_ACTIONS[type(part)], len(rows))
            for part, rows in zip(parts.parts, changed, strict=True)
        ]
        by = pa.table({"merge_action": pa.chunked_array(actions, pa.string())})
        both = f"{quoted(_CHANGED)} AS {quoted(parts.alias)} POSITIONAL JOIN {quoted(_BY)}"
        return self._tried(
            f"SELECT {parts.returning} FROM {both}",
            f"RETURNING of {name!r}",
            **{_CHANGED: self._together(name, changed), _BY: by},
        )

    def _base(self, written: str) -> str:
        name = self._names.get(written.casefold(), written)
        self._target.refuse_head(name)
        return name

    def _rows(self, name: str, part: Part) -> tuple[pa.Table, pa.Table]:
        """The rows that go and those that come by a part."""
        none = self._tables[name].empty_table()
        if isinstance(part, Deletion):
            return self._read(part.rows).rename_columns(none.column_names), none
        if isinstance(part, Update):
            return self._updated(name, part)
        return none, self._inserted(name, part, self._given(part))

    def _updated(self, name: str, part: Update) -> tuple[pa.Table, pa.Table]:
        names = self._tables[name].names
        pairs = _numbered(self._read(part.pairs))
        values = {each.casefold(): f"p.c{number}" for number, each in enumerate(names)}
        computed = list(values) if part.computed is None else part.computed
        values.update((each, f"p.c{len(names) + number}") for number, each in enumerate(computed))
        values.update(part.constant)
        into = f"INSERT INTO {quoted(name)} SELECT {', '.join(values.values())} FROM {quoted(INCOMING)} AS p"
        given = {INCOMING: pairs}
        if part.rows is None:
            going = pairs.select(range(len(names)))
        else:
            self._refuse_repeated(name, pairs, len(names))
            going = given[_GOING] = _numbered(self._read(part.rows))
            same = (f"p.c{number} IS NOT DISTINCT FROM g.c{number}" for number in range(len(names)))
            into += f" JOIN {quoted(_GOING)} AS g ON {' AND '.join(same)}"
        coming = self._tried(f"{into} RETURNING *", f"UPDATE of {name!r}", **given)
        return going.rename_columns(names), coming

    def _refuse_repeated(self, name: str, pairs: pa.Table, width: int) -> None:
        """Raise ChangeError where a row has several values."""
        row = ", ".join(f"c{number}" for number in range(width))
        asked = f"SELECT {row} FROM {quoted(INCOMING)} GROUP BY {row} HAVING count(*) > 1 LIMIT 1"
        for several in self._tried(asked, "", **{INCOMING: pairs}).to_pylist():
            raise ChangeError(
                f"UPDATE of {name!r}: the row {tuple(several.values())} meets several rows that give it"
                " different values: let it meet one, as by an aggregate in FROM"
            )

    def _refuse_twice(self, name: str, gone: Sequence[pa.Table]) -> None:
        """Raise ChangeError where two parts of a MERGE take one row."""
        row = ", ".join(map(quoted, self._tables[name].names))
        given = {f"{_GOING} {number}": rows for number, rows in enumerate(gone)}
        each = " UNION ALL ".join(f"(SELECT DISTINCT {row} FROM {quoted(one)})" for one in given)
        asked = f"SELECT {row} FROM ({each}) GROUP BY {row} HAVING count(*) > 1 LIMIT 1"
        for several in self._tried(asked, "", **given).to_pylist():
            raise ChangeError(
                f"MERGE into {name!r}: the row {tuple(several.values())} meets several rows, by which"
                " different things would be done to it"
            )

    def _read(self, sql: str) -> pa.Table:
        """Rows of a SELECT that the statement comes to, which the user did not write so."""
        names = self.names_in(sql)
        if names == set():
            return self._tried(sql, "the rows")
        try:
            return self._target.read(sql, names or set())
        except SqlError as error:
            if error.span is None:
                raise
            raise type(error)(f"{error}\n(in a SELECT that the statement comes to)") from error

    def _stage(self, name: str, gone: Sequence[pa.Table], came: Sequence[pa.Table]) -> None:
        label = weight_label(self._target.schemas[name])
        rows = [(self._together(name, gone), -1), (self._together(name, came), 1)]
        weighed = [
            each.append_column(label, pa.repeat(weight, len(each))) for each, weight in rows if len(each)
        ]
        if weighed:
            self._target.apply(name, pa.concat_tables(weighed))

    def _together(self, name: str, tables: Sequence[pa.Table]) -> pa.Table:
        schema = self._tables[name]
        return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in tables if len(each))])

    def _tried(self, sql: str, what: str, **given: pa.Table) -> pa.Table:
        """What DuckDB says over empty tables and what is given; nothing of it stays."""
        with self._trial(lambda error: SqlError(f"{what}: {error}"), **given) as connection:
            return connection.sql(sql).to_arrow_table()

    @contextmanager
    def _trial(self, told: Callable[[Exception], SqlError], **given: pa.Table) -> Iterator[Any]:
        """DuckDB over empty tables and what is given, for a block of which nothing stays.

        ``told``: what is raised for an error of DuckDB's.
        """
        with self._target.binder.over(self._tables) as connection:
            for name, table in given.items():
                connection.register(name, table)
            connection.execute("begin")
            try:
                yield connection
            except known_duckdb().Error as error:
                raise told(error) from None
            finally:
                connection.execute("rollback")
                for name in given:
                    connection.unregister(name)


def _numbered(rows: pa.Table) -> pa.Table:
    """Columns called by their places; those without a value have no type, and so fit any."""
    columns = [pa.nulls(len(rows)) if each.null_count == len(each) else each for each in rows.columns]
    return pa.Table.from_arrays(columns, names=[f"c{number}" for number in range(len(columns))])


def _count(n_rows: int) -> pa.Table:
    return pa.table({"Count": pa.array([n_rows], pa.int64())})
