"""What lowering a body gives: a join problem, and what is left to do on its rows.

Of the data only schemas and dictionaries were looked at.  What the data must hold for the problem to be right
is said by ``Lowered``: :meth:`Lowered.check` looks, where tables are bound.  Where the body's literals and
parameters are all codes in conditions, another value of a parameter needs new codes and nothing else:
:meth:`Lowered.problem_for`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.language.body import Assignment
from lftj.language.expressions import comparer, comparison_text, text_of, variables_of
from lftj.language.syntax import Atom, Call, Comparison, Constant, Variable
from lftj.planning.statistics import histogram
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import Catalog
from lftj.storage.relation import Relation
from lftj.storage.wide_columns import Fetch
from lftj.values.domain import NULL_CODE, Domain, viewless
from lftj.values.literals import Value
from lftj.values.schema import ColumnType, Schema

DICTIONARY_STEP = 4
"""Comparing a value of a dictionary takes as much as finding the distinct codes of so many rows."""


@dataclass(frozen=True)
class Selection:
    """The codes of a variable with which a comparison holds, where the order of codes does not tell.

    ``comparison``: of the variable with a literal, a list of literals or a text.  ``columns``: those of
    relations where the variable stands.
    """

    name: str
    variable: str
    schema: Schema
    comparison: Comparison
    columns: tuple[tuple[str, int], ...]

    def relation(self, catalog: Catalog) -> Relation:
        """As the data are now."""
        return Relation.from_codes(self.name, self.schema, [self._codes(catalog)])

    def _codes(self, catalog: Catalog) -> np.ndarray:
        type_ = self.schema.columns[0].type
        call, literal = self.comparison.left, self.comparison.right
        if isinstance(call, Call) and call.function == "in":
            constants = [constant for constant in call.arguments[1:] if isinstance(constant, Constant)]
            codes = {type_.domain.encode_constant(constant.value) for constant in constants}
            return np.array(sorted(code for code in codes if code is not None), np.int64)
        among = self._among(catalog)
        if not isinstance(call, Call):
            assert isinstance(literal, Constant)
            return type_.domain.select(self.comparison.operator, literal.value, among)
        if among is None:
            among = type_.domain.known()
        arrow = viewless(type_.arrow)
        values = type_.domain.decode(among, arrow)
        held = comparer(self.comparison, {self.variable: arrow})({self.variable: values}, len(among))
        return among[held.fill_null(False).to_numpy(zero_copy_only=False)]

    def _among(self, catalog: Catalog) -> np.ndarray | None:
        """The codes of the variable in its smallest relation; None where that is not known, or larger."""
        tables = [(catalog[name], column) for name, column in self.columns]
        table, column = min(tables, key=lambda pair: pair[0].n_rows)
        domain = self.schema.columns[0].type.domain
        if not isinstance(table, Relation) or table.n_rows > DICTIONARY_STEP * domain.size:
            return None
        keys = histogram(table, column).keys
        return keys[keys != NULL_CODE]


@dataclass(frozen=True)
class CodedConstant:
    """A literal or parameter that conditions compare a variable with.

    ``first``: the number of the first condition; ``operators``: of that and of those after it.  ``is_term``:
    it stands in an atom, where it is a variable of its own.
    """

    constant: Constant
    domain: Domain
    operator: str
    first: int
    operators: list[str]
    is_term: bool

    @property
    def is_settled(self) -> bool:
        """Whether it has the same codes whatever comes: no parameter, and its domain has no dictionary."""
        return self.constant.parameter is None and self.domain.ordered

    def value(self, values: Mapping[str, Value]) -> Value:
        """With these values of the parameters."""
        name = self.constant.parameter
        return self.constant.value if name is None else values[name]


@dataclass(frozen=True)
class Lowered:
    """A body ready to be planned, and what is left to do on its rows.

    ``empty``: why the body has no assignment whatever the order, or None.  ``nan_free``: columns of relations
    that must hold no NaN, by name and number.  ``functions``: relations that are read as functions and may
    be none.  ``selections``: what the problem reads beside relations.  ``constants``: those whose codes stand
    in conditions; None where the problem depends on literals and parameters in other ways too.
    ``fetched``: variables that are read off the rows of wide relations.
    """

    problem: JoinProblem
    types: dict[str, ColumnType]
    comparisons: tuple[Comparison, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    negations: tuple[Atom, ...] = ()
    empty: str | None = None
    nan_free: frozenset[tuple[str, int]] = frozenset()
    functions: frozenset[str] = frozenset()
    selections: tuple[Selection, ...] = ()
    constants: tuple[CodedConstant, ...] | None = None
    fetched: Mapping[str, Fetch] = field(default_factory=dict)

    @property
    def finishes_in_search(self) -> bool:
        """No work is left on the rows."""
        return not (self.comparisons or self.assignments or self.negations or self.fetched)

    @property
    def distinct_by(self) -> frozenset[str]:
        """By which the finished rows differ, where those of the problem do."""
        return frozenset((*self.problem.emitted, *(one.variable for one in self.assignments if one.each)))

    @property
    def on_rows(self) -> list[str]:
        """What is done on the rows, for ``explain``."""
        names = dict.fromkeys(one.relation for one in self.fetched.values())
        done = [
            f"{', '.join(sorted(v for v, one in self.fetched.items() if one.relation == name))} of {name}"
            for name in names
        ]
        done += [comparison_text(one) + _filtering(one) for one in self.comparisons]
        done += [f"{one.variable} {one.sign} {text_of(one.expression)}" for one in self.assignments]
        done += [f"not {negation.relation}, of an assigned variable" for negation in self.negations]
        return done

    def problem_for(self, values: Mapping[str, Value]) -> JoinProblem | None:
        """The problem with other values of the parameters, of the same types, and dictionaries as they are.

        None where that is of another shape, or is not known without lowering the body anew.
        """
        if self.constants is None:
            return None
        offsets = [condition.offset for condition in self.problem.conditions]
        terms = set()
        for constant in self.constants:
            if not constant.is_settled:
                limits = code_limits(constant.domain, constant.operator, constant.value(values))
                if limits is None or [operator for operator, _ in limits] != constant.operators:
                    return None
                for number, (_, code) in enumerate(limits, constant.first):
                    offsets[number] = code
            if constant.is_term:
                terms.add((constant.domain, offsets[constant.first]))
        if len(terms) < sum(constant.is_term for constant in self.constants):
            return None  # literals of the same code would be one variable
        return self.problem.with_offsets(offsets)

    def tables(self, catalog: Catalog) -> Catalog:
        """The catalog with the selections."""
        if not self.selections:
            return catalog
        return {**catalog, **{selection.name: selection.relation(catalog) for selection in self.selections}}

    def check(self, catalog: Catalog) -> None:
        """Look whether the tables are such that the problem is right.

        Raises NanError and FunctionalConflictError.
        """
        for name in sorted(self.functions):
            catalog[name].check_functional()
        for name, column in sorted(self.nan_free):
            catalog[name].refuse_nan(column)
        for one in self.fetched.values():
            catalog[one.relation].refuse_null(one.column)


def _filtering(comparison: Comparison) -> str:
    """What to say of a variable that equals what is computed of others, but is found by a search."""
    sides = comparison.left, comparison.right
    for key, computed in (sides, sides[::-1]):
        if comparison.operator == "=" and isinstance(key, Variable) and not isinstance(computed, Variable):
            names = {variable.name for variable in variables_of(computed)}
            if names and key.name not in names:
                return f" (a filter: where {key.name} is to join, derive it in a rule of its own)"
    return ""


def code_limits(
    domain: Domain, operator: str, value: Value, lasting: bool = False
) -> list[tuple[str, int]] | None:
    """Operators and codes: what a code is whose value compares with a literal so.

    None when no value of the domain will ever equal the literal, or none equals it now; when there is
    none that compares so.
    """
    if operator in ("=", "!="):
        code = domain.code_of_constant(value) if lasting else domain.encode_constant(value)
        is_null = domain.keeps_null and code == NULL_CODE
        return None if code is None or is_null else [(operator, code)]
    low, high = domain.interval(operator, value)
    if low > high:
        return None
    lower = [(">=", low)] if low > KEY_MIN else []
    return lower + ([("<=", high)] if high < KEY_MAX else [])
