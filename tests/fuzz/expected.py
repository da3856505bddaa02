"""What has to come out, by brute force over Python values (:mod:`support.reference`): nothing of the engine.

A bag's copies are numbered here in a column of their own, which atoms read by a wildcard: each copy is an
assignment of its own, as the language says.  So are those of a head that is a bag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fuzz.case import Case, Staged, Table
from support import keyed_model, reference
from support.functions import DivisionByZero, Overflow
from support.keyed_model import Event, TwoRows
from support.reference import FunctionalConflict, Row, TooManySteps
from support.rules import Atom, Either, Literal, Program, Wildcard

STEPS = 300_000
"""Bindings that are tried for one state of the relations at most."""

State = dict[str, Counter[Row]]
"""The rows of each relation; a row is there as often as in a bag, and once where it is none."""

Heads = dict[str, Collection[Row]]
"""The rows of each head, a bag's as often as they are there."""


class OutOfReach(Exception):
    """What is right can't be said in reasonable time, or is not defined: the case says nothing."""


class SecondRow(OutOfReach):
    """A key would have two rows: a transaction that says so is refused."""


@dataclass(frozen=True)
class Refused:
    """The program fails on these relations; ``by_key``: there are none, a key would have two rows."""

    why: str
    by_key: bool = False


def beginning(case: Case) -> State:
    """The relations as they are loaded."""
    return {
        table.name: Counter(table.rows) if table.bag else Counter(set(table.rows))
        for table in case.tables
        if isinstance(table, Table)
    }


def bags(case: Case) -> set[str]:
    return {table.name for table in case.tables if isinstance(table, Table) and table.bag}


def after(case: Case, state: State, staged: tuple[Staged, ...]) -> State:
    """The relations after a transaction, whose changes add up, behind the last upsert or erasure of a key.

    Raises SecondRow.
    """
    keyed = {table.name: table for table in case.tables if isinstance(table, Table) and table.key}
    sums: dict[tuple[str, Row], int] = {}
    events: dict[str, list[Event]] = {}
    for name, row, weight in staged:
        if name in keyed:
            events.setdefault(name, []).extend(_events(keyed[name], row, weight))
        else:
            assert isinstance(weight, int)
            sums[name, row] = sums.get((name, row), 0) + weight
    result = {name: Counter(rows) for name, rows in state.items()}
    for (name, row), weight in sums.items():
        now = result[name][row] + weight
        is_bag = name in bags(case)
        result[name][row] = max(now, 0) if is_bag else int(now > 0) if weight else result[name][row]
        if not result[name][row]:
            del result[name][row]
    for name, its in events.items():
        key_of = keyed[name].key_of
        try:
            rows = keyed_model.after({key_of(row): row for row in state[name]}, its, key_of)
        except TwoRows as error:
            raise SecondRow(f"two rows of a key of {name}") from error
        result[name] = Counter(rows.values())
    return result


def _events(table: Table, row: Row, weight: int | str) -> list[Event]:
    if isinstance(weight, str):
        return [Event(weight, table.key_of(row) if weight == "erase_keys" else row)]
    return [Event("insert" if weight > 0 else "erase", row)] * abs(weight)


def whole_rows(before: State, now: State) -> tuple[Staged, ...]:
    """The rows that go and those that come: an upsert is one of each."""
    gone = [(name, row, -n) for name, rows in before.items() for row, n in (rows - now[name]).items()]
    came = [(name, row, n) for name, rows in now.items() for row, n in (rows - before[name]).items()]
    return (*gone, *came)


def _with_copies(literal: Literal, bags: set[str]) -> Literal:
    if isinstance(literal, Either):
        return Either(tuple(tuple(_with_copies(one, bags) for one in part) for part in literal.alternatives))
    if isinstance(literal, Atom) and literal.relation in bags:
        return replace(literal, terms=(*literal.terms, Wildcard()), functional=False)
    return literal


def expected(
    program: Program, state: State, wanted: list[str], bags: set[str], errors_count: bool = False
) -> Heads | Refused:
    """The heads' tuples.  Raises OutOfReach.

    ``errors_count``: a number that leaves its range, and a division by zero, refuse.  So they do wherever an
    assignment has one; but which come first, they or a condition that fails, is said for atoms alone.
    """
    relations: Mapping[str, set[Row]] = {
        name: {(*row, copy) for row, copies in rows.items() for copy in range(copies)}
        if name in bags
        else set(rows)
        for name, rows in state.items()
    }
    derived = {head.relation for rule in program for head in rule.heads if head.bag}
    numbered = bags | derived
    rules = tuple(
        replace(rule, body=tuple(_with_copies(literal, numbered) for literal in rule.body))
        for rule in program
    )
    try:
        with reference.at_most(STEPS):
            found = reference.evaluate_each(rules, relations, wanted)
        return {name: [row[:-1] for row in found[name]] if name in derived else found[name] for name in found}
    except FunctionalConflict:
        return Refused("two values for a key")
    except (Overflow, DivisionByZero) as error:
        if errors_count:
            return Refused(type(error).__name__)
        raise OutOfReach(type(error).__name__) from None
    except TooManySteps as error:
        raise OutOfReach(type(error).__name__) from None
