"""Expressions of rules over Arrow columns: types, checked evaluation.

Invariants

1. No result is ever wrapped or silently NULL: what does not fit raises
   :class:`~lftj.errors.RangeError`, division by zero
   :class:`~lftj.errors.EvaluationError`; both name the row's values.
2. Subexpressions of constants are folded exactly (``1 + 0.2`` is 1.2) before
   they meet a column (:mod:`lftj.language.folding`).

A literal like ``1.2`` is a decimal alone and beside decimals, else a float; the types of operations stand in
:mod:`lftj.values.arithmetic`, those of calls in :mod:`lftj.values.functions`.  The checker has rows left out
in which a variable is NULL whose value an expression needs; what NULL is to others is said in
:mod:`lftj.language.conditionals`.

Cost: whole-array operations, one per operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError, RangeError, TypeClashError
from lftj.language.conditionals import (
    COMPARISONS,
    CONDITIONS,
    CONNECTIVES,
    FAILS,
    NOT,
    Evaluator,
    children,
    chosen,
    extreme,
    failing,
    first_known,
    on_known_rows,
    picked,
)
from lftj.language.folding import fold
from lftj.language.syntax import BinaryOperation, Call, Comparison, Constant, Expression, Negative, Variable
from lftj.values.arithmetic import (
    Kernel,
    Refused,
    Signature,
    cast,
    first_refused,
    kernel,
    negated,
    negated_type,
    signature,
)
from lftj.values.binding import Argument, Bound
from lftj.values.comparisons import comparable, compare_arrays, is_among, looked_up
from lftj.values.functions import CONDITIONALS, bind
from lftj.values.kinds import kind, literal_type, plain_type
from lftj.values.literals import NULL, TypedValue
from lftj.values.spelling import literal, spelled

_CASTS = ("cast", "sql_cast", "try_cast")
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_MEMBER = "member#"  # no variable has such a name


def result_type(expression: Expression, types: Mapping[str, pa.DataType]) -> pa.DataType:
    """The Arrow type of an expression over variables of the given types.

    Raises :class:`~lftj.errors.TypeClashError`.

    >>> price = BinaryOperation("*", Variable("b"), Constant(Decimal("1.2")))
    >>> str(result_type(price, {"b": pa.int32()})), str(result_type(price, {"b": pa.decimal128(6, 2)}))
    ('double', 'decimal128(9, 3)')
    """
    return _type(fold(expression), _Types.of(types))


def evaluate(expression: Expression, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The values of an expression, one per row of the columns: an array of :func:`result_type`.

    The columns of all variables have one length; without columns there is one row.
    Raises :class:`~lftj.errors.RangeError` and :class:`~lftj.errors.EvaluationError`.

    >>> half = BinaryOperation("/", Variable("b"), Constant(2))
    >>> evaluate(half, {"b": pa.array([3, 4])}).to_pylist()
    [1.5, 2.0]
    """
    n_rows = len(next(iter(columns.values()))) if columns else 1
    return evaluator(expression, {name: column.type for name, column in columns.items()})(columns, n_rows)


def evaluator(
    expression: Expression, types: Mapping[str, pa.DataType], wanted: pa.DataType | None = None
) -> Evaluator:
    """:func:`evaluate` for any columns of these types, and for how many rows they have.

    ``wanted``: the type of its values, where it is another one.  Raises :class:`~lftj.errors.TypeClashError`.
    """
    folded, known = fold(expression), _Types.of(types)
    return _evaluator(folded, known, _type(folded, known) if wanted is None else wanted)


def comparison_types(
    comparison: Comparison, types: Mapping[str, pa.DataType]
) -> tuple[pa.DataType, pa.DataType]:
    """The types in which the two sides meet.

    Raises :class:`~lftj.errors.TypeClashError` when they can't be compared.

    >>> below = Comparison("<", Variable("x"), Constant(Decimal("0.1")))
    >>> [str(t) for t in comparison_types(below, {"x": pa.float32()})]
    ['float', 'double']
    """
    left, right, left_type, right_type = sides_of(comparison, types)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Constant) and side.value is NULL:
            raise TypeClashError(f"null equals nothing: ask '{text_of(other)} is null'", side.span)
    if not comparable(left_type, right_type):
        raise TypeClashError(
            f"{text_of(left)} is of type {plain_type(left_type)} "
            f"and {text_of(right)} of type {plain_type(right_type)}: "
            "they can't be compared"
        )
    return left_type, right_type


def compare(comparison: Comparison, columns: Mapping[str, pa.Array]) -> pa.BooleanArray:
    """Whether the comparison holds, one value per row of the columns (:mod:`lftj.values.comparisons`).

    Raises as :func:`evaluate` does, and :class:`~lftj.errors.TypeClashError`.

    >>> below = Comparison("<", Variable("x"), Constant(Decimal("2.5")))
    >>> compare(below, {"x": pa.array([2, 3])}).to_pylist()
    [True, False]
    """
    n_rows = len(next(iter(columns.values()))) if columns else 1
    return comparer(comparison, {name: column.type for name, column in columns.items()})(columns, n_rows)


def comparer(comparison: Comparison, types: Mapping[str, pa.DataType]) -> Evaluator:
    """:func:`compare` for any columns of these types, and for how many rows they have.

    Raises :class:`~lftj.errors.TypeClashError`.
    """
    if comparison.tests_null:
        of, is_null = evaluator(comparison.left, types), comparison.operator == "<=>"
        return lambda columns, n_rows: (pc.is_null if is_null else pc.is_valid)(of(columns, n_rows))
    known = _Types.of(types)
    comparison_types(comparison, known)
    left, right, left_type, right_type = sides_of(comparison, known)
    left_values, right_values = _evaluator(left, known, left_type), _evaluator(right, known, right_type)

    def compared(columns: Mapping[str, pa.Array], n_rows: int) -> pa.BooleanArray:
        sides = left_values(columns, n_rows), right_values(columns, n_rows)
        if not comparison.is_null_safe:
            return compare_arrays(comparison.operator, *sides)
        both_null = pc.and_(*map(pc.is_null, sides))
        same = pc.coalesce(compare_arrays("=", *sides), both_null)
        return same if comparison.operator == "<=>" else pc.invert(same)

    return compared


def sides_of(
    comparison: Comparison, types: Mapping[str, pa.DataType]
) -> tuple[Expression, Expression, pa.DataType, pa.DataType]:
    """Both sides folded, and the types in which they meet.

    A decimal literal beside a float is a float.  A float literal beside a
    decimal is the decimal that its shortest form spells, as in a dictionary domain.
    """
    known = _Types.of(types)
    sides = [fold(comparison.left), fold(comparison.right)]
    kinds = [kind(_type(side, known)) for side in sides]
    for side, other in ((0, 1), (1, 0)):
        literal = sides[side]
        if isinstance(literal, Constant) and isinstance(literal.value, float) and kinds[other] == "decimal":
            sides[side] = Constant(Decimal(repr(literal.value)), literal.span)
    side_types = [_type(side, known) for side in sides]
    for side, other in ((0, 1), (1, 0)):
        literal = sides[side]
        if isinstance(literal, Constant) and isinstance(literal.value, Decimal) and kinds[other] == "float":
            side_types[side] = pa.float64()
    return sides[0], sides[1], side_types[0], side_types[1]


def text_of(expression: Expression) -> str:
    """The expression as a rule would write it.

    >>> text_of(BinaryOperation("*", BinaryOperation("+", Variable("a"), Constant(1)), Variable("b")))
    '(a + 1) * b'
    """
    if isinstance(expression, Variable):
        return expression.name
    if isinstance(expression, Constant):
        return literal(expression.value) if expression.parameter is None else f"${expression.parameter}"
    if isinstance(expression, Negative):
        inner = text_of(expression.operand)
        return f"-({inner})" if isinstance(expression.operand, BinaryOperation) else f"-{inner}"
    if isinstance(expression, Call) and expression.function in CONDITIONS:
        return _condition_text(expression)
    if isinstance(expression, Call):
        first, *others = map(text_of, expression.arguments)
        if expression.function == "in":
            return f"{first} in ({', '.join(others)})"
        if expression.function == "like":
            escape = f" escape {others[1]}" if others[1:] else ""
            return f"{first} like {others[0]}{escape}"
        if expression.function == "||":
            return f"{first} || {others[0]}"
        return f"{expression.function}({', '.join([first, *others])})"
    rank = _PRECEDENCE[expression.operator]
    left, right = text_of(expression.left), text_of(expression.right)
    if isinstance(expression.left, BinaryOperation) and _PRECEDENCE[expression.left.operator] < rank:
        left = f"({left})"
    if isinstance(expression.right, BinaryOperation) and _PRECEDENCE[expression.right.operator] <= rank:
        right = f"({right})"
    return f"{left} {expression.operator} {right}"


def _condition_text(condition: Call) -> str:
    """A condition as it stands first in ``if``; one by ``and`` and ``or`` in parentheses."""
    parts = [text_of(argument) for argument in condition.arguments]
    if condition.function in COMPARISONS:
        return comparison_text(_comparison(condition))
    if condition.function == NOT:
        (of,) = condition.arguments
        return comparison_text(Comparison("=", of, Constant(False)))
    return f"({(', ' if condition.function == 'and' else ' ; ').join(parts)})"


def comparison_text(comparison: Comparison) -> str:
    """The comparison as a rule would write it.

    >>> comparison_text(Comparison("=", Call("contains", (Variable("s"), Constant("a"))), Constant(False)))
    '!contains(s, "a")'
    """
    left, right = comparison.left, comparison.right
    if comparison.tests_null:
        return f"{text_of(left)} is {'' if comparison.operator == '<=>' else 'not '}null"
    if isinstance(left, Call) and isinstance(right, Constant) and isinstance(right.value, bool):
        text = text_of(left)
        if right.value:
            return text
        infix = f" {left.function} "
        return text.replace(infix, f" not{infix}", 1) if left.function in ("in", "like") else f"!{text}"
    return f"{text_of(left)} {comparison.operator} {text_of(right)}"


def variables_of(expression: Expression) -> list[Variable]:
    """The variables of an expression, in the order of writing, as often as they occur."""
    if isinstance(expression, Variable):
        return [expression]
    return [variable for child in children(expression) for variable in variables_of(child)]


def functions_of(expression: Expression) -> set[str]:
    """The names of what an expression calls."""
    return {call.function for call in calls_of(expression)}


def calls_of(expression: Expression) -> list[Call]:
    """The calls in an expression, its own first; conditions are some, too."""
    own = [expression] if isinstance(expression, Call) else []
    return own + [call for child in children(expression) for call in calls_of(child)]


def _among_others(value_type: pa.DataType, folded: Expression) -> pa.DataType:
    """A decimal literal that met no decimal is a float."""
    if isinstance(folded, Constant) and isinstance(folded.value, Decimal):
        return pa.float64()
    return value_type


# -- types --------------------------------------------------------------------


class _Types(dict[str, pa.DataType]):
    """The types of variables, and those found of expressions over them: each is worked out once.

    Expressions are known by identity: ``1``, ``1.0`` and ``true`` equal each other, and are of other types.
    """

    def __init__(self, of_variables: Mapping[str, pa.DataType]) -> None:
        super().__init__(of_variables)
        self.found: dict[int, tuple[Expression, pa.DataType]] = {}

    @classmethod
    def of(cls, types: Mapping[str, pa.DataType]) -> _Types:
        return types if isinstance(types, cls) else cls(types)


def _type(expression: Expression, types: _Types) -> pa.DataType:
    """Type of a folded expression; of a decimal literal its own, for its surroundings to decide."""
    if isinstance(expression, Variable):
        return types[expression.name]
    if isinstance(expression, Constant):
        return literal_type(expression.value)
    if id(expression) not in types.found:
        types.found[id(expression)] = expression, _new_type(expression, types)
    return types.found[id(expression)][1]


def _new_type(expression: Negative | Call | BinaryOperation, types: _Types) -> pa.DataType:
    try:
        if isinstance(expression, Negative):
            return negated_type(_type(expression.operand, types))
        if isinstance(expression, Call):
            return _call_type(expression, types)
        return _signature_of(expression, types).result
    except TypeClashError as error:
        raise TypeClashError(str(error), error.span or expression.span) from None


def _signature_of(node: BinaryOperation, types: _Types) -> Signature:
    sides = (node.left, node.right)
    own = [_type(side, types) for side in sides]
    met = list(own)
    for side, other in ((0, 1), (1, 0)):
        literal = sides[side]
        if not isinstance(literal, Constant):
            continue
        if isinstance(literal.value, Decimal) and kind(own[other]) == "integer":
            met[side] = pa.float64()
        elif kind(own[side]) == "integer" and kind(own[other]) == "decimal":
            met[side] = literal_type(Decimal(str(literal.value)))  # its own digits, not those of int64
    return signature(node.operator, *met)


def _call_type(call: Call, types: _Types) -> pa.DataType:
    if call.function in COMPARISONS:
        comparison = _comparison(call)
        if comparison.tests_null:
            _type(comparison.left, types)
        else:
            comparison_types(comparison, types)
        return pa.bool_()
    if call.function in CONDITIONS:
        for argument in call.arguments:
            type_ = _type(argument, types)
            if type_ != pa.bool_():
                raise TypeClashError(f"{text_of(argument)} is no condition, but of type {plain_type(type_)}")
        return pa.bool_()
    if call.function == FAILS:
        _type(call.arguments[0], types)
        return pa.bool_()
    if call.function != "in":
        return _bound(call, types).result
    first, *items = call.arguments
    for item in items:
        comparison_types(Comparison("=", first, item), types)
    return pa.bool_()


def _comparison(call: Call) -> Comparison:
    """A condition as a body would compare it."""
    left, right = call.arguments
    return Comparison(call.function, left, right, call.span)


def _bound(call: Call, types: _Types) -> Bound:
    """What a call means for arguments of these types."""
    own = [_type(argument, types) for argument in call.arguments]
    typed = list(zip(own, call.arguments, strict=True))
    decimals = any(
        kind(type_) == "decimal" and not isinstance(argument, Constant) for type_, argument in typed
    )
    if call.function in CONDITIONALS and not {"integer", "float"}.intersection(
        kind(type_) for type_, argument in typed if not isinstance(argument, Constant)
    ):
        decimals = any(kind(type_) == "decimal" for type_ in own)
    if call.function in _CASTS:  # a decimal literal has all its digits
        target = call.arguments[-1]
        decimals |= isinstance(target, Constant) and str(target.value).startswith("decimal")
    arguments = []
    for argument, type_ in zip(call.arguments, own, strict=True):
        if not isinstance(argument, Constant):
            arguments.append(Argument(type_))
            continue
        if decimals and kind(type_) == "integer":
            type_ = literal_type(Decimal(str(argument.value)))
        elif not decimals:
            type_ = _among_others(type_, argument)
        arguments.append(Argument(type_, argument.value, argument.parameter is None))
    return bind(call.function, arguments)


# -- evaluation ---------------------------------------------------------------


def _evaluator(node: Expression, types: _Types, wanted: pa.DataType) -> Evaluator:
    """What gives the values of a folded expression, cast to the wanted type."""
    if isinstance(node, Constant):
        value = _scalar(node, wanted)
        return lambda _, n_rows: pa.repeat(value, n_rows)
    if isinstance(node, Variable):
        name, value_type = node.name, types[node.name]
        values: Evaluator = lambda columns, _: columns[name]  # noqa: E731
    elif isinstance(node, Negative):
        value_type = negated_type(_type(node.operand, types))
        values = _checked(negated, [_evaluator(node.operand, types, value_type)], node, value_type)
    elif isinstance(node, Call) and node.function == "in":
        value_type, values = pa.bool_(), _membership(node, types)
    elif isinstance(node, Call) and node.function in CONDITIONS:
        value_type, values = pa.bool_(), _condition(node, types)
    elif isinstance(node, Call) and node.function == FAILS:
        (of,) = node.arguments
        value_type, values = pa.bool_(), failing(_evaluator(of, types, _type(of, types)))
    elif isinstance(node, Call) and node.function in CONDITIONALS:
        value_type, values = _conditional(node, types)
    elif isinstance(node, Call):
        bound = _bound(node, types)
        taken = [node.arguments[place] for place in bound.places]
        sides = [_evaluator(side, types, its) for side, its in zip(taken, bound.types, strict=True)]
        value_type = bound.result
        values = _checked(bound.kernel, sides, node, value_type)
    else:
        chosen = _signature_of(node, types)
        sides = [_evaluator(node.left, types, chosen.left), _evaluator(node.right, types, chosen.right)]
        value_type = chosen.result
        values = _checked(kernel(node.operator, chosen), sides, node, value_type)
    if value_type == wanted:
        return values
    return _checked(partial(cast, wanted=wanted), [values], node, wanted)


def _condition(call: Call, types: _Types) -> Evaluator:
    """Whether a condition holds, or NULL."""
    if call.function in COMPARISONS:
        return comparer(_comparison(call), types)
    sides = [_evaluator(argument, types, pa.bool_()) for argument in call.arguments]
    operation = CONNECTIVES.get(call.function, pc.invert)
    return lambda columns, n_rows: operation(*(side(columns, n_rows) for side in sides))


def _conditional(call: Call, types: _Types) -> tuple[pa.DataType, Evaluator]:
    """The type and the values of a function that reads NULL as a value."""
    bound = _bound(call, types)
    sides = [
        _evaluator(argument, types, type_)
        for argument, type_ in zip(call.arguments, bound.types, strict=True)
    ]
    if call.function == "coalesce":
        return bound.result, first_known(sides, bound.result)
    if call.function == "nullif":
        equal = comparer(_comparison(replace(call, function="=")), types)
        return bound.result, chosen(equal, None, sides[0], bound.result)
    if call.function == "concat_ws":
        return bound.result, lambda columns, n_rows: bound.kernel(*(side(columns, n_rows) for side in sides))
    if call.function != "if":
        return bound.result, extreme(bound.kernel, sides, bound.result)
    condition, then, *otherwise = sides
    is_known = all(
        isinstance(branch, Constant) or (isinstance(branch, Variable) and types[branch.name] == type_)
        for branch, type_ in zip(call.arguments[1:], bound.types[1:], strict=True)
    )
    pick = picked if is_known else chosen
    return bound.result, pick(condition, then, otherwise[0] if otherwise else None, bound.result)


def _membership(call: Call, types: _Types) -> Evaluator:
    """Whether the first argument, which is evaluated once, equals one of the others."""
    first, *items = call.arguments
    first_type = _type(first, types)
    value = _evaluator(first, types, first_type)
    constants = [item.value for item in items if isinstance(item, Constant)]
    if len(constants) == len(items) and (found := looked_up(constants, first_type)) is not None:
        return lambda columns, n_rows: is_among(value(columns, n_rows), found)
    known = _Types({**types, _MEMBER: first_type})
    equals = [comparer(Comparison("=", Variable(_MEMBER), item), known) for item in items]

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        with_member = _WithMember(columns, value(columns, n_rows))
        return reduce(pc.or_kleene, (equal(with_member, n_rows) for equal in equals))

    return values


class _WithMember(Mapping[str, pa.Array]):
    """Columns, which are made when they are asked for, and one more."""

    def __init__(self, columns: Mapping[str, pa.Array], member: pa.Array) -> None:
        self._columns = columns
        self._member = member

    def __getitem__(self, name: str) -> pa.Array:
        return self._member if name == _MEMBER else self._columns[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._columns
        yield _MEMBER

    def __len__(self) -> int:
        return len(self._columns) + 1


def _scalar(node: Constant, wanted: pa.DataType) -> pa.Scalar:
    value: Any = node.value
    if value is NULL:
        return pa.scalar(None, wanted)
    if isinstance(value, TypedValue):
        return pa.scalar(value.value, wanted)
    if pa.types.is_floating(wanted):
        value = float(value)
    elif pa.types.is_decimal(wanted):
        value = Decimal(value)
    try:
        return pa.scalar(value, wanted)
    except (pa.ArrowInvalid, OverflowError):  # a moment in a finer unit
        raise RangeError(f"{text_of(node)} does not fit type {wanted}") from None


def _checked(operation: Kernel, sides: list[Evaluator], node: Expression, result: pa.DataType) -> Evaluator:
    """What gives the operation's results; what it refuses, it refuses with the first such row."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        arrays = [side(columns, n_rows) for side in sides]
        if any(array.null_count for array in arrays):
            return on_known_rows(computed, arrays, columns, result)
        return computed(arrays, columns)

    def computed(arrays: Sequence[pa.Array], columns: Mapping[str, pa.Array]) -> pa.Array:
        try:
            return operation(*arrays)
        except pa.ArrowInvalid as error:
            if isinstance(error, Refused) and error.is_whole:
                raise error.raised(str(error)) from None
            where = _row_text(node, columns, first_refused(operation, list(arrays)))
            if isinstance(error, Refused):
                raise error.raised(f"{error} in {text_of(node)}{where}") from error.__cause__
            if "divide by zero" in str(error):
                raise EvaluationError(f"division by zero in {text_of(node)}{where}") from None
            raise RangeError(f"{text_of(node)} does not fit type {result}{where}") from None

    return values


def _row_text(node: Expression, columns: Mapping[str, pa.Array], row: int) -> str:
    names = dict.fromkeys(variable.name for variable in variables_of(node))
    shown = [f"{name} = {spelled(columns[name].slice(row, 1))}" for name in names]
    return f" where {', '.join(shown)}" if shown else ""
