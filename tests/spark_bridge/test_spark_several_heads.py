"""oracle: several heads with one state, in both places, beside DuckDB and sets of Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from lftj.errors import RuleError, SourceError, SqlError, StateError, UnknownRelationError, UnusableNameError
from spark_bridge import MaintainedJoin
from spark_bridge.data_source.kept_heads import kept_head
from spark_bridge.front_ends.select_rules import each_translated, together, workspace_rules
from support.followed_join import PLACES, placed
from support.row_frames import frame_of_rows
from support.rows import rows_of

Edge = tuple[int, int]
RULES = """
    two(a, c) <- edge(a, b), edge(b, c).
    closed(a, c) <- two(a, c), edge(c, a).
    degree[a] = count() <- edge(a, _).
"""
HEADS = ["degree", "closed", "two"]
SCHEMA = "src bigint, dst bigint"
SELECTS = {
    "best": "SELECT src, dst, row_number() OVER (PARTITION BY src ORDER BY dst DESC) AS place FROM edge",
    "reach": "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION"
    " SELECT r.a, edge.dst FROM r JOIN edge ON r.b = edge.src) SELECT a, count(*) AS n FROM r GROUP BY a",
    "total": "SELECT count(*) AS n, max(dst) AS most FROM edge",
}
KEPT = {
    "paths": "SELECT e.src, count(*) AS n FROM edge e JOIN edge f ON e.dst = f.src GROUP BY e.src",
    "ends": "SELECT src, dst FROM edge WHERE dst NOT IN (SELECT src FROM edge)",
}


def heads_of(edges: set[Edge]) -> dict[str, set[tuple[int, ...]]]:
    two = {(a, d) for a, b in edges for c, d in edges if b == c}
    closed = {(a, c) for a, c in two if (c, a) in edges}
    return {"two": two, "closed": closed, "degree": set(Counter(a for a, _ in edges).items())}


def rows_in(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def frame_of(spark: SparkSession, edges: set[Edge]) -> dict[str, DataFrame]:
    return {"edge": frame_of_rows(spark, sorted(edges), SCHEMA)}


def batch(spark: SparkSession, come: set[Edge], gone: set[Edge]) -> dict[str, DataFrame]:
    rows = [(*edge, 1) for edge in sorted(come)] + [(*edge, -1) for edge in sorted(gone)]
    return {"edge": frame_of_rows(spark, rows, SCHEMA + ", weight int")}


def step(edges: set[Edge], random: Random) -> tuple[set[Edge], set[Edge], set[Edge]]:
    """The edges after a batch, those that come with it, and those that go."""
    come = {(random.randrange(9), random.randrange(9)) for _ in range(6)} - edges
    gone = set(random.sample(sorted(edges), 4))
    return (edges | come) - gone, come, gone


def some_edges(random: Random) -> set[Edge]:
    return {(random.randrange(9), random.randrange(9)) for _ in range(40)}


@pytest.mark.in_turns
@PLACES
def test_heads_have_one_state_and_one_version(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """Changes, tables, Delta tables, and what is read beside, of each head; a head may be read by another."""
    random = Random(7)
    edges = some_edges(random)
    tables = {name: str(tmp_path / name) for name in ("closed", "two")}

    def opened() -> MaintainedJoin:
        frames, state = frame_of(spark, edges), tmp_path / "state"
        return MaintainedJoin(
            RULES, frames, head=HEADS, state=state, delta=tables, **placed(where, shares={})
        )

    joined = opened()
    assert joined.heads == tuple(HEADS)
    for number in range(3):
        was, (edges, come, gone) = heads_of(edges), step(edges, random)
        told = joined.apply(batch(spark, come, gone), batch_id=number)
        now = heads_of(edges)
        for name in HEADS:
            expected = {(*row, -1) for row in was[name] - now[name]}
            expected |= {(*row, 1) for row in now[name] - was[name]}
            assert rows_in(joined.changes(name)) == Counter(expected)
            if name == HEADS[0]:
                assert rows_in(told) == rows_in(joined.changes()) == Counter(expected)
            if name in tables:
                assert Counter(rows_of(DeltaTable(tables[name]).to_pyarrow_table())) == Counter(now[name])
        if number == 1:
            joined.close()
            joined = opened()
    assert {name: set(rows_in(joined.table(name))) for name in HEADS} == heads_of(edges)
    kept = kept_head(str(tmp_path / "state"), "closed")
    found = [row for part in kept.whole() for rows in kept.rows(part) for row in rows_of(pa.table(rows))]
    assert set(found) == heads_of(edges)["closed"]
    parts = kept.changes(joined.version - 1, joined.version)
    told_beside = [r for part in parts for rows in kept.changed_rows(part) for r in rows_of(pa.table(rows))]
    assert Counter(told_beside) == rows_in(joined.changes("closed"))
    joined.check()
    with pytest.raises(UnknownRelationError, match="'one' is not kept here; results are degree, closed, two"):
        joined.table("one")
    with pytest.raises(SourceError, match="its heads are degree, closed, two, not 'one'"):
        kept_head(str(tmp_path / "state"), "one")
    joined.close()
    with pytest.raises(StateError, match="was made for others"):
        MaintainedJoin(
            RULES, frame_of(spark, edges), head=HEADS[:2], state=tmp_path / "state", **placed(where)
        )


@pytest.mark.in_turns
@pytest.mark.parametrize(("where", "selects"), [("driver", SELECTS | KEPT), ("executors", KEPT)])
def test_oracle_selects_over_one_copy_of_the_relations(
    spark: SparkSession, tmp_path: Path, where: str, selects: dict[str, str]
) -> None:
    random = Random(11)
    edges = some_edges(random)
    joined = MaintainedJoin.from_sql(
        selects,
        frame_of(spark, edges),
        state=tmp_path / "state",
        key={"edge": ["src", "dst"]},
        **placed(where, shares={}),
    )
    for _ in range(2):
        edges, come, gone = step(edges, random)
        joined.apply(batch(spark, come, gone))
        src, dst = zip(*sorted(edges), strict=True)
        with duckdb.connect() as connection:
            connection.register("edge", pa.table({"src": src, "dst": dst}))
            for name, sql in selects.items():
                assert rows_in(joined.table(name)) == Counter(connection.execute(sql).fetchall()), name
    joined.close()


def test_heads_that_move_to_the_executors_are_told_again(spark: SparkSession, tmp_path: Path) -> None:
    edges = {(1, 2), (2, 3), (3, 1)}
    state = tmp_path / "state"
    options: dict[str, Any] = {"head": HEADS, "state": state, "where": "auto", "shares": {}}
    joined = MaintainedJoin(RULES, frame_of(spark, edges), driver_bytes=10**9, **options)
    joined.apply(batch(spark, {(2, 1)}, set()), batch_id=1)
    changed = {name: rows_in(joined.changes(name)) for name in HEADS}
    joined.close()
    moved = MaintainedJoin(RULES, frame_of(spark, edges), driver_bytes=1, **options)
    assert "executors" in moved.explain()
    assert {name: rows_in(moved.changes(name, 1)) for name in HEADS} == changed
    assert {name: set(rows_in(moved.table(name))) for name in HEADS} == heads_of(edges | {(2, 1)})


def test_places_of_rules_are_those_of_their_select(spark: SparkSession) -> None:
    found = each_translated(KEPT | SELECTS, frame_of(spark, {(1, 2)}), workspace_rules)
    whole = together(found)
    alone = [(of.sql, place) for of in found for place in of.places]
    assert len(alone) == len(whole.places)
    for (sql, place), there in zip(alone, whole.places, strict=True):
        assert (place is None) == (there is None)
        assert place is None or there is None or sql[slice(*place)] == whole.sql[slice(*there)]


def test_what_several_heads_can_not_be(spark: SparkSession, tmp_path: Path) -> None:
    frames, state = frame_of(spark, {(1, 2)}), tmp_path / "state"

    def refused(error: type[Exception], match: str, **options: Any) -> None:
        with pytest.raises(error, match=match):
            MaintainedJoin(RULES, frames, state=state, **options)

    refused(SourceError, "a list of different ones", head=["two", "two"])
    refused(UnknownRelationError, "no rule has the head 'three'", head=["two", "three"])
    refused(SourceError, "give a path by head", head=HEADS, delta=tmp_path / "table")
    refused(SourceError, "delta= names 'one'", head=HEADS, delta={"one": tmp_path / "table"})
    refused(SourceError, "two heads one path", head=HEADS, delta=dict.fromkeys(HEADS, "table"))
    with pytest.raises(UnusableNameError, match="cannot name a head"):
        MaintainedJoin.from_sql({"a b": SELECTS["total"]}, frames, state=state)
    with pytest.raises(SourceError, match="'edge' is a relation already"):
        MaintainedJoin.from_sql({"edge": SELECTS["total"]}, frames, state=state)
    with pytest.raises(SqlError, match="Could not convert string 'x'"):
        MaintainedJoin.from_sql(
            {**KEPT, "wrong": "SELECT src FROM edge WHERE src + 'x' > 1"}, frames, state=state
        )
    seen = spark.sql("SELECT 1L AS n, TIMESTAMP'2026-03-02 12:00' AS t")
    rules = """
        sold[w] = sum(n) <- trade(n, t), w = tumble(t, 2m). final sold at w + 2m.
        most(n) <- trade(n, _).
    """
    with pytest.raises(
        RuleError, match="'sold_final' has rows that close, and on executors it is kept alone"
    ):
        MaintainedJoin(rules, {"trade": seen}, head=["most", "sold_final"], state=state, time={"trade": "t"})
    assert not state.exists()
