"""Parameters: ``$day`` in a rule's body stands where a literal does; a call says what it is.

A parameter is a constant that has a name.  :func:`parameters_of` finds those of a
program, :func:`with_values` puts values in, into the tree that the parser made or into a
body that the checker made of it.  Types follow from values, so a checked program holds for
all values of the same types (:func:`types_of`).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lftj.errors import ParameterError
from lftj.language.body import Assignment, Body
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Disjunction,
    Negative,
    Program,
    Rule,
)
from lftj.values.kinds import literal_type
from lftj.values.literals import Value


def parameters_of(program: Program) -> tuple[str, ...]:
    """The names of a program's parameters, in the order of writing.

    >>> from lftj.language.parser import parse
    >>> parameters_of(parse("late(o) <- orders(o, d), d < $day, d >= $since, o != $day."))
    ('day', 'since')
    """
    names = (constant.parameter for constant in constants_of(program))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def plain_values(names: tuple[str, ...], given: Any) -> dict[str, Value]:
    """The values of a program's parameters, as literals would have them.

    Raises ParameterError: one is missing, or is none of the program's, or is no value that a rule can write,
    or what is given is no mapping.

    >>> import numpy as np
    >>> plain_values(("day", "k"), {"day": datetime.date(2026, 1, 31), "k": np.int32(5)})
    {'day': datetime.date(2026, 1, 31), 'k': 5}
    """
    given = {} if given is None else given
    known = ", ".join(f"${name}" for name in names)
    if not isinstance(given, Mapping):
        example = names[0] if names else "name"
        raise ParameterError(
            f"params= takes a mapping such as {{{example!r}: ...}}, not a {type(given).__name__}: the rule"
            f" has {known or 'no parameter; one is written $name'}"
        )
    for name in given:
        if name not in names:
            raise ParameterError(
                f"params= names {name!r}, which is no parameter of the rule"
                f"{f'; it has {known}' if names else ': it has none; one is written $name'}"
            )
    for name in names:
        if name not in given:
            raise ParameterError(
                f"parameter ${name} has no value: give it as params={{{name!r}: ...}}; the rule has {known}"
            )
    return {name: _plain(name, given[name]) for name in names}


def _plain(name: str, value: Any) -> Value:
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    elif hasattr(value, "item") and not isinstance(value, str | bytes):  # a scalar of numpy's
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        raise ParameterError(f"parameter ${name} is NaN, which equals nothing and is less than nothing")
    if value is None:
        raise ParameterError(f"parameter ${name} is None: nothing compares to NULL, a rule asks 'x is null'")
    if not isinstance(value, bool | int | float | Decimal | str | bytes | datetime.date | datetime.timedelta):
        raise ParameterError(
            f"parameter ${name} is a {type(value).__name__}; there are numbers, text, bytes, booleans, dates,"
            " timestamps and durations"
        )
    if isinstance(value, Decimal) and not value.is_finite():
        raise ParameterError(f"parameter ${name} is {value}, which no column of decimals can hold")
    return value


def types_of(values: Mapping[str, Value]) -> tuple[tuple[str, object], ...]:
    """What a checked program depends on: the types of the values."""
    return tuple((name, (type(value), literal_type(value))) for name, value in values.items())


def with_values(node: Any, values: Mapping[str, Value]) -> Any:
    """A program, a body or a part of one with values for its parameters; itself where it has none.

    >>> from lftj.language.parser import parse
    >>> with_values(parse("out(b) <- edge($k, b)."), {"k": 5}).rules[0].body[0].terms[0].value
    5
    """
    if isinstance(node, Constant):
        return node if node.parameter is None else replace(node, value=values[node.parameter])
    if isinstance(node, tuple):
        items = tuple(with_values(item, values) for item in node)
        return node if all(made is item for made, item in zip(items, node, strict=True)) else items
    parts = {name: getattr(node, name) for name in _PARTS.get(type(node), ())}
    made = {name: with_values(part, values) for name, part in parts.items()}
    return node if all(made[name] is part for name, part in parts.items()) else replace(node, **made)


def constants_of(node: Any) -> Iterator[Constant]:
    """All constants of a program or a part of one, in the order of writing."""
    if isinstance(node, tuple):
        for item in node:
            yield from constants_of(item)
    elif isinstance(node, Constant):
        yield node
    else:
        for name in _PARTS.get(type(node), ()):
            yield from constants_of(getattr(node, name))


_PARTS: dict[type, tuple[str, ...]] = {
    Program: ("rules",),
    Rule: ("heads", "body"),
    Body: ("atoms", "negations", "comparisons", "assignments"),
    Atom: ("terms",),
    Aggregate: ("arguments",),
    Comparison: ("left", "right"),
    Assignment: ("expression",),
    BinaryOperation: ("left", "right"),
    Negative: ("operand",),
    Call: ("arguments",),
    Disjunction: ("alternatives",),
}
"""Where constants stand.  A head's own constants (the separator of ``concat``) are no parameters."""
