"""`fold`: operations on numbers and durations that a rule writes, done exactly before they meet a column."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal, InvalidOperation
from operator import is_
from typing import Any

from lftj.language.syntax import BinaryOperation, Call, Constant, Expression, Negative
from lftj.values.arithmetic import decimal_result
from lftj.values.kinds import INT64_RANGE
from lftj.values.spelling import DURATIONS


def fold(expression: Expression) -> Expression:
    """The expression with every operation on two constants, numbers or durations, carried out.

    What has no value (a division by zero, an integer beyond 64 bits) stays, for the evaluation to refuse.
    Where there is nothing to carry out, it is the same object.

    >>> fold(BinaryOperation("+", Constant(1), Constant(Decimal("0.2")))).value
    Decimal('1.2')
    >>> fold(BinaryOperation("*", Constant(6), Constant(datetime.timedelta(seconds=10)))).value
    datetime.timedelta(seconds=60)
    """
    if isinstance(expression, Negative):
        operand = fold(expression.operand)
        if isinstance(operand, Constant) and (_is_number(operand.value) or _is_span(operand.value)):
            number: Any = operand.value
            return Constant(number.copy_negate() if isinstance(number, Decimal) else -number, expression.span)
        return expression if operand is expression.operand else Negative(operand, expression.span)
    if isinstance(expression, Call):
        arguments = tuple(fold(argument) for argument in expression.arguments)
        if all(map(is_, arguments, expression.arguments)):
            return expression
        return Call(expression.function, arguments, expression.span)
    if not isinstance(expression, BinaryOperation):
        return expression
    left, right = fold(expression.left), fold(expression.right)
    if isinstance(left, Constant) and isinstance(right, Constant):
        value = _folded(expression.operator, left.value, right.value)
        if value is not None:
            return Constant(value, expression.span)
    if left is expression.left and right is expression.right:
        return expression
    return BinaryOperation(expression.operator, left, right, expression.span)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_span(value: object) -> bool:
    return isinstance(value, datetime.timedelta)


def _folded_spans(operator: str, left: Any, right: Any) -> datetime.timedelta | None:
    if _is_span(left) and _is_span(right) and operator in "+-":
        span = left + right if operator == "+" else left - right
    elif operator == "*" and int in (type(left), type(right)):
        span = left * right
    else:
        return None
    return span if span // DURATIONS["us"] in INT64_RANGE else None


def _folded(operator: str, left: Any, right: Any) -> int | float | Decimal | datetime.timedelta | None:
    try:
        if _is_span(left) or _is_span(right):
            return _folded_spans(operator, left, right)
    except OverflowError:
        return None
    if not (_is_number(left) and _is_number(right)):
        return None
    try:
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
        elif isinstance(left, Decimal) or isinstance(right, Decimal):
            left, right = Decimal(left), Decimal(right)
            if operator != "/":
                return decimal_result(operator, left, right)
            left, right = float(left), float(right)
        if operator == "/":
            return float(left / right)
        if operator == "%":
            return math.fmod(left, right) if isinstance(left, float) else _remainder(left, right)
        value: int | float = (
            left + right if operator == "+" else left - right if operator == "-" else left * right
        )
    except (ZeroDivisionError, OverflowError, ValueError, InvalidOperation):
        return None
    if isinstance(value, int) and value not in INT64_RANGE:
        return None
    return value


def _remainder(left: int, right: int) -> int:
    """With the sign of the dividend."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest
