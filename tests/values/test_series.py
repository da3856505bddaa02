"""``range`` beside DuckDB's."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import EvaluationError, RuleError
from lftj.values.series import series
from support.peer import connection

_ENDS = st.one_of(
    st.integers(-20, 20), st.integers(2**63 - 20, 2**63 - 1), st.integers(-(2**63), -(2**63) + 20)
)
_STEPS = st.one_of(
    st.integers(1, 7), st.integers(-7, -1), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)])
)


def _counted(start: int, end: int, step: int) -> list[int]:
    found, value = [], start
    while (value < end) if step > 0 else (value > end):
        found.append(value)
        value += step
    return found


@given(st.lists(st.tuples(_ENDS, _ENDS, _STEPS), max_size=4))
def test_integers(rows: list[tuple[int, int, int]]) -> None:
    rows = [row for row in rows if abs(row[1] - row[0]) < 100 or abs(row[2]) > 2**60]
    columns = [pa.array([row[n] for row in rows], pa.int64()) for n in range(3)]
    assert series(*columns).to_pylist() == [_counted(*row) for row in rows]


def test_by_one_and_from_nothing() -> None:
    assert series(pa.array([1, 5]), pa.array([3, 4])).to_pylist() == [[1, 2], []]
    assert series(pa.array([0, 3, -2])).to_pylist() == [[], [0, 1, 2], []]


@pytest.mark.parametrize("step", ["1 hour", "-90 minutes", "1 day"])
def test_moments_beside_duckdb(step: str) -> None:
    ends = [("2026-01-01 00:00:00", "2026-01-03 00:00:01"), ("2026-01-03 12:00:00", "2026-01-01 00:00:00")]
    for start, end in ends:
        (expected,) = (
            connection()
            .execute(f"select range(timestamp '{start}', timestamp '{end}', interval '{step}')")
            .fetchone()
        )
        hours = {"1 hour": 3600, "-90 minutes": -5400, "1 day": 86_400}[step]
        moments = [
            pa.array([datetime.datetime.fromisoformat(one)], pa.timestamp("us")) for one in (start, end)
        ]
        steps = pa.array([datetime.timedelta(seconds=hours)], pa.duration("us"))
        assert series(*moments, steps).to_pylist() == [expected]


def test_in_rules() -> None:
    db = lftj.Database()
    db.load("n", {"a": [0, 2, 3]})
    found = db.query("h(a, x) <- n(a), x in range(a).").to_pylist()
    assert found == [{"a": 2, "x": 0}, {"a": 2, "x": 1}, *({"a": 3, "x": x} for x in range(3))]
    with pytest.raises(EvaluationError, match="steps of 0"):
        db.query("h(x) <- n(a), x in range(0, 5, a).")
    with pytest.raises(RuleError, match="two timestamps and a duration"):
        db.query('h(x) <- n(a), x in range("a", 5).')
    with pytest.raises(EvaluationError, match="more values than a list holds"):
        db.query("h(count()) <- n(a), b = a * 2000000000, x in range(b).")
