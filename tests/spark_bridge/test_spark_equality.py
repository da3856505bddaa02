"""differential: which values are equal, beside Spark SQL; where Spark means something else it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from support.by_cells import join, join_sql, motifs
from support.followed_join import PLACES, placed

ONE_CELL: dict[str, int] = {}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_strings_of_a_collation_are_refused_with_a_way_out(spark: SparkSession, tmp_path: Path) -> None:
    plain = spark.sql("SELECT * FROM VALUES ('Ann', 1), ('ann', 2) t(n, x)")
    for collation in ("UNICODE_CI", "UTF8_LCASE", "UNICODE", "UTF8_BINARY_RTRIM"):
        frame = plain.selectExpr(f"n COLLATE {collation} AS n", "x")
        frame.createOrReplaceTempView("named")
        match = f"relation '.', column 'n': .*{collation}.*give n COLLATE UTF8_BINARY"
        with pytest.raises(errors.UnsupportedTypeError, match=match):
            join("h(n, x) <- r(n, x).", {"r": frame})
        with pytest.raises(errors.UnsupportedTypeError, match=match):
            join_sql("SELECT n, count(*) AS c FROM r GROUP BY n", {"r": frame})
    with pytest.raises(errors.UnsupportedTypeError, match="column 'n'"):
        motifs("(a)-[]->(b)", frame.selectExpr("x AS id", "n"), plain.selectExpr("x AS src", "x AS dst"))
    with pytest.raises(errors.UnsupportedTypeError, match=match):
        MaintainedJoin("h(n, x) <- r(n, x).", {"r": frame}, state=tmp_path / "refused")
    made = {"r": plain}
    joined = MaintainedJoin(
        "h(n, x) <- r(n, x).", made, state=tmp_path / "state", shares=ONE_CELL, partitions=1
    )
    with pytest.raises(errors.UnsupportedTypeError, match=match):
        joined.apply({"r": frame.selectExpr("*", "1 AS weight")})
    cast = frame.selectExpr("n COLLATE UTF8_BINARY AS n", "x")
    assert rows(join("h(n, x) <- r(n, x).", {"r": cast}, shares=ONE_CELL)) == [("Ann", 1), ("ann", 2)]


@pytest.fixture(scope="module")
def texts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DataFrame]]:
    """Tables with columns of type ``char``, of ``varchar`` and of ``string``; what Spark shows of these."""
    folder = tmp_path_factory.mktemp("texts")
    columns = {
        "five": "char(5)",
        "more": "char(5)",
        "three": "char(3)",
        "var": "varchar(5)",
        "text": "string",
    }
    for name, type_ in columns.items():
        spark.sql(f"CREATE TABLE {name} (c {type_}, x int) USING parquet LOCATION '{folder}/{name}'")
        spark.sql(f"INSERT INTO {name} VALUES ('ab', 1), ('abc', 2)")
    spark.sql("INSERT INTO text VALUES ('ab   ', 3)")
    yield {name: spark.table(name) for name in columns}
    for name in columns:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("other", ["five", "more", "var", "text"])
def test_char_joins_as_in_spark(other: str, spark: SparkSession, texts: dict[str, DataFrame]) -> None:
    sql = f"SELECT DISTINCT p.c, p.x, q.x FROM five p JOIN {other} q ON p.c = q.c WHERE p.c <> 'xxxxx'"
    assert rows(join_sql(sql, texts)) == rows(spark.sql(sql))


def test_what_spark_pads_first_is_refused(
    spark: SparkSession, texts: dict[str, DataFrame], tmp_path: Path
) -> None:
    for sql in (
        "SELECT DISTINCT p.x, q.x FROM five p JOIN three q ON p.c = q.c",
        "SELECT DISTINCT p.x, q.x FROM five p JOIN three q ON p.c < q.c",
        "SELECT DISTINCT x FROM five WHERE c = 'ab'",
        "SELECT DISTINCT x FROM five WHERE c IN ('abcde', 'ab')",
    ):
        assert rows(spark.sql(sql)) != []  # where values as they are held give less, or something else
        with pytest.raises(errors.TypeClashError, match=r"char\(5\).*rtrim"):
            join_sql(sql, texts)
    for rule in (
        'h(x) <- five("ab", x).',
        'h(x, v) <- five(c, x), v = if(c = "ab", 1, 2).',
        "k(c) <- five(c, _). h(c) <- k(c), three(c, _).",
    ):
        with pytest.raises(errors.TypeClashError, match=r"char\(5\)"):
            join(rule, texts)
        with pytest.raises(errors.TypeClashError, match=r"char\(5\)"):
            MaintainedJoin(rule, texts, state=tmp_path, where="driver")
    recursive = "k(c, x) <- five(c, x). k(c, x) <- l(c, x). l(c, x) <- k(c, x), text(_, x)."
    with pytest.raises(errors.TypeClashError, match=r"char\(3\) and char\(5\)"):
        MaintainedJoin(f"{recursive} h(c) <- l(c, _), three(c, _).", texts, state=tmp_path, where="driver")
    assert not list(tmp_path.iterdir())
    cast = {**texts, "five": texts["five"].selectExpr("rtrim(c) AS c", "x")}
    assert rows(join_sql("SELECT DISTINCT x FROM five WHERE c = 'ab'", cast)) == [(1,)]


@PLACES
def test_changes_of_char_are_padded_as_spark_does_when_it_writes(
    spark: SparkSession, texts: dict[str, DataFrame], tmp_path: Path, where: str
) -> None:
    options = placed(where, shares=ONE_CELL, partitions=1)
    joined = MaintainedJoin("h(c, x) <- five(c, x).", texts, state=tmp_path / "state", **options)
    changes = spark.sql("SELECT * FROM VALUES ('ab', 1, -1), ('n', 5, 1) t(c, x, weight)")
    assert rows(joined.apply({"five": changes})) == [("ab   ", 1, -1), ("n    ", 5, 1)]


def test_zeros_of_both_signs_are_one_value(spark: SparkSession) -> None:
    frame = spark.sql("SELECT * FROM VALUES (1, -0.0D), (2, 0.0D), (3, 1.0D) t(i, f)")
    frame.createOrReplaceTempView("z")
    for sql in (
        "SELECT DISTINCT p.i, q.i, p.f FROM z p JOIN z q ON p.f = q.f",
        "SELECT f, count(*) AS n FROM z GROUP BY f",
        "SELECT DISTINCT i FROM z WHERE f = 0",
        "SELECT min(f), max(f) FROM z WHERE i < 3",
    ):
        found = join_sql(sql, {"z": frame}, partitions=2)
        assert rows(found) == rows(spark.sql(sql))


def test_nan_is_refused_where_it_is_read(spark: SparkSession) -> None:
    """Spark has it equal to itself and above all numbers."""
    frame = spark.sql("SELECT * FROM VALUES (1, double('nan')), (2, 0.5D) t(i, f)")
    for sql in (
        "SELECT DISTINCT p.i, q.i FROM nans p JOIN nans q ON p.f <= q.f",
        "SELECT max(f), sum(f) FROM nans",
    ):
        # both sides of a join may fail, which Spark's Java says then
        message = r"NanError: relation 'nans.*', column 'f': NaN"
        with pytest.raises((PythonException, Py4JJavaError), match=message):
            join_sql(sql, {"nans": frame}).collect()
    assert rows(join_sql("SELECT DISTINCT i FROM nans", {"nans": frame})) == [(1,), (2,)]
