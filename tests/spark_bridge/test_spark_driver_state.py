"""oracle: states in the driver: what a workspace keeps and executors do not, against DuckDB and Python.

What both places do alike is tested with both (``support.followed_join.PLACES``), and drivers are killed in
``test_spark_failures.py``.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

import lftj
from lftj import errors
from maintenance import Workspace
from spark_bridge import MaintainedJoin
from spark_bridge.places.told_changes import ToldChanges
from spark_bridge.stages.batch_stats import DriverStats
from spark_bridge.stages.state_versions import KEPT_BATCHES
from support.followed_join import edges, files_of
from support.openmetrics import openmetrics_samples
from support.row_frames import frame_of_rows

Edge = tuple[int, int]
SELECTS = [
    "SELECT src, dst, row_number() OVER (PARTITION BY src ORDER BY dst) AS n FROM e",
    "SELECT src, sum(dst) OVER (ORDER BY src, dst ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM e",
    "SELECT src, dst FROM e ORDER BY dst DESC, src LIMIT 4",
    "SELECT count(*) AS n, max(dst) AS m FROM e WHERE src > 2",
    "SELECT dst FROM e",
    "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src)"
    " SELECT a, count(*) AS n FROM r GROUP BY a",
    "SELECT e.src, string_agg(CAST(f.dst AS VARCHAR), ',' ORDER BY f.dst) AS s"
    " FROM e LEFT JOIN e f ON e.dst = f.src GROUP BY e.src",
]
REACH = "reach(a, b) <- e(a, b). reach(a, c) <- reach(a, b), e(b, c)."
DRIVER: dict[str, Any] = {"where": "driver"}


def told(spark: SparkSession, changes: Sequence[tuple[Edge, int]]) -> dict[str, DataFrame]:
    rows = [(*edge, weight) for edge, weight in changes]
    return {"e": frame_of_rows(spark, rows, "src bigint, dst bigint, weight bigint")}


def rows_in(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def frame_of(spark: SparkSession, there: set[Edge]) -> dict[str, DataFrame]:
    return {"e": frame_of_rows(spark, sorted(there), "src bigint, dst bigint")}


def random_batch(random: Random, there: set[Edge]) -> list[tuple[Edge, int]]:
    new = {(random.randrange(7), random.randrange(7)) for _ in range(4)} - there
    gone = random.sample(sorted(there), min(3, len(there)))
    return [*((edge, 1) for edge in sorted(new)), *((edge, -1) for edge in gone)]


def first_edges() -> set[Edge]:
    table = edges(14, 7)
    return {(row["src"], row["dst"]) for row in table.to_pylist()}


@pytest.mark.in_turns
@pytest.mark.parametrize("number", range(len(SELECTS)))
def test_oracle_selects_of_every_kind_follow(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """Equal rows count: tables have each as often as DuckDB, and changes say by how many that differs."""
    sql, random, there = SELECTS[number], Random(number), first_edges()
    frames = frame_of(spark, there)

    def expected() -> Counter[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE e (src BIGINT, dst BIGINT)")
            if there:
                connection.executemany("INSERT INTO e VALUES (?, ?)", sorted(there))
            return Counter(connection.execute(sql).fetchall())

    joined = MaintainedJoin.from_sql(sql, frames, state=tmp_path, **DRIVER)
    assert rows_in(joined.table()) == expected()
    for n in range(4):
        before, batch = expected(), random_batch(random, there)
        if n == 3:
            batch = [(edge, -1) for edge in sorted(there)]
        there = (there | {e for e, w in batch if w > 0}) - {e for e, w in batch if w < 0}
        found = joined.apply(told(spark, batch), batch_id=n).collect()
        now = expected()
        assert {tuple(row[:-1]): row[-1] for row in found} == {
            row: now[row] - before[row] for row in now.keys() | before.keys() if now[row] != before[row]
        }
        if n == 1:
            joined.close()
            joined = MaintainedJoin.from_sql(sql, frames, state=tmp_path, **DRIVER)
        assert rows_in(joined.table()) == now
    assert (joined.version, joined.applied()) == (5, 3)


def test_oracle_recursion_and_a_function_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    def twice(values: pa.Array) -> pa.Array:
        return pa.compute.multiply(values, 2)

    lftj.function("twice_in_spark", twice, [pa.int64()], pa.int64())
    rule = REACH + " far(a, c) <- reach(a, b), c = twice_in_spark(b)."
    random, there = Random(5), first_edges()
    joined = MaintainedJoin(rule, frame_of(spark, there), state=tmp_path, **DRIVER)

    def expected() -> set[Edge]:
        reach = set(there)
        while more := {(a, d) for a, b in reach for c, d in there if b == c} - reach:
            reach |= more
        return {(a, 2 * b) for a, b in reach}

    for n in range(4):
        before, batch = expected(), random_batch(random, there)
        there = (there | {e for e, w in batch if w > 0}) - {e for e, w in batch if w < 0}
        found = rows_in(joined.apply(told(spark, batch)))
        changes = {(*row, 1) for row in expected() - before} | {(*row, -1) for row in before - expected()}
        assert found == Counter(changes)
        assert rows_in(joined.table()) == Counter(expected())
        assert isinstance(joined.stats, DriverStats) and joined.stats.changed == len(batch)
        told_of = openmetrics_samples(joined.openmetrics())
        assert told_of["lftj_state_version", ""] == n + 2 and told_of["lftj_applied_batch", ""] == n
        assert told_of["lftj_batch_changes", ""] == len(batch)
        assert told_of["lftj_batch_seconds", ""] >= told_of["lftj_batch_arrival_seconds", ""] > 0
        if n == 1:
            joined.close()


def test_what_batches_changed_is_told_again_by_whoever_opens_it(spark: SparkSession, tmp_path: Path) -> None:
    joined = MaintainedJoin(REACH, frame_of(spark, set()), state=tmp_path, **DRIVER)
    for n in range(KEPT_BATCHES + 2):
        assert rows_in(joined.apply(told(spark, [((n, 100), 1)]), batch_id=n)) == {(n, 100, 1): 1}
    assert len([name for name in files_of(tmp_path) if name.startswith("told/")]) == KEPT_BATCHES
    joined.close()
    for n in range(KEPT_BATCHES + 2):
        again = rows_in(joined.apply(told(spark, [((n, n), 1)]), batch_id=n))
        assert again == ({(n, 100, 1): 1} if n >= 2 else {})
    assert joined.version == KEPT_BATCHES + 3


def test_a_batch_whose_changes_cant_be_noted_is_not_applied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = MaintainedJoin(REACH, frame_of(spark, {(1, 2)}), state=tmp_path, **DRIVER)
    joined.apply(told(spark, [((2, 3), 1)]), batch_id=4)
    with monkeypatch.context() as patched:
        refusal = errors.StateError("no space")

        def refuse(*given: object) -> None:
            raise refusal

        patched.setattr(ToldChanges, "write", refuse)
        with pytest.raises(errors.StateError, match="no space"):
            joined.apply(told(spark, [((3, 4), 1)]), batch_id=5)
    assert (joined.version, joined.applied(), joined.table().count()) == (2, 4, 3)
    assert rows_in(joined.apply(told(spark, [((3, 4), 1)]), batch_id=5))[3, 4, 1] == 1
    assert rows_in(joined.apply(told(spark, []), batch_id=4)) == {(2, 3, 1): 1, (1, 3, 1): 1}


def test_what_a_state_in_the_driver_refuses(spark: SparkSession, tmp_path: Path) -> None:
    frames, one = frame_of(spark, {(1, 2)}), "h(a, b) <- e(a, b)."
    twice = {"key": {"e": ["src"]}, "frame": [(1, 2), (1, 3)]}
    for options, kind, message in (
        ({"where": "cluster"}, ValueError, "where is 'cluster'; it can be"),
        ({"partitions": 2}, errors.StateError, "partitions= is about partitions, and a state in the driver"),
        ({"policy": "anew"}, errors.StateError, "policy= is about partitions"),
        (
            {"state": "s3://bucket/state"},
            errors.StateError,
            "is a URI, and a state in the driver is a folder",
        ),
        ({"rule": "h(a) <- f(a)."}, errors.UnknownRelationError, "'f'"),
        (twice, errors.KeyConflictError, "two rows of key src=1"),
        ({"frame": [(1, None)]}, errors.NullError, "relation 'e', column 'dst': NULL"),
    ):
        asked = {"rule": one, "state": tmp_path / "none", "frame": None, **DRIVER, **options}
        rule, rows = asked.pop("rule"), asked.pop("frame")
        given = {"e": frame_of_rows(spark, rows, "src bigint, dst bigint")} if rows else frames
        with pytest.raises(kind, match=message):
            MaintainedJoin(rule, given, **asked)
        assert not (tmp_path / "none").exists(), options
    collated = frames["e"].selectExpr("src", "cast(dst as string) collate UNICODE_CI as dst")
    with pytest.raises(errors.UnsupportedTypeError, match="equal by the rules of their collation"):
        MaintainedJoin(one, {"e": collated}, state=tmp_path / "none", **DRIVER)

    with pytest.raises(errors.StateError, match="'answer' has equal rows, and commits to a Delta table"):
        equal = {"state": tmp_path / "none", "delta": tmp_path / "table", **DRIVER}
        MaintainedJoin.from_sql("SELECT dst FROM e", frames, **equal)

    joined = MaintainedJoin(one, frames, state=tmp_path / "driver", **DRIVER)
    with pytest.raises(errors.StateError, match="a state in the driver has no partitions"):
        joined.repartition(3)
    with pytest.raises(errors.StateError, match=r"was made for rule='h\(a, b\).*give another state path"):
        MaintainedJoin("h(b, a) <- e(a, b).", frames, state=tmp_path / "driver", **DRIVER)
    with pytest.raises(errors.StateError, match="was made for where='driver', not 'executors'"):
        MaintainedJoin(one, frames, state=tmp_path / "driver", partitions=1)
    MaintainedJoin(one, frames, state=tmp_path / "files", partitions=1)
    with pytest.raises(errors.StateError, match="was made for where='executors', not 'driver'"):
        MaintainedJoin(one, frames, state=tmp_path / "files", **DRIVER)
    joined.close()
    with (
        Workspace.open(tmp_path / "driver" / "workspace"),
        pytest.raises(errors.StateError, match="is in the driver of another process"),
    ):
        joined.apply(told(spark, [((5, 6), 1)]))
    assert "kept in the driver" in joined.explain()
    assert rows_in(joined.apply(told(spark, [((5, 6), 1)]))) == {(5, 6, 1): 1}


def test_a_folder_that_was_deleted_is_another_state(spark: SparkSession, tmp_path: Path) -> None:
    rule, frames = "h(a, b) <- e(a, b).", frame_of(spark, {(1, 2)})
    joined = MaintainedJoin(rule, frames, state=tmp_path / "s", **DRIVER)
    joined.apply(told(spark, [((5, 6), 1)]))
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "s" / "workspace-deleted").mkdir(parents=True)  # of a process that was stopped
    with pytest.raises(errors.StateError, match="the state is gone"):
        joined.apply(told(spark, [((5, 6), 1)]))
    again = MaintainedJoin(rule, frames, state=tmp_path / "s", **DRIVER)
    assert (again.version, joined.version) == (1, 1)
    assert not (tmp_path / "s" / "workspace-deleted").exists()
