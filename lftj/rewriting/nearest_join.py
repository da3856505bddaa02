"""Bodies of which an extremum is asked that one search finds for each row of a side: ASOF joins.

    near[s, t] = max(u) <- trade(s, _, t, _), quote(s, u, _), u <= t, u >= t - 10m.

The body has two sides, *askers* and *answers*.  Both know s; of an asker's answers the first one in the order
of keys, from its own key t downwards, is the greatest u: a *witness*, found in O(log n), where listing would
find all earlier quotes.  What the witness depends on are the answers from it to t, so an answer that comes or
goes concerns the askers between it and the answer next to it, and no others.

    next[s, t] = min(u) <- trade(s, _, t, _), quote(s, u, _), u > t.

is the same with the order turned round.

Invariants

1. Each atom belongs to one side; each filter, negated atom and assignment to a side that knows its variables.
   What spans both sides are comparisons of u with a variable of the askers, or with that and a number.
2. One of these comparisons says where u is sought from; the others can't hold of any u further away that the
   witness fails.
3. All that is asked for beside u is known to the askers.
4. Columns that both sides know are not floats: they join, and NaN equals nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from indices.keys import KEY_MAX
from lftj.language.body import Assignment, Body, CheckedHead
from lftj.language.expressions import comparison_text
from lftj.language.parameters import constants_of
from lftj.language.syntax import Aggregate, Atom, Comparison, Expression, Variable
from lftj.rewriting.joins import of_atom, of_comparison, of_expression
from lftj.rewriting.range_join import Inequality, Span, Types, inequality, sides_of, spans_of
from lftj.rewriting.summand import substituted

_ASKS, _ANSWERS = "<asks>", "<answers>"
"""Stand among the names of a side's variables; none has such signs."""


@dataclass(frozen=True)
class Side:
    """A body, and its variables that are read, the compared one behind those that both sides know."""

    body: Body
    names: tuple[str, ...]


@dataclass(frozen=True)
class NearestJoin:
    """``function``: ``max`` or ``min`` of ``value``, by ``asked``.

    ``n_shared``: how many first variables of both sides are the same.  ``span``: where in codes
    ``value - asked`` lies.  ``limits``: of further variables of the askers, the least that the value less the
    variable may be, or where the function is ``min`` the most.
    """

    function: str
    value: str
    asked: str
    n_shared: int
    askers: Side
    answers: Side
    span: Span
    limits: tuple[tuple[str, int], ...]
    comparisons: tuple[Comparison, ...]

    @property
    def described(self) -> str:
        """What it does, in a line."""
        word = "greatest" if self.function == "max" else "least"
        what = " and ".join(map(comparison_text, self.comparisons))
        shared = ", ".join((*self.askers.names[: self.n_shared], self.asked))
        return f"the {word} {self.value} where {what}: one search for each ({shared})"


def asked_extremum(heads: Sequence[CheckedHead]) -> tuple[str, str] | None:
    """``("max", "u")`` where heads aggregate one variable's extremum; None for others.

    Where it is among what they group by, each of its values is a group, and none is nearer than another.
    """
    asked = {
        (head.value.function, *(one.name for one in head.value.arguments if isinstance(one, Variable)))
        if isinstance(head.value, Aggregate) and head.extremum
        else None
        for head in heads
    }
    found = next(iter(asked)) if len(asked) == 1 else None
    if found is None or any(found[1] in head.variables for head in heads):
        return None
    return found[0], found[1]


def nearest_join(body: Body, function: str, value: str, wanted: Collection[str]) -> NearestJoin | str | None:
    """How the extremum of a variable of a body is found by searches for the nearest one.

    ``wanted``: the variables that are asked for beside it.  None where no comparison joins it with another
    side; a text that says why where one does and there is nothing to gain by searches.
    """
    sources = {one.variable: of_expression(one.expression) for one in body.assignments}
    value_of = _atoms_below([value], sources)
    with_value = [not value_of.isdisjoint(of_atom(atom)) for atom in body.atoms]
    own = _names_of(atom for atom, has in zip(body.atoms, with_value, strict=True) if has)
    compared = [_atoms_below(of_comparison(comparison), sources) for comparison in body.comparisons]
    between = [names for names in compared if value_of <= names and not names <= own]
    if not value_of or not between or function not in ("max", "min"):
        return None
    asking = _atoms_below({*wanted} - {value}, sources) - own
    for names in between:
        asking |= names - own
    marked = []
    for atom, has in zip(body.atoms, with_value, strict=True):
        names = of_atom(atom)
        if names & asking:
            if has:
                return f"{atom.relation} has {value} and what it is compared with"
            names |= {_ASKS}
        marked.append(names | {_ANSWERS} if has else names)
    places = sides_of(marked, _ASKS, _ANSWERS)
    if places is None:
        return f"no atom has what {value} is compared with"
    return _Sides(body, function, value, wanted, places).joined()


class _Sides:
    """What belongs to which side."""

    def __init__(
        self,
        body: Body,
        function: str,
        value: str,
        wanted: Collection[str],
        places: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> None:
        self._body = body
        self._function = function
        self._value = value
        self._wanted = [name for name in dict.fromkeys(wanted) if name != value]
        self._atoms = [[body.atoms[place] for place in some] for some in places]
        self._assignments: list[list[Assignment]] = [[], []]
        self._known = [set(_names_of(atoms)) for atoms in self._atoms]
        self._shared = sorted(self._known[0] & self._known[1])
        self._mixed: dict[str, Expression | None] = {}
        """What spans both sides, by the variable that is computed; None: several values."""
        for one in body.assignments:
            read = of_expression(one.expression)
            fits = [read <= known for known in self._known]
            if not any(fits):
                meant = substituted(one.expression, self._definition)
                self._mixed[one.variable] = None if one.each else meant
            for side in (0, 1):
                if fits[side] and not (one.each and side and fits[0]):
                    self._known[side].add(one.variable)
                    self._assignments[side].append(one)

    @property
    def _definition(self) -> dict[str, Expression]:
        return {name: meant for name, meant in self._mixed.items() if meant is not None}

    def joined(self) -> NearestJoin | str:
        """The join, or why there is none."""
        body, value = self._body, self._value
        for name in self._wanted:
            if name not in self._known[0]:
                return f"{name} is asked for, which those have that have {value}"
        for name in self._shared:
            if body.types[name].domain.name == "float":
                return f"{name} is a float, and joins"
        read = frozenset[str]().union(*map(of_comparison, body.comparisons))
        read = read.union(*(of_expression(one.expression) for one in body.assignments))
        for name in self._mixed:
            if name not in read:
                return f"{name} is computed of both sides"
        filters: list[list[Comparison]] = [[], []]
        between: list[tuple[Comparison, Comparison]] = []
        for comparison in body.comparisons:
            left, right = (
                substituted(side, self._definition) for side in (comparison.left, comparison.right)
            )
            meant = replace(comparison, left=left, right=right)
            side = self._side_of(of_comparison(meant), value in of_comparison(meant))
            if side is None:
                between.append((comparison, meant))
            else:
                filters[side].append(meant)
        negations: list[list[Atom]] = [[], []]
        for atom in body.negations:
            side = self._side_of(of_atom(atom), False)
            if side is None:
                return f"!{atom.relation} reads of both sides"
            negations[side].append(atom)
        found = self._spans(between)
        if isinstance(found, str):
            return found
        asked, span, limits = found
        first = (*self._shared, asked)
        rest = dict.fromkeys(
            name for name in (*(name for name, _ in limits), *self._wanted) if name not in first
        )
        names = ((*first, *rest), (*self._shared, value))
        sides = [Side(self._part(side, filters[side], negations[side]), names[side]) for side in (0, 1)]
        return NearestJoin(
            self._function,
            value,
            asked,
            len(self._shared),
            sides[0],
            sides[1],
            span,
            limits,
            tuple(comparison for comparison, _ in between),
        )

    def _side_of(self, names: frozenset[str], of_value: bool) -> int | None:
        """0: askers, 1: answers; None: neither knows all."""
        order = (1, 0) if of_value else (0, 1)
        return next((side for side in order if names <= self._known[side]), None)

    def _spans(
        self, between: Sequence[tuple[Comparison, Comparison]]
    ) -> tuple[str, Span, tuple[tuple[str, int], ...]] | str:
        """The variable that is asked by, the span of the value less it, and limits of the others."""
        spans: dict[str, Span] = {}
        for comparison, meant in between:
            found = _difference(meant, self._value, self._body.types)
            text = comparison_text(comparison)
            if found is None:
                return f"{text} compares both sides in another way than {self._value} with a key"
            other, span = found
            if other not in self._known[0]:
                return f"{text} compares both sides in another way than {self._value} with a key"
            least, most = spans.get(other, (None, None))
            low, high = span
            least = low if least is None else least if low is None else max(least, low)
            most = high if most is None else most if high is None else min(most, high)
            spans[other] = least, most
        near = 1 if self._function == "max" else 0
        asked = [name for name, span in spans.items() if span[near] is not None]
        if len(asked) != 1:
            way = "from above" if near else "from below"
            how_often = "nothing" if not asked else "more than one variable"
            return f"{self._value} is bounded {way} by {how_often}"
        limits = []
        for name, span in spans.items():
            if name != asked[0]:
                limit = span[1 - near]
                assert limit is not None
                limits.append((name, limit))
        numbers = [*spans[asked[0]], *(limit for _, limit in limits)]
        if any(number is not None and abs(number) > KEY_MAX for number in numbers):
            return "a number beyond 64 bits"
        return asked[0], spans[asked[0]], tuple(limits)

    def _part(self, side: int, filters: Sequence[Comparison], negations: Sequence[Atom]) -> Body:
        types = {name: type_ for name, type_ in self._body.types.items() if name in self._known[side]}
        return Body(
            tuple(self._atoms[side]),
            tuple(negations),
            tuple(filters),
            tuple(self._assignments[side]),
            types,
        )


def _difference(comparison: Comparison, value: str, types: Types) -> tuple[str, Span] | None:
    """The other variable, and where the value less it lies, in codes."""
    left, right = comparison.left, comparison.right
    if any(constant.parameter is not None for constant in constants_of(comparison)):
        return None  # whose value comes with each call
    found: Inequality | None
    if isinstance(left, Variable) and isinstance(right, Variable):
        domain = types[left.name].domain
        if comparison.is_null_safe or domain is not types[right.name].domain or not domain.ordered:
            return None
        found = Inequality(left.name, right.name, spans_of(comparison.operator, 0))
    else:
        found = inequality(comparison, types)
    if found is None or found.times != (1, 1) or len(found.spans) != 1:
        return None
    ((least, most),) = found.spans
    if found.left == value:
        return found.right, (least, most)
    if found.right == value:
        return found.left, (None if most is None else -most, None if least is None else -least)
    return None


def _atoms_below(names: Iterable[str], sources: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The variables of atoms that some are, or are computed of."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in sources:
            waiting += sources[name]
        else:
            found.add(name)
    return frozenset(found)


def _names_of(atoms: Iterable[Atom]) -> frozenset[str]:
    return frozenset[str]().union(*map(of_atom, atoms))
