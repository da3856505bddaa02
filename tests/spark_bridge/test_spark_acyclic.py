"""oracle: rules beside the SQL that says the same, in Spark: by cells, and by Spark's own operators.

Random rules over every type, NULLs and equal rows; ``make fuzz ONLY=spark`` plays more of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark")

from py4j.clientserver import ClientServerConnection
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampType

from lftj.errors import CartesianProductWarning, NoCycleWarning, SourceError, UnknownRelationError
from spark_bridge import explain, join, join_sql
from spark_bridge.join import When
from support.followed_join import PLACES, placed
from support.spark_programs import draw_program, found_rows, refuse_differences, refuse_other_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.NoCycleWarning"),
]

MOMENT = datetime(2026, 11, 28, 1, 2, 3)
EDGES = "SELECT * FROM VALUES (1, 2), (2, 3), (1, 3), (1, 3) t(src, dst)"


@contextmanager
def changed(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            spark.conf.set(name, was or "")


@pytest.mark.parametrize("seed", range(2))
def test_oracle_rules_by_cells_and_by_spark(spark: SparkSession, seed: int) -> None:
    refuse_differences(spark, draw_program(Random(seed)))


@pytest.mark.in_turns
@PLACES
def test_oracle_rules_that_are_kept(spark: SparkSession, tmp_path: Path, where: str) -> None:
    random = Random(3)
    options = placed(where, shares={}, partitions=1)
    refuse_other_batches(spark, draw_program(random), random, tmp_path / "state", **options)


def test_relations_with_a_key_are_not_made_distinct(spark: SparkSession) -> None:
    """Counted as Spark counts them, by keys that hold NULL elsewhere; of others equal rows are one."""
    fact = spark.sql("SELECT id, id % 7 AS a, IF(id % 5 = 0, NULL, id % 3) AS v FROM range(60)")
    dim = spark.sql("SELECT id AS a, id % 2 AS g FROM range(5) UNION ALL SELECT 1, 1")
    frames, rule = {"fact": fact, "dim": dim}, "n[g] = count() <- fact(_, a, _), dim(a, g)."
    keyed = {"key": {"fact": ["id"]}, "nulls": "keep"}
    found = join(rule, frames, **keyed)  # type: ignore[arg-type]
    counted = fact.join(dim.distinct(), "a").groupBy("g").count()
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, counted.collect()))
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("Aggregate") == 2  # of the groups, and for distinct rows of dim
    plain = join(rule, frames, nulls="keep")
    assert plain._jdf.queryExecution().optimizedPlan().toString().count("Aggregate") == 3
    with pytest.raises(SourceError, match="key of 'fact' is"):
        join(rule, frames, key={"fact": ["none"]})
    with pytest.raises(UnknownRelationError, match="key of 'facts'"):
        join(rule, frames, key={"facts": ["id"]})


def test_explain_says_who_joins_and_why(spark: SparkSession) -> None:
    edges = spark.sql(EDGES)
    path = "m[a] = max(c) <- edge(a, b), edge(b, c)."
    counted = "n[a] = count() <- edge(a, b), edge(b, _)."
    triangle = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
    chain = "h(a, c) <- edge(a, b), edge(b, c), !edge(a, c)."
    half = "h(a, c) <- edge(a, b), edge(b, d), c = d + 1."
    said = {
        (path, "cyclic"): "m(a, max), no cycle: by Spark's own operators",
        (path, "always"): "no cycle: if it joins by foreign keys Spark's own plan will be quicker",
        (half, "cyclic"): "no cycle, and by cells: values are computed",
        (counted, "cyclic"): "no cycle, and by cells: 'edge' meets itself",
    }
    for (rule, when), text in said.items():
        shown = str(explain(rule, {"edge": edges}, partitions=2, when=when))  # type: ignore[arg-type]
        assert text in shown, shown
        assert ("sent:" in shown) == ("own operators" not in text)
    keyed = explain(counted, {"edge": edges}, partitions=2, key={"edge": ["src", "dst"]})
    assert "n(a, count), no cycle: by Spark's own operators" in str(keyed)
    assert "2 cells, planned once: b in 2 parts" in str(
        explain(path, {"edge": edges}, partitions=2, shares={"b": 2})
    )
    for rule in (triangle, chain):
        shown = str(explain(rule, {"edge": edges}, partitions=2))
        assert "no cycle" not in shown and "2 cells" in shown


def test_several_aggregates_are_one_query_of_spark(spark: SparkSession) -> None:
    rule = "s(a, n: count(), t: sum(b), m: max(c)) <- edge(a, b), edge(b, c)."
    shown = str(explain(rule, {"edge": spark.sql(EDGES)}))
    assert shown.splitlines() == [
        "s(a, n, t, m), no cycle: by Spark's own operators",
        f"  {rule}",
    ]


def test_a_place_is_warned_once(spark: SparkSession) -> None:
    edges = spark.sql(EDGES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", NoCycleWarning)
        warnings.simplefilter("ignore", CartesianProductWarning)
        for _ in range(2):
            join("h(a, c) <- edge(a, b), edge(b, c).", {"edge": edges}, partitions=2, when="always")
        join("h(a, c) <- edge(a, b), edge(b, c).", {"edge": edges}, partitions=2)
        join("h(a, c) <- edge(a, b), edge(b, c), edge(c, a).", {"edge": edges}, when="always")
        join("n[a] = count() <- edge(a, _).", {"edge": edges}, when="always")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert "'h' has no cycle" in str(caught[0].message) and 'when="cyclic"' in str(caught[0].message)


@pytest.mark.in_turns
@pytest.mark.parametrize("when", ["cyclic", "always"])
def test_what_is_refused_raises_wherever_it_stands(spark: SparkSession, when: When) -> None:
    """Also in rows that join nothing, and where Spark would leave the column or the row out."""
    frames = {
        "r": spark.sql("SELECT * FROM VALUES (1, 2.5D), (2, double('nan')) t(a, f)"),
        "s": spark.sql("SELECT * FROM VALUES (1, 1), (NULL, 2), (1, NULL) t(a, b)"),
    }
    refused = "h(a, b) <- s(a, b), s(b, _)."
    with pytest.raises(PySparkException, match=r"NullError: relation 's', column '[ab]': NULL.*\"drop\""):
        join(refused, frames, partitions=1, when=when).collect()
    with pytest.raises(PySparkException, match=r"NanError: relation 'r.*', column 'f': NaN"):
        join("h(a, f) <- r(a, f), s(a, _).", frames, nulls="drop", partitions=1, when=when).collect()
    assert join(refused, frames, nulls="drop", partitions=1, when=when).collect() == [(1, 1)]


def test_sums_beyond_64_bits_are_refused(spark: SparkSession) -> None:
    frames = {"r": spark.sql("SELECT * FROM VALUES (1, 9223372036854775807L), (1, 1L), (2, -7L) t(a, v)")}
    with pytest.raises(PySparkException, match="RangeError"):
        join("t[a] = sum(v) <- r(a, v).", frames).collect()
    below = join("t[a] = sum(v) <- r(a, v), v < 5.", frames).collect()
    assert sorted(map(tuple, below)) == [(1, 1), (2, -7)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, count(*) AS n, sum(v) AS s, max(d) AS d FROM f JOIN dim ON f.d = dim.id GROUP BY g",
        "SELECT f.v, g FROM f JOIN dim ON f.d = dim.id WHERE f.v > 1",
        "SELECT DISTINCT g FROM f JOIN dim ON f.d = dim.id",
        "SELECT count(*) AS n FROM f JOIN dim ON f.d = dim.id WHERE g = 'none'",
        "SELECT d, count(*) AS n FROM f GROUP BY d",
    ],
)
def test_oracle_sql_counts_rows_as_often_as_they_are_there(spark: SparkSession, sql: str) -> None:
    frames = {
        "f": spark.sql("SELECT * FROM VALUES (1, 2), (1, 2), (2, 5), (NULL, 7), (2, NULL), (9, 1) t(d, v)"),
        "dim": spark.sql(
            "SELECT * FROM VALUES (1, 'x'), (1, 'x'), (2, 'y'), (NULL, 'z'), (3, NULL) t(id, g)"
        ),
    }
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    own = join_sql(sql, frames)
    assert "mapinarrow" not in own._jdf.queryExecution().toString().lower()
    assert found_rows(own) == found_rows(spark.sql(sql))


def test_texts_and_names_are_as_they_are(spark: SparkSession) -> None:
    """Whatever Spark is set to read in its SQL, and whatever columns are called."""
    text = "it's ${spark.app.name} \u00e4"
    rows = spark.createDataFrame(
        [(1, text, MOMENT), (2, text, MOMENT), (3, "it's", MOMENT)], "k int, s string, t timestamp"
    )
    frames = {"r": rows.toDF("`a.b", "A", "${spark.app.name}"), "s": rows.select("k").toDF("a b`")}
    rule = f'h(k, s, t) <- r(k, s, t), s(k), s = "{text}", k >= -2147483648.'
    settings = {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    }
    for each in ({}, settings):
        with changed(spark, each):
            found = join(rule, frames, nulls="drop")
            assert found.schema["t"].dataType == TimestampType()
            assert sorted(map(tuple, found.collect())) == [(1, text, MOMENT), (2, text, MOMENT)]
            counted = join_sql('SELECT "${spark.app.name}", count(*) FROM r GROUP BY ALL', frames)
            assert [tuple(row) for row in counted.collect()] == [(MOMENT, 3)]


def test_what_is_cached_stays_so(spark: SparkSession) -> None:
    edges = spark.sql(EDGES).cache()
    try:
        join("h(a, c) <- edge(a, b), edge(b, c).", {"edge": edges}).collect()
        join_sql("SELECT src, count(*) FROM edge GROUP BY src", {"edge": edges}).collect()
        assert edges.storageLevel.useMemory
    finally:
        edges.unpersist()


def test_a_plan_is_few_commands_of_java(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dimensions, grouped, took 1,900 commands and 1,200, each of which keeps both processes busy."""
    fact = spark.sql("SELECT id, id % 7 AS a, id % 3 AS b, id AS v FROM range(60)")
    frames = {"fact": fact, "one": spark.range(7).toDF("a"), "other": spark.range(3).toDF("b")}
    commands = []
    send = ClientServerConnection.send_command

    def counting(self: ClientServerConnection, command: str) -> str:
        if not command.startswith("m\n"):  # which tells Java of objects that nobody has any more
            commands.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counting)
    rule = "n(b, n: count(), t: sum(v)) <- fact(_, a, b, v), one(a), other(b)."
    join(rule, frames, key={"fact": ["id"]})
    assert len(commands) < 120
    commands.clear()
    sql = "SELECT o.b, count(*), sum(v) FROM fact JOIN one USING (a) JOIN other o ON fact.b = o.b GROUP BY 1"
    join_sql(sql, frames)
    assert len(commands) < 200


def test_what_when_can_be(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="when is 'never'; it can be 'always' or 'cyclic'"):
        join("h(a) <- edge(a, _).", {"edge": spark.sql(EDGES)}, when="never")  # type: ignore[arg-type]
