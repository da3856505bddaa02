"""What atoms of bodies bind of the heads that they read, and what columns of a head can be bound at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lftj.language.body import Body, CheckedHead, CheckedProgram
from lftj.language.syntax import Aggregate, Atom, Term, Variable
from lftj.rewriting.elimination import Names
from lftj.rewriting.joins import of_atom


@dataclass(frozen=True)
class Read:
    """An atom of a body; ``constants``: its columns that stand for one key.

    ``place``: its reader as written, and which of the atoms of its bodies it is.
    """

    place: str
    head: CheckedHead
    body: Body
    atom: Atom
    constants: frozenset[int]

    @property
    def reader(self) -> str:
        return self.head.relation

    def columns(self, bound: Names) -> frozenset[int]:
        """Those of its columns that are constants or some variables; of a function the keys only."""
        terms = self.atom.terms[:-1] if self.atom.functional else self.atom.terms
        found = {at for at, term in enumerate(terms) if isinstance(term, Variable) and term.name in bound}
        return frozenset(found | self.constants & set(range(len(terms))))


# -- what can be bound -------------------------------------------------------------------------


def eligible_columns(program: CheckedProgram, name: str) -> frozenset[int]:
    """The columns by which a head can be restricted."""
    columns = program.derived[name].columns
    found = {at for at, column in enumerate(columns) if column.type.domain.name != "float"}
    for rule, head in program.rules_of(name):
        names = set(head.variables)
        for window in head.windows:
            names &= {one.name for one in window.per}
        for body in rule.bodies:
            names &= set(body.atom_variables())
        found &= {at for at, variable in enumerate(head.variables) if variable in names}
    return frozenset(found)


def static_columns(within: Sequence[Read]) -> frozenset[int]:
    """The columns that each of a recursive head's reads of itself has from the head."""
    found = None
    for read in within:
        names = read.head.variables
        same = {at for at, name in enumerate(names) if read.atom.terms[at] == Variable(name)}
        found = same if found is None else found & same
    return frozenset(found or ())


def listed_by(head: CheckedHead) -> tuple[str, ...]:
    """The variables of a body that a head lists."""
    value = head.value.arguments if isinstance(head.value, Aggregate) else ()
    others = [head.value] if isinstance(head.value, str) else names_of(value)
    return tuple(dict.fromkeys((*head.variables, *others)))


def names_of(terms: Iterable[Term]) -> tuple[str, ...]:
    """The variables among terms, each once."""
    return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))


# -- connected atoms ---------------------------------------------------------------------------


def connected(atoms: Sequence[Atom], wanted: Iterable[str]) -> list[Atom]:
    """The atoms that share variables with those of some names, directly or not, in their order."""
    known = set(wanted)
    found: set[int] = set()
    while True:
        more = {at for at, one in enumerate(atoms) if at not in found and of_atom(one) & known}
        if not more:
            return [one for at, one in enumerate(atoms) if at in found]
        found |= more
        known.update(*(of_atom(atoms[at]) for at in more))


def reached_from(own: Atom, atoms: Sequence[Atom]) -> list[Atom]:
    """An atom of keys, and those that it leads to; all where it has none."""
    return [own, *connected(atoms, of_atom(own))] if own.terms else [*atoms]


def parts_of(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """All atoms, and where they do not hang together each part alone; none at all for constants."""
    parts: list[list[Atom]] = []
    for one in atoms:
        if of_atom(one) and not any(one in part for part in parts):
            parts.append(connected(atoms, of_atom(one)))
    return [[], *parts, *([[*atoms]] if len(parts) > 1 else [])]
