"""Rule structures of the tests' own, and their rendering to the rule language's text.

Nothing of the engine is imported: the reference (``reference.py``) evaluates
these structures, the engine reads the rendered text, and the tests compare.
A misreading of the text by the engine therefore shows as a difference too.

A program is a tuple of rules.  Values in data and literals are plain Python
values; ``Decimal`` literals are written with a point (``1.5``), ``float``
literals with an exponent (``1.5e0``).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from support.functions import TESTS


@dataclass(frozen=True)
class Variable:
    """``null_safe``: written ``<=> name``, in an atom."""

    name: str
    null_safe: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Wildcard:
    pass


@dataclass(frozen=True)
class Constant:
    value: Any


@dataclass(frozen=True)
class Arithmetic:
    operator: str  # + - * / %
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Minus:
    operand: Expression


@dataclass(frozen=True)
class Call:
    """A function; one of ``TESTS`` stands in a body as its comparison with a boolean constant."""

    function: str
    arguments: tuple[Expression, ...]


Term = Variable | Wildcard | Constant
Expression = Variable | Constant | Arithmetic | Minus | Call


@dataclass(frozen=True)
class Atom:
    """``functional`` atoms are written ``name[keys] = value``, the value being the last term."""

    relation: str
    terms: tuple[Term, ...]
    negated: bool = False
    functional: bool = False


@dataclass(frozen=True)
class Comparison:
    """Also the assignment ``v = expression``, where nothing else binds one side.

    ``x is null`` is x ``<=>`` the constant None, ``x is not null`` x ``<!=>`` it.
    """

    operator: str  # one of OPERATORS
    left: Expression
    right: Expression

    @property
    def tests_null(self) -> bool:
        return self.operator in NULL_SAFE and self.right == Constant(None)


@dataclass(frozen=True)
class Either:
    """A disjunction; each alternative is a conjunction of literals."""

    alternatives: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True)
class Order:
    name: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Windowed:
    """``target = function(arguments, by: ..., per: ..., unit: (first, last))``; ``top(most, ...)``, too."""

    target: Variable
    function: str
    arguments: tuple[Variable | Constant, ...]
    per: tuple[str, ...]
    by: tuple[Order, ...]
    frame: tuple[str, int | None, int | None] | None = None


@dataclass(frozen=True)
class Nearest:
    """``latest(value, per: ...)`` or ``next``; ``per`` is None where nothing is said."""

    function: str
    value: str
    per: tuple[str, ...] | None = None


Literal = Atom | Comparison | Either | Windowed | Nearest


@dataclass(frozen=True)
class Aggregate:
    """``condition``: of ``sum(v if c)``; ``default``: of ``count() default 0``; ``by``: a list's order."""

    function: str
    arguments: tuple[Variable | Constant, ...] = ()
    distinct: bool = False
    condition: Call | None = None
    default: Constant | None = None
    by: tuple[Order, ...] = ()


@dataclass(frozen=True)
class Head:
    """``value`` None: ``h(a, b)``, ``h(a, count())``; else ``h[a, b] = value``.

    ``bag``: a copy for each assignment, or as many as ``copies`` says.
    """

    relation: str
    terms: tuple[Variable | Aggregate, ...]
    value: Variable | Aggregate | None = None
    bag: bool = False
    copies: Variable | None = None

    @property
    def columns(self) -> tuple[Variable | Aggregate, ...]:
        return self.terms if self.value is None else (*self.terms, self.value)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Those among the terms: what an aggregate groups by."""
        return tuple(term for term in self.terms if isinstance(term, Variable))


@dataclass(frozen=True)
class Rule:
    heads: tuple[Head, ...]
    body: tuple[Literal, ...]


Program = tuple[Rule, ...]
Columns = Mapping[str, Sequence[str]]


# -- shorthand for tests written by hand --------------------------------------


def term(value: Any) -> Term:
    """A str is a variable (``"_"`` the wildcard); anything else, or a structure, stands for itself."""
    if isinstance(value, Variable | Wildcard | Constant):
        return value
    if isinstance(value, str):
        return Wildcard() if value == "_" else Variable(value)
    return Constant(value)


def atom(relation: str, *terms: Any) -> Atom:
    """``atom("e", "a", "_", 5)`` is ``e(a, _, 5)``."""
    return Atom(relation, tuple(term(t) for t in terms))


def no(relation: str, *terms: Any) -> Atom:
    """A negated atom."""
    return Atom(relation, tuple(term(t) for t in terms), negated=True)


def lookup(relation: str, *terms: Any) -> Atom:
    """``lookup("f", "k", "v")`` is ``f[k] = v``."""
    return Atom(relation, tuple(term(t) for t in terms), functional=True)


def expression(value: Any) -> Expression:
    if isinstance(value, Arithmetic | Minus | Call):
        return value
    made = term(value)
    assert not isinstance(made, Wildcard)
    return made


def compare(left: Any, operator: str, right: Any) -> Comparison:
    return Comparison(operator, expression(left), expression(right))


def arith(left: Any, operator: str, right: Any) -> Arithmetic:
    return Arithmetic(operator, expression(left), expression(right))


def head(relation: str, *terms: str | Aggregate, value: str | Aggregate | None = None) -> Head:
    """A str is a variable."""
    made = Variable(value) if isinstance(value, str) else value
    return Head(relation, tuple(Variable(t) if isinstance(t, str) else t for t in terms), made)


def aggregate(function: str, *arguments: Any) -> Aggregate:
    """Arguments: a str is a variable; separators are given as ``Constant``."""
    made = tuple(term(a) for a in arguments)
    return Aggregate(function, tuple(a for a in made if not isinstance(a, Wildcard)))


# -- walking ------------------------------------------------------------------


def literals(body: tuple[Literal, ...]) -> Iterator[Atom | Comparison]:
    """The atoms and comparisons of a body, those inside disjunctions included, in the order of writing."""
    for literal in body:
        if isinstance(literal, Either):
            for alternative in literal.alternatives:
                yield from literals(alternative)
        else:
            yield literal


def variables_of(node: Any) -> list[str]:
    """Names of the variables in an atom, comparison or expression, each once, in the order of writing."""
    if isinstance(node, Variable):
        return [node.name]
    parts: tuple[Any, ...] = ()
    if isinstance(node, Atom):
        parts = node.terms
    elif isinstance(node, Comparison | Arithmetic):
        parts = (node.left, node.right)
    elif isinstance(node, Minus):
        parts = (node.operand,)
    elif isinstance(node, Call):
        parts = node.arguments
    return list(dict.fromkeys(name for part in parts for name in variables_of(part)))


# -- rendering ----------------------------------------------------------------

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def render_value(value: Any) -> str:
    """A literal of the rule language.

    >>> render_value(Decimal("-1.50")), render_value(0.25), render_value(b"\\x00A")
    ('-1.50', '2.5e-01', 'x"0041"')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else text + ".0"
    if isinstance(value, float):
        mantissa, exponent = format(value, ".16e").split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    if isinstance(value, str):
        return (
            '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in value) + '"'
        )
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(f"the rule language has no literal for {value!r}")


def render_term(node: Term) -> str:
    if isinstance(node, Wildcard):
        return "_"
    if isinstance(node, Variable):
        return f"<=> {node.name}" if node.null_safe else node.name
    return render_value(node.value)


def render_expression(node: Expression, nested: bool = False) -> str:
    if isinstance(node, Minus):
        return f"-{render_expression(node.operand, nested=True)}"
    if isinstance(node, Arithmetic):
        left = render_expression(node.left, nested=True)
        text = f"{left} {node.operator} {render_expression(node.right, nested=True)}"
        return f"({text})" if nested else text
    if isinstance(node, Call) and node.function in CONDITIONS:
        return render_condition(node)
    if isinstance(node, Call) and node.function == "||":
        text = " || ".join(render_expression(argument, nested=True) for argument in node.arguments)
        return f"({text})" if nested else text
    if isinstance(node, Call):
        return f"{node.function}({', '.join(map(render_expression, node.arguments))})"
    return render_term(node)


NULL_SAFE = ("<=>", "<!=>")
OPERATORS = ("<", "<=", ">", ">=", "=", "!=", *NULL_SAFE)
CONDITIONS = (*OPERATORS, "and", "or", "not", "is null")
"""Calls that stand first in ``if``."""


def render_condition(node: Call) -> str:
    parts = [render_expression(argument, nested=True) for argument in node.arguments]
    if node.function in OPERATORS:
        return f"{parts[0]} {node.function} {parts[1]}"
    if node.function == "is null":
        return f"{parts[0]} is null"
    if node.function == "not":
        (of,) = node.arguments
        return (
            f"{render_expression(of.arguments[0])} is not null"
            if of.function == "is null"
            else f"!{parts[0]}"
        )
    return f"({(', ' if node.function == 'and' else ' ; ').join(parts)})"


def render_test(node: Call, wanted: bool) -> str:
    """``s like "a%"``, ``x not in (1, 2)``, ``!contains(s, "a")``."""
    first, *others = (render_expression(argument, nested=True) for argument in node.arguments)
    if node.function not in ("in", "like"):
        return ("" if wanted else "!") + render_expression(node)
    operator = node.function if wanted else f"not {node.function}"
    right = f"({', '.join(others)})" if node.function == "in" else " escape ".join(others)
    return f"{first} {operator} {right}"


def render_call(relation: str, terms: list[str], functional: bool) -> str:
    if functional:
        return f"{relation}[{', '.join(terms[:-1])}] = {terms[-1]}"
    return f"{relation}({', '.join(terms)})"


def render_by_name(node: Atom, columns: Sequence[str]) -> str:
    """The last columns first, wildcards left out; the value of a functional atom stands by place.

    >>> render_by_name(atom("e", "a", "_", 5), ["src", "dst", "cost"])
    'e(cost: 5, src: a)'
    """
    terms = [render_term(t) for t in node.terms]
    keys = [(c, t) for c, t in zip(columns, terms, strict=True)][: len(terms) - node.functional]
    named = [f"{column}: {text}" for column, text in reversed(keys) if text != "_"] or [
        f"{column}: _" for column, _ in keys[:1]
    ]
    return render_call(node.relation, [*named, *terms[len(keys) :]], node.functional)


def render_order(node: Order) -> str:
    return f"{node.name}{' desc' if node.descending else ' asc'}{' nulls first' if node.nulls_first else ''}"


def render_window(node: Windowed) -> str:
    orders = list(map(render_order, node.by))
    parts = [render_term(argument) for argument in node.arguments]
    parts += [f"{part}: ({', '.join(names)})" for part, names in (("by", orders), ("per", node.per)) if names]
    if node.frame is not None:
        unit, *ends = node.frame
        parts.append(f"{unit}: ({', '.join('_' if end is None else str(end) for end in ends)})")
    return f"{node.target.name} = {node.function}({', '.join(parts)})"


def render_literal(node: Literal, columns: Columns) -> str:
    if isinstance(node, Windowed):
        return render_window(node)
    if isinstance(node, Nearest):
        return f"{node.function}({', '.join([node.value, *(f'per: {name}' for name in node.per or ())])})"
    if isinstance(node, Atom) and node.relation in columns:
        return ("!" if node.negated else "") + render_by_name(node, columns[node.relation])
    if isinstance(node, Atom):
        call = render_call(node.relation, [render_term(t) for t in node.terms], node.functional)
        return ("!" if node.negated else "") + call
    if isinstance(node, Comparison) and node.tests_null:
        return f"{render_expression(node.left)} is {'' if node.operator == '<=>' else 'not '}null"
    if isinstance(node, Comparison) and isinstance(node.left, Call) and node.left.function in TESTS:
        assert isinstance(node.right, Constant)
        return render_test(node.left, node.right.value)
    if isinstance(node, Comparison):
        return f"{render_expression(node.left)} {node.operator} {render_expression(node.right)}"
    return "(" + " ; ".join(render_body(alternative, columns) for alternative in node.alternatives) + ")"


def render_body(body: tuple[Literal, ...], columns: Columns) -> str:
    return ", ".join(render_literal(literal, columns) for literal in body)


def render_column(node: Variable | Aggregate) -> str:
    if isinstance(node, Variable):
        return node.name
    inside = ", ".join(render_term(argument) for argument in node.arguments)
    if node.by:
        inside += f", by: ({', '.join(map(render_order, node.by))})"
    if node.distinct:
        inside = f"distinct {inside}"
    if node.condition is not None:
        inside = f"{inside} if {render_expression(node.condition)}".lstrip()
    default = "" if node.default is None else f" default {render_term(node.default)}"
    return f"{node.function}({inside}){default}"


def render_head(node: Head) -> str:
    columns = [render_column(column) for column in node.columns]
    if node.copies is not None:
        columns.append(f"copies: {node.copies.name}")
    return ("bag " if node.bag else "") + render_call(node.relation, columns, node.value is not None)


def render(program: Program, columns: Columns = MappingProxyType({})) -> str:
    """The program's text, a rule a line.  ``columns``: of the relations whose atoms are written by name.

    >>> e, n = atom("e", "a", "b"), no("f", "b", "_", 5)
    >>> print(render((Rule((head("h", "a"),), (e, n, compare("a", "<", arith("b", "+", 3)))),)))
    h(a) <- e(a, b), !f(b, _, 5), a < b + 3.
    >>> print(render((Rule((head("n", "a", value=aggregate("count")),), (e,)),)))
    n[a] = count() <- e(a, b).
    >>> print(render((Rule((head("h", aggregate("max", "b"), "a", aggregate("count")),), (e,)),)))
    h(max(b), a, count()) <- e(a, b).
    """
    return "\n".join(
        f"{', '.join(render_head(h) for h in rule.heads)} <- {render_body(rule.body, columns)}."
        for rule in program
    )
