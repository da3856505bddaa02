"""What has to be done for one head of a program: its rules, each with what a cell evaluates of it.

A program is evaluated head by head, in the order in which heads read each other.  Of each
rule of a head a *cell* (:mod:`spark_bridge.placing.shares`) evaluates the same body over the
tuples that were sent to it, under a program of its own:

* atoms read *placements* in place of relations.  ``edge(a, _)`` is the placement of
  ``edge`` whose first column was sent by the part of ``a``; the second one's values are
  all there.  Atoms of one relation with equal axes read the same placement;
* a head with aggregates becomes ``h[keys, arguments] = count()``: the assignments by what
  the aggregates look at.  They are combined over all cells afterwards;
* of a head that depends on itself all rules are one, which a cell evaluates to its fixpoint
  (:mod:`spark_bridge.placing.recursive_rule`).

Invariant: ``crosses`` is False only if no head tuple can come from two cells or two rules
(:mod:`spark_bridge.placing.head_rule` has those of a rule).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lftj.database.database import Database, chosen_head
from lftj.errors import FunctionError, RuleError
from lftj.evaluation.request import MAX_ROUNDS
from lftj.language.body import CheckedProgram, CheckedRule
from lftj.language.diagnostics import error_at
from lftj.language.expressions import functions_of
from lftj.language.finals import Final, finals_of
from lftj.language.one_row import ONE_ROW
from lftj.language.parser import parse
from lftj.language.recent import Recent, with_recent
from lftj.language.strata import atoms_of
from lftj.language.syntax import Aggregate, Head, Program, Rule, Span, Variable
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.own_functions import is_own
from lftj.values.schema import Schema
from lftj.values.streams import Stream
from spark_bridge.placing.event_time import catalog_of
from spark_bridge.placing.head_rule import HeadRule, axes_of, role_of
from spark_bridge.placing.recursive_rule import OneHead, RecursiveRule, recursive_rule
from spark_bridge.placing.schemas import declared_schema


@dataclass(frozen=True)
class HeadPlan:
    """A head with its rules."""

    name: str
    schema: Schema
    rules: tuple[HeadRule, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the relations that its rules read, each once."""
        return tuple(dict.fromkeys(role.relation for rule in self.rules for role in rule.roles))

    @property
    def aggregates(self) -> bool:
        return any(rule.aggregates for rule in self.rules)

    @property
    def crosses(self) -> bool:
        """Whether cells have to be combined: tuples or groups may come from several of them."""
        if len(self.rules) > 1 or self.aggregates:
            return True
        (rule,) = self.rules
        return not set(rule.axes) <= set(rule.heads[0].variables)

    @property
    def by_rounds(self) -> RecursiveRule | None:
        """The rule of a head that depends on itself, of which no column stays: cells can't share it."""
        (rule, *_) = self.rules
        return rule if isinstance(rule, RecursiveRule) and not rule.axes else None

    def combined_in(self, partitions: int) -> int:
        """The number of partitions that combine what cells give: one where nothing tells its rows apart."""
        return partitions if self.gathered_by(self.rules[0]) else 1

    def gathered_by(self, rule: HeadRule) -> tuple[int, ...]:
        """Columns of what a rule's cells give by whose values it meets what it is combined with.

        They hold the head's keys that are a variable in every rule: equal rows, groups, and the tuples of a
        conflict agree on those.  An aggregate in the place of another rule's variable is known too late.
        """
        n_keys = len(self.schema.columns) - self.schema.functional
        columns = [other.syntax.heads[0].columns for other in self.rules]
        shared = [n for n in range(n_keys) if all(isinstance(of[n], Variable) for of in columns)]
        if not rule.aggregates:
            return tuple(shared)
        (head,) = rule.syntax.heads
        names = [column.name if isinstance(column, Variable) else "" for column in head.columns]
        return tuple(rule.keys.index(names[n]) for n in shared)

    @property
    def arrow_schema(self) -> pa.Schema:
        return declared_schema(self.schema)

    def searches_as(self, other: HeadPlan) -> bool:
        """Whether both are heads of one rule, and of no other, whose cells give parts of each."""
        if len(self.rules) > 1 or len(other.rules) > 1 or not (self.crosses and other.crosses):
            return False
        (rule,), (its,) = self.rules, other.rules
        is_plain = not isinstance(rule, RecursiveRule)
        return is_plain and rule.checked is its.checked and (rule.axes, rule.roles) == (its.axes, its.roles)


def search_leaders(plans: Sequence[HeadPlan]) -> list[int]:
    """For each head the first one whose cells can give it, too: itself, where it is no head of a rule before.

    All are plans of one call: what was checked once is one object in them.
    """
    return [
        next(n for n, before in enumerate(plans) if before is plan or plan.searches_as(before))
        for plan in plans
    ]


@dataclass(frozen=True)
class ProgramText:
    """A program with the schemas of the relations that it is to read: enough to plan it in any process.

    ``uncut``: variables that are no axes, whatever they bind, as their values may be others at a second try.
    ``streams``: those of the relations that are.  ``max_rounds``: after so many with new tuples a recursion
    is given up.  ``tree``: in place of that of the text, where it is made from it.  ``also``: heads that are
    results beside the asked one.
    """

    text: str
    head: str | None
    relations: tuple[tuple[str, pa.Schema], ...]
    uncut: frozenset[str] = frozenset()
    streams: tuple[tuple[str, Stream], ...] = ()
    max_rounds: int = MAX_ROUNDS
    tree: Program | None = None
    also: tuple[str, ...] = ()

    def plans(self) -> tuple[HeadPlan, ...]:
        """A plan per head that the asked one depends on, each after those that it reads; it comes last.

        With other results there are those that they depend on, too, and the last one is any of them.
        Raises RuleError and UnknownRelationError, with a caret under the place.
        """
        return _shared_plans(self)

    @property
    def rules(self) -> list[tuple[str, Rule]]:
        """The rules of all plans, each with the text that it stands in.  Raises as :meth:`plans`."""
        return [(rule.text, one) for plan in self.plans() for rule in plan.rules for one in rule.written]

    def schemas(self, head: int) -> dict[str, pa.Schema]:
        """The schemas of the relations and heads that a head reads, by number of its plan."""
        plans = self.plans()
        known = dict(self.sources) | {plan.name: plan.arrow_schema for plan in plans}
        return {name: known[name] for name in plans[head].reads}

    @property
    def recents(self) -> tuple[Recent, ...]:
        """The recent rows of streams that rules read, each as a relation of its own.  Raises RuleError."""
        return _recents(self)

    @property
    def sources(self) -> tuple[tuple[str, pa.Schema], ...]:
        """All that rules can read beside heads: relations, and recent rows."""
        known = dict(self.relations)
        return (*self.relations, *((each.name, known[each.stream]) for each in self.recents))

    @property
    def finals(self) -> tuple[Final, ...]:
        """The heads whose rows close.  Raises RuleError."""
        return _finals(self)

    @property
    def final(self) -> Final | None:
        """That of which the closed rows are the result: asked for, or by default the last one."""
        names = [final.name for final in self.finals] if self.head is None else [self.head]
        return next((final for final in self.finals if final.name == names[-1]), None) if names else None

    @property
    def target(self) -> str:
        """What the result is called, also of a program that has no plans.  Raises RuleError."""
        return chosen_head(_checked(self), self.head) if self.final is None else self.final.name

    @property
    def targets(self) -> tuple[str, ...]:
        """All results, the one that was asked for first.  Raises RuleError."""
        checked = _checked(self)
        finals = [final.name for final in self.finals]
        return (self.target, *(name if name in finals else chosen_head(checked, name) for name in self.also))

    def target_schema(self, target: str) -> Schema:
        """That of a result."""
        heads = {final.name: final.head for final in self.finals}
        return _checked(self).derived[heads.get(target, target)]

    def schema_of(self, head: str) -> pa.Schema:
        """That of a head, also of one that has no plan."""
        return declared_schema(_checked(self).derived[head])

    @property
    def result(self) -> str:
        """What the result is called: a head, or the rows of one that have closed."""
        return self.plans()[-1].name if self.final is None else self.final.name

    def own_plans(self) -> tuple[HeadPlan, ...]:
        """Like :meth:`plans`, with domains that nothing else uses: what they intern goes with the plans."""
        return _plans(self)


@functools.lru_cache(maxsize=256)
def _shared_plans(program: ProgramText) -> tuple[HeadPlan, ...]:
    return _plans(program)


def _timed(program: ProgramText, domains: Domains) -> tuple[Program, list[Recent], dict[str, Relation]]:
    """The tree over recent rows, these, and empty relations, those of recent rows included."""
    schemas = dict(program.relations)
    empty = catalog_of(schemas, dict(program.streams), domains)
    catalog = {name: relation.schema for name, relation in empty.items()}
    tree = program.tree or parse(program.text)
    tree, recents = with_recent(tree, catalog) if program.streams else (tree, [])
    recent = catalog_of({each.name: schemas[each.stream] for each in recents}, {}, domains)
    return tree, recents, {**empty, **recent}


@functools.lru_cache(maxsize=256)
def _recents(program: ProgramText) -> tuple[Recent, ...]:
    return tuple(_timed(program, Domains())[1])


def _checked(program: ProgramText) -> CheckedProgram:
    database = Database()
    tree, _, relations = _timed(program, database.domains)
    for relation in relations.values():
        database.add(relation)
    return database.check(replace(tree, finals=()) if program.streams else tree)


@functools.lru_cache(maxsize=256)
def _finals(program: ProgramText) -> tuple[Final, ...]:
    tree, _, relations = _timed(program, Domains())
    if not program.streams or not tree.finals:
        return ()
    catalog = {name: relation.schema for name, relation in relations.items()}
    return tuple(finals_of(tree, _checked(program).derived, catalog, ()))


def _plans(program: ProgramText) -> tuple[HeadPlan, ...]:
    checked = _checked(program)
    _refuse_own_functions(checked)
    if ONE_ROW in checked.derived:
        raise _one_row_error(program.text, checked)
    tree = checked.tree
    final = program.final
    target = chosen_head(checked, program.head) if final is None else final.head
    needed: list[str] = []

    def visit(name: str) -> None:
        together = checked.component_of(name) or (name,)
        rules = [rule for rule in tree.rules if any(head.relation in together for head in rule.heads)]
        for rule in rules:
            _refuse_for_cells(tree, [head for head in rule.heads if head.relation in together])
        for atom in (atom for rule in rules for atom in atoms_of(rule.body)):
            if atom.relation in checked.derived and atom.relation not in (*needed, *together):
                visit(atom.relation)
        if name not in needed:
            needed.append(name)

    closing = {final.name: final.head for final in program.finals}
    others = (closing[name] if name in closing else chosen_head(checked, name) for name in program.also)
    for name in dict.fromkeys((target, *others)):
        visit(name)
    return tuple(_plan(name, tree, checked, program.uncut) for name in needed)


def _aggregates(program: Program) -> list[Aggregate]:
    return [call for rule in program.rules for head in rule.heads for call in head.aggregates]


def _one_row_error(text: str, checked: CheckedProgram) -> RuleError:
    """Cells have shares of relations, and the relation of one row is none."""
    defaults = [call.default for call in _aggregates(parse(text)) if call.default is not None]
    if defaults:
        span = defaults[0].span
        message = "a head over nothing has no row: leave the default out, and add its row if it is empty"
    else:
        rules = (rule for stratum in checked.strata for rule in stratum)
        span = next(rule.span for rule in rules for body in rule.bodies if ONE_ROW in body.relations)
        message = "a body needs at least one positive atom: load what it says as data"
    return error_at(RuleError, text, span, f"in Spark {message}")


def _refuse_own_functions(checked: CheckedProgram) -> None:
    """Executors are processes of their own, where nothing is registered."""
    for rule in (rule for stratum in checked.strata for rule in stratum):
        for body in rule.bodies:
            sides = [side for comparison in body.comparisons for side in (comparison.left, comparison.right)]
            called = set().union(
                *map(functions_of, [assignment.expression for assignment in body.assignments] + sides)
            )
            for name in sorted(filter(is_own, called)):
                raise FunctionError(
                    f"'{name}' is a function of your own, which Spark's executors don't have:"
                    f" give Spark its values as a column\n  {rule.text}"
                )


def _refuse_for_cells(tree: Program, heads: Iterable[Head]) -> None:
    """Raise RuleError for heads that cells can't evaluate."""
    for head in heads:
        if head.bag:
            message = f"'{head.relation}' is a bag, and what Spark keeps are sets: derive its count by a head"
            way_out = f"{message} {head.relation}[...] = count(), or take lftj.Database on collected rows"
            raise error_at(RuleError, tree.text, head.name_span, way_out)
        for window in head.windows:
            message = f"'{window.function}' reads rows beside each, which cells don't have: use Spark's"
            way_out = f"{message} own Window on the result, or lftj.Database on collected rows"
            raise error_at(RuleError, tree.text, window.span, way_out)


def _plan(name: str, tree: Program, checked: CheckedProgram, uncut: frozenset[str]) -> HeadPlan:
    checked_rules: dict[tuple[Span, Span], CheckedRule] = {}
    for one in (one for stratum in checked.strata for one in stratum):
        for of in one.heads:  # in the first place, before what joins its auxiliary heads
            checked_rules.setdefault((one.span, of.span), one)
    component = checked.component_of(name)
    parts = []
    for rule in tree.rules:
        for head in rule.heads:
            if head.relation == name or head.relation in component:
                checked_rule = checked_rules[rule.span, head.span]
                axes = tuple(axis for axis in axes_of(rule, checked_rule) if axis not in uncut)
                heads = tuple(of for of in checked_rule.heads if of.span == head.span)
                parts.append(OneHead(replace(rule, heads=(head,)), checked_rule, heads, axes))
    schema = checked.derived[name]
    if component:
        return HeadPlan(name, schema, (recursive_rule(name, component, parts, schema, tree.text),))
    return HeadPlan(name, schema, tuple(_head_rule(part, tree.text) for part in parts))


def _head_rule(part: OneHead, text: str) -> HeadRule:
    axes = {axis: axis for axis in part.axes}
    roles = tuple(dict.fromkeys(role_of(atom, axes) for atom in atoms_of(part.syntax.body)))
    return HeadRule(part.syntax, text, part.checked, part.heads, part.axes, roles)
