"""`check`: a syntax tree against the data's schemas, to rules in normal form.

Order of the checks, so that the first message is the one to act on: names and
arities of the whole program, strata, then rule by rule in evaluation order
bindings, types and heads, and what goes round through ``min`` and ``max``.  The result keeps the invariants
of :mod:`lftj.language.body`; heads with aggregates among their terms are taken apart at the end, when nothing
is left to complain about (:mod:`lftj.language.several_aggregates`).

Cost: linear in the size of the disjunctive normal forms, apart from
assignments, whose order is found in quadratic time per conjunction; variables
that have both a constant and another source take that time each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from lftj.errors import (
    AggregateError,
    ArityError,
    ParameterError,
    RuleError,
    TypeClashError,
    UnknownRelationError,
)
from lftj.language.aggregate_types import (
    aggregate_type,
    default_value,
    is_null_over_nothing,
    may_be_nothing,
    wanted_arguments,
    wanted_type,
)
from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.body_checker import BodyChecker
from lftj.language.by_name import by_place, column_names
from lftj.language.composed_aggregates import Composition
from lftj.language.declared_keys import check_keys
from lftj.language.declared_streams import check_streams
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.hidden_columns import with_hidden_columns
from lftj.language.monotone import check_monotone
from lftj.language.normal_form import conjunctions, name_wildcards
from lftj.language.one_row import ONE_ROW, schema_of_one_row
from lftj.language.parameters import constants_of
from lftj.language.recent import refuse_clock
from lftj.language.recursive_types import RecursiveTypes
from lftj.language.several_aggregates import Separation, is_auxiliary
from lftj.language.strata import Stratification, atoms_of, stratify
from lftj.language.syntax import (
    UNSET,
    Aggregate,
    Atom,
    Head,
    Program,
    Variable,
    Window,
    extremum_of,
)
from lftj.language.window_types import in_units, window_type
from lftj.process import debug
from lftj.values.domains import Domains
from lftj.values.functions import FUNCTIONS
from lftj.values.kinds import common_type, kind, plain_type
from lftj.values.names import AGGREGATES, DISTINCT_COUNT, QUANTILES
from lftj.values.schema import Column, ColumnType, Schema, copy_column


def check(
    program: Program,
    catalog: Mapping[str, Schema],
    domains: Domains,
    installed: Mapping[str, str] | None = None,
) -> CheckedProgram:
    """Check a program against loaded relations and bring it to normal form.

    ``catalog``: schema of every loaded relation; its column types come from ``domains``.  ``installed``:
    heads of installed rules; of those that are not in the catalog, what to say where they are read.
    Raises the :class:`~lftj.errors.RuleError` that fits the mistake, with a caret under the place.

    >>> from lftj.language.parser import parse
    >>> domains = Domains()
    >>> integer = ColumnType(domains.of(pa.int32()), pa.int32())
    >>> edge = Schema((Column("src", integer), Column("dst", integer)))
    >>> checked = check(parse("out[a] = count() <- edge(a, _)."), {"edge": edge}, domains)
    >>> [(column.name, str(column.type.arrow)) for column in checked.derived["out"].columns]
    [('a', 'int32'), ('count', 'int64')]
    """
    heads = installed or {}
    bases = {name: schema for name, schema in catalog.items() if name not in heads}
    check_keys(program, bases)
    check_streams(program, bases)
    refuse_clock(program)
    _refuse_named_as_relations(program, catalog)
    known = {**catalog, ONE_ROW: schema_of_one_row(domains)}
    checker = _Checker(program, known, domains, heads)
    checked = checker.run()
    composed = checker.composed()
    if composed is not None:
        expanded = _Checker(composed, known, domains, heads).run()
        if debug.enabled:
            _check_same_nulls(checked, expanded)
        checked = replace(expanded, last_heads=checked.last_heads)
    if not _reads_one_row(checked):
        return checked
    return replace(checked, derived={**checked.derived, ONE_ROW: known[ONE_ROW]})


def _refuse_named_as_relations(program: Program, catalog: Mapping[str, Schema]) -> None:
    for one in program.nearest:
        if one.name in catalog:
            column = catalog[one.name].columns[0].name
            message = (
                f"'{one.name}' is a relation here, and {one.name}(u) chooses rows: write"
                f" {one.name}({column}: u) for the one, and {one.name}(u, per: ...) for the other"
            )
            raise error_at(RuleError, program.text, one.span, message)


def _check_same_nulls(written: CheckedProgram, composed: CheckedProgram) -> None:
    """Raise AssertionError where a head may hold NULL and the program as it is written did not know of it."""
    for name in filter(lambda one: not is_auxiliary(one), written.derived):
        pairs = zip(written.derived[name].columns, composed.derived[name].columns, strict=False)
        unknown = [own.name for own, its in pairs if its.type.nullable and not own.type.nullable]
        if unknown:
            raise AssertionError(f"{name}: NULL comes into {', '.join(unknown)} by what is composed")


def _reads_one_row(program: CheckedProgram) -> bool:
    bodies = (body for stratum in program.strata for rule in stratum for body in rule.bodies)
    return any(ONE_ROW in body.relations for body in bodies)


class _Checker:
    def __init__(
        self,
        program: Program,
        catalog: Mapping[str, Schema],
        domains: Domains,
        installed: Mapping[str, str],
    ) -> None:
        self._program = program
        self._installed = installed
        self._text = program.text
        self._catalog = catalog
        self._domains = domains
        self._first_heads: dict[str, Head] = {}
        # Types of a derived relation's columns, by rule and head as written.
        self._types: dict[str, dict[tuple[int, int], list[ColumnType]]] = {}
        self._derived: dict[str, Schema] = {}
        self._recursive: dict[str, Schema] = {}  # of the components whose rules are being checked
        self._separation = Separation(catalog)
        self._placed = program
        self._bodies: Mapping[int, tuple[Body, ...]] = {}

    def run(self) -> CheckedProgram:
        rules = self._program.rules
        if not rules:
            raise RuleError("the program has no rule", (0, 0))
        for constant in constants_of(self._program):
            if constant.value is UNSET:
                raise error_at(
                    ParameterError,
                    self._text,
                    constant.span,
                    f"the parameter ${constant.parameter} has no value here: queries take values as params=",
                )
        for rule in rules:
            for head in rule.heads:
                self._check_head_shape(head)
        self._program = self._placed = by_place(self._program, self._first_heads, self._columns_of)
        rules = self._program.rules
        for rule in rules:
            for atom in atoms_of(rule.body):
                self._check_atom_shape(atom)
        self._program = with_hidden_columns(self._program, self._is_bag, self._is_wide)
        rules = self._program.rules
        stratification = stratify(self._program)
        bodies = self._bodies = self._check_rules(stratification)
        check_monotone(self._program, stratification.components, bodies)
        self._settle_literals(bodies)
        self._widen_arguments(bodies)
        checked_strata = [
            rules
            for place in range(len(stratification.strata))
            for rules in self._checked(stratification, place, bodies)
        ]
        return CheckedProgram(
            strata=tuple(checked_strata),
            derived={name: self._schema_of(name) for name in self._first_heads} | self._separation.derived,
            text=self._text,
            last_heads=tuple(dict.fromkeys(head.relation for head in rules[-1].heads)),
            components=stratification.components,
            tree=self._program,
        )

    def composed(self) -> Program | None:
        """The program that stands for this one, which was checked; None where it is this one."""
        return Composition(self._placed, self._first_heads, self._bodies, self._types).program()

    def _check_rules(self, stratification: Stratification) -> dict[int, tuple[Body, ...]]:
        """The bodies of every rule, by number; types of recursive relations are found before their rules."""
        bodies: dict[int, tuple[Body, ...]] = {}
        for place, stratum in enumerate(stratification.strata):
            for component in stratification.components:
                if stratification.complete[component[0]] == place:
                    self._recursive = self._typed(component)
            for number in stratum:
                if number not in bodies:
                    bodies[number] = self._check_rule(number)
            self._recursive = {}
        return bodies

    def _widen_arguments(self, bodies: Mapping[int, tuple[Body, ...]]) -> None:
        """Let decimals that an aggregate reads have one type in all bodies: sums add numbers of one scale."""
        read: dict[tuple[str, int, int], list[tuple[Body, str]]] = {}
        for number, its in bodies.items():
            for head in self._program.rules[number].heads:
                for column, term in enumerate(head.columns):
                    for place, one in enumerate(term.arguments if isinstance(term, Aggregate) else ()):
                        if isinstance(one, Variable):
                            meeting = read.setdefault((head.relation, column, place), [])
                            meeting += [(body, one.name) for body in its]
        settled = False
        while not settled:  # a variable may be read by several heads
            settled = True
            for meeting in read.values():
                if any(kind(body.types[name].arrow) != "decimal" for body, name in meeting):
                    continue
                widest = reduce(common_type, (body.types[name].arrow for body, name in meeting))
                for body, name in meeting:
                    settled = settled and body.types[name].arrow == widest
                    body.types[name] = replace(body.types[name], arrow=widest)

    def _typed(self, component: tuple[str, ...]) -> dict[str, Schema]:
        """The schemas of relations that depend on each other; where they can't be had, what is wrong."""
        typing = RecursiveTypes(self._program, self._domains, component, self._schema_of, self._term_type)
        found = typing.found()
        schemas = {name: self._schema(self._first_heads[name], found[name]) for name in found}
        missing = [name for name in component if name not in schemas]
        if missing:
            self._recursive = {**self._recursive, **schemas}
            for number in typing.numbers:
                if typing.is_typed(number):
                    self._check_rule(number)  # a rule that would begin may be wrong: that comes first
            raise error_at(
                RuleError,
                self._text,
                self._first_heads[missing[0]].name_span,
                f"'{missing[0]}' can't begin: each of its rules reads a relation that needs"
                f" tuples of {' or '.join(map(repr, component))} first",
            )
        return {**self._recursive, **schemas}

    def _checked(
        self, stratification: Stratification, place: int, bodies: Mapping[int, tuple[Body, ...]]
    ) -> list[tuple[CheckedRule, ...]]:
        """The rules of a stratum, and behind them, if there are any, those that join auxiliary heads."""
        rules: list[CheckedRule] = []
        joining: list[CheckedRule] = []
        for number in stratification.strata[place]:
            rule = self._program.rules[number]
            text = self._text[slice(*(rule.written or rule.span))]
            heads: list[CheckedHead] = []
            for head_place, head in enumerate(rule.heads):
                if stratification.stratum_of(rule, head.relation) != place:
                    continue
                schema = self._schema_of(head.relation)
                if head.value is None and head.aggregates:
                    types = [
                        column.type if type_.literal else type_
                        for type_, column in zip(
                            self._types[head.relation][number, head_place], schema.columns, strict=True
                        )
                    ]
                    auxiliary, join = self._separation.take_apart(head, types, schema, text, rule.span)
                    heads += auxiliary
                    joining.append(join)
                else:
                    names = tuple(term.name for term in head.terms if isinstance(term, Variable))
                    value = head.value.name if isinstance(head.value, Variable) else head.value
                    copies = None if head.copies is None else head.copies.name
                    windows = tuple(in_units(one, bodies[number][0].types) for one in head.windows)
                    heads.append(CheckedHead(head.relation, names, value, schema, head.span, windows, copies))
            rules.append(CheckedRule(tuple(heads), bodies[number], text, rule.span))
        return [tuple(rules), *([tuple(joining)] if joining else [])]

    # -- names and arities ----------------------------------------------------

    def _check_head_shape(self, head: Head) -> None:
        name = head.relation
        if name in self._catalog or name in self._installed:
            what = "is loaded data: give the head another name"
            if name in self._installed:
                what = (
                    "is the head of an installed rule: give this one another name,"
                    " or define it anew by install(..., replace=True)"
                )
            raise error_at(RuleError, self._text, head.name_span, f"'{name}' {what}")
        for call in head.aggregates:
            self._check_argument_count(call)
        first = self._first_heads.setdefault(name, head)
        if len(head.columns) != len(first.columns):
            raise error_at(
                ArityError,
                self._text,
                head.span,
                f"'{name}' has {_columns(column_names(first))} in its first rule, not {len(head.columns)}",
            )
        if head.bag != first.bag:
            forms = ["no bag", "a bag"]
            message = f"'{name}' is {forms[head.bag]} here and {forms[first.bag]} in its first rule:"
            where = f"write bag in front of each head '{name}', or of none"
            raise error_at(RuleError, self._text, head.span, f"{message} {where}")
        if (head.value is None) != (first.value is None):
            forms = ["a relation", "functional"]
            here = head.value is not None
            raise error_at(
                ArityError,
                self._text,
                head.span,
                f"'{name}' is {forms[here]} here and {forms[not here]} in its first rule",
            )

    def _check_argument_count(self, call: Aggregate) -> None:
        wanted = wanted_arguments(call)
        if wanted:
            raise error_at(ArityError, self._text, call.span, f"'{call.name}' takes {wanted}")

    def _check_atom_shape(self, atom: Atom) -> None:
        name = atom.relation
        columns = self._columns_of(name)
        if columns is None:
            known = [known for known in (*self._catalog, *self._first_heads) if not is_auxiliary(known)]
            near = suggestion(name, known)
            if name in FUNCTIONS:
                near = f", but a function: compare what it gives, as in {name}(...) = v"
            message = self._installed.get(name) or f"unknown relation '{name}'{near}"
            raise error_at(UnknownRelationError, self._text, atom.name_span, message)
        if atom.functional and self._is_bag(name):
            message = f"'{name}' is a bag: it is no function, write {name}({', '.join(columns)})"
            raise error_at(ArityError, self._text, atom.span, message)
        if len(columns) == len(atom.terms):
            return
        if atom.functional:
            keys = len(atom.terms) - 1
            found = f"{name}[...] = v with {keys} {'key' if keys == 1 else 'keys'} reads {keys + 1}"
        else:
            found = f"not {len(atom.terms)}"
        raise error_at(
            ArityError,
            self._text,
            atom.span,
            f"'{name}' has {_columns(columns)}{':' if atom.functional else ','} {found}",
        )

    def _columns_of(self, name: str) -> list[str] | None:
        """The names of a relation's columns; None of one that is neither loaded nor derived."""
        if name in self._first_heads:
            return column_names(self._first_heads[name])
        if name in self._catalog:
            return [column.name for column in self._catalog[name].shown.columns]
        return None

    def _is_bag(self, name: str) -> bool:
        if name in self._first_heads:
            return self._first_heads[name].bag
        return name in self._catalog and self._catalog[name].bag

    def _is_wide(self, name: str) -> bool:
        return name not in self._first_heads and name in self._catalog and self._catalog[name].wide

    # -- rules ----------------------------------------------------------------

    def _check_rule(self, number: int) -> tuple[Body, ...]:
        rule = self._program.rules[number]
        body = rule.body
        if any(head.counts for head in rule.heads):
            body = name_wildcards(body, self._is_wide)
        parts = conjunctions(body, self._text)
        checker = BodyChecker(self._text, self._domains, self._schema_of, parts, rule.heads)
        bodies = checker.bodies()
        for place, head in enumerate(rule.heads):
            for variable in head.variables:
                checker.require(variable, f"head '{head.relation}' needs")
            if head.copies is not None:
                for alternative in bodies:
                    self._check_whole(head.copies, f"the copies of '{head.relation}'", alternative)
            types = [self._union(head, column, bodies) for column in range(len(head.all_columns))]
            self._types.setdefault(head.relation, {})[number, place] = types
            self._check_defaults(head, types)
        return tuple(bodies)

    def _check_defaults(self, head: Head, types: Sequence[ColumnType]) -> None:
        keys = [term.name for term in head.terms if isinstance(term, Variable)]
        for call, type_ in zip(head.columns, types, strict=False):
            if not isinstance(call, Aggregate) or call.default is None:
                continue
            if keys:
                message = (
                    f"a default is what a head without groups gives over nothing, and '{head.relation}' has"
                    f" groups by {', '.join(keys)}: of those without an assignment there is no end;"
                    f" list them in a relation, and give !{head.relation}(...) a rule of its own"
                )
                raise error_at(RuleError, self._text, call.default.span, message)
            try:
                default_value(call, type_.arrow)
            except TypeClashError as error:
                raise error_at(TypeClashError, self._text, call.default.span, str(error)) from None

    def _union(self, head: Head, column: int, bodies: list[Body]) -> ColumnType:
        """Type of one column of a head over all conjunctions of its rule."""
        term = head.all_columns[column]
        types = [self._term_type(term, body) for body in bodies]
        joined = types[0]
        for type_ in types[1:]:
            joined = self._joined(joined, type_, head, column, "in one alternative", "in another")
        if isinstance(term, Aggregate) and is_null_over_nothing(term, head):
            return replace(joined, nullable=True)
        return joined

    def _joined(
        self, first: ColumnType, second: ColumnType, head: Head, column: int, here: str, there: str
    ) -> ColumnType:
        term = head.all_columns[column]
        try:
            joined = first.joined(second)
        except TypeClashError as error:
            raise error_at(TypeClashError, self._text, term.span, str(error)) from None
        if joined is None:
            message = (
                f"{head.relation}.{column_names(head)[column]} is of type {plain_type(first.arrow)} {here} "
                f"and {plain_type(second.arrow)} {there}: they have no domain in common"
            )
            raise error_at(TypeClashError, self._text, term.span, message)
        return joined

    def _term_type(self, term: Variable | Aggregate | Window, body: Body) -> ColumnType:
        if isinstance(term, Variable):
            return body.types[term.name]
        if isinstance(term, Window):
            try:
                return window_type(term, body.types, self._domains)
            except TypeClashError as error:
                raise error_at(TypeClashError, self._text, error.span or term.span, str(error)) from None
        if term.function in ("count", DISTINCT_COUNT):
            return ColumnType(self._domains.of(pa.int64()), pa.int64())
        argument = term.arguments[0]
        assert isinstance(argument, Variable)
        found = body.types[argument.name].arrow
        arrow = aggregate_type(term.function, found)
        if arrow is None:
            wanted = wanted_type(term.function)
            message = (
                f"'{term.function}' takes {wanted}, and '{argument.name}' is of type {plain_type(found)}"
            )
            raise error_at(TypeClashError, self._text, argument.span, message)
        if term.function not in AGGREGATES:
            self._check_compiles(term, arrow)
        if term.function in QUANTILES:
            self._check_weight(term, body)
        literal = extremum_of(term) is not None and body.types[argument.name].literal
        return ColumnType(self._domains.of(arrow), arrow, may_be_nothing(term, body), literal)

    def _check_weight(self, call: Aggregate, body: Body) -> None:
        for weight in call.arguments[2:]:
            assert isinstance(weight, Variable)
            self._check_whole(weight, f"the weights of '{call.function}'", body)

    def _check_whole(self, weight: Variable, what: str, body: Body) -> None:
        found = body.types[weight.name].arrow
        if kind(found) != "integer":
            message = f"{what} are whole numbers, and '{weight.name}' is of type {plain_type(found)}"
            raise error_at(TypeClashError, self._text, weight.span, message)

    def _check_compiles(self, call: Aggregate, arrow: pa.DataType) -> None:
        from lftj.values.semigroup import semigroup  # with the compiler

        try:
            semigroup(call.function).operation(arrow.to_pandas_dtype())
        except AggregateError as error:
            raise error_at(TypeClashError, self._text, call.arguments[0].span, str(error)) from None

    # -- schemas --------------------------------------------------------------

    def _schema_of(self, name: str) -> Schema:
        """Schema of a relation; of a derived one after its rules were checked, or its types found."""
        if name in self._catalog:
            return self._catalog[name]
        if name in self._recursive:
            return self._recursive[name]
        if name not in self._derived:
            first = self._first_heads[name]
            by_head = sorted(self._types[name].items())
            types = by_head[0][1]
            for (number, place), more in by_head[1:]:
                head = self._program.rules[number].heads[place]
                types = [
                    self._joined(known, new, head, column, "in an earlier rule", "here")
                    for column, (known, new) in enumerate(zip(types, more, strict=True))
                ]
            self._derived[name] = self._schema(first, types)
        return self._derived[name]

    def _schema(self, head: Head, types: Sequence[ColumnType]) -> Schema:
        """The schema of a derived relation, whose first head this is."""
        named = list(zip(column_names(head), types, strict=True))
        for (name, type_), term in zip(named, head.all_columns, strict=True):
            if type_.arrow == pa.null():
                message = f"'{head.relation}.{name}' is null in all rules: give it a type, as in"
                raise error_at(TypeClashError, self._text, term.span, f'{message} cast(null, "int64")')
        columns = [Column(name, replace(type_, literal=False)) for name, type_ in named]
        if head.bag:
            columns.append(copy_column(self._domains))
        return Schema(tuple(columns), functional=head.value is not None, bag=head.bag)

    def _settle_literals(self, bodies: Mapping[int, tuple[Body, ...]]) -> None:
        """Let literals have the types of the heads' columns in which they stand."""
        for number, its in bodies.items():
            for head in self._program.rules[number].heads:
                for column, term in zip(self._schema_of(head.relation).columns, head.columns, strict=False):
                    extremum = extremum_of(term)
                    variable = term.arguments[0] if isinstance(term, Aggregate) and extremum else term
                    if isinstance(variable, Variable):
                        for body in its:
                            self._settle(variable, body, column.type)
            for body in its:
                unread = {name: type_ for name, type_ in body.types.items() if type_.arrow == pa.null()}
                body.types.update({name: replace(type_, arrow=pa.int64()) for name, type_ in unread.items()})

    def _settle(self, term: Variable, body: Body, wanted: ColumnType) -> None:
        known = body.types[term.name]
        if known.literal:
            body.types[term.name] = replace(wanted, nullable=known.nullable)
        elif known.domain is not wanted.domain:  # it was, for another head
            message = f"'{term.name}' is of type {known.arrow} in one head and of type {wanted.arrow} here"
            raise error_at(TypeClashError, self._text, term.span, f"{message}: take two variables")


def _columns(names: list[str]) -> str:
    return f"{len(names)} {'column' if len(names) == 1 else 'columns'} ({', '.join(names)})"
