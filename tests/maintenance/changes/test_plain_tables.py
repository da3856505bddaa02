"""oracle: rows whose weights add up to more than 0, of tables that hold the same numbers in other forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import ChangeError
from maintenance import Workspace
from maintenance.changes.changes import MOST_WEIGHT

NUMBERS = st.integers(-2, 2) | st.sampled_from([2**63 - 1, -(2**63) + 1, -(2**63)])
ROWS = st.tuples(NUMBERS, NUMBERS, st.integers(-3, 3))
NAMES = ("src", "dst", "weight")


def table_of(rows: list[tuple[int, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=NAMES)


FORMS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "one batch": lambda table: table,
    "a slice": lambda table: pa.concat_tables([table_of([(7, 7, 9)]), table]).combine_chunks().slice(1),
    "chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "another order": lambda table: table.select(["weight", "dst", "src"]),
    "other integers": lambda table: table.set_column(2, "weight", table["weight"].cast(pa.int8())),
}


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(ROWS, max_size=8))
def test_every_form_of_the_same_numbers_changes_the_same(form: str, rows: list[tuple[int, ...]]) -> None:
    ws = Workspace()
    ws.load("edge", table_of([(0, 1, 0), (2, 2, 0)]).drop(["weight"]))
    with ws.transaction() as tx:
        tx.apply("edge", FORMS[form](table_of(rows)))
    sums = Counter({(src, dst): 0 for src, dst, _ in rows})
    for src, dst, weight in rows:
        sums[src, dst] += weight
    left = {(0, 1), (2, 2)} - {row for row, weight in sums.items() if weight < 0}
    wanted = left | {row for row, weight in sums.items() if weight > 0}
    found = ws.query("all(a, b) <- edge(a, b).")
    assert set(zip(*(column.to_pylist() for column in found.columns), strict=True)) == wanted


@pytest.mark.parametrize("weight", [MOST_WEIGHT + 1, -MOST_WEIGHT - 1, -(2**63)])
def test_a_weight_that_is_too_large_is_refused(weight: int) -> None:
    ws = Workspace()
    ws.load("edge", table_of([(0, 1, 0)]).drop(["weight"]))
    with ws.transaction() as tx, pytest.raises(ChangeError, match=f"the weight of row 1 .* is {weight};"):
        tx.apply("edge", table_of([(1, 2, 1), (1, 3, weight)]))
    assert ws["edge"].table.num_rows == 1


def test_null_is_refused() -> None:
    ws = Workspace()
    ws.load("edge", table_of([(0, 1, 0)]).drop(["weight"]))
    table = pa.table({"src": pa.array([1, None], pa.int64()), "dst": [1, 2], "weight": [1, 1]})
    with ws.transaction() as tx, pytest.raises(ChangeError, match="NULL in row 1"):
        tx.apply("edge", table)
