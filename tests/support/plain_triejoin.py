"""Leapfrog triejoin in plain Python, and random rules to run it on.

The algorithm of LFTJ section 3 over sorted lists, with what the header of
:mod:`lftj.evaluation.trace` says about bounds, negation and short circuit.  Nothing of
the engine is imported but the data's way in.  Only the order in which a node
opens its participants is taken from the trace: any fixed order is right.
"""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import lftj
from support.rules import (
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Head,
    Rule,
    Variable,
    Wildcard,
    aggregate,
    atom,
    compare,
    head,
    no,
    render,
    render_call,
    render_term,
    variables_of,
)

TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
Operation = tuple[int, str, str, int, str, str | None, str | None]
"""A row of the trace: depth, binding, atom, level, operation, from, to."""


# -- the reference -------------------------------------------------------------


@dataclass
class Side:
    """An atom as a trie: its walked variables in key order, and the sorted keys below each prefix."""

    label: str
    levels: list[str]
    n_rows: int
    children: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Atom, rows: set[tuple[int, ...]], order: list[str]) -> Side:
        names = [name_of(term) for term in source.terms]
        label = render_call(source.relation, [render_term(t) for t in source.terms], source.functional)
        agreeing = [
            row
            for row in rows
            if all(
                row[i] == row[j]
                for i, j in itertools.combinations(range(len(names)), 2)
                if names[i] and names[i] == names[j]
            )
        ]
        levels = [name for name in order if name in names]
        made = cls("!" * source.negated + label, levels, len(agreeing))
        keys: dict[tuple[int, ...], set[int]] = {}
        for row in agreeing:
            path = tuple(row[names.index(name)] for name in levels)
            for level, key in enumerate(path):
                keys.setdefault(path[:level], set()).add(key)
        made.children = {prefix: sorted(below) for prefix, below in keys.items()}
        return made


def name_of(term: Any) -> str | None:
    """The variable of a term; a literal's is ``#`` and its value."""
    if isinstance(term, Wildcard):
        return None
    return term.name if isinstance(term, Variable) else f"#{term.value}"


@dataclass(frozen=True)
class Bound:
    """``left OP right + offset``; ``right`` None stands for 0."""

    left: str
    operator: str
    right: str | None
    offset: int

    @property
    def names(self) -> set[str]:
        return {self.left} | ({self.right} if self.right else set())


class Cursor:
    """A linear iterator over sorted keys (LFTJ section 3.1)."""

    def __init__(self, side: Side, level: int, keys: list[int]) -> None:
        self.side, self.level, self.keys, self.at = side, level, keys, 0

    @property
    def ended(self) -> bool:
        return self.at == len(self.keys)

    @property
    def key(self) -> int:
        return self.keys[self.at]

    def seek(self, key: int) -> None:
        self.at = bisect_left(self.keys, key, self.at)


class PlainTriejoin:
    """Leapfrog triejoin, written down as it is read; ``operations`` is the trace, ``found`` the bindings."""

    def __init__(self, case: Case, opening: dict[int, list[tuple[str, int]]]) -> None:
        self.operations: list[Operation] = []
        self.found: list[dict[str, int]] = []
        self.opening = opening
        self.key: dict[str, int] = {}
        atoms = [literal for literal in case.rule.body if isinstance(literal, Atom)]
        atoms.sort(key=lambda literal: literal.negated)
        bounds = [bound_of(c) for c in case.rule.body if isinstance(c, Comparison)]
        self.hopeless = any(b.left == b.right and not TESTS[b.operator](0, b.offset) for b in bounds)
        self.bounds = [b for b in bounds if b.left != b.right]
        literals = list(dict.fromkeys(n for a in atoms for n in map(name_of, a.terms) if n and n[0] == "#"))
        self.bounds += [Bound(name, "=", None, int(name[1:])) for name in literals]
        places: dict[str, int] = dict.fromkeys(head_variables(case.rule.heads[0]), 2)
        for a in atoms:
            for name in {name for term in a.terms if (name := name_of(term))}:
                places[name] = places.get(name, 0) + 1
        for b in self.bounds:
            for name in b.names:
                places[name] = 2
        self.order = literals + [name for name in case.order if places[name] > 1]
        sides = [(a.negated, Side.of(a, case.relations[a.relation], self.order)) for a in atoms]
        self.positive = [side for negated, side in sides if not negated]
        self.negative = [side for negated, side in sides if negated]
        self.hopeless |= any(side.n_rows == 0 for side in self.positive)
        self.hopeless |= any(side.n_rows > 0 and not side.levels for side in self.negative)
        emitted = head_variables(case.rule.heads[0])
        self.emit = max((i + 1 for i, name in enumerate(self.order) if name in emitted), default=0)
        counted = case.rule.heads[0].value is not None
        self.short_circuit = self.emit < len(self.order) and not counted
        self.segments = [] if counted else self.find_segments(set(emitted))
        if not self.hopeless and self.order:
            depth = self.node(0)
            assert depth < 0

    def find_segments(self, emitted: set[str]) -> list[tuple[int, int]]:
        """First and last depth of every existential component that stands behind all that it touches."""
        literals = {b.left for b in self.bounds if b.operator == "=" and b.right is None}
        edges = [set(side.levels) for side in self.positive + self.negative] + [b.names for b in self.bounds]
        left = set(self.order) - emitted - literals
        segments = []
        while left:
            component = {left.pop()}
            while grown := {n for edge in edges if edge & component for n in edge & left}:
                component |= grown
                left -= grown
            touched = {n for edge in edges if edge & component for n in edge} - component
            depths = sorted(self.order.index(name) for name in component)
            together = depths == list(range(depths[0], depths[-1] + 1))
            if together and all(self.order.index(name) < depths[0] for name in touched):
                segments.append((depths[0], depths[-1]))
        return sorted(segments)

    def back(self, depth: int) -> int:
        """Where the search goes when the node has no further match: behind no search that has succeeded."""
        to = depth - 1
        for first, last in reversed(self.segments):
            if to == last:
                to = first - 1
        return to

    def log(self, depth: int, cursor: Cursor, operation: str, start: int | None) -> None:
        bound = self.order[:depth]
        binding = ", ".join(
            str(self.key[name]) if name[0] == "#" else f"{name}={self.key[name]}" for name in bound
        )
        landed = None if cursor.ended else str(cursor.key)
        row = (depth + 1, binding, cursor.side.label, cursor.level, operation)
        self.operations.append((*row, None if start is None else str(start), landed))

    def limits(self, depth: int) -> tuple[float, float]:
        name, low, high = self.order[depth], float("-inf"), float("inf")
        for b in self.due(depth):
            way, key = b.operator, b.offset + (self.key[b.right] if b.right and b.right != name else 0)
            if b.right == name:  # a < x + 3  <=>  x > a - 3
                way, key = FLIPPED[b.operator], self.key[b.left] - b.offset
            if way in (">", ">=", "="):
                low = max(low, key + (way == ">"))
            if way in ("<", "<=", "="):
                high = min(high, key - (way == "<"))
        return low, high

    def due(self, depth: int) -> list[Bound]:
        """Comparisons that the variable of this depth completes."""
        bound = set(self.order[: depth + 1])
        return [b for b in self.bounds if self.order[depth] in b.names and b.names <= bound]

    def node(self, depth: int) -> int:
        """Search below the present binding of the depths before; returns the depth to go on with."""
        name = self.order[depth]
        low, high = self.limits(depth)
        if low <= high:
            for key in self.leapfrog(depth, low, high):
                self.key[name] = key
                if not self.accepts(depth):
                    continue
                if depth + 1 < len(self.order):
                    to = self.node(depth + 1)
                else:
                    self.found.append(dict(self.key))
                    to = self.emit - 1 if self.short_circuit else depth
                if to < depth:
                    return to
        return self.back(depth)

    def leapfrog(self, depth: int, low: float, high: float) -> Iterator[int]:
        """The keys that all participants hold, in order (LFTJ algorithms 1 and 2)."""
        name = self.order[depth]
        ring = []
        for side in self.positive:
            if name in side.levels:
                level = side.levels.index(name)
                prefix = tuple(self.key[before] for before in side.levels[:level])
                ring.append(Cursor(side, level, side.children[prefix]))
        if not ring:  # only an equality binds the variable
            yield int(low)
            return
        if depth in self.opening:
            closed, ring = ring, []
            for opened in self.opening[depth]:
                ring.append(next(cursor for cursor in closed if (cursor.side.label, cursor.level) == opened))
                closed.remove(ring[-1])
            assert not closed, "all are opened"
        for cursor in ring:
            self.log(depth, cursor, "open", None)
            if not cursor.ended and cursor.key < low:
                cursor.seek(int(low))
                self.log(depth, cursor, "seek", int(low))
        if any(cursor.ended for cursor in ring):
            return
        ring.sort(key=lambda cursor: cursor.key)
        turn = 0
        while True:
            highest = ring[turn - 1].key
            while highest <= high and ring[turn].key != highest:
                ring[turn].seek(highest)
                self.log(depth, ring[turn], "seek", highest)
                if ring[turn].ended:
                    return
                highest = ring[turn].key
                turn = (turn + 1) % len(ring)
            if highest > high:
                return
            yield highest
            cursor = ring[turn]
            before, cursor.at = cursor.key, cursor.at + 1
            self.log(depth, cursor, "next", before)
            if cursor.ended:
                return
            turn = (turn + 1) % len(ring)

    def accepts(self, depth: int) -> bool:
        """Whether inequalities and negated atoms, complete here, let the bound key pass."""
        name = self.order[depth]
        for b in self.due(depth):
            right = b.offset + (self.key[b.right] if b.right else 0)
            if b.operator == "!=" and self.key[b.left] == right:
                return False
        allowed = True
        for side in self.negative:
            if name in side.levels:
                level = side.levels.index(name)
                prefix = tuple(self.key[before] for before in side.levels[:level])
                if prefix in side.children:
                    cursor = Cursor(side, level, side.children[prefix])
                    cursor.seek(self.key[name])
                    self.log(depth, cursor, "seek", self.key[name])
                    held = not cursor.ended and cursor.key == self.key[name]
                    allowed &= not (held and level + 1 == len(side.levels))
        return allowed


def bound_of(comparison: Comparison) -> Bound:
    assert isinstance(comparison.left, Variable)
    right = comparison.right
    if isinstance(right, Constant):
        return Bound(comparison.left.name, comparison.operator, None, right.value)
    if isinstance(right, Arithmetic):
        assert isinstance(right.left, Variable) and isinstance(right.right, Constant)
        return Bound(comparison.left.name, comparison.operator, right.left.name, right.right.value)
    assert isinstance(right, Variable)
    return Bound(comparison.left.name, comparison.operator, right.name, 0)


def head_variables(node: Head) -> list[str]:
    return [variable.name for variable in node.variables]


# -- random rules ----------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    relations: dict[str, set[tuple[int, ...]]]
    rule: Rule
    order: list[str]

    @property
    def text(self) -> str:
        return render((self.rule,))

    def database(self) -> lftj.Database:
        db = lftj.Database()
        for name, rows in self.relations.items():
            arity = int(name[1:])
            db.load(name, {f"c{i}": pa.array([row[i] for row in rows], pa.int64()) for i in range(arity)})
        return db


@st.composite
def cases(draw: st.DrawFn, plain: bool = False) -> Case:
    """``r1``, ``r2`` and ``r3`` are of that arity.  ``plain``: no negation, comparison or aggregate."""
    relations = {}
    for arity in (1, 2, 3):
        key = st.integers(0, draw(st.sampled_from((2, 5, 9))))
        relations[f"r{arity}"] = draw(
            st.sets(st.tuples(*[key] * arity), min_size=draw(st.integers(0, 6)), max_size=16)
        )
    names = "abcd"[: draw(st.integers(1, 4))]

    def term(known: str) -> Any:
        choice = draw(st.integers(0, 9))
        if choice == 9:
            return draw(st.integers(0, 4))
        return "_" if choice == 8 else draw(st.sampled_from(known))

    def some_atom(known: str, make: Any) -> Atom:
        arity = draw(st.sampled_from((1, 2, 2, 3)))
        made = make(f"r{arity}", *(term(known) for _ in range(arity)))
        assert isinstance(made, Atom)
        return made

    body: list[Any] = [some_atom(names, atom) for _ in range(draw(st.integers(1, 4)))]
    body.append(atom("r1", draw(st.sampled_from(names))))
    bound = "".join(dict.fromkeys(name for literal in body for name in variables_of(literal)))
    if not plain:
        body += [some_atom(bound, no) for _ in range(draw(st.sampled_from((0, 0, 1, 2))))]
        for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
            right: Any = draw(st.sampled_from((*bound, 3)))
            if isinstance(right, str) and draw(st.booleans()):
                right = Arithmetic("+", Variable(right), Constant(draw(st.integers(1, 3))))
            body.append(compare(draw(st.sampled_from(bound)), draw(st.sampled_from(sorted(TESTS))), right))
    emitted = draw(st.lists(st.sampled_from(bound), min_size=1, unique=True))
    counts = not plain and draw(st.integers(0, 4)) == 4
    made = head("h", *emitted, value=aggregate("count") if counts else None)
    rule = Rule((made,), tuple(draw(st.permutations(body))))
    return Case(relations, rule, list(draw(st.permutations(bound))))
