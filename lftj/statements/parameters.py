"""`filled`: a statement with the values of its parameters, ``?``, ``$1`` or ``$name``, as literals.

DuckDB's tokeniser finds the parameters, so nothing within a text, a name or a comment is taken for one.  A
literal has the type that DuckDB gives the value when it binds it, and no line break, so lines stay lines.
"""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import ParameterError
from lftj.language.diagnostics import error_at, quoted_list

Span = tuple[int, int]

_NAME = re.compile(r"\w+")
_ESCAPED = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r"}
_MOST = 1 << 127


@dataclass(frozen=True)
class Filled:
    """``replaced``: the place of each parameter in the statement as it was written, and of its value here."""

    text: str
    replaced: tuple[tuple[Span, Span], ...] = ()

    def place(self, span: Span) -> Span:
        """A place of the text in the statement as it was written; one within a value is the parameter's."""
        return self._offset(span[0], 0), self._offset(span[1], 1)

    def _offset(self, offset: int, side: int) -> int:
        moved = 0
        for written, here in self.replaced:
            if offset < here[0] + side:
                break
            if offset < here[1] + side:
                return written[side]
            moved = written[1] - here[1]
        return offset + moved


def filled(text: str, params: Any = None) -> Filled:
    """``params``: a sequence of values for ``?`` and ``$1``, or a mapping for ``$name``.

    Raises ParameterError for a parameter without a value, a value without a parameter or of no SQL type.
    """
    places = _parameters(text) if "?" in text or "$" in text else []
    values, names = _named(params), dict.fromkeys(name for _, name in places)
    missing = [(span, name) for span, name in places if name not in values]
    if missing:
        span, name = missing[0]
        there = f"there are values for {quoted_list(values, 'and')}" if values else "no values are given"
        all_of_it = f"the statement has {quoted_list(names, 'and')}"
        raise error_at(
            ParameterError,
            text,
            span,
            f"parameter {name!r} has no value: {there}; params= takes them, and {all_of_it}",
        )
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ParameterError(
            f"values are given for {quoted_list(unknown, 'and')}, which the statement does not have: it has "
            + (quoted_list(names, "and") if names else "none; one is written ?, $1 or $name")
        )
    pieces, replaced, end, length = [], [], 0, 0
    for (start, stop), name in places:
        try:
            value = literal(values[name])
        except ParameterError as error:
            raise error_at(ParameterError, text, (start, stop), f"parameter {name!r}: {error}") from None
        before = text[end:start] + " " * (start > 0 and _is_word(text[start - 1]))
        after = " " * (stop < len(text) and _is_word(text[stop]))
        length += len(before)
        replaced.append(((start, stop), (length, length + len(value))))
        pieces += [before, value, after]
        length, end = length + len(value + after), stop
    return Filled("".join([*pieces, text[end:]]), tuple(replaced))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _named(params: Any) -> dict[str, Any]:
    """Values by the parameter's name, of a sequence by their numbers from 1."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return {str(name).casefold(): value for name, value in params.items()}
    if isinstance(params, Sequence) and not isinstance(params, str | bytes):
        return {str(number): value for number, value in enumerate(params, 1)}
    raise ParameterError(
        f"params= takes a list of values for ? and $1, or a mapping for $name, not a {type(params).__name__}"
    )


def _parameters(text: str) -> list[tuple[Span, str]]:
    """Places and names of the parameters; a ``?`` is one more than the last number.

    >>> _parameters("select ?, '?', $b -- $c")
    [((7, 8), '1'), ((15, 17), 'b')]
    """
    import duckdb

    encoded = text.encode()
    try:
        tokens = duckdb.tokenize(text)
    except duckdb.Error:  # no statement: whoever reads it says so
        return []
    found: list[tuple[Span, str]] = []
    last = 0
    for offset, type_ in tokens:
        sign = encoded[offset : offset + 1]
        if type_ != duckdb.token_type.operator or sign not in (b"?", b"$"):
            continue
        start = len(encoded[:offset].decode())
        named = _NAME.match(text, start + 1)
        name = named.group().casefold() if named and (sign == b"$" or named.group().isdigit()) else ""
        if not name and sign == b"$":
            continue
        stop = start + 1 + len(name)
        name = name or str(last + 1)
        last = int(name) if name.isdigit() else last
        found.append(((start, stop), name))
    return found


def literal(value: Any) -> str:
    """A value as SQL, of the type that DuckDB gives it.  Raises ParameterError for one that has none.

    >>> literal(-1), literal(1.5), literal(Decimal("1.50")), literal("it's"), literal([1, None])
    ('(-1)', '1.5e0', "'1.50'::DECIMAL(3,2)", "'it''s'", '[1, NULL]')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        if not -_MOST <= value < _MOST:
            raise ParameterError(f"{value} has more than 128 bits")
        return _signed(str(value))
    if isinstance(value, float):
        shown = repr(value)
        if not math.isfinite(value):
            return f"'{shown}'::DOUBLE"
        return _signed(shown if "e" in shown else shown + "e0")
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "'{}'::BLOB".format("".join(f"\\x{byte:02X}" for byte in bytes(value)))
    if isinstance(value, list | tuple):
        return "[{}]".format(", ".join(map(literal, value)))
    return _moment(value)


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise ParameterError(f"no decimal of SQL is {value}")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    width = max(len(digits) + max(exponent, 0), scale + 1)
    if width > 38:
        raise ParameterError(f"{value} has more than 38 digits")
    return f"'{value:f}'::DECIMAL({width},{scale})"


def _text(value: str) -> str:
    if "\0" in value or (not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value)):
        raise ParameterError("a text with a NUL, or with half a character, can't be written in SQL")
    if "\n" in value or "\r" in value:
        return "E'{}'".format("".join(_ESCAPED.get(each, each) for each in value))
    return "'{}'".format(value.replace("'", "''"))


def _moment(value: Any) -> str:
    """Of what is written as a text with a type."""
    if isinstance(value, datetime.datetime):
        return f"'{value.isoformat(' ')}'::TIMESTAMP{'' if value.tzinfo is None else 'TZ'}"
    if isinstance(value, datetime.date):
        return f"'{value.isoformat()}'::DATE"
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return f"'{value.isoformat()}'::TIME"
    if isinstance(value, datetime.timedelta):
        return f"'{value.days} days {value.seconds} seconds {value.microseconds} microseconds'::INTERVAL"
    if isinstance(value, uuid.UUID):
        return f"'{value}'::UUID"
    raise ParameterError(f"a {type(value).__name__} is no value of SQL")
