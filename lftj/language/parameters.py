"""Parameters: ``$day`` in a rule's body stands where a literal does; a call says what it is.

A parameter is a constant that has a name.  :func:`parameters_of` finds those of a
program, :class:`Substitution` puts values in, into the tree that the parser made or into
what the checker made of it.  Types follow from values, so a checked program holds for
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
from lftj.language.body import Assignment, Body, CheckedProgram, CheckedRule
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
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


def plain_values(names: tuple[str, ...], given: Mapping[str, Any] | None) -> dict[str, Value]:
    """The values of a program's parameters, as literals would have them.

    Raises ParameterError: one is missing, or is none of the program's, or is no value that a rule can write.

    >>> import numpy as np
    >>> plain_values(("day", "k"), {"day": datetime.date(2026, 1, 31), "k": np.int32(5)})
    {'day': datetime.date(2026, 1, 31), 'k': 5}
    """
    given = given or {}
    for name in given:
        if name not in names:
            known = ", ".join(f"${known}" for known in names)
            raise ParameterError(
                f"params= names {name!r}, which is no parameter of the rule"
                f"{f'; it has {known}' if names else ': it has none; one is written $name'}"
            )
    for name in names:
        if name not in given:
            raise ParameterError(f"parameter ${name} has no value: give it as params={{{name!r}: ...}}")
    return {name: _plain(name, given[name]) for name in names}


def _plain(name: str, value: Any) -> Value:
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    elif hasattr(value, "item") and not isinstance(value, str | bytes):  # a scalar of numpy's
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        raise ParameterError(f"parameter ${name} is NaN, which equals nothing and is less than nothing")
    if value is None:
        raise ParameterError(f"parameter ${name} is None: relations hold no NULL to compare with")
    if not isinstance(value, bool | int | float | Decimal | str | bytes | datetime.date):
        raise ParameterError(
            f"parameter ${name} is a {type(value).__name__}; there are numbers, text, bytes, booleans, dates"
            " and timestamps"
        )
    if isinstance(value, Decimal) and not value.is_finite():
        raise ParameterError(f"parameter ${name} is {value}, which no column of decimals can hold")
    return value


def types_of(values: Mapping[str, Value]) -> tuple[tuple[str, object], ...]:
    """What a checked program depends on: the types of the values."""
    return tuple((name, (type(value), literal_type(value))) for name, value in values.items())


class Substitution:
    """Puts values into a program, a checked one, or a part of one; found once where they belong.

    >>> from lftj.language.parser import parse
    >>> Substitution(parse("out(b) <- edge($k, b).")).of({"k": 5}).rules[0].body[0].terms[0].value
    5
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._holders: set[int] = set()  # identities of all parts that hold parameters
        self._find(node)

    def of(self, values: Mapping[str, Value]) -> Any:
        """The node with the values; itself where it has no parameters."""
        return self._with(self._node, values) if self._holders else self._node

    def _find(self, node: Any) -> bool:
        if isinstance(node, Constant):
            held = node.parameter is not None
        else:
            parts = (
                node if isinstance(node, tuple) else [getattr(node, n) for n in _PARTS.get(type(node), ())]
            )
            held = sum(self._find(part) for part in parts) > 0  # all of them are looked at
        if held:
            self._holders.add(id(node))
        return held

    def _with(self, node: Any, values: Mapping[str, Value]) -> Any:
        if id(node) not in self._holders:
            return node
        if isinstance(node, tuple):
            return tuple([self._with(item, values) for item in node])
        if isinstance(node, Constant):
            assert node.parameter is not None
            return Constant(values[node.parameter], node.span, node.parameter)
        changed = {name: self._with(getattr(node, name), values) for name in _PARTS[type(node)]}
        return replace(node, **changed)


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
    CheckedProgram: ("strata",),
    CheckedRule: ("bodies",),
    Body: ("atoms", "negations", "comparisons", "assignments"),
    Atom: ("terms",),
    Aggregate: ("arguments",),
    Comparison: ("left", "right"),
    Assignment: ("expression",),
    BinaryOperation: ("left", "right"),
    Negative: ("operand",),
    Disjunction: ("alternatives",),
}
"""Where constants stand.  A head's own constants (the separator of ``concat``) are no parameters."""
