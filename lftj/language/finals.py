"""``final vol at w + 5m.``: rows of a head that no later row of a stream changes, for the clock is there.

That a row is final when it closes is read off the rules: each row of a stream that has a part in it has a
time before the close, and is kept until then.

    vol[s, w] = sum(q) <- trade(s, q, t), w = tumble(t, 5m).    w <= t,  t <= w + 5m - 1
    final vol at w + 5m.                                        t < w + 5m;  trade is kept 5m at least

Method: comparisons and windows of a body are bounds ``x - y <= c``; what follows for two variables is a
shortest path (difference constraints: R. Shostak, "Deciding linear inequalities by computing loop residues",
J. ACM 28, 1981).  Cost: cubic in the variables of a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lftj.errors import RuleError, StreamError
from lftj.language.declared_streams import time_variable
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.parser import parse
from lftj.language.recent import is_recent
from lftj.language.syntax import (
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    DeclaredFinal,
    Disjunction,
    Expression,
    Program,
    Rule,
    Variable,
)
from lftj.values.schema import Schema
from lftj.values.streams import span_text, units_of

Bounds = dict[tuple[str, str], int]
"""``(x, y)``: c, where x - y <= c."""


@dataclass(frozen=True)
class Final:
    """Rows of ``head`` close when the clock is at their column ``number``, and ``after`` units more.

    ``extents``: by stream, how long before a close a row may come that has a part in what closes then.
    """

    head: str
    number: int
    after: int
    extents: Mapping[str, int]

    @property
    def name(self) -> str:
        """What the relation of closed rows is called."""
        return final_name(self.head)


def heads_of(program: str) -> list[str]:
    """The heads that a text of rules defines, each once.  Raises RuleSyntaxError.

    >>> heads_of("p(a) <- q(a, _).  p(a) <- r(a).  n[] = count() <- p(_).")
    ['p', 'n']
    """
    tree = parse(program)
    heads = dict.fromkeys(head.relation for rule in tree.rules for head in rule.heads)
    return [*heads, *(final_name(final.head) for final in tree.finals)]


def final_name(head: str) -> str:
    return f"{head}_final"


def finals_of(
    program: Program, derived: Mapping[str, Schema], catalog: Mapping[str, Schema], timed: Iterable[str]
) -> list[Final]:
    """What a program closes, checked.  Raises RuleError.

    ``derived``: its heads; ``catalog``: what its rules read beside; ``timed``: heads among that which follow
    a stream.
    """
    return [_Closing(program, one, derived, catalog, frozenset(timed)).final() for one in program.finals]


class _Closing:
    def __init__(
        self,
        program: Program,
        declared: DeclaredFinal,
        derived: Mapping[str, Schema],
        catalog: Mapping[str, Schema],
        timed: frozenset[str],
    ) -> None:
        self._program, self._declared, self._derived = program, declared, derived
        self._catalog, self._timed = catalog, timed

    def final(self) -> Final:
        declared = self._declared
        rules = [rule for rule in self._program.rules if declared.head in (h.relation for h in rule.heads)]
        schema = self._derived.get(declared.head)
        if not rules or schema is None:
            hint = suggestion(declared.head, list(self._derived))
            raise self._error(
                f"final stands beside the rules of its head, and '{declared.head}' has none here{hint}"
            )
        if schema.bag:
            raise self._error(f"'{declared.head}' is a bag, of which no row is the last: close a set")
        if final_name(declared.head) in {*self._derived, *self._catalog}:
            raise self._error(f"there is a relation '{final_name(declared.head)}' already")
        labels = [column.name for column in schema.columns]
        if declared.column.name not in labels:
            hint = suggestion(declared.column.name, labels)
            raise self._error(f"'{declared.head}' has no column '{declared.column.name}'{hint}")
        number = labels.index(declared.column.name)
        arrow = schema.columns[number].type.arrow
        extents: dict[str, int] = {}
        after = 0
        for rule in rules:
            for head in (head for head in rule.heads if head.relation == declared.head):
                window = head.columns[number]
                if not isinstance(window, Variable):
                    raise self._error(
                        f"'{declared.column.name}' is no time of a row: close by another column"
                    )
                after = self._units(declared.after or 0, arrow)
                for stream, extent in self._extents(rule, window.name, after, arrow):
                    extents[stream] = max(extent, extents.get(stream, extent))
        if not extents:
            raise self._error(f"'{declared.head}' reads no stream, so no clock closes it")
        return Final(declared.head, number, after, extents)

    def _extents(self, rule: Rule, window: str, after: int, arrow: pa.DataType) -> list[tuple[str, int]]:
        """Each stream that a rule reads, and how long before a close a row of it may count."""
        bounds = self._bounds(rule, arrow)
        found = []
        for literal in rule.body:
            if isinstance(literal, Disjunction):
                raise self._error(f"'{self._declared.head}' has alternatives: write a rule for each")
            if not isinstance(literal, Atom):
                continue
            if (
                literal.relation in self._timed
                or literal.relation in self._derived
                or is_recent(literal.relation)
            ):
                raise self._error(
                    f"'{self._declared.head}' follows a stream by way of others, or by now(): close a head"
                    " whose rules read the stream itself"
                )
            schema = self._catalog.get(literal.relation)
            if schema is None or schema.stream is None:
                continue
            time = time_variable(literal, schema)
            found.append(
                (literal.relation, self._extent(literal.relation, schema, bounds, time, window, after))
            )
        return found

    def _extent(
        self, stream: str, schema: Schema, bounds: Bounds, time: str | None, window: str, after: int
    ) -> int:
        settings, close = schema.stream, self._text_of_close()
        assert settings is not None
        arrow = schema.columns[schema.time_number].type.arrow
        latest = None if time is None else _least(bounds, time, window)
        earliest = None if time is None else _least(bounds, window, time)
        if latest is None or earliest is None:
            raise self._error(
                f"nothing bounds the time of '{stream}' from {'above' if latest is None else 'below'} by"
                f" '{window}': say so in the body, as by {window} = tumble(t, 5m)"
            )
        if latest >= after:
            raise self._error(
                f"a row of '{stream}' counts with a time up to {window} + {span_text(latest, arrow)}, and"
                f" {close} is not later: close at {window} + {span_text(latest + 1, arrow)} or later"
            )
        extent = after + max(earliest, 0)
        if settings.keep is not None and settings.keep < extent:
            raise self._error(
                f"stream '{stream}' keeps rows for {span_text(settings.keep, arrow)}, and what closes at"
                f" {close} needs them for {span_text(after, arrow)} + {span_text(max(earliest, 0), arrow)} ="
                f" {span_text(extent, arrow)}: keep them for as long at least"
            )
        return extent

    def _bounds(self, rule: Rule, arrow: pa.DataType) -> Bounds:
        """What comparisons and windows of a body say of pairs of variables, and what follows."""
        bounds: Bounds = {}

        def say(x: str, y: str, most: int) -> None:
            bounds[x, y] = min(most, bounds.get((x, y), most))

        for literal in rule.body:
            if not isinstance(literal, Comparison):
                continue
            if (window := _window(literal)) is not None:
                begin, call = window
                moment = call.arguments[0]
                length = self._constant(call.arguments[1], arrow)
                if isinstance(moment, Variable) and length is not None:
                    say(begin, moment.name, 0)
                    say(moment.name, begin, length - 1)
                continue
            left, right = (self._shifted(side, arrow) for side in (literal.left, literal.right))
            if left is None or right is None:
                continue
            (x, up), (y, down) = left, right
            if literal.operator in ("<", "<=", "="):
                say(x, y, down - up - (literal.operator == "<"))
            if literal.operator in (">", ">=", "="):
                say(y, x, up - down - (literal.operator == ">"))
        names = sorted({name for pair in bounds for name in pair})
        for middle in names:
            for x in names:
                for y in names:
                    if (x, middle) in bounds and (middle, y) in bounds:
                        say(x, y, bounds[x, middle] + bounds[middle, y])
        return bounds

    def _shifted(self, side: Expression, arrow: pa.DataType) -> tuple[str, int] | None:
        """``t + 5m`` as a variable and units; None for anything else."""
        if isinstance(side, Variable):
            return side.name, 0
        if not isinstance(side, BinaryOperation) or not isinstance(side.left, Variable):
            return None
        units = self._constant(side.right, arrow)
        if units is None or side.operator not in ("+", "-"):
            return None
        return side.left.name, units if side.operator == "+" else -units

    def _constant(self, side: Expression, arrow: pa.DataType) -> int | None:
        value: Any = side.value if isinstance(side, Constant) else None
        if isinstance(value, bool) or not isinstance(value, int | timedelta):
            return None
        if isinstance(value, int) and pa.types.is_date(arrow):
            return value
        try:
            return units_of("", "", value, arrow)
        except StreamError:
            return None

    def _units(self, after: int | timedelta, arrow: pa.DataType) -> int:
        try:
            return units_of(f"final {self._declared.head}: ", self._declared.column.name, after, arrow)
        except StreamError as error:
            raise self._error(str(error)) from None

    def _text_of_close(self) -> str:
        return self._program.text[slice(*self._declared.close_span)]

    def _error(self, message: str) -> RuleError:
        return error_at(RuleError, self._program.text, self._declared.span, message)


def _least(bounds: Bounds, x: str, y: str) -> int | None:
    """The least c with x - y <= c; None where there is none."""
    return 0 if x == y else bounds.get((x, y))


def _window(comparison: Comparison) -> tuple[str, Call] | None:
    """The beginning and the call of ``w = tumble(t, 5m)`` and ``w in hop(t, 5m, 1m)``."""
    left, right = comparison.left, comparison.right
    if comparison.operator != "=":
        return None
    if isinstance(left, Variable) and isinstance(right, Call) and right.function == "tumble":
        return left.name, right
    if isinstance(left, Call) and left.function == "list_contains":
        hop, begin = left.arguments
        if isinstance(hop, Call) and hop.function == "hop" and isinstance(begin, Variable):
            return begin.name, hop
    return None
