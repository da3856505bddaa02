"""Random transactions over a scenario's relations, and what they leave, without the engine.

A transaction is a list of (relation, row, weight); its changes add up, and a
row whose weights add up to more than 0 is in afterwards, to less than 0 out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from support.reference import Row
from support.strategies import Loaded, Scenario

Staged = tuple[str, Row, int]
Tuples = dict[str, set[Row]]


def after(relations: Mapping[str, set[Row]], transaction: list[Staged]) -> Tuples:
    """The relations after a transaction."""
    sums: dict[tuple[str, Row], int] = {}
    for relation, row, weight in transaction:
        sums[relation, row] = sums.get((relation, row), 0) + weight
    result = {name: set(rows) for name, rows in relations.items()}
    for (relation, row), weight in sums.items():
        if weight > 0:
            result[relation].add(row)
        elif weight < 0:
            result[relation].discard(row)
    return result


@st.composite
def rows_like(draw: DrawFn, relation: Loaded) -> Row:
    """A row of the relation, a row with parts of two of its rows, or one from its kinds' pools."""
    choice = draw(st.integers(0, 3))
    if relation.rows and choice < 2:
        row = draw(st.sampled_from(relation.rows))
        if choice == 0:
            return row
        other = draw(st.sampled_from(relation.rows))
        return tuple(draw(st.sampled_from(pair)) for pair in zip(row, other, strict=True))
    return tuple(draw(st.sampled_from(column)) for column in relation.values())


@st.composite
def transactions(draw: DrawFn, scenario: Scenario, most_changes: int = 12) -> list[Staged]:
    """Inserts and erasures of some relations, with repetitions, no-ops and cancelling pairs among them."""
    found: list[Staged] = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 5, most_changes, 0)))):
        relation = draw(st.sampled_from(scenario.loaded))
        weight = draw(st.sampled_from((1, -1, 1, -1, 1, -1, 2, -2)))
        found.append((relation.name, draw(rows_like(relation)), weight))
    return found


def zset_table(relation: Loaded, changes: list[tuple[Row, int]]) -> pa.Table:
    """Changes of one relation as a table with a weight column."""
    columns: dict[str, Any] = {
        f"c{i}": pa.array([row[i] for row, _ in changes], type=arrow)
        for i, arrow in enumerate(relation.types)
    }
    return pa.table({**columns, "weight": pa.array([weight for _, weight in changes], pa.int64())})
