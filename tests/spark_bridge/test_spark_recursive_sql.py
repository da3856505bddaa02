"""oracle: WITH RECURSIVE of `join_sql`, and kept on executors, against DuckDB; equal rows, NULLs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from lftj.errors import RoundLimitError, SqlError
from spark_bridge import MaintainedJoin
from support.by_cells import join_sql
from support.row_frames import frame_of_rows

Edge = tuple[int | None, int | None]
SCHEMA = "src bigint, dst bigint"
SELECTS = {
    "a column stays": """
        WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge WHERE src < 4 UNION
            SELECT r.a, edge.dst FROM r JOIN edge ON r.b = edge.src)
        SELECT a, count(b) AS n, max(b) AS most FROM r GROUP BY a""",
    "by rounds": """
        WITH RECURSIVE near(v, steps) AS (SELECT 1, 0 UNION
            SELECT dst, steps + 1 FROM near JOIN edge ON src = v WHERE steps < 3)
        SELECT v, min(steps) AS steps FROM near WHERE v IS NOT NULL GROUP BY v""",
    "equal rows": """
        WITH RECURSIVE way(a, b, n) AS (SELECT src, dst, 1 FROM edge WHERE src = 2 UNION ALL
            SELECT a, dst, n + 1 FROM way JOIN edge ON b = src WHERE n < 3)
        SELECT b, n FROM way""",
    "numbers": """
        WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 6)
        SELECT n, dst FROM t LEFT JOIN edge ON src = n""",
}


def some_edges(seed: int) -> list[Edge]:
    random = Random(seed)
    pairs: list[Edge] = [(random.randrange(8), random.randrange(8)) for _ in range(20)]
    return [*pairs, *pairs[:2], (None, 3), (4, None), (None, None)]


def answer(sql: str, edges: list[Edge]) -> Counter[tuple[Any, ...]]:
    src, dst = zip(*edges, strict=True)
    with duckdb.connect() as connection:
        connection.register("edge", pa.table({"src": pa.array(src, pa.int64()), "dst": pa.array(dst)}))
        return Counter(connection.execute(sql).fetchall())


def rows_in(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.mark.in_turns
@pytest.mark.parametrize("name", SELECTS)
def test_oracle_recursions(spark: SparkSession, name: str) -> None:
    edges = some_edges(len(name))
    found = join_sql(SELECTS[name], {"edge": frame_of_rows(spark, edges, SCHEMA)}, partitions=2)
    assert rows_in(found) == answer(SELECTS[name], edges)


def test_rounds_are_bounded(spark: SparkSession) -> None:
    frames = {"edge": frame_of_rows(spark, [(1, 2), (2, 1)], SCHEMA)}
    sql = """WITH RECURSIVE far(v, n) AS (SELECT 1, 0 UNION SELECT dst, n + 1 FROM far JOIN edge ON src = v)
             SELECT * FROM far"""
    with pytest.raises(RoundLimitError, match="after 3 rounds"):
        join_sql(sql, frames, partitions=1, max_rounds=3)


def test_executors_keep_what_stays(spark: SparkSession, tmp_path: Path) -> None:
    edges = [edge for edge in dict.fromkeys(some_edges(3)) if None not in edge]
    frames, options = {"edge": frame_of_rows(spark, edges, SCHEMA)}, {"partitions": 2, "shares": {}}
    kept = MaintainedJoin.from_sql(SELECTS["a column stays"], frames, state=tmp_path / "state", **options)
    gone, come = edges[:3], [edge for edge in some_edges(5)[:8] if edge not in edges]
    changes = [(*edge, -1) for edge in gone] + [(*edge, 1) for edge in come]
    kept.apply({"edge": frame_of_rows(spark, changes, SCHEMA + ", weight int")})
    edges = [*edges[3:], *dict.fromkeys(come)]
    assert rows_in(kept.table()) == answer(SELECTS["a column stays"], edges)
    by_rounds = SELECTS["by rounds"].replace("SELECT 1, 0", "SELECT src, 0 FROM edge WHERE src = 1")
    with pytest.raises(SqlError, match="no column of it stays the same in each rule"):
        MaintainedJoin.from_sql(by_rounds, frames, state=tmp_path / "other", **options)
