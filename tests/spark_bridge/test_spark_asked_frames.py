"""oracle: what is asked of a join's DataFrame by its methods, beside Spark's methods on its rows."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge import motifs
from spark_bridge.narrowing import fewer
from support.by_cells import join
from support.spark_programs import dense_edges, draw_program, found_rows, refuse_other_chains

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.NoCycleWarning"),
]

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> DataFrame:
    return dense_edges(spark)


@pytest.fixture(scope="module")
def with_null(edges: DataFrame) -> DataFrame:
    """With a row that a join refuses, unless it is not sent."""
    return edges.unionAll(edges.sparkSession.sql("SELECT NULL, 1"))


def is_narrowed(frame: DataFrame) -> bool:
    return type(frame) is not type(frame.sparkSession.range(0))


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan())


# -- rows -----------------------------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize("seed", range(14))
def test_oracle_random_chains(spark: SparkSession, seed: int) -> None:
    """Rows as often as Spark has them; of what a limit leaves, so many of those that are there."""
    random = Random(seed)
    refuse_other_chains(spark, draw_program(random, most_rows=60), random, when="always")


def test_as_often_as_the_rows_are_there(edges: DataFrame) -> None:
    """A projection leaves equal rows, whatever was asked before, until they are made distinct."""
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    whole = found_rows(found)
    assert max(found_rows(found.select("a")).values()) > 1
    assert sum(found_rows(found.where("a > 3").drop("b", "c")).values()) == sum(
        often for row, often in whole.items() if row[0] > 3
    )
    assert found.limit(9).select("a").distinct().count() <= 9 < found.count()
    assert found.where("rand() < 2").count() == found.count()
    n = found.limit(5).where("a >= 0").count()
    assert n == 5


# -- what reaches the join -----------------------------------------------------------------


def test_conditions_reach_the_relations(edges: DataFrame, with_null: DataFrame) -> None:
    """A row that the join refuses is not looked at."""
    found = join("h(a, b) <- edge(a, b).", {"edge": with_null}, partitions=1)
    other = found.where("b > 3").distinct()
    conditions: tuple[Any, ...] = ("a IS NOT NULL", F.col("a").isNotNull(), found.a.isNotNull())
    for condition in (*conditions, found["a"] >= 0):
        assert found_rows(found.where(condition)) == found_rows(edges)
        assert found_rows(found[["b", "a"]].filter(condition).limit(99)[["a", "b"]]) == found_rows(edges)
    assert other.where(other.a.isNotNull()).count() == edges.where("dst > 3").count()
    with pytest.raises(Exception, match="NullError"):
        found.where("b IS NOT NULL").collect()


def test_columns_and_limits_reach_the_cells(edges: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int | None] = []

    def at_most(most: int | None, function: Any) -> Any:
        limits.append(most)
        return fewer.at_most(most, function)

    monkeypatch.setattr(sys.modules["spark_bridge.join"], "at_most", at_most)
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    pairs = found.drop("c").distinct()
    assert "Aggregate" not in plan_of(pairs) and "c#" not in plan_of(pairs)
    assert found_rows(pairs) == {(row[0], row[1]): 1 for row in found_rows(found)}
    assert found_rows(found.limit(7).limit(3)) <= found_rows(found)
    assert limits[0] is None and limits[-1] == 3
    # What has no less to do is Spark's.
    assert "Filter" in plan_of(found.where("a + b + c > 9"))
    counts = join("n[a] = count() <- edge(a, b), edge(b, _).", {"edge": edges}, partitions=2)
    assert "Aggregate" in plan_of(counts.select("a").distinct())


def test_what_does_not_reach_the_join(edges: DataFrame) -> None:
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    assert is_narrowed(found.where("a > 3").select("a", "b").drop("b").distinct().limit(3))
    for frame in (
        found.where("rand() < 0.5"),
        found.limit(3).where("a > 3"),
        found.limit(3).select("a").distinct(),
        found.select(found.a),
        found.select("a", "a"),
        found.select(F.col("a") + 1),
        found.drop(found.a),
        found.drop("a", "b", "c"),
        found.dropDuplicates(["a"]),
        found.orderBy("a"),
        found.withColumn("d", F.lit(1)),
        found.groupBy("a").count(),
    ):
        assert not is_narrowed(frame)
    reach = "reach(s, y) <- edge(s, y). reach(s, z) <- reach(s, y), edge(y, z)."
    assert not is_narrowed(join(reach, {"edge": edges}, partitions=2))
    paths = "h(a, c) <- edge(a, b), edge(b, c)."
    assert not is_narrowed(join(paths, {"edge": edges}, when="cyclic"))
    assert not is_narrowed(join("h(a, A) <- edge(a, A).", {"edge": edges}))


def test_motifs_are_asked_for_less_by_their_arguments(edges: DataFrame) -> None:
    people = edges.selectExpr("src AS id").distinct()
    assert not is_narrowed(motifs("(a)-[]->(b)", people, edges))


# -- a DataFrame like others -------------------------------------------------------------------


def test_columns_of_the_frames_before(edges: DataFrame) -> None:
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    some = found.where("a < 9").where("b > 2")
    expected = found_rows(found.select("*").where("a < 9 AND b > 2").select("c"))
    assert found_rows(some.select(found.c)) == found_rows(some.select(some["c"])) == expected
    assert found_rows(some.select("a").orderBy("c").select(found.a)) == found_rows(some.select("a"))
    assert found_rows(some.groupBy(found.a).agg(F.max(some.b))) == found_rows(
        some.groupBy("a").agg(F.max("b"))
    )
    renamed = edges.toDF("x", "y")
    assert some.join(renamed, some.a == renamed.x).count() == some.join(renamed, found.a == renamed.x).count()
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        found.where("nothing > 3")


def test_rows_that_are_stored_are_read(edges: DataFrame) -> None:
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    some = found.where("a > 3").cache()
    less = some.where("b < 5").select("c").distinct()
    expected = found_rows(found.select("*").where("a > 3 AND b < 5").select("c").distinct())
    assert "InMemoryRelation" in plan_of(less) and some.is_cached
    assert found_rows(less) == expected
    some.unpersist()
    assert "InMemoryRelation" not in plan_of(some.where("b < 5"))
    later = found.where("a > 3")
    found.cache()
    try:
        assert "InMemoryRelation" in plan_of(later)
    finally:
        found.unpersist()


def test_views_files_and_sessions(spark: SparkSession, edges: DataFrame, tmp_path: Path) -> None:
    found = join(TRIANGLES, {"edge": edges}, partitions=2)
    some = found.where("a > 3").select("b", "a").distinct()
    expected = found_rows(
        spark.createDataFrame(found.collect(), found.schema).where("a > 3").select("b", "a")
    )
    expected = type(expected)(expected.keys())
    assert isinstance(some, DataFrame) and isinstance(some, type(edges)) and some.sparkSession is spark
    assert some.schema == found.select("b", "a").schema and some.isStreaming is False
    some.createOrReplaceTempView("asked")
    some.write.parquet(str(tmp_path / "asked"))
    for frame in (
        spark.table("asked"),
        spark.read.parquet(str(tmp_path / "asked")),
        some.union(some).distinct(),
    ):
        assert found_rows(frame) == expected
    assert some.toArrow().num_rows == len(some.toPandas()) == some.count() == len(some.take(99))
    assert sum(1 for _ in some.toLocalIterator()) == some.rdd.count() == len(expected)
    assert some.isEmpty() is False and some.first() in [*map(tuple, expected)]
    spark.catalog.dropTempView("asked")
