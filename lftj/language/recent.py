"""``t > now() - 10m``: atoms over a stream, of its rows that are recent, as atoms over a relation of these.

    recent(s, t) <- trade(s, t), t > now() - 10m.
    recent(s, t) <- trade from now() - 599999999(s, t).        where t counts microseconds

The relation is none that a program could name; who keeps rules up to date keeps it, by a queue
(:mod:`maintenance.event_time`), so that no rule is evaluated for the clock.

Invariant: what comes out has no ``now()``; what could not be taken apart so is a RuleError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lftj.errors import RuleError, StreamError
from lftj.language.declared_streams import time_variable
from lftj.language.diagnostics import error_at
from lftj.language.expressions import calls_of
from lftj.language.syntax import (
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Program,
    Variable,
    flat,
)
from lftj.values.schema import Schema
from lftj.values.streams import span_text, units_of

NOW = "now"
"""What gives the clock of the streams; no function of values."""

_MARK = " from now() - "
_WAY_OUT = "now() is compared with the time of a stream only, as in t > now() - 10m"


@dataclass(frozen=True)
class Recent:
    """The rows of a stream that are at most so much earlier than the clock, in units of its time."""

    stream: str
    span: int

    @property
    def name(self) -> str:
        """What the relation of them is called."""
        return f"{self.stream}{_MARK}{self.span}"


def is_recent(relation: str) -> bool:
    """Whether this names a relation of recent rows.

    >>> is_recent(Recent("trade", 5).name), is_recent("trade")
    (True, False)
    """
    return _MARK in relation


def with_recent(program: Program, catalog: Mapping[str, Schema]) -> tuple[Program, list[Recent]]:
    """The program over relations of recent rows, and these.  Raises RuleError.

    ``catalog``: the relations that it may read.
    """
    if not any(calls_of_now(literal) for rule in program.rules for literal in flat(rule.body)):
        return program, []
    rewriting = _Rewriting(program.text, catalog)
    rules = tuple(replace(rule, body=rewriting.body(rule.body)) for rule in program.rules)
    return replace(program, rules=rules), list(dict.fromkeys(rewriting.found))


def refuse_clock(program: Program) -> None:
    """Raise RuleError where a program asks for the time, waits for it or joins what comes: a query can't."""
    for final in program.finals:
        message = "final is for rules that are installed in a workspace: a query has no clock"
        raise error_at(RuleError, program.text, final.span, message)
    for rule in program.rules:
        for literal in flat(rule.body):
            if isinstance(literal, Atom) and literal.as_of_now:
                message = "asof now is for rules that are installed in a workspace: to a query no row comes"
                raise error_at(RuleError, program.text, literal.span, message)
        for call in (call for literal in flat(rule.body) for call in calls_of_now(literal)):
            message = "now() is for rules that are installed in a workspace: give a query the time as $now"
            raise error_at(RuleError, program.text, call.span, message)


class _Rewriting:
    def __init__(self, text: str, catalog: Mapping[str, Schema]) -> None:
        self._text, self._catalog = text, catalog
        self.found: list[Recent] = []

    def body(self, literals: Sequence[Literal]) -> tuple[Literal, ...]:
        left: list[Literal] = []
        asked: list[tuple[str, Expression | None, bool, Comparison]] = []
        for literal in literals:
            if isinstance(literal, Disjunction):
                parts = tuple(self.body(part) for part in literal.alternatives)
                left.append(replace(literal, alternatives=parts))
            elif isinstance(literal, Comparison) and calls_of_now(literal):
                asked.append(self._asked(literal))
            else:
                left.append(literal)
        for name, back, is_open, comparison in asked:
            self._bound(left, name, back, is_open, comparison)
        return tuple(left)

    def _asked(self, comparison: Comparison) -> tuple[str, Expression | None, bool, Comparison]:
        """A variable, how far back it may be, and whether less than that, of a comparison with now()."""
        bound, later = comparison.right, comparison.left
        if comparison.operator in ("<", "<="):
            bound, later = later, bound
        earlier, back = bound, None
        if isinstance(bound, BinaryOperation) and bound.operator == "-":
            earlier, back = bound.left, bound.right
        is_now = isinstance(earlier, Call) and earlier.function == NOW and not earlier.arguments
        is_lower = comparison.operator in ("<", "<=", ">", ">=")
        if not (is_lower and is_now and isinstance(later, Variable)):
            raise self._error(comparison, _WAY_OUT)
        return later.name, back, comparison.operator in ("<", ">"), comparison

    def _bound(
        self, literals: list[Literal], name: str, back: Expression | None, is_open: bool, place: Comparison
    ) -> None:
        """Let an atom whose time is this variable be one of recent rows."""
        for number, literal in enumerate(literals):
            if not isinstance(literal, Atom) or literal.negated:
                continue
            before = next((one for one in self.found if one.name == literal.relation), None)
            stream = literal.relation if before is None else before.stream
            if time_variable(literal, self._catalog.get(stream)) != name:
                continue
            span = self._span(stream, back, is_open, place)
            recent = Recent(stream, span if before is None else min(span, before.span))
            self.found.append(recent)
            literals[number] = replace(literal, relation=recent.name)
            return
        raise self._error(place, f"'{name}' is the time of no stream in the body: {_WAY_OUT}")

    def _span(self, stream: str, back: Expression | None, is_open: bool, place: Comparison) -> int:
        schema = self._catalog[stream]
        settings = schema.stream
        assert settings is not None
        arrow = schema.columns[schema.time_number].type.arrow
        value: Any = 0 if back is None else back.value if isinstance(back, Constant) else None
        if not isinstance(value, int | timedelta):
            raise self._error(place, f"what stands behind now() - is no duration in the rule: {_WAY_OUT}")
        try:
            span = units_of(f"stream {stream!r}: now() - ", settings.time, value, arrow)
        except StreamError as error:
            raise self._error(place, str(error)) from None
        if settings.keep is not None and settings.keep < span:
            message = (
                f"stream {stream!r} keeps rows for {span_text(settings.keep, arrow)}, and this looks back"
                f" {span_text(span, arrow)}: keep them for as long at least"
            )
            raise self._error(place, message)
        return span - is_open

    def _error(self, place: Comparison, message: str) -> RuleError:
        return error_at(RuleError, self._text, place.span, message)


def calls_of_now(literal: Literal) -> list[Call]:
    """The calls of now() in a literal that is no disjunction."""
    sides = (literal.left, literal.right) if isinstance(literal, Comparison) else ()
    return [call for side in sides for call in calls_of(side) if call.function == NOW and not call.arguments]
