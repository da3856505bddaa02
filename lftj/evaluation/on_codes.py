"""Conditions and choices among variables and constants on codes, where neither needs a value.

``p < 9`` compares codes of a domain in which they are in order, and ``if(p < 9, b)`` takes those of its
branches: no column is decoded, none encoded.

Cost: some passes over the rows' codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lftj.language.conditionals import may_be_null, without_defaults
from lftj.language.folding import fold
from lftj.language.syntax import Call, Comparison, Constant, Expression, Variable
from lftj.values.domain import NULL_CODE
from lftj.values.literals import NULL
from lftj.values.operators import FLIPPED, ON_ARRAYS
from lftj.values.schema import ColumnType

OnCodes = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Code columns by variable to one array of their length: codes, or whether something holds."""

_BOUNDS = ("<", "<=", ">", ">=", "=")


def compared(comparison: Comparison, types: Mapping[str, ColumnType]) -> OnCodes | None:
    """Where a comparison holds, of a variable with a literal or with another variable; None of others.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> p = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> compared(Comparison("<", Variable("p"), Constant(9)), {"p": p})({"p": np.array([7, 9])}).tolist()
    [True, False]
    """
    left, right, operator = fold(comparison.left), fold(comparison.right), comparison.operator
    if isinstance(left, Constant):
        left, right, operator = right, left, FLIPPED.get(operator, operator)
    if not isinstance(left, Variable) or comparison.tests_null or operator not in ON_ARRAYS:
        return None
    name, type_ = left.name, types[left.name]
    if not type_.domain.ordered:
        return None
    if isinstance(right, Variable):
        other, other_type = right.name, types[right.name]
        equals_nothing = type_.nullable or other_type.nullable or type_.domain.name == "float"  # NULL, NaN
        if equals_nothing or other_type.domain is not type_.domain:
            return None
        holds = ON_ARRAYS[operator]
        return lambda codes: holds(codes[name], codes[other])
    if not isinstance(right, Constant) or right.parameter is not None or operator not in _BOUNDS:
        return None
    low, high = type_.domain.interval(operator, right.value)
    if type_.nullable:
        low = max(low, NULL_CODE + 1)
    return lambda codes: (codes[name] >= low) & (codes[name] <= high)


def chosen(expression: Expression, type_: ColumnType, types: Mapping[str, ColumnType]) -> OnCodes | None:
    """The codes, of a type, of an ``if`` whose condition and branches can be had so; None of others.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> p = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> of_large = Call("if", (Call(">", (Variable("p"), Constant(8))), Variable("p"), Constant(0)))
    >>> chosen(of_large, p, {"p": p})({"p": np.array([7, 9])}).tolist()
    [0, 9]
    """
    expression = without_defaults(expression)
    if not isinstance(expression, Call) or expression.function != "if":
        return None
    nullable = [name for name, one in types.items() if one.nullable]
    if may_be_null(expression, nullable) and not type_.nullable:  # it would leave rows out
        return None
    condition, then, *otherwise = expression.arguments
    holds = _holds(condition, types)
    taken = _branch(then, type_, types)
    other = _branch(otherwise[0] if otherwise else Constant(NULL), type_, types)
    if holds is None or taken is None or other is None:
        return None

    def codes_of(codes: Mapping[str, np.ndarray]) -> np.ndarray:
        if type_.nullable:
            type_.domain.keep_null()
        return np.where(holds(codes), taken(codes), other(codes))

    return codes_of


def _holds(condition: Expression, types: Mapping[str, ColumnType]) -> OnCodes | None:
    """Where a condition is true, neither false nor NULL."""
    if not isinstance(condition, Call):
        return None
    if condition.function in ("and", "or"):
        connect = np.logical_and if condition.function == "and" else np.logical_or
        left, right = (_holds(side, types) for side in condition.arguments)
        if left is None or right is None:
            return None
        return lambda codes: connect(left(codes), right(codes))
    if condition.function not in _BOUNDS:
        return None
    left_side, right_side = condition.arguments
    return compared(Comparison(condition.function, left_side, right_side), types)


def _branch(
    branch: Expression, type_: ColumnType, types: Mapping[str, ColumnType]
) -> Callable[[Mapping[str, np.ndarray]], np.ndarray | np.int64] | None:
    """The codes of a variable, or the code of a constant, in the domain of the choice."""
    if isinstance(branch, Variable):
        name = branch.name
        same = types[name].domain is type_.domain and type_.domain.name != "decimal"  # whose codes may wait
        return (lambda codes: codes[name]) if same else None
    if not isinstance(branch, Constant) or branch.parameter is not None:
        return None
    code = NULL_CODE if branch.value is NULL else None
    if code is None and type_.domain.ordered:
        code = type_.domain.encode_constant(branch.value)
    if code is None:
        return None
    of_all = np.int64(code)
    return lambda codes: of_all
