"""``latest(u)`` and ``next(u)`` in a body: assignments with the greatest or least u, as rules without them.

``latest(u, per: e)`` keeps, of the assignments of the rest of the body, those with the greatest u of each e;
without ``per:`` those of each assignment of all atoms but the one that binds u.  This is the ASOF join.
What stands behind the parser knows neither.  So the rule::

    at(e, p) <- trade(s, q, t, e), quote(s, u, p), u <= t, latest(u).

becomes these two, the first being found by one search for each (s, t)
(:mod:`lftj.rewriting.nearest_join`)::

    at_latest[s, t] = max(u) <- trade(s, q, t, e), quote(s, u, p), u <= t.
    at(e, p)        <- trade(s, q, t, e), quote(s, u, p), at_latest[s, t] = u.

and with ``per: e``, where an e may have several (s, t)::

    at_latest_per[e] = max(u) <- trade(s, q, t, e), at_latest[s, t] = u.
    at(e, p)         <- trade(s, q, t, e), quote(s, u, p), at_latest[s, t] = u, at_latest_per[e] = u.

Invariants

1. Behind :func:`with_nearest` no body has a :class:`NearestRows`, and every rule but those of hidden heads
   stands where it stood among the others: the last one stays the last.
2. A hidden head has a name that stands nowhere in the program as it was written, and one rule, whose span is
   that of the literal or of its variable: no two rules of a program have the same.
3. A hidden head has one value for each assignment of its keys, the variables of other atoms that the atom of
   u, or what compares with it, reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.expressions import variables_of
from lftj.language.normal_form import order_assignments
from lftj.language.predicates import is_test
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Head,
    Literal,
    Rule,
    Span,
    Variable,
    flat,
)
from lftj.language.top_rows import TopRows, free_name, relations_of, variables_in
from lftj.language.window_rows import WindowLiteral

EXTREMA = {"latest": "max", "next": "min"}
"""The aggregate that finds the value."""


@dataclass(frozen=True)
class NearestRows:
    """``latest(value, per: group, ...)``; ``groups`` is None where nothing is said."""

    function: str
    value: Variable
    groups: tuple[Variable, ...] | None
    span: Span
    name_span: Span

    @property
    def as_atom(self) -> Atom:
        """What it is where a relation has its name."""
        return Atom(self.function, (self.value,), span=self.span, name_span=self.name_span)


def is_nearest(name: str, named: Sequence[bool]) -> bool:
    """Whether ``name(...)`` in a body may be no atom: its first term stands by place, others by name.

    >>> is_nearest("latest", [False]), is_nearest("next", [False, True]), is_nearest("next", [False, False])
    (True, True, False)
    """
    return name in EXTREMA and bool(named) and not named[0] and all(named[1:])


def with_nearest(rules: Sequence[Rule], text: str) -> tuple[list[Rule], list[NearestRows]]:
    """The rules as they are evaluated, and the literals that would be atoms if relations had their names.

    ``text`` is the program's, for messages.

    >>> from lftj.language.parser import parse
    >>> program = parse("at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u).")
    >>> [head.relation for rule in program.rules for head in rule.heads]
    ['at_latest', 'at']
    """
    found: list[Rule] = []
    short: list[NearestRows] = []
    heads = {head.relation for rule in rules for head in rule.heads}
    taken = {name for rule in rules for name in relations_of(rule)}
    for rule in rules:
        body = tuple(
            one.as_atom
            if isinstance(one, NearestRows) and one.groups is None and one.function in heads
            else one
            for one in rule.body
        )
        nearest = [literal for literal in body if isinstance(literal, NearestRows)]
        if not nearest:
            found.append(replace(rule, body=body))
            continue
        places = [one for one in body if isinstance(one, WindowLiteral) and _is_of_head(one, rule)]
        for literal in body:
            if isinstance(literal, TopRows | WindowLiteral) and literal not in places:
                message = f"'{nearest[0].function}' and another choice of rows: take two rules"
                raise error_at(RuleSyntaxError, text, literal.span, message)
        short += [one for one in nearest if one.groups is None]
        rest = tuple(one for one in body if not isinstance(one, WindowLiteral))
        *hidden, last = _Nearest(replace(rule, body=rest), nearest, text, taken).rules()
        found += [*hidden, replace(last, body=(*last.body, *places))]
    return found, short


def _is_of_head(window: WindowLiteral, rule: Rule) -> bool:
    """Whether it is the order of an aggregate, ``list(x, by: y)``, and no window of the body."""
    return any(head.span[0] <= window.span[0] < head.span[1] for head in rule.heads)


class _Nearest:
    """A rule with some of these literals, taken apart."""

    def __init__(self, rule: Rule, nearest: Sequence[NearestRows], text: str, taken: set[str]) -> None:
        self._rule = rule
        self._nearest = nearest
        self._text = text
        self._taken = taken
        self._literals = [literal for literal in rule.body if not isinstance(literal, NearestRows)]
        self._binding = [self._atom_of(one) for one in nearest]
        if len({id(atom) for atom in self._binding}) < len(nearest):
            raise self._error(nearest[-1].span, "two of these literals are about one atom: take two rules")
        others = [one for one in self._literals if not _is_in(one, self._binding)]
        self._joining = [one for one in others if self._joins(one)]
        bound = _names(self._joining) | _names(self._binding)
        comparisons = [one for one in others if isinstance(one, Comparison)]
        assignments, _ = order_assignments(comparisons, bound)
        self._generated = {one.variable for one in assignments if one.each}
        self._computed = {one.variable: {v.name for v in variables_of(one.expression)} for one in assignments}
        computing = {one.span: one.variable for one in assignments if not one.each}
        self._assigning = {computing[one.span]: one for one in comparisons if one.span in computing}
        known = bound | self._computed.keys()
        self._joining += [  # relations that have a test's name
            one
            for one in others
            if isinstance(one, Atom) and is_test(one.relation) and not _names([one]) <= known
        ]
        self._asking = _names(self._joining)
        """Variables of what is joined whatever is chosen."""
        apart = [*self._joining, *self._assigning.values()]
        self._filters = [one for one in others if not _is_in(one, apart)]

    def _error(self, span: Span, message: str) -> RuleSyntaxError:
        return error_at(RuleSyntaxError, self._text, span, message)

    def _atom_of(self, nearest: NearestRows) -> Atom:
        name = nearest.value.name
        found = [one for one in self._literals if self._joins(one) and name in _names([one])]
        if len(found) != 1 or not isinstance(found[0], Atom):
            message = f"'{nearest.function}' takes a variable that one atom of the body binds"
            raise self._error(nearest.value.span, message)
        return found[0]

    @staticmethod
    def _joins(literal: Literal) -> bool:
        return any(
            isinstance(one, Atom) and not one.negated and not is_test(one.relation) for one in flat([literal])
        )

    def rules(self) -> list[Rule]:
        """The rules of hidden heads, and the rule itself behind them."""
        found: list[Rule] = []
        body = list(self._literals)
        for nearest, atom in zip(self._nearest, self._binding, strict=True):
            groups = {one.name for one in nearest.groups or ()}
            wanted = f"{self._rule.heads[0].relation}_{nearest.function}"
            if groups <= self._asking:
                own = _names([atom]) - self._asking
                tests = self._tests_of(nearest, atom, own)
                rule = self._found_rule(nearest, atom, tests, self._free(wanted))
                keys = rule.heads[0].variables[:-1]
                reached = self._reached(rule, nearest)
                implied = [
                    one
                    for one in tests
                    if self._sources(names := _names([one])) & own == {nearest.value.name}
                    and not names & self._generated
                ]
                body = [*(one for one in body if not _is_in(one, implied)), reached]
                found.append(rule)
                if nearest.groups is None or {key.name for key in keys} <= groups:
                    continue
                literals: list[Literal] = [*self._with_computed(self._alone()), *self._joining]
                read = (*self._in_order(literals), reached)
            else:
                read = tuple(self._literals)
            if len(self._nearest) > 1:
                message = f"'{nearest.function}' with per: beside another such literal: take two rules"
                raise self._error(nearest.span, message)
            assert nearest.groups is not None
            keys = tuple({one.name: one for one in nearest.groups}.values())
            call = Aggregate(EXTREMA[nearest.function], (nearest.value,), nearest.value.span)
            head = Head(self._free(f"{wanted}_per"), keys, call, nearest.value.span, nearest.value.span)
            bar = Rule((head,), read, nearest.value.span)
            found.append(bar)
            body.append(self._reached(bar, nearest))
        return [*found, replace(self._rule, body=tuple(body))]

    def _found_rule(self, nearest: NearestRows, atom: Atom, tests: Sequence[Literal], name: str) -> Rule:
        """What is found, by all that this depends on."""
        read = _names([atom]) | self._sources(_names(tests))
        variables = {one.name: one for one in variables_in(self._joining)}
        keys = tuple(one for one in variables.values() if one.name in read)
        literals = [atom, *self._with_computed(tests)]
        if not {one.name for one in keys} <= _names([atom]):
            literals += [*self._joining, *self._with_computed(self._alone())]
        call = Aggregate(EXTREMA[nearest.function], (nearest.value,), nearest.span)
        head = Head(name, keys, call, nearest.span, nearest.span)
        return Rule((head,), self._in_order(literals), nearest.span)

    @staticmethod
    def _reached(rule: Rule, nearest: NearestRows) -> Atom:
        (head,) = rule.heads
        keys = (replace(one, null_safe=True) for one in head.terms if isinstance(one, Variable))
        return Atom(head.relation, (*keys, nearest.value), True, False, rule.span, rule.span)

    def _free(self, wanted: str) -> str:
        name = free_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def _tests_of(self, nearest: NearestRows, atom: Atom, own: set[str]) -> list[Literal]:
        """Filters that read something of an atom that others do not have."""
        others = _names([other for other in self._binding if other is not atom]) - self._asking
        found = [one for one in self._filters if self._sources(_names([one])) & own]
        for literal in found:
            if self._sources(_names([literal])) & others:
                message = (
                    f"this compares what '{nearest.function}' finds with what another such literal finds:"
                    " derive one of them in a rule of its own"
                )
                raise self._error(literal.span, message)
        return found

    def _alone(self) -> list[Literal]:
        """Filters of what is joined whatever is chosen."""
        return [one for one in self._filters if self._sources(_names([one])) <= self._asking]

    def _sources(self, names: set[str]) -> set[str]:
        """The variables of atoms that some are, or are computed of."""
        return {name for name in self._closure(names) if name not in self._computed}

    def _with_computed(self, literals: Sequence[Literal]) -> list[Literal]:
        """Literals, and what computes variables that they read."""
        read = self._closure(_names(literals))
        return [*literals, *(one for name, one in self._assigning.items() if name in read)]

    def _closure(self, names: set[str]) -> set[str]:
        """Variables, and all that they are computed of."""
        found, waiting = set(names), list(names)
        while waiting:
            more = self._computed.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return found

    def _in_order(self, literals: Sequence[Literal]) -> tuple[Literal, ...]:
        return tuple(one for one in self._literals if _is_in(one, literals))


def _names(literals: Iterable[Literal]) -> set[str]:
    return {variable.name for variable in variables_in(literals)}


def _is_in(literal: Literal, some: Iterable[Literal]) -> bool:
    """Whether it is one of them: equal ones are not the same."""
    return any(literal is one for one in some)
