"""differential: a maintained join that is planned again holds what it held, and follows what comes."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from spark_bridge.places import executor_state

RULE = "tri(a, b, c) <- r(a, b), s(b, c), t(a, c)."
SCHEMA = "x bigint, y bigint"
Pairs = list[tuple[int, int]]


def frame(spark: SparkSession, rows: Pairs) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def inserted(spark: SparkSession, rows: Pairs, weight: int = 1) -> DataFrame:
    return spark.createDataFrame([(*row, weight) for row in rows], f"{SCHEMA}, weight int")


def triangles(r: Pairs, s: Pairs, t: Pairs) -> list[tuple[int, ...]]:
    after: dict[int, set[int]] = {}
    for b, c in s:
        after.setdefault(b, set()).add(c)
    closing = set(t)
    return sorted((a, b, c) for a, b in set(r) for c in after.get(b, ()) if (a, c) in closing)


def shares(joined: MaintainedJoin) -> str:
    """The line of ``explain`` that says how the axes are cut."""
    return joined.explain().splitlines()[2].strip()


def test_planned_again_it_holds_and_follows_the_same(spark: SparkSession, tmp_path: Path) -> None:
    few: Pairs = [(1, 2), (2, 3), (5, 6)]
    relations = {name: frame(spark, few) for name in "rst"}
    joined = MaintainedJoin(RULE, relations, state=tmp_path / "state", partitions=2, shares={"a": 2})
    joined.apply({"t": inserted(spark, [(1, 3)]), "s": inserted(spark, [(5, 6)], -1)}, batch_id=7)
    before = joined.apply({"t": inserted(spark, [])}, batch_id=7).collect()
    other = MaintainedJoin(RULE, relations, state=tmp_path / "state")

    joined.repartition(4, shares={"b": 2, "c": 2})

    assert (joined.version, joined.applied()) == (3, 7)
    assert "b in 2 parts, c in 2 parts" in shares(joined)
    assert sorted(map(tuple, joined.table().collect())) == [(1, 2, 3)]
    assert joined.stats is not None and set(joined.stats.engines) == {"new"}
    # A batch that was applied is told again, and not applied again.
    assert joined.apply({"t": inserted(spark, [(5, 6)])}, batch_id=7).collect() == before
    # Another object on the state goes on under the new grids, and what follows is exact.
    change = other.apply({"r": inserted(spark, [(9, 2)]), "t": inserted(spark, [(9, 3)])}, batch_id=8)
    assert [tuple(row) for row in change.collect()] == [(9, 2, 3, 1)]
    assert "b in 2 parts" in shares(other)
    with pytest.raises(errors.StateError, match="partitions=4, not 2"):
        MaintainedJoin(RULE, relations, state=tmp_path / "state", partitions=2)


@pytest.mark.in_turns
def test_a_batch_plans_again_where_rows_have_left_the_plan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two relations have few rows when it is made, and then as many as the third."""
    monkeypatch.setattr(executor_state, "chosen_partitions", lambda _, asked: asked or 2)
    pairs: Pairs = list(permutations(range(60), 2))
    first = {"r": pairs, "s": pairs[:2], "t": pairs[:2]}
    frames = {name: frame(spark, rows) for name, rows in first.items()}
    joined = MaintainedJoin(RULE, frames, state=tmp_path / "state", partitions=8, replan=1.1)
    was = shares(joined)
    assert joined.stats is not None and joined.stats.plan.load == pytest.approx(1.0, abs=0.05)

    joined.apply({name: inserted(spark, pairs) for name in "st"}).collect()
    assert (joined.version, shares(joined)) == (2, was)
    assert joined.stats.plan.load > 1.1
    assert joined.stats.plan.grown == pytest.approx(3, rel=0.1)

    joined.apply({"r": inserted(spark, pairs[:100], -1)}).collect()
    assert joined.version == 4, "planned again, then the batch"
    assert shares(joined) != was
    assert joined.stats.plan.load < 1.1
    expected = triangles(pairs[100:], pairs, pairs)
    assert sorted(map(tuple, joined.table().collect())) == expected


@pytest.mark.parametrize("factor", [1, 0.5, -2])
def test_a_factor_that_is_none_is_refused(spark: SparkSession, tmp_path: Path, factor: float) -> None:
    with pytest.raises(ValueError, match="replan is"):
        MaintainedJoin(RULE, {}, state=tmp_path, replan=factor)


def test_planning_again_that_fails_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    relations = {name: frame(spark, [(1, 2), (2, 3), (1, 3)]) for name in "rst"}
    joined = MaintainedJoin(RULE, relations, state=tmp_path / "state", partitions=2, shares={"a": 2})
    with pytest.raises(errors.OrderError, match="shares= names 'z'"):
        joined.repartition(shares={"z": 2})
    with pytest.raises(errors.LimitError):
        joined.repartition(0)
    assert joined.version == 1
    assert "a in 2 parts" in shares(joined)
    assert [tuple(row) for row in joined.table().collect()] == [(1, 2, 3)]
