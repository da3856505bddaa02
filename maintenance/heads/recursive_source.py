"""Recursive heads: each is a source of its own, and all of a component share what keeps it.

Invariant: a component is built or stepped once for all its heads, by the first of them that asks; the others
take theirs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lftj.language.body import CheckedProgram
from maintenance.heads.keeping import Keeping
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest, KeptComponent
from maintenance.strategies.strategy import Building, HeadSource, Read, Round, Tuples, Versions


def component_reads(program: CheckedProgram, names: Iterable[str]) -> frozenset[str]:
    """The relations in the rules of some heads."""
    return frozenset(
        read
        for name in names
        for rule, _ in program.rules_of(name)
        for body in rule.bodies
        for read in body.relations
    )


class KeptComponents:
    """What keeps the components of one program; made as its heads are planned."""

    def __init__(self, program: CheckedProgram, keepings: Mapping[str, Keeping]) -> None:
        """``keepings``: of the heads; those of a component agree."""
        self._program = program
        self._keepings = keepings
        self._made: dict[tuple[str, ...], KeptComponent] = {}

    def source_of(self, name: str) -> RecursiveSource:
        """The source of a recursive head."""
        names = self._program.component_of(name)
        if names not in self._made:
            keeping = self._keepings[name]
            reads = component_reads(self._program, names) - set(names)
            request = ComponentRequest(names, self._program, reads, keeping.max_rounds)
            self._made[names] = keeping.made_for_component().plan(request)
        return RecursiveSource(name, self._made[names], self._program)


class RecursiveSource(HeadSource):
    """All tuples of one head of a component."""

    is_distinct = True
    is_net = True

    def __init__(self, name: str, component: KeptComponent, program: CheckedProgram) -> None:
        self._name = name
        self._component = component
        schema = program.derived[name]
        self.is_function = schema.functional  # the component refuses two values
        self.sorted_by = tuple(range(len(schema.columns)))

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (self._component,)

    @property
    def reads(self) -> Iterable[Read]:
        return self._component.reads

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        return self._component.nan_free

    def build(self, building: Building) -> Tuples:
        return self._component.built(building)[self._name]

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        component = self._component
        return change.shared.once(component, lambda: component.step(change, stats))[self._name]

    def check_counters(self, versions: Versions) -> None:
        self._component.check_counters(versions)

    def describe(self) -> list[str]:
        return self._component.describe()
