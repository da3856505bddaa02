"""differential: the pipeline of the benchmark, tiny: what DuckDB reads of it is right, behind a kill, too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from bench.spark import pipeline
from bench.spark.pipeline_run import Lake, Pipeline
from bench.spark.pipeline_views import VIEWS
from bench.tpch.tables import tables

pytestmark = pytest.mark.compiled

LAST_ORDER = 4_000


def small(data_folder: Path) -> dict[str, pa.Table]:
    """Some thousand items of the smallest scale."""
    if not (data_folder / "tpch-sf0.01").is_dir():
        pytest.skip("no TPC-H in the data folder")
    loaded = {name: rows for name, rows in tables(0.01).items() if name in pipeline.RELATIONS}
    for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        loaded[name] = loaded[name].filter(pc.less(loaded[name][column], LAST_ORDER))
    return loaded


def test_days_are_followed_once_by_whoever_is_killed(
    spark: SparkSession, data_folder: Path, tmp_path: Path
) -> None:
    from support.spark_session import connect_address

    lake = Lake(tmp_path / "lake")
    days = pipeline.Days(lake, small(data_folder))
    days.drop()
    days.drop()
    said = pipeline.follow(lake, [connect_address()], kill_at=3)
    assert said == ["opened", *(f"1 {view.name}" for view in VIEWS[:2])]
    with pytest.raises(AssertionError, match="DuckDB"):
        days.check_tables()
    followed = Pipeline(spark, lake)
    done = [f"{day} {view.name}" for day, view in followed.catch_up()]
    assert not {*said} & {*done} and done[-5:] == [f"2 {view.name}" for view in VIEWS]
    followed.close()
    days.check_tables()
