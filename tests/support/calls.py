"""Hypothesis strategies: calls of functions over variables of a kind, none failing on the kind's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from support.kinds import BOOLEAN, DATE, DECIMAL, EXTREME, FLOAT, INTEGER, MOMENT, SIGNED, STRING, TIME, Kind
from support.rules import Arithmetic, Call, Comparison, Constant, Expression, Variable

NUMBERS = (INTEGER, SIGNED, FLOAT, DECIMAL)
PATTERNS = ("", "a", "%a%", "_", "%", "a_", "%\\n%", "_%", "\\%")
ESCAPED = ("!%", "a!_%", "%!!%", "!a%")
"""With the escape ``!``."""
REGULAR = ("a", "^a", "[^a]+", "a|b", "(a)(.)?", "", "a*", "A|a$")
"""Regular expressions that mean the same to RE2 and to Python."""


def text_calls(x: Expression, y: Expression, choose: Callable[[Sequence[Any]], Any]) -> list[Call]:
    """Functions of strings that give strings, and one of each for which ``choose`` picks the options."""
    pattern, other = (Constant(choose(REGULAR)) for _ in range(2))
    which = [] if choose((True, False)) else [Constant("g")]
    return [
        Call("||", (x, choose((y, Constant("!"), Call("lower", (y,)))))),
        Call(choose(("trim", "ltrim", "rtrim")), (x, *choose(((), (Constant("ab "),), (y,))))),
        Call("replace", (x, Constant(choose(("a", "", "b"))), choose((y, Constant("aa"))))),
        Call("split_part", (x, choose((Constant("a"), Constant(""), y)), Constant(choose((1, 2, -1, 9))))),
        Call("regexp_extract", (x, choose((pattern, other)))),
        Call("regexp_extract", (x, Constant("(a)(.)?"), Constant(choose((0, 1, 2))))),
        Call("regexp_replace", (x, pattern, Constant(choose(("", "<\\0>", "b"))), *which)),
    ]


DAY_PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear")
CLOCK = ("hour", "minute", "second")
CALLED = (*NUMBERS, STRING, DATE, MOMENT, TIME, BOOLEAN)
"""Kinds that :func:`draw_call` knows."""


def conditional(x: Expression, y: Expression, choose: Callable[[Sequence[Any]], Any], last: Any) -> Call:
    """``if`` or ``coalesce`` over values of one kind, of which ``last`` is a literal or None.

    A condition is one comparison, a test of NULL, or two of them.
    """
    tests = [
        Call(choose(("<", "<=", "=", "!=", "<=>", "<!=>")), (x, y)),
        Call("is null", (choose((x, y)),)),
        Call("not", (Call("is null", (choose((x, y)),)),)),
    ]
    condition = choose(
        (*tests, Call("and", (choose(tests), tests[0])), Call("or", (choose(tests), tests[1])))
    )
    known = () if last is None else (Constant(last),)
    branches = choose(((x,), (x, y), (y, x), *(((x, *known), (*known, x)) if known else ())))
    return choose(
        (Call("if", (condition, *branches)), Call("coalesce", (x, y, *known)), Call("nullif", (x, y)))
    )


def own_literals(kind: Kind) -> list[Any]:
    """Literals that are of a kind, not only compared with it: beside them its values keep their type."""
    if kind in (DECIMAL, EXTREME):
        return []
    return [one for one in kind.literals if kind not in (INTEGER, SIGNED) or type(one) is int]


def draw_call(draw: DrawFn, kind: Kind, names: list[str]) -> tuple[Expression, Kind]:
    """A call over variables of a kind, and the kind of its values."""
    x, y = (Variable(draw(st.sampled_from(names))) for _ in range(2))
    if kind is not TIME and draw(st.integers(0, 3)) == 0:  # whose types may be of two units
        last = draw(st.sampled_from((None, *own_literals(kind))))
        return conditional(x, y, lambda some: draw(st.sampled_from(some)), last), kind
    if kind in NUMBERS:
        return _of_number(draw, kind, x, y)
    if kind is STRING:
        place, length = (Constant(draw(st.integers(-3, 3))) for _ in range(2))
        return draw(
            st.sampled_from(
                (
                    (Call("lower", (x,)), STRING),
                    (Call("length", (x,)), INTEGER),
                    (Call("upper", (Call("lower", (x,)),)), STRING),
                    (Call("substring", (x, place)), STRING),
                    (Call("substring", (x, place, Constant(abs(length.value)))), STRING),
                    (Call("substring", (x, Call("length", (y,)), Constant(1))), STRING),
                    (Call("greatest", (x, y, Constant("aa"))), STRING),
                    (Call("position", (x, draw(st.sampled_from((y, Constant("a")))))), INTEGER),
                    *((call, STRING) for call in text_calls(x, y, lambda some: draw(st.sampled_from(some)))),
                )
            )
        )
    if kind is BOOLEAN:
        return Call("cast", (x, Constant("string"))), STRING
    if kind is TIME:
        return Call(draw(st.sampled_from(CLOCK)), (x,)), INTEGER
    parts = DAY_PARTS if kind is DATE else (*DAY_PARTS, *CLOCK)
    units = ("year", "quarter", "month", "week", "day", *(() if kind is DATE else CLOCK))
    as_other = (
        (Call("cast", (x, Constant("string"))), STRING)
        if kind is DATE
        else (Call("cast", (x, Constant("date"))), DATE)
    )
    return draw(
        st.sampled_from(
            (
                (Call(draw(st.sampled_from(parts)), (x,)), INTEGER),
                (Call("date_trunc", (Constant(draw(st.sampled_from(units))), x)), kind),
                (Call("least", (x, y)), kind),
                as_other,
            )
        )
    )


def _of_number(draw: DrawFn, kind: Kind, x: Variable, y: Variable) -> tuple[Expression, Kind]:
    number = Constant(draw(st.sampled_from((1, 2, -2, 3))))
    forms: list[tuple[Expression, Kind]] = [
        (Call("abs", (x,)), kind),
        (Call("least", (x, y)), kind),
        (Arithmetic("%", x, number), kind),
        (Call("greatest", (x, Call("abs", (y,)), number)), kind),
        (Call(draw(st.sampled_from(("floor", "ceil", "round", "trunc"))), (x,)), kind),
        (Call("cast", (x, Constant("float64"))), FLOAT),
    ]
    if kind in (INTEGER, SIGNED):
        forms += [
            (Call("div", (x, number)), kind),
            (Call("cast", (x, Constant("string"))), STRING),
            (Arithmetic("%", x, Constant(Decimal("1.5"))), FLOAT),
        ]
    return draw(st.sampled_from(forms))


def draw_test(draw: DrawFn, kind: Kind, names: list[str]) -> Comparison:
    """What stands in a body by itself, over variables of a kind that has literals."""
    x, y = (Variable(draw(st.sampled_from(names))) for _ in range(2))
    if kind is STRING and draw(st.booleans()):
        pattern = Constant(draw(st.sampled_from(PATTERNS)))
        name = draw(st.sampled_from(("like", "starts_with", "ends_with", "contains")))
        call = Call(name, (x, draw(st.sampled_from((pattern, pattern, y)))))
        escaped = Call("like", (x, Constant(draw(st.sampled_from(ESCAPED))), Constant("!")))
        regular = Call("regexp_matches", (x, Constant(draw(st.sampled_from(REGULAR)))))
        call = draw(st.sampled_from((call, call, escaped, regular)))
    else:
        literals = st.sampled_from(kind.literals).map(Constant)
        items = draw(st.lists(st.one_of(literals, literals, st.just(y)), min_size=1, max_size=4))
        call = Call("in", (x, *items))
    return Comparison("=", call, Constant(draw(st.booleans())))


def has_test(kind: Kind) -> bool:
    """Whether :func:`draw_test` knows it; the literals of extreme floats are rounded in other ways."""
    return bool(kind.literals) and kind is not EXTREME
