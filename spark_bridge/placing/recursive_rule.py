"""All rules of a head that depends on itself, which a cell evaluates to their fixpoint.

    reach(s, y) <- edge(s, y).                     edge(s, _): by the part of s
    reach(s, z) <- reach(s, y), edge(y, z).        edge(_, _): whole, in each cell

A column of a head *stays* where each rule has one variable there and in the same place of each atom of the
*component*, the heads that depend on each other.  So a tuple rests on tuples with the same value alone.  What
stays is an axis: a cell that has all tuples with the values of its part, and what has no such column whole,
finds the head's tuples with those values, and no other cell finds them.  Nothing is sent between rounds.

Invariants

1. An axis is a column in each head of the component, and a variable that every body binds (invariants of
   :mod:`spark_bridge.placing.head_rule`): so a cell's tuples have values of its parts alone.
2. No variable of a rule is two axes.

Without an axis one cell has everything, and whoever plans has to know (``HeadPlan.by_rounds``).

Source: Wolfson and Silberschatz, "Distributed processing of logic programs" (SIGMOD 1988), decomposable
programs; Seib and Lausen, "Parallelizing Datalog programs by generalized pivoting" (PODS 1991).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.strata import atoms_of
from lftj.language.syntax import Atom, Disjunction, Literal, Program, Rule, Term, Variable
from lftj.values.schema import Schema
from spark_bridge.placing.head_rule import HeadRule, Marks, cell_name, role_of

Places = Mapping[str, int]
"""By head of a component, the place of a column."""


@dataclass(frozen=True)
class OneHead:
    """A rule with one of its heads; ``axes``: the variables that could be cut."""

    syntax: Rule
    checked: CheckedRule
    heads: tuple[CheckedHead, ...]
    axes: tuple[str, ...]

    @property
    def name(self) -> str:
        (head,) = self.syntax.heads
        return head.relation

    def at(self, places: Places) -> str:
        """The variable in a place of its head; none where something else is there, or it can't be cut."""
        term = self.syntax.heads[0].columns[places[self.name]]
        return term.name if isinstance(term, Variable) and term.name in self.axes else ""


@dataclass(frozen=True)
class RecursiveRule(HeadRule):
    """The rules of a component for one of its heads; what a HeadRule has of one is the head's first."""

    component: tuple[str, ...] = ()
    parts: tuple[OneHead, ...] = ()
    cut: tuple[Mapping[str, str], ...] = ()  # of each part, by variable what the axis is called

    @property
    def aggregates(self) -> bool:
        """The best values are found by the cells."""
        return False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.checked.text for part in self.parts))

    @property
    def written(self) -> tuple[Rule, ...]:
        return tuple(part.syntax for part in self.parts)

    def products(self) -> list[str]:
        """A rule that reads its own head need not begin with what it joins."""
        return []

    def program(self, marks: Marks) -> Program:
        rules = []
        for part, axes in zip(self.parts, self.cut, strict=True):
            (head,) = part.syntax.heads
            body = tuple(self._in_cell(literal, axes, marks) for literal in part.syntax.body)
            rules.append(
                replace(part.syntax, heads=(replace(head, relation=cell_name(head.relation)),), body=body)
            )
        return Program(tuple(rules), self.text)

    def _in_cell(self, literal: Literal, axes: Mapping[str, str], marks: Marks) -> Literal:
        if isinstance(literal, Disjunction):
            alternatives = tuple(
                tuple(self._in_cell(one, axes, marks) for one in alternative)
                for alternative in literal.alternatives
            )
            return replace(literal, alternatives=alternatives)
        if not isinstance(literal, Atom):
            return literal
        if literal.relation in self.component:
            return replace(literal, relation=cell_name(literal.relation))
        return replace(literal, relation=role_of(literal, axes).placement(marks).label)


def recursive_rule(
    name: str, component: tuple[str, ...], parts: Sequence[OneHead], schema: Schema, text: str
) -> RecursiveRule:
    """The rules of a component, ``parts``, for the head ``name``."""
    first = next(part for part in parts if part.name == name)
    cut: list[dict[str, str]] = [{} for _ in parts]
    for column in range(len(schema.columns) - schema.functional):
        stays = _staying(name, column, component, parts)
        if stays is None or any(part.at(stays) in axes for part, axes in zip(parts, cut, strict=True)):
            continue
        for part, axes in zip(parts, cut, strict=True):
            axes[part.at(stays)] = first.at(stays)
    roles = tuple(
        dict.fromkeys(
            role_of(atom, axes)
            for part, axes in zip(parts, cut, strict=True)
            for atom in atoms_of(part.syntax.body)
            if atom.relation not in component
        )
    )
    called = tuple(cut[parts.index(first)].values())
    return RecursiveRule(
        first.syntax, text, first.checked, first.heads, called, roles, component, tuple(parts), tuple(cut)
    )


def _staying(name: str, column: int, component: Sequence[str], parts: Sequence[OneHead]) -> Places | None:
    """Where the values of a head's column are in all heads of its component; None where they don't stay."""
    places, done = {name: column}, set[str]()
    while todo := [head for head in places if head not in done]:
        done.add(todo[0])
        for part in (part for part in parts if part.name == todo[0]):
            variable = part.at(places)
            for atom in (atom for atom in atoms_of(part.syntax.body) if atom.relation in component):
                found = [place for place, term in enumerate(atom.terms) if _is(term, variable)]
                if not found or places.setdefault(atom.relation, found[0]) not in found:
                    return None
            if not variable:
                return None
    return places


def _is(term: Term, variable: str) -> bool:
    return isinstance(term, Variable) and term.name == variable
