"""Times that are no good, by every way in: refused with the way out, and nothing changes."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace

NOON = datetime.datetime(2026, 1, 1, 12)
UTC = NOON.replace(tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
LOCAL, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")


def table(time: datetime.datetime | None, type_: pa.DataType = LOCAL, *more: str) -> pa.Table:
    """One row; ``more``: columns of 1 beside it."""
    rows = pa.table({"s": [2], "t": pa.array([time], type_)})
    for label in more:
        rows = rows.append_column(label, pa.array([1], pa.int64()))
    return rows


def insert(rows: Any) -> Callable[[Workspace], Any]:
    def does(ws: Workspace) -> None:
        with ws.transaction() as tx:
            tx.insert("r", rows)

    return does


def erase(rows: Any) -> Callable[[Workspace], Any]:
    def does(ws: Workspace) -> None:
        with ws.transaction() as tx:
            tx.erase("r", rows)

    return does


def apply(rows: Any) -> Callable[[Workspace], Any]:
    def does(ws: Workspace) -> None:
        with ws.transaction() as tx:
            tx.apply("r", rows)

    return does


def advance(time: Any) -> Callable[[Workspace], Any]:
    def does(ws: Workspace) -> None:
        with ws.transaction() as tx:
            tx.insert("r", table(NOON))
            tx.advance(time)

    return does


NULL = r"column 't': NULL in row \d .*; the column is the time of a stream: give a value"
FAR = (
    "a row with t=2026-01-01T17:00:00.000000 is further than ahead= allows beyond 2026-01-01T12:00:00.000000,"
    r" the latest time before: correct it, or call advance\(\) in the transaction where it has come"
)
BACK = "the clock is at .*11:59:00.000000 already, and does not go back: advance it to a later time"
WITH_ZONE = (
    r"'t': the values are of type timestamp\[us, tz=UTC\], .* timestamp\[us\]; .*: cast the values before"
)
SHORT = "keeps rows for 10m, and .* keep them for as long at least"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (insert(table(None)), NULL),
        (insert([(2, None)]), NULL),
        (erase(table(None)), NULL),
        (apply(table(None, LOCAL, "weight")), NULL),
        (lambda ws: ws.apply_many({"r": table(None, LOCAL, "weight", "txn")}), NULL),
        (lambda ws: ws.sql("insert into r values (2, null)"), NULL),
        (lambda ws: ws.sql("update r set t = null"), NULL),
        (insert(table(NOON + 5 * HOUR)), FAR),
        (insert([(2, NOON + 5 * HOUR)]), FAR),
        (lambda ws: ws.apply_many({"r": table(NOON + 5 * HOUR, LOCAL, "weight", "txn")}), FAR),
        (lambda ws: ws.sql("insert into r values (2, '2026-01-01 17:00')"), FAR),
        (lambda ws: ws.sql("update r set t = t + interval 5 hours"), FAR),
        (advance(NOON - HOUR), BACK),
        (advance(pa.scalar(NOON - HOUR, LOCAL)), BACK),
        (advance(UTC + HOUR), r"the clock of the streams is of type timestamp\[us\]: give such a time"),
        (insert(table(UTC, ZONED)), WITH_ZONE),
        (insert([(2, UTC)]), WITH_ZONE),
        (apply(table(UTC, ZONED, "weight")), WITH_ZONE),
        (lambda ws: ws.load("q", table(UTC, ZONED), time="t"), "streams have one clock, so cast one of them"),
        (lambda ws: ws.install("h(s) <- r(s, t), t > now() - 1h."), SHORT),
        (lambda ws: ws.install("h[w] = count() <- r(_, t), w = tumble(t, 1h). final h at w + 1h."), SHORT),
        (
            lambda ws: ws.install("h[s] = count() <- r(s, t). final h at s + 1."),
            "nothing bounds .* say so in",
        ),
    ],
)
def test_what_is_refused_changes_nothing(does: Callable[[Workspace], Any], said: str) -> None:
    ws = Workspace()
    ws.load("r", table(NOON), time="t", lateness="1m", keep="10m", ahead="1h")
    with pytest.raises(errors.LftjError, match=said):
        does(ws)
    assert sorted(ws["r"]) == [(2, NOON)] and ws.now == NOON - HOUR / 60
    assert ws.late("r") == (0, 0) and ws.heads == () and [*ws.relations] == ["r"]


def test_a_stream_is_declared_of_a_time_that_has_no_null() -> None:
    ws = Workspace()
    for time in (NOON, None):
        ws.load("r", table(time), nulls="keep")
        with pytest.raises(errors.NullError, match=r"may be NULL, .*: load it with not_null="):
            ws.install("stream r(t) late 1m.")
    ws.load("r", table(NOON), nulls="keep", not_null=["t"])
    ws.install("stream r(t) late 1m.")
    assert ws.now == NOON - HOUR / 60


def test_zones_are_one_clock() -> None:
    """Instants are compared as such: the zone is how a column shows them."""
    ws = Workspace()
    ws.load("a", table(UTC, ZONED), time="t")
    ws.load("b", table(UTC, pa.timestamp("us", "Europe/Berlin")), time="t")
    with ws.transaction() as tx:
        tx.insert("a", table(UTC + HOUR, pa.timestamp("us", "Asia/Tokyo")))
        tx.insert("b", table(UTC + HOUR, ZONED))
        with pytest.raises(errors.ChangeError, match="assume_timezone"):
            tx.insert("a", table(NOON))
    assert ws.now == UTC + HOUR and ws.late("a") == (0, 0)
    with ws.transaction() as tx, pytest.raises(errors.StreamError, match=r"tz=UTC.*give such a time"):
        tx.advance(NOON + HOUR)


@pytest.mark.parametrize("label", ["weight", "op"])
def test_two_rows_of_a_key_in_a_transaction(label: str) -> None:
    ws = Workspace()
    ws.load("k", {"id": [1], "v": [1]}, key=["id"])
    said = r"two rows of key id=2, \(2, 1\) and \(2, 2\): upsert\(\) replaces the row of a key"
    marks: list[Any] = [1, 1] if label == "weight" else ["I", "I"]
    rows = {"id": [2, 2], "v": [1, 2], label: marks}
    with pytest.raises(errors.KeyConflictError, match=said), ws.transaction() as tx:
        tx.apply("k", rows)
    with pytest.raises(errors.KeyConflictError, match=said):
        ws.apply_many({"k": {**rows, "txn": [5, 5]}})
    with pytest.raises(errors.KeyConflictError, match=said):
        ws.sql("insert into k values (2, 1), (2, 2)")
    with pytest.raises(errors.KeyConflictError, match=said), ws.transaction() as tx:
        tx.insert("k", [(2, 1)])
        tx.insert("k", [(2, 2)])
    assert sorted(ws["k"]) == [(1, 1)]
