"""A join problem: a rule's body in codes, before a key order is chosen and apart from all data.

Codes stand instead of literals.  What can be said of a problem and an order
is here too: which existential components short-circuit, and whether rows can
come out twice.

Invariant: an existential component (existential variables connected to each
other by an atom, negation or condition) that stands together in the order,
behind all other variables that it touches, is a *segment*: it is left at its
first success, and failing later jumps back over it (docs/design/engine.md section 3, short
circuit and separate searches; ILFTJ 2.2.1).  Rows come out distinct unless an
existential variable outside a segment stands before an emitted one that does not determine it, by
constants and keys of relations (functional dependencies; Abiteboul, Hull and Vianu 1995, 8.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lftj.storage.catalog import Side, Table
from lftj.values.domain import Domain
from lftj.values.schema import Schema


@dataclass(frozen=True)
class JoinAtom:
    """An atom: ``columns[i]`` of the rows of ``relation`` is ``variables[i]``.

    Only rows count in which each pair of ``equal`` columns agrees.  ``counted``: columns that are not
    walked, but whose distinct combinations count into the weight of an assignment.  The columns that are
    left are proved by a present prefix.
    """

    relation: str
    schema: Schema
    columns: tuple[int, ...]
    variables: tuple[str, ...]
    equal: tuple[tuple[int, int], ...] = ()
    counted: tuple[int, ...] = ()
    label: str = ""
    side: Side = Side.NEW

    @property
    def arity(self) -> int:
        return len(self.schema.columns)

    @property
    def identity(self) -> tuple[int, ...]:
        """Columns that tell the relation's rows apart."""
        return self.schema.identity

    @property
    def key_variables(self) -> frozenset[str] | None:
        """The variables of the columns in which no two rows agree; None where there are none, or not all
        have one.  Of what has changed there may be two rows of a key."""
        if not self.schema.key or self.side is Side.CHANGE:
            return None
        first = {column: walked for walked, column in self.equal}
        variables = dict(zip(self.columns, self.variables, strict=True))
        numbers = [first.get(number, number) for number in self.schema.key_numbers]
        return frozenset(map(variables.__getitem__, numbers)) if variables.keys() >= set(numbers) else None

    def n_rows(self, table: Table) -> int:
        """Of an atom without variables: how many assignments it stands for, 0 when nothing satisfies it."""
        if not self.equal and (not self.counted or set(self.identity) <= set(self.counted)):
            return table.n_rows
        columns = self.counted or (0,)
        return table.n_branches((columns, self.equal), len(columns) - 1)

    def levels(self, order: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The walked columns in key order, and the variable of each."""
        place = {name: depth for depth, name in enumerate(order)}
        by_depth = sorted(range(len(self.columns)), key=lambda i: place[self.variables[i]])
        return tuple(self.columns[i] for i in by_depth), tuple(self.variables[i] for i in by_depth)


@dataclass(frozen=True)
class JoinCondition:
    """``left OP right + offset``, on codes; ``right`` None stands for 0.

    ``ranked``: the domain by whose order of values codes are compared, where that is not theirs.
    """

    left: str
    operator: str  # < <= > >= = !=
    right: str | None
    offset: int = 0
    ranked: Domain | None = None
    label: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True)
class JoinProblem:
    """What to join.

    ``counted``: variables that are not emitted count into weights; else they are existential.
    """

    atoms: tuple[JoinAtom, ...]
    negations: tuple[JoinAtom, ...] = ()
    conditions: tuple[JoinCondition, ...] = ()
    emitted: tuple[str, ...] = ()
    counted: bool = False
    labels: dict[str, str] = field(default_factory=dict)  # how to show a variable that stands for a constant

    def with_offsets(self, offsets: Sequence[int]) -> JoinProblem:
        """The same with other offsets of its conditions; no other property depends on these."""
        made = object.__new__(JoinProblem)
        made.__dict__.update(self.__dict__)
        conditions = [
            condition if condition.offset == offset else replace(condition, offset=offset)
            for condition, offset in zip(self.conditions, offsets, strict=True)
        ]
        made.__dict__["conditions"] = tuple(conditions)
        return made

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Every variable once, in the order of first occurrence."""
        seen: dict[str, None] = {}
        for atom in (*self.atoms, *self.negations):
            seen.update(dict.fromkeys(atom.variables))
        for condition in self.conditions:
            seen.update(dict.fromkeys(condition.variables))
        return tuple(seen)

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations of its atoms and negations, each once."""
        return tuple(dict.fromkeys(atom.relation for atom in (*self.atoms, *self.negations)))

    @cached_property
    def unbound(self) -> tuple[tuple[JoinAtom, bool], ...]:
        """Atoms without variables, and whether they are negated: they only ask whether a row fits."""
        sides = ((self.atoms, False), (self.negations, True))
        return tuple((atom, negated) for atoms, negated in sides for atom in atoms if not atom.variables)

    def without_unbound(self) -> JoinProblem:
        """The problem of the other atoms."""
        atoms = tuple(atom for atom in self.atoms if atom.variables)
        negations = tuple(atom for atom in self.negations if atom.variables)
        return replace(self, atoms=atoms, negations=negations)

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """What a plan depends on: all but the codes of constants."""
        compared = tuple((c.left, c.operator, c.right, c.ranked, c.label) for c in self.conditions)
        return self.atoms, self.negations, compared, self.emitted, self.counted

    @cached_property
    def existentials(self) -> frozenset[str]:
        return frozenset() if self.counted else frozenset(self.variables) - frozenset(self.emitted)

    @cached_property
    def edges(self) -> tuple[tuple[str, ...], ...]:
        """Sets of variables that an atom, negation or condition ties together."""
        tied = [atom.variables for atom in (*self.atoms, *self.negations)]
        return (*tied, *(condition.variables for condition in self.conditions))

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Variables that an equality with a constant binds."""
        return frozenset(c.left for c in self.conditions if c.operator == "=" and c.right is None)

    @cached_property
    def determined(self) -> frozenset[str]:
        """Variables that have one value for each of what is emitted."""
        return self.closure(self.emitted)

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Variables that have one value where some have, by constants and the keys of relations."""
        found = self.pinned.union(names)
        atoms = [(atom, of_key) for atom in self.atoms if (of_key := atom.key_variables) is not None]
        while more := [
            atom for atom, of_key in atoms if of_key <= found and not found.issuperset(atom.variables)
        ]:
            found = found.union(*(atom.variables for atom in more))
        return found

    @cached_property
    def components(self) -> tuple[frozenset[str], ...]:
        """Existential components (invariant 3).  Constants tie nothing together."""
        return connected(self.existentials - self.pinned, self.edges)


def connected(names: frozenset[str], edges: Sequence[tuple[str, ...]]) -> tuple[frozenset[str], ...]:
    """Connected components of ``names`` under hyperedges, restricted to ``names``.

    >>> connected(frozenset("abc"), [("a", "x"), ("b", "x"), ("b", "c")]) == (frozenset("a"), frozenset("bc"))
    True
    """
    parts: list[set[str]] = [{name} for name in sorted(names)]
    for edge in edges:
        inside = names.intersection(edge)
        touched = [part for part in parts if part & inside]
        if len(touched) > 1:
            parts = [part for part in parts if not part & inside] + [set().union(*touched)]
    return tuple(sorted((frozenset(part) for part in parts), key=sorted))


def segments_of(problem: JoinProblem, order: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """First and last depth of every existential component that can short-circuit under this order."""
    place = {name: depth for depth, name in enumerate(order)}
    found = []
    for component in problem.components:
        if not component <= place.keys():
            continue
        depths = sorted(place[name] for name in component)
        first, last = depths[0], depths[-1]
        if last - first + 1 != len(depths):
            continue
        touching = {n for edge in problem.edges if component & set(edge) for n in edge} - component
        if all(place.get(name, len(order)) < first for name in touching):
            found.append((first, last))
    return tuple(sorted(found))


def needs_distinct(problem: JoinProblem, order: Sequence[str], segments: Sequence[tuple[int, int]]) -> bool:
    """Whether one emitted row may come up twice under this order."""
    emit = emit_depth(problem, order)
    inside = {depth for first, last in segments for depth in range(first, last + 1)}
    free = problem.existentials - problem.determined
    return any(order[depth] in free and depth not in inside for depth in range(emit))


def emit_depth(problem: JoinProblem, order: Sequence[str]) -> int:
    return max((depth + 1 for depth, name in enumerate(order) if name in problem.emitted), default=0)
