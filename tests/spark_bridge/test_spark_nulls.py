"""oracle: NULLs that are kept, against Spark SQL: once, maintained, over a restart; NOT NULL by schemas.

What cells and stages do with NULL is tested without Spark, on random rules (``test_cells_oracle.py``,
``test_stages_oracle.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from support.by_cells import join
from support.followed_join import PLACES, placed

SCHEMAS = {"r": "a bigint, b bigint, c string", "s": "a bigint, v decimal(9,2)", "t": "c string, d date"}

CASES = {
    "h(a, b, v) <- r(a, b, _), s(<=> a, v).": "SELECT r.a, b, v FROM r JOIN s ON r.a <=> s.a",
    "h(b, v) <- r(a, b, _), s(a, v).": "SELECT b, v FROM r JOIN s ON r.a = s.a",
    "h(c, d, x) <- t(c, d), r(_, x, <=> c).": "SELECT t.c, d, b FROM t JOIN r ON r.c <=> t.c",
    "h(a, b) <- r(a, b, _), !s(<=> a, _).": (
        "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a <=> r.a)"
    ),
    "h(a, b) <- r(a, b, c), !r(<=> b, <=> a, _), !t(<=> c, _).": (
        "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM r q WHERE q.a <=> r.b AND q.b <=> r.a)"
        " AND NOT EXISTS (SELECT 1 FROM t WHERE t.c <=> r.c)"
    ),
    "h(a, b) <- r(a, b, c), (a is null ; c is null ; !r(_, a, c)).": (
        "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM r q WHERE q.b = r.a AND q.c = r.c)"
    ),
    "h(a, c) <- r(a, b, c), b is null.": "SELECT a, c FROM r WHERE b IS NULL",
    "h(b, v) <- r(a, b, _), s(a, v). h(b, v) <- r(a, b, _), !s(<=> a, _), v = null.": (
        "SELECT b, v FROM r JOIN s ON r.a = s.a UNION"
        " SELECT b, NULL FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a <=> r.a)"
    ),
    "h(a, n: count(), t: sum(b), m: max(c)) <- r(a, b, c).": (
        "SELECT a, count(*), sum(b), max(c) FROM r GROUP BY a"
    ),
    "h(c, n: count(if b > 2), t: sum(b if b > 2), m: min(b if b > 2)) <- r(_, b, c).": (
        "SELECT c, count(*) FILTER (WHERE b > 2), sum(b) FILTER (WHERE b > 2), min(b) FILTER (WHERE b > 2)"
        " FROM r GROUP BY c"
    ),
    "h[a, c] = count() <- r(a, b, c), s(<=> b, _).": (
        "SELECT r.a, c, count(*) FROM r JOIN s ON r.b <=> s.a GROUP BY r.a, c"
    ),
    "h(b, w) <- r(_, b, c), w = if(b > 2, c).": "SELECT b, CASE WHEN b > 2 THEN c END FROM r",
    "g(c, w: max(b if b > 3)) <- r(_, b, c). h(w, n: count()) <- g(c, w).": (
        "SELECT w, count(*) FROM (SELECT c, max(b) FILTER (WHERE b > 3) AS w FROM r GROUP BY c) GROUP BY w"
    ),
}


def some_rows(seed: int, n_rows: int = 30) -> dict[str, list[tuple[Any, ...]]]:
    """Few values, a quarter of them NULL; each row once."""
    random = Random(seed)
    texts, days = ("x", "y", "", None), ("2026-01-31", "1970-01-01", None)

    def number() -> int | None:
        return random.choice((None, 0, 1, 2, 3, 4))

    drawn: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}
    for _ in range(n_rows):
        drawn["r"].append((number(), number(), random.choice(texts)))
        drawn["s"].append((random.choice((None, 1, 2)), random.choice((None, "1.50", "2.00"))))
        drawn["t"].append((random.choice(texts[1:]), random.choice(days)))
    return {name: list(dict.fromkeys(rows)) for name, rows in drawn.items()}


def frame_of(spark: SparkSession, name: str, rows: list[tuple[Any, ...]], more: str = "") -> DataFrame:
    """Rows as text, cast to the types of the relation.

    Of a table Spark knows that it is small, which saves a sample; relations that are kept are sampled anyway.
    """
    columns = [column.split() for column in (SCHEMAS[name] + more).split(", ")]
    texts = [
        [None if row[place] is None else str(row[place]) for row in rows] for place in range(len(columns))
    ]
    arrays = [pa.array(values, pa.string()) for values in texts]
    frame = spark.createDataFrame(pa.table(arrays, [column for column, _ in columns]))
    return frame.selectExpr(*(f"CAST({column} AS {type_}) AS {column}" for column, type_ in columns))


def frames_of(spark: SparkSession, rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, DataFrame]:
    frames = {name: frame_of(spark, name, of_it) for name, of_it in rows.items()}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return frames


def names_in(rule: str) -> list[str]:
    """The relations that it reads."""
    return [name for name in SCHEMAS if re.search(rf"\b{name}\(", rule)]


def found(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, map(tuple, frame.collect())))


def wanted(spark: SparkSession, rule: str) -> Counter[str]:
    """Each row once."""
    return Counter(set(found(spark.sql(CASES[rule]))))


@pytest.mark.in_turns
@pytest.mark.parametrize("rule", CASES)
def test_oracle_nulls_once(spark: SparkSession, rule: str) -> None:
    rows = some_rows(len(rule))
    read = frames_of(spark, {name: rows[name] for name in names_in(rule)})
    expected = wanted(spark, rule)
    assert expected and any("None" in row for row in expected)
    assert found(join(rule, read, head="h", partitions=2, nulls="keep")) == expected


MAINTAINED = [rule for number, rule in enumerate(CASES) if number in (4, 7, 12)]


class Step(NamedTuple):
    """A batch of signed rows, and the head behind it."""

    changes: dict[str, list[tuple[Any, ...]]]
    head: Counter[str]


@cache
def history(spark: SparkSession, rule: str) -> list[Step]:
    """What the relations begin with, and three batches; the same for each place of a state."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}
    read, random = names_in(rule), Random(5)
    steps = []
    for came in (some_rows(3, 10), *(some_rows(10 + number, 6) for number in range(3))):
        changes = {}
        for name, held in rows.items():
            gone = random.sample(held, len(held) // 4)
            new = [row for row in came[name] if row not in held]
            changes[name] = [(*row, 1) for row in new] + [(*row, -1) for row in gone]
            rows[name] = [row for row in held if row not in gone] + new
        frames_of(spark, {name: rows[name] for name in read})
        steps.append(Step({name: changes[name] for name in read}, wanted(spark, rule)))
    assert len({frozenset(step.head.items()) for step in steps}) > 2, "batches that change the head"
    return steps


@pytest.mark.in_turns
@PLACES
@pytest.mark.parametrize("rule", MAINTAINED)
def test_oracle_nulls_maintained(spark: SparkSession, tmp_path: Path, rule: str, where: str) -> None:
    """State, changes, a restart and other grids."""
    first, *batches = history(spark, rule)
    frames = {name: frame_of(spark, name, [row[:-1] for row in rows]) for name, rows in first.changes.items()}
    options: dict[str, Any] = {"state": tmp_path / "state", "head": "h", "nulls": "keep"}
    joined = MaintainedJoin(rule, frames, **options, **placed(where, partitions=2))
    before = first.head
    assert found(joined.table()) == before
    for number, (changes, after) in enumerate(batches):
        told = joined.apply(
            {name: frame_of(spark, name, rows, ", weight bigint") for name, rows in changes.items()}
        )
        net: Counter[str] = Counter()
        for row in told.collect():
            net[repr(tuple(row)[:-1])] += row[-1]
        assert found(joined.table()) == after
        assert {row: n for row, n in net.items() if n} == {
            row: after[row] - before[row] for row in {*after, *before} if after[row] != before[row]
        }
        before = after
        if number == 0:
            joined.close()
            joined = MaintainedJoin(rule, frames, **options, where=where)
        elif number == 1 and where == "executors":
            joined.repartition(3)
            assert found(joined.table()) == after


@pytest.mark.in_turns
def test_a_filtered_aggregate_of_nothing_is_null_whatever_the_inputs_hold(spark: SparkSession) -> None:
    """``nulls=`` is about the inputs; heads may hold NULL."""
    frame = spark.createDataFrame(pa.table({"a": [1, 1, 2], "b": [2, 3, 9]}))
    rule = "h(a, t: sum(b if b < 5), m: max(b if b < 3)) <- e(a, b)."
    for nulls in ("refuse", "drop", "keep"):
        assert found(join(rule, {"e": frame}, nulls=nulls)) == Counter(["(1, 5, 2)", "(2, None, None)"])
    rule = "h(a, v) <- e(a, b), v = if(b < 5, b)."
    assert found(join(rule, {"e": frame})) == Counter(["(1, 2)", "(1, 3)", "(2, None)"])
    rule = "g(a, v) <- e(a, b), v = if(b < 5, b). h(v, n: count()) <- g(a, v)."
    for nulls in ("refuse", "drop"):
        assert found(join(rule, {"e": frame}, head="h", nulls=nulls)) == Counter(
            ["(2, 1)", "(3, 1)", "(None, 1)"]
        )


@PLACES
def test_what_spark_declares_not_null(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """A change with NULL there is refused, and leaves nothing; a state is of the columns as declared."""
    frame = spark.sql("SELECT * FROM VALUES (1, 2), (2, NULL) t(a, b)")
    assert [field.nullable for field in frame.schema] == [False, True]
    rule = "h(a, b) <- r(a, b)."
    place: dict[str, Any] = {"state": tmp_path, "where": where}
    joined = MaintainedJoin(rule, {"r": frame}, nulls="keep", **{**place, **placed(where, partitions=2)})
    changes = spark.createDataFrame([(3, None, 1), (None, 3, 1)], "a int, b int, weight int")
    with pytest.raises(
        errors.NullError, match="'r', column 'a': NULL, and it holds none: its schema has it NOT"
    ):
        joined.apply({"r": changes})
    assert found(joined.table()) == Counter(["(1, 2)", "(2, None)"])
    assert joined.apply({"r": changes.where("a IS NOT NULL")}).count() == 1
    assert MaintainedJoin(rule, {"r": frame}, nulls="keep", **place).version == 2
    other = spark.createDataFrame([], "a int, b int")
    with pytest.raises(errors.StateError, match="int32 not null"):
        MaintainedJoin(rule, {"r": other}, nulls="keep", **place)
    with pytest.raises(errors.StateError, match="nulls='keep', not 'refuse'"):
        MaintainedJoin(rule, {"r": other}, **place)


def test_errors_of_the_data_say_what_to_do(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None)], "a long, b long")
    with pytest.raises(PythonException, match=r"'e', column 'b': NULL, and it holds none: .*nulls=\"keep\""):
        join("h(a, b) <- e(a, b).", {"e": frame}).collect()
