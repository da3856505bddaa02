"""Windows of a rule's text: ``lag(v, 1, by: (t desc, k), per: c)``, their orders and frames.

The rest stands in :mod:`lftj.language.reader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from lftj.errors import ArityError
from lftj.language.diagnostics import error_at
from lftj.language.literal_reader import LiteralReader, span_of
from lftj.language.syntax import (
    Aggregate,
    Call,
    ColumnName,
    Constant,
    Expression,
    Frame,
    SortKey,
    Span,
    Variable,
    Wildcard,
    Window,
)
from lftj.values.names import FRAMED, FRAMES, NUMBERING

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class NamedTerm:
    """``orderkey: o``, until the atom or head around it takes it apart."""

    name: ColumnName
    term: Any


@dataclass(frozen=True)
class Listed:
    """``(p desc, i)`` or ``(-3, _)``, until the window around it takes it apart."""

    terms: tuple[Any, ...]
    span: Span


def listed(term: Any) -> tuple[Any, ...]:
    """What stands behind ``by:`` and the like, by itself or in parentheses."""
    if isinstance(term, Listed):
        return term.terms
    if isinstance(term, Call) and term.function == "and":
        return tuple(one for argument in term.arguments for one in listed(argument))
    return (term,)


def _is_whole(term: Any, least: int) -> bool:
    return isinstance(term, Constant) and type(term.value) is int and term.value >= least


class WindowReader(LiteralReader):
    """Methods of windows, and what expressions may be made of."""

    def window(self, meta: Any, name: str, arguments: list[Any]) -> Window:
        """``lag(v, 1, by: (t desc, k), per: c)``, by its arguments."""
        parts: dict[str, list[NamedTerm]] = {}
        plain = [one for one in arguments if not isinstance(one, NamedTerm)]
        for one in arguments:
            if isinstance(one, NamedTerm):
                if one.name.name not in ("by", "per", *FRAMES):
                    known = f"by:, per: and {', '.join(f'{unit}:' for unit in FRAMES)}"
                    raise self.error(
                        one.name.span, f"'{name}' takes {known}, as in {name}(..., by: v, per: a)"
                    )
                parts.setdefault(one.name.name, []).append(one)
        listed_per = (term for one in parts.get("per", ()) for term in listed(one.term))
        per = tuple(dict.fromkeys(self._ordering(term, name).variable for term in listed_per))
        by = [self._ordering(term, name) for one in parts.get("by", ()) for term in listed(one.term)]
        if name == "top" and [type(one.term) for one in parts.get("by", ())] == [Variable]:
            by = [SortKey(by[0].variable, descending=True)]
        frames = [one for unit in FRAMES for one in parts.get(unit, ())]
        if len(parts.get("by", ())) > 1:
            raise self.error(parts["by"][1].name.span, f"'{name}' goes by one order: by: (a, b)")
        if not by and (name not in FRAMED or frames):
            raise self.error(span_of(meta), f"'{name}' needs an order: {name}(..., by: v)")
        if frames and name not in FRAMED:
            raise self.error(
                frames[0].name.span, f"'{name}' reads no frame: leave out {frames[0].name.name}:"
            )
        if len(frames) > 1:
            raise self.error(frames[1].name.span, "a window has one frame")
        frame = self._frame(frames[0], by) if frames else None
        most, taken = self._window_arguments(meta, name, plain)
        return Window(name, taken, per, tuple(by), frame, most, span_of(meta))

    def ordered(self, meta: Any, children: list[Any]) -> SortKey:
        variable, *signs = (child for child in children if child is not None)
        kinds = {sign.type for sign in signs}
        return SortKey(variable, "DESC" in kinds, "NULLS_FIRST" in kinds)

    def _ordering(self, term: Any, name: str) -> SortKey:
        ordering = term if isinstance(term, SortKey) else SortKey(term)
        of: Any = ordering.variable
        if not isinstance(of, Variable):
            message = f"'{name}' takes variables: write v here and v = {self.written(of)} in the body"
            raise self.error(of.span, message)
        return ordering

    def _frame(self, one: NamedTerm, by: Sequence[SortKey]) -> Frame:
        unit = one.name.name
        ends = [
            None if isinstance(term, Wildcard) else getattr(term, "value", term) for term in listed(one.term)
        ]
        in_time = unit == "range" and any(type(end) is timedelta for end in ends)
        mixed = in_time and any(end and type(end) is not timedelta for end in ends)
        ends = [end // _MICROSECOND if type(end) is timedelta and in_time else end for end in ends]
        numbers = [end for end in ends if end is not None]
        known = (int, float, Decimal) if unit == "range" else (int,)
        if len(ends) != 2 or mixed or not all(type(end) in known for end in numbers):
            example = f"{unit}: (-3, 0), or _ for no end"
            raise self.error(
                one.name.span, f"a frame goes from a number to one, before and behind the row: {example}"
            )
        first, last = ends
        if first is not None and last is not None and first > last:
            raise self.error(one.name.span, f"the frame ends before it begins: {unit}: ({last}, {first})")
        if unit == "range" and any(numbers) and len(by) != 1:
            raise self.error(one.name.span, "a range is of one order variable: by: v")
        return Frame(unit, first, last, in_time)

    def _window_arguments(
        self, meta: Any, name: str, plain: list[Any]
    ) -> tuple[int | None, tuple[Variable | Constant, ...]]:
        """How many rows are kept, and what a window reads beside its order."""
        if name in ("top", "ntile"):
            number = plain[0] if plain else None
            if len(plain) != 1 or not isinstance(number, Constant) or not _is_whole(number, 1):
                message = f"'{name}' takes a whole number from 1 first: {name}(3, by: v)"
                raise self.error(span_of(meta), message)
            assert isinstance(number.value, int)
            return (number.value, ()) if name == "top" else (None, (number,))
        least, most = {"lag": (1, 3), "lead": (1, 3), "count": (0, 1), "nth": (2, 2)}.get(name, (1, 1))
        if name in NUMBERING:
            least = most = 0
        if not least <= len(plain) <= most:
            takes = {
                0: "by: and per: alone",
                1: "one value",
                2: "a value and a number",
                3: "a value, and then how many rows away, and a default",
            }
            raise error_at(ArityError, self._text, span_of(meta), f"'{name}' takes {takes[most]}")
        for place, argument in enumerate(plain):
            least = 1 if name == "nth" else 0
            if place == 1 and not _is_whole(argument, least):
                message = f"'{name}' takes a whole number from {least} second: {name}(v, 1, by: t)"
                raise self.error(argument.span, message)
            literal = place and isinstance(argument, Constant) and argument.parameter is None
            if not isinstance(argument, Variable) and not literal:
                message = (
                    f"'{name}' takes variables: write v here and v = {self.written(argument)} in the body"
                )
                raise self.error(argument.span, message)
        return None, tuple(plain)

    def check_operand(self, operand: Any) -> None:
        if isinstance(operand, Window):
            name = operand.function
            raise self.error(
                operand.span, f"'{name}' stands alone: write v = {name}(...), and compute with v"
            )
        if isinstance(operand, SortKey | Listed):
            span = operand.variable.span if isinstance(operand, SortKey) else operand.span
            raise self.error(span, "an order stands behind by: alone, as in row_number(by: (a desc, b))")
        if isinstance(operand, Wildcard):
            raise self.error(operand.span, "'_' has no value to compute with: name the variable")

    def written(self, expression: Expression | Aggregate | Wildcard) -> str:
        return " ".join(self._text[slice(*expression.span)].split())
