"""Heads with aggregates among their terms, taken apart: an aggregate for each auxiliary head.

What stands behind the checker knows heads of one aggregate only.  So the rule::

    stats(a, count(), sum(b)), other(b) <- B.

becomes, after it was checked as it was written, these two::

    stats#1[a] = count(), stats#2[a] = sum(b), other(b) <- B.
    stats(a, count, sum) <- stats#1[a] = count, stats#2[a] = sum.

Invariants

1. ``#`` stands in no name that a program can write: no auxiliary head meets another relation.
2. The auxiliary heads of one head have the same groups, those with an assignment: the rule that joins
   them gives one tuple per group.
3. An auxiliary head stands in one rule only; nothing but a joining rule reads it, and a joining rule
   reads nothing else.
4. Every check and every message of the checker is about the head as written.

Cost: an evaluation searches the body once for the auxiliary heads of a rule, or apart where that is less
work (:mod:`lftj.evaluation.sharing`); for the joining rule their columns are put side by side.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence

from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.syntax import Aggregate, Atom, Head, Span, Variable
from lftj.values.schema import Column, ColumnType, Schema

_MARK = "#"


def shown_name(relation: str) -> str:
    """The name that the user gave a relation, also where it is that of an auxiliary head.

    >>> shown_name("stats#2"), shown_name("stats")
    ('stats', 'stats')
    """
    return relation.partition(_MARK)[0]


def is_auxiliary(relation: str) -> bool:
    """Whether this names an auxiliary head: one that a program derives and nobody wrote.

    >>> is_auxiliary("stats#2"), is_auxiliary("stats")
    (True, False)
    """
    return _MARK in relation and not relation.endswith(")")


def holds_groups(relation: str) -> bool:
    """Whether this names an auxiliary head, or what a cell in Spark has of one: it is read by its groups.

    >>> holds_groups("stats#2(a, _)"), is_auxiliary("stats#2(a, _)")
    (True, False)
    """
    return _MARK in relation


def joins_auxiliary(body: Body) -> bool:
    """Whether this is the body of a joining rule."""
    return all(is_auxiliary(atom.relation) for atom in body.atoms)


def joins_groups(rule: CheckedRule) -> bool:
    """Whether this is a joining rule: all that it reads are auxiliary heads of its own head."""
    (head, *others), (body, *alternatives) = rule.heads, rule.bodies
    own = re.compile(re.escape(head.relation + _MARK) + r"\d+")
    is_single = not (others or alternatives) and bool(body.atoms)
    return is_single and all(own.fullmatch(atom.relation) for atom in body.atoms)


class Separation:
    """Takes the heads of one program apart, and numbers their auxiliary heads by relation.

    ``derived``: the schemas of the auxiliary heads made so far.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.parser import parse
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> (head,) = parse("stats(a, count(), max(b)) <- edge(a, b).").rules[0].heads
    >>> schema = Schema(tuple(Column(name, integer) for name in ("a", "count", "max")))
    >>> auxiliary, join = Separation().take_apart(head, [integer] * 3, schema, "the rule's text", (0, 0))
    >>> [(one.relation, one.variables, one.value.function) for one in auxiliary]
    [('stats#1', ('a',), 'count'), ('stats#2', ('a',), 'max')]
    >>> join.heads[0].variables, [atom.relation for atom in join.bodies[0].atoms]
    (('a', 'count', 'max'), ['stats#1', 'stats#2'])
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        """``taken``: names of loaded relations, which may be any."""
        self.derived: dict[str, Schema] = {}
        self._taken = taken

    def take_apart(
        self, head: Head, types: Sequence[ColumnType], schema: Schema, text: str, span: Span
    ) -> tuple[list[CheckedHead], CheckedRule]:
        """The auxiliary heads of ``head``, which belong to its rule, and the rule that joins them.

        ``types``: of the head's columns in its rule, whose ``text`` and ``span`` the joining rule gets;
        ``schema``: the head's own.  Equal aggregates of the head are one auxiliary head.
        """
        type_of = dict(zip(head.terms, types, strict=True))
        keys = [term for term in type_of if isinstance(term, Variable)]
        values: dict[Aggregate, Variable] = {}  # what the joining rule calls an aggregate
        for term in type_of:
            if isinstance(term, Aggregate):
                taken = {variable.name for variable in (*keys, *values.values())}
                values[term] = Variable(_free_name(term.name, taken), term.span)
        auxiliary, atoms = [], []
        for call, value in values.items():
            columns = tuple(Column(term.name, type_of[term]) for term in keys)
            columns += (Column(value.name, type_of[call]),)
            name = self._next_name(head.relation)
            self.derived[name] = Schema(columns, functional=True)
            key_names = tuple(variable.name for variable in keys)
            auxiliary.append(CheckedHead(name, key_names, call, self.derived[name], head.span))
            # As a function, whose value may be NaN.
            atoms.append(
                Atom(name, (*keys, value), functional=True, span=call.span, name_span=head.name_span)
            )
        read = [values[term] if isinstance(term, Aggregate) else term for term in head.terms]
        body_types = {variable.name: type_ for variable, type_ in zip(read, types, strict=True)}
        joined = CheckedHead(head.relation, tuple(v.name for v in read), None, schema, head.span)
        return auxiliary, CheckedRule((joined,), (Body(tuple(atoms), (), (), (), body_types),), text, span)

    def _next_name(self, relation: str) -> str:
        names = (f"{relation}{_MARK}{number}" for number in itertools.count(1))
        return next(name for name in names if name not in self.derived and name not in self._taken)


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it where a variable has that name.

    >>> _free_name("sum", {"a", "sum"})
    'sum#2'
    """
    numbered = (f"{wanted}{_MARK}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)
