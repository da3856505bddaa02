"""Strata: in which order the rules of a program are evaluated, and which of them go round.

A relation *reads* those in the bodies of its rules.  Relations that read each other, directly or not, are
a *component*: a strongly connected one of "reads".  A relation of a component with a cycle is *recursive*,
and so is the component: its rules are evaluated together, to the least fixpoint.

Invariants

1. A rule's stratum is one more than the highest stratum of the rules behind any relation that it reads, those
   of its head's own component aside; all rules of a recursive component stand in one stratum.  So every
   relation is complete before one of another component reads it.
2. No cycle goes through a negation or an aggregate: it would have no least fixpoint.  It is refused, with its
   relations in the message.  The ``min`` or ``max`` of a functional head may be on a cycle, as far as its
   values can only get better by that (:mod:`lftj.language.monotone`).
3. The heads of one rule may stand in several strata: one is recursive, and another only reads that one.

Cost: linear in the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from lftj.errors import RuleError, StratificationError
from lftj.language.diagnostics import error_at
from lftj.language.syntax import Atom, Disjunction, Literal, Program, Rule


@dataclass(frozen=True)
class _Reading:
    """``reader`` reads ``atom``; ``counted``: what it counts by it, but for an extremum.

    Strict: it has to be complete, for what is counted or negated.
    """

    reader: str
    atom: Atom
    counted: str | None

    @property
    def strict(self) -> bool:
        return self.counted is not None or self.atom.negated


def atoms_of(body: Iterable[Literal]) -> Iterator[Atom]:
    """All atoms of a body, those of its disjunctions included, in the order of writing."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal
        elif isinstance(literal, Disjunction):
            for alternative in literal.alternatives:
                yield from atoms_of(alternative)


@dataclass(frozen=True)
class Stratification:
    """``strata``: numbers of the program's rules, stratum by stratum, in the order of writing within each.

    ``components``: the recursive ones, those that are read before those that read them; the relations of each
    in the order of writing.  ``complete``: the last stratum of each derived relation's rules.
    """

    strata: list[list[int]]
    components: tuple[tuple[str, ...], ...]
    complete: Mapping[str, int]

    def stratum_of(self, rule: Rule, head: str) -> int:
        """Where a rule stands for one of its heads."""
        return self.complete[head] if head in self._recursive else _level(rule, self.complete)

    @cached_property
    def _recursive(self) -> frozenset[str]:
        return frozenset(name for component in self.components for name in component)


def stratify(program: Program) -> Stratification:
    """The strata of a program and its recursive components.

    Raises :class:`~lftj.errors.StratificationError` for a cycle through a negation or an aggregate.

    >>> from lftj.language.parser import parse
    >>> stratify(parse("far(a) <- two(a, b). two(a, c) <- edge(a, b), edge(b, c).")).strata
    [[1], [0]]
    >>> stratify(parse("path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c).")).components
    (('path',),)
    """
    rules_of: dict[str, list[Rule]] = {}
    readings: dict[str, list[_Reading]] = {}
    for rule in program.rules:
        for head in rule.heads:
            rules_of.setdefault(head.relation, []).append(rule)
            readings.setdefault(head.relation, [])
    for rule in program.rules:
        for head in rule.heads:
            counted = "copies" if head.bag else "aggregate" if head.counts and not head.extremum else None
            read = [atom for atom in atoms_of(rule.body) if atom.relation in rules_of]
            readings[head.relation] += [_Reading(head.relation, atom, counted) for atom in read]
    found = components({name: [reading.atom.relation for reading in read] for name, read in readings.items()})
    _refuse_cycles(program, readings, found)
    written = {name: place for place, name in enumerate(rules_of)}
    recursive: list[tuple[str, ...]] = []
    complete: dict[str, int] = {}
    for component in found:
        inside = frozenset(component)
        levels = [_level(rule, complete, inside) for name in component for rule in rules_of[name]]
        complete.update(dict.fromkeys(component, max(levels)))
        if any(reading.atom.relation in inside for name in component for reading in readings[name]):
            recursive.append(tuple(sorted(component, key=written.__getitem__)))
    strata: list[list[int]] = [[] for _ in range(max(complete.values(), default=-1) + 1)]
    stratification = Stratification(strata, tuple(recursive), complete)
    for number, rule in enumerate(program.rules):
        for stratum in {stratification.stratum_of(rule, head.relation) for head in rule.heads}:
            strata[stratum].append(number)
    return stratification


def _level(rule: Rule, complete: Mapping[str, int], component: Collection[str] = ()) -> int:
    """One more than the highest stratum that a rule reads, a component aside."""
    read = (atom.relation for atom in atoms_of(rule.body) if atom.relation not in component)
    return 1 + max((complete.get(name, -1) for name in read), default=-1)


def _refuse_cycles(
    program: Program, readings: dict[str, list[_Reading]], found: list[tuple[str, ...]]
) -> None:
    component_of = {name: component for component in found for name in component}
    inside = [
        reading
        for reader in readings
        for reading in readings[reader]
        if reading.atom.relation in component_of[reader]
    ]
    first = next((reading for reading in inside if reading.strict), None)
    if first is not None:
        raise _cycle_error(program, readings, component_of[first.reader], first)


def _cycle_error(
    program: Program, readings: dict[str, list[_Reading]], component: tuple[str, ...], first: _Reading
) -> RuleError:
    reads = {name: [reading.atom.relation for reading in read] for name, read in readings.items()}
    goal, span = first.reader, first.atom.name_span
    cycle = cycle_through(reads, component, goal, first.atom.relation)
    reason = "negation" if first.atom.negated else first.counted
    message = f"'{goal}' depends on its own {reason}: {cycle}"
    return error_at(StratificationError, program.text, span, message)


def cycle_through(
    reads: Mapping[str, Iterable[str]], component: Collection[str], reader: str, read: str
) -> str:
    """The shortest cycle of a component that begins with ``reader`` reading ``read``, as it is shown.

    >>> cycle_through({"a": ["b"], "b": ["c", "a"], "c": ["a"]}, ("a", "b", "c"), "a", "b")
    'a -> b -> a'
    """
    came_from: dict[str, str] = {}
    queue = [read]
    for name in queue:
        for other in reads[name]:
            if other in component and other not in came_from and other != read:
                came_from[other] = name
                queue.append(other)
    way = [reader]
    while way[-1] != read:
        way.append(came_from[way[-1]])
    return " -> ".join([reader, *reversed(way)])


def components(reads: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Strongly connected components of "reads", those that are read before those that read them.

    Tarjan's algorithm, without recursion.

    >>> components({"a": ["b"], "b": ["a", "c"], "c": []})
    [('c',), ('b', 'a')]
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    done: set[str] = set()
    stack: list[str] = []
    found: list[tuple[str, ...]] = []
    for root in reads:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        path = [(root, iter(reads[root]))]
        while path:
            name, rest = path[-1]
            for read in rest:
                if read not in index:
                    index[read] = low[read] = len(index)
                    stack.append(read)
                    path.append((read, iter(reads[read])))
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
                    found.append(tuple(component))
                    done.update(component)
    return found
