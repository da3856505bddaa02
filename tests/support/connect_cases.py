"""`join` and `MaintainedJoin` through Spark Connect, as a script.

    python connect_cases.py ADDRESS

``ADDRESS`` is that of the server.  A process can have a Connect session or a classic one, not both.

Prints for each case ``case NAME`` and below it ``ok`` or a traceback; exits with the number of those that
failed.  Run by ``test_spark_connect.py``.
"""

from __future__ import annotations

import datetime
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import lftj
from lftj import errors
from spark_bridge import JoinStats, MaintainedJoin
from spark_bridge.placing.schemas import spark_schema
from support.by_cells import join

START = "\ncase "

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
UTC = datetime.UTC


def edges(n_edges: int, n_nodes: int) -> pa.Table:
    pairs = dict.fromkeys((i * i % n_nodes, (7 * i + i * i * i) % n_nodes) for i in range(n_edges))
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


def counted(spark: SparkSession) -> None:
    table, stats = edges(100, 12), JoinStats()
    found = join("h(a, b) <- e(a, b).", {"e": spark.createDataFrame(table)}, partitions=2, stats=stats)
    assert found.count() == stats.heads["h"].found == stats.heads["h"].rows["e"] == table.num_rows


def asked_behind(spark: SparkSession) -> None:
    """What is asked behind a join, with columns of the DataFrames before it, is asked of its rows."""
    table = edges(100, 12)
    found = join("h(a, b) <- e(a, b).", {"e": spark.createDataFrame(table)}, partitions=2)
    expected = pa.table({"b": table["dst"]}).filter(pa.compute.greater(table["src"], 3))
    for condition in ("a > 3", F.col("a") > 3, found.a > 3):
        some = found.where(condition)
        assert shown(some.select(found.b).toArrow()) == shown(expected)
        assert some.select("a").distinct().limit(2).count() == 2
        assert some.select("b").distinct().count() == len(set(expected["b"].to_pylist()))


def maintained(spark: SparkSession, **options: Any) -> None:
    """Batches, one of them again; a refused one; a second object on the state."""
    options = options or {"shares": {"b": 2}, "partitions": 2}
    rule = "n[c] = count() <- e(a, b), e(b, c), e(a, c)."
    rows = {tuple(row.values()) for row in edges(60, 9).to_pylist()}
    with TemporaryDirectory() as state:
        frames = {"e": spark.createDataFrame(pairs(rows))}
        joined = MaintainedJoin(rule, frames, state=state, **options)
        for number in range(3):
            new, old = {(number, 8), (8, number)}, {(number, 7), (number + 1, number)}
            changes = spark.createDataFrame(
                [(*row, 1) for row in sorted(new)] + [(*row, -1) for row in sorted(old)],
                "src long, dst long, weight long",
            )
            before, rows = in_memory(rule, e=pairs(rows)), (rows - old) | new
            made = [joined.apply({"e": changes}, batch_id=number).toArrow() for _ in range(2)]
            assert made[0].equals(made[1])
            now = in_memory(rule, e=pairs(rows))
            for weight, wanted in ((1, set(now) - set(before)), (-1, set(before) - set(now))):
                found = made[0].filter(pa.compute.equal(made[0]["weight"], weight)).drop_columns("weight")
                assert shown(found) == sorted(wanted)
            assert shown(joined.table().toArrow()) == now
        wrong = spark.createDataFrame([(None, 1, 1)], "src long, dst long, weight long")
        raises(errors.NullError, "relation 'e', column 'src'", lambda: joined.apply({"e": wrong}))
        other = MaintainedJoin(rule, frames, state=state, where=options.get("where", "executors"))
        assert (other.version, other.applied()) == (joined.version, joined.applied()) == (4, 2)
        if "where" in options:
            stream = partial(joined.stream, {}, checkpoint=state, sink=state)
            raises(errors.StateError, "over Spark Connect", stream)
        joined.close()


def maintained_in_the_driver(spark: SparkSession) -> None:
    maintained(spark, where="driver")


def maintained_by_a_stream(spark: SparkSession) -> None:
    """Into a folder, from files, and on from the checkpoint."""
    with TemporaryDirectory() as given:
        folder = Path(given)
        (folder / "incoming").mkdir()
        rows = {tuple(row.values()) for row in edges(60, 9).to_pylist()}
        frames = {"e": spark.createDataFrame(pairs(rows))}
        joined = MaintainedJoin(TRIANGLES, frames, state=folder / "state", shares={"a": 2}, partitions=2)
        before = in_memory(TRIANGLES, e=pairs(rows))
        for number in range(2):
            rows |= {(number, 20), (20, 30), (number, 30)}
            table = pairs({(number, 20), (20, 30), (number, 30)})
            pq.write_table(
                table.append_column("weight", pa.array([1] * 3, pa.int64())),
                folder / f"incoming/{number}.parquet",
            )
            changes = spark.readStream.schema("src long, dst long, weight long").parquet(f"{folder}/incoming")
            start = partial(
                joined.stream,
                {"e": changes},
                checkpoint=f"{folder}/checkpoint",
                sink=f"{folder}/made",
                trigger={"availableNow": True},
            )
            started(start).awaitTermination()
        assert joined.applied(f"stream {folder}/checkpoint") == 1
        now = in_memory(TRIANGLES, e=pairs(rows))
        assert shown(joined.table().toArrow()) == now
        made = spark.read.parquet(*map(str, sorted((folder / "made").iterdir()))).drop("weight").toArrow()
        assert shown(made) == sorted(set(now) - set(before))


def started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The query.  The server gives the worker of ``foreachBatch`` ten seconds to come up, which no setting
    changes; on a loaded machine that may take some tries."""
    while True:
        try:
            return start()
        except PySparkException as error:
            if "Python worker failed to connect back" not in str(error):
                raise


def pairs(rows: set[tuple[int, ...]]) -> pa.Table:
    return pa.table({"src": [row[0] for row in sorted(rows)], "dst": [row[1] for row in sorted(rows)]})


def nothing_runs_at_once(spark: SparkSession) -> None:
    failing = F.udf(lambda _: 1 // 0, "long")
    frame = spark.range(3).select(failing("id").alias("src"), F.col("id").alias("dst"))
    found = join(TRIANGLES, {"e": frame}, partitions=2)
    raises(PythonException, "ZeroDivisionError", found.collect)


def errors_at_once(spark: SparkSession) -> None:
    frame = spark.range(3)
    raises(errors.UnknownRelationError, "mean 'edge'", lambda: join("h(a) <- edgy(a).", {"edge": frame}))
    raises(errors.SourceError, "not a Spark DataFrame", lambda: join("h(a) <- e(a).", {"e": [1]}))
    nested = spark.sql("SELECT struct(1) AS a")
    raises(errors.UnsupportedTypeError, "struct<", lambda: join("h(a) <- e(a).", {"e": nested}))
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
    counted,
    asked_behind,
    maintained,
    maintained_by_a_stream,
    maintained_in_the_driver,
    nothing_runs_at_once,
    errors_at_once,
    errors_in_tasks,
)


def main(address: str, wanted: Sequence[str]) -> int:
    from support.spark_session import connect_session

    spark = connect_session(address)
    failed = 0
    for case in (case for case in CASES if case.__name__ in wanted):
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
    sys.exit(main(sys.argv[1], sys.argv[2:]))
