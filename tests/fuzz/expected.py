"""What has to come out, by brute force over Python values (:mod:`support.reference`): nothing of the engine.

A bag's copies are numbered here in a column of their own, which atoms read by a wildcard: each copy is an
assignment of its own, as the language says.  So are those of a head that is a bag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fuzz.case import Case, Staged, Table
from support import reference
from support.functions import DivisionByZero, Overflow
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


@dataclass(frozen=True)
class Refused:
    """The program fails on these relations."""

    why: str


def beginning(case: Case) -> State:
    """The relations as they are loaded."""
    return {
        table.name: Counter(table.rows) if table.bag else Counter(set(table.rows))
        for table in case.tables
        if isinstance(table, Table)
    }


def bags(case: Case) -> set[str]:
    return {table.name for table in case.tables if isinstance(table, Table) and table.bag}


def after(state: State, staged: tuple[Staged, ...], bags: set[str]) -> State:
    """The relations after a transaction, whose changes add up."""
    sums: dict[tuple[str, Row], int] = {}
    for name, row, weight in staged:
        sums[name, row] = sums.get((name, row), 0) + weight
    result = {name: Counter(rows) for name, rows in state.items()}
    for (name, row), weight in sums.items():
        now = result[name][row] + weight
        result[name][row] = max(now, 0) if name in bags else int(now > 0) if weight else result[name][row]
        if not result[name][row]:
            del result[name][row]
    return result


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
