"""Plays a program once, over a database, in every way that there is: each gives the same rows."""

from __future__ import annotations

import random
from typing import Any

import lftj
from fuzz.case import Case, Table
from fuzz.difference import Difference, same
from fuzz.expected import Heads, Refused, bags, beginning, expected
from lftj import errors
from maintenance import Workspace
from support.rows import rows_of
from support.rules import Aggregate, Atom, Either, Rule, Variable, literals, render


def loaded(case: Case, into: Any) -> Any:
    """The database or workspace, with the case's relations in it."""
    for table in case.tables:
        assert isinstance(table, Table)
        by_rules = table.declared and isinstance(into, Workspace)  # a query says what is so already
        key = {"key": table.key_columns} if table.key and not by_rules else {}
        into.load(table.name, table.arrow(), **{**table.options, **key})
    return into


def rules_text(case: Case) -> str:
    """The program; atoms of some relations name their columns."""
    named = set(case.options.get("by_name", ()))
    columns = {t.name: [f"c{i}" for i in range(len(t.types))] for t in case.tables if t.name in named}
    return case.declarations + render(case.program, columns)


def play_once(case: Case) -> None:
    """Raises Difference, or whatever the engine raises but should not."""
    right = expected(case.program, beginning(case), case.heads, bags(case))
    database = loaded(case, lftj.Database())
    text = rules_text(case)
    if isinstance(right, Refused):
        _refused(case, database, text, right)
        return
    for head, rows in right.items():
        for threads in (1, 2):
            same(f"query {threads} threads", rows_of(database.query(text, head=head, threads=threads)), rows)
        batch_rows = case.options.get("batch_rows", 1000)
        batches = database.stream(text, head=head, batch_rows=batch_rows)
        same("stream", [row for batch in batches for row in rows_of(batch)], rows)
        _number("count", database.count(text, head=head), len(rows))
        _number("count 2 threads", database.count(text, head=head, threads=2), len(rows))
        first = database.query(text, head=head, limit=3)
        _number("limit", first.num_rows, min(3, len(rows)))
    for head in case.heads:
        str(database.explain(text, head=head, analyze=True))
    _orders(case, database, right)
    _trace(case, database)
    for name, counts in beginning(case).items():
        same("relation", list(database[name]), counts.elements())


def _number(what: str, got: int, right: int) -> None:
    if got != right:
        raise Difference(f"{what}: {got}, not {right}")


def _refused(case: Case, database: lftj.Database, text: str, why: Refused) -> None:
    """At least one head can't be evaluated."""
    for head in case.heads:
        try:
            database.query(text, head=head)
        except errors.FunctionalConflictError:
            return
    raise Difference(f"not refused: {why.why}")


def _single(case: Case) -> Rule | None:
    """The rule, where the program is one with one head."""
    return case.program[0] if len(case.program) == 1 and len(case.program[0].heads) == 1 else None


def _orders(case: Case, database: lftj.Database, right: Heads) -> None:
    """Key orders from outside: some of all."""
    rule = _single(case)
    if rule is None or any(isinstance(literal, Either) for literal in rule.body):
        return
    names = list(
        dict.fromkeys(
            term.name
            for literal in literals(rule.body)
            if isinstance(literal, Atom) and not literal.negated
            for term in literal.terms[: len(literal.terms) - literal.functional]
            if isinstance(term, Variable)
        )
    )
    r = random.Random(case.options.get("order_seed", 0))
    for _ in range(4):
        r.shuffle(names)
        try:
            got = rows_of(database.query(case.rules, order=list(names), threads=1))
            counted = database.count(case.rules, order=list(names), threads=1)
        except errors.OrderError:
            return
        same("query in an order", got, right[case.heads[0]])
        _number("count in an order", counted, len(got))


def _trace(case: Case, database: lftj.Database) -> None:
    rule = _single(case)
    if rule is None or any(isinstance(column, Aggregate) for column in rule.heads[0].columns):
        return
    try:
        database.trace(case.rules, limit=200_000)
    except (errors.RuleError, errors.LimitError):
        return
