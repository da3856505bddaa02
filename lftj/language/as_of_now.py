"""``rate[s] = p asof now``: rules whose rows are made when those of one relation come, and stay.

    out(e, p) <- trade(s, q, t, e), rate[s] = p asof now.
    out(e, p) <- trade that comes(s, q, t, e), rate[s] = p.      evaluated with each commit, and added

What comes is joined with what the other relations have then (M. Budiu et al., "DBSP", section 7.6).  The
relation of what comes is none that a program could name; who keeps rules up to date has it for a commit
(:mod:`maintenance.event_time.joining`).

Invariant: what is taken out of a program has no ``asof now`` any more, and what is left has none either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.errors import RuleError
from lftj.language.diagnostics import error_at
from lftj.language.parser import parse
from lftj.language.predicates import is_test
from lftj.language.recent import calls_of_now
from lftj.language.several_aggregates import is_auxiliary
from lftj.language.syntax import Atom, Disjunction, Literal, Program, Rule, Span, flat
from lftj.values.schema import Schema

_MARK = " that comes"


def name_of_coming(relation: str) -> str:
    """What the relation of the rows that come with a commit is called in rules.

    >>> name_of_coming("trade")
    'trade that comes'
    """
    return f"{relation}{_MARK}"


@dataclass(frozen=True)
class JoinedNow:
    """A head whose rows are made when those of ``comes`` come.

    ``program``: its rules, over these and over ``others``, which are read as they are then.  ``text``: its
    rules as they were written.
    """

    name: str
    program: Program
    text: str
    comes: frozenset[str]
    others: frozenset[str]

    @property
    def reads(self) -> frozenset[str]:
        """The relations that it needs."""
        return self.comes | self.others

    def catalog(self, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
        """Those relations with these schemas that its rules may read, of what comes too."""
        coming = {name_of_coming(name): coming_schema(schemas[name]) for name in self.comes & schemas.keys()}
        return {**schemas, **coming}


def coming_schema(schema: Schema) -> Schema:
    """That of the rows of a relation that come: each once."""
    return replace(schema.shown if schema.bag else schema, key=(), stream=None)


def taken_apart(program: Program) -> tuple[Program, list[JoinedNow]]:
    """The program without the rules that join as of now, and what these make.  Raises RuleError."""
    rules = [rule for rule in program.rules if any(one.as_of_now for one in _atoms(rule))]
    if not rules:
        return program, []
    left = tuple(rule for rule in program.rules if rule not in rules)
    names = dict.fromkeys(head.relation for rule in rules for head in rule.heads)
    for rule in left:
        for head in rule.heads:
            if head.relation in names:
                raise _error(
                    program,
                    head.span,
                    f"'{head.relation}' joins as of now by one of its rules, and follows what it reads by"
                    " this one: give one of them another name",
                )
    return replace(program, rules=left), [_head(program, name, rules) for name in names]


def joined_now(text: str, name: str) -> JoinedNow:
    """A head of the rules that were written."""
    return next(one for one in taken_apart(parse(text))[1] if one.name == name)


def _head(program: Program, name: str, rules: Sequence[Rule]) -> JoinedNow:
    own: list[Rule] = []
    texts: list[str] = []
    comes: set[str] = set()
    others: set[str] = set()
    for rule in rules:
        for head in (head for head in rule.heads if head.relation == name):
            if head.bag or head.value is not None or head.windows or head.aggregates or is_auxiliary(name):
                raise _error(
                    program,
                    head.span,
                    "a rule that joins as of now has a head of variables alone: write out(e, p) here, and"
                    " what is made of its rows in a rule of its own",
                )
            coming, body = _coming(program, rule)
            comes.add(coming)
            own.append(replace(rule, heads=(head,), body=body))
            texts.append(program.text[slice(*rule.span)])
            read = {atom.relation: atom for atom in _atoms(rule) if not _is_test(atom)}
            if name in read:
                message = f"'{name}' reads what it makes as of now: read it in another rule"
                raise _error(program, read[name].name_span, message)
            others |= {atom.relation for atom in read.values() if atom.as_of_now}
    text = "\n".join(dict.fromkeys(texts))
    return JoinedNow(name, Program(tuple(own), program.text), text, frozenset(comes), frozenset(others))


def _coming(program: Program, rule: Rule) -> tuple[str, tuple[Literal, ...]]:
    """The relation whose rows are joined when they come, and the body over these."""
    for literal in rule.body:
        if isinstance(literal, Disjunction) and any(isinstance(one, Atom) for one in flat([literal])):
            message = "a rule that joins as of now has no alternatives of relations: write a rule for each"
            raise _error(program, literal.span, message)
        if calls := calls_of_now(literal):
            message = (
                "a rule that joins as of now does not ask for now(): derive what is recent by a rule of its"
                " own, and read its head as of now"
            )
            raise _error(program, calls[0].span, message)
    coming = [atom for atom in _atoms(rule) if not (atom.as_of_now or _is_test(atom))]
    negated = next((atom for atom in coming if atom.negated), None)
    if negated is not None:
        message = f"what is not there is asked as of now: !{negated.relation}(..) asof now"
        raise _error(program, negated.span, message)
    if len(coming) != 1:
        message = "the rows of one relation are joined when they come, and"
        if not coming:
            message = f"{message} none is here: leave asof now out behind one of them"
            raise _error(program, rule.span, message)
        second = coming[1]
        message = f"{message} '{second.relation}' is a second one: say asof now behind all others"
        raise _error(program, second.span, message)
    (atom,) = coming
    body = (
        replace(one, relation=name_of_coming(one.relation)) if one is atom else _plain(one)
        for one in rule.body
    )
    return atom.relation, tuple(body)


def _plain(literal: Literal) -> Literal:
    return replace(literal, as_of_now=False) if isinstance(literal, Atom) else literal


def _is_test(atom: Atom) -> bool:
    return is_test(atom.relation) and not atom.functional


def _atoms(rule: Rule) -> Iterator[Atom]:
    return (literal for literal in flat(rule.body) if isinstance(literal, Atom))


def _error(program: Program, span: Span, message: str) -> RuleError:
    return error_at(RuleError, program.text, span, message)
