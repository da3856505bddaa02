"""Expressions of nodes: what they read, whether they can be NULL, and what is known of them beforehand.

:func:`folded` is what makes outer joins cheap: the alternative without a partner has NULL in the place of its
columns, and every test that NULL fails takes the alternative away.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from lftj.sql import nodes
from lftj.sql.nodes import Call, Case, Cast, Compare, Constant, Expression, In, IsNull, Logic, Not, Variable
from lftj.sql.translation.functions import is_known
from lftj.sql.types import exactly, kind
from lftj.values.operators import NEGATED, ON_VALUES

TRUE, FALSE, UNKNOWN = (Constant(value, "BOOLEAN") for value in (True, False, None))

NEVER_NULL = ("concat", "list_value")
KNOWN_OF = ("greatest", "least", "coalesce")
READS_NULL = (*KNOWN_OF, "concat_ws", "error", *NEVER_NULL)
"""Functions that are not NULL where an argument is; the first, where one is not."""

PARTIAL = ("list_extract", "array_extract", "list_element", "nullif", "try_strptime", "list_position")
"""Functions that may be NULL where no argument is."""


def children(of: Expression | tuple[object, ...]) -> Iterator[Expression]:
    """One level down: what stands in the fields, or in tuples there."""
    for value in of if isinstance(of, tuple) else vars(of).values():
        if isinstance(value, Expression):
            yield value
        elif isinstance(value, tuple):
            yield from children(value)


def rebuilt(of: Expression, parts: Iterable[Expression]) -> Expression:
    """The expression over other children."""
    left = iter(parts)

    def taken(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(taken, value))
        return next(left) if isinstance(value, Expression) else value

    return replace(of, **{name: taken(value) for name, value in vars(of).items()})


def walked(of: Expression) -> Iterator[Expression]:
    """The expression and all below it."""
    yield of
    for child in children(of):
        yield from walked(child)


def variables(of: Expression) -> Iterator[Variable]:
    return (one for one in walked(of) if isinstance(one, Variable))


def exists_in(of: Expression) -> bool:
    return any(isinstance(one, nodes.Exists) for one in walked(of))


def mapped(of: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with parts in whose place ``change`` gives another; folded."""
    found = change(of)
    if found is not None:
        return found
    parts = tuple(children(of))
    changed = [mapped(part, change) for part in parts]
    return folded(of if all(a is b for a, b in zip(parts, changed, strict=True)) else rebuilt(of, changed))


def over(of: Expression, columns: Sequence[Expression]) -> Expression:
    """With these in the place of columns; folded."""
    return mapped(of, lambda one: columns[one.index] if isinstance(one, nodes.Column) else None)


def is_null(of: Expression) -> bool:
    """Whether it is NULL whatever the row."""
    return isinstance(of, Constant) and of.value is None


def nullable(of: Expression) -> bool:
    """Whether it can be NULL."""
    if isinstance(of, Constant | nodes.Exists | IsNull):
        return is_null(of)
    if isinstance(of, Variable | nodes.Term):
        return of.nullable
    if isinstance(of, nodes.Column):  # of which rows, is not known here
        return True
    if isinstance(of, Compare) and of.operator in ("<=>", "<!=>"):
        return False
    if isinstance(of, Case):
        return nullable(of.otherwise) or any(nullable(value) for _, value in of.branches)
    if isinstance(of, Cast) and not of.fails:
        return True
    if isinstance(of, Call):
        if of.function in PARTIAL or of.function in NEVER_NULL:
            return of.function in PARTIAL
        if of.function == "concat_ws":
            return nullable(of.arguments[0])  # the separator
        if of.function in KNOWN_OF:
            return all(map(nullable, of.arguments))
    return any(map(nullable, children(of)))


def known_by(test: Expression) -> Iterator[Variable]:
    """The variables that are not NULL where a test is true."""
    if isinstance(test, Logic) and test.operator == "and":
        for part in test.arguments:
            yield from known_by(part)
    elif isinstance(test, Compare) and test.operator not in ("<=>", "<!=>"):
        for side in (test.left, test.right):
            yield from _needed(side)
    elif isinstance(test, In | nodes.Member):
        yield from _needed(test.argument if isinstance(test, In) else test.list)
    elif isinstance(test, Not) and isinstance(test.argument, IsNull):
        yield from _needed(test.argument.argument)
    elif isinstance(test, Not) and isinstance(test.argument, Compare):
        yield from known_by(replace(test.argument, operator=NEGATED[test.argument.operator]))


def _needed(of: Expression) -> Iterator[Variable]:
    """The variables with which an expression is NULL."""
    if isinstance(of, Variable):
        yield of
    elif isinstance(of, Cast) or (isinstance(of, Call) and of.function not in READS_NULL):
        for child in children(of):
            yield from _needed(child)


# -- folding ---------------------------------------------------------------------------------


def folded(of: Expression) -> Expression:
    """What is known of an expression of folded children.

    >>> x = Variable(1, "x", "BIGINT")
    >>> folded(Compare("<", x, Constant(None, "BIGINT"))).value is None
    True
    >>> folded(Logic("and", (TRUE, IsNull(x)))) == IsNull(x)
    True
    """
    rule = _FOLDS.get(type(of))
    return of if rule is None else rule(of)


def _compare(of: Compare) -> Expression:
    left, right = of.left, of.right
    nothing = [one for one in (left, right) if is_null(one)]
    if of.operator in ("<=>", "<!=>"):
        alike = of.operator == "<=>"
        if nothing:
            other = right if left is nothing[0] else left
            test = folded(IsNull(other, place=of.place))
            return test if alike else folded(Not(test, place=of.place))
        if nullable(left) or nullable(right):
            return of
        return folded(replace(of, operator="=" if alike else "!="))
    if nothing:
        return UNKNOWN
    for day, time, turned in ((left, right, False), (right, left, True)):
        midnight = _midnight(day, time)
        if midnight is not None:
            assert isinstance(day, Cast)
            sides = (midnight, day.argument) if turned else (day.argument, midnight)
            return folded(replace(of, left=sides[0], right=sides[1]))
    if isinstance(left, Constant) and isinstance(right, Constant) and left.type == right.type:
        return TRUE if ON_VALUES[of.operator](left.value, right.value) else FALSE
    if left == right and not nullable(left) and kind(left.type) != "float":
        return TRUE if of.operator in ("=", "<=", ">=") else FALSE
    return of


def _midnight(day: Expression, time: Expression) -> Constant | None:
    """The date that a timestamp begins, with which a date that was cast is compared."""
    if not isinstance(day, Cast) or (kind(day.argument.type), kind(day.type)) != ("date", "timestamp"):
        return None
    value = time.value if isinstance(time, Constant) else None
    if not isinstance(value, datetime.datetime) or value.time() != datetime.time():
        return None
    return Constant(value.date(), "DATE", place=time.place)


def _logic(of: Logic) -> Expression:
    whole, nothing = (FALSE, TRUE) if of.operator == "and" else (TRUE, FALSE)
    parts: dict[Expression, None] = {}
    for part in of.arguments:
        alike = isinstance(part, Logic) and part.operator == of.operator
        for one in part.arguments if alike and isinstance(part, Logic) else (part,):
            if one == whole:
                return whole
            if one != nothing:
                parts[one] = None
    if not parts:
        return nothing
    return next(iter(parts)) if len(parts) == 1 else _shared(replace(of, arguments=tuple(parts)))


def _shared(of: Logic) -> Logic:
    """``a and b or a and c`` is ``a and (b or c)``."""
    if of.operator == "and":
        return of
    sides = [one.arguments if isinstance(one, Logic) else (one,) for one in of.arguments]
    common = [one for one in sides[0] if all(one in side for side in sides[1:])]
    if not common:
        return of
    rests = (Logic("and", tuple(one for one in side if one not in common)) for side in sides)
    return Logic("and", (*common, folded(Logic("or", tuple(map(folded, rests))))), place=of.place)


def _not(of: Not) -> Expression:
    inner = of.argument
    if isinstance(inner, Constant):
        return inner if is_null(inner) else (FALSE if inner.value else TRUE)
    if isinstance(inner, Not):
        return inner.argument
    return of


def _is_null(of: IsNull) -> Expression:
    if isinstance(of.argument, Constant):
        return TRUE if is_null(of.argument) else FALSE
    return of if nullable(of.argument) else FALSE


def _in(of: In) -> Expression:
    if is_null(of.argument):
        return UNKNOWN
    if any(not isinstance(one, Constant) and nullable(one) for one in of.items):
        equal = (Compare("=", of.argument, one, place=of.place) for one in of.items)
        return folded(Logic("or", tuple(map(folded, equal))))
    items = tuple(one for one in of.items if not is_null(one))
    found: Expression = replace(of, items=items)
    if isinstance(of.argument, Constant) and all(isinstance(one, Constant) for one in items):
        found = TRUE if of.argument in items else FALSE
    elif not items:
        found = FALSE
    return found if len(items) == len(of.items) else folded(Logic("or", (found, UNKNOWN)))


def _case(of: Case) -> Expression:
    branches = []
    otherwise = of.otherwise
    for condition, value in of.branches:
        if isinstance(condition, Constant):
            if not condition.value:
                continue
            otherwise = value
            break
        branches.append((condition, value))
    while branches and is_null(branches[-1][1]) and is_null(otherwise):
        branches.pop()
    if all(value == otherwise for _, value in branches):
        return otherwise if otherwise.type == of.type else Cast(otherwise, of.type)
    return replace(of, branches=tuple(branches), otherwise=otherwise)


def _cast(of: Cast) -> Expression:
    if of.argument.type == of.type:
        return of.argument
    found = exactly(of.argument, of.type) if isinstance(of.argument, Constant) else None
    return of if found is None else found


def _call(of: Call) -> Expression:
    if of.function in KNOWN_OF:
        known = tuple(one for one in of.arguments if not is_null(one))
        if of.function == "coalesce":
            known = known[: next((at for at, one in enumerate(known, 1) if not nullable(one)), None)]
        if len(known) < 2:
            return folded(Cast(known[0], of.type)) if known else Constant(None, of.type, place=of.place)
        return replace(of, arguments=known)
    if of.function in READS_NULL or not is_known(of):
        return of
    if any(map(is_null, of.arguments)):
        return Constant(None, of.type, place=of.place)
    return of


_FOLDS: dict[type, Callable[..., Expression]] = {
    Compare: _compare,
    Logic: _logic,
    Not: _not,
    IsNull: _is_null,
    In: _in,
    Case: _case,
    Cast: _cast,
    Call: _call,
    nodes.Member: lambda of: FALSE if is_null(of.list) else of,
}
