"""Rows as they are typed at a prompt, ``(1, 2026-01-01, 5.25), (2, null, 7)``, and the path of a file.

Values are literals of the rule language, or of Python where that writes them otherwise: ``'text'``, ``None``,
``[1, 2]``.
"""

from __future__ import annotations

import ast
import datetime
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lftj.values.spelling import DURATIONS
from lftj.values.written_moments import read_date, read_timestamp

_LITERALS = re.compile(
    r"""(?P<binary>\bx"[^"\n]*") | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
      | (?P<timestamp>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)
      | (?P<date>\b\d{4}-\d\d-\d\d\b) | (?P<duration>\b\d+(?:d|h|m|s|ms|us)\b)
      | (?P<decimal>\b\d+\.\d+\b(?![eE])) | (?P<word>\b[A-Za-z_]\w*)""",
    re.VERBOSE,
)
_WORDS = {"null": None, "none": None, "true": True, "false": False}


def typed_rows(text: str) -> list[tuple[Any, ...]]:
    """Rows in parentheses, behind commas; a row of one value may stand as ``(1)``.

    Raises ValueError for what is no literal.

    >>> typed_rows('(1, 2026-01-01, -5.25, "a (b)"), (2, NULL, 7, true)')
    [(1, datetime.date(2026, 1, 1), Decimal('-5.25'), 'a (b)'), (2, None, 7, True)]
    >>> typed_rows("(10s), ([1, 2])")
    [(datetime.timedelta(seconds=10),), ([1, 2],)]
    """
    values: list[Any] = []

    def named(literal: re.Match[str]) -> str:
        if literal.lastgroup == "text":
            return literal[0]
        values.append(_value(str(literal.lastgroup), literal[0]))
        return f" v{len(values) - 1} "

    try:
        rows = ast.parse(f"[{_LITERALS.sub(named, text)}]", mode="eval").body
        read = _python_value(rows, values)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return [row if isinstance(row, tuple) else (row,) for row in read]


def fitting(rows: list[tuple[Any, ...]], schema: pa.Schema) -> list[tuple[Any, ...]]:
    """The same, decimals in columns of floats as floats: what ``5.25`` is follows from its column.

    >>> fitting([(Decimal("5.25"),) * 2], pa.schema({"a": pa.float64(), "b": pa.decimal128(5, 2)}))
    [(5.25, Decimal('5.25'))]
    """
    floats = [pa.types.is_floating(field.type) for field in schema]
    return [
        tuple(
            float(value) if is_float and isinstance(value, Decimal) else value
            for value, is_float in zip(row, floats, strict=True)
        )
        if len(row) == len(floats)
        else row
        for row in rows
    ]


def _value(kind: str, text: str) -> Any:
    """Raises ValueError."""
    if kind == "binary":
        return bytes.fromhex(text[2:-1])
    if kind == "timestamp":
        return read_timestamp(text)
    if kind == "date":
        return read_date(text)
    if kind == "duration":
        number = text.rstrip("dhmsu")
        return int(number) * DURATIONS[text[len(number) :]]
    if kind == "decimal":
        return Decimal(text)
    if text.lower() not in _WORDS:
        raise ValueError(f"{text!r} is no value; texts stand in quotes")
    return _WORDS[text.lower()]


def _python_value(node: ast.expr, values: list[Any]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_python_value(each, values) for each in node.elts)
    if isinstance(node, ast.List):
        return [_python_value(each, values) for each in node.elts]
    if isinstance(node, ast.Name):
        return values[int(node.id[1:])]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _python_value(node.operand, values)
        if isinstance(value, int | float | Decimal | datetime.timedelta):
            return -value
    if isinstance(node, ast.Constant):
        return node.value
    raise ValueError(f"{ast.unparse(node)!r} is no value")
