"""oracle: streams in `MaintainedJoin`, in Spark, against a workspace with the same transactions.

What stages do with them is tested without Spark, and against the history (``test_timed_stages.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lftj import errors
from maintenance import Workspace
from spark_bridge import MaintainedJoin
from spark_bridge.places.moving import Moving
from support.followed_join import PLACES, placed
from support.row_frames import frame_of_rows

TRADE, ITEM = "item string, n bigint, t timestamp, tags array<string>", "item string, kind string"
STREAM = "stream trade(t) late 30s keep 10m."
RULES = """
    sold[k, w] = sum(n) <- trade(i, n, t, _), item(i, k), w = tumble(t, 2m).
    lately(k, t) <- trade(i, _, t, _), item(i, k), t > now() - 1m.
    busy[k, w, u] = s <- sold[k, w] = s, lately(k, u), u >= w.
"""
CLOSED = "sold[k, w] = sum(n) <- trade(i, n, t, _), item(i, k), w = tumble(t, 2m). final sold at w + 2m."
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ITEMS = [("tea", "drink"), ("pot", "ware"), ("cup", "ware")]
Row = tuple[Any, ...]


def at(minutes: int, seconds: int = 0) -> datetime:
    return NOON + timedelta(minutes=minutes, seconds=seconds)


FIRST: list[Row] = [("tea", 5, at(0), None), ("pot", 1, at(1), None), ("tea", 2, at(1, 10), None)]
BATCHES: list[list[Row]] = [
    [("cup", 2, at(3), ["a"], 1), ("tea", 1, at(2), None, 1), ("pot", 1, at(0, 20), None, 1)],
    [("tea", 1, at(4, 5), None, 1), ("tea", 1, at(2, 40), None, 1), ("cup", 2, at(3), ["a"], -1)],
    [],
    [("pot", 7, at(9, 50), None, 1), ("tea", 9, at(1), None, -1)],
    [("pot", 2, at(9, 30), None, 1), ("pot", 2, at(9, 30), ["b"], 1), ("pot", 2, at(9, 30), ["b"], 1)],
    [("tea", 3, at(13), None, 1), ("pot", 7, at(9, 50), None, -1), ("cup", 1, at(12, 59), None, 1)],
]
ADVANCED = {2: at(5), 4: at(10, 30)}


def opened(spark: SparkSession, path: Path, text: str, **options: Any) -> MaintainedJoin:
    frames = {"trade": frame_of_rows(spark, FIRST, TRADE), "item": frame_of_rows(spark, ITEMS, ITEM)}
    return MaintainedJoin(text, frames, state=path, **options)


def workspace_of(text: str) -> Workspace:
    """Its first transaction brings what the state is made of; arrays are texts."""
    types = {"item": pa.string(), "n": pa.int64(), "t": pa.timestamp("us", "UTC"), "tags": pa.string()}
    workspace = Workspace()
    workspace.load("trade", pa.schema(types).empty_table(), time="t", lateness="30s", keep="10m")
    workspace.load("item", ITEMS, columns=["item", "kind"])
    workspace.install(text.replace(STREAM, ""))
    with workspace.transaction() as transaction:
        transaction.insert("trade", [(i, n, t, str(tags)) for i, n, t, tags in FIRST])
    return workspace


def shown(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Moments as such: Spark gives them in the session's zone."""
    return Counter(
        str([v.astimezone(UTC) if isinstance(v, datetime) else v for v in row.values()]) for row in rows
    )


def told(found: DataFrame) -> Counter[str]:
    return shown(found.toArrow().to_pylist())


@pytest.mark.in_turns
@pytest.mark.parametrize("where", ["executors", "driver", "auto"])
@pytest.mark.parametrize(("text", "head"), [(STREAM + RULES, "busy"), (CLOSED, "sold_final")])
def test_oracle_batches_of_a_stream(
    spark: SparkSession,
    tmp_path: Path,
    text: str,
    head: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Late rows, erasures, a time that is said, a batch again, another object, other partitions, a move."""
    options: dict[str, Any] = placed(where, partitions=2)
    if STREAM not in text:
        options |= {"time": {"trade": "t"}, "lateness": "30 seconds", "keep": timedelta(minutes=10)}
    joined, workspace = opened(spark, tmp_path, text, **options), workspace_of(text)
    for number, rows in enumerate(BATCHES):
        assert told(joined.table()) == shown(workspace[head].table.to_pylist())
        advance = ADVANCED.get(number)
        with workspace.transaction() as transaction:
            for item, n, t, tags, weight in rows:
                change = transaction.insert if weight > 0 else transaction.erase
                change("trade", [(item, n, t, str(tags))])
            if advance is not None:
                transaction.advance(advance)
        changes = {"trade": frame_of_rows(spark, rows, f"{TRADE}, weight int")} if rows else {}
        for _ in range(2 if number == 3 else 1):
            found = joined.apply(changes, batch_id=number, advance=advance)
            assert told(found) == shown(transaction.changes[head].to_pylist())
        assert joined.stats is not None
        assert joined.stats.late == transaction.stats.late
        assert joined.stats.expired == transaction.stats.expired
        assert joined.late_rows("trade").count() == sum(transaction.stats.late.values())
        assert joined.late("trade") == workspace.late("trade") and joined.now == workspace.now
        if number == 1:
            joined.close()
            joined = opened(spark, tmp_path, text, **options)
        elif number == 3 and where == "executors":
            joined.repartition(3)
            options["partitions"] = 3
        elif number == 3 and where == "auto":
            monkeypatch.setattr(Moving, "has_outgrown", lambda *_: True)
    assert told(joined.table()) == shown(workspace[head].table.to_pylist())
    if where == "executors" and text == CLOSED:
        with pytest.raises(errors.StateError, match="'sold_final' has rows that have closed, and what they"):
            joined.check()
    elif where == "executors":
        assert joined.table().count() > 1
        joined.check()
    assert joined.late("trade") == (1, 2)
    assert joined.late_rows("trade", 0).collect()[0].item == "pot"
    assert joined.version == 1 + len(BATCHES) + (where != "driver")
    if "keep" in options:
        with pytest.raises(errors.StateError, match=r"was made for streams.trade.keep=600000000, not"):
            opened(spark, tmp_path, text, **{**options, "keep": "11m"})


@pytest.mark.in_turns
@PLACES
def test_a_stream_of_batches_expires(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """By `stream`, which goes on from its checkpoint."""
    days = "a string, d date"
    joined = MaintainedJoin(
        "n[a] = count() <- r(a, _).",
        {"r": frame_of_rows(spark, [], days)},
        state=tmp_path / "state",
        time={"r": "d"},
        keep="7 days",
        **placed(where, partitions=2),
    )
    late = []
    for number, day in enumerate((1, 5, 9, 2)):
        said = frame_of_rows(spark, [("x", NOON.date().replace(day=day), 1)], f"{days}, weight int")
        said.write.mode("append").parquet(str(tmp_path / "incoming"))
        if number == 1:
            continue
        query = joined.stream(
            {"r": spark.readStream.schema(f"{days}, weight int").parquet(str(tmp_path / "incoming"))},
            checkpoint=str(tmp_path / "checkpoint"),
            sink=lambda changes, n: late.append(joined.stats.late),  # type: ignore[union-attr]
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    assert [tuple(row) for row in joined.table().collect()] == [("x", 2)]
    assert late == [{}, {}, {"r": 1}] and joined.now == NOON.date().replace(day=9)


@PLACES
def test_what_is_refused(spark: SparkSession, tmp_path: Path, where: str) -> None:
    place = placed(where, partitions=1)
    options: dict[str, Any] = {**place, "time": {"trade": "t"}, "lateness": "30s", "keep": "10m"}
    plain, timed = "h(i) <- trade(i, _, _, _).", "h(i) <- trade(i, _, t, _),"
    none = {"time": None, "lateness": None, "keep": None}
    for text, changed, kind, message in (
        (plain, {"time": {"trade": "n.t"}}, errors.SourceError, "time of 'trade' is 'n.t'"),
        (plain, {"time": {"tr": "t"}}, errors.UnknownRelationError, "time of 'tr'"),
        (plain, {"time": None}, errors.StreamError, "lateness is about a stream"),
        (plain, {"keep": {"x": "1s"}}, errors.StreamError, "keep of 'x' is about a"),
        (plain, {"keep": "5s"}, errors.StreamError, "is shorter than lateness"),
        (plain, {"time": {"trade": "item"}}, errors.StreamError, "is of type string"),
        (plain, {"key": {"trade": ["item"]}}, errors.StreamError, "choose one"),
        (f"{timed} t > now() - 1h.", {}, errors.RuleError, "keep them for as long"),
        (f"{timed} t < now().", {}, errors.RuleError, "now\\(\\) is compared with the time"),
        (CLOSED.replace("+ 2m", "+ 1m"), {}, errors.RuleError, "close at w \\+ 2m or later"),
        (CLOSED.replace("+ 2m", "+ 20m"), {}, errors.RuleError, "keep them for as long at least"),
        (f"{timed} t > now() - 1m.", none, errors.RuleError, "'t' is the time of no stream in the body"),
        (CLOSED, none, errors.RuleError, "'sold' reads no stream, so no clock closes it: name the stream by"),
        (f"stream trade(t) keep 5m. {plain}", {}, errors.RuleError, "with other settings"),
        (f"stream trade(u) keep 5m. {plain}", none, errors.UnknownColumnError, "no column 'u'"),
    ):
        with pytest.raises(kind, match=message):
            opened(spark, tmp_path / "none", text, **{**options, **changed})
    joined = opened(spark, tmp_path / "state", plain, **options, ahead="1 hour")
    for rows, advance, kind, message in (
        ([("tea", 1, None, None, 1)], None, errors.NullError, "every row of a stream has a time"),
        ([("tea", 1, at(90), None, 1)], None, errors.StreamError, "is further than ahead= allows"),
        ([], at(0), errors.StreamError, "the clock is at .* already, and does not go back"),
        ([], 5, errors.StreamError, "the clock of the streams is of type"),
        ([], None, errors.ChangeError, "there are no changes"),
    ):
        changes = {"trade": frame_of_rows(spark, rows, f"{TRADE}, weight int")} if rows else {}
        with pytest.raises(kind, match=message):
            joined.apply(changes, advance=advance)
    assert (joined.version, joined.late("trade")) == (1, (0, 0))
    with pytest.raises(errors.UnknownRelationError, match="'item' is no stream; streams are trade"):
        joined.late("item")
    if where == "executors":
        assert "stream trade(t), late 30s, keep 10m: changes go by the clock" in joined.explain()
    joined.apply(
        {"trade": frame_of_rows(spark, [("tea", 1, at(90), None, 1)], f"{TRADE}, weight int")}, advance=at(89)
    )
    assert [row.i for row in joined.table().collect()] == ["tea"]
    timeless = MaintainedJoin("h(a) <- r(a).", {"r": spark.range(1)}, state=tmp_path / "plain", **place)
    assert timeless.now is None
    with pytest.raises(errors.StreamError, match="and there is none: name one by time="):
        timeless.apply({}, advance=at(0))
    dropping = MaintainedJoin(
        "h(a) <- r(a, _).",
        {"r": frame_of_rows(spark, [("x", None), ("y", at(0))], "a string, t timestamp")},
        state=tmp_path / "drop",
        time={"r": "t"},
        nulls="drop",
        **place,
    )
    assert [row.a for row in dropping.table().where(F.col("a").isNotNull()).collect()] == ["y"]
