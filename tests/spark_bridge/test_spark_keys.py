"""oracle: `MaintainedJoin` over tables with a key, in Spark, against a dictionary: feeds and a stream.

What stages do is tested without Spark (``test_keyed_stages.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from spark_bridge.stages.streaming import METRICS
from support.followed_join import PLACES, placed
from support.keyed_model import Event, Key, Row, after
from support.row_frames import frame_of_rows

RULE = "same(i, j, s) <- orders(id: i, state: s), orders(id: j, state: s), i < j."
SCHEMA = "state string, id int, amount decimal(8,2), tags array<string>"
"""The key, id, is not first, and arrays are in a column that no rule reads."""

ORDERS: list[Row] = [("new", 1, 10, ("a",)), ("new", 2, 20, None), ("paid", 3, None, ("b",))]
OPS = {"insert": "I", "erase": "delete", "upsert": "U", "erase_keys": "D"}


def key_of(row: Row) -> Key:
    return (row[1],)


class Followed:
    """A maintained join, and what its relation holds."""

    def __init__(self, spark: SparkSession, path: Path, where: str, **options: Any) -> None:
        self.spark, self.path = spark, path
        self.options: dict[str, Any] = {
            "key": {"orders": ["id"]},
            "nulls": "keep",
            **placed(where, partitions=2),
            **options,
        }
        self.rows = {key_of(row): row for row in ORDERS}
        self.joined = self.opened()

    def opened(self, **options: Any) -> MaintainedJoin:
        frames = {"orders": frame(self.spark, ORDERS, SCHEMA)}
        return MaintainedJoin(RULE, frames, state=self.path, **{**self.options, **options})

    def same(self) -> set[Row]:
        rows = sorted(self.rows.values(), key=key_of)
        return {(a[1], b[1], a[0]) for a in rows for b in rows if a[0] == b[0] and a[1] < b[1]}

    def batch(self, *said: tuple[str, Row]) -> None:
        """Apply events; those of ``erase_keys`` have a row of which the key alone counts."""
        before = self.same()
        found = self.joined.apply({"orders": feed(self.spark, said)}).collect()
        self.rows = after(
            self.rows, [Event(w, key_of(r) if w == "erase_keys" else r) for w, r in said], key_of
        )
        changes = {(*row, 1) for row in self.same() - before} | {(*row, -1) for row in before - self.same()}
        assert {tuple(row) for row in found} == changes and len(found) == len(changes)
        assert {tuple(row) for row in self.joined.table().collect()} == self.same()


def frame(spark: SparkSession, rows: Sequence[Row], schema: str) -> DataFrame:
    return frame_of_rows(spark, rows, schema.replace("decimal(8,2)", "int")).selectExpr(
        *(
            f"cast({column.split()[0]} as {column.split()[1]}) as {column.split()[0]}"
            for column in schema.split(", ")
        )
    )


def feed(spark: SparkSession, said: Sequence[tuple[str, Row]]) -> DataFrame:
    return frame(spark, [(*row, OPS[what]) for what, row in said], f"{SCHEMA}, op string")


@pytest.mark.in_turns
@PLACES
def test_oracle_feeds_follow_also_after_a_restart(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(spark, tmp_path, where)
    assert {tuple(row) for row in followed.joined.table().collect()} == followed.same() == {(1, 2, "new")}
    followed.batch(("upsert", ("paid", 2, 5, ("c", "d"))), ("erase_keys", (None, 1, None, None)))
    followed.batch(
        ("upsert", ("paid", 2, 6, ())),
        ("upsert", ("paid", 9, 6, ("x",))),
        ("erase_keys", ("?", 77, 1, ("?",))),
    )
    followed.joined.close()
    followed.joined = followed.opened()
    followed.batch(("erase", ("paid", 3, None, ("b",))), ("insert", ("new", 3, 1, ("b",))))
    followed.batch(("erase", ("new", 3, 1, ("other",))), ("upsert", (None, 9, 6, ("x",))))
    if where == "executors":
        followed.joined.repartition(3)
    followed.batch(("upsert", ("new", 9, 6, ("x",))), ("insert", ("paid", 4, 1, None)))
    weights = frame(spark, [("paid", 2, 6, (), -1), ("new", 2, 1, (), 1)], f"{SCHEMA}, weight int")
    followed.joined.apply({"orders": weights})
    assert {tuple(row) for row in followed.joined.table().collect()} == {
        (2, 3, "new"),
        (2, 9, "new"),
        (3, 9, "new"),
    }
    with pytest.raises(errors.StateError, match="was made for key"):
        followed.opened(key={"orders": ["id", "state"]}, **placed(where, partitions=3))


@pytest.mark.in_turns
@PLACES
def test_second_rows_are_refused_and_nothing_changes(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(spark, tmp_path, where)
    version = followed.joined.version
    for said, kind, message in (
        (
            [("insert", ("paid", 1, 10, ("a",)))],
            errors.KeyConflictError,
            "'orders': there are two rows of key id=1",
        ),
        ([("insert", ("new", 1, 10, ("b",)))], errors.KeyConflictError, "two rows of key id=1"),
        (
            [("upsert", ("a", 5, 1, ())), ("upsert", ("b", 5, 1, ()))],
            errors.ChangeError,
            "several of key id=5",
        ),
        (
            [("upsert", ("a", None, 1, ()))],
            errors.NullError,
            "column 'id': NULL, and the column is one of the key",
        ),
    ):
        with pytest.raises(kind, match=message):
            followed.joined.apply({"orders": feed(spark, said)})
    wrong = frame(spark, [("a", 5, 1, (), "X")], f"{SCHEMA}, op string")
    with pytest.raises(errors.ChangeError, match="an op is NULL or none of I, c, insert"):
        followed.joined.apply({"orders": wrong})
    with pytest.raises(errors.ChangeError, match=r"they have to be .*, weight, or op in place of weight"):
        followed.joined.apply({"orders": wrong.drop("op")})
    assert followed.joined.version == version
    followed.batch(("upsert", ("paid", 1, 10, ("a",))))
    twice = [*ORDERS, ("new", 1, 10, ("z",))]
    with pytest.raises(errors.KeyConflictError, match="two rows of key id=1"):
        MaintainedJoin(
            RULE,
            {"orders": frame(spark, twice, SCHEMA)},
            state=tmp_path / "two",
            nulls="keep",
            key={"orders": ["id"]},
            **placed(where),
        )
    for key, kind, message in (
        ({"nope": ["id"]}, errors.UnknownRelationError, "key of 'nope': relations are orders"),
        (
            {"orders": ["nope"]},
            errors.SourceError,
            r"key of 'orders' is \['nope'\]; it is a list of different columns",
        ),
        ({"orders": []}, errors.SourceError, "a list of different columns"),
        ({"orders": "id"}, errors.SourceError, "a list of different columns"),
    ):
        with pytest.raises(kind, match=message):
            followed.opened(key=key)


@PLACES
def test_without_a_key_there_is_no_operation(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(spark, tmp_path, where, key={})
    with pytest.raises(errors.ChangeError, match=r"they have to be state, id, amount, tags, weight$"):
        followed.joined.apply({"orders": feed(spark, [("upsert", ORDERS[0])])})


@PLACES
def test_a_stream_of_operations(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(spark, tmp_path / "state", where)
    said = [
        ("upsert", ("paid", 1, 1, ("a",))),
        ("erase_keys", (None, 2, None, None)),
        ("insert", ("paid", 8, 1, ())),
    ]
    feed(spark, said).write.parquet(str(tmp_path / "incoming"))
    query = followed.joined.stream(
        {"orders": spark.readStream.schema(f"{SCHEMA}, op string").parquet(str(tmp_path / "incoming"))},
        checkpoint=str(tmp_path / "checkpoint"),
        sink=lambda changes, number: None,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    rows = {tuple(row) for row in followed.joined.table().collect()}
    assert rows == {(1, 3, "paid"), (1, 8, "paid"), (3, 8, "paid")}
    (metrics,) = [row.observedMetrics[METRICS] for row in query.recentProgress if row.observedMetrics]
    assert (metrics["orders_inserted"], metrics["orders_erased"]) == (2, 1)
