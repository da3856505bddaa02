"""Comparisons of a rule that mean the same in Spark: of whole numbers, texts and dates, and tests for NULL.

Floats are left out (NaN), and decimals and moments (scales, zones): a rule decides on those.

They are Spark's SQL, over columns with names of our own: each call of Java takes longer than to read a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pyspark.sql.types import DataType, DateType, IntegralType, StringType

from lftj.language.syntax import Comparison, Constant, Variable
from lftj.values.operators import ON_VALUES

_MOST = 2**63


def quoted(text: str) -> str:
    """A text in Spark's SQL, which reads escapes by its settings, and puts variables in place of ``${name}``.

    >>> quoted("a'b")
    "CAST(X'612762' AS STRING)"
    """
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def condition(literal: object, of: Mapping[str, tuple[str, DataType]]) -> str | None:
    """A literal over variables, of which column and type are given; None: it is no such comparison."""
    if not isinstance(literal, Comparison):
        return None
    left, right = literal.left, literal.right
    if literal.tests_null:
        if not isinstance(left, Variable) or left.name not in of:
            return None
        column, _ = of[left.name]
        return f"{column} IS NULL" if literal.operator == "<=>" else f"{column} IS NOT NULL"
    one, other = _side(left, of), _side(right, of)
    if literal.operator not in ON_VALUES or one is None or other is None or one[1] is not other[1]:
        return None
    return f"{one[0]} {literal.operator} {other[0]}"


def _side(of: object, columns: Mapping[str, tuple[str, DataType]]) -> tuple[str, type] | None:
    if isinstance(of, Variable) and of.name in columns:
        column, type_ = columns[of.name]
        for kind in (IntegralType, StringType, DateType):
            if isinstance(type_, kind):
                return column, kind
    if isinstance(of, Constant):
        if isinstance(of.value, str):
            return quoted(of.value), StringType
        if isinstance(of.value, int) and not isinstance(of.value, bool) and -_MOST <= of.value < _MOST:
            return str(of.value), IntegralType
        if isinstance(of.value, date) and not isinstance(of.value, datetime):
            return f"DATE'{of.value.isoformat()}'", DateType
    return None
