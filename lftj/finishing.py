"""What the search could not do, done on the rows that come out of it.

Assignments compute new variables, comparisons on values drop rows, and negated
atoms over assigned variables are joined with the rows once more.  Each happens
as soon as what it reads is there, so that an expression never sees a row that a
comparison before it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lftj.body import Body, Column, ColumnType, Schema
from lftj.domains import without_views
from lftj.expressions import compare, evaluate, variables_of
from lftj.lowering import Lowered, lower
from lftj.plan import compile_plan
from lftj.planner import choose_order
from lftj.relation import Relation
from lftj.search import Counters, batches
from lftj.syntax import Atom, Comparison, Variable

Rows = dict[str, np.ndarray]
"""Code columns by variable, all of one length."""

ROW_NUMBER = "row#"  # no variable or relation of a program has such a name
ROWS = "rows#"


def finish(
    lowered: Lowered, rows: Rows, weights: np.ndarray, relations: Mapping[str, Relation]
) -> tuple[Rows, np.ndarray]:
    """Rows with the assigned variables, less those that a comparison or negated atom refuses.

    Raises RangeError and EvaluationError of the expressions.
    """
    table = _Table(lowered, rows, weights)
    table.compare_ready()
    for assignment in lowered.assignments:
        table.assign(assignment.variable, evaluate(assignment.expression, table.values))
        table.compare_ready()
    for negation in lowered.negations:
        table.keep(~_holds(table, negation, relations))
    return table.rows, table.weights


class _Table:
    """Rows as codes and as values; ``pending`` comparisons wait for their variables."""

    def __init__(self, lowered: Lowered, rows: Rows, weights: np.ndarray) -> None:
        self.types = lowered.types
        self.rows = dict(rows)
        self.weights = weights
        self.pending = list(lowered.comparisons)
        self.values = {
            name: self.types[name].domain.decode(codes, self.types[name].arrow)
            for name, codes in rows.items()
        }

    def keep(self, mask: np.ndarray) -> None:
        if mask.all():
            return
        kept = pa.array(np.flatnonzero(mask))
        self.rows = {name: codes[mask] for name, codes in self.rows.items()}
        self.values = {name: without_views(array).take(kept) for name, array in self.values.items()}
        self.weights = self.weights[mask]

    def compare_ready(self) -> None:
        for comparison in list(self.pending):
            if {v.name for v in compared_variables(comparison)} <= self.values.keys():
                self.pending.remove(comparison)
                mask = np.asarray(compare(comparison, self.values).fill_null(False))
                # a comparison of literals alone gives one value
                self.keep(np.broadcast_to(mask, len(self.weights)) if len(mask) == 1 else mask)

    def assign(self, name: str, array: pa.Array) -> None:
        type_ = self.types[name]
        if len(array) != len(self.weights):  # an expression over literals alone gives one value
            array = pa.repeat(array[0], len(self.weights))
        if array.type != type_.arrow:
            array = array.cast(type_.arrow)
        self.values[name] = array
        self.rows[name] = type_.domain.encode(array)


def compared_variables(comparison: Comparison) -> list[Variable]:
    """The variables of both sides, as often as they stand there."""
    return [*variables_of(comparison.left), *variables_of(comparison.right)]


def _holds(table: _Table, negation: Atom, relations: Mapping[str, Relation]) -> np.ndarray:
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
    lowered = lower(body, {**relations, ROWS: numbered}, [ROW_NUMBER], counted=False)
    held = np.zeros(n_rows, dtype=bool)
    if lowered.empty is None:
        plan = compile_plan(lowered.problem, choose_order(lowered.problem).order, write=True)
        for columns, _ in batches(plan, Counters.of(plan), max(1, n_rows)):
            held[columns[0]] = True
    return held


def _row_number_type(types: Mapping[str, ColumnType]) -> ColumnType:
    """Any type will do: row numbers are codes and never become values."""
    return next(iter(types.values()))
