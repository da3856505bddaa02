"""differential: `join_sql` against Spark's own SQL, and `motifs` against the same in SQL."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import join_sql, motifs

EDGES = [(1, 2, 0.5), (2, 3, 1.5), (1, 3, 2.5), (3, 1, 0.0), (4, 4, 1.0)]
PEOPLE = [(1, "ann"), (2, "bob"), (3, "cy"), (4, "di")]
ONE_CELL: dict[str, int] = {}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    found = {
        "edge": spark.createDataFrame(EDGES, "src bigint, dst bigint, `how much` double"),
        "person": spark.createDataFrame(PEOPLE, "id bigint, name string"),
    }
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return found


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT a.src AS `from`, b.name, a.`how much` FROM edge a JOIN person b ON a.dst = b.id"
        " WHERE a.`how much` > 0 AND b.name LIKE '%b%'",
        "SELECT name, count(*) AS n, sum(`how much`) AS total FROM Edge, person WHERE src = ID GROUP BY name",
        "SELECT count(DISTINCT src) FROM edge WHERE dst < 3",
        "SELECT count(*) AS n, max(src) AS `the most` FROM edge WHERE dst > 100",
    ],
)
def test_differential_selects(sql: str, spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    found, expected = join_sql(sql, frames, shares=ONE_CELL), spark.sql(sql)
    assert found.columns == expected.columns
    assert rows(found) == rows(expected)


def test_a_motif_has_the_rows_of_its_vertices_and_edges(
    spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    found = motifs(
        "(a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)", frames["person"], frames["edge"], shares=ONE_CELL
    )
    assert found.columns == ["a", "e", "b", "c"]
    assert found.select("e.*").columns == frames["edge"].columns
    flat = found.selectExpr("a.id", "a.name", "e.src", "e.dst", "e.`how much`", "b.name", "c.id")
    expected = spark.sql(
        "SELECT DISTINCT a.id, a.name, e.src, e.dst, e.`how much`, b.name, c.id"
        " FROM person a, edge e, person b, edge f, person c WHERE a.id = e.src AND e.dst = b.id"
        " AND f.src = b.id AND f.dst = c.id"
        " AND NOT EXISTS (SELECT 1 FROM edge g WHERE g.src = c.id AND g.dst = a.id)"
    )
    assert rows(flat) == rows(expected) != []


def test_frames_without_the_columns_of_a_graph_are_refused(frames: dict[str, DataFrame]) -> None:
    with pytest.raises(errors.SourceError, match="vertices have no column 'id'"):
        motifs("(a)-[]->(b)", frames["edge"], frames["edge"])
    with pytest.raises(errors.SourceError, match="edges have no column 'src'"):
        motifs("(a)-[]->(b)", frames["person"], frames["person"])
    with pytest.raises(errors.UnknownColumnError, match="'name'"):
        join_sql("SELECT DISTINCT nane FROM person", frames)


def test_sql_says_what_it_needs(frames: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.delitem(sys.modules, "spark_bridge.front_ends.conjunctive_select", raising=False)
    with pytest.raises(ImportError, match=r"lftj\[sql\]"):
        join_sql("SELECT DISTINCT name FROM person", frames)
