"""Joins by what is computed: ``ON a.x % 10 = b.k`` as an atom.

A search joins by variables, and an equality of what is computed is tested on rows that it found.  Where
nothing else joins two parts of a body, these would be all pairs.  So of::

    out(..) <- a(x, ..), b(k, ..), x % 10 = k.

the computed side has a head of its own, by which the parts are joined::

    key(x, k) <- a(x, ..), k = x % 10.
    out(..)   <- a(x, ..), key(<=> x, k), b(k, ..).

Invariants

1. What is computed is a function of a row, so the body has as many assignments as before.
2. Where a part has an atom with all that a side reads, nothing else is asked for its key.

Cost: a head of the distinct values that a side reads, and a look-up in it for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from lftj.sql.nodes import Call, Compare, Constant, Exists, Expression, Variable
from lftj.sql.translation.bodies import Atom, Body, Head
from lftj.sql.translation.expressions import variables
from lftj.sql.translation.text import UNIFIED
from lftj.sql.types import kind


class Heads(Protocol):
    """What makes heads, and bodies that read them."""

    def head(
        self,
        wanted: str,
        rows: Sequence[tuple[Body, Sequence[Expression]]],
        *,
        types: Sequence[str],
        key: int | None = None,
    ) -> Head: ...

    def read(self, head: Head) -> Body: ...


def with_keys(t: Heads, body: Body) -> Body:
    """The body, joined where only an equality of what is computed joins two parts of it."""
    if len(body.atoms) < 2 or not any(map(_computes, body.tests)):
        return body
    parts = _Parts(body)
    for number, test in enumerate(body.tests):
        if not _computes(test):
            continue
        assert isinstance(test, Compare)
        left, right = parts.of(test.left), parts.of(test.right)
        if len(left) == len(right) == 1 and left != right:
            sides = []
            for side in (test.left, test.right):
                if not isinstance(side, Variable):
                    body, side = _keyed(t, body, side, parts)
                sides.append(side)
            tests = list(body.tests)
            tests[number] = replace(test, left=sides[0], right=sides[1])
            body = replace(body, tests=tuple(tests))
            parts.join(left | right)
    return body


def _computes(test: Expression) -> bool:
    """Whether it is an equality by which a search could join if what it computes were there."""
    if not isinstance(test, Compare) or test.operator != "=":
        return False
    left, right = kind(test.left.type), kind(test.right.type)
    same = test.left.type == test.right.type or (left == right and left in UNIFIED)
    return same and left != "float" and not (_is_bound(test.left) and _is_bound(test.right))


def _is_bound(side: Expression) -> bool:
    """A variable, perhaps moved by a constant: such ones bound the search of each other."""
    if isinstance(side, Call) and side.function in ("+", "-") and kind(side.type) in ("integer", "date"):
        return all(isinstance(part, Variable | Constant) for part in side.arguments)
    return isinstance(side, Variable)


def _is_joined(test: Expression) -> bool:
    if not isinstance(test, Compare) or test.operator not in ("=", "<=>"):
        return False
    return isinstance(test.left, Variable) and isinstance(test.right, Variable)


def _keyed(t: Heads, body: Body, side: Expression, parts: _Parts) -> tuple[Body, Variable]:
    """The body with an atom of a head that has the values of a side, and the variable of these."""
    read = list(dict.fromkeys(variables(side)))
    numbers = {one.number for one in read}
    (part,) = parts.of(side)
    alone = [atom for atom in parts.atoms if numbers <= {of.number for _, of in atom.terms}]
    atoms = alone[:1] or [atom for atom in parts.atoms if parts.root(atom) == part]
    known = {of.number for atom in atoms for _, of in atom.terms}
    tests = tuple(
        test for test in body.tests if (names := {one.number for one in variables(test)}) and names <= known
    )
    types = [*(one.type for one in read), side.type]
    head = t.head("key", [(Body(tuple(atoms), tests), (*read, side))], types=types, key=len(read))
    found = t.read(head)
    *arguments, key = found.columns
    assert isinstance(key, Variable)
    same = tuple(Compare("<=>", one, of) for one, of in zip(read, arguments, strict=True))
    return replace(body, atoms=(*body.atoms, *found.atoms), tests=(*body.tests, *same)), key


class _Parts:
    """The atoms of a body, those in one part that variables join, directly or not."""

    def __init__(self, body: Body) -> None:
        self.atoms = body.atoms
        self._parent = list(range(len(self.atoms)))
        self._owner = {of.number: at for at, atom in enumerate(self.atoms) for _, of in atom.terms}
        for test in body.tests:
            if isinstance(test, Exists) or _is_joined(test):
                self.join(self.of(test))

    def _root(self, at: int) -> int:
        while self._parent[at] != at:
            at = self._parent[at]
        return at

    def root(self, atom: Atom) -> int:
        return self._root(next(at for at, one in enumerate(self.atoms) if one is atom))

    def of(self, expression: Expression) -> frozenset[int]:
        """The parts that an expression reads; none where it reads what no atom has."""
        numbers: Sequence[int] = [one.number for one in variables(expression)]
        if not all(number in self._owner for number in numbers):
            return frozenset()
        return frozenset(self._root(self._owner[number]) for number in numbers)

    def join(self, parts: frozenset[int]) -> None:
        for part in parts:
            self._parent[part] = min(parts)
