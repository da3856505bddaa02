"""The functions that expressions can call: of which arguments, with what type of result.

A function is bound to the types of its arguments, and to those that are literals: that gives
a row-by-row kernel, as an operator has (:mod:`lftj.values.arithmetic`).

Invariant: a bound kernel raises ``pa.ArrowInvalid`` when a row has no result, and gives no NULL, but those of
:data:`PARTIAL` functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import FunctionError, TypeClashError
from lftj.values import bits, list_functions, maths, moment_functions, regular, series, text_shapes, texts
from lftj.values.arithmetic import Kernel, Refused
from lftj.values.binding import MANY, Argument, Bound, Function, by_options, string_type
from lftj.values.comparisons import comparable, compare_arrays
from lftj.values.kinds import (
    MAX_DIGITS,
    NUMERIC,
    common_type,
    decimal_type,
    digits_and_scale,
    finer_unit,
    kind,
    plain_type,
)
from lftj.values.rounding import round_decimals, round_floats, round_integers, rounded_type

# -- conditionals --------------------------------------------------------------------------


def _if(arguments: Sequence[Argument]) -> Bound:
    """NULL where the condition does not hold and nothing stands for that."""
    condition, *branches = arguments
    if condition.type != pa.bool_():
        raise TypeClashError(f"if takes a condition first, not a value of type {plain_type(condition.type)}")
    wanted = _branch_type("if", branches)
    return Bound(tuple(range(len(arguments))), (pa.bool_(), *[wanted] * len(branches)), wanted, pc.if_else)


def _coalesce(arguments: Sequence[Argument]) -> Bound:
    wanted = _branch_type("coalesce", arguments)
    return Bound(tuple(range(len(arguments))), (wanted,) * len(arguments), wanted, pc.coalesce)


def _nullif(arguments: Sequence[Argument]) -> Bound:
    types = [plain_type(argument.type) for argument in arguments]
    if not comparable(*types):
        raise TypeClashError(
            f"nullif compares its arguments, and {types[0]} and {types[1]} can't be compared"
        )
    return Bound((0, 1), tuple(types), types[0], pc.if_else)


def _branch_type(name: str, arguments: Sequence[Argument]) -> pa.DataType:
    types = [plain_type(argument.type) for argument in arguments if argument.type != pa.null()]
    if not types:
        raise TypeClashError(f'{name} of null alone has no type: write cast(null, "int64")')
    alike = all(type_ == types[0] for type_ in types)
    return types[0] if alike and kind(types[0]) in ("boolean", "time") else _meeting_type(name, types)


CONDITIONALS = ("if", "coalesce", "nullif", "greatest", "least", "concat_ws")
"""Functions that read NULL as a value: :mod:`lftj.language.conditionals` computes them.

The first three compute an argument only where it is asked for.  Binding says their types, and how the others
pick one of two values, or join them.
"""


class _Raised(Refused):
    """By a rule that says so."""

    is_whole = True


def _error(arguments: Sequence[Argument]) -> Bound:
    """Of the type that null has: what it stands beside decides."""
    _strings("error", arguments)
    return Bound((0,), (string_type(arguments[0].type),), pa.null(), _raise)


def _raise(messages: pa.Array) -> pa.Array:
    if len(messages):
        raise _Raised(messages[0].as_py())
    return pa.nulls(0)


# -- numbers -----------------------------------------------------------------------------


def _number(name: str, type_: pa.DataType) -> pa.DataType:
    if kind(type_) == "integer":
        return pa.int64()
    if kind(type_) == "float":
        return pa.float64()
    if kind(type_) == "decimal":
        return decimal_type(*digits_and_scale(type_))
    raise TypeClashError(f"there is no {name} for type {plain_type(type_)}")


def _of_number(name: str, kernel: Kernel, arguments: Sequence[Argument]) -> Bound:
    type_ = _number(name, arguments[0].type)
    return Bound((0,), (type_,), type_, kernel)


def _to_whole(name: str, arguments: Sequence[Argument]) -> Bound:
    """A function to whole numbers; those of decimals have a digit more, and none behind the point."""
    type_ = _number(name, arguments[0].type)
    if kind(type_) == "integer":
        return Bound((0,), (type_,), type_, lambda numbers: numbers)
    if kind(type_) == "float":
        return Bound((0,), (type_,), type_, partial(pc.round, round_mode=_WHOLE[name]))
    digits, scale = digits_and_scale(type_)
    whole = decimal_type(min(digits + 1 - scale, MAX_DIGITS), 0)
    return Bound((0,), (type_,), whole, partial(round_decimals, digits=0, wanted=whole, mode=_WHOLE[name]))


_WHOLE = {"floor": "down", "ceil": "up", "trunc": "towards_zero", "round": "half_towards_infinity"}
"""Functions to whole numbers, and how pyarrow calls what they do."""


def _round(arguments: Sequence[Argument]) -> Bound:
    number, *places = arguments
    if not places:
        return _to_whole("round", arguments)
    digits = places[0].value
    if not places[0].fixed or type(digits) is not int:
        raise TypeClashError("round takes a whole number of digits second, as in round(x, 2)")
    type_ = _number("round", number.type)
    if kind(type_) != "decimal":
        kernel = round_integers if kind(type_) == "integer" else round_floats
        return Bound((0,), (type_,), type_, partial(kernel, digits=digits))
    wanted = rounded_type(type_, digits)
    return Bound((0,), (type_,), wanted, partial(round_decimals, digits=digits, wanted=wanted))


def _sign(arguments: Sequence[Argument]) -> Bound:
    type_ = _number("sign", arguments[0].type)
    return Bound((0,), (type_,), pa.int64(), maths.sign)


def _div(arguments: Sequence[Argument]) -> Bound:
    """Truncated towards zero, as in SQL and Arrow."""
    types = [argument.type for argument in arguments]
    if any(kind(type_) != "integer" for type_ in types):
        raise TypeClashError(f"there is no div for types {' and '.join(str(plain_type(t)) for t in types)}")
    return Bound((0, 1), (pa.int64(), pa.int64()), pa.int64(), pc.divide_checked)


def _of_integers(name: str, arguments: Sequence[Argument]) -> Bound:
    if any(kind(argument.type) != "integer" for argument in arguments):
        shown = " and ".join(str(plain_type(argument.type)) for argument in arguments)
        raise TypeClashError(f"{name} takes whole numbers, not {shown}")
    places = tuple(range(len(arguments)))
    return Bound(places, (pa.int64(),) * len(places), pa.int64(), bits.KERNELS[name][1])


def _extreme(name: str, arguments: Sequence[Argument]) -> Bound:
    """The least or greatest of two of its arguments; NaN is greater than all numbers."""
    wanted = _branch_type(name, arguments)
    if wanted == pa.float64():
        pick: Kernel = partial(_extreme_float, np.fmin if name == "least" else np.maximum)
    else:
        pick = partial(_extreme_value, "<" if name == "least" else ">")
    return Bound(tuple(range(len(arguments))), (wanted,) * len(arguments), wanted, pick)


def _extreme_float(pick: Callable[..., np.ndarray], left: pa.Array, right: pa.Array) -> pa.Array:
    return pa.array(pick(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False)))


def _extreme_value(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.if_else(compare_arrays(operator, right, left), right, left)


def _meeting_type(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    plain = [plain_type(type_) for type_ in types]
    kinds = {kind(type_) for type_ in plain}
    if kinds <= set(NUMERIC):
        if "float" in kinds:
            return pa.float64()
        if "decimal" not in kinds:
            return pa.int64()
        parts = [digits_and_scale(type_) for type_ in plain]
        scale = max(scale for _, scale in parts)
        return decimal_type(max(digits - its for digits, its in parts) + scale, scale)
    zones = {type_.tz is None for type_ in plain if kind(type_) == "timestamp"}
    if len(kinds) > 1 or len(zones) > 1 or kinds <= {"other", "time"}:
        shown = " and ".join(dict.fromkeys(map(str, plain)))
        raise TypeClashError(f"there is no {name} for type{'s' if ' and ' in shown else ''} {shown}")
    if kinds == {"timestamp"}:
        return pa.timestamp(reduce(finer_unit, (type_.unit for type_ in plain)), plain[0].tz)
    if kinds == {"duration"}:
        return pa.duration(reduce(finer_unit, (type_.unit for type_ in plain)))
    if kinds == {"string"}:
        return reduce(common_type, map(string_type, plain))
    if kinds == {"binary"}:
        return pa.large_binary()
    return pa.date32() if kinds == {"date"} else plain[0]


def _of_floats(name: str, arguments: Sequence[Argument]) -> Bound:
    for argument in arguments:
        _number(name, argument.type)
    float64 = pa.float64()
    return Bound(tuple(range(len(arguments))), (float64,) * len(arguments), float64, maths.KERNELS[name])


# -- strings -----------------------------------------------------------------------------


def _strings(name: str, arguments: Sequence[Argument]) -> None:
    for argument in arguments:
        if kind(argument.type) != "string":
            raise TypeClashError(f"there is no {name} for type {plain_type(argument.type)}")


def _of_string(name: str, kernel: Kernel, result: pa.DataType | None, arguments: Sequence[Argument]) -> Bound:
    """``result`` None: a string."""
    _strings(name, arguments)
    type_ = string_type(arguments[0].type)
    return Bound((0,), (type_,), result or type_, kernel)


def _chr(arguments: Sequence[Argument]) -> Bound:
    if kind(arguments[0].type) != "integer":
        raise TypeClashError(f"chr takes a whole number, not type {plain_type(arguments[0].type)}")
    return Bound((0,), (pa.int64(),), pa.string(), text_shapes.characters)


def _substring(arguments: Sequence[Argument]) -> Bound:
    _strings("substring", arguments[:1])
    for argument in arguments[1:]:
        if kind(argument.type) != "integer":
            raise TypeClashError(
                f"a place of substring is an integer, not of type {plain_type(argument.type)}"
            )
    type_ = string_type(arguments[0].type)
    places = [argument.value for argument in arguments[1:]]
    start, wanted = [*places, None][:2]
    if (
        isinstance(start, int)
        and None not in places
        and (wanted is None or (isinstance(wanted, int) and wanted >= 0))
    ):
        return Bound((0,), (type_,), type_, texts.substring_kernel(start, wanted))
    numbers = (pa.int64(),) * len(places)
    return Bound(tuple(range(len(arguments))), (type_, *numbers), type_, texts.substrings)


def _text_test(name: str, arguments: Sequence[Argument]) -> Bound:
    if len(arguments) == 3:  # like with an escape
        return by_options(name, texts.like, "ss", pa.bool_(), arguments)
    _strings(name, arguments)
    types = tuple(string_type(argument.type) for argument in arguments)
    pattern = arguments[1].value
    if isinstance(pattern, str):
        return Bound((0,), types[:1], pa.bool_(), texts.text_test(name, pattern))
    return Bound((0, 1), types, pa.bool_(), texts.text_test(name, None))


def _joined(arguments: Sequence[Argument]) -> Bound:
    """``s || t``."""
    type_ = _text_type("||", arguments)
    kernel = lambda *sides: pc.binary_join_element_wise(*sides, pa.scalar("", type_))  # noqa: E731
    return Bound(tuple(range(len(arguments))), (type_,) * len(arguments), type_, kernel)


def _concat_ws(arguments: Sequence[Argument]) -> Bound:
    """``concat_ws(separator, s, t, ..)``: of those that are not NULL."""
    type_ = _text_type("concat_ws", arguments)
    return Bound(tuple(range(len(arguments))), (type_,) * len(arguments), type_, texts.joined_known)


def _text_type(name: str, arguments: Sequence[Argument]) -> pa.DataType:
    types = [argument.type for argument in arguments if argument.type != pa.null()]
    if not types or any(kind(type_) != "string" for type_ in types):
        shown = " and ".join(str(plain_type(argument.type)) for argument in arguments)
        way = 'cast(x, "string") makes a string of a value'
        raise TypeClashError(f"there is no {name} for types {shown}: {way}")
    return reduce(common_type, map(string_type, types))


# -- lists -------------------------------------------------------------------------------


def _element_type(name: str, type_: pa.DataType) -> pa.DataType:
    """Of the lists that a function takes first."""
    if kind(type_) != "list":
        raise TypeClashError(f"{name} takes a list first, not a value of type {plain_type(type_)}")
    return plain_type(plain_type(type_).value_type)


def _len(arguments: Sequence[Argument]) -> Bound:
    _element_type("len", arguments[0].type)
    return Bound((0,), (plain_type(arguments[0].type),), pa.int64(), list_functions.length)


def _list_extract(arguments: Sequence[Argument]) -> Bound:
    lists, place = arguments
    element = _element_type("list_extract", lists.type)
    if kind(place.type) != "integer":
        raise TypeClashError(f"a place of list_extract is an integer, not of type {plain_type(place.type)}")
    result = string_type(element) if kind(element) == "string" else element
    types = (plain_type(lists.type), pa.int64())
    return Bound((0, 1), types, result, lambda *sides: list_functions.extract(*sides).cast(result))


def _list_contains(arguments: Sequence[Argument]) -> Bound:
    lists, value = arguments
    types = (plain_type(lists.type), plain_type(value.type))
    element = _element_type("list_contains", lists.type)
    if not comparable(element, types[1]):
        raise TypeClashError(
            f"list_contains compares elements of type {element}, and {types[1]} can't be compared with them"
        )
    return Bound((0, 1), types, pa.bool_(), list_functions.contains)


PARTIAL = ("list_extract", "try_cast")
"""Functions that are NULL where they have no value, and read no NULL."""

# -- the table ---------------------------------------------------------------------------

FUNCTIONS: dict[str, Function] = {
    "if": Function(2, 3, _if),
    "coalesce": Function(2, MANY, _coalesce),
    "nullif": Function(2, 2, _nullif),
    "error": Function(1, 1, _error),
    "abs": Function(1, 1, partial(_of_number, "abs", pc.abs_checked)),
    **{name: Function(1, 1, partial(_to_whole, name)) for name in _WHOLE},
    "round": Function(1, 2, _round),
    "sign": Function(1, 1, _sign),
    "div": Function(2, 2, _div),
    **{name: Function(2, MANY, partial(_extreme, name)) for name in ("least", "greatest")},
    "lower": Function(1, 1, partial(_of_string, "lower", pc.utf8_lower, None)),
    "upper": Function(1, 1, partial(_of_string, "upper", pc.utf8_upper, None)),
    "length": Function(1, 1, partial(_of_string, "length", texts.length, pa.int64())),
    "substring": Function(2, 3, _substring),
    **{name: Function(n, n, partial(_of_floats, name)) for name, n in maths.ARITIES.items()},
    **{name: Function(n, n, partial(_of_integers, name)) for name, (n, _) in bits.KERNELS.items()},
    "chr": Function(1, 1, _chr),
    "||": Function(2, 2, _joined),
    "concat_ws": Function(2, MANY, _concat_ws),
    **{
        name: Function(1, 2, partial(by_options, name, partial(texts.trimming, name), "s", None))
        for name in texts.TRIMS
    },
    "position": Function(2, 2, partial(by_options, "position", texts.position, "s", pa.int64())),
    "replace": Function(3, 3, partial(by_options, "replace", texts.replacing, "ss", None)),
    "split_part": Function(3, 3, partial(by_options, "split_part", texts.part_between, "si", None)),
    "regexp_replace": Function(3, 4, partial(by_options, "regexp_replace", regular.replacing, "sss", None)),
    "regexp_extract": Function(2, 3, partial(by_options, "regexp_extract", regular.extracting, "si", None)),
    "regexp_matches": Function(
        2, 2, partial(by_options, "regexp_matches", regular.matching, "s", pa.bool_()), is_test=True
    ),
    **{
        name: Function(2, 3 if name == "like" else 2, partial(_text_test, name), is_test=True)
        for name in texts.TESTS
    },
    **{
        name: Function(
            1 + len(kinds), 1 + len(kinds), partial(by_options, name, make, kinds, its), its == pa.bool_()
        )
        for name, (make, kinds, its) in text_shapes.TABLE.items()
    },
    "len": Function(1, 1, _len),
    "range": Function(1, 3, series.bind_range),
    "list_extract": Function(2, 2, _list_extract),
    "list_contains": Function(2, 2, _list_contains, is_test=True),
    **moment_functions.TABLE,
}
"""The functions of the language, and behind them those that a user registered
(:mod:`lftj.values.own_functions`); a test may stand in a body by itself."""


def bind(name: str, arguments: Sequence[Argument]) -> Bound:
    """A function of arguments of these types.

    Raises :class:`~lftj.errors.TypeClashError`, and :class:`~lftj.errors.FunctionError` where a user's
    function is not registered in this process.

    >>> bound = bind("substring", [Argument(pa.string()), Argument(pa.int64(), 2)])
    >>> bound.places, bound.kernel(pa.array(["tea"])).to_pylist()
    ((0,), ['ea'])
    """
    if name not in FUNCTIONS:
        raise FunctionError(missing(name))
    return FUNCTIONS[name].bind(arguments)


def missing(name: str) -> str:
    """That rules made elsewhere call a function that is not registered here."""
    call = f"lftj.function({name!r}, ...) or lftj.generator"
    return f"the function '{name}' is not registered here: call {call} first"
