"""What the search could not do, done on the rows that come out of it.

Assignments compute new variables, comparisons on values drop rows, and negated
atoms over assigned variables are joined with the rows once more.  Each happens
as soon as what it reads is there, so that an expression never sees a row that a
comparison before it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.language.body import Body
from lftj.language.expressions import Evaluator, comparer, evaluator, variables_of
from lftj.language.syntax import Atom, Comparison, Variable
from lftj.planning.lowering import Lowered, lower
from lftj.planning.planner import choose_order
from lftj.search.queries.plan import compile_plan
from lftj.search.queries.search import batches
from lftj.storage.catalog import Catalog
from lftj.storage.relation import Relation
from lftj.values.domain import without_views
from lftj.values.schema import Column, ColumnType, Schema

Rows = dict[str, np.ndarray]
"""Code columns by variable, all of one length."""

ROW_NUMBER = "row#"  # no variable or relation of a program has such a name
ROWS = "rows#"


def finish(lowered: Lowered, rows: Rows, weights: np.ndarray, catalog: Catalog) -> tuple[Rows, np.ndarray]:
    """Rows with the assigned variables, less those that a comparison or negated atom refuses.

    ``rows``: of the variables that the problem emits.  Raises RangeError and EvaluationError of the
    expressions.
    """
    return Finishing(lowered).finish(rows, weights, catalog)


class Finishing:
    """:func:`finish` for any number of rows of one body."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._steps: list[tuple[str | None, Evaluator]] = []  # the variable, None for a comparison
        self._types = {name: _value_type(type_.arrow) for name, type_ in lowered.types.items()}
        known = set(lowered.problem.emitted)
        waiting = self._compare_ready(known, lowered.comparisons)
        for assignment in lowered.assignments:
            name, expression = assignment.variable, assignment.expression
            self._steps.append((name, evaluator(expression, self._types, self._types[name])))
            known.add(name)
            waiting = self._compare_ready(known, waiting)

    def __reduce__(self) -> tuple[object, ...]:
        """For an image (:mod:`maintenance.image`): the steps are functions, made anew of the body."""
        return Finishing, (self._lowered,)

    def _compare_ready(self, known: set[str], waiting: Sequence[Comparison]) -> list[Comparison]:
        """Add the comparisons whose variables are known; returns those that wait."""
        still_waiting = []
        for comparison in waiting:
            if {variable.name for variable in compared_variables(comparison)} <= known:
                self._steps.append((None, comparer(comparison, self._types)))
            else:
                still_waiting.append(comparison)
        return still_waiting

    def finish(self, rows: Rows, weights: np.ndarray, catalog: Catalog) -> tuple[Rows, np.ndarray]:
        table = _Table(self._lowered.types, self._types, rows, weights)
        for name, values in self._steps:
            found = values(table, len(table.weights))
            if name is None:
                if found.null_count:
                    found = found.fill_null(False)
                table.keep(found.to_numpy(zero_copy_only=False))
            else:
                if found.null_count and not self._lowered.types[name].nullable:
                    known = found.is_valid()
                    table.keep(known.to_numpy(zero_copy_only=False))
                    found = found.filter(known)
                table.assign(name, found)
        for negation in self._lowered.negations:
            table.keep(~_holds(table, negation, catalog))
        return table.rows, table.weights


class _Table(Mapping[str, pa.Array]):
    """Rows as codes; a mapping from variables to their values, which are decoded when asked for."""

    def __init__(
        self,
        types: Mapping[str, ColumnType],
        value_types: Mapping[str, pa.DataType],
        rows: Rows,
        weights: np.ndarray,
    ) -> None:
        self.types = types
        self.rows = dict(rows)
        self.weights = weights
        self._value_types = value_types
        self._values: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        found = self._values.get(name)
        if found is None:
            found = self.types[name].domain.decode(self.rows[name], self._value_types[name])
            self._values[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def keep(self, mask: np.ndarray) -> None:
        if mask.all():
            return
        self.rows = {name: codes[mask] for name, codes in self.rows.items()}
        self.weights = self.weights[mask]
        self._values = {}

    def assign(self, name: str, array: pa.Array) -> None:
        self._values[name] = array
        type_ = self.types[name]
        self.rows[name] = (
            type_.domain.encode_nullable(array) if type_.nullable else type_.domain.encode(array)
        )


def _value_type(arrow: pa.DataType) -> pa.DataType:
    """The type itself; in place of a view, which most of pyarrow's functions don't know, the large type."""
    is_view = pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow)
    return without_views(pa.nulls(0, arrow)).type if is_view else arrow


def compared_variables(comparison: Comparison) -> list[Variable]:
    """The variables of both sides, as often as they stand there."""
    return [*variables_of(comparison.left), *variables_of(comparison.right)]


def _holds(table: _Table, negation: Atom, catalog: Catalog) -> np.ndarray:
    """Which rows satisfy the atom: a join of the numbered rows with it."""
    names = list(table.rows)
    n_rows = len(table.weights)
    number_type = _row_number_type(table.types)
    number = np.arange(n_rows, dtype=np.int64)
    order = np.lexsort([number, *(table.rows[name] for name in reversed(names))])
    schema = Schema((*(Column(name, table.types[name]) for name in names), Column(ROW_NUMBER, number_type)))
    numbered = Relation.from_codes(
        ROWS, schema, [*(table.rows[name][order] for name in names), number[order]]
    )
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
