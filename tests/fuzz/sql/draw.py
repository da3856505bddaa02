"""Random cases of SQL: many statements over tables that are loaded once, or a few views and transactions."""

from __future__ import annotations

import random
from typing import Any

from fuzz.case import Case, Commit, Staged, Table
from fuzz.sql.draw_queries import Queries, Source
from fuzz.sql.draw_tables import FAMILIES, row_of, table
from fuzz.sql.play import STRATEGIES, view_name
from support.reference import Row

STATEMENTS = 24
"""Over the tables of one case."""

KEPT = 0.25
"""The share of cases whose statements are kept."""

TRANSACTIONS = 6


def _source(one: Table) -> Source:
    return Source(
        one.name,
        tuple(zip(one.columns, (FAMILIES[type_] for type_ in one.types), strict=True)),
        len(one.rows),
    )


def sql(r: random.Random) -> Case:
    drawn = [table(r, name) for name in ("r", "s", "t")[: r.choice((1, 2, 2, 2, 3))]]
    tables = tuple(one for one, _ in drawn)
    sources = [_source(one) for one in tables]
    if r.random() >= KEPT:
        statements = tuple(
            Queries(r, sources, r.choice((1, 1, 2, 2, 3))).statement()[0] for _ in range(STATEMENTS)
        )
        return Case("sql", tables, (), statements=statements)
    statements = ()
    for n in range(r.choice((1, 2, 3))):
        drawing = Queries(r, sources, r.choice((1, 1, 1, 2, 2, 3)))
        statement, families = drawing.statement(approximate=n > 0)
        statements = (*statements, statement)
        columns = _columns(statement, families)
        if columns is not None:
            sources = [*sources, Source(view_name(n), columns, drawing.drawn)]
    pools = {one.name: values for one, values in drawn}
    strategies = tuple(r.choice(STRATEGIES) for _ in statements)
    options = {"kept": True, "strategies": strategies}
    return Case("sql", tables, (), _steps(r, tables, pools), options, statements)


def _columns(statement: Any, families: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Names and families of a view's columns, where all are named as they are drawn."""
    first = statement
    while not hasattr(first, "items"):
        first = getattr(first, "body", None) or first.left
    names = [item.name for item in first.items]
    return tuple(zip(names, families, strict=True)) if all(names) and len(names) == len(families) else None


def _steps(
    r: random.Random, tables: tuple[Table, ...], pools: dict[str, tuple[tuple[Any, ...], ...]]
) -> tuple[Commit, ...]:
    """Transactions that erase what is there, copies one by one or all, and insert what is new or is there."""
    state: dict[str, list[Row]] = {one.name: list(one.rows) for one in tables}
    by_name = {one.name: one for one in tables}
    steps = []
    for _ in range(TRANSACTIONS):
        staged: list[Staged] = []
        for name in r.sample(list(state), r.randrange(1, len(state) + 1)):
            rows = state[name]
            share = r.choice((0.0, 0.1, 0.1, 0.3, 1.0 if r.random() < 0.2 else 0.2))
            gone = [row for row in rows if r.random() < share]
            new = [row_of(r, pools[name]) for _ in range(r.choice((0, 1, 1, 2, 3, 6)))]
            if rows and r.random() < 0.5:
                new += r.choices(rows, k=r.choice((1, 2)))
            for row in gone:
                rows.remove(row)
            key_of = by_name[name].key_of
            if by_name[name].key:  # a second row would be refused
                there = {key_of(row) for row in rows}
                new = [row for key, row in {key_of(row): row for row in new}.items() if key not in there]
            rows += new
            staged += [(name, row, -1) for row in gone] + [(name, row, 1) for row in new]
        steps.append(Commit(tuple(staged), "tables"))
    return tuple(steps)
