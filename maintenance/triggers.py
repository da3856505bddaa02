"""`ws.triggers`: the program that a change of a relation sets off, as text.

It is read off the searches that are kept: each statement is a term of the delta rule
(:mod:`lftj.planning.term`) of a view, or of the head itself.  For ``total[] = sum(v) <- R(a, b), S(a, c),
v = b * c`` under `views`:

    on +R(a, b):
      total#view1[a] += b
      total[] += change(total#view1[a]) * total#view2[a]

Statements stand in the order in which they run.  ``change(view[k])`` is the value of a view less the one
before; the statement runs for every key that changed.  ``old`` and ``new`` tell the versions apart of what
the trigger changes itself.  ``for each``: the tuples that agree with what is there already.

Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lftj.language.body import Body, CheckedHead
from lftj.language.expressions import comparison_text, text_of
from lftj.language.syntax import Aggregate, Atom, Comparison, Constant, Expression, Variable
from lftj.planning.term import TermPlan, left_over
from lftj.rewriting.nearest_join import NearestJoin
from lftj.rewriting.range_join import RangeJoin
from lftj.rewriting.rule_text import atom_text, head_text, term_text
from lftj.rewriting.shared_views import free_name, is_view
from lftj.rewriting.summand import definitions, substituted
from lftj.storage.catalog import Side
from lftj.values.schema import Schema
from maintenance.explanation import hidden_below
from maintenance.heads.head import MaintainedHead
from maintenance.heads.nearest_body import NearestBody
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import RuleSource, SideBySideSource
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import BodySearch

Shown = TypeVar("Shown")


@dataclass(frozen=True)
class _Trigger:
    """A tuple of ``relation`` that comes, or with ``sign`` -1 goes.

    ``columns``: what its terms are called.  ``changing``: relations that change with it, as far as known.
    ``schemas``: of all relations.
    """

    relation: str
    sign: int
    columns: Sequence[str]
    changing: set[str]
    schemas: Mapping[str, Schema]

    def shown(self, atom: Atom) -> Atom:
        """An atom as rules write it."""
        return replace(atom, terms=_terms(atom.terms, self.schemas[atom.relation]))

    def text(self, atom: Atom) -> str:
        return atom_text(self.shown(atom))

    def label(self, atom: Atom) -> str:
        """The atom as searches call it, less the names of its wildcards."""
        return _shown(self.text(replace(atom, negated=False)))


def triggers(head: MaintainedHead, heads: Mapping[str, MaintainedHead], schemas: Mapping[str, Schema]) -> str:
    """The triggers of a head, two for each relation that its rules read; see the module."""
    kept = [*(heads[name] for name in hidden_below(head, heads, kept_for=True)), head]
    hidden = {each.name for each in kept}
    lines = []
    for relation in dict.fromkeys(name for each in kept for name in _read_in_order(each)):
        if relation in hidden:
            continue
        schema = replace(schemas[relation], columns=_terms(schemas[relation].columns, schemas[relation]))
        columns = [column.name or "value" for column in schema.columns]
        shown = atom_text(Atom(relation, tuple(map(Variable, columns)), schema.functional))
        for sign, mark in ((1, "+"), (-1, "-")):
            lines.append(f"on {mark}{shown}:")
            trigger = _Trigger(relation, sign, columns, {relation}, schemas)
            for each in kept:
                statements = list(dict.fromkeys(_statements(each, trigger)))
                if statements:
                    trigger.changing.add(each.name)
                lines += [f"  {statement}" for statement in statements]
    return "\n".join(lines)


def _read_in_order(head: MaintainedHead) -> Iterator[str]:
    for rule, _ in head.rules:
        for body in rule.bodies:
            yield from (atom.relation for atom in (*body.atoms, *body.negations))


def _statements(head: MaintainedHead, trigger: _Trigger) -> Iterator[str]:
    """How a head follows, in the order of its rules and their terms."""
    if trigger.changing.isdisjoint(head.reads):
        return
    for source in head.sources:
        if head.component or not isinstance(source, RuleSource):
            yield f"{head.name}: as {head.strategy} does it, not by terms"
            return
        own, bodies = source.searched
        if isinstance(source, SideBySideSource):
            yield _anew(own, source.rule.bodies[0], trigger)
        for body in bodies:
            if isinstance(body, NearestBody):
                yield from _of_nearest(own, body.nearest.join, trigger)
                continue
            for search in body.searches:
                yield from _of_search(own, body.body, search, trigger)
            yield from _of_tests(own, body, trigger)


def _delta_of(search: BodySearch) -> BodySearch:
    """What keeps a body in truth."""
    return search.delta if isinstance(search, AutoBody) and not search.traces else search


def _of_tests(head: CheckedHead, body: RuleBody, trigger: _Trigger) -> Iterator[str]:
    """What has nothing to do with the rows stands apart from them; they all come or go with it."""
    searches = [one for search in body.searches if isinstance(one := _delta_of(search), DeltaBody)]
    if len(searches) < len(body.searches):
        return
    joined = {atom for one in searches for atom in (*one.whole.problem.atoms, *one.whole.problem.negations)}
    problem = body.lowered.problem
    apart = [atom for atom in (*problem.atoms, *problem.negations) if atom not in joined]
    if any(atom.relation in trigger.changing for atom in apart):
        texts = [("!" if atom in problem.negations else "") + atom.label for atom in apart]
        yield f"{_target(head, {})}: all come or go where {', '.join(texts)} begins or ceases to hold"


def _of_search(head: CheckedHead, body: Body, search: BodySearch, trigger: _Trigger) -> Iterator[str]:
    if isinstance(search, RangeSums):
        yield from _of_ranges(head, body, search.join, trigger)
        return
    delta = _delta_of(search)
    if not isinstance(delta, DeltaBody):
        yield f"{head.relation}: searched again where its records say that something may have changed"
        return
    for plan, (_, rest) in zip(delta.terms.plans, left_over(delta.whole.problem), strict=True):
        if plan.atom.relation in trigger.changing:
            sides = {_shown(other.label): other.side for other in (*rest.atoms, *rest.negations)}
            yield _statement(head, body, plan, sides, trigger)


def _of_nearest(head: CheckedHead, join: NearestJoin, trigger: _Trigger) -> Iterator[str]:
    """An asker gets its witness; an answer is that of those between it and the answer next to it."""
    target = _target(head, {})
    if not trigger.changing.isdisjoint(join.askers.body.relations):
        yield f"{target}: {join.described}"
    if not trigger.changing.isdisjoint(join.answers.body.relations):
        yield f"{target}: again for each {join.asked} between {join.value} and the {join.value} next to it"


def _of_ranges(head: CheckedHead, body: Body, join: RangeJoin, trigger: _Trigger) -> Iterator[str]:
    """A side that changes meets the sum of the other's range."""
    sides, condition = (join.left, join.right), comparison_text(join.comparison)
    first, second = (view.atom.relation in trigger.changing for view in sides)
    for changed, other, version in (
        (*sides, "old " if second else ""),
        (*sides[::-1], "new " if first else ""),
    ):
        if changed.atom.relation in trigger.changing:
            meaning: dict[str, Expression] = {
                changed.value: Variable(f"change({changed.lookup})"),
                other.value: Variable(f"sum({version}{other.lookup} where {condition})"),
            }
            meaning |= {name: substituted(one, meaning) for name, one in definitions(body).items()}
            yield _effect(head, meaning, negative=False)


def _statement(
    head: CheckedHead, body: Body, plan: TermPlan, sides: Mapping[str, Side], trigger: _Trigger
) -> str:
    """A term of a body's delta rule.  ``sides``: which version of the other atoms it reads, by label."""
    every = (*body.atoms, *body.negations)
    place = next(at for at, atom in enumerate(every) if trigger.label(atom) == _shown(plan.atom.label))
    is_direct = plan.atom.relation == trigger.relation
    if not is_direct and not isinstance(head.value, Aggregate):
        return _anew(head, body, trigger)
    names = _names(body, trigger.shown(every[place]), trigger.columns) if is_direct else {}
    renamed = [_renamed(atom, names) for atom in every]
    changed = renamed[place]
    versions = [
        f"{sides[trigger.label(atom)].value} "
        if at != place and atom.relation in trigger.changing and trigger.label(atom) in sides
        else ""
        for at, atom in enumerate(every)
    ]
    meaning: dict[str, Expression] = dict(names)
    for before, atom, version in zip(every, renamed, versions, strict=True):
        if is_view(atom.relation):
            value, lookup = before.terms[-1], version + _lookup(atom)
            assert isinstance(value, Variable)
            meaning[value.name] = Variable(f"change({lookup})" if atom is changed else lookup)
    meaning |= {name: substituted(expression, meaning) for name, expression in definitions(body).items()}
    loops, tests = [], _tests(trigger.shown(changed), trigger.columns) if is_direct else []
    bound = _variables(changed)
    joined = {
        trigger.label(atom)
        for before, atom in zip(every, renamed, strict=True)
        if trigger.label(before) in sides
    }
    others = [(atom, version) for atom, version in zip(renamed, versions, strict=True) if atom is not changed]
    for atom, version in sorted(others, key=lambda other: is_view(other[0].relation)):
        keys = replace(atom, terms=atom.terms[:-1]) if is_view(atom.relation) else atom
        if not atom.negated and trigger.label(atom) in joined and not _variables(keys) <= bound:
            loops.append(version + (_lookup(atom) if is_view(atom.relation) else trigger.text(atom)))
            bound |= _variables(keys)
        elif not is_view(atom.relation):  # of a view the value is a factor, 0 where there is none
            tests.append(version + trigger.text(atom))
    tests += [comparison_text(_replaced(comparison, meaning)) for comparison in body.comparisons]
    negative = plan.sign * (trigger.sign if is_direct else 1) < 0
    return (
        _effect(head, meaning, negative)
        + (f" for each {', '.join(loops)}" if loops else "")
        + (f" if {', '.join(tests)}" if tests else "")
    )


def _anew(head: CheckedHead, body: Body, trigger: _Trigger) -> str:
    """A tuple that is made of values of hidden heads."""
    views = [atom for atom in body.atoms if is_view(atom.relation)]
    others = [trigger.text(atom) for atom in body.atoms if not is_view(atom.relation)]
    meaning: dict[str, Expression] = {}
    for atom in views:
        meaning |= {name: Variable(_lookup(atom)) for name in _variables(Atom("", atom.terms[-1:]))}
    meaning |= {name: substituted(expression, meaning) for name, expression in definitions(body).items()}
    return f"{_target(head, meaning)} anew" + (f" from {', '.join(others)}" if others else "")


def _names(body: Body, changed: Atom, columns: Sequence[str]) -> dict[str, Expression]:
    """Variables of the tuple that comes or goes are called as its columns; others give way to them."""
    names: dict[str, Expression] = {}
    for column, term in zip(columns, changed.terms, strict=True):
        if isinstance(term, Variable):
            names.setdefault(term.name, Variable(column))
    taken = {*columns, *body.types}
    for name in body.types:
        if name not in names and name in columns:
            free = free_name(name, taken)
            taken.add(free)
            names[name] = Variable(free)
    return names


def _target(head: CheckedHead, meaning: Mapping[str, Expression]) -> str:
    """What is changed: a value, or how often a tuple is there."""
    keys = tuple(text_of(meaning.get(name, Variable(name))) for name in head.variables)
    if isinstance(head.value, Aggregate):
        target, _, _ = head_text(head.relation, keys, head.value).rpartition(" = ")
        return target
    value = None if head.value is None else text_of(meaning.get(head.value, Variable(head.value)))
    return head_text(head.relation, keys, value)


def _effect(head: CheckedHead, meaning: Mapping[str, Expression], negative: bool) -> str:
    """What is done to the target: an amount is added; a value comes to those of a group, or goes; a tuple."""
    target, operator = _target(head, meaning), "-=" if negative else "+="
    if head.windows:
        return f"{target} anew, in its partition"
    if head.copies is not None:
        copies = text_of(meaning.get(head.copies, Variable(head.copies)))
        return f"{target} {operator} greatest({copies}, 0)"
    if not isinstance(head.value, Aggregate):
        return f"{'-' if negative else '+'}{target}" if head.schema.functional else f"{target} {operator} 1"
    arguments = [text_of(substituted(argument, meaning)) for argument in head.value.arguments]
    if head.value.function in ("sum", "count"):
        return f"{target} {operator} {''.join(arguments) or '1'}"
    return f"{target} = {head.value.function} of one {', '.join(arguments)} {'less' if negative else 'more'}"


def _tests(changed: Atom, columns: Sequence[str]) -> list[str]:
    """What the tuple that comes or goes has to be: its constants, and columns that are equal."""
    texts = [term_text(term) for term in changed.terms]
    named = zip(columns, changed.terms, texts, strict=True)
    return [
        f"{column} = {text}"
        for column, term, text in named
        if text != column and (isinstance(term, Constant) or text in columns)
    ]


def _terms(columns: Sequence[Shown], schema: Schema) -> tuple[Shown, ...]:
    """Of a wide relation without the row's code."""
    return tuple(columns[1:] if schema.wide else columns)


def _shown(label: str) -> str:
    """Wildcards that something counts have names, which searches tell or not."""
    return re.sub(r"\b_\d+\b", "_", label)


def _lookup(view: Atom) -> str:
    return f"{view.relation}[{', '.join(map(term_text, view.terms[:-1]))}]"


def _renamed(atom: Atom, names: Mapping[str, Expression]) -> Atom:
    terms = (names.get(term.name, term) if isinstance(term, Variable) else term for term in atom.terms)
    return replace(atom, terms=tuple(terms))  # type: ignore[arg-type]


def _replaced(comparison: Comparison, meaning: Mapping[str, Expression]) -> Comparison:
    left, right = substituted(comparison.left, meaning), substituted(comparison.right, meaning)
    return replace(comparison, left=left, right=right)


def _variables(atom: Atom) -> set[str]:
    return {term.name for term in atom.terms if isinstance(term, Variable)}
