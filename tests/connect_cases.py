"""`join` through Spark Connect, as a script: a process can have a Connect session or a classic one, not both.

Prints for each case ``case NAME`` and below it ``ok`` or a traceback; exits with the number of those that
failed.  Run by ``test_spark_connect.py``.
"""

from __future__ import annotations

import datetime
import re
import sys
import traceback
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lftj
from lftj import errors
from spark_bridge import join
from spark_bridge.schemas import spark_schema

START = "\ncase "

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
UTC = datetime.UTC


def edges(n_edges: int, n_nodes: int) -> pa.Table:
    pairs = [(i * i % n_nodes, (7 * i + i * i * i) % n_nodes) for i in range(n_edges)]
    return pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})


def in_memory(rule: str, **tables: pa.Table) -> list[str]:
    database = lftj.Database()
    for name, table in tables.items():
        database.load(name, table)
    return shown(database.query(rule, threads=1))


def shown(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def triangles(spark: SparkSession) -> None:
    table = edges(500, 40)
    found = join(TRIANGLES, {"e": spark.createDataFrame(table)}, partitions=3)
    assert type(found).__module__.startswith("pyspark.sql.connect"), type(found)
    assert found.columns == ["a", "b", "c"]
    assert shown(found.toArrow()) == in_memory(TRIANGLES, e=table)


def heads_and_aggregates(spark: SparkSession) -> None:
    rule = """two(a, c) <- e(a, b), e(b, c).
              n(a, count(), max(c)) <- two(a, b), two(b, c), !e(a, c)."""
    table = edges(60, 20)
    found = join(rule, {"e": spark.createDataFrame(table)}, shares={"b": 2}, partitions=2)
    assert shown(found.toArrow()) == in_memory(rule, e=table)


def empty_relations(spark: SparkSession) -> None:
    table = edges(20, 5)
    frame = spark.createDataFrame(table)
    frames = {"e": frame, "o": frame.where(F.lit(False)), "p": spark.createDataFrame([], frame.schema)}
    rule = "h(a) <- e(a, _), !o(a, _), !p(_, a)."
    empty = table.slice(0, 0)
    assert shown(join(rule, frames, partitions=2).toArrow()) == in_memory(rule, e=table, o=empty, p=empty)
    assert join("h(a) <- o(a, _), p(a, _).", frames, partitions=2).collect() == []


def types(spark: SparkSession) -> None:
    table = pa.table(
        {
            "i": pa.array([1, 2], pa.int16()),
            "d": pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(10, 2)),
            "t": pa.array([datetime.datetime(2026, 3, 29, n, 30, tzinfo=UTC) for n in (1, 2)]).cast(
                pa.timestamp("us", "UTC")
            ),
            "n": pa.array([datetime.datetime(2026, 3, 29, n, 30) for n in (1, 2)], pa.timestamp("us")),
            "s": ["é", ""],
            "b": [b"\x00", b""],
        }
    )
    rule = "h(i, d, t, n, s, b) <- r(i, d, t, n, s, b), r(i, d, t, _, s, _)."
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    found = join(rule, {"r": frame}, shares={"t": 2, "d": 2}, partitions=2)
    assert found.schema.simpleString() == frame.schema.simpleString()
    assert found.toArrow().schema.types == table.schema.types
    assert shown(found.toArrow()) == in_memory(rule, r=table)


def names_and_pipelines(spark: SparkSession) -> None:
    frame = spark.createDataFrame(edges(100, 12)).toDF("a.b", "`c` d").where("`a.b` > 2")
    rule = "h(a, A) <- e(a, A), e(A, a). k(a, A) <- h(a, A), e(A, a)."
    grouped = join(rule, {"e": frame}, shares={}, partitions=2).groupBy().count()
    pairs = {tuple(row.values()) for row in edges(100, 12).to_pylist() if row["src"] > 2}
    assert grouped.collect()[0][0] == sum((b, a) in pairs for a, b in pairs)


def nothing_runs_at_once(spark: SparkSession) -> None:
    failing = F.udf(lambda _: 1 // 0, "long")
    frame = spark.range(3).select(failing("id").alias("src"), F.col("id").alias("dst"))
    found = join(TRIANGLES, {"e": frame}, partitions=2)
    raises(PythonException, "ZeroDivisionError", found.collect)


def errors_at_once(spark: SparkSession) -> None:
    frame = spark.range(3)
    raises(errors.UnknownRelationError, "mean 'edge'", lambda: join("h(a) <- edgy(a).", {"edge": frame}))
    raises(errors.SourceError, "not a Spark DataFrame", lambda: join("h(a) <- e(a).", {"e": [1]}))
    nested = spark.sql("SELECT array(1) AS a")
    raises(errors.UnsupportedTypeError, "array<int>", lambda: join("h(a) <- e(a).", {"e": nested}))
    raises(errors.LimitError, "partitions is 0", lambda: join("h(a) <- e(a).", {"e": frame}, partitions=0))


def errors_in_tasks(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2), (1, 3), (None, 4)], "a long, b long")
    rule = "h(a, v) <- e[a] = v."
    refused = join(rule, {"e": frame}, shares={"a": 2}, partitions=2)
    raises(PythonException, "NullError: relation 'e', column 'a': NULL", refused.collect)
    dropped = join(rule, {"e": frame}, shares={"a": 2}, partitions=2, nulls="drop")
    raises(PythonException, "FunctionalConflictError: relation 'e", dropped.collect)


def raises(kind: type[Exception], text: str, run: Callable[[], object]) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        run()


CASES = (
    triangles,
    heads_and_aggregates,
    empty_relations,
    types,
    names_and_pipelines,
    nothing_runs_at_once,
    errors_at_once,
    errors_in_tasks,
)


def main() -> int:
    from spark_session import connect_session

    spark = connect_session()
    failed = 0
    for case in CASES:
        try:
            case(spark)
            said = "ok"
        except (Exception, pytest.fail.Exception):
            failed += 1
            said = traceback.format_exc()
        print(f"{START}{case.__name__}\n{said}", flush=True)
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
