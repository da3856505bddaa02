"""What has to be done for one head of a program: its rules, each with what a cell evaluates of it.

A program is evaluated head by head, in the order in which heads read each other.  Of each
rule of a head a *cell* (:mod:`spark_bridge.placing.shares`) evaluates the same body over the
tuples that were sent to it, under a program of its own:

* atoms read *placements* in place of relations.  ``edge(a, _)`` is the placement of
  ``edge`` whose first column was sent by the part of ``a``; the second one's values are
  all there.  Atoms of one relation with equal axes read the same placement;
* a head with aggregates becomes ``h[keys, arguments] = count()``: the assignments by what
  the aggregates look at.  They are combined over all cells afterwards.

Invariants

1. Axes are variables that a positive atom of *every* body of the rule binds, so that an
   assignment, also one that several alternatives have in common, is found in one cell.
2. The value of a functional atom is no axis: both tuples of a conflict meet in a cell.
3. ``crosses`` is False only if no head tuple can come from two cells or two rules.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lftj.aggregates.whole import argument_names
from lftj.database.database import Database, chosen_head
from lftj.errors import FunctionError, RecursionNotSupportedError, RuleError
from lftj.evaluation.products import product_warning
from lftj.evaluation.wanted import wanted_variables
from lftj.language.body import CheckedHead, CheckedProgram, CheckedRule
from lftj.language.diagnostics import error_at
from lftj.language.expressions import functions_of
from lftj.language.finals import Final, finals_of
from lftj.language.one_row import ONE_ROW
from lftj.language.parser import parse
from lftj.language.recent import Recent, with_recent
from lftj.language.strata import atoms_of
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Head,
    Literal,
    Program,
    Rule,
    Span,
    Variable,
)
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.literals import NULL
from lftj.values.own_functions import is_own
from lftj.values.schema import ColumnType, Schema
from lftj.values.streams import Stream
from spark_bridge.placing.event_time import catalog_of
from spark_bridge.placing.schemas import declared_schema
from spark_bridge.placing.shares import Read

Axes = tuple[tuple[int, str], ...]
"""Columns of a relation and the axis that each holds."""

Marks = Mapping[str, str]
"""What a grid does with an axis: CUT, or it is not cut and takes HEAVY or LIGHT values only; else nothing."""

CUT, HEAVY, LIGHT = "", " heavy", " light"

_HIDDEN = ("now()", "now")  # a workspace's own relations have it in their names


@dataclass(frozen=True)
class Role:
    """An atom: the relation that it reads, and at which columns it has which axes."""

    relation: str
    arity: int
    axes: Axes

    def placement(self, marks: Marks) -> Placement:
        """What this atom reads in the cells of a grid."""
        axes = tuple((column, name, marks[name]) for column, name in self.axes if name in marks)
        return Placement(self.relation, self.arity, axes)


@dataclass(frozen=True)
class Placement:
    """Tuples of a relation, chosen and sent by the marked columns.

    >>> Placement("edge", 3, ((0, "a", CUT), (2, "b", HEAVY))).label
    'edge(a, _, b heavy)'
    """

    relation: str
    arity: int
    axes: tuple[tuple[int, str, str], ...]  # column, axis, mark

    @property
    def label(self) -> str:
        """Its name in a cell's program: as the atom would be written, ``_`` for columns without mark."""
        names = {column: name + mark for column, name, mark in self.axes}
        relation = self.relation.replace(*_HIDDEN)
        return f"{relation}({', '.join(names.get(column, '_') for column in range(self.arity))})"


def _typed(test: Comparison, names: set[str]) -> Comparison:
    """What sets one of some variables to null gives it a type, which is any: null is cast to the head's."""
    sides = [test.left, test.right]
    if test.operator != "=" or not any(isinstance(side, Variable) and side.name in names for side in sides):
        return test
    null = Call("cast", (Constant(NULL), Constant("int64")))
    left, right = (null if _is_null(side) else side for side in sides)
    return replace(test, left=left, right=right)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value is NULL


def cell_name(relation: str) -> str:
    """What a cell calls a head, or recent rows of a stream: nothing that its workspace hides.

    >>> cell_name("stats#of1"), cell_name("trade from now() - 5")
    ('stats of1', 'trade from now - 5')
    """
    return relation.replace("#", " ").replace(*_HIDDEN)


@dataclass(frozen=True)
class HeadRule:
    """A rule, one of its heads, and how both are evaluated in cells."""

    syntax: Rule  # of the rule with this head alone
    text: str
    checked: CheckedRule
    heads: tuple[CheckedHead, ...]  # the head; of one with aggregates among its terms, one for each of them
    axes: tuple[str, ...]
    roles: tuple[Role, ...]

    @property
    def aggregates(self) -> bool:
        return isinstance(self.heads[0].value, Aggregate)

    @property
    def keys(self) -> tuple[str, ...]:
        """Of an aggregate head: the variables that make its groups."""
        return self.heads[0].variables

    @property
    def weighed(self) -> tuple[str, ...]:
        """Of an aggregate head: keys and arguments, the columns of what a cell counts."""
        names = list(self.keys)
        for head in self.heads:
            assert isinstance(head.value, Aggregate)
            names += argument_names(head.value)
        return tuple(dict.fromkeys(names))

    @property
    def types(self) -> dict[str, ColumnType]:
        """Of the variables that every body binds; where these give one several types, their common one."""
        first, *others = [body.types for body in self.checked.bodies]
        types = {name: type_ for name, type_ in first.items() if all(name in other for other in others)}
        for other in others:
            for name, type_ in types.items():
                types[name] = type_.joined(other[name]) or type_
        return types

    def products(self) -> list[str]:
        """What to say of parts of its bodies that share no variable."""
        warnings = (
            product_warning(self.checked, body, wanted_variables(head), self.aggregates)
            for head in self.heads
            for body in self.checked.bodies
        )
        return [warning for warning in dict.fromkeys(warnings) if warning]

    def reads(self, rows: Mapping[str, float]) -> list[Read]:
        """The atoms as the choice of shares sees them; ``rows`` by relation."""
        return [Read(role.relation, rows[role.relation], role.axes) for role in self.roles]

    def placements(self, marks: Marks) -> tuple[Placement, ...]:
        """What is sent to the cells of a grid, each once."""
        return tuple(dict.fromkeys(role.placement(marks) for role in self.roles))

    def program(self, marks: Marks) -> Program:
        """What a cell of a grid evaluates."""
        (head,) = self.syntax.heads
        if self.aggregates:
            columns = tuple(Variable(name, head.span) for name in self.weighed)
            head = Head(head.relation, columns, Aggregate("count", (), head.span), head.span, head.name_span)
        head = replace(head, relation=cell_name(head.relation))
        body = tuple(self._placed(literal, marks) for literal in (*self.syntax.body, *self._known()))
        return Program((replace(self.syntax, heads=(head,), body=body),), self.text)

    def _known(self) -> tuple[Comparison, ...]:
        """Tests of what the aggregates of the rule read, be it for another head, and may be NULL."""
        calls = [head.value for head in self.checked.heads if isinstance(head.value, Aggregate)]
        read = {name for call in calls for name in argument_names(call)}
        tests = (test for body in self.checked.bodies for test in body.comparisons if test.tests_null)
        left_out = (
            test
            for test in tests
            if test.operator == "<!=>" and isinstance(test.left, Variable) and test.left.name in read
        )
        return tuple(dict.fromkeys(left_out))

    def _placed(self, literal: Literal, marks: Marks) -> Literal:
        if isinstance(literal, Disjunction):
            alternatives = tuple(
                tuple(self._placed(one, marks) for one in alternative) for alternative in literal.alternatives
            )
            return replace(literal, alternatives=alternatives)
        if isinstance(literal, Atom):
            return replace(literal, relation=_role(literal, self.axes).placement(marks).label)
        return _typed(literal, self._null)

    @property
    def _null(self) -> set[str]:
        """The variables that every body sets to null: other rules of the head give them a type."""
        set_to_null = (
            {one.variable for one in body.assignments if _is_null(one.expression)}
            for body in self.checked.bodies
        )
        return set.intersection(*set_to_null)


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
        keys = set(rule.heads[0].variables)
        return not set(rule.axes) <= keys if rule.axes else False

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


@dataclass(frozen=True)
class ProgramText:
    """A program with the schemas of the relations that it is to read: enough to plan it in any process.

    ``uncut``: variables that are no axes, whatever they bind, as their values may be others at a second try.
    ``streams``: those of the relations that are.
    """

    text: str
    head: str | None
    relations: tuple[tuple[str, pa.Schema], ...]
    uncut: frozenset[str] = frozenset()
    streams: tuple[tuple[str, Stream], ...] = ()

    def plans(self) -> tuple[HeadPlan, ...]:
        """A plan per head that the asked one depends on, each after those that it reads; it comes last.

        Raises RuleError and UnknownRelationError, with a caret under the place.
        """
        return _shared_plans(self)

    @property
    def rules(self) -> list[tuple[str, Rule]]:
        """The rules of all plans, each with the text that it stands in.  Raises as :meth:`plans`."""
        return [(rule.text, rule.syntax) for plan in self.plans() for rule in plan.rules]

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
    def target_schema(self) -> Schema:
        """That of the result."""
        final = self.final
        return _checked(self).derived[self.target if final is None else final.head]

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
    tree = parse(program.text)
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
        for rule in tree.rules:
            heads = [head for head in rule.heads if head.relation == name]
            if heads:
                if checked.component_of(name):
                    raise error_at(
                        RecursionNotSupportedError, tree.text, heads[0].name_span, _recursive(name)
                    )
                if any(head.bag for head in heads):
                    message = f"'{name}' is a bag, and what Spark keeps are sets: derive its count by a head"
                    way_out = f"{message} {name}[...] = count(), or take lftj.Database on collected rows"
                    raise error_at(RuleError, tree.text, heads[0].name_span, way_out)
                for window in (window for head in heads for window in head.windows):
                    message = (
                        f"'{window.function}' reads rows beside each, which cells don't have: use Spark's"
                    )
                    way_out = f"{message} own Window on the result, or lftj.Database on collected rows"
                    raise error_at(RuleError, tree.text, window.span, way_out)
                for atom in atoms_of(rule.body):
                    if atom.relation in checked.derived and atom.relation not in needed:
                        visit(atom.relation)
        if name not in needed:
            needed.append(name)

    visit(target)
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


def _recursive(name: str) -> str:
    return (
        f"'{name}' depends on itself: its tuples can't be found cell by cell."
        " Evaluate it in one process, by lftj.Database, or keep it there, by maintenance.Workspace,"
        " and give Spark the result as a relation"
    )


def _plan(name: str, tree: Program, checked: CheckedProgram, uncut: frozenset[str]) -> HeadPlan:
    checked_rules: dict[Span, CheckedRule] = {}
    for one in (one for stratum in checked.strata for one in stratum):
        checked_rules.setdefault(one.span, one)  # before what joins its auxiliary heads
    rules = []
    for rule in tree.rules:
        checked_rule = checked_rules[rule.span]
        for head in rule.heads:
            if head.relation == name:
                axes = tuple(axis for axis in _axes(rule, checked_rule) if axis not in uncut)
                roles = tuple(dict.fromkeys(_role(atom, axes) for atom in atoms_of(rule.body)))
                heads = tuple(one for one in checked_rule.heads if one.span == head.span)
                one_head = replace(rule, heads=(head,))
                rules.append(HeadRule(one_head, tree.text, checked_rule, heads, axes, roles))
    return HeadPlan(name, checked.derived[name], tuple(rules))


def _axes(rule: Rule, checked: CheckedRule) -> tuple[str, ...]:
    """The variables that may be cut (invariants 1 and 2), in the order of first occurrence."""
    common = checked.bodies[0].atom_variables()
    for body in checked.bodies[1:]:
        common = [name for name in common if name in body.atom_variables()]
    values = {
        atom.terms[-1].name
        for atom in atoms_of(rule.body)
        if atom.functional and isinstance(atom.terms[-1], Variable)
    }
    named = {term.name for atom in atoms_of(rule.body) for term in atom.terms if isinstance(term, Variable)}
    return tuple(name for name in common if name not in values and name in named)


def _role(atom: Atom, axes: Sequence[str]) -> Role:
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Variable) and term.name in axes:
            first.setdefault(term.name, column)
    return Role(atom.relation, len(atom.terms), tuple((column, name) for name, column in first.items()))
