"""oracle: steps between moments, and moments an interval later, against DuckDB's."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import errors
from support import peer

TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
STEPS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


@given(
    TIMES, TIMES | st.none(), st.integers(-50, 50), st.integers(-1000, 1000), st.integers(-(10**13), 10**13)
)
def test_moments(
    one: datetime.datetime, other: datetime.datetime | None, months: int, days: int, ticks: int
) -> None:
    """Steps between two moments, and what an interval later is."""
    other = other or one + datetime.timedelta(days=days % 9 - 4, microseconds=ticks % 7 - 3)
    database, connection = lftj.Database(), peer.connection()
    row = {"a": one, "b": other, "n": months, "d": days, "u": ticks}
    database.load("z", pa.table({name: [value] for name, value in row.items()}))
    calls = {f'date_diff("{unit}", a, b)': f"date_diff('{unit}', a, b)" for unit in STEPS}
    calls["add_interval(a, n, d, u)"] = "a + to_months(n) + to_days(d) + to_microseconds(u)"
    sides = "(select $1::timestamp a, $2::timestamp b, $3::int n, $4::int d, $5::bigint u)"
    for ours, theirs in calls.items():
        (expected,) = connection.execute(f"select {theirs} from {sides}", list(row.values())).fetchone()
        assert database.query(f"h(v) <- z(a, b, n, d, u), v = {ours}.").to_pylist() == [{"v": expected}], ours


@pytest.mark.parametrize("call", ["make_date(2023, 2, 29)", "make_date(2023, 13, 1)", "make_date(a, 1, 0)"])
def test_no_such_date(call: str) -> None:
    database = lftj.Database()
    database.load("z", pa.table({"a": [1]}))
    with pytest.raises(errors.EvaluationError, match="no such date in make_date"):
        database.query(f"h(v) <- z(a), v = {call}.")
