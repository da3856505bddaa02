"""differential: the pipeline of the benchmark, tiny: what DuckDB reads of it is what DuckDB answers."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bench.peers.spark_engine import Spark
from bench.spark import pipeline
from bench.spark.pipeline_run import READS, Lake, Pipeline
from bench.spark.pipeline_views import VIEWS
from bench.tpch.tables import tables

pytestmark = pytest.mark.compiled

LAST_ORDER = 4_000


def small(data_folder: Path) -> dict[str, pa.Table]:
    """Some thousand items of the smallest scale."""
    if not (data_folder / "tpch-sf0.01").is_dir():
        pytest.skip("no TPC-H in the data folder")
    loaded = {name: rows for name, rows in tables(0.01).items() if name in READS}
    for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        loaded[name] = loaded[name].filter(pc.less(loaded[name][column], LAST_ORDER))
    return loaded


@pytest.mark.in_turns
def test_days_are_followed_once_also_by_another_that_goes_on(
    spark: SparkSession, data_folder: Path, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    days = pipeline.Days(lake, small(data_folder))
    days.drop()
    days.drop()
    first = Pipeline(spark, lake)
    assert list(itertools.islice(first.catch_up(), 1)) == [1]
    first.close()
    with pytest.raises(AssertionError, match="DuckDB"):
        days.check_tables()
    second = Pipeline(spark, lake)
    assert list(second.catch_up()) == [2]
    assert list(second.catch_up()) == []
    second.close()
    days.check_tables()
    recomputed = pipeline.Recomputed(Spark(2), tmp_path / "recomputed")
    recomputed.take(days)
    days.check(VIEWS[2], pq.read_table(recomputed.evaluate(VIEWS[2])))


def test_a_command_is_killed_when_it_has_said_so_much() -> None:
    said = "import time\nfor n in range(3): print(n, flush=True)\ntime.sleep({})"
    assert pipeline.run([sys.executable, "-c", said.format(600)], kill_at=2) == ["0", "1"]
    assert pipeline.run([sys.executable, "-c", said.format(0)]) == ["0", "1", "2"]
    with pytest.raises(AssertionError, match="ended with status 3"):
        pipeline.run([sys.executable, "-c", "raise SystemExit(3)"])


def test_the_page_has_a_row_for_each_view_and_one_for_all() -> None:
    sides = pipeline.Side(), pipeline.Side()
    for factor, side in enumerate(sides, 1):
        for day in 1.0, 2.0, 6.0:
            for view in [view.name for view in VIEWS] if factor == 2 else [pipeline.ALL]:
                side.note(view, day * factor, day * factor / 2)
            side.read.append(factor << 20)
            side.written.append(factor << 21)
    counts = dict.fromkeys((view.name for view in VIEWS), 1_000)
    text = pipeline.page(pipeline.QUICK, "- a machine", ["day 1"], sides, (counts, counts), 3 << 20)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    assert rows[2:8] == [
        *([f"`{view.name}`, {view.kind}", "1,000", "1,000", "", "", "4.00", "2.00"] for view in VIEWS),
        ["all five", "", "", "2.00", "1.00", "20.0", "10.0"],
    ]
    assert rows[-2:] == [["read by Spark's stages", "1.00", "2.00"], ["written into files", "2.00", "4.00"]]
    assert "killed 1 times in 2 days" in text and "The state takes 3 MiB" in text
