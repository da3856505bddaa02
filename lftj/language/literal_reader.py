"""Literals of a rule's text: numbers, strings, binary, dates, timestamps, durations, parameters.

One method per rule of ``grammar.lark``; the rest stands in :mod:`lftj.language.reader`.  This module
imports lark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from lark import Tree

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.syntax import UNSET, Constant, Span
from lftj.values.kinds import INT64_RANGE
from lftj.values.literals import NULL, Value
from lftj.values.spelling import DURATIONS
from lftj.values.written_moments import read_date, read_timestamp

_MAX_DIGITS = 1000
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def span_of(meta: Any) -> Span:
    """Where a part of lark's tree was read."""
    return (meta.start_pos, meta.end_pos)


def token_span(token: Any) -> Span:
    """Where a token was read."""
    return (token.start_pos, token.end_pos)


class LiteralReader:
    """A bottom-up fold without recursion; the methods for literals, ``(meta, children) -> Constant``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, tree: Tree[Any]) -> Any:
        """What the method of its rule makes of a tree, whose children are read first, from left to right."""
        pending: list[Any] = [tree]
        nodes = []  # each before its children, from right to left
        while pending:
            node = pending.pop()
            nodes.append(node)
            if isinstance(node, Tree):
                pending += node.children
        values: list[Any] = []
        for node in reversed(nodes):
            if isinstance(node, Tree):
                first = len(values) - len(node.children)
                children = values[first:]
                del values[first:]
                values.append(getattr(self, node.data)(node.meta, children))
            else:
                values.append(node)
        return values.pop()

    def error(self, span: Span, message: str) -> RuleSyntaxError:
        """What is wrong at a place."""
        return error_at(RuleSyntaxError, self._text, span, message)

    def parameter(self, meta: Any, children: list[Any]) -> Constant:
        name = str(children[0])[1:]
        return Constant(UNSET, span_of(meta), name)

    def integer(self, meta: Any, children: list[Any]) -> Constant:
        if len(children[0]) > _MAX_DIGITS:  # int() refuses more than 4,300 digits, with an error of its own
            raise self.error(span_of(meta), f"a number of more than {_MAX_DIGITS} digits")
        return Constant(int(children[0]), span_of(meta))

    def decimal(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(Decimal(str(children[0])), span_of(meta))

    def float(self, meta: Any, children: list[Any]) -> Constant:
        value = float(children[0])
        if value == float("inf"):
            raise self.error(span_of(meta), "a number beyond the range of 64-bit floats")
        return Constant(value, span_of(meta))

    def true(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(True, span_of(meta))

    def false(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(False, span_of(meta))

    def null(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(NULL, span_of(meta))

    def string(self, meta: Any, children: list[Any]) -> Constant:
        (token,) = children
        start = token.start_pos + 1

        def replace(match: re.Match[str]) -> str:
            code = match.group(1)
            if code[0] == "u" and len(code) == 5:
                return chr(int(code[1:], 16))
            if code not in _SIMPLE_ESCAPES:
                raise self.error(
                    (start + match.start(), start + match.end()),
                    r"unknown escape in a string; there are \" \\ \n \t and \uXXXX",
                )
            return _SIMPLE_ESCAPES[code]

        value = _ESCAPE.sub(replace, str(token[1:-1]))
        try:
            # Escapes may spell a character beyond U+FFFF as a surrogate pair; half of one is no text.
            value = value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.error(span_of(meta), r"half of a \u surrogate pair is no character") from None
        return Constant(value, span_of(meta))

    def binary(self, meta: Any, children: list[Any]) -> Constant:
        digits = children[0][2:-1]
        if not re.fullmatch(r"([0-9A-Fa-f]{2})*", digits):
            raise self.error(span_of(meta), 'a binary constant is pairs of hexadecimal digits: x"00ff"')
        return Constant(bytes.fromhex(digits), span_of(meta))

    def date(self, meta: Any, children: list[Any]) -> Constant:
        return self._temporal(meta, children[0], read_date, "date")

    def timestamp(self, meta: Any, children: list[Any]) -> Constant:
        fraction = re.search(r"\.([0-9]+)", children[0])
        if fraction and len(fraction.group(1)) > 6:
            raise self.error(span_of(meta), "a timestamp constant has at most 6 digits behind the seconds")
        return self._temporal(meta, str(children[0]), read_timestamp, "timestamp")

    def duration(self, meta: Any, children: list[Any]) -> Constant:
        digits = children[0].rstrip("dhmsu")
        unit = DURATIONS[children[0][len(digits) :]]
        if len(digits) > _MAX_DIGITS or int(digits) * (unit // DURATIONS["us"]) not in INT64_RANGE:
            raise self.error(span_of(meta), "a duration of more than 64 bits of microseconds")
        return Constant(int(digits) * unit, span_of(meta))

    def _temporal(self, meta: Any, text: str, read: Callable[[str], Value], name: str) -> Constant:
        try:
            value = read(text)
        except ValueError as error:
            raise self.error(span_of(meta), f"no such {name}: {error}") from None
        return Constant(value, span_of(meta))
