"""The views of one program, each kept once however its variables are called.

Two views are equal when a renaming of variables makes one's rule the other's.  They are compared by a
*canonical* rule: atoms in the order, and variables with the numbers, that give the least text.

Invariants

1. Equal views of a program are one hidden head.
2. Its key columns stand in the order of the canonical variables, for all who read it.

Cost: the orders of atoms that look alike are all tried, at most ``MOST_ORDERS``; beyond that views may
be equal and kept twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lftj.language.body import Assignment, Body, CheckedHead, CheckedRule
from lftj.language.expressions import result_type, text_of
from lftj.language.syntax import Aggregate, Atom, Call, Comparison, Constant, Expression, Variable
from lftj.rewriting.rule_text import atom_text, body_text, comparison_text, head_text
from lftj.rewriting.summand import product_of, substituted
from lftj.values.domains import Domains
from lftj.values.kinds import kind
from lftj.values.schema import Column, ColumnType, Schema

VIEW = "#view"
"""Stands in the names of views, and in no other name (:mod:`lftj.language.several_aggregates`)."""

MOST_ORDERS = 120

PRODUCT = "product"

WIDE = pa.decimal128(38, 0)
WIDE_NAME = "decimal(38, 0)"
"""What partial sums of whole numbers are where 64 bits don't hold them."""


def is_view(relation: str) -> bool:
    """Whether this names a view: a head that a rewriting made.

    >>> is_view("total#view2"), is_view("total"), is_view("total#2")
    (True, False, False)
    """
    return VIEW in relation


@dataclass(frozen=True)
class ViewBody:
    """A join whose other variables are summed away: of what, and by which keys.

    ``factors``: what is multiplied; where there are none, assignments are counted.  ``is_set``: nothing is
    summed, the view has the keys alone.
    """

    atoms: tuple[Atom, ...]
    negations: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    factors: tuple[Expression, ...]
    keys: frozenset[str]
    is_set: bool = False

    def call(
        self, types: Mapping[str, ColumnType], negations: int = 0, wide: bool = False
    ) -> tuple[Aggregate, tuple[Assignment, ...]]:
        """What sums the factors up, and the assignment of their product, where it takes one.

        ``types``: of all names that are taken.  ``wide``: products of whole numbers have 128 bits.
        """
        if not self.factors and not negations:
            return Aggregate("count"), ()
        first = self.factors[0] if len(self.factors) == 1 else None
        if isinstance(first, Variable) and not negations:
            return Aggregate("sum", (first,)), ()
        product = free_name(PRODUCT, types)
        factors = self.factors
        if wide and len(factors) > 1 and kind(arrow_type(factors[0], types)) == "integer":
            factors = (Call("cast", (factors[0], Constant(WIDE_NAME))), *factors[1:])
        multiplied = product_of(factors, negations)
        return Aggregate("sum", (Variable(product),)), (Assignment(product, multiplied),)


@dataclass
class SharedViews:
    """``rules``: those of the hidden heads, by stratum of views; ``derived``: their schemas.

    ``taken``: names that others have.  ``wide``: whether sums of whole numbers have 128 bits.
    """

    taken: Collection[str]
    domains: Domains
    wide: bool = False
    once: bool = False
    """Whether they are made for one evaluation, and not kept."""
    rules: list[list[CheckedRule]] = field(default_factory=list)
    derived: dict[str, Schema] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)
    _levels: dict[str, int] = field(default_factory=dict)

    def atom(self, view: ViewBody, types: Mapping[str, ColumnType], value: str | None, owner: str) -> Atom:
        """The atom that reads a view, which is made if there is none like it.

        ``types``: of its variables, and of ``value``, which is what the reader calls its value, None where it
        is a set; ``owner``: the head that wants it.
        """
        text, numbers = canonical(view)
        keys = tuple(sorted(view.keys, key=lambda name: numbers[name]))
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = self._next_name(owner)
            self._make(name, view, keys, types, None if value is None else types[value])
        return Atom(name, tuple(map(Variable, keys if value is None else (*keys, value))))

    def type_of(self, expression: Expression, types: Mapping[str, ColumnType]) -> ColumnType:
        """The type of an expression over variables of these types."""
        found = arrow_type(expression, types)
        return ColumnType(self.domains.of(found), found)

    def level(self, name: str) -> int:
        """How many views lie below a relation: 0 for one that is no view."""
        return self._levels.get(name, 0)

    def _next_name(self, owner: str) -> str:
        names = (f"{owner}{VIEW}{number}" for number in itertools.count(1))
        return next(name for name in names if name not in self.derived and name not in self.taken)

    def _make(
        self,
        name: str,
        view: ViewBody,
        keys: tuple[str, ...],
        types: Mapping[str, ColumnType],
        value: ColumnType | None,
    ) -> None:
        call: Aggregate | None = None
        assignments: tuple[Assignment, ...] = ()
        if value is not None:
            call, assignments = view.call(types, wide=self.wide)
        body_types = {n: types[n] for atom in view.atoms for n in _names(atom)}
        body_types |= {one.variable: self.type_of(one.expression, types) for one in assignments}
        body = Body(view.atoms, view.negations, view.comparisons, assignments, body_types)
        columns = [Column(key, types[key]) for key in keys]
        columns += [] if value is None else [Column(free_name("value", keys), value)]
        schema = self.derived[name] = Schema(tuple(columns), functional=value is not None)
        head = CheckedHead(name, keys, call, schema, (0, 0))
        shown = replace_views(body, self.derived)
        text = f"{head_text(name, keys, call)} <- {body_text(shown)}."
        level = 1 + max(self.level(atom.relation) for atom in view.atoms)
        self._levels[name] = level
        while len(self.rules) < level:
            self.rules.append([])
        self.rules[level - 1].append(CheckedRule((head,), (body,), text, (0, 0)))


def replace_views(body: Body, views: Mapping[str, Schema]) -> Body:
    """The body as it reads best: views of sums as the functions that they are."""
    functions = {name for name, schema in views.items() if schema.functional}
    atoms = tuple(
        Atom(atom.relation, atom.terms, functional=atom.functional or atom.relation in functions)
        for atom in body.atoms
    )
    return Body(atoms, body.negations, body.comparisons, body.assignments, body.types)


def arrow_type(expression: Expression, types: Mapping[str, ColumnType]) -> pa.DataType:
    """The Arrow type of an expression over variables of these types."""
    return result_type(expression, {name: type_.arrow for name, type_ in types.items()})


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it where that is taken.

    >>> free_name("n", {"n", "n2"})
    'n3'
    """
    numbered = (f"{wanted}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)


# -- equal up to renaming -----------------------------------------------------------------


def canonical(view: ViewBody) -> tuple[str, dict[str, int]]:
    """The least text of a view, and the number of each variable in it.

    >>> edge, x, y, z = "edge", *map(Variable, "xyz")
    >>> one = ViewBody((Atom(edge, (x, y)), Atom(edge, (y, z))), (), (), (z,), frozenset("x"))
    >>> same = ViewBody((Atom(edge, (x, z)), Atom(edge, (y, x))), (), (), (z,), frozenset("y"))
    >>> canonical(one)[0] == canonical(same)[0], canonical(one)[1] == {"x": 0, "y": 1, "z": 2}
    (True, True)
    """
    best: tuple[str, dict[str, int]] | None = None
    for order in itertools.islice(_orders(view.atoms), MOST_ORDERS):
        numbers: dict[str, int] = {}
        for atom in order:
            for term in atom.terms:
                if isinstance(term, Variable):
                    numbers.setdefault(term.name, len(numbers))
        text = _numbered_text(view, order, numbers)
        if best is None or text < best[0]:
            best = text, numbers
    assert best is not None
    return best


def _orders(atoms: Sequence[Atom]) -> Iterator[tuple[Atom, ...]]:
    """The atoms by relation, those of one relation in every order."""
    ordered = sorted(atoms, key=lambda atom: atom.relation)
    groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda atom: atom.relation)]
    for chosen in itertools.product(*map(itertools.permutations, groups)):
        yield tuple(itertools.chain.from_iterable(chosen))


def _numbered_text(view: ViewBody, order: Iterable[Atom], numbers: Mapping[str, int]) -> str:
    names = {name: Variable(f"?{number}") for name, number in numbers.items()}

    def renamed(atom: Atom) -> Atom:
        terms = (names.get(t.name, t) if isinstance(t, Variable) else t for t in atom.terms)
        return Atom(atom.relation, tuple(terms), atom.functional, atom.negated)

    comparisons = (
        Comparison(one.operator, substituted(one.left, names), substituted(one.right, names))
        for one in view.comparisons
    )
    parts = [
        "set" if view.is_set else "sum",
        ",".join(str(number) for number in sorted(numbers[key] for key in view.keys)),
        ",".join(atom_text(renamed(atom)) for atom in order),
        ",".join(sorted(atom_text(renamed(atom)) for atom in view.negations)),
        ",".join(sorted(map(comparison_text, comparisons))),
        "*".join(sorted(text_of(substituted(factor, names)) for factor in view.factors)),
    ]
    return ";".join(parts)


def _names(atom: Atom) -> list[str]:
    return [term.name for term in atom.terms if isinstance(term, Variable)]
