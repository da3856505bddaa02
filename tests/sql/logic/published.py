"""`agrees`: whether rows are an answer that was published as lines of text, or as a hash of them.

The dialects write values differently (SQLite a value on a line and three digits of a fraction, DuckDB cells
between tabs, sqllogictest-rs between spaces), so a published cell is read as the type of the column that it
is held to.  A hash needs the very text: it is that of SQLite.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from sql.answers import Row, difference, rows_of
from sql.logic.records import Ask

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def agrees(ask: Ask, table: pa.Table) -> bool:
    """The rows of ``table`` are the answer, in its order where the text asks for one."""
    rows = rows_of(table)
    if ask.hashed is not None:
        return _digest(ask, rows) == ask.hashed
    assert ask.lines is not None
    return any(
        _same(ask, rows, cells, table.schema) for cells in _cells(ask.lines, len(rows), len(table.schema))
    )


def _digest(ask: Ask, rows: Sequence[Row]) -> tuple[int, str]:
    texts = [[_sqlite(value, kind) for value, kind in zip(row, ask.types, strict=False)] for row in rows]
    if ask.sort == "rowsort":
        texts.sort()
    values = [value for row in texts for value in row]
    if ask.sort == "valuesort":
        values.sort()
    return len(values), hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()


def _sqlite(value: Any, kind: str) -> str:
    """As SQLite's runner writes a value of a column of type T, I or R.

    >>> _sqlite(None, "I"), _sqlite(2.5, "I"), _sqlite(1, "R"), _sqlite("", "T"), _sqlite(True, "I")
    ('NULL', '2', '1.000', '(empty)', '1')
    """
    if value is None:
        return "NULL"
    if kind == "R":
        return f"{float(value):.3f}"
    if kind == "I":
        with contextlib.suppress(ValueError):
            return str(int(value))
        return "0"
    return re.sub(r"[^ -~]", "@", str(value)) or "(empty)"


def _cells(lines: Sequence[str], rows: int, columns: int) -> list[list[list[str]]]:
    """The readings of the lines as rows of cells that are as many as the rows are."""
    found = []
    if len(lines) == rows:
        for split in ([line.split("\t") for line in lines], [line.split() for line in lines]):
            if all(len(row) == columns for row in split):
                found.append(split)
        if columns == 1:
            found.append([[line] for line in lines])
    if len(lines) == rows * columns:
        found.append([list(lines[i : i + columns]) for i in range(0, len(lines), columns)])
    return found


def _same(ask: Ask, rows: Sequence[Row], cells: list[list[str]], schema: pa.Schema) -> bool:
    try:
        if ask.sort == "valuesort":
            values = [(v if v is None else float(v),) for row in rows for v in row]
            right = [(_value(cell, pa.float64()),) for row in cells for cell in row]
        else:
            values = list(rows)
            right = [
                tuple(_value(cell, kind) for cell, kind in zip(row, schema.types, strict=True))
                for row in cells
            ]
    except (ValueError, InvalidOperation):
        return False
    mine = [tuple(map(_rounded, row, texts)) for row, texts in zip(values, right, strict=True)]
    ordered = ask.sort == "nosort" and re.search(r"\border\s+by\b", ask.text, re.IGNORECASE)
    if difference(mine, right, () if ordered else None) is None:
        return True
    return ask.sort != "nosort" and _thousandths(values) == _thousandths(right)


def _thousandths(rows: Sequence[Row]) -> list[Row]:
    """Sorted, with numbers as SQLite publishes them."""
    texts = [
        tuple(_sqlite(v, "T" if isinstance(v, (str, bool)) or v is None else "R") for v in row)
        for row in rows
    ]
    return sorted(texts)


def _rounded(value: Any, right: Any) -> Any:
    """A double that was published with three digits has no more here."""
    if isinstance(value, float) and isinstance(right, float) and right == round(right, 3):
        return round(value, 3)
    return value


def _value(cell: str, kind: pa.DataType) -> Any:
    """A published cell as a value of the type.  Raises ValueError and InvalidOperation where it is none.

    >>> _value("NULL", pa.int64()), _value("2.50", pa.decimal128(9, 2)), _value("1", pa.bool_())
    (None, Decimal('2.50'), True)
    """
    if cell == "NULL":
        return None
    if pa.types.is_boolean(kind):
        if cell.lower() not in (*_TRUE, *_FALSE):
            raise ValueError(cell)
        return cell.lower() in _TRUE
    if pa.types.is_integer(kind):
        return int(Decimal(cell)) if Decimal(cell) == int(Decimal(cell)) else Decimal(cell)
    if pa.types.is_decimal(kind):
        return Decimal(cell)
    if pa.types.is_floating(kind):
        return float(cell)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(cell)
    if pa.types.is_timestamp(kind):
        return datetime.datetime.fromisoformat(cell)
    return "" if cell == "(empty)" else cell
