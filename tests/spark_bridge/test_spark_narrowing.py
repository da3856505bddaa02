"""oracle: conditions, columns and limits that reach the join, beside the same asked of its rows."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lftj.errors import LimitError, SourceError
from support.by_cells import explain, join
from support.spark_programs import dense_edges, found_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.NoCycleWarning"),
]

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
PATHS = "n[a] = count() <- edge(a, b), edge(b, _)."


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> DataFrame:
    return dense_edges(spark)


@pytest.mark.in_turns
def test_oracle_columns_and_limits_of_rows(spark: SparkSession, edges: DataFrame) -> None:
    given: dict[str, DataFrame] = {"edge": edges}
    whole = join(TRIANGLES, given, partitions=2)
    spark.createDataFrame(whole.collect(), whole.schema).createOrReplaceTempView("found")
    for where, columns, sql in (
        ("a > 3", ["b", "a"], "SELECT DISTINCT b, a FROM found WHERE a > 3"),
        (F.col("a") > F.col("c"), ["b"], "SELECT DISTINCT b FROM found WHERE a > c"),
        (["b < 5", F.col("c") > 4], ["c", "b", "a"], "SELECT c, b, a FROM found WHERE b < 5 AND c > 4"),
        ("a + b + c > 9", ["a"], "SELECT DISTINCT a FROM found WHERE a + b + c > 9"),
        ((), ["c"], "SELECT DISTINCT c FROM found"),
    ):
        found = join(TRIANGLES, given, partitions=2, where=where, columns=columns)
        assert found_rows(found) == found_rows(spark.sql(sql)), sql
    n_rows = whole.count()
    for most in (0, 3, n_rows, n_rows + 5):
        some = found_rows(join(TRIANGLES, given, partitions=2, limit=most))
        assert sum(some.values()) == min(most, n_rows) and some <= found_rows(whole)
    assert join(TRIANGLES, given, partitions=2, where="a > 3", columns=["c"], limit=2).count() == 2
    assert join(TRIANGLES, given, partitions=2, where="rand() < 2").count() == n_rows


def test_explain_says_what_is_read_in_part(edges: DataFrame) -> None:
    shown = str(explain(TRIANGLES, {"edge": edges}, partitions=2, where="a = 3 OR a = 4", columns=["a", "c"]))
    assert shown.splitlines()[0] == "edge_1: edge where a = 3 OR a = 4"
    assert "tri_asked(a, c)" in shown and "edge_1(a" in shown and "edge(b, c)" in shown
    shown = str(explain(TRIANGLES, {"edge": edges}, partitions=2, where=["a + b + c > 3", "rand() < 2"]))
    assert shown.splitlines()[:2] == ["asked of the rows: a + b + c > 3", "asked of the rows: rand() < 2"]


def test_rows_that_are_left_out_are_not_sent(edges: DataFrame) -> None:
    """NULL among them is none that is refused."""
    more = edges.unionAll(edges.sparkSession.sql("SELECT NULL, 1"))
    found = join("h(a, b) <- edge(a, b).", {"edge": more}, partitions=1, where="a IS NOT NULL")
    assert found_rows(found) == found_rows(edges)


def test_columns_that_are_none(edges: DataFrame) -> None:
    for columns, text in ((["d"], "'d'.*'tri' has none"), ([], "at least one"), (["a", "a"], "each once")):
        with pytest.raises(SourceError, match=text):
            join(TRIANGLES, {"edge": edges}, columns=columns)
    with pytest.raises(LimitError, match="limit is -1"):
        join(TRIANGLES, {"edge": edges}, limit=-1)


def test_a_value_of_a_key_stays_the_only_one(spark: SparkSession) -> None:
    """What a head refuses depends on all of its rows, whatever is asked of them."""
    pairs = spark.sql("SELECT * FROM VALUES (1, 2), (1, 3), (2, 5) t(a, b)")
    with pytest.raises(Exception, match="FunctionalConflictError"):
        join("f[a] = b <- r(a, b).", {"r": pairs}, where="b < 3", partitions=1).collect()
