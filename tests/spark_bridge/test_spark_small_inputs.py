"""oracle: triangles counted by hand, of inputs that the optimizer knows to be small, and of others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from spark_bridge.placing import known_sizes
from spark_bridge.placing.known_sizes import FEW_PARTITIONS
from support.by_cells import explain, join

RULE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = [(a, b) for a in range(12) for b in range(a + 1, 12) if (a * b) % 3 != 1]
TRIANGLES = {(a, b, c) for a, b in EDGES for d, c in EDGES if b == d and (a, c) in set(EDGES)}


@pytest.fixture
def edges(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Of a file, whose size Spark knows."""
    pq.write_table(pa.table(list(zip(*EDGES, strict=True)), names=["src", "dst"]), tmp_path / "edge.parquet")
    return spark.read.parquet(str(tmp_path / "edge.parquet"))


def passes(found: DataFrame) -> int:
    """How many Python passes a query takes: two more with a sample."""
    return int(found._jdf.queryExecution().optimizedPlan().toString().count("MapInArrow"))


def rows(found: DataFrame) -> set[tuple[int, ...]]:
    return {tuple(row) for row in found.collect()}


@pytest.mark.parametrize("partitions", [1, 2, FEW_PARTITIONS])
def test_small_inputs_are_not_sampled(edges: DataFrame, partitions: int) -> None:
    found = join(RULE, {"edge": edges}, partitions=partitions)
    assert passes(found) == 2 and rows(found) == TRIANGLES
    told = str(explain(RULE, {"edge": edges}, partitions=partitions))
    assert told.splitlines()[0].endswith(
        f"partition{'s' * (partitions > 1)}, one shuffle; small, without a sample"
    )


def test_many_partitions_take_a_sample(edges: DataFrame) -> None:
    found = join(RULE, {"edge": edges}, partitions=FEW_PARTITIONS + 1)
    assert passes(found) == 4 and rows(found) == TRIANGLES
    assert "without a sample" not in str(explain(RULE, {"edge": edges}, partitions=FEW_PARTITIONS + 1))


def test_inputs_beyond_the_limit_together_are_sampled(
    edges: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "two(a, b, c) <- edge(a, b), other(b, c)."
    size = known_sizes._estimated_bytes(edges)
    assert size is not None
    for limit, wanted in ((2 * size, 2), (2 * size - 1, 4)):
        monkeypatch.setattr(known_sizes, "SMALL_BYTES", limit)
        found = join(rule, {"edge": edges, "other": edges}, partitions=2)
        assert passes(found) == wanted
        assert rows(found) == {(a, b, c) for a, b in EDGES for d, c in EDGES if b == d}


def test_what_spark_knows_nothing_of_is_sampled(spark: SparkSession, edges: DataFrame) -> None:
    """Rows of a function in Python, whose number it can't know, and a head's."""
    given = spark.createDataFrame(spark.sparkContext.parallelize(EDGES), "src long, dst long")
    assert passes(join(RULE, {"edge": given}, partitions=2)) == 4
    rules = "up(a, b) <- edge(a, b), a < b. two(a, c) <- up(a, b), up(b, c)."
    found = join(rules, {"edge": edges}, partitions=2)
    assert rows(found) == {(a, c) for a, b in EDGES for d, c in EDGES if b == d}
    told = str(explain(rules, {"edge": edges}, partitions=2)).splitlines()
    assert [line.endswith("small, without a sample") for line in told if "partitions," in line] == [
        True,
        False,
    ]


def test_what_can_not_be_planned_says_so_when_it_runs(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS src", "value AS dst")
    assert known_sizes._estimated_bytes(stream) is None
