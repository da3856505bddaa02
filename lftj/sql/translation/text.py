"""`Writer`: expressions as the text of a rule.

A condition is written in one of two ways.  As a *literal* of a body it holds or not, and what it reads is
known where it holds; there the search can use it.  Within an expression it is true, false or NULL.

Invariants

1. Where an expression may be NULL and is set to a variable, it is wrapped in ``coalesce(..., null)``, which
   reads nothing strictly: no row is lost.
2. Negation is pushed to the leaves: rules have none of conditions.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from lftj.sql.nodes import (
    Call,
    Case,
    Cast,
    Compare,
    Constant,
    Exists,
    Expression,
    In,
    IsNull,
    Logic,
    Not,
    Place,
    Variable,
)
from lftj.sql.translation.expressions import FALSE, NEGATED, exists_in, nullable, walked
from lftj.sql.translation.functions import INSTEAD, TESTS, template
from lftj.sql.types import holds, kind, written

MOST_ALTERNATIVES = 8
"""Of a body by its disjunctions together; more conditions are tested on the rows."""

EXACT_DIGITS = 15
"""Of a decimal literal that is a float on its way to the type of a cast."""

CONDITIONS = (Compare, Logic, Not, IsNull, In)

_EXACT = (("integer", "decimal"), ("integer", "float"), ("decimal", "float"), ("date", "timestamp"))
"""Casts that round nothing."""

Refuse = Callable[..., Exception]


class Writer:
    """Texts of one rule.

    ``name`` gives a variable's text, ``computed`` that of one set to an expression, ``known`` the constant
    that a variable is, ``free`` a name that no other has.
    """

    def __init__(
        self,
        name: Callable[[Variable], str],
        computed: Callable[[Expression], str],
        known: Callable[[Variable], Constant | None],
        free: Callable[[str], str],
        refuse: Refuse,
    ) -> None:
        self._name, self._computed, self._known, self._free = name, computed, known, free
        self._refuse = refuse
        self._alternatives = 1
        self.reads: list[str] = []

    # -- values ----------------------------------------------------------------------

    def value(self, of: Expression) -> str:
        """An expression as one operand: in parentheses where it is an operation."""
        if isinstance(of, Variable):
            return self._name(of)
        if isinstance(of, Constant):
            return self.constant(of)
        if isinstance(of, Call):
            return self._call(of)
        if isinstance(of, Cast):
            return self._cast(of)
        if isinstance(of, Case):
            return self._case(of)
        return f"coalesce({self.condition(of)}, null)"

    def assigned(self, of: Expression) -> str:
        """An expression as what a variable is set to: NULL where it is NULL."""
        if _is_untyped(of) or (isinstance(of, Constant) and kind(of.type) in ("decimal", "float")):
            text = self.value(of)
            if isinstance(of, Constant) and isinstance(of.value, Decimal) and len(text) > EXACT_DIGITS:
                text = f'"{text}"'
            return f'cast({text}, "{self._type(of.type, of.place)}")'
        text = self.value(of)
        wrapped = not nullable(of) or isinstance(of, (Variable, *CONDITIONS))
        return text if wrapped else f"coalesce({text}, null)"

    def constant(self, of: Constant) -> str:
        if of.value is None:
            return "null"
        text = literal(of.value, of.type)
        if text is None:
            raise self._refuse(of.place, f"a constant of type {of.type}")
        return text

    def _call(self, of: Call) -> str:
        if of.function in TESTS:
            return f"coalesce({self.condition(of)}, null)"
        found = template(of)
        if found is None:
            types = ", ".join(one.type for one in of.arguments) or "nothing"
            what = f"the function {of.function}() of {types}"
            raise self._refuse(of.place, what, INSTEAD.get(of.function, ""))
        shape, arguments = found
        text = self._filled(shape, arguments)
        return text if shape[0] not in "{-" or shape == "{0}" else f"({text})"

    def _filled(self, shape: str, arguments: Sequence[Expression]) -> str:
        """A template with the arguments that it names."""
        shape = shape.replace("{*}", ", ".join(f"{{{number}}}" for number in range(len(arguments))))
        met = any(kind(one.type) == "decimal" and not isinstance(one, Constant) for one in arguments)
        value = self.value if met else self._alone
        return re.sub(r"\{(\d+)\}", lambda found: value(arguments[int(found[1])]), shape)

    def _alone(self, of: Expression) -> str:
        """An operand beside which no decimal stands: there a literal of one would be a float."""
        return (
            self.assigned(of) if isinstance(of, Constant) and kind(of.type) == "decimal" else self.value(of)
        )

    def _case(self, of: Case) -> str:
        text = "" if of.otherwise == Constant(None, of.otherwise.type) else f", {self.value(of.otherwise)}"
        if _is_untyped(of.branches[-1][1]) and _is_untyped(of.otherwise):
            text = f', cast({self.value(of.otherwise)}, "{self._type(of.type, of.place)}")'
        for condition, value in reversed(of.branches):
            if condition == Not(IsNull(value)) and text:
                text = f", coalesce({self.value(value)}{text})"
            else:
                text = f", if({self.condition(condition)}, {self.value(value)}{text})"
        return text[2:]

    def _type(self, type_: str, place: Place | None) -> str:
        name = written(type_)
        if name is None:
            raise self._refuse(place, f"a value of type {type_}")
        return name

    def _cast(self, of: Cast) -> str:
        argument, target = of.argument, of.type
        source, to = kind(argument.type), kind(target)
        text = self.value(argument) if to == "float" else self._alone(argument)
        name = self._type(target, of.place)
        if "list" in (source, to) and source != to:
            raise self._refuse(of.place, f"a cast of {argument.type} to {target}")
        if not of.fails:
            return f'try_cast({text}, "{name}")'
        if source == to and holds(target, argument.type):
            return text
        return f'{"cast" if (source, to) in _EXACT else "sql_cast"}({text}, "{name}")'

    # -- conditions within expressions --------------------------------------------------

    def condition(self, of: Expression, holds: bool = True) -> str:
        """A condition, or its negation, that is true, false or NULL."""
        if isinstance(of, Not):
            return self.condition(of.argument, not holds)
        if isinstance(of, Logic):
            sign = ", " if (of.operator == "and") == holds else " ; "
            return f"({sign.join(self.condition(one, holds) for one in of.arguments)})"
        if isinstance(of, Compare):
            operator = of.operator if holds else NEGATED[of.operator]
            return f"{self.value(of.left)} {operator} {self.value(of.right)}"
        if isinstance(of, IsNull):
            known = isinstance(of.argument, Variable) and self._known(of.argument) is not None
            if known:  # of an equation beside it
                return f"true = {'false' if holds else 'true'}"
            return f"{self.assigned(of.argument)} is {'' if holds else 'not '}null"
        if isinstance(of, In):
            items = ", ".join(map(self.value, of.items))
            return f"{self.value(of.argument)} {'' if holds else 'not '}in ({items})"
        if isinstance(of, Call) and of.function in TESTS:
            return self._filled(TESTS[of.function][not holds], of.arguments)
        if isinstance(of, Exists):
            raise self._refuse(of.place, "a subquery in such a place")
        if isinstance(of, Constant):
            if of.value is None:
                return 'cast(null, "bool") = true'
            return "true = true" if bool(of.value) == holds else "true = false"
        return f"{self.value(of)} = {'true' if holds else 'false'}"

    # -- literals of a body --------------------------------------------------------------

    def literals(self, of: Expression, holds: bool = True) -> list[str]:
        """What makes a condition, or its negation, true."""
        if isinstance(of, Not):
            return self.literals(of.argument, not holds)
        if isinstance(of, Logic):
            if (of.operator == "and") == holds:
                return [text for one in of.arguments for text in self.literals(one, holds)]
            n_alternatives = self._alternatives * len(of.arguments)
            if exists_in(of) or (_is_simple(of) and n_alternatives <= MOST_ALTERNATIVES):
                self._alternatives = n_alternatives
                alternatives = (", ".join(self.literals(one, holds)) for one in of.arguments)
                return [f"({' ; '.join(alternatives)})"]
            return [f"coalesce({self.condition(of, holds)}, false) = true"]
        if isinstance(of, Exists):
            relation, columns = of.relation, tuple(column for column, _ in of.terms)
            if not holds and of.absent is not None:
                relation, columns = of.absent
            self.reads.append(relation)
            more: list[str] = []
            values = (self._term(one, holds, more) for _, one in of.terms)
            terms = ", ".join(f"{column}: {value}" for column, value in zip(columns, values, strict=True))
            return [f"{'' if holds else '!'}{relation}({terms})", *more]
        if isinstance(of, Case):
            return [f"coalesce({self.value(of)}, {str(not holds).lower()}) = {str(holds).lower()}"]
        if isinstance(of, IsNull) and any(isinstance(one, Case) for one in walked(of.argument)):
            return [f"coalesce({self.condition(of, holds)}, false) = true"]  # rules refuse what they know
        if isinstance(of, Constant) and of != FALSE and of.value is not None and bool(of.value) == holds:
            return []
        return [self.condition(of, holds)]

    def _term(self, of: Expression, holds: bool, more: list[str]) -> str:
        """A term of an atom, which in one that holds would bind what is computed: it is compared then."""
        found = self._known(of) if isinstance(of, Variable) else of
        if isinstance(found, Constant) and found.value is not None and kind(found.type) != "float":
            return self.constant(found)
        if not holds or isinstance(of, Variable):
            return f"<=> {self._computed(of)}"
        name = self._free("v")
        more.append(f"{name} <=> {self.value(of)}")
        return name


def _is_simple(of: Logic) -> bool:
    """Whether its parts are such as a search can use, or a plain test of a row."""
    parts = [one for part in of.arguments for one in walked(part)]
    return not any(isinstance(one, Case | Cast | IsNull) for one in parts) and len(parts) <= 60


def _is_untyped(of: Expression) -> bool:
    """Whether rules know its type by what stands beside it."""
    return (isinstance(of, Constant) and of.value is None) or (
        isinstance(of, Call) and of.function == "error"
    )


def literal(value: Any, type_: str) -> str | None:
    """A value as rules write it; None: they can't.

    >>> literal(0.5, "DOUBLE"), literal(Decimal(3), "DECIMAL(4,0)"), literal('a"b', "VARCHAR")
    ('0.5e0', '3.0', '"a\\\\"b"')
    """
    of = kind(type_)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if of == "float":
        if not math.isfinite(value):
            return f'cast("{value}", "float64")'
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}.0"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value) if isinstance(value, int | datetime.date) else None


def _quoted(text: str) -> str:
    signs = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"{}"'.format("".join(signs.get(one, one if one.isprintable() else _escaped(one)) for one in text))


def _escaped(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else sign
