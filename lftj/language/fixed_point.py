"""Expressions of decimals and integers by ``+ - *``, and comparisons of them, in whole numbers of 64 bits.

What :mod:`lftj.language.expressions` computes with Arrow's decimals is computed here where values and results
do with 64 bits, as nearly all do.

Invariant: a result is that of :mod:`lftj.language.expressions`, or there is none: whoever asks turns there,
also for the words of an error.

Cost: a pass over the rows per operation; bounds are numbers of the batch, and cost none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa

from indices.keys import KEY_MAX
from lftj.language.expressions import result_type, sides_of
from lftj.language.folding import fold
from lftj.language.syntax import BinaryOperation, Comparison, Constant, Expression, Negative, Variable
from lftj.values.kinds import kind
from lftj.values.operators import ON_ARRAYS
from lftj.values.unscaled import SCALES, Numbers

Reader = Callable[[str], Numbers | None]
"""A variable to its numbers, if it has some."""

Computed = Callable[[Reader], Numbers | None]
"""The numbers of an expression, if it has some."""

Compared = Callable[[Reader], np.ndarray | None]
"""Whether a comparison holds, bool by row, if that can be said."""

_MOST_DIGITS = 99  # of a constant with the zeros before and behind it


def computed(
    expression: Expression, types: Mapping[str, pa.DataType], wanted: pa.DataType
) -> Computed | None:
    """What gives an expression's values in a decimal type of a dictionary's scales; None for other work.

    >>> from lftj.values.unscaled import numbers_of
    >>> twice = BinaryOperation("*", Variable("p"), Constant(Decimal("2.0")))
    >>> price, wanted = pa.decimal128(4, 1), pa.decimal128(7, 2)
    >>> computed(twice, {"p": price}, wanted)(lambda _: numbers_of(np.array([15]), 1)).values.tolist()
    [300]
    """
    if not pa.types.is_decimal(wanted) or wanted.scale not in SCALES:
        return None
    of = _computed(fold(expression), types)
    if of is None or isinstance(of, Numbers):
        return None

    def values(read: Reader) -> Numbers | None:
        found = of(read)
        if found is None or found.scale > wanted.scale:
            return None
        found = found.at_scale(wanted.scale)
        return found if found is not None and found.fits(wanted.precision) else None

    return values


def compared(comparison: Comparison, types: Mapping[str, pa.DataType]) -> Compared | None:
    """What tells where a comparison holds; None for other work.

    >>> from lftj.values.unscaled import numbers_of
    >>> below = Comparison("<", Variable("p"), Constant(Decimal("2.25")))
    >>> compared(below, {"p": pa.decimal128(4, 1)})(lambda _: numbers_of(np.array([22, 23]), 1)).tolist()
    [True, False]
    """
    if comparison.operator not in ON_ARRAYS or comparison.tests_null:
        return None
    left, right, *_ = sides_of(comparison, types)
    sides = _computed(left, types), _computed(right, types)
    if None in sides or all(isinstance(side, Numbers) for side in sides):
        return None
    operation = ON_ARRAYS[comparison.operator]

    def holds(read: Reader) -> np.ndarray | None:
        numbers = [side if isinstance(side, Numbers) else side(read) for side in sides if side is not None]
        if None in numbers:
            return None
        scale = max(side.scale for side in numbers if side is not None)
        scaled = [None if side is None else side.at_scale(scale) for side in numbers]
        if None in scaled:
            return None
        return operation(*(side.values for side in scaled if side is not None))

    return holds


def _computed(node: Expression, types: Mapping[str, pa.DataType]) -> Computed | Numbers | None:
    """Of a folded expression; numbers of a constant."""
    if isinstance(node, Constant):
        return _constant(node)
    if kind(result_type(node, types)) not in ("decimal", "integer"):
        return None
    if isinstance(node, Variable):
        name = node.name
        return lambda read: read(name)
    if isinstance(node, Negative):
        operand = _computed(node.operand, types)
        if operand is None or isinstance(operand, Numbers):
            return None
        return lambda read: None if (found := operand(read)) is None else found.negated()
    if not isinstance(node, BinaryOperation) or node.operator not in ("+", "-", "*"):
        return None
    left, right = _computed(node.left, types), _computed(node.right, types)
    if left is None or right is None:
        return None
    return _operation(node.operator, left, right)


def _operation(operator: str, left: Computed | Numbers, right: Computed | Numbers) -> Computed:
    def values(read: Reader) -> Numbers | None:
        one = left if isinstance(left, Numbers) else left(read)
        other = right if isinstance(right, Numbers) else right(read)
        if one is None or other is None:
            return None
        if operator == "*":
            return one.times(other)
        return one.plus(other, 1 if operator == "+" else -1)

    return values


def _constant(node: Constant) -> Numbers | None:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > _MOST_DIGITS:
        return None
    number = (-1) ** sign * int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    if not -KEY_MAX <= number <= KEY_MAX:
        return None
    return Numbers(np.array(number, np.int64), max(-exponent, 0), number, number)
