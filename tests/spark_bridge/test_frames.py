"""DataFrames over the files of a state (:mod:`spark_bridge.state.frames`), and which Spark jobs they take."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from support.rows import rows_of

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from lftj.errors import StateError
from spark_bridge import MaintainedJoin
from spark_bridge.cells.signed_tables import signed
from spark_bridge.state import frames
from spark_bridge.state.frames import changes_frame
from spark_bridge.state.store import StateStore
from support.strategies import any_row

DAY = datetime.datetime(2026, 3, 29, 1, 30)  # an hour before clocks are set forward in the tests' time zone
UTC = datetime.UTC
COLUMNS = {
    "bool": pa.array([True, False, True]),
    "byte": pa.array([1, -128, 127], pa.int8()),
    "int": pa.array([1, -(2**31), 2**31 - 1], pa.int32()),
    "long": pa.array([1, -(2**63), 2**63 - 1], pa.int64()),
    "float": pa.array([0.5, -0.0, math.inf], pa.float32()),
    "double": pa.array([0.1, math.nan, 5e-324], pa.float64()),
    "decimal": pa.array([Decimal("1.50"), Decimal("-99999999.99"), Decimal(0)], pa.decimal128(10, 2)),
    "large": pa.array([Decimal(10**37), Decimal(-1), Decimal(0)], pa.decimal128(38, 0)),
    "string": pa.array(["", "é", "a\0b"]),
    "binary": pa.array([b"", b"\0", b"\xff"]),
    "date": pa.array([datetime.date(1, 1, 1), DAY.date(), datetime.date(9999, 12, 31)]),
    "moment": pa.array(
        [DAY.replace(tzinfo=UTC), datetime.datetime(2026, 10, 25, 0, 30, tzinfo=UTC), None],
        pa.timestamp("us", "UTC"),
    ).fill_null(DAY.replace(tzinfo=UTC)),
    "wall clock": pa.array([DAY, DAY.replace(hour=2), DAY.replace(hour=3)], pa.timestamp("us")),
    "weight": pa.array([1, -1, 1], pa.int64()),
}


@pytest.mark.parametrize("files_here", [0, 16], ids=["in workers", "here"])
def test_changes_of_all_types_are_the_same_wherever_they_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_here: int
) -> None:
    monkeypatch.setattr(frames, "FILES_HERE", files_here)
    table = pa.table(COLUMNS)
    store = StateStore(tmp_path)
    token = store.begin(1)
    files = [store.new_name(token, "changes", str(number)) for number in range(3)]
    for number, file in enumerate(files):
        store.write_table(file, table.slice(number, 1))
    found = changes_frame(spark, store, table.schema, files)
    assert "LocalTableScan" in plan_of(found) and ("MapInArrow" not in plan_of(found)) == bool(files_here)
    rows = found.toArrow()
    assert (rows.schema.names, rows.schema.types) == (table.schema.names, table.schema.types)
    assert any_row(set(rows_of(rows))) == any_row(set(rows_of(table)))
    assert rows.num_rows == 3
    none = changes_frame(spark, store, table.schema, []).toArrow()
    assert (none.num_rows, none.schema.types) == (0, table.schema.types)


def plan_of(frame) -> str:  # type: ignore[no-untyped-def]
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_many_bytes_are_read_by_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = signed(pa.schema([("a", pa.int64())]))
    store = StateStore(tmp_path)
    file = store.new_name(store.begin(1), "changes", "0")
    store.write_table(file, pa.table([[1, 2], [1, -1]], schema=schema))
    monkeypatch.setattr(frames, "READ_HERE", store.nbytes([file]))
    assert "MapInArrow" not in plan_of(changes_frame(spark, store, schema, [file]))
    monkeypatch.setattr(frames, "READ_HERE", store.nbytes([file]) - 1)
    assert "MapInArrow" in plan_of(changes_frame(spark, store, schema, [file]))


def test_a_file_that_is_gone_is_our_error(spark: SparkSession, tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    file = store.new_name(store.begin(1), "changes", "0")
    assert store.nbytes([file]) == 0
    with pytest.raises(StateError, match="it is not there"):
        changes_frame(spark, store, signed(pa.schema([("a", pa.int64())])), [file])


def test_a_small_batch_is_a_job_for_each_shuffle_and_one_more(spark: SparkSession, tmp_path: Path) -> None:
    """With two stages three; its changes are there then, and take none."""
    edges = spark.createDataFrame([(1, 2), (2, 3)], "a long, b long")
    rule = "n[c] = count() <- e(a, b), e(b, c), e(a, c)."
    joined = MaintainedJoin(rule, {"e": edges}, state=tmp_path, shares={"b": 2}, partitions=2)
    changes = spark.createDataFrame([(1, 3, 1)], "a long, b long, weight long")
    tracker = spark.sparkContext.statusTracker()
    group = "a small batch"
    spark.sparkContext.setJobGroup(group, group)
    try:
        made = joined.apply({"e": changes})
        assert len(tracker.getJobIdsForGroup(group)) == 3
        assert [tuple(row) for row in made.collect()] == [(3, 1, 1)]
        assert len(tracker.getJobIdsForGroup(group)) == 3
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]
