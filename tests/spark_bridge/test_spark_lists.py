"""Lists in Spark: arrays that are joined, aggregates that make them, once and kept, as in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

import lftj
from lftj import errors
from spark_bridge import MaintainedJoin
from support.by_cells import join
from support.row_frames import frame_of_rows

ARROW = pa.schema([("a", pa.int64()), ("l", pa.list_(pa.int32()))])
SPARK = "a long, l array<int>"
LISTS: list[Any] = [[], [1], [1, 2], [1, None], [None], [2, 2, 1]]

RULES = (
    "same(a, b) <- r(a, l), r(b, l).",
    "n(a, c) <- r(a, l), c = len(l), c > 0.",
    "often[l] = count() <- r(_, l).",
    "h[c] = list(a) <- r(a, l), c = len(l).",
    "h(c, list(l), count(), list(distinct x)) <- r(a, l), c = a % 3, x = len(l).",
    "h[c] = list(a) <- r(a, l), c = len(l). pair(c, d) <- h[c] = l, h[d] = m, l < m.",
    "has(x) <- r(_, l), x in l.",
    "h(x, count(), sum(b)) <- r(a, l), r(b, l), x in l, a < b.",
)


def in_memory(rule: str, rows: list[tuple[int, Any]]) -> list[str]:
    database = lftj.Database()
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(ARROW)]
    database.load("r", pa.Table.from_arrays(columns, schema=ARROW))
    return sorted(map(repr, database.query(rule, threads=1).to_pylist()))


def shown(found: DataFrame) -> list[str]:
    return sorted(map(repr, found.toArrow().to_pylist()))


@pytest.mark.in_turns
@pytest.mark.parametrize("rule", RULES)
def test_joins_are_as_in_memory(spark: SparkSession, rule: str) -> None:
    random = Random(rule)
    rows = list({a: (a, random.choice(LISTS)) for a in (random.randrange(40) for _ in range(30))}.values())
    frame = frame_of_rows(spark, rows, SPARK)
    for options in ({}, {"shares": {}}):
        assert shown(join(rule, {"r": frame}, partitions=2, **options)) == in_memory(rule, rows)


@pytest.mark.in_turns
def test_they_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(4)
    for place, rule in enumerate((RULES[0], RULES[4], RULES[6], RULES[7])):
        rows = [(a, random.choice(LISTS)) for a in range(12)]
        frame = frame_of_rows(spark, rows, SPARK)
        kept = MaintainedJoin(rule, {"r": frame}, state=tmp_path / str(place), partitions=2)
        for step in range(2):
            gone, new = (
                random.sample(rows, 3),
                [(100 + 10 * step + n, random.choice(LISTS)) for n in range(3)],
            )
            before = in_memory(rule, rows)
            rows = [row for row in rows if row not in gone] + new
            now = in_memory(rule, rows)
            signed = [*((*row, -1) for row in gone), *((*row, 1) for row in new)]
            given = {"r": frame_of_rows(spark, signed, f"{SPARK}, weight int")}
            changes = kept.apply(given).toArrow().to_pylist()
            weights = [row.pop("weight") for row in changes]
            for weight, their, other in ((1, now, before), (-1, before, now)):
                mine = [repr(row) for row, its in zip(changes, weights, strict=True) if its == weight]
                assert sorted(mine) == sorted(set(their) - set(other))
            assert shown(kept.table()) == now


def test_an_order_is_refused_and_structs_are(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, [1])], SPARK)
    with pytest.raises(errors.RuleError, match="reads rows beside each, which cells don't have"):
        join("h[c] = list(a, by: a desc) <- r(a, l), c = len(l).", {"r": frame})
    frame = spark.createDataFrame([(1, [(1,)])], "a long, l array<struct<x: int>>")
    with pytest.raises(errors.UnsupportedTypeError, match="column 'l': values of type array<struct"):
        join("h(a) <- r(a, l), r(_, l).", {"r": frame})
