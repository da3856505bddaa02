"""Makes a case that finds something smaller: parts are left out as long as the same is found.

Greedy, from coarse to fine, until nothing more can go or the time is up.  Each attempt is played in a process
of its own (:mod:`fuzz.outcome`), for what is found may be the end of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fuzz.case import ApplyMany, Case, Commit, Many, Step, Table
from fuzz.sql.smaller import smaller as smaller_statements
from support.rules import Aggregate, Atom, Either, Head, Literal, Rule, Variable, Wildcard

T = TypeVar("T")
WRITTEN_ROWS = 3_000
"""Relations of so many rows are written down, so that single rows can go."""


def without_parts(parts: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """The sequence without halves of it, then quarters, and so on to single parts."""
    size = len(parts)
    while size:
        for start in range(0, len(parts), size):
            yield (*parts[:start], *parts[start + size :])
        size = size // 2


def _with_table(case: Case, place: int, table: Table | Many) -> Case:
    return replace(case, tables=(*case.tables[:place], table, *case.tables[place + 1 :]))


def _smaller_steps(case: Case) -> Iterator[Case]:
    for steps in without_parts(case.steps):
        yield replace(case, steps=steps)
    for place, step in enumerate(case.steps):
        smaller: list[Step] = []
        if isinstance(step, Commit):
            smaller = [replace(step, staged=staged) for staged in without_parts(step.staged)]
        elif isinstance(step, ApplyMany):
            smaller = [Commit(tuple(one for part in step.transactions for one in part))]
            smaller += [ApplyMany(rest) for rest in without_parts(step.transactions)]
            for n, staged in enumerate(step.transactions):
                smaller += [
                    ApplyMany((*step.transactions[:n], rest, *step.transactions[n + 1 :]))
                    for rest in without_parts(staged)
                ]
        for one in smaller:
            yield replace(case, steps=(*case.steps[:place], one, *case.steps[place + 1 :]))


def _smaller_tables(case: Case) -> Iterator[Case]:
    for tables in without_parts(case.tables):
        yield replace(case, tables=tables)
    for place, table in enumerate(case.tables):
        if isinstance(table, Many):
            if table.n_rows > 1:
                yield _with_table(case, place, replace(table, n_rows=table.n_rows // 2))
            if table.n_rows <= WRITTEN_ROWS:
                yield _with_table(case, place, table.written())
            continue
        for rows in without_parts(table.rows):
            yield _with_table(case, place, replace(table, rows=rows))


def _fewer_columns(case: Case) -> Iterator[Case]:
    """A column of a relation goes, in all atoms and changes."""
    for table in case.tables:
        if isinstance(table, Many) or len(table.types) < 2:
            continue
        for column in range(len(table.types)):
            if table.key != (column,):
                yield _without_column(case, table, column)


def _cut(row: tuple[Any, ...], column: int) -> tuple[Any, ...]:
    return (*row[:column], *row[column + 1 :])


def _without_column(case: Case, table: Table, column: int) -> Case:
    def in_literal(literal: Literal) -> Literal:
        if isinstance(literal, Either):
            return Either(tuple(tuple(map(in_literal, part)) for part in literal.alternatives))
        if isinstance(literal, Atom) and literal.relation == table.name:
            return replace(literal, terms=_cut(literal.terms, column))
        return literal

    def in_staged(staged: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple((n, _cut(row, column) if n == table.name else row, w) for n, row, w in staged)

    def in_step(step: Step) -> Step:
        if isinstance(step, Commit):
            return replace(step, staged=in_staged(step.staged))
        return ApplyMany(tuple(map(in_staged, step.transactions))) if isinstance(step, ApplyMany) else step

    narrower = replace(
        table,
        types=_cut(table.types, column),
        rows=tuple(_cut(row, column) for row in table.rows),
        names=_cut(table.names, column),
        not_null=(),
        key=tuple(place - (place > column) for place in table.key if place != column),
    )
    required = _cut(tuple(name in table.not_null for name in table.columns), column)
    narrower = replace(
        narrower, not_null=tuple(name for name, one in zip(narrower.columns, required, strict=True) if one)
    )
    if table.key:
        narrower = replace(
            narrower, rows=tuple({narrower.key_of(row): row for row in narrower.rows}.values())
        )
    if not table.bag:
        narrower = replace(narrower, rows=tuple(dict.fromkeys(narrower.rows)))
    return replace(
        case,
        tables=tuple(narrower if one is table else one for one in case.tables),
        program=tuple(replace(rule, body=tuple(map(in_literal, rule.body))) for rule in case.program),
        steps=tuple(map(in_step, case.steps)),
    )


def _smaller_statements(case: Case) -> Iterator[Case]:
    for statements in without_parts(case.statements):
        if statements:
            yield replace(case, statements=statements)
    for place, statement in enumerate(case.statements):
        for less in smaller_statements(statement):
            yield replace(case, statements=(*case.statements[:place], less, *case.statements[place + 1 :]))


def _smaller_program(case: Case) -> Iterator[Case]:
    for rules in without_parts(case.program):
        if rules:
            yield replace(case, program=rules)
    for place, rule in enumerate(case.program):
        for smaller in _smaller_rules(rule):
            yield replace(case, program=(*case.program[:place], smaller, *case.program[place + 1 :]))


def _smaller_rules(rule: Rule) -> Iterator[Rule]:
    for body in without_parts(rule.body):
        if body:
            yield replace(rule, body=body)
    for place, literal in enumerate(rule.body):
        before, behind = rule.body[:place], rule.body[place + 1 :]
        if isinstance(literal, Either):
            for part in literal.alternatives:
                yield replace(rule, body=(*before, *part, *behind))
        if isinstance(literal, Atom):
            for n, term in enumerate(literal.terms):
                if not isinstance(term, Wildcard):
                    terms = (*literal.terms[:n], Wildcard(), *literal.terms[n + 1 :])
                    yield replace(rule, body=(*before, replace(literal, terms=terms), *behind))
            if literal.functional:
                yield replace(rule, body=(*before, replace(literal, functional=False), *behind))
    if len(rule.heads) > 1:
        yield replace(rule, heads=rule.heads[:1])
    for head in _smaller_heads(rule.heads[0]):
        yield replace(rule, heads=(head, *rule.heads[1:]))


def _smaller_heads(head: Head) -> Iterator[Head]:
    for n in range(len(head.terms)):
        if len(head.terms) > 1 or head.value is not None:
            yield replace(head, terms=_cut(head.terms, n))
    if head.copies is not None:
        yield replace(head, copies=None)
    if isinstance(head.value, Aggregate):
        yield replace(head, value=Aggregate("count"))
        keys = tuple(term for term in head.terms if isinstance(term, Variable))
        if keys:
            yield Head(head.relation, keys)


def _fewer_options(case: Case) -> Iterator[Case]:
    for name, value in case.options.items():
        yield replace(case, options={n: v for n, v in case.options.items() if n != name})
        if name in ("strategies", "others") and set(value) != {"auto"}:
            yield replace(case, options={**case.options, name: ("auto",) * len(value)})


_WAYS = (
    _smaller_steps,
    _smaller_statements,
    _smaller_program,
    _smaller_tables,
    _fewer_options,
    _fewer_columns,
)


def minimise(case: Case, finds: Callable[[Case], bool], seconds: float) -> Case:
    """The smallest case found in this time for which ``finds`` still holds, as it does for ``case``."""
    end = time.monotonic() + seconds
    while True:
        before = case
        for way in _WAYS:
            case = _by(way, case, finds, end)
        if case is before or time.monotonic() > end:
            return case


def _by(way: Callable[[Case], Iterator[Case]], case: Case, finds: Callable[[Case], bool], end: float) -> Case:
    """Take the first smaller one that still finds it, and go on from there, until none does."""
    progress = True
    while progress:
        progress = False
        for smaller in way(case):
            if time.monotonic() > end:
                return case
            if smaller != case and finds(smaller):
                case, progress = smaller, True
                break
    return case
