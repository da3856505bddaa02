"""What aggregates take, and of what type their values are.

Cost: O(1) per call.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from lftj.errors import TypeClashError
from lftj.language.body import Body
from lftj.language.syntax import Aggregate, Head, Variable
from lftj.values.kinds import kind, literal_type, plain_type
from lftj.values.literals import NULL, TypedValue
from lftj.values.names import AGGREGATES, DISTINCT_COUNT, QUANTILES, RANKED, REACHED, VARIANCES
from lftj.values.spelling import literal as spelled_literal

_OF_TYPE_OF_VALUE = ("min", "max", "any_value", "mode", *RANKED, *QUANTILES, *REACHED)
_OF_NUMBERS = ("avg", "median", *VARIANCES, "stddev", "stddev_pop")
_TEXTS = ("concat", "string_agg")
_BOOLEANS = ("bool_and", "bool_or")


def wanted_arguments(call: Aggregate) -> str:
    """What a call takes, where it has something else; else an empty text.

    >>> wanted_arguments(Aggregate("arg_max", (Variable("x"),)))
    'a value and what it is chosen by: arg_max(x, v)'
    """
    given, function = len(call.arguments), call.function
    variables = sum(isinstance(one, Variable) for one in call.arguments)
    if call.distinct and function in ("mode", *REACHED):
        return "no 'distinct'"
    if function == "list":
        ordered = any(isinstance(one, Variable) and one.name.startswith("by: ") for one in call.arguments)
        if not given:
            return "a variable, and perhaps an order: list(v, by: (k desc))"
        return "no order behind 'distinct'" if call.distinct and ordered else ""
    if call.distinct and variables > 1 and function != "count":
        return "one variable behind 'distinct'"
    if function == "count":
        if not given or call.distinct:
            return ""
        name = call.arguments[0].name if isinstance(call.arguments[0], Variable) else "v"
        return f"no argument: it counts assignments; write count(if {name} is not null)"
    if function == DISTINCT_COUNT:
        return ""
    if function in _TEXTS:
        example = f'{function}(s, ", ", o)'
        return "" if given else f"a string, a separator and order variables: {example}"
    if function not in AGGREGATES:
        return "" if given else f"a value and order variables: {function}(v, o)"
    if function in RANKED:
        return "" if given == 2 else f"a value and a rank: {function}(v, 3)"
    if function in QUANTILES:
        example = f"{function}(v, 0.5, w)"
        return "" if given in (2, 3) else f"a value, a share and perhaps a weight: {example}"
    if function in REACHED:
        return "" if given == 2 else f"a value and what it is chosen by: {function}(x, v)"
    return "" if given == 1 else "one argument"


def aggregate_type(function: str, argument: pa.DataType) -> pa.DataType | None:
    """Type of an aggregate's value; None when it does not take the argument."""
    name = kind(argument)
    if function in _OF_TYPE_OF_VALUE:
        return argument
    if function == "list":
        return pa.list_(plain_type(argument))
    if function in _BOOLEANS:
        return argument if name == "boolean" else None
    if function in _TEXTS:
        return pa.string() if name == "string" else None
    if function in _OF_NUMBERS:
        return pa.float64() if name in ("integer", "float", "decimal") else None
    if name == "integer":
        return pa.int64()
    if name == "float":
        return pa.float64()
    if function not in AGGREGATES:
        return None
    if name == "decimal":
        plain = plain_type(argument)
        return pa.decimal256(76, plain.scale) if plain.bit_width > 128 else pa.decimal128(38, plain.scale)
    return plain_type(argument) if name == "duration" else None


def wanted_type(function: str) -> str:
    """What a message says that an aggregate takes, where it takes not everything."""
    if function in _TEXTS:
        return "strings"
    if function in _BOOLEANS:
        return "booleans"
    if function == "median":
        return "numbers, for others quantile(v, 0.5) is one of the values in the middle"
    return "numbers" if function in AGGREGATES else "integers or floats"


def may_be_nothing(call: Aggregate, body: Body) -> bool:
    """Whether a group may have no value: all that is read is NULL, or one number has no deviation."""
    return call.function in ("variance", "stddev") or any(body.types[name].nullable for name in call.skips)


def is_null_over_nothing(call: Aggregate, head: Head) -> bool:
    """Whether it is NULL in the row that a head with a default has where its body has no assignment."""
    return any(one.default is not None for one in head.aggregates) and (
        call.default is None or call.default.value is NULL
    )


def default_value(call: Aggregate, arrow: pa.DataType) -> Any:
    """A TypedValue, what a call without assignments gives, of its type: NULL, if it says that or nothing.

    Raises TypeClashError.
    """
    arrow = plain_type(arrow)
    if call.default is None or call.default.value is NULL:
        return NULL
    value: Any = call.default.value
    literal = literal_type(value)
    numbers = {kind(arrow), kind(literal)} <= {"integer", "float", "decimal"}
    without_zone = [getattr(type_, "tz", None) is None for type_ in (arrow, literal)]
    if numbers or (kind(arrow) == kind(literal) and without_zone[0] == without_zone[1]):
        value = {"float": float, "decimal": Decimal}.get(kind(arrow), lambda same: same)(value)
        try:
            as_given = pa.scalar(value, arrow if numbers else literal)
            as_given.cast(arrow)  # without loss, where it is a moment of another unit
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass
        else:
            return TypedValue(value, arrow)
    message = f"the default of '{call.name}' is {spelled_literal(call.default.value)}"
    raise TypeClashError(f"{message}, and its values are of type {arrow}", call.default.span)
