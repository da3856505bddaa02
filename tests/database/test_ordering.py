"""`order_by=` and `limit=`: the order of the values, ties by the other columns, whatever the threads."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import errors
from lftj.database import ordering
from maintenance import Workspace
from support.rows import rows_of

RULE = "h(a, s, d, f) <- x(a, s, d, f)."
COLUMNS = ("a", "s", "d", "f")
ROW = st.tuples(
    st.integers(-2, 2),
    st.sampled_from(["", "a", "b", "é", "😀"]),
    st.sampled_from([Decimal("1.5"), Decimal("-2.25"), Decimal("10.00")]),
    st.sampled_from([0.5, -1.5, float("inf"), float("-inf")]),
)
TABLE = pa.schema(
    [("a", pa.int8()), ("s", pa.string_view()), ("d", pa.decimal128(6, 2)), ("f", pa.float64())]
)


def database(rows: list[tuple[Any, ...]]) -> lftj.Database:
    made = lftj.Database()
    columns = zip(*dict.fromkeys(rows), strict=True) if rows else [[]] * 4
    made.load(
        "x",
        pa.table(
            [pa.array(column, field.type) for column, field in zip(columns, TABLE, strict=True)], schema=TABLE
        ),
    )
    return made


def expected(rows: list[tuple[Any, ...]], keys: list[tuple[str, bool]]) -> list[tuple[Any, ...]]:
    """By one stable sort for each column, the most important one last."""
    found = sorted(set(rows))
    for name, descending in reversed(keys):
        found.sort(key=lambda row: row[COLUMNS.index(name)], reverse=descending)
    return found


@given(
    rows=st.lists(ROW, max_size=30),
    keys=st.lists(
        st.tuples(st.sampled_from(COLUMNS), st.booleans()), max_size=4, unique_by=lambda key: key[0]
    ),
    limit=st.none() | st.integers(0, 12),
    threads=st.sampled_from((1, 2)),
)
def test_oracle(
    rows: list[tuple[Any, ...]], keys: list[tuple[str, bool]], limit: int | None, threads: int
) -> None:
    order_by = [f"{name} desc" if descending else name for name, descending in keys]
    made = database(rows)
    wanted = expected(rows, keys)[:limit]
    if limit is None and not order_by:
        order_by = ["a asc"]
    assert rows_of(made.query(RULE, order_by=order_by, limit=limit, threads=threads)) == wanted
    batches = list(made.stream(RULE, order_by=", ".join(order_by) or None, limit=limit, batch_rows=3))
    assert [row for batch in batches for row in rows_of(batch)] == wanted
    assert all(batch.num_rows <= 3 for batch in batches)


def test_the_first_rows_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are sorted and dropped on the way: no more than twice the limit and a batch are held."""
    monkeypatch.setattr(ordering, "_SPARE_ROWS", 50)
    held = []
    first = ordering.Ordering._first

    def noted(self: ordering.Ordering, parts: Any) -> Any:
        held.append(sum(len(part[0]) for part in parts))
        return first(self, parts)

    monkeypatch.setattr(ordering.Ordering, "_first", noted)
    made = lftj.Database()
    numbers = np.random.default_rng(1).permutation(3000)
    made.load("n", {"a": numbers, "b": -numbers})
    batches = made.stream("h(a, b) <- n(a, b).", order_by="b desc", limit=20, batch_rows=100)
    assert [row for batch in batches for row in rows_of(batch)] == [(a, -a) for a in range(20)]
    assert max(held) <= 2 * 20 + 50 + 100 and len(held) > 10


def test_nan_comes_last_and_first_when_it_descends() -> None:
    made = lftj.Database()
    made.load("y", {"k": [1, 2, 3], "f": [2.0, float("nan"), float("inf")]})
    rule = "h[k] = f <- y[k] = f."
    assert made.query(rule, order_by="f")["k"].to_pylist() == [1, 3, 2]
    assert made.query(rule, order_by="f desc")["k"].to_pylist() == [2, 3, 1]


def test_in_workspaces_snapshots_and_prepared_rules() -> None:
    workspace = Workspace()
    day = datetime.date(2026, 1, 31)
    rows = [(day, True), (day, False), (day - datetime.timedelta(days=1), True)]
    workspace.load("y", rows, columns=["d", "b"])
    rule = "h(d, b) <- y(d, b)."
    wanted = [(day, False), (day, True), rows[2]]
    assert rows_of(workspace.query(rule, order_by="d DESC")) == wanted
    assert rows_of(workspace.prepare(rule).query(order_by="d desc", limit=2)) == wanted[:2]
    assert rows_of(workspace.prepare(rule).query(limit=1)) == [rows[2]]
    assert workspace.query(rule, limit=0).num_rows == 0
    assert workspace.query(rule, limit=0).schema == workspace.query(rule).schema


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"order_by": "b"},
            errors.UnknownColumnError,
            "order_by= names no column 'b' of the result; there are 'a', 'd', 'f' and 's'",
        ),
        (
            {"order_by": "a down"},
            errors.OrderError,
            'order_by= takes columns, such as "a" or "a desc", not \'a down\'',
        ),
        ({"order_by": [("a", "desc")]}, errors.OrderError, "order_by= takes columns, such as"),
        ({"order_by": "a, a desc"}, errors.OrderError, "order_by= names the column 'a' twice"),
        ({"order_by": ""}, errors.OrderError, "not ''"),
        ({"limit": -1}, ValueError, "limit must be a number of rows, 0 or more, not -1"),
        ({"limit": 1.5}, ValueError, "not 1.5"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], message: str) -> None:
    made = database([])
    for call in (made.query, made.stream):
        with pytest.raises(error) as caught:
            call(RULE, **options)
        assert message in str(caught.value)
