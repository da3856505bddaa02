"""Bodies whose two sides an inequality joins: an ordered view of each is kept.

Design: docs/design/strategies.md section 3.4.

    h[b] = sum(v) <- bids(b, p, v), asks(b, q), p - q > 1000.

Each side becomes a view over what both know, ``b``, its own variables of the head, and its own compared
key, ``p`` or ``q``; a change of one then meets a range of the other, whose sum a scan tree knows.

Invariants

1. Every atom, factor and other filter belongs to one side; the head has no compared key.
2. An :class:`Inequality` says of codes what the comparison says of values: its keys are of one domain
   whose codes are in value order, not floats, for NaN has no place there; differences are those of
   whole numbers, as of ``cast(v, "decimal(38, 4)") > 0.0001 * t``.

Where these do not hold there is no range join: the sides stay together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from lftj.language.body import Body
from lftj.language.expressions import variables_of
from lftj.language.syntax import (
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Expression,
    Negative,
    Variable,
)
from lftj.rewriting.elimination import PASSES, Edge, Names, view_cost
from lftj.rewriting.joins import of_comparison
from lftj.rewriting.relation_sizes import UNKNOWN_ROWS
from lftj.rewriting.shared_views import is_view
from lftj.rewriting.summand import only_widens
from lftj.values.domain import Domain
from lftj.values.kinds import kind
from lftj.values.operators import FLIPPED
from lftj.values.schema import ColumnType

TREE_STEP = 2.0
"""Nodes that a change visits in scan trees, for each doubling of their records."""

Types = Mapping[str, ColumnType]
ArrowTypes = Mapping[str, pa.DataType]

Span = tuple[int | None, int | None]
"""A closed interval; None where it has no end."""


@dataclass(frozen=True)
class Inequality:
    """``left - right``, each taken ``times`` so often, lies in one of the spans, which are disjoint."""

    left: str
    right: str
    spans: tuple[Span, ...]
    times: tuple[int, int] = (1, 1)


def inequality(comparison: Comparison, types: Types) -> Inequality | None:
    """A comparison as one of two keys; None for one that is none.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> whole = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> p, q = Variable("p"), Variable("q")
    >>> difference = BinaryOperation("-", p, q)
    >>> inequality(Comparison(">", difference, Constant(1000)), {"p": whole, "q": whole})
    Inequality(left='p', right='q', spans=((1001, None),), times=(1, 1))
    >>> days = ColumnType(Domains().of(pa.date32()), pa.date32())
    >>> inequality(Comparison("<=", difference, Constant(7)), {"p": days, "q": days}).spans
    ((None, 7),)
    >>> with_nothing = BinaryOperation("+", difference, BinaryOperation("*", Variable("v"), Constant(0)))
    >>> inequality(Comparison(">", with_nothing, Constant(0)), dict.fromkeys("pqv", whole)) is None
    True
    >>> far = Comparison(">", Call("abs", (difference,)), Constant(1000))
    >>> inequality(far, {"p": whole, "q": whole}).spans
    ((None, -1001), (1001, None))
    """
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if comparison.is_null_safe:
        return None
    if isinstance(left, Variable) and isinstance(right, Variable):
        domain = types[left.name].domain
        if left.name == right.name or domain is not types[right.name].domain:
            return None
        if not domain.ordered or domain.name == "float":
            return None
        return Inequality(left.name, right.name, spans_of(operator, 0))
    arrow = {
        variable.name: types[variable.name].arrow for side in (left, right) for variable in variables_of(side)
    }
    if any(kind(type_) != "integer" for type_ in arrow.values()):
        domain, *others = {types[name].domain for name in arrow}
        difference = BinaryOperation("-", left, right)
        codes = None if others or not domain.integral else _in_codes(difference, domain)
        return None if codes is None else _of_difference(codes, operator, dict.fromkeys(arrow, pa.int64()))
    if isinstance(right, Call) and right.function == "abs":
        operator, left, right = FLIPPED[operator], right, left
    if isinstance(left, Call) and left.function == "abs":
        return _of_distance(operator, left, right, arrow)
    return _of_difference(BinaryOperation("-", left, right), operator, arrow)


def _in_codes(expression: Expression, domain: Domain) -> Expression | None:
    """A sum of values of a domain, dates or times, and of what is added to them, as one of codes."""
    if isinstance(expression, Variable):
        return expression
    if isinstance(expression, Constant):
        steps = domain.steps(expression.value)
        return None if steps is None else Constant(steps)
    if not (isinstance(expression, BinaryOperation) and expression.operator in "+-"):
        return None
    left, right = _in_codes(expression.left, domain), _in_codes(expression.right, domain)
    return None if left is None or right is None else BinaryOperation(expression.operator, left, right)


def _of_difference(difference: Expression, operator: str, types: ArrowTypes) -> Inequality | None:
    found = _keys(difference, types)
    if found is None:
        return None
    left, right, times, rest, _ = found
    return Inequality(left, right, spans_of(operator, -rest), times)


def _of_distance(operator: str, call: Call, limit: Expression, types: ArrowTypes) -> Inequality | None:
    """``abs(a * left - b * right + rest)`` beside a number."""
    found, number = _keys(call.arguments[0], types), linear(limit, types)
    if found is None or number is None or number[0]:
        return None
    left, right, times, rest, unit = found
    if (number[1] * unit).denominator != 1:
        return None
    most = int(number[1] * unit)
    if operator in (">", ">="):
        least = most + 1 if operator == ">" else most
        if least > 0:
            return Inequality(left, right, ((None, -least - rest), (least - rest, None)), times)
    elif operator in ("<", "<="):
        most = most - 1 if operator == "<" else most
        if most >= 0:
            return Inequality(left, right, ((-most - rest, most - rest),), times)
    return None


def spans_of(operator: str, limit: int) -> tuple[Span, ...]:
    """What compares so with a number."""
    below, above = (None, limit - 1), (limit + 1, None)
    found: dict[str, tuple[Span, ...]] = {
        "<": (below,),
        "<=": ((None, limit),),
        ">": (above,),
        ">=": ((limit, None),),
        "=": ((limit, limit),),
        "!=": (below, above),
    }
    return found[operator]


def _keys(expression: Expression, types: ArrowTypes) -> tuple[str, str, tuple[int, int], int, int] | None:
    """The x, y, (a, b), c and d of ``(a * x - b * y + c) / d``, a, b and d above 0.

    None where others are left out of the sum, as in ``a * x - b * y + 0 * z``: the comparison names them.
    """
    found = linear(expression, types)
    if found is None:
        return None
    unit = math.lcm(found[1].denominator, *(number.denominator for number in found[0].values()))
    times = {name: int(number * unit) for name, number in found[0].items()}
    if 0 in times.values() or [number > 0 for number in sorted(times.values())] != [False, True]:
        return None
    right, left = sorted(times, key=lambda name: times[name])
    return left, right, (times[left], -times[right]), int(found[1] * unit), unit


Linear = tuple[dict[str, Fraction], Fraction] | None
"""How often each variable is added, and what else; None for what is no sum of variables and numbers."""


def linear(expression: Expression, types: ArrowTypes) -> Linear:
    """An expression as a sum of variables and numbers, all exact.

    >>> v, t = Variable("v"), Variable("t")
    >>> share = BinaryOperation("-", v, BinaryOperation("*", Constant(Decimal("0.25")), t))
    >>> factors, constant = linear(share, {"v": pa.int64(), "t": pa.int64()})
    >>> sorted(factors.items()), constant
    ([('t', Fraction(-1, 4)), ('v', Fraction(1, 1))], Fraction(0, 1))
    """
    if isinstance(expression, Variable):
        return {expression.name: Fraction(1)}, Fraction(0)
    if isinstance(expression, Constant):
        value = expression.value
        return ({}, Fraction(value)) if type(value) in (int, Decimal) else None  # type: ignore[arg-type]
    if isinstance(expression, Negative):
        return _added(({}, Fraction(0)), linear(expression.operand, types), -1)
    if isinstance(expression, Call) and only_widens(expression, types):
        return linear(expression.arguments[0], types)
    if isinstance(expression, BinaryOperation) and expression.operator in "+-*":
        left, right = linear(expression.left, types), linear(expression.right, types)
        if expression.operator == "*":
            return _multiplied(left, right)
        return _added(left, right, 1 if expression.operator == "+" else -1)
    return None


def _added(one: Linear, other: Linear, sign: int) -> Linear:
    if one is None or other is None:
        return None
    names = one[0].keys() | other[0].keys()
    zero = Fraction(0)
    return {n: one[0].get(n, zero) + sign * other[0].get(n, zero) for n in names}, one[1] + sign * other[1]


def _multiplied(one: Linear, other: Linear) -> Linear:
    if one is None or other is None or (one[0] and other[0]):
        return None
    (times, rest), (_, number) = (one, other) if one[0] else (other, one)
    return {name: number * time for name, time in times.items()}, number * rest


# -- taking a body apart ------------------------------------------------------------------


@dataclass(frozen=True)
class RangeSplit:
    """A join in two sides: the places of their atoms, what the first knows, and the keys of their views.

    Filters and factors over what the first knows are its own.
    """

    comparison: Comparison
    places: tuple[tuple[int, ...], tuple[int, ...]]
    first: Names
    keys: tuple[Names, Names]
    head: Names

    def cost(self, edges: Sequence[Edge]) -> float:
        """Operations of changes of all edges, one for each atom, with ordered views."""
        steps = TREE_STEP * math.log2(max(2.0, *(edge.rows for edge in edges)))
        cost = 0.0
        for side in (0, 1):
            joining, changed = view_cost([edges[place] for place in self.places[side]], self.keys[side])
            cost += joining + changed * steps * self._groups(1 - side, edges)
        return cost

    def least_plain(self, edges: Sequence[Edge]) -> float:
        """What changes of all edges cost at least, as long as nobody knows how many rows they have.

        A row may match many of each group.
        """
        groups = self._groups(0, edges) * self._groups(1, edges)
        return groups * len(edges) * PASSES * UNKNOWN_ROWS

    def _groups(self, side: int, edges: Sequence[Edge]) -> float:
        """How many groups of its own a side has, each with a range: its variables of the head."""
        groups = 1.0
        for name in self.keys[side] & self.head - self.keys[1 - side]:
            groups *= min(edges[place].distinct.get(name, math.inf) for place in self.places[side])
        return groups


def range_split(
    atoms: Sequence[Names],
    comparisons: Sequence[Comparison],
    filters: Iterable[Names],
    head: Names,
    types: Types,
) -> RangeSplit | None:
    """The join in two sides that one of the comparisons joins; None where there is none.

    ``atoms``, ``filters``: variables of each atom, and of each negated atom and factor.
    """
    filters = list(filters)
    for comparison in comparisons:
        found = inequality(comparison, types)
        sides = None if found is None else sides_of(atoms, found.left, found.right)
        if found is None or sides is None:
            continue
        left, right = (frozenset().union(*(atoms[place] for place in side)) for side in sides)
        others = [of_comparison(other) for other in comparisons if other is not comparison]
        compared = {found.left, found.right}
        if head.isdisjoint(compared) and all(n <= left or n <= right for n in [*filters, *others]):
            wanted = left & right | head | compared
            return RangeSplit(comparison, sides, left, (wanted & left, wanted & right), head)
    return None


def sides_of(atoms: Sequence[Names], left: str, right: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The places of the atoms of one key, with what belongs to them, and those of the other."""
    with_left = [left in atom for atom in atoms]
    with_right = [right in atom for atom in atoms]
    if any(a and b for a, b in zip(with_left, with_right, strict=True)) or not (
        any(with_left) and any(with_right)
    ):
        return None
    place: list[int | None] = [
        0 if a else 1 if b else None for a, b in zip(with_left, with_right, strict=True)
    ]
    while None in place:
        known = [
            frozenset[str]().union(*(atom for atom, at in zip(atoms, place, strict=True) if at == side))
            for side in (0, 1)
        ]
        own = known[0] - known[1], known[1] - known[0]
        waiting = [number for number, at in enumerate(place) if at is None]
        gains = {number: [len(atoms[number] & names) for names in own] for number in waiting}
        number = max(waiting, key=lambda one: abs(gains[one][0] - gains[one][1]))
        place[number] = 0 if gains[number][0] >= gains[number][1] else 1
    first, second = (tuple(number for number, at in enumerate(place) if at == side) for side in (0, 1))
    return first, second


# -- what is left of it -------------------------------------------------------------------


@dataclass(frozen=True)
class OrderedView:
    """A view as one side of a range join: columns that both sides know, its own others, the one compared."""

    atom: Atom
    groups: tuple[int, ...]
    own: tuple[int, ...]
    key: int

    @property
    def value(self) -> str:
        return _names(self.atom)[-1]

    @property
    def lookup(self) -> str:
        """How it is read at a key: ``view[b, p]``."""
        return f"{self.atom.relation}[{', '.join(_names(self.atom)[:-1])}]"


@dataclass(frozen=True)
class RangeJoin:
    """Two ordered views, the ``left`` and the ``right`` of an inequality.

    ``groups``: variables of groups that both know, then those of the left one's own, then the right one's.
    """

    inequality: Inequality
    comparison: Comparison
    left: OrderedView
    right: OrderedView
    groups: tuple[str, ...]


def range_join(body: Body) -> RangeJoin | None:
    """What joins two ordered views of whole numbers by an inequality and does nothing else; or None."""
    if len(body.atoms) != 2 or len(body.comparisons) != 1 or body.negations:
        return None
    found = inequality(body.comparisons[0], body.types)
    if found is None:
        return None
    names = [_names(atom) for atom in body.atoms]
    for atom, own in zip(body.atoms, names, strict=True):
        whole = bool(own) and kind(body.types[own[-1]].arrow) == "integer"
        if not is_view(atom.relation) or len(set(own)) != len(atom.terms) or not whole:
            return None
    left, right = (0, 1) if found.left in names[0] else (1, 0)
    both = [name for name in names[0] if name in names[1]]
    groups, views = list(both), []
    for side, key in ((left, found.left), (right, found.right)):
        columns = names[side]
        if key not in columns[:-1] or columns[-1] in both:
            return None
        own = [name for name in columns[:-1] if name not in both and name != key]
        groups += own
        shared, alone = (tuple(map(columns.index, some)) for some in (both, own))
        views.append(OrderedView(body.atoms[side], shared, alone, columns.index(key)))
    return RangeJoin(found, body.comparisons[0], views[0], views[1], tuple(groups))


def _names(atom: Atom) -> list[str]:
    return [term.name for term in atom.terms if isinstance(term, Variable)]
