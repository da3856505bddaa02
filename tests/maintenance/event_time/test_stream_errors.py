"""Bad input of streams: what is refused says what, where and the way out, and changes nothing."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace

NOON = datetime.datetime(2026, 1, 1, 12)
UTC = NOON.replace(tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ROWS = pa.table({"s": [1], "t": [NOON], "d": [NOON.date()], "z": [UTC], "w": ["x"], "f": [0.5]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time": "x"}, "time= names 'x', and there is no such column"),
        ({"time": "w"}, "stream 'r': column 'w' is of type string, and the time of a stream is a timestamp"),
        ({"time": "f"}, "stream 'r': column 'f' is of type double"),
        (
            {"time": "t", "lateness": 5},
            r"lateness=5: column 't' is of type timestamp\[us\], so give a duration",
        ),
        ({"time": "t", "keep": "2 h"}, "keep=2 h: .* such as 10s"),
        ({"time": "t", "keep": -HOUR}, "keep=-1h: give a length from 0"),
        ({"time": "s", "keep": "5s"}, "keep=5s: column 's' has integers, so give a whole number"),
        ({"time": "s", "keep": 1 << 62}, "keep=4611686018427387904: give a length from 0 to"),
        ({"time": "s", "keep": True}, "keep=True: column 's' has integers"),
        ({"time": "d", "keep": "36h"}, r"keep=36h: column 'd' is of type date32\[day\], so give whole days"),
        (
            {"time": "t", "keep": "1s", "lateness": "5s"},
            "keep=1s is shorter than lateness=5s.*for 5s at least",
        ),
        ({"time": "t", "key": ["s"]}, "key= replaces rows, and rows of a stream leave by their time"),
        ({"keep": "1s"}, "relation 'r': keep= is about a stream: name its column, time="),
        ({"on_late": print}, "on_late= is about a stream"),
    ],
)
def test_a_load(options: dict[str, Any], said: str) -> None:
    ws = Workspace()
    with pytest.raises(errors.DataError, match=said):
        ws.load("r", ROWS, **options)
    assert "r" not in ws.relations and ws.now is None


def test_null_in_the_time() -> None:
    ws = Workspace()
    rows = pa.table({"t": pa.array([NOON, None], pa.timestamp("us"))})
    for nulls in ("refuse", "keep"):
        with pytest.raises(errors.NullError, match="relation 'r', column 't': NULL in row 1"):
            ws.load("r", rows, time="t", nulls=nulls)
    ws.load("r", rows, time="t", nulls="drop")
    with ws.transaction() as tx:
        with pytest.raises(errors.DataError, match=r"'r', column 't'.*NULL.*time of a stream"):
            tx.insert("r", rows)
        tx.insert("r", [(NOON + HOUR,)])
    assert ws.now == NOON + HOUR


def test_streams_have_one_clock() -> None:
    ws = Workspace()
    ws.load("a", ROWS, time="t")
    for column, arrow in (("z", "timestamp"), ("d", "date32"), ("s", "int64")):
        with pytest.raises(
            errors.StreamError, match=f"stream 'b': its time '{column}' is of type {arrow}.*one clock"
        ):
            ws.load("b", ROWS, time=column)
        ws.load("b", ROWS)
        with pytest.raises(errors.StreamError, match=f"stream 'b': its time '{column}'"):
            ws.install(f"stream b({column}).")
    with pytest.raises(errors.StreamError, match="'a' is a stream with other settings, time='t': load it"):
        ws.load("a", ROWS, time="t", keep="1s")
    ws.load("a", ROWS)
    assert ws.now is None
    ws.load("a", ROWS, time="z", keep="1s")
    assert ws.now == UTC
    with pytest.raises(errors.StreamError, match="'a' is a stream with other settings, time='z', keep=1s"):
        ws.load("a", ROWS, time="z")


def test_the_clock() -> None:
    ws = Workspace()
    with (
        ws.transaction() as tx,
        pytest.raises(errors.StreamError, match="there is none: load one with time="),
    ):
        tx.advance(NOON)
    ws.load("r", ROWS, time="t")
    with ws.transaction() as tx:
        for wrong in (5, "noon", None, UTC, 0.5):
            with pytest.raises(
                errors.StreamError, match=r"the clock of the streams is of type timestamp\[us\]"
            ):
                tx.advance(wrong)
        with pytest.raises(
            errors.StreamError, match=r"the clock is at 2026-01-01T12:00:00.* does not go back"
        ):
            tx.advance(NOON - HOUR)
        tx.advance(NOON + HOUR)
        tx.advance(NOON)
    assert ws.now == NOON + HOUR
    with pytest.raises(errors.TransactionError, match="the transaction is over"):
        tx.advance(NOON + 2 * HOUR)
    with pytest.raises(errors.UnknownRelationError, match="unknown stream 's'"):
        ws.late("s")


@pytest.mark.parametrize("many", [False, True])
def test_a_time_too_far_ahead(many: bool) -> None:
    ws = Workspace()
    ws.load("r", {"t": pa.array([], pa.int64())}, time="t", lateness=2, keep=50, ahead=10)
    ws.install("n[] = count() <- r(_).")

    def take(*times: int) -> None:
        if many:
            ws.apply_many({"r": {"t": times, "weight": [1] * len(times), "txn": range(len(times))}})
        else:
            for time in times:
                with ws.transaction() as tx:
                    tx.insert("r", [(time,)])

    take(1000, 1010)
    assert ws.now == 1008
    with pytest.raises(
        errors.StreamError, match=r"stream 'r': a row with t=1021 is further than ahead= allows"
    ) as caught:
        take(1021)
    assert ("transaction 0: " in str(caught.value)) == many
    assert ws.now == 1008 and ws["r"].count == 2 and ws.late("r") == (0, 0)
    take(1020, 1030)
    with ws.transaction() as tx:
        tx.insert("r", [(1200,)])
        tx.advance(1195)
    assert ws.now == 1198 and sorted(ws["r"]) == [(1200,)]


def test_what_a_subscriber_of_late_rows_raises_is_a_warning() -> None:
    def refuse(table: pa.Table) -> None:
        raise ValueError("no")

    ws = Workspace()
    ws.load("r", {"t": [10]}, time="t", on_late=refuse)
    with pytest.warns(errors.SubscriberWarning, match="of 'late rows of r' raised ValueError: no"):  # noqa: SIM117
        with ws.transaction() as tx:
            tx.insert("r", [(5,)])
    assert ws.late("r") == (1, 0) and len(tx.subscriber_errors) == 1


def test_what_left_is_not_in_the_journal(tmp_path: Any) -> None:
    with Workspace.open(tmp_path, feed_bytes=0) as ws:
        ws.load("r", {"t": [10]}, time="t", keep=5)
        ws.install("n[] = count() <- r(_).")
        before = ws.version
        for time in (20, 30):
            with ws.transaction() as tx:
                tx.insert("r", [(time,)])
    with (
        Workspace.open(tmp_path) as ws,
        pytest.raises(errors.CursorError, match="the journal has no rows that left the stream 'r'"),
    ):
        ws.changes_since(before, "n")
