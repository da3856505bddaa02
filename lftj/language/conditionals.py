"""Conditions within expressions, and what NULL is there: ``if(x > 3, "big", y)``, ``coalesce(x, 0)``.

An expression reads a variable *strictly* where it needs its value: an assignment of the body in which that is
NULL is left out.  Within ``if``, ``coalesce``, ``nullif``, ``greatest``, ``least`` and ``concat_ws``, and on
the sides of ``<=>``, nothing is strict.  NULL is passed on there, by operations and functions, and by
conditions, which are true, false or NULL, as in SQL; ``if`` takes NULL for false.

A branch is computed on the rows that take it: a division by zero in another one is nobody's business.

In the syntax tree a condition is a call: of an operator (``<``), of ``and``, ``or`` or ``not``; and
``x is null`` is ``x <=> null``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError, RangeError
from lftj.language.syntax import (
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Expression,
    Negative,
    Variable,
)
from lftj.values.arithmetic import Kernel
from lftj.values.functions import CONDITIONALS, PARTIAL
from lftj.values.literals import NULL
from lftj.values.operators import FLIPPED, NULL_SAFE

Evaluator = Callable[[Mapping[str, pa.Array], int], pa.Array]
"""Columns of an expression's variables, and their number of rows, to its values."""

COMPARISONS = tuple(FLIPPED)
CONNECTIVES = {"and": pc.and_kleene, "or": pc.or_kleene}
NOT = "not"
FAILS = "fails"
"""Whether an expression can't be computed: what rewritings ask, and no program can write."""

CONDITIONS = (*COMPARISONS, *CONNECTIVES, NOT)

_READ_NULL = (*CONDITIONALS, *NULL_SAFE)
"""What is called so reads NULL as a value."""


def as_condition(comparison: Comparison) -> Expression:
    """A comparison of a body as a condition within an expression.

    >>> as_condition(Comparison("<", Variable("x"), Constant(3))).function
    '<'
    """
    span, left, right = comparison.span, comparison.left, comparison.right
    is_test = comparison.operator == "=" and isinstance(left, Call)
    if is_test and isinstance(right, Constant) and isinstance(right.value, bool):
        return left if right.value else Call(NOT, (left,), span)
    return Call(comparison.operator, (left, right), span)


def is_condition(argument: object) -> bool:
    """Whether this is a condition, and no test, which looks like other calls."""
    of_several = isinstance(argument, Call) and argument.function in CONDITIONS
    return of_several or isinstance(argument, Comparison)


def connected(connective: str, conditions: Sequence[Expression]) -> Expression:
    """Conditions by ``and`` or ``or``; a single one is itself."""
    if len(conditions) == 1:
        return conditions[0]
    halves = conditions[: len(conditions) // 2], conditions[len(conditions) // 2 :]
    return Call(connective, tuple(connected(connective, half) for half in halves), conditions[0].span)


def children(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is computed from, one level down."""
    if isinstance(expression, BinaryOperation):
        return expression.left, expression.right
    if isinstance(expression, Negative):
        return (expression.operand,)
    return expression.arguments if isinstance(expression, Call) else ()


def read_strictly(expression: Expression) -> set[str]:
    """The variables whose NULL leaves an assignment out.

    >>> read_strictly(Call("coalesce", (Variable("x"), Constant(0)))), read_strictly(Negative(Variable("x")))
    (set(), {'x'})
    """
    if isinstance(expression, Variable):
        return {expression.name}
    if isinstance(expression, Call) and expression.function in _READ_NULL:
        return set()
    return set[str]().union(*map(read_strictly, children(expression)))


def may_be_null(expression: Expression, nullable: Collection[str]) -> bool:
    """Whether an expression has no value in a row in which these variables may be NULL."""
    if isinstance(expression, Variable):
        return expression.name in nullable
    if isinstance(expression, Constant):
        return expression.value is NULL
    if isinstance(expression, Call) and expression.function in PARTIAL:
        return True
    if not isinstance(expression, Call) or expression.function not in _READ_NULL:
        return any(may_be_null(child, nullable) for child in children(expression))
    if expression.function in ("nullif", *NULL_SAFE):
        return expression.function == "nullif"
    if expression.function == "concat_ws":
        return may_be_null(expression.arguments[0], nullable)
    if expression.function != "if":
        return all(may_be_null(argument, nullable) for argument in expression.arguments)
    condition, then, *otherwise = expression.arguments
    if not otherwise:
        return True
    known = _known(condition, True), _known(condition, False)
    return any(
        may_be_null(branch, set(nullable) - its)
        for branch, its in zip((then, *otherwise), known, strict=True)
    )


def gives_null(expression: Expression, nullable: Collection[str]) -> bool:
    """Whether what a body assigns may be NULL; where an expression knows of none, it leaves the row out."""
    of = expression
    while isinstance(of, Call) and of.function in ("cast", "sql_cast"):
        of = of.arguments[0]
    knows = isinstance(of, Constant) or (isinstance(of, Call) and of.function in (*_READ_NULL, *PARTIAL))
    return knows and may_be_null(expression, nullable)


def without_defaults(expression: Expression) -> Expression:
    """What an expression gives: ``coalesce(x, null)`` is x."""
    while isinstance(expression, Call) and expression.function == "coalesce":
        first, *others = expression.arguments
        if not all(isinstance(one, Constant) and one.value is NULL for one in others):
            break
        expression = first
    return expression


def _known(condition: Expression, outcome: bool) -> set[str]:
    """Variables that are not NULL where a condition holds, or does not."""
    if not isinstance(condition, Call):
        return set()
    if condition.function == NOT:
        return _known(condition.arguments[0], not outcome)
    if condition.function == ("<!=>" if outcome else "<=>"):
        of, other = condition.arguments
        return read_strictly(of) if isinstance(other, Constant) and other.value is NULL else set()
    if condition.function == "and" and outcome:
        return set[str]().union(*(_known(argument, True) for argument in condition.arguments))
    if condition.function in COMPARISONS and outcome:
        return read_strictly(condition)  # of a null-safe one nothing
    return set()


# -- evaluation ---------------------------------------------------------------


def on_known_rows(
    operation: Callable[[Sequence[pa.Array], Mapping[str, pa.Array]], pa.Array],
    arrays: Sequence[pa.Array],
    columns: Mapping[str, pa.Array],
    result: pa.DataType,
) -> pa.Array:
    """A row-by-row operation that takes no NULL, on the rows without any; the others are NULL.

    >>> of_first = lambda arrays, columns: pc.negate(arrays[0])
    >>> on_known_rows(of_first, [pa.array([1, None])], {}, pa.int64()).to_pylist()
    [-1, None]
    """
    known = reduce(pc.and_, (array.is_valid() for array in arrays))
    mask = known.to_numpy(zero_copy_only=False)
    found = operation([array.filter(known) for array in arrays], _RowsOf(columns, mask))
    return _scattered([mask], [found], len(known), result)


def chosen(
    condition: Evaluator, then: Evaluator | None, otherwise: Evaluator | None, result: pa.DataType
) -> Evaluator:
    """``if``: each branch on the rows that take it; NULL where there is none."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        holds = pc.fill_null(condition(columns, n_rows), False).to_numpy(zero_copy_only=False)
        masks, branches = [holds, ~holds], [then, otherwise]
        taken = [(mask, branch) for mask, branch in zip(masks, branches, strict=True) if branch is not None]
        parts = [branch(_RowsOf(columns, mask), int(mask.sum())) for mask, branch in taken]
        return _scattered([mask for mask, _ in taken], parts, n_rows, result)

    return values


def picked(
    condition: Evaluator, then: Evaluator, otherwise: Evaluator | None, result: pa.DataType
) -> Evaluator:
    """The same of branches that are there already, variables and constants: none can fail."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        holds = pc.fill_null(condition(columns, n_rows), False)
        other = pa.scalar(None, result) if otherwise is None else otherwise(columns, n_rows).cast(result)
        return pc.if_else(holds, then(columns, n_rows).cast(result), other)

    return values


def first_known(arguments: Sequence[Evaluator], result: pa.DataType) -> Evaluator:
    """``coalesce``: each argument on the rows in which all before it are NULL."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        missing, masks, parts = np.ones(n_rows, bool), [], []
        for argument in arguments:
            found = argument(_RowsOf(columns, missing), int(missing.sum()))
            known = found.is_valid().to_numpy(zero_copy_only=False)
            mask = missing.copy()
            mask[missing] = known
            masks.append(mask)
            parts.append(found.drop_null())
            missing &= ~mask
            if not missing.any():
                break
        return _scattered(masks, parts, n_rows, result)

    return values


def extreme(pick: Kernel, arguments: Sequence[Evaluator], result: pa.DataType) -> Evaluator:
    """``greatest`` and ``least``: of the arguments that are not NULL."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        best, *others = [argument(columns, n_rows) for argument in arguments]
        for other in others:
            if best.null_count or other.null_count:
                both = pc.and_(best.is_valid(), other.is_valid())
                picked, one = pick(best.filter(both), other.filter(both)), pc.coalesce(best, other)
                known = both.to_numpy(zero_copy_only=False)
                best = _scattered([known, ~known], [picked, one.filter(pc.invert(both))], n_rows, result)
            else:
                best = pick(best, other)
        return best

    return values


def failing(of: Evaluator) -> Evaluator:
    """Whether rows are refused: rows that are refused together are halved until each is known."""

    def values(columns: Mapping[str, pa.Array], n_rows: int) -> pa.Array:
        fails = np.zeros(n_rows, bool)
        waiting = [(0, n_rows)]
        while waiting:
            first, end = waiting.pop()
            some = np.zeros(n_rows, bool)
            some[first:end] = True
            try:
                of(_RowsOf(columns, some), end - first)
            except (RangeError, EvaluationError):
                middle = (first + end) // 2
                fails[first] = end - first == 1
                waiting += [(first, middle), (middle, end)] if end - first > 1 else []
        return pa.array(fails)

    return values


class _RowsOf(Mapping[str, pa.Array]):
    """Some rows of columns, which are taken when they are asked for."""

    def __init__(self, columns: Mapping[str, pa.Array], mask: np.ndarray) -> None:
        self._columns = columns
        self._mask = None if mask.all() else pa.array(mask)

    def __getitem__(self, name: str) -> pa.Array:
        column = self._columns[name]
        return column if self._mask is None else column.filter(self._mask)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _scattered(
    masks: Sequence[np.ndarray], parts: Sequence[pa.Array], n_rows: int, result: pa.DataType
) -> pa.Array:
    """Values in the rows of their masks, which have none in common; NULL in the others."""
    if len(masks) == 1 and masks[0].all():
        return parts[0]
    places = np.full(n_rows, -1, np.int64)
    before = 0
    for mask, part in zip(masks, parts, strict=True):
        places[mask] = np.arange(before, before + len(part))
        before += len(part)
    together = pa.concat_arrays([part.cast(result) for part in parts]) if parts else pa.array([], result)
    return together.take(pa.array(places, mask=places < 0))
