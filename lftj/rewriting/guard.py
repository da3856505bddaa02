"""Whether what a body computes fits its types for all values of its columns, whatever joins with what.

A rule fails where an expression does for an assignment of its body.  Views compute with rows that join with
nothing, and never see an assignment whole: they may fail where the rule does not, and the other way around.
So a body has views only as long as neither can: the least and the largest values of its columns say that
every expression fits, by interval arithmetic.

Invariant: where :func:`unproven` is None no expression of the body, and no part of one, fails for any
rows within the spans.  Nothing is said of the sums of a group, which views have exactly.

Cost: of the spans of a table one look at each column, once; of a proof one step for each operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import RangeError
from lftj.language.body import Body, Guard, Source
from lftj.language.expressions import result_type, text_of, variables_of
from lftj.language.folding import fold
from lftj.language.syntax import NULL, BinaryOperation, Call, Constant, Expression, Negative, Variable
from lftj.rewriting.summand import Types, call_may_fail
from lftj.storage.catalog import Catalog, Table
from lftj.storage.key_set import KeySet
from lftj.storage.wide_columns import WideColumns
from lftj.values.domain import NULL_CODE
from lftj.values.kinds import NANOSECONDS, digits_and_scale, kind, literal_type, plain_type
from lftj.values.schema import ColumnType

Span = tuple[Fraction | int, Fraction | int]
"""The least and the largest value: of dates in days, of timestamps and durations in units of their type."""

Spans = Mapping[Source, Span | None]
"""Of columns; None of one without values."""

_COMPUTED = ("integer", "decimal", "date", "timestamp", "duration")
_NANOSECONDS_PER_DAY = 86_400 * 10**9
_TEXT_LENGTH = (0, 2**31)


class MayNotFit(RangeError):
    """Rows came with which a body is not to have views; ``spans``: of all columns, these rows among them."""

    def __init__(self, message: str, spans: Spans) -> None:
        super().__init__(message)
        self.spans = spans


class _Unproven(Exception):
    """The message says what may fail, as a half sentence."""


def unproven(guard: Guard, spans: Spans) -> str | None:
    """What may not fit, as a half sentence; None where nothing may.

    A column that has no span is one of a relation that is not there yet: nothing is said then.
    """
    known: dict[str, Span] = {}
    for name, sources in guard.sources.items():
        if any(source not in spans for source in sources):
            return None
        found = [spans[source] for source in sources]
        some = [span for span in found if span is not None]
        least, most = max((s[0] for s in some), default=1), min((s[1] for s in some), default=0)
        if len(some) < len(found) or least > most:
            if not guard.body.types[name].nullable:
                return None  # there is no assignment
            least = most = 0  # but with NULL
        known[name] = least, most
    types = {name: type_.arrow for name, type_ in guard.body.types.items()}
    try:
        for assignment in guard.body.assignments:
            span = _fitting(fold(assignment.expression), types, known)
            if span is not None:
                known[assignment.variable] = span
        for side in _compared(guard.body):
            _fitting(side, types, known)
    except _Unproven as error:
        return str(error)
    return None


def guard_of(body: Body) -> Guard | None:
    """The guard of a body; None where it computes nothing."""
    computed = [fold(assignment.expression) for assignment in body.assignments]
    expressions = [one for one in (*computed, *_compared(body)) if not isinstance(one, Variable | Constant)]
    if not expressions:
        return None
    names = {variable.name for one in expressions for variable in variables_of(one)}
    sources: dict[str, list[Source]] = {}
    for atom in body.atoms:
        for column, term in enumerate(atom.terms):
            if not isinstance(term, Variable) or term.name not in names:
                continue
            if kind(body.types[term.name].arrow) in _COMPUTED:
                sources.setdefault(term.name, []).append((atom.relation, column))
    return Guard(body, {name: tuple(dict.fromkeys(some)) for name, some in sources.items()})


def _compared(body: Body) -> list[Expression]:
    """What comparisons compute."""
    sides = (side for one in body.comparisons for side in (fold(one.left), fold(one.right)))
    return [side for side in sides if not isinstance(side, Variable | Constant)]


# -- spans ------------------------------------------------------------------------------------

_known: WeakKeyDictionary[Table, dict[int, Span | None]] = WeakKeyDictionary()


def spans_of(columns: frozenset[Source], catalog: Catalog) -> dict[Source, Span | None]:
    """The spans of those of the columns whose tables are there."""
    found: dict[Source, Span | None] = {}
    for name, column in columns:
        table = catalog.get(name)
        if table is None:
            continue
        known = _known.setdefault(table, {})
        if column not in known:
            known[column] = _span_of_column(table, column)
        found[name, column] = known[column]
    return found


def _span_of_column(table: Table, column: int) -> Span | None:
    columns = table.columns()
    numbers = columns.numbers(column) if isinstance(columns, WideColumns) else None
    if numbers is None or not len(numbers.values):
        return span_of(columns[column], table.schema.columns[column].type)
    unit = Fraction(10) ** -numbers.scale
    return numbers.least * unit, numbers.most * unit


def span_of(codes: np.ndarray, type_: ColumnType) -> Span | None:
    """The span of a column's codes, NULL aside; None where there are none."""
    if type_.domain.keeps_null:
        codes = codes[codes != NULL_CODE]
    if not len(codes):
        return None
    if type_.domain.ordered:
        return int(codes.min()), int(codes.max())
    ends = pc.min_max(type_.domain.decode(KeySet.of(codes).codes, plain_type(type_.arrow)))
    return Fraction(ends["min"].as_py()), Fraction(ends["max"].as_py())


def joined(one: Span | None, other: Span | None) -> Span | None:
    """The least span that holds both.

    >>> joined((1, 3), (2, 7)), joined(None, (2, 7))
    ((1, 7), (2, 7))
    """
    if one is None or other is None:
        return other if one is None else one
    return min(one[0], other[0]), max(one[1], other[1])


# -- interval arithmetic ---------------------------------------------------------------------------


def _fitting(node: Expression, types: Types, spans: Mapping[str, Span]) -> Span | None:
    """The span of an expression; None for what has no limits, such as floats.  Raises _Unproven."""
    if isinstance(node, Variable):
        return spans.get(node.name)
    if isinstance(node, Constant):
        return _of_constant(node)
    result = result_type(node, types)
    if isinstance(node, Negative):
        of = _fitting(node.operand, types, spans)
        return _within(None if of is None else (-of[1], -of[0]), result, node, spans)
    if isinstance(node, Call):
        return _within(_of_call(node, types, spans), result, node, spans)
    sides = []
    for side in (node.left, node.right):
        span = _fitting(side, types, spans)
        side_type = literal_type(side.value) if isinstance(side, Constant) else result_type(side, types)
        sides.append(_in_unit_of(span, side_type, result, node, spans))
    return _within(_of_operation(node, sides[0], sides[1], spans), result, node, spans)


def _of_constant(node: Constant) -> Span | None:
    value = node.value
    if value is NULL or isinstance(value, bool | float | str | bytes):
        return None
    exact = (
        Fraction(value) if isinstance(value, int | Decimal) else pa.scalar(value, literal_type(value)).value
    )
    return exact, exact


def _of_operation(
    node: BinaryOperation, left: Span | None, right: Span | None, spans: Mapping[str, Span]
) -> Span | None:
    if node.operator in "/%":
        if right is None or right[0] <= 0 <= right[1]:
            raise _Unproven(f"{text_of(node)} may divide by zero{_where(node, spans)}")
        if node.operator == "/":
            return None  # a float
        most = max(-right[0], right[1])
        return -most, most
    if left is None or right is None:
        return None
    if node.operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if node.operator == "-":
        return left[0] - right[1], left[1] - right[0]
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)


def _of_call(node: Call, types: Types, spans: Mapping[str, Span]) -> Span | None:
    if call_may_fail(node, types):
        raise _Unproven(f"{text_of(node)} can't be computed for all values")
    found = [_fitting(argument, types, spans) for argument in node.arguments]
    if node.function == "length":
        return _TEXT_LENGTH
    if node.function == "cast":
        return found[0]
    if node.function == "tumble":
        return _of_windows(node, types, spans, found)
    if node.function in ("coalesce", "if"):
        values = list(zip(node.arguments, found, strict=True))[node.function == "if" :]
        some = [span for argument, span in values if argument != Constant(NULL)]
        return None if None in some else reduce(joined, some)
    known = [span for span in found if span is not None]
    if len(known) < len(found) or node.function not in ("abs", "least", "greatest"):
        return None
    if node.function == "abs":
        ((least, most),) = known
        return 0 if least <= 0 <= most else max(least, -most), max(-least, most)
    if kind(result_type(node, types)) in ("timestamp", "duration"):
        raise _Unproven(f"{text_of(node)} may not fit one unit")
    choose = min if node.function == "least" else max
    return choose(s[0] for s in known), choose(s[1] for s in known)


def _of_windows(node: Call, types: Types, spans: Mapping[str, Span], found: list[Span | None]) -> Span | None:
    """The beginnings of the windows are up to a length before the moments."""
    result = result_type(node, types)
    sides = [
        _in_unit_of(span, result_type(side, types), result, node, spans)
        for span, side in zip(found, node.arguments[:2], strict=False)
    ]
    moments, lengths = sides
    return None if moments is None or lengths is None else (moments[0] - lengths[1], moments[1])


def _in_unit_of(
    span: Span | None, type_: pa.DataType, result: pa.DataType, node: Expression, spans: Mapping[str, Span]
) -> Span | None:
    """The span in the unit of a result, in which dates, timestamps and durations meet."""
    plain, wanted = plain_type(type_), plain_type(result)
    is_date = pa.types.is_date(plain)
    moments = ("timestamp", "duration")
    if span is None or kind(wanted) not in moments or not (is_date or kind(plain) in moments):
        return span
    times = (_NANOSECONDS_PER_DAY if is_date else NANOSECONDS[plain.unit]) // NANOSECONDS[wanted.unit]
    return _within((span[0] * times, span[1] * times), wanted, node, spans)


def _within(
    span: Span | None, type_: pa.DataType, node: Expression, spans: Mapping[str, Span]
) -> Span | None:
    """The span, which the type holds.  Raises _Unproven."""
    of = kind(type_)
    if of not in _COMPUTED:
        return None
    most = 2 ** (31 if of == "date" else 63) - 1 if of != "decimal" else _largest(type_)
    if span is None or span[0] < -most or span[1] > most:
        raise _Unproven(f"{text_of(node)} may not fit type {type_}{_where(node, spans)}")
    return span


def _largest(type_: pa.DataType) -> Fraction:
    """Of a decimal; codes have no more than 38 digits."""
    digits, scale = digits_and_scale(type_)
    return Fraction(10 ** min(digits, 38) - 1, 10**scale)


def _where(node: Expression, spans: Mapping[str, Span]) -> str:
    names = dict.fromkeys(variable.name for variable in variables_of(node))
    shown = [f"{n} goes from {_shown(spans[n][0])} to {_shown(spans[n][1])}" for n in names if n in spans]
    return f", for {', '.join(shown)}" if shown else ""


def _shown(number: Fraction | int) -> str:
    whole = Fraction(number)
    return str(whole.numerator) if whole.denominator == 1 else str(float(whole))
