"""What an aggregate adds up, as a sum of products: ``sum(a * (b - c))`` adds a * b and -1 * a * c.

A *factor* is an expression whose variables stand in one atom together: one row says what it is,
so it is left as it was written.  Only what spans several atoms is multiplied out.

Invariants

1. The products of a call add up to what it adds, for every assignment: + - * of whole numbers and decimals
   are those of a ring.  Floats are not: their sums are exact, partial ones would be rounded.
2. No factor fails for some values (:func:`may_fail`); what is a factor was a part of the expression, or is a
   variable.

Cost: linear in the products, of which there are at most ``MOST_PRODUCTS``.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from lftj.language.body import Body
from lftj.language.expressions import result_type, variables_of
from lftj.language.syntax import (
    NULL,
    Aggregate,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Expression,
    Negative,
    Variable,
)
from lftj.values.casts import named_type
from lftj.values.kinds import digits_and_scale, kind
from lftj.values.operators import FLIPPED
from lftj.values.spelling import DURATIONS

MOST_PRODUCTS = 12

NEVER_FAIL = frozenset(
    (
        "abs",
        "least",
        "greatest",
        "lower",
        "upper",
        "length",
        "starts_with",
        "ends_with",
        "contains",
        "like",
        "in",
        "coalesce",
        "if",
        *FLIPPED,
    )
)
"""Functions with a value for whatever they are given, but for numbers beyond 64 bits."""

Types = Mapping[str, pa.DataType]
"""Of variables."""


class NotRewritten(Exception):
    """A rule stays as it is; the message says why, as a half sentence."""


@dataclass(frozen=True)
class Product:
    """``factors`` times -1 to the power of ``negations``; none of both is 1."""

    factors: tuple[Expression, ...] = ()
    negations: int = 0

    def times(self, other: Product) -> Product:
        return Product(self.factors + other.factors, (self.negations + other.negations) % 2)


def products(call: Aggregate, body: Body) -> list[Product]:
    """What ``count`` or ``sum`` adds up.  Raises NotRewritten.

    >>> import pyarrow as pa
    >>> from lftj.language.expressions import text_of
    >>> from lftj.language.parser import parse
    >>> from lftj.language.checker import check
    >>> from lftj.values.domains import Domains
    >>> from lftj.values.schema import Column, ColumnType, Schema
    >>> domains = Domains()
    >>> whole = ColumnType(domains.of(pa.int64()), pa.int64())
    >>> e = Schema((Column("x", whole), Column("y", whole)))
    >>> rule = "h[] = sum(v) <- e(a, b), e(b, c), v = (a + b) * (c - a)."
    >>> checked = check(parse(rule), {"e": e}, domains).rules_of("h")[0][0]
    >>> for product in products(Aggregate("sum", (Variable("v"),)), checked.bodies[0]):
    ...     print("-" * product.negations, *map(text_of, product.factors), sep=" ")
     a + b c
    - a + b a
    """
    if call.function == "count":
        return [Product()]
    (argument,) = call.arguments
    inlined = definitions(body)
    expression = substituted(argument, inlined)
    types = {name: type_.arrow for name, type_ in body.types.items()}
    if kind(result_type(expression, types)) not in ("integer", "decimal"):
        raise NotRewritten("only whole numbers and decimals are summed piece by piece without rounding")
    if may_fail(expression, types):
        raise NotRewritten("it sums what can't be computed for all values, such as quotients")
    together = [
        frozenset(term.name for term in atom.terms if isinstance(term, Variable)) for atom in body.atoms
    ]
    return _multiplied_out(expression, together)


def _multiplied_out(expression: Expression, together: Collection[frozenset[str]]) -> list[Product]:
    names = {variable.name for variable in variables_of(expression)}
    if any(names <= one for one in together):
        return [Product((expression,))]
    if isinstance(expression, Negative):
        return [Product(negations=1).times(p) for p in _multiplied_out(expression.operand, together)]
    if isinstance(expression, Call):
        return _of_null(expression, together)
    assert isinstance(expression, BinaryOperation), "a constant has no variables"
    left, right = (_multiplied_out(side, together) for side in (expression.left, expression.right))
    if expression.operator == "*":
        found = [first.times(second) for first in left for second in right]
    else:
        sign = Product(negations=int(expression.operator == "-"))
        found = left + [sign.times(product) for product in right]
    if len(found) > MOST_PRODUCTS:
        raise NotRewritten(f"what it sums has more than {MOST_PRODUCTS} products")
    return found


def _of_null(call: Call, together: Collection[frozenset[str]]) -> list[Product]:
    """Of what may be NULL, with 0 in its place, or whether it is not: it is NULL where a variable is.

    ``coalesce(a - b, 0)`` adds coalesce(a, 0) where b is not NULL, and -1 * coalesce(b, 0) where a is not.
    """
    of, *others = call.arguments
    if call.function == "coalesce" and others == [Constant(0)]:
        strict = _strict(of)
        if strict is not None:
            names = dict.fromkeys(variables_of(strict))
            found = []
            for product in _multiplied_out(strict, together):
                said = {variable for factor in product.factors for variable in variables_of(factor)}
                known = tuple(Call("coalesce", (factor, Constant(0))) for factor in product.factors)
                found.append(
                    Product(
                        (*known, *(_is_known(one) for one in names if one not in said)), product.negations
                    )
                )
            return found
    if call.function == "if" and others == [Constant(0), Constant(1)] and isinstance(of, Call):
        strict = (
            _strict(of.arguments[0]) if of.function == "<=>" and of.arguments[1] == Constant(NULL) else None
        )
        if strict is not None:
            return [Product(tuple(map(_is_known, dict.fromkeys(variables_of(strict)))))]
    raise NotRewritten(f"it sums what {call.function} gives for several atoms together")


def _is_known(of: Variable) -> Expression:
    """1, and 0 where it is NULL."""
    return Call("if", (Call("<=>", (of, Constant(NULL))), Constant(0), Constant(1)))


def _strict(of: Expression) -> Expression | None:
    """The expression where it is NULL if, and only if, a variable of it is; ``coalesce(x, null)`` is x."""
    if isinstance(of, Call) and of.function == "coalesce" and of.arguments[1:] == (Constant(NULL),):
        return _strict(of.arguments[0])
    if isinstance(of, Negative):
        inner = _strict(of.operand)
        return None if inner is None else Negative(inner, of.span)
    if isinstance(of, BinaryOperation) and of.operator in "+-*":
        left, right = _strict(of.left), _strict(of.right)
        return None if left is None or right is None else BinaryOperation(of.operator, left, right, of.span)
    return of if isinstance(of, Variable | Constant) and of != Constant(NULL) else None


def definitions(body: Body) -> dict[str, Expression]:
    """What each computed variable is, over variables of atoms and generated ones."""
    found: dict[str, Expression] = {}
    for assignment in body.assignments:
        if assignment.each:
            continue
        found[assignment.variable] = substituted(assignment.expression, found)
    return found


def substituted(expression: Expression, definition: Mapping[str, Expression]) -> Expression:
    """The expression with variables replaced by what they are."""
    if isinstance(expression, Variable):
        return definition.get(expression.name, expression)
    if isinstance(expression, Negative):
        return Negative(substituted(expression.operand, definition), expression.span)
    if isinstance(expression, BinaryOperation):
        left, right = substituted(expression.left, definition), substituted(expression.right, definition)
        return BinaryOperation(expression.operator, left, right, expression.span)
    if isinstance(expression, Call):
        arguments = tuple(substituted(argument, definition) for argument in expression.arguments)
        return Call(expression.function, arguments, expression.span)
    return expression


def may_fail(expression: Expression, types: Types) -> bool:
    """Whether it fails for some values, not only for large ones: perhaps in a row that joins with nothing."""
    if isinstance(expression, Negative):
        return may_fail(expression.operand, types)
    if isinstance(expression, BinaryOperation):
        sides = (expression.left, expression.right)
        return expression.operator in "/%" or any(may_fail(side, types) for side in sides)
    if isinstance(expression, Call):
        return call_may_fail(expression, types) or any(may_fail(one, types) for one in expression.arguments)
    return False


def call_may_fail(call: Call, types: Types) -> bool:
    """Whether a call fails for some values of its arguments, not only for large ones."""
    return not (call.function in NEVER_FAIL or only_widens(call, types) or _tumbles(call, types))


def _tumbles(call: Call, types: Types) -> bool:
    """Whether this gives the beginnings of windows of a length that is one."""
    if call.function != "tumble":
        return False
    moment, *spans = call.arguments
    values: list[Any] = [span.value for span in spans if isinstance(span, Constant)]
    if len(values) < len(spans) or values[0] <= type(values[0])():
        return False
    of_days = kind(result_type(moment, types)) == "date"
    return not any(of_days and isinstance(one, datetime.timedelta) and one % DURATIONS["d"] for one in values)


def only_widens(call: Call, types: Types) -> bool:
    """Whether this casts numbers to decimals that have all of their digits."""
    if call.function != "cast":
        return False
    number, wanted = call.arguments
    if not isinstance(wanted, Constant) or not isinstance(wanted.value, str):
        return False
    type_, target = result_type(number, types), named_type(wanted.value)
    if kind(type_) not in ("integer", "decimal") or kind(target) != "decimal":
        return False
    (digits, scale), (most_digits, wanted_scale) = digits_and_scale(type_), digits_and_scale(target)
    return scale <= wanted_scale and digits - scale <= most_digits - wanted_scale


def compared(comparison: Comparison, definition: Mapping[str, Expression], types: Types) -> Comparison:
    """The comparison over variables of atoms.  Raises NotRewritten where it may fail."""
    left, right = substituted(comparison.left, definition), substituted(comparison.right, definition)
    if may_fail(left, types) or may_fail(right, types):
        raise NotRewritten("it compares what can't be computed for all values, such as quotients")
    return Comparison(comparison.operator, left, right, comparison.span)


def product_of(factors: Collection[Expression], negations: int = 0) -> Expression:
    """The factors multiplied, in their order.

    >>> from lftj.language.expressions import text_of
    >>> text_of(product_of([Variable("a"), Variable("b")], 1))
    '-1 * a * b'
    """
    signed: list[Expression] = [Constant(-1)] if negations else []
    signed += factors
    return reduce(partial(BinaryOperation, "*"), signed)
