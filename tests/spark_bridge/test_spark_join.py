"""differential: `join` in Spark against `Database` in memory; types, laziness and errors as Spark shows them.

What cells compute is tested without Spark (``test_cells_oracle.py``): here are few cases, each of something
that Spark itself has a part in.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import lftj
from lftj import errors
from spark_bridge.placing.schemas import spark_schema
from support.by_cells import join
from support.sets import load_set
from support.spark_types import in_spark
from support.strategies import Scenario, any_row, scenarios

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
ONE_CELL: dict[str, int] = {}
"""As ``shares=``: nothing is cut, and no sample is taken, which is quicker."""

UTC = datetime.UTC


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows; moments in UTC."""
    columns = [
        column.cast(pa.timestamp("us", "UTC")) if getattr(column.type, "tz", None) else column
        for column in table.columns
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def in_memory(rule: str, relations: dict[str, pa.Table], head: str | None = None) -> pa.Table:
    database = lftj.Database()
    for name, table in relations.items():
        load_set(database, name, table)
    return database.query(rule, head=head, threads=1)


def same_rows(found: DataFrame, expected: pa.Table) -> None:
    """The same rows, each once, under the same names."""
    assert found.columns == expected.column_names
    got = rows_of(found.toArrow())
    assert any_row(set(got)) == any_row(set(rows_of(expected)))
    assert len(got) == len(expected)


def edges(n_edges: int, n_nodes: int, seed: int = 0) -> pa.Table:
    random = Random(seed)
    pairs = [(random.randrange(n_nodes), random.randrange(n_nodes)) for _ in range(n_edges)]
    return pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})


# -- the same rows as in memory ---------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 8])
def test_differential_triangles(spark: SparkSession, partitions: int) -> None:
    table = edges(2000, 60)
    found = join(TRIANGLES, {"e": spark.createDataFrame(table)}, partitions=partitions)
    same_rows(found, in_memory(TRIANGLES, {"e": table}))


@settings(max_examples=4, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(scenario=scenarios(most_atoms=3, most_rules=3), partitions=st.sampled_from((3, 1, 5)))
def test_differential_programs(spark: SparkSession, scenario: Scenario, partitions: int) -> None:
    scenario = in_spark(scenario)
    tables = {relation.name: relation.table() for relation in scenario.loaded}
    try:
        expected = in_memory(scenario.text, tables, scenario.wanted)
    except errors.FunctionalConflictError:
        assume(False)
    frames = {
        name: spark.createDataFrame(table, spark_schema(table.schema)) for name, table in tables.items()
    }
    same_rows(join(scenario.text, frames, head=scenario.wanted, partitions=partitions), expected)


def test_differential_heads_that_read_heads(spark: SparkSession) -> None:
    """A head used twice, one that is used with and without negation, and one with several rules."""
    rule = """
        two(a, c) <- e(a, b), e(b, c).
        four(a, c) <- two(a, b), two(b, c).
        four(a, a) <- e(a, _).
        n[a] = count() <- four(a, c), !two(a, c), e(c, _).
    """
    table = edges(40, 15)
    same_rows(
        join(rule, {"e": spark.createDataFrame(table)}, partitions=3, shares={"b": 2, "c": 2}),
        in_memory(rule, {"e": table}),
    )


def test_a_product_is_warned_of_on_the_driver(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "a long, b long")
    rule = "h(a, c) <- r(a, _), s(c, _)."
    with pytest.warns(errors.CartesianProductWarning, match=r"\{a\} x \{c\}.*share no variable") as caught:
        join(rule, {"r": frame, "s": frame})
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.CartesianProductWarning)
        join("h(a) <- r(a, _), s(_, _).", {"r": frame, "s": frame})


def test_differential_skew(spark: SparkSession) -> None:
    """One value stands in 60% of the rows; ``test_cells_laws.py`` has how they are spread."""
    e = pa.table({"k": [0] * 300 + list(range(1, 201)), "v": list(range(500))})
    f = pa.table({"k": [0] * 30 + list(range(1, 21)), "w": list(range(50))})
    rule = "h(k, v, w) <- e(k, v), f(k, w)."
    found = join(rule, {"e": spark.createDataFrame(e), "f": spark.createDataFrame(f)}, partitions=6)
    same_rows(found, in_memory(rule, {"e": e, "f": f}))


def test_aggregates_over_partitions(spark: SparkSession) -> None:
    """Float sums are rounded once, wherever the summands were."""
    random = Random(3)
    values = [math.ldexp(random.uniform(-1, 1), random.randrange(-60, 60)) for _ in range(300)]
    table = pa.table({"k": [n % 5 for n in range(300)], "x": values, "s": [str(n % 7) for n in range(300)]})
    rule = "h(k, sum(x), avg(x), min(x), max(s), count(), concat(s, x)) <- r(k, x, s)."
    found = join(rule, {"r": spark.createDataFrame(table).repartition(5)}, partitions=4)
    same_rows(found, in_memory(rule, {"r": table}))
    sums = {row["k"]: row["sum"] for row in found.collect()}
    assert sums == {k: math.fsum(values[k::5]) for k in range(5)}


@pytest.mark.in_turns
def test_aggregates_that_are_rules_of_their_own(spark: SparkSession) -> None:
    rows = [(n % 4, n * 7 % 10, n % 3 * 0.5, "xyz"[n % 3]) for n in range(60)]
    table = pa.table(dict(zip("avws", map(list, zip(*rows, strict=True)), strict=True)) | {"i": range(60)})
    frame = {"r": spark.createDataFrame(table).repartition(3)}
    for head in (
        "h(a, count(), count(if v > 3), sum(v if v > 3), median(w), d: count(distinct v))",
        "h(a, variance(v), stddev(w), mode(s), arg_max(s, v), avg(distinct v))",
        'h[a] = sum(v if s = "x")',
    ):
        rule = f"{head} <- r(a, v, w, s, i)."
        same_rows(join(rule, frame, partitions=2), in_memory(rule, {"r": table}))


# -- inputs -------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["where false", "no rows", "filtered"])
def test_empty_relations(spark: SparkSession, empty: str) -> None:
    table = edges(30, 6)
    frame = spark.createDataFrame(table)
    nothing = {
        "where false": frame.where(F.lit(False)),
        "no rows": spark.createDataFrame([], frame.schema),
        "filtered": frame.where(F.rand(1) < 0),
    }[empty]
    relations = {"e": table, "o": table.slice(0, 0)}
    frames = {"e": frame, "o": nothing}
    for rule in ("h(a) <- e(a, b), !o(b, _).", "h(a) <- e(a, b), o(b, _).", "h(count()) <- o(_, _)."):
        same_rows(join(rule, frames, partitions=4), in_memory(rule, relations))


def test_samples_may_be_empty(spark: SparkSession) -> None:
    """Of a few rows none may be in the sample, which Spark then knows to be empty before it runs."""
    rule = "h(a, c) <- e(a, b), e(b, c)."
    for n_rows in (1, 2):
        table = pa.table({"src": list(range(n_rows)), "dst": list(range(1, n_rows + 1))})
        frame = spark.createDataFrame(table)
        same_rows(join(rule, {"e": frame}, partitions=2), in_memory(rule, {"e": table}))


def test_names_and_order_of_columns_do_not_matter(spark: SparkSession) -> None:
    """Columns count by their place, also where Spark has trouble with their names."""
    table = edges(60, 9)
    frame = spark.createDataFrame(table)
    frames = {
        "e": frame.toDF("a.b", "`c` d"),
        "f": frame.toDF("x", "X"),
        "g": frame.select(F.col("dst").alias("src"), F.col("src").alias("dst")),
    }
    rule = "h(a, A, b) <- e(a, A), f(A, b), g(b, a)."
    relations = {"e": table, "f": table, "g": table.select(["dst", "src"])}
    found = join(rule, frames, shares={"a": 2, "b": 2}, partitions=4)
    same_rows(found, in_memory(rule, relations))
    over = "h(a, A) <- e(a, A). k(a, A) <- h(a, A), h(A, a)."
    same_rows(join(over, frames, shares=ONE_CELL, partitions=2), in_memory(over, relations))


def test_in_the_middle_of_a_pipeline(spark: SparkSession) -> None:
    """Filters before and grouping after are Spark's; the inputs have rows twice."""
    table = edges(400, 20)
    frame = spark.createDataFrame(table)
    doubled = frame.where("src < dst").unionAll(frame.where("src < dst")).repartition(3)
    per_node = join(TRIANGLES, {"e": doubled}, partitions=3).groupBy("a").count()
    pairs = [row for row in set(rows_of(table)) if row[0] < row[1]]
    kept = pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})
    expected = in_memory("n[a] = count() <- e(a, b), e(b, c), e(a, c).", {"e": kept})
    assert sorted(map(tuple, per_node.collect())) == sorted(rows_of(expected))


def test_nulls(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2), (None, 2), (2, None), (2, 3)], "a long, b long")
    rule = "h(a, c) <- e(a, b), e(b, c)."
    dropped = join(rule, {"e": frame}, nulls="drop", partitions=2)
    assert [tuple(row) for row in dropped.collect()] == [(1, 3)]
    with pytest.raises(PythonException, match=r"NullError: relation 'e', column '[ab]': NULL.*\"drop\""):
        join(rule, {"e": frame}, partitions=2).collect()
    with pytest.raises(ValueError, match="nulls is 'ignore'; it can be"):
        join(rule, {"e": frame}, nulls="ignore")  # type: ignore[arg-type]


# -- types ----------------------------------------------------------------------------

MOMENT = datetime.datetime(2026, 3, 29, 1, 30, 0, 250001)
SPARK_TYPES: dict[str, tuple[T.DataType, pa.DataType, list[Any]]] = {
    "byte": (T.ByteType(), pa.int8(), [-128, 0, 127]),
    "short": (T.ShortType(), pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int": (T.IntegerType(), pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": (T.LongType(), pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (T.FloatType(), pa.float32(), [-1.5, math.inf, 0.25]),
    "double": (T.DoubleType(), pa.float64(), [-1.7e308, 5e-324, 0.1]),
    "decimal": (
        T.DecimalType(38, 18),
        pa.decimal128(38, 18),
        [Decimal(n).scaleb(-18) for n in (-1, 0, 10**37)],
    ),
    "string": (T.StringType(), pa.string(), ["", "é\0", "\N{GRINNING FACE}"]),
    "binary": (T.BinaryType(), pa.binary(), [b"", b"\x00", b"\xff\x00"]),
    "boolean": (T.BooleanType(), pa.bool_(), [False, True, True]),
    "date": (
        T.DateType(),
        pa.date32(),
        [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)],
    ),
    "timestamp": (
        T.TimestampType(),
        pa.timestamp("us", "UTC"),
        [(MOMENT + datetime.timedelta(hours=n)).replace(tzinfo=UTC) for n in range(3)],
    ),
    "timestamp_ntz": (
        T.TimestampNTZType(),
        pa.timestamp("us"),
        [MOMENT + datetime.timedelta(hours=n) for n in range(3)],
    ),
    "interval": (
        T.DayTimeIntervalType(),
        pa.duration("us"),
        [datetime.timedelta(microseconds=-1), datetime.timedelta(0), datetime.timedelta(days=400)],
    ),
}


def typed_frame(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    """A column of each type; the same in memory."""
    columns = [list(values) for _, _, values in SPARK_TYPES.values()]
    schema = T.StructType([T.StructField(name, type_) for name, (type_, _, _) in SPARK_TYPES.items()])
    arrays = [pa.array(values, arrow) for _, arrow, values in SPARK_TYPES.values()]
    return spark.createDataFrame(list(zip(*columns, strict=True)), schema), pa.table(
        arrays, list(SPARK_TYPES)
    )


@pytest.mark.parametrize("names", [list(SPARK_TYPES)[::2], list(SPARK_TYPES)[1::2]], ids=["even", "odd"])
def test_types_come_out_as_they_went_in(spark: SparkSession, names: list[str]) -> None:
    """Half of the types at once: an order of as many variables as there are types is long looked for."""
    frame, table = typed_frame(spark)
    second = frame.where("short >= 0").select(names)
    frame, table = frame.select(names), table.select(names)
    columns = ", ".join(names)
    rule = f"h({columns}) <- r({columns}), s({columns})."
    found = join(rule, {"r": frame, "s": second}, partitions=3)
    expected = in_memory(rule, {"r": table, "s": table.slice(1)})
    same_rows(found, expected)
    assert [field.dataType for field in found.schema] == [SPARK_TYPES[name][0] for name in names]
    assert [field.type for field in expected.schema] == [SPARK_TYPES[name][1] for name in names]


def test_varchar_and_char_meet_strings(spark: SparkSession) -> None:
    """They hold the same values; what comes out is ``string``.  Char is padded: that is its value."""
    spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    try:
        texts = "CAST('ab' AS varchar(4)) AS v, CAST('ab' AS char(3)) AS c"
        frames = {
            "t": spark.sql(f"SELECT {texts}"),
            "s": spark.createDataFrame([("ab",), ("ab ",)], "s string"),
        }
        assert [type(field.dataType) for field in frames["t"].schema] == [T.VarcharType, T.CharType]
        found = join("h(v, c) <- t(v, c), s(v), s(c).", frames, shares={"v": 2}, partitions=2)
        assert [tuple(row) for row in found.collect()] == [("ab", "ab ")]
        assert [field.dataType for field in found.schema] == [T.StringType()] * 2
    finally:
        spark.conf.unset("spark.sql.preserveCharVarcharTypeInfo")


def test_computed_types(spark: SparkSession) -> None:
    """Aggregates, arithmetic, unions of columns of different widths: the types that they have in memory."""
    frame, table = typed_frame(spark)
    wild = dict.fromkeys(SPARK_TYPES, "_")

    def r(**variables: str) -> str:
        return f"r({', '.join((wild | variables).values())})"

    rule = f"""
        h(b, count(), sum(s), sum(d), sum(f), sum(i), avg(d), min(t), max(n), concat(v)) <-
            {r(boolean="b", short="s", decimal="d", float="f", interval="i")},
            {r(boolean="b", short="s", timestamp="t", timestamp_ntz="n", string="v")}.
    """
    found = join(rule, {"r": frame}, shares={"s": 2}, partitions=2)
    expected = in_memory(rule, {"r": table})
    same_rows(found, expected)
    assert found.toArrow().schema.types == expected.schema.types
    union = f"h(x) <- {r(byte='x')}. h(x) <- {r(long='x')}. h(y) <- {r(byte='x')}, y = x * 2."
    found = join(union, {"r": frame}, shares=ONE_CELL, partitions=2)
    same_rows(found, in_memory(union, {"r": table}))
    assert found.schema["x"].dataType == T.LongType()


# -- laziness ----------------------------------------------------------------------


def test_nothing_runs_before_an_action(spark: SparkSession) -> None:
    @F.udf(T.LongType())
    def failing(_: int) -> int:
        raise RuntimeError("somebody looked")

    frame = spark.createDataFrame(edges(5, 3)).select(failing("src").alias("src"), "dst")
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup()
    found = join(TRIANGLES, {"e": frame}, partitions=2)
    assert found.columns == ["a", "b", "c"]
    assert tracker.getJobIdsForGroup() == before
    with pytest.raises(PythonException, match="somebody looked"):
        found.collect()


# -- errors at once -------------------------------------------------------------------

Frames = Callable[[SparkSession], dict[str, Any]]


def e_frame(spark: SparkSession) -> dict[str, Any]:
    return {"edge": spark.createDataFrame([], "a long, b string")}


AT_ONCE: dict[str, tuple[str, Frames, dict[str, Any], type[Exception], str]] = {
    "unknown relation": ("h(a) <- edges(a, _).", e_frame, {}, errors.UnknownRelationError, "mean 'edge'"),
    "too few columns": ("h(a) <- edge(a).", e_frame, {}, errors.ArityError, r"2 columns \(a, b\)"),
    "types": ("h(a) <- edge(a, a).", e_frame, {}, errors.TypeClashError, "'a'"),
    "syntax": ("h(a) <- ", e_frame, {}, errors.RuleSyntaxError, "expected"),
    "which head": ("h(a), k(a) <- edge(a, _).", e_frame, {}, errors.RuleError, "head="),
    "no frame": (
        "h(a) <- edge(a).",
        lambda _: {"edge": [(1, 2)]},
        {},
        errors.SourceError,
        "relation 'edge' is a list, not a Spark DataFrame",
    ),
    "no relations": ("h(a) <- edge(a).", lambda _: {}, {}, errors.SourceError, "at least one"),
    "no names": ("h(a) <- edge(a).", lambda _: [1], {}, errors.SourceError, "by name"),  # type: ignore[arg-type,return-value]
    "stream": (
        "h(a) <- edge(a, _).",
        lambda spark: {"edge": spark.readStream.format("rate").load()},
        {},
        errors.SourceError,
        "'edge' is a streaming DataFrame",
    ),
    "nested": (
        "h(a) <- edge(a).",
        lambda spark: {"edge": spark.createDataFrame([], "a map<int, int>")},
        {},
        errors.UnsupportedTypeError,
        "relation 'edge', column 'a': values of type map<int,int> can't be joined",
    ),
    "no type": (
        "h(a) <- edge(a).",
        lambda spark: {"edge": spark.sql("SELECT null AS a")},
        {},
        errors.UnsupportedTypeError,
        "type void",
    ),
    "same name": (
        "h(a) <- edge(a, _).",
        lambda spark: {"edge": spark.createDataFrame([], "a int, b int").toDF("a", "a")},
        {},
        errors.SourceError,
        "two columns called 'a'",
    ),
    "no columns": (
        "h(a) <- edge(a).",
        lambda spark: {"edge": spark.range(3).select()},
        {},
        errors.SourceError,
        "'edge' has no columns",
    ),
    "wide decimals": (
        "h(x) <- r(a), x = a * a * a.",
        lambda spark: {"r": spark.createDataFrame([], "a decimal(38, 18)")},
        {},
        errors.LftjError,
        "digits",
    ),
    **{
        f"partitions {value!r}": (
            "h(a) <- edge(a, _).",
            e_frame,
            {"partitions": value},
            errors.LimitError,
            f"partitions is {value!r}",
        )
        for value in (0, -1, True, 2.5, "4", 10**9)
    },
    **{
        f"shares {value!r}": ("h(a) <- edge(a, _).", e_frame, {"shares": value}, kind, text)
        for value, kind, text in (
            ({"b": 2}, errors.OrderError, "names 'b', by which nothing can be cut.* can: a"),
            ({"a": 0}, errors.OrderError, "gives 'a' 0 parts"),
            ({"a": 2.0}, errors.OrderError, r"gives 'a' 2\.0 parts"),
            ({"a": 10**7}, errors.LimitError, "10,000,000 cells"),
            (["a"], errors.OrderError, "by variable"),
        )
    },
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_errors_at_once(spark: SparkSession, case: str) -> None:
    rule, frames, arguments, kind, text = AT_ONCE[case]
    with pytest.raises(kind, match=text):
        join(rule, frames(spark), **arguments)


# -- errors in the data -----------------------------------------------------------------

IN_TASKS: dict[str, tuple[str, list[tuple[Any, ...]], str, dict[str, int], str]] = {
    "NaN key": (
        "h(a) <- e(a, x), e(_, x).",
        [(1, math.nan)],
        "a long, x double",
        {"x": 2},
        r"NanError: relation 'e.*', column 'x': NaN",
    ),
    "conflict in a relation": (
        "h(a, v) <- e[a] = v.",
        [(1, 2.0), (1, 3.0)],
        "a long, x double",
        {"a": 3},
        "FunctionalConflictError: relation 'e.*there are two values",
    ),
    "conflict of two cells": (
        "h[k] = v <- e(a, v), k = a * 0.",
        [(1, 2.0), (2, 3.0), (4, 5.0), (5, 6.0)],
        "a long, x double",
        {"a": 3},
        r"FunctionalConflictError: h\[0\S*\] has two values",
    ),
    "sum beyond its type": (
        "h[] = sum(a) <- e(a, _).",
        [(2**62, 1.0), (2**62, 2.0), (2**62 + 1, 1.0)],
        "a long, x double",
        {"a": 2},
        r"RangeError: h\[\] = sum\(a\) is 13835058055282163713, which does not",
    ),
    "division by zero": (
        "h(a, y) <- e(a, x), y = x / a.",
        [(0, 1.0)],
        "a long, x double",
        {},
        "EvaluationError: .*division by zero",
    ),
}


@pytest.mark.parametrize("case", IN_TASKS)
def test_errors_in_tasks(spark: SparkSession, case: str) -> None:
    rule, rows, schema, shares, text = IN_TASKS[case]
    found = join(rule, {"e": spark.createDataFrame(rows, schema)}, shares=shares, partitions=2)
    with pytest.raises(PythonException, match=f"(?s){text}"):
        found.collect()
