"""Durations, windows of equal length, and times as integers: against whole numbers of Python, and DuckDB."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lftj
from lftj import errors

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "D": 86_400 * 10**9}
MONDAY = datetime.date(2000, 1, 3).toordinal() - datetime.date(1970, 1, 1).toordinal()
UNITS = ("s", "ms", "us", "ns")
SPANS = {"250us": 250_000, "1500ms": 1500 * 10**6, "10s": 10**10, "7m": 420 * 10**9, "5h": 18_000 * 10**9,
         "1d": NANOSECONDS["D"], "7d": 7 * NANOSECONDS["D"]}  # fmt: skip
ENDS = (0, -1, 1, 2**63 - 1, -(2**63) + 1, 10**18 + 1, -(10**17) - 7)


def answer(expression: str, values: list[Any], type_: pa.DataType, **params: Any) -> pa.ChunkedArray:
    database = lftj.Database()
    database.load("r", pa.table({"k": range(len(values)), "x": pa.array(values, type_)}))
    return database.query(f"h(k, v) <- r(k, x), v = {expression}.", order_by="k", params=params)["v"]


def counts(column: pa.ChunkedArray) -> list[int]:
    of = pa.int32() if pa.types.is_date(column.type) else pa.int64()
    return column.cast(of).to_pylist()


def finer(unit: str, span: str) -> str:
    """The unit in which a time and a duration meet."""
    own = next(one for one in UNITS if SPANS[span] % NANOSECONDS[one] == 0)
    return min(unit, own, key=NANOSECONDS.__getitem__)


@given(
    st.sampled_from(UNITS),
    st.sampled_from([None, "UTC", "Europe/Berlin"]),
    st.sampled_from(ENDS) | st.integers(-(2**62), 2**62) | st.integers(-(10**11), 10**11),
    st.sampled_from(list(SPANS)),
    st.sampled_from([None, *SPANS]),
)
@example("us", None, -(2**63) + 1, "10s", None)
@example("s", "Europe/Berlin", 2**63 - 1, "250us", "7d")
def test_windows_of_timestamps(
    unit: str, zone: str | None, number: int, length: str, offset: str | None
) -> None:
    call = f"tumble(x, {length}{f', {offset}' if offset else ''})"
    made = finer(finer(unit, length), offset or length)
    exact = number * NANOSECONDS[unit]
    past = exact - MONDAY * NANOSECONDS["D"] - (SPANS[offset] if offset else 0)
    begin = (exact - past % SPANS[length]) // NANOSECONDS[made]
    fits = max(abs(begin), abs(exact // NANOSECONDS[made])) < 2**63
    if not fits:
        with pytest.raises(errors.RangeError, match=re.escape(made)):
            answer(call, [number], pa.timestamp(unit, zone))
        return
    found = answer(call, [number], pa.timestamp(unit, zone))
    assert found.type == pa.timestamp(made, zone)
    assert counts(found) == [begin]


@given(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(1, 2**33), st.integers(-(2**33), 2**33))
def test_windows_of_dates_and_integers(number: int, length: int, offset: int) -> None:
    def begin(origin: int, offset: int) -> int:
        return number - (number - origin - offset) % length

    params = {"length": length, "offset": offset}
    assert counts(answer("tumble(x, $length, $offset)", [number], pa.int32(), **params)) == [begin(0, offset)]
    assert counts(answer("tumble(x, $length)", [number], pa.int64(), length=length)) == [begin(0, 0)]
    if begin(MONDAY, offset) < -(2**31):
        with pytest.raises(errors.RangeError, match="does not fit type date32"):
            answer("tumble(x, $length, $offset)", [number], pa.date32(), **params)
        return
    found = answer("tumble(x, $length, $offset)", [number], pa.date32(), **params)
    assert (found.type, counts(found)) == (pa.date32(), [begin(MONDAY, offset)])
    if length < 10**8:
        spans = {"length": datetime.timedelta(length), "offset": datetime.timedelta(offset % 10**8)}
        same = begin(MONDAY, offset % 10**8)
        if same >= -(2**31):
            assert counts(answer("tumble(x, $length, $offset)", [number], pa.date32(), **spans)) == [same]


MOMENTS = st.datetimes(datetime.datetime(1, 1, 20), datetime.datetime(9999, 1, 1))


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from(list(SPANS)), st.sampled_from(list(SPANS)))
def test_windows_and_epochs_are_duckdbs(moments: list[datetime.datetime], length: str, offset: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    spans = [f"interval '{SPANS[one] // 1000} microseconds'" for one in (length, offset)]
    for zone in (None, "UTC"):
        column = pa.array(moments, pa.timestamp("us", zone))
        rows = pa.table({"k": range(len(moments)), "x": column})
        connection.register("r", rows)
        for ours, theirs in {
            f"tumble(x, {length})": f"time_bucket({spans[0]}, x)",
            f"tumble(x, {length}, {offset})": f"time_bucket({spans[0]}, x, {spans[1]})",
            f"x + {length}": f"x + {spans[0]}",
            f"{offset} - 2 * {length} + x": f"x + {spans[1]} - {spans[0]} - {spans[0]}",
            "epoch_ms(x)": "epoch_ms(x)",
            "epoch_us(x)": "epoch_us(x)",
            'cast(x, "int64")': "epoch_us(x)",
        }.items():
            found = connection.sql(f"select {theirs} v from r order by k").to_arrow_table()["v"]
            assert counts(answer(ours, moments, column.type)) == counts(found), ours


@given(st.sampled_from(UNITS), st.sampled_from(UNITS), st.sampled_from(ENDS) | st.integers(-(2**62), 2**62))
def test_epochs_and_durations_in_other_units(unit: str, other: str, number: int) -> None:
    exact = Fraction(number * NANOSECONDS[unit], NANOSECONDS[other])
    rounded = int(abs(exact) + Fraction(1, 2)) * (1 if exact > 0 else -1)
    for type_ in (pa.timestamp(unit), pa.timestamp(unit, "Asia/Tokyo"), pa.duration(unit)):
        assert counts(answer('cast(x, "int64")', [number], type_)) == [number]
        if other == "s":
            continue
        if abs(rounded) < 2**63:
            assert counts(answer(f"epoch_{other}(x)", [number], type_)) == [rounded]
        else:
            with pytest.raises(errors.RangeError, match="does not fit type int64"):
                answer(f"epoch_{other}(x)", [number], type_)
    assert counts(answer(f'cast(x, "timestamp[{unit}]")', [number], pa.int64())) == [number]
    assert counts(answer(f'cast(x, "duration[{unit}]")', [number], pa.int64())) == [number]
    if exact.denominator == 1 and abs(exact) < 2**63:
        assert counts(answer(f'cast(x, "duration[{other}]")', [number], pa.duration(unit))) == [exact]
    else:
        with pytest.raises(errors.RangeError, match=re.escape(f"does not fit type duration[{other}]")):
            answer(f'cast(x, "duration[{other}]")', [number], pa.duration(unit))


def test_days_as_integers() -> None:
    days = [-(2**31) + 1, -1, 0, 2**31 - 1]
    assert answer('cast(x, "int64")', days, pa.date32()).to_pylist() == days
    assert counts(answer('cast(x, "date")', days, pa.int64())) == days
    for too_far in (-(2**31) - 1, 2**31):
        with pytest.raises(errors.RangeError, match="does not fit type date32"):
            answer('cast(x, "date")', [too_far], pa.int64())
    assert answer("epoch_ms(x)", [1, -1], pa.date32()).to_pylist() == [86_400_000, -86_400_000]


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("tumble(x, 0s)", errors.EvaluationError, "without a length in tumble(x, 0s) where x = 1970"),
        ("tumble(x, -5m)", errors.EvaluationError, "a window without a length in tumble(x, -5m)"),
        ("tumble(x, 10)", errors.TypeClashError, "there is no tumble for types timestamp[ms], int64"),
        ("tumble(cast(x, \"date\"), 36h)", errors.EvaluationError, "dates that is of no whole days"),
        ("tumble(x)", errors.ArityError, "'tumble' takes 2 or 3 arguments"),
        ("tumble(5, 1s)", errors.TypeClashError, "there is no tumble for types int64, duration[s]"),
        ("epoch_ms(5)", errors.TypeClashError, "there is no epoch_ms for type int64"),
        ("x + 10w", errors.RuleSyntaxError, "expected"),
        ("99999999999d", errors.RuleSyntaxError, "a duration of more than 64 bits of microseconds"),
        ('cast(1d, "date")', errors.TypeClashError, "there is no cast from type duration[s] to date32"),
        ('cast(1s, "duration")', errors.TypeClashError, "no type 'duration' to cast to"),
    ],
)  # fmt: skip
def test_what_is_refused(expression: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        answer(expression, [1], pa.timestamp("ms"))


def test_durations_are_compared_summed_and_given_as_parameters() -> None:
    database = lftj.Database()
    spans = pa.array([1000, 2500, None, 60_000], pa.duration("ms"))
    database.load("r", pa.table({"k": [0, 0, 1, 1], "d": spans}), nulls="keep")
    second = datetime.timedelta(seconds=1)
    for test, params in (("d >= 2500ms, d < 2m", {}), ("d >= $s, d < 2m", {"s": 2.5 * second})):
        assert database.query(f"h(d) <- r(_, d), {test}.", params=params, order_by="d").to_pydict() == {
            "d": [2.5 * second, 60 * second]
        }
    assert database.query("h(d) <- r(_, d), d in (1s, 1us).").to_pylist() == [{"d": second}]
    stats = "h(k, sum(d), min(d), max(d)) <- r(k, d)."
    assert [tuple(row.values()) for row in database.query(stats, order_by="k").to_pylist()] == [
        (0, 3.5 * second, second, 2.5 * second),
        (1, 60 * second, 60 * second, 60 * second),
    ]
    assert database.query("h(sum(d) default 5s) <- r(k, d), k > 1.").to_pylist() == [{"sum": 5 * second}]


INTERVALS = ("u >= t, u <= t + 10s", "u - t >= 0s, u - t <= 10s", "w = t + 5s, u <= w + 5s, t <= u",
             "10s >= u - t, u >= t", "add_interval(t, 0, 0, 10000000) >= u, u >= t")  # fmt: skip


@pytest.mark.parametrize("written", INTERVALS)
@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("ns")])
def test_a_moved_time_bounds_the_search(written: str, type_: pa.DataType) -> None:
    """In no order more keys of the one are looked at than there are within the interval, and a few."""
    if "add_interval" in written and type_.tz is not None:
        pytest.skip("add_interval is of times without a zone")
    seconds = range(0, 3000, 3)
    times = pa.array(seconds, pa.int64()).cast(pa.duration("s")).cast(pa.int64())
    per = NANOSECONDS["s"] // NANOSECONDS[type_.unit]
    column = pa.array([number * per for number in times.to_pylist()], type_)
    database = lftj.Database()
    database.load("a", pa.table({"t": column, "e": seconds}))
    database.load("b", pa.table({"u": column, "f": seconds}))
    rule = f"h(e, f) <- a(t, e), b(u, f), {written}."
    expected = {(e, f) for e in seconds for f in seconds if 0 <= f - e <= 10}
    for order in (["t", "u", "e", "f"], ["u", "t", "e", "f"], None):
        found = database.query(rule, order=order)
        assert set(zip(*found.to_pydict().values(), strict=True)) == expected
    trace = database.trace(rule, order=["t", "u", "e", "f"])
    assert trace.num_rows < 30 * len(seconds), "not the square of their number"
    assert "after the search: u" not in str(database.explain(rule))
