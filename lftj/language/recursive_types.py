"""Column types of relations that depend on each other: the least that fit all their rules.

A rule's head takes its types from the body, which may read the head.  So types go round too: what rules over
complete relations give is what those that read the component begin with, and types are joined
until they stay.  Alternatives of a disjunction count as rules of their own, for one of them may begin.

Rules that are wrong give no types here: the checker reports them when it comes to them.

Cost: a check of the component's rules per round; types widen, and decimals at most ``ROUNDS`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lftj.errors import RuleError, TypeClashError
from lftj.language.body import Body
from lftj.language.body_checker import BodyChecker
from lftj.language.diagnostics import error_at
from lftj.language.normal_form import conjunctions
from lftj.language.strata import atoms_of
from lftj.language.syntax import Aggregate, Head, Program, Variable
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

ROUNDS = 100
"""Types that still change after so many rounds grow for ever."""

Types = list[ColumnType]


class RecursiveTypes:
    """Finds the types of one component.

    ``schema_of``: of relations outside; ``term_type``: of a head's column over a body.
    """

    def __init__(
        self,
        program: Program,
        domains: Domains,
        component: Sequence[str],
        schema_of: Callable[[str], Schema],
        term_type: Callable[[Variable | Aggregate, Body], ColumnType],
    ) -> None:
        self._program = program
        self._domains = domains
        self._component = component
        self._schema_outside = schema_of
        self._term_type = term_type
        self._types: dict[str, Types] = {}
        self.numbers = [
            number
            for number, rule in enumerate(program.rules)
            if any(head.relation in component for head in rule.heads)
        ]
        """Of the component's rules."""

    def found(self) -> dict[str, Types]:
        """The types of each relation's columns; none of a relation that no rule begins.

        Raises TypeClashError where they never stay.
        """
        for _ in range(ROUNDS):
            before = {name: list(types) for name, types in self._types.items()}
            growing = [head for number in self.numbers for head in self._take(number)]
            if before == self._types:
                return self._types
        head = growing[0]
        message = f"the types of '{head.relation}' grow from round to round of its recursion"
        raise error_at(TypeClashError, self._program.text, head.span, message)

    def is_typed(self, number: int) -> bool:
        """Whether the types of all that a rule reads are known."""
        return all(self._is_known(atom.relation) for atom in atoms_of(self._program.rules[number].body))

    def _is_known(self, relation: str) -> bool:
        return relation not in self._component or relation in self._types

    def _schema_of(self, name: str) -> Schema:
        if name not in self._types:
            return self._schema_outside(name)
        types = enumerate(self._types[name])
        columns = (Column(f"{number}", replace(type_, literal=False)) for number, type_ in types)
        return Schema(tuple(columns))

    def _take(self, number: int) -> list[Head]:
        """Join in what the alternatives of a rule give; the heads that this changes."""
        rule = self._program.rules[number]
        changed = []
        for part in conjunctions(rule.body, self._program.text):
            if not all(self._is_known(atom.relation) for atom in (*part.atoms, *part.negations)):
                continue
            try:
                (body,) = BodyChecker(
                    self._program.text, self._domains, self._schema_of, [part], rule.heads
                ).bodies()
            except RuleError:
                continue
            for head in rule.heads:
                bound = all(variable.name in body.types for variable in head.variables)
                if head.relation in self._component and bound and self._join(head, body):
                    changed.append(head)
        return changed

    def _join(self, head: Head, body: Body) -> bool:
        """Join in a head's types over a body; whether that changes any."""
        types = [self._term_type(term, body) for term in head.columns]
        known = self._types.get(head.relation)
        if known is None:
            self._types[head.relation] = types
            return True
        joined = [_common(ours, theirs) for ours, theirs in zip(known, types, strict=True)]
        self._types[head.relation] = joined
        return joined != known


def _common(known: ColumnType, other: ColumnType) -> ColumnType:
    """The type that holds both; the known one where there is none, which the checker reports."""
    try:
        return known.joined(other) or known
    except TypeClashError:
        return known
