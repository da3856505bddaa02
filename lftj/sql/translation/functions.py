"""DuckDB's functions as rules have them: templates over the arguments, by DuckDB's name.

``{0}`` is the first argument, ``{*}`` all of them.  What is no template takes the call itself.
"""

from __future__ import annotations

import datetime

from lftj.sql.nodes import SERIES, Call, Cast, Constant, Expression
from lftj.sql.types import kind

_SAME = (
    *("abs", "floor", "ceil", "least", "greatest", "lower", "upper", "trim", "ltrim", "rtrim", "replace"),
    *("split_part", "regexp_replace", "exp", "atan", "atan2", "cbrt", "degrees", "radians", "trunc", "sign"),
    *("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "hour", "minute", "second"),
    *("strftime", "list_extract", "make_date", "last_day", "epoch", "isodow", "isoyear", "date_diff"),
    *("decade", "century", "lpad", "rpad", "left", "right", "repeat", "translate", "ascii", "error"),
    *("millisecond", "microsecond", "epoch_ms", "epoch_us", "epoch_ns", "coalesce"),
    *("chr", "reverse", "string_split", "substring", "position", "regexp_extract", "length", "len", "round"),
)
_OTHER = {
    **dict.fromkeys(("strpos", "instr"), "position"),
    **dict.fromkeys(("pow", "**", "^"), "ieee_power"),
    **dict.fromkeys(("//", "divide"), "div"),
    **dict.fromkeys(("char_length", "character_length"), "length"),
    **dict.fromkeys(("str_split", "string_to_array", "split"), "string_split"),
    **dict.fromkeys(("array_extract", "list_element"), "list_extract"),
    "weekofyear": "week",
    "ceiling": "ceil",
    "dayofmonth": "day",
    "weekday": "dayofweek",
    "datediff": "date_diff",
    "array_length": "len",
    "substr": "substring",
}
"""Functions that rules call by another name."""

_IEEE = ("sqrt", "ln", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "power")
"""Functions that have no value for some numbers, where DuckDB's have infinity or NaN."""

_BITS = {"&": "and", "|": "or", "xor": "xor", "~": "not"}
_WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32}

TEMPLATES = {
    **{name: f"{name}({{*}})" for name in _SAME},
    **{name: f"{ours}({{*}})" for name, ours in _OTHER.items()},
    **{name: f"ieee_{name}({{*}})" for name in _IEEE},
    "concat": 'concat_ws("", {*})',
    "concat_ws": "concat_ws({*})",
    "dayname": 'strftime({0}, "%A")',
    "monthname": 'strftime({0}, "%B")',
    **dict.fromkeys(("ord", "unicode"), 'if({0} = "", -1, ascii({0}))'),
    **{name: f"{{0}} {sign} {{1}}" for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))},
    **{name: f"{{0}} {sign} {{1}}" for name, sign in (("*", "*"), ("%", "%"), ("mod", "%"), ("||", "||"))},
}

_TESTS = {
    "~~*": "ilike({*})",
    **{name: f"{name}({{*}})" for name in ("regexp_full_match", "contains", "regexp_matches")},
    **dict.fromkeys(("prefix", "starts_with", "^@"), "starts_with({*})"),
    **dict.fromkeys(("suffix", "ends_with"), "ends_with({*})"),
    **dict.fromkeys(("list_contains", "array_contains", "list_has"), "list_contains({*})"),
}
_LIKE, _UNLIKE = "{0} like {1}", "{0} not like {1}"
TESTS = {
    **{name: (test, f"!{test}") for name, test in _TESTS.items()},
    "!~~*": ("!ilike({*})", "ilike({*})"),
    "~~": (_LIKE, _UNLIKE),
    "!~~": (_UNLIKE, _LIKE),
    "like_escape": (f"{_LIKE} escape {{2}}", f"{_UNLIKE} escape {{2}}"),
    "not_like_escape": (f"{_UNLIKE} escape {{2}}", f"{_LIKE} escape {{2}}"),
}
"""Functions that give booleans: how they are written as a test, and as its negation."""

INSTEAD = {
    "-": "date_diff() counts what lies between two of them",
    "time_bucket": "lengths are constant, and without months: date_trunc() begins these",
    "list_value": "list() makes lists of rows",
    **dict.fromkeys(SERIES, "steps are integers, or constant lengths without months"),
    "array_slice": "substring() of a text, list_extract() of a list",
    "list_aggr": "unnest() the list and aggregate its rows",
}
"""What to write instead of functions that no rule says."""


def is_known(call: Call) -> bool:
    """Whether rules say it, as a value or a test."""
    return call.function in TESTS or template(call) is not None


def template(call: Call) -> tuple[str, tuple[Expression, ...]] | None:
    """How a call is written, and the arguments that this names; None: no rule says it."""
    moved = _moved(call)
    if moved is not None:
        return "add_interval({*})", moved
    later = _instant(call)
    if later is not None:
        return later
    if call.function == "time_bucket":
        window = _window(call)
        return None if window is None else (window, call.arguments[1:2])
    shape = _series(call) if call.function in SERIES else _shape(call)
    return None if shape is None else (shape, call.arguments)


def _shape(call: Call) -> str | None:
    name, arguments = call.function, call.arguments
    kinds = [kind(one.type) for one in arguments]
    if name in ("-", "+"):
        if len(arguments) == 1:
            return "-{0}" if name == "-" else "{0}"
        known = "interval" not in kinds and kinds != ["timestamp", "timestamp"]
        return f"{{0}} {name} {{1}}" if known else None
    if name == "/":
        divisor = arguments[1]
        certain = isinstance(divisor, Constant) and divisor.value
        return "{0} / {1}" if certain else "ieee_div({*})"
    if name in ("//", "divide") and kinds[0] == "float":
        return "{0} / {1}"  # not whole, and of 0 an error
    if name in _BITS or name in ("<<", ">>"):
        return _of_bits(call) if set(kinds) == {"integer"} else None
    if name in ("len", "length") and kinds[0] in ("list", "text"):
        return "len({0})" if kinds[0] == "list" else "length({0})"
    if name == "log" and len(arguments) == 2:
        return "ieee_div(ieee_log({1}), ieee_log({0}))"
    if name == "make_date" and len(arguments) != 3:
        return None
    if name == "round" and not all(isinstance(one, Constant) for one in arguments[1:]):
        return None
    if name in ("hour", "minute", "second", "millisecond", "microsecond") and kinds == ["date"]:
        return f'{name}(cast({{0}}, "timestamp"))'
    if name in ("date_trunc", "datetrunc"):
        if not isinstance(arguments[0], Constant) or arguments[0].value not in _TRUNCATED:
            return None
        to_timestamp = kinds[1] == "date" and kind(call.type) == "timestamp"
        return 'date_trunc({0}, cast({1}, "timestamp"))' if to_timestamp else "date_trunc({*})"
    if name in ("%", "mod") and kinds[0] == "float":
        return "ieee_mod({*})"
    if name == "array_extract" and kinds[0] == "text":
        return "substring({*}, 1)"
    if name in ("concat", "concat_ws"):
        return TEMPLATES[name] if {*kinds} <= {"text", "null"} else None
    return TEMPLATES.get(name) if "interval" not in kinds else None


def _of_bits(call: Call) -> str | None:
    name, width = call.function, _WIDTHS.get(call.type)
    if name == "<<":
        return "shift_left({*})"
    if name == ">>":  # by all bits or more it is 0
        return (
            "shift_right({*})" if width is None else f"shift_right({{0}}, {{1}} + 64 * div({{1}}, {width}))"
        )
    return None if name == "~" and call.type.startswith("U") else f"bitwise_{_BITS[name]}({{*}})"


# -- dates and intervals ---------------------------------------------------------------------

_HOUR = 3600 * 10**6
_ORIGIN = datetime.datetime(2000, 1, 3)
"""At which a window begins, of DuckDB's and of :mod:`lftj.values.time_windows`."""
_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_UNITS = {
    "to_years": (12, 0, 0),
    "to_months": (1, 0, 0),
    "to_weeks": (0, 7, 0),
    "to_days": (0, 1, 0),
    "to_hours": (0, 0, _HOUR),
    "to_minutes": (0, 0, _HOUR // 60),
    "to_microseconds": (0, 0, 1),
}
"""Functions that make intervals of whole numbers: of 1 the months, days and microseconds."""


def _moved(call: Call) -> tuple[Expression, ...] | None:
    """The arguments of ``add_interval``: of a date or timestamp, moved by an interval."""
    kinds = [kind(one.type) for one in call.arguments]
    if call.function not in ("+", "-") or kinds.count("interval") != 1 or len(kinds) != 2:
        return None
    at = kinds.index("interval")
    moment = call.arguments[1 - at]
    parts = _interval(call.arguments[at], -1 if call.function == "-" else 1)
    if parts is None or kinds[1 - at] not in ("date", "timestamp"):
        return None
    return (moment if kinds[1 - at] == "timestamp" else Cast(moment, "TIMESTAMP"), *parts)


def _instant(call: Call) -> tuple[str, tuple[Expression, ...]] | None:
    """A moment with a zone, later by what is as long in every zone."""
    parts = sorted(call.arguments, key=lambda one: kind(one.type) == "interval")
    if call.function not in ("+", "-") or [kind(one.type) for one in parts] != ["zoned", "interval"]:
        return None
    length = _length(parts[1], days=False)
    return None if length is None else (f"{{0}} {call.function} {length}us", (parts[0],))


def _window(call: Call) -> str | None:
    """The beginning of a window of a length that is always the same, of a date of whole days."""
    length, moment, *origin = call.arguments
    of = kind(moment.type)
    if of not in ("date", "timestamp", "zoned"):
        return None
    spans = [_length(length), *map(_from_origin, origin)]
    if any(span is None or (of == "date" and span % (24 * _HOUR)) for span in spans):
        return None
    return f"tumble({{0}}, {', '.join(f'{span}us' for span in spans)})"


def _from_origin(of: Expression) -> int | None:
    """The microseconds by which a window begins behind the origin of all, if that is always so many."""
    if not isinstance(of, Constant) or not isinstance(of.value, datetime.date):
        return _length(of)
    value = of.value
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value - _ORIGIN) // datetime.timedelta(microseconds=1)


def _length(of: Expression, *, days: bool = True) -> int | None:
    """The microseconds of an interval that is always as long; ``days``: one of days is."""
    if not isinstance(of, Constant) or kind(of.type) != "interval" or of.value is None or of.value[0]:
        return None
    if of.value[1] and not days:
        return None
    return 24 * _HOUR * of.value[1] + int(of.value[2])


def _series(call: Call) -> str | None:
    kinds, ends = [kind(one.type) for one in call.arguments], call.function == "generate_series"
    if kinds in (["timestamp", "timestamp", "interval"], ["zoned", "zoned", "interval"]):
        length = _length(call.arguments[2], days=kinds[0] == "timestamp")
        last = f" {'+' if length and length > 0 else '-'} 1us" if ends else ""
        return f"range({{0}}, {{1}}{last}, {length}us)" if length else None
    if set(kinds) != {"integer"}:
        return None
    return _TO_THE_END[len(kinds)] if ends else "range({*})"


_TO_THE_END = ("", "range({0} + 1)", "range({0}, {1} + 1)", "range({0}, {1} + sign({2}), {2})")
"""A series with its end, of so many arguments."""


def _interval(of: Expression, sign: int) -> tuple[Expression, ...] | None:
    """Months, days and microseconds."""
    if isinstance(of, Constant) and of.value is not None:
        return tuple(Constant(sign * part, "BIGINT") for part in of.value)
    if not isinstance(of, Call):
        return None
    number, unit = of.arguments[0], _UNITS.get(of.function)
    if of.function == "*":
        number, interval = sorted(of.arguments, key=lambda one: kind(one.type) == "interval")
        unit = interval.value if isinstance(interval, Constant) else None
    if unit is None or kind(number.type) != "integer":
        return None
    return tuple(_times(number, sign * part) for part in unit)


def _times(number: Expression, factor: int) -> Expression:
    by = Constant(factor, "BIGINT")
    return by if factor == 0 else Call("*", (number, by), "BIGINT") if factor != 1 else number
