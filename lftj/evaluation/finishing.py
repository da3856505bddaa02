"""What the search could not do, done on the rows that come out of it.

Assignments compute new variables, or give a row for each element of a list, comparisons on values drop
rows, and negated atoms over assigned variables are joined with the rows once more.  Each happens
as soon as what it reads is there, so that an expression never sees a row that a
comparison before it refuses.

What decimals and integers do with 64 bits is computed in whole numbers (:mod:`lftj.language.fixed_point`),
and a computed decimal has a code where one is read (:mod:`lftj.values.row_values`).  What is computed of one
variable that has a dictionary is computed once for each of its values, where the rows have few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation import on_codes
from lftj.language import fixed_point
from lftj.language.body import Assignment, Body
from lftj.language.expressions import Evaluator, comparer, evaluator, variables_of
from lftj.language.syntax import Atom, Comparison, Variable
from lftj.planning.lowered import Lowered
from lftj.planning.lowering import lower
from lftj.planning.planner import choose_order
from lftj.search.queries.plan import compile_plan
from lftj.search.queries.search import batches
from lftj.storage.catalog import Catalog
from lftj.storage.relation import Relation
from lftj.values.domain import viewless, without_views
from lftj.values.kinds import plain_array
from lftj.values.row_values import RowValues
from lftj.values.schema import Column, ColumnType, Schema

Rows = Mapping[str, np.ndarray]
"""Code columns by variable, all of one length."""

_Evaluated = Callable[[RowValues, int], pa.Array]
"""Rows, and their number, to the values of an expression."""

_SAMPLE = 1 << 10
_OFTEN = 4  # so often a value must occur, on average, for it to be worth while to look each up

ROW_NUMBER = "row#"  # no variable or relation of a program has such a name
ROWS = "rows#"


def work_on_rows(lowered: Lowered) -> Iterator[Comparison | Assignment]:
    """A body's assignments and the comparisons on its rows, each as soon as what it reads is there."""
    known = {*lowered.problem.emitted, *lowered.fetched}
    waiting = list(lowered.comparisons)
    for assignment in (None, *lowered.assignments):
        if assignment is not None:
            yield assignment
            known.add(assignment.variable)
        ready = [one for one in waiting if {variable.name for variable in compared_variables(one)} <= known]
        waiting = [one for one in waiting if one not in ready]
        yield from ready


class Finishing:
    """What is left to do on the rows of one body."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._steps: list[_Assigning | _Choosing | _OnCodes | _Comparing] = []
        self._types = {name: viewless(type_.arrow) for name, type_ in lowered.types.items()}
        for one in work_on_rows(lowered):
            self._steps.append(self._comparing(one) if isinstance(one, Comparison) else self._assigning(one))

    def __reduce__(self) -> tuple[object, ...]:
        """For an image (:mod:`maintenance.image`): the steps are functions, made anew of the body."""
        return Finishing, (self._lowered,)

    def _assigning(self, assignment: Assignment) -> _Assigning | _Choosing:
        name, expression = assignment.variable, assignment.expression
        chosen = None
        if not assignment.each:
            chosen = on_codes.chosen(expression, self._lowered.types[name], self._lowered.types)
        if chosen is not None:
            return _Choosing(name, chosen)
        wanted = None if assignment.each else self._types[name]
        exact = None if wanted is None else fixed_point.computed(expression, self._types, wanted)
        values = self._by_value(variables_of(expression), evaluator(expression, self._types, wanted))
        return _Assigning(name, exact, values, assignment.each)

    def _comparing(self, comparison: Comparison) -> _OnCodes | _Comparing:
        holds = on_codes.compared(comparison, self._lowered.types)
        if holds is not None:
            return _OnCodes(holds)
        exact = fixed_point.compared(comparison, self._types)
        values = self._by_value(compared_variables(comparison), comparer(comparison, self._types))
        return _Comparing(exact, values)

    def _by_value(self, variables: Sequence[Variable], values: Evaluator) -> _Evaluated:
        """Once for each value of the one variable that is read, if that has a dictionary and few values."""
        names = {variable.name for variable in variables}
        name = next(iter(names), "")
        types, value_types = self._lowered.types, self._types
        if len(names) != 1 or types[name].domain.ordered:
            return lambda table, n_rows: values(table.arrays, n_rows)

        def evaluated(table: RowValues, n_rows: int) -> pa.Array:
            codes = table[name]
            if not _are_few(codes):
                return values(table.arrays, n_rows)
            rows = pa.array(codes, pa.int64()).dictionary_encode()
            distinct = rows.dictionary.to_numpy()
            try:
                found = values(RowValues(types, {name: distinct}, value_types).arrays, len(distinct))
            except (RangeError, EvaluationError):
                return values(table.arrays, n_rows)  # and the first such row is named
            return found.take(rows.indices)

        return evaluated

    def finish(self, rows: Rows, weights: np.ndarray, catalog: Catalog) -> tuple[Rows, np.ndarray]:
        """Rows with the assigned variables, less those that a comparison or negated atom refuses.

        ``rows``: of the variables that the problem emits.  Raises RangeError and EvaluationError of the
        expressions.
        """
        table = RowValues(self._lowered.types, rows, self._types, self._lowered.fetched)
        for step in self._steps:
            if not len(weights):  # nothing is left to compute, and a few rows often come to that
                return dict.fromkeys(self._lowered.types, weights), weights
            if isinstance(step, _Assigning):
                weights = self._assign(table, step, weights)
                continue
            if isinstance(step, _OnCodes):
                weights = _keep(table, step.holds(table), weights)
                continue
            if isinstance(step, _Choosing):
                table.assign(step.name, step.codes(table))
                continue
            holds = step.exact(table.numbers) if step.exact else None
            if holds is None:
                found = step.values(table, len(weights))
                if found.null_count:
                    found = found.fill_null(False)
                holds = found.to_numpy(zero_copy_only=False)
            weights = _keep(table, holds, weights)
        for negation in self._lowered.negations:
            weights = _keep(table, ~_holds(table, len(weights), negation, catalog), weights)
        return table, weights

    def _assign(self, table: RowValues, step: _Assigning, weights: np.ndarray) -> np.ndarray:
        """Returns the weights of the rows that are left: where the variable may not be NULL, it is known."""
        if step.each:
            return self._generate(table, step, weights)
        numbers = step.exact(table.numbers) if step.exact else None
        if numbers is not None:
            table.assign(step.name, numbers)
            return weights
        found = step.values(table, len(weights))
        if found.null_count and not self._lowered.types[step.name].nullable:
            known = found.is_valid()
            weights = _keep(table, known.to_numpy(zero_copy_only=False), weights)
            found = found.filter(known)
        table.assign(step.name, found)
        return weights

    def _generate(self, table: RowValues, step: _Assigning, weights: np.ndarray) -> np.ndarray:
        """A row for each element, equal ones once; of NULL and NaN, which equal nothing, none."""
        lists = step.values(table, len(weights))
        elements = without_views(plain_array(lists.flatten())).cast(self._types[step.name])
        known = elements.is_valid()
        if pa.types.is_floating(elements.type):
            known = pc.and_(known, pc.invert(pc.is_nan(elements).fill_null(True)))
        places = pc.list_parent_indices(lists).filter(known).to_numpy()
        table.keep(places)
        table.assign(step.name, elements.filter(known))
        codes = table[step.name]
        order = np.lexsort((codes, places))
        again = (places[order][1:] == places[order][:-1]) & (codes[order][1:] == codes[order][:-1])
        is_first = np.ones(len(places), dtype=bool)
        is_first[order[1:][again]] = False
        return _keep(table, is_first, weights[places])


class _Assigning(NamedTuple):
    """``exact``: by whole numbers, where that can be; ``each``: the values are lists."""

    name: str
    exact: fixed_point.Computed | None
    values: _Evaluated
    each: bool


class _Choosing(NamedTuple):
    """``codes``: those of the variable."""

    name: str
    codes: on_codes.OnCodes


class _OnCodes(NamedTuple):
    """``holds``: of the rows' codes, which rows pass."""

    holds: on_codes.OnCodes


class _Comparing(NamedTuple):
    exact: fixed_point.Compared | None
    values: _Evaluated


def _are_few(codes: np.ndarray) -> bool:
    """Whether values occur often, by how many pairs of a sample are equal."""
    if len(codes) < _SAMPLE:
        return False
    sample = codes[:: len(codes) // _SAMPLE][:_SAMPLE]
    repeats = _SAMPLE - len(np.unique(sample))
    return 2 * repeats * len(codes) >= _OFTEN * _SAMPLE**2


def _keep(table: RowValues, mask: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Leave some rows of a table; returns their weights."""
    if mask.all():
        return weights
    places = np.flatnonzero(mask)
    table.keep(places)
    return weights[places]


def compared_variables(comparison: Comparison) -> list[Variable]:
    """The variables of both sides, as often as they stand there."""
    return [*variables_of(comparison.left), *variables_of(comparison.right)]


def _holds(table: RowValues, n_rows: int, negation: Atom, catalog: Catalog) -> np.ndarray:
    """Which rows satisfy the atom: a join of the numbered rows with it."""
    names = list(table)
    number_type = _row_number_type(table.types)
    number = np.arange(n_rows, dtype=np.int64)
    order = np.lexsort([number, *(table[name] for name in reversed(names))])
    schema = Schema((*(Column(name, table.types[name]) for name in names), Column(ROW_NUMBER, number_type)))
    numbered = Relation.from_codes(ROWS, schema, [*(table[name][order] for name in names), number[order]])
    body = Body(
        atoms=(
            Atom(ROWS, (*(Variable(name) for name in names), Variable(ROW_NUMBER))),
            Atom(negation.relation, negation.terms, negation.functional),
        ),
        negations=(),
        comparisons=(),
        assignments=(),
        types={**table.types, ROW_NUMBER: number_type},
    )
    tables: Catalog = {**catalog, ROWS: numbered}
    schemas = {atom.relation: tables[atom.relation].schema for atom in body.atoms}
    lowered = lower(body, schemas, [ROW_NUMBER], counted=False)
    lowered.check(tables)
    held = np.zeros(n_rows, dtype=bool)
    if lowered.empty is None:
        tables = lowered.tables(tables)
        choice = choose_order(lowered.problem, tables)
        plan = compile_plan(lowered.problem, choice.order, write=True).bind(tables)
        for columns, _ in batches(plan, plan.new_counters(), max(1, n_rows)):
            held[columns[0]] = True
    return held


def _row_number_type(types: Mapping[str, ColumnType]) -> ColumnType:
    """Any type will do: row numbers are codes and never become values."""
    return next(iter(types.values()))
