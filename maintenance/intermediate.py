"""Intermediates: the assignments of a body that aggregate heads read, kept once for all that share them.

Heads that aggregate the same body, up to the names of its variables, step one set of
searches.  Heads with ``min`` or ``max`` of the same argument, grouped by sets of variables
each of which holds the one before, also share the ordered tree of values: its keys begin
with the smallest set, and each head asks for ranges below its own prefix (ILFTJ 2.3.3).

Invariants

1. The rows of ``build`` and of the steps that were kept add up to the assignments over the newest versions:
   of one body, all variables; of several alternatives, the variables that all of them bind, each row once.
2. A round is stepped once, whoever asks first; ``keep`` and ``drop`` end it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lftj.aggregates import argument_names
from lftj.body import Body, CheckedHead, CheckedRule
from lftj.evaluation import common_variables
from lftj.expressions import text_of
from lftj.relation import Relation
from lftj.signed_rows import gathered
from lftj.syntax import Aggregate, Atom, BinaryOperation, Constant, Expression, Negative, Term, Variable
from maintenance.body_trace import Advance, Round, Versions
from maintenance.computed_negation import maintained_body
from maintenance.group_scan import Scan, scan_for
from maintenance.grouped import Accumulator, GroupRows, accumulator_for
from maintenance.rule_body import Rows
from maintenance.stats import RuleStats
from maintenance.support import SupportVersion

SUMMED = ("count", "sum", "avg")
ORDERLESS = ("min", "max")


class Sharer:
    """A head that aggregates a body, and what its variables are called by the body's intermediate."""

    def __init__(self, rule: CheckedRule, head: CheckedHead, names: Mapping[str, str]) -> None:
        assert isinstance(head.value, Aggregate)
        self.rule = rule
        self.head = head
        self.call = head.value
        self.groups = tuple(names[name] for name in head.variables)
        self.arguments = tuple(names[name] for name in argument_names(head.value))
        self.constants = tuple(term.value for term in head.value.arguments if isinstance(term, Constant))


class Intermediate:
    """The maintained assignments of a rule's bodies, and the ordered trees over them."""

    def __init__(
        self,
        rule: CheckedRule,
        sharers: Sequence[Sharer],
        relations: Mapping[str, Relation],
        record_gap: int,
        order: Sequence[str] | None,
    ) -> None:
        """``rule``: whose bodies are evaluated; all ``sharers`` are there from the beginning."""
        several = len(rule.bodies) > 1
        self.sharers = tuple(sharers)
        self.names = tuple(common_variables(rule)) if several else tuple(rule.bodies[0].types)
        wanted = self.names if several else [n for s in sharers for n in (*s.groups, *s.arguments)]
        grouped = list(dict.fromkeys(name for sharer in sharers for name in sharer.groups))
        self.bodies = [
            maintained_body(rule, body, wanted, not several, relations, record_gap, order, grouped)
            for body in rule.bodies
        ]
        self._support = SupportVersion(len(self.names)) if several else None
        self._staged_support: SupportVersion | None = None
        self._scans = _chains(sharers)
        self._round: object = None
        self._rows: Rows = ({}, np.empty(0, np.int64))

    def accumulator(self, sharer: Sharer) -> Accumulator | None:
        """What makes a head's values; None for a count."""
        if sharer.call.function in SUMMED:
            return accumulator_for(sharer.head, sharer.rule.bodies[0].types)
        return next(view for chain in self._scans if (view := chain.view(sharer)) is not None)

    def notes(self, sharer: Sharer) -> tuple[str, ...]:
        """How a head's values are made, for ``explain``."""
        for chain in self._scans:
            if sharer in chain.sharers:
                others = [s.head.relation for s in chain.sharers if s is not sharer]
                return (
                    f"ordered by {', '.join(chain.columns)}"
                    + (f", one tree with {', '.join(others)}" if others else ""),
                )
        return ()

    def build(self, versions: Versions, threads: int = 1, advance: Advance | None = None) -> Rows:
        """All assignments, whoever asks first; staged, like a step."""
        if self._round is None:
            self._begin(versions, [body.build(versions, threads, advance) for body in self.bodies])
        return self._rows

    def step(self, change: Round, stats: RuleStats) -> Rows:
        """The assignments that came (+1) and went (-1); ``stats`` of whoever asks first gets what it took."""
        if self._round is None:
            self._begin(change, [body.step(change, stats) for body in self.bodies])
        return self._rows

    def _begin(self, change: object, parts: list[Rows]) -> None:
        rows, signs = parts[0]
        if self._support is not None:
            columns, signs = gathered([([rows[name] for name in self.names], signs) for rows, signs in parts])
            self._staged_support, rows_of_all, signs = self._support.step(columns, signs)
            rows = dict(zip(self.names, rows_of_all, strict=True))
        for chain in self._scans:
            chain.scan.stage([rows[name] for name in chain.columns], signs)
        self._rows = rows, signs
        self._round = change

    def keep(self) -> None:
        """Publish the round; done by the first head that does."""
        if self._round is None:
            return
        for body in self.bodies:
            body.keep()
        if self._staged_support is not None:
            self._support = self._staged_support
        for chain in self._scans:
            chain.scan.keep()
        self._end()

    def drop(self) -> None:
        """Roll the round back, however far it came."""
        for body in self.bodies:
            body.drop()
        for chain in self._scans:
            chain.scan.drop()
        self._end()

    def _end(self) -> None:
        self._staged_support = None
        self._round = None
        self._rows = {}, np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Memory beside the sensitivity records."""
        support = self._support.nbytes if self._support is not None else 0
        return support + sum(chain.scan.nbytes for chain in self._scans)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the structures."""
        assert self._round is None
        for body in self.bodies:
            body.check_invariants()
        if self._support is not None:
            self._support.check_invariants()
        for chain in self._scans:
            chain.scan.check_invariants()


class _Chain:
    """One ordered tree and the heads that read it; each one's groups hold the variables of the one before."""

    def __init__(self, first: Sharer) -> None:
        self.sharers = [first]
        self.groups = _once(first.groups)

    def takes(self, sharer: Sharer) -> bool:
        first = self.sharers[0]
        if (sharer.call.function, sharer.arguments) != (first.call.function, first.arguments):
            return False
        if sharer.constants != first.constants:
            return False
        wider = set(self.groups) <= set(sharer.groups)
        return wider if sharer.call.function in ORDERLESS else _once(sharer.groups) == self.groups

    def add(self, sharer: Sharer) -> None:
        self.sharers.append(sharer)
        self.groups = _once((*self.groups, *sharer.groups))

    def close(self) -> None:
        """No more heads will come."""
        last = self.sharers[-1]
        self.columns = (*self.groups, *last.arguments)
        own = dict(zip(last.groups, last.head.variables, strict=True))
        head = replace(last.head, variables=tuple(own[name] for name in self.groups))
        self.scan: Scan = scan_for(head, last.rule.bodies[0].types, len(self.groups))

    def view(self, sharer: Sharer) -> Accumulator | None:
        if sharer not in self.sharers:
            return None
        prefix = self.groups[: len(set(sharer.groups))]
        return _ScanView(self.scan, [sharer.groups.index(name) for name in prefix])


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _chains(sharers: Sequence[Sharer]) -> list[_Chain]:
    chains: list[_Chain] = []
    for sharer in sorted(sharers, key=lambda s: len(s.groups)):
        if sharer.call.function in SUMMED:
            continue
        chain = next((chain for chain in chains if chain.takes(sharer)), None)
        if chain is None:
            chains.append(_Chain(sharer))
        else:
            chain.add(sharer)
    for chain in chains:
        chain.close()
    return chains


class _ScanView:
    """The values of a head's groups, read from an ordered tree that the intermediate steps."""

    def __init__(self, scan: Scan, places: Sequence[int]) -> None:
        self._scan = scan
        self._places = places

    @property
    def nbytes(self) -> int:
        return 0

    def stage(self, rows: GroupRows) -> np.ndarray:
        return self._scan.values([rows.keys[place] for place in self._places])

    def keep(self) -> None:
        """The intermediate keeps."""

    def drop(self) -> None:
        """The intermediate drops."""

    def remap(self, kept: np.ndarray) -> None:
        """Nothing here is by slot."""

    def check_invariants(self) -> None:
        """The intermediate's are checked."""


# -- which rules share -------------------------------------------------------------------


class Intermediates:
    """The intermediates of heads that are installed together, as far as they are aggregates."""

    def __init__(
        self,
        heads: Sequence[tuple[CheckedRule, CheckedHead]],
        record_gap: int,
        orders: Mapping[str, Sequence[str]],
    ) -> None:
        self._record_gap = record_gap
        self._orders = orders
        self._rules: dict[object, CheckedRule] = {}
        self._sharers: dict[object, list[Sharer]] = {}
        self._made: dict[object, Intermediate] = {}
        for rule, head in heads:
            if not isinstance(head.value, Aggregate):
                continue
            key, names = self._key(rule, head)
            first = self._rules.setdefault(key, rule)
            inverse = {number: name for name, number in _numbered(first).items()}
            own = {name: inverse[number] for name, number in names.items()}
            self._sharers.setdefault(key, []).append(Sharer(rule, head, own))

    def _key(self, rule: CheckedRule, head: CheckedHead) -> tuple[object, dict[str, str]]:
        names = _numbered(rule)
        order = tuple(self._orders.get(head.relation, ()))
        return (tuple(_text(body, names) for body in rule.bodies), order), names

    def of(
        self, rule: CheckedRule, head: CheckedHead, relations: Mapping[str, Relation]
    ) -> tuple[Intermediate, Sharer]:
        """The intermediate of a head, made over the relations when the first of its heads asks."""
        key, _ = self._key(rule, head)
        sharers = self._sharers[key]
        if key not in self._made:
            self._made[key] = Intermediate(
                self._rules[key], sharers, relations, self._record_gap, self._orders.get(head.relation)
            )
        return self._made[key], next(s for s in sharers if s.head is head and s.rule is rule)


def _numbered(rule: CheckedRule) -> dict[str, str]:
    """A name for each variable of a rule's bodies that says where it comes first."""
    names: dict[str, str] = {}
    for body in rule.bodies:
        for term in (term for atom in (*body.atoms, *body.negations) for term in atom.terms):
            if isinstance(term, Variable):
                names.setdefault(term.name, f"v{len(names)}")
        for assignment in body.assignments:
            names.setdefault(assignment.variable, f"v{len(names)}")
    return names


def _text(body: Body, names: Mapping[str, str]) -> tuple[str, ...]:
    """A body in words that only depend on its meaning and order of writing."""

    def term_text(term: Term) -> str:
        if isinstance(term, Variable | Constant):
            return text_of(_renamed(term, names))
        return "_"

    def atom_text(atom: Atom) -> str:
        return f"{atom.relation}{'[]' if atom.functional else '()'}{', '.join(map(term_text, atom.terms))}"

    return (
        *map(atom_text, body.atoms),
        *(f"!{atom_text(atom)}" for atom in body.negations),
        *(
            f"{text_of(_renamed(c.left, names))} {c.operator} {text_of(_renamed(c.right, names))}"
            for c in body.comparisons
        ),
        *(f"{names[a.variable]} := {text_of(_renamed(a.expression, names))}" for a in body.assignments),
    )


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(expression, Variable):
        return Variable(names[expression.name])
    if isinstance(expression, Negative):
        return Negative(_renamed(expression.operand, names))
    if isinstance(expression, BinaryOperation):
        left, right = _renamed(expression.left, names), _renamed(expression.right, names)
        return BinaryOperation(expression.operator, left, right)
    return expression
