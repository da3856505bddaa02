"""Plays rules over up to 100,000 rows, so that buffers grow and runs merge, against DuckDB or SQLite."""

from __future__ import annotations

import math
import random
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import duckdb

import lftj
from fuzz.case import Case, Many, Table
from fuzz.difference import Difference, same
from fuzz.expected import OutOfReach
from fuzz.kept import change_table
from maintenance import Workspace
from support.reference import Row
from support.rows import rows_of
from support.rule_sql import to_sql
from support.rules import Aggregate, Atom, Head, Rule, Variable, variables_of

SECONDS = 5.0
"""A database that takes longer is stopped; the case says nothing."""

MOST_ROWS = 100_000
MOST_COMBINATIONS = 10_000_000
SQLITE_ROWS = 2_000
"""Of so many rows at most SQLite says what is right, else DuckDB does."""


class _Stopped:
    """Ends a query that takes too long."""

    def __init__(self, connection: Any) -> None:
        self.timer = threading.Timer(SECONDS, connection.interrupt)

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()


class Database:
    """DuckDB or SQLite, with the relations in it."""

    def __init__(self, tables: list[Table]) -> None:
        self.small = sum(len(table.rows) for table in tables) <= SQLITE_ROWS
        self.connection: Any = (
            sqlite3.connect(":memory:", check_same_thread=False) if self.small else duckdb.connect()
        )
        if self.small:
            self.connection.execute("pragma case_sensitive_like = on")
        for table in tables:
            if self.small:
                columns = ", ".join(f"c{i}" for i in range(len(table.types)))
                marks = ", ".join("?" for _ in table.types)
                self.connection.execute(f"create table {table.name} ({columns})")
                self.connection.executemany(f"insert into {table.name} values ({marks})", table.rows)
            else:
                given = table.arrow()
                self.connection.execute(f"create table {table.name} as select * from given")
                del given

    def rows(self, query: str) -> list[Row]:
        try:
            with _Stopped(self.connection):
                found = self.connection.execute(query).fetchmany(MOST_ROWS + 1)
        except (duckdb.InterruptException, duckdb.OutOfMemoryException, sqlite3.OperationalError) as error:
            raise OutOfReach("the database takes too long") from error
        if len(found) > MOST_ROWS:
            raise OutOfReach("too many rows")
        return found

    def change(self, table: Table, row: Row, weight: int) -> None:
        columns = [f"c{i}" for i in range(len(row))]
        self.connection.execute(
            f"delete from {table.name} where {' and '.join(f'{c} = ?' for c in columns)}", row
        )
        if weight > 0:
            self.connection.execute(f"insert into {table.name} values ({', '.join('?' for _ in row)})", row)


def aggregate_sql(rule: Rule) -> str:
    """The query whose rows are the groups of a rule of one aggregate, or the tuples of a plain one.

    >>> from support.rules import aggregate, atom, head
    >>> aggregate_sql(Rule((head("n", "a", value=aggregate("count")),), (atom("e", "a", "_"),)))
    'select p0.c0, count(*) from e p0 group by p0.c0'
    """
    (head,) = rule.heads
    if not isinstance(head.value, Aggregate):
        return to_sql(rule)
    keys, values = head.variables, head.value.arguments
    shown = tuple(one for one in (*keys, *values) if isinstance(one, Variable))
    bare = to_sql(replace(rule, heads=(Head(head.relation, shown or first_variable(rule)),)))
    columns, rest = bare.removeprefix("select distinct ").split(" from ", 1)
    places = columns.split(", ")
    call = f"{head.value.function}({places[len(keys)] if values else '*'})"
    if not keys:
        return f"select {call} from {rest} having count(*) > 0"
    grouped = ", ".join(places[: len(keys)])
    return f"select {grouped}, {call} from {rest} group by {grouped}"


def first_variable(rule: Rule) -> tuple[Variable, ...]:
    atoms = [one for one in rule.body if isinstance(one, Atom) and not one.negated]
    return next((term,) for atom in atoms for term in atom.terms if isinstance(term, Variable))


def _changes(case: Case, tables: list[Table]) -> Iterable[list[tuple[Table, Row, int]]]:
    """Two transactions: rows that go and rows that come, new values among them."""
    r = random.Random(case.options["seed"])
    for _ in range(2):
        changed: dict[tuple[str, Row], tuple[Table, Row, int]] = {}
        for _ in range(case.options["changes"]):
            table = r.choice(tables)
            if not table.rows:
                continue
            row, other = r.choice(table.rows), r.choice(table.rows)
            if r.random() < 0.5:
                row = tuple(r.choice(cells) for cells in zip(row, other, strict=True))
            changed[table.name, row] = (table, row, r.choice((1, -1)))
        yield list(changed.values())


def combinations(rule: Rule, rows: Mapping[str, int]) -> int:
    """How many rows parts of a body that share no variable make together, at the least, as a product.

    ``rows``: of each relation.

    >>> from support.rules import atom, head, no
    >>> body = atom("e", "a", "b"), atom("e", "b", "c"), atom("f", "d"), no("f", "c")
    >>> combinations(Rule((head("h", "a", "d"),), body), {"e": 100, "f": 20})
    2000
    """
    parts: list[tuple[set[str], int]] = []
    for one in rule.body:
        if isinstance(one, Atom) and not one.negated:
            names, most = set(variables_of(one)), rows[one.relation]
            tied = [part for part in parts if names & part[0]]
            parts = [part for part in parts if part not in tied]
            parts.append((names.union(*(part[0] for part in tied)), max([most, *(part[1] for part in tied)])))
    return math.prod(most for _, most in parts)


def play_large(case: Case) -> None:
    """Once; and kept, unless it is too large a product: a kept body compares texts behind its search."""
    tables = [one.written() if isinstance(one, Many) else one for one in case.tables]
    (rule,) = case.program
    (head,) = case.heads
    query = aggregate_sql(rule)
    oracle = Database(tables)
    right = oracle.rows(query)
    database, workspace = lftj.Database(), Workspace()
    for table in tables:
        database.load(table.name, table.arrow())
        workspace.load(table.name, table.arrow())
    for threads in (1, 2):
        same(f"query {threads} threads", rows_of(database.query(case.rules, threads=threads)), right)
        if (count := database.count(case.rules, threads=threads)) != len(right):
            raise Difference(f"count {threads} threads: {count}, not {len(right)}")
    streamed = [row for batch in database.stream(case.rules, batch_rows=1000) for row in rows_of(batch)]
    same("stream", streamed, right)
    if combinations(rule, {table.name: len(table.rows) for table in tables}) > MOST_COMBINATIONS:
        return
    workspace.install(case.rules, case.options["strategy"])
    same("installed", rows_of(workspace[head].table), right)
    for staged in _changes(case, tables):
        with workspace.transaction() as transaction:
            for table in tables:
                mine = [(row, weight) for one, row, weight in staged if one is table]
                if mine:
                    transaction.apply(table.name, change_table(table, mine))
        for table, row, weight in staged:
            oracle.change(table, row, weight)
        before, right = right, oracle.rows(query)
        same("head after Commit", rows_of(workspace[head].table), right)
        came, went = set(right) - set(before), set(before) - set(right)
        told = [(*row, 1) for row in came] + [(*row, -1) for row in went]
        same("change", rows_of(transaction.changes[head]), told)
    workspace.check_invariants()
