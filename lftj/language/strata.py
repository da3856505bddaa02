"""Strata: in which order the rules of a program are evaluated.

A relation *reads* those in the bodies of its rules.  A rule's stratum is one
more than the highest stratum of the rules behind any relation that it reads, so
every relation is complete before it is read.  Recursion has no such order: a
cycle is refused, with its relations in the message.

Cost: linear in the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lftj.errors import RecursionNotSupportedError, RuleError, StratificationError
from lftj.language.diagnostics import error_at
from lftj.language.syntax import Atom, Disjunction, Literal, Program, Rule


@dataclass(frozen=True)
class _Reading:
    """``reader`` reads ``atom``; strict: through a negation or into an aggregate."""

    reader: str
    atom: Atom
    aggregated: bool

    @property
    def strict(self) -> bool:
        return self.aggregated or self.atom.negated


def atoms_of(body: Iterable[Literal]) -> Iterator[Atom]:
    """All atoms of a body, those of its disjunctions included, in the order of writing."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal
        elif isinstance(literal, Disjunction):
            for alternative in literal.alternatives:
                yield from atoms_of(alternative)


def stratify(program: Program) -> list[list[int]]:
    """Numbers of the program's rules, stratum by stratum, in the order of writing within each.

    Raises :class:`~lftj.errors.StratificationError` for a cycle through a negation or an aggregate,
    :class:`~lftj.errors.RecursionNotSupportedError` for any other.

    >>> from lftj.language.parser import parse
    >>> stratify(parse("far(a) <- two(a, b). two(a, c) <- edge(a, b), edge(b, c)."))
    [[1], [0]]
    """
    rules_of: dict[str, list[Rule]] = {}
    readings: dict[str, list[_Reading]] = {}
    for rule in program.rules:
        for head in rule.heads:
            rules_of.setdefault(head.relation, []).append(rule)
            readings.setdefault(head.relation, [])
    for rule in program.rules:
        for head in rule.heads:
            aggregated = bool(head.aggregates)
            read = [atom for atom in atoms_of(rule.body) if atom.relation in rules_of]
            readings[head.relation] += [_Reading(head.relation, atom, aggregated) for atom in read]
    components = _components(readings)
    _refuse_cycles(program, readings, components)
    complete: dict[str, int] = {}  # relation -> the last stratum of its rules
    for (name,) in components:
        complete[name] = max(_level(rule, complete) for rule in rules_of[name])
    strata: list[list[int]] = [[] for _ in range(max(complete.values(), default=-1) + 1)]
    for number, rule in enumerate(program.rules):
        strata[_level(rule, complete)].append(number)
    return strata


def _level(rule: Rule, complete: dict[str, int]) -> int:
    return 1 + max((complete.get(atom.relation, -1) for atom in atoms_of(rule.body)), default=-1)


def _refuse_cycles(
    program: Program, readings: dict[str, list[_Reading]], components: list[tuple[str, ...]]
) -> None:
    component_of = {name: component for component in components for name in component}
    inside = [
        reading
        for reader in readings
        for reading in readings[reader]
        if reading.atom.relation in component_of[reader]
    ]
    if inside:
        # A cycle through a negation or an aggregate has no meaning at all: name it first.
        first = next((reading for reading in inside if reading.strict), inside[0])
        raise _cycle_error(program, readings, component_of[first.reader], first)


def _cycle_error(
    program: Program, readings: dict[str, list[_Reading]], component: tuple[str, ...], first: _Reading
) -> RuleError:
    """The shortest cycle that starts with the reading ``first``."""
    came_from: dict[str, str] = {}
    goal, queue = first.reader, [first.atom.relation]
    for name in queue:
        for reading in readings[name]:
            read = reading.atom.relation
            if read in component and read not in came_from and read != first.atom.relation:
                came_from[read] = name
                queue.append(read)
    way = [goal]
    while way[-1] != first.atom.relation:
        way.append(came_from[way[-1]])
    cycle = " -> ".join([goal, *reversed(way)])
    span = first.atom.name_span
    if first.strict:
        reason = "negation" if first.atom.negated else "aggregate"
        message = f"'{goal}' depends on its own {reason}: {cycle}"
        return error_at(StratificationError, program.text, span, message)
    message = f"'{goal}' depends on itself, and recursion is not supported: {cycle}"
    return error_at(RecursionNotSupportedError, program.text, span, message)


def _components(readings: dict[str, list[_Reading]]) -> list[tuple[str, ...]]:
    """Strongly connected components of "reads", those that are read before those that read them.

    Tarjan's algorithm, without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    done: set[str] = set()
    stack: list[str] = []
    components: list[tuple[str, ...]] = []
    for root in readings:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        path = [(root, iter(readings[root]))]
        while path:
            name, rest = path[-1]
            for reading in rest:
                read = reading.atom.relation
                if read not in index:
                    index[read] = low[read] = len(index)
                    stack.append(read)
                    path.append((read, iter(readings[read])))
                    break
                if read not in done:
                    low[name] = min(low[name], index[read])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == index[name]:
                    component = [stack.pop()]
                    while component[-1] != name:
                        component.append(stack.pop())
                    components.append(tuple(component))
                    done.update(component)
    return components
