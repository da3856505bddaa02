"""differential: what columns hold that no rule reads is nobody's business; changes in other types of a kind.

Spark SQL is the oracle where it says the same; it counts rows by all columns, as a relation has them.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from spark_bridge.placing.read_columns import ReadColumns
from support.by_cells import explain, join, join_sql, motifs

ONE_CELL: dict[str, int] = {}

REST = """
    SELECT a, b, n AS note, if(n IS NULL, NULL, array(n, NULL)) AS tags, map(n, b) AS pairs,
        named_struct('n', n) AS nested, interval 3 months AS months, make_interval(1, 2, 3) AS span,
        parse_json('{"a": 1}') AS variant, n COLLATE UTF8_LCASE AS folded, NULL AS nothing,
        if(n = 'x', double('nan'), -0.0D) AS f
    FROM VALUES (1, 2, 'x'), (1, 2, 'X'), (2, 3, 'y'), (3, 1, 'z'), (1, 3, 'z') t(a, b, n)
"""
"""Of everything that can't be joined on, beside two columns that can."""


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    some = spark.sql(
        "SELECT * FROM VALUES (1, 2, NULL), (2, 3, 'x'), (1, 2, 'y'), (1, 2, NULL) t(a, b, note)"
    )
    found = {"e": some.distinct(), "w": spark.sql(REST)}
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return found


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


@pytest.mark.parametrize("nulls", ["refuse", "drop", "keep"])
def test_nulls_in_columns_that_a_select_does_not_name(
    nulls: Any, spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    for sql in (
        "SELECT DISTINCT p.a, q.b FROM e p JOIN e q ON p.b = q.a",
        "SELECT a, count(*) AS n, sum(b), max(b) FROM e GROUP BY a",
    ):
        assert rows(join_sql(sql, frames, nulls=nulls)) == rows(spark.sql(sql)) != []


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("h(a, c) <- w(a, b, _, _, _, _, _, _, _, _, _, _), w(a: b, b: c).", ""),
        (
            "h(b) <- e(b: b), !w(a: b, b: 3).",
            "SELECT DISTINCT b FROM e WHERE b NOT IN (SELECT a FROM w WHERE b = 3)",
        ),
        ("h(a, count(), min(b)) <- w(a: a, b: b).", "SELECT a, count(*), min(b) FROM w GROUP BY a"),
        ("h(a) <- e(a, _, _), w(b: _).", "SELECT DISTINCT a FROM e"),
    ],
)
def test_columns_of_any_type_that_no_atom_reads(
    rule: str, sql: str, spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    sql = sql or "SELECT DISTINCT p.a, q.b FROM w p JOIN w q ON p.b = q.a"
    assert rows(join(rule, frames, shares=ONE_CELL)) == rows(spark.sql(sql)) != []


def test_a_sample_and_explain_look_at_what_is_read_alone(frames: dict[str, DataFrame]) -> None:
    rule = "tri(a, b, c) <- w(a: a, b: b), w(a: b, b: c), w(a: a, b: c)."
    assert "8 cells" in explain(rule, frames, partitions=8)
    assert rows(join(rule, frames, partitions=9)) == [(1, 2, 3)]


@pytest.mark.parametrize(
    "rule", ["h(a) <- w(a: a, f: f).", "h(a, count()) <- w(a: a).", "h(a) <- e(a, _, _)."]
)
def test_the_schema_of_what_is_read_is_known_before(rule: str, frames: dict[str, DataFrame]) -> None:
    columns = ReadColumns.of(rule, frames)
    for name, frame in columns.frames(frames).items():
        assert columns.relations[name].schema == frame.schema


def test_a_column_that_is_read_is_looked_at(frames: dict[str, DataFrame]) -> None:
    for column in ("pairs", "nested", "months", "span", "variant", "folded"):
        with pytest.raises(errors.UnsupportedTypeError, match=f"relation 'w', column '{column}'"):
            join(f"h(x) <- w({column}: x).", frames)
    for sql in ("SELECT count(note) FROM e", "SELECT DISTINCT a FROM e WHERE note IS NOT NULL"):
        with pytest.raises(PySparkException, match="NullError: relation 'e', column 'note'"):
            join_sql(sql, frames, nulls="refuse").collect()


def test_unnamed_edges_of_a_motif_are_rows_that_are_there(spark: SparkSession) -> None:
    vertices = spark.sql("SELECT id FROM range(1, 4)")
    edges = spark.sql("SELECT a AS src, b AS dst, tags, note FROM w")
    found = motifs("(a)-[]->(b); (b)-[]->(c)", vertices, edges, shares=ONE_CELL)
    sql = "SELECT DISTINCT p.a, q.a, q.b FROM w p JOIN w q ON p.b = q.a"
    assert rows(found.select("a.id", "b.id", "c.id")) == rows(spark.sql(sql)) != []


def test_rows_that_agree_in_what_is_read_go_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    """Erased with one note, a row is there with another; by a batch, in a second process, and by a stream."""
    schema = "a int, b int, note string, tags array<int>"
    made = [(1, 2, None, [1]), (1, 2, None, None), (2, 3, "x" * 90, None)]
    frames = {"e": spark.createDataFrame(made, schema), "unused": spark.sql("SELECT map(1, 2) AS m")}
    rule = "h(a, c) <- e(a, b, _, _), e(b, c, _, _)."
    joined = MaintainedJoin(rule, frames, state=tmp_path / "state", shares=ONE_CELL, partitions=1)
    assert rows(joined.table()) == [(1, 3)]

    def changes(*changed: tuple[Any, ...]) -> DataFrame:
        shown = spark.createDataFrame(list(changed), f"{schema}, weight int")
        return shown.selectExpr("tags", "weight", "bigint(b) AS b", "note", "smallint(a) AS a")

    assert rows(joined.apply({"e": changes((1, 2, None, [1], -1))})) == []
    joined = MaintainedJoin(rule, frames, state=tmp_path / "state")
    assert rows(joined.apply({"e": changes((1, 2, None, [1], -1), (5, 2, "y", [], 1))})) == [(5, 3, 1)]
    assert rows(joined.apply({"e": changes((1, 2, None, None, -1))})) == [(1, 3, -1)]
    changes((2, 3, "x" * 90, None, -1)).write.parquet(str(tmp_path / "incoming"))
    read = spark.readStream.schema("tags array<int>, weight int, b bigint, note string, a smallint")
    joined.stream(
        {"e": read.parquet(str(tmp_path / "incoming"))},
        checkpoint=str(tmp_path / "checkpoint"),
        sink=lambda *_: None,
        trigger={"availableNow": True},
    ).awaitTermination()
    assert rows(joined.table()) == []
    other = {**frames, "e": frames["e"].selectExpr("a", "b", "1 AS note", "tags")}
    with pytest.raises(errors.StateError, match=r"unread\.e\.note='string'"):
        MaintainedJoin(rule, other, state=tmp_path / "state")
    with pytest.raises(errors.ChangeError, match="column 'note': the values are of type int"):
        joined.apply(
            {"e": changes((1, 2, None, None, 1)).selectExpr("a", "b", "1 AS note", "tags", "weight")}
        )


def test_changes_in_other_types_of_a_kind(spark: SparkSession, tmp_path: Path) -> None:
    """As changes of a workspace may be; what the relation's types can't hold is refused, with the value."""
    types = {"i": "smallint", "d": "decimal(12,2)", "f": "float", "s": "string"}

    def frame(i: str, d: str, f: str, of: str = "bigint decimal(4,2) double varchar(9)") -> DataFrame:
        values = dict(zip(types, (i, d, f, "'x'"), strict=True))
        given = dict(zip(types, of.split(), strict=True))
        return spark.sql(
            f"SELECT {', '.join(f'CAST({values[n]} AS {given[n]}) AS {n}' for n in types)}, 1 AS weight"
        )

    first = frame("1", "1.50", "0.5", " ".join(types.values())).drop("weight")
    joined = MaintainedJoin(
        "h(i, d, f, s) <- r(i, d, f, s).", {"r": first}, state=tmp_path / "s", shares=ONE_CELL, partitions=1
    )
    made = joined.apply({"r": frame("2", "2.25", "0.25").unionAll(frame("1", "1.50", "0.5"))})
    assert rows(made) == [(2, Decimal("2.25"), 0.25, "x", 1)]
    made = joined.apply({"r": frame("3", "1.5", "1", "tinyint decimal(20,6) float string")})
    assert rows(made) == [(3, Decimal("1.50"), 1.0, "x", 1)]
    for wrong, what in (
        (frame("70000", "1", "1"), "column 'i': 70000 is no value of the relation's type int16"),
        (frame("1", "1", "0.1"), "column 'f': 0.1 is no value of the relation's type float"),
        (frame("1", "1.2345", "1", "int decimal(9,4) float string"), "column 'd': 1.2345 is no value"),
        (frame("1", "12345678901", "1", "int decimal(11,0) float string"), "column 'd': 12345678901 is no"),
        (
            frame("1.5", "1", "1", "double decimal(4,2) float string"),
            "column 'i': the values are of type double",
        ),
        (frame("1", "1", "1", "int int float string"), "column 'd': the values are of type int32"),
    ):
        with pytest.raises(errors.ChangeError, match=what):
            joined.apply({"r": frame("4", "1", "1").unionAll(wrong) if "no value" in what else wrong})
    assert joined.version == 3
