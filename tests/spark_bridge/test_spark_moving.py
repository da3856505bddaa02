"""differential: where="auto", and a state that moves from the driver to the executors amid its batches."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from spark_bridge.places import moving
from spark_bridge.places.executor_state import ExecutorState
from spark_bridge.stages.batch_stats import BatchStats, DriverStats
from support.followed_join import Followed, edges, files_of, random_changes
from support.rows import rows_of

RULE = "two(a, c, count()) <- e(a, b), e(b, c), !e(c, a)."
AUTO: dict[str, Any] = {"where": "auto"}


def outgrown(patched: pytest.MonkeyPatch) -> None:
    """From now on whatever is in the driver is too much."""
    patched.setattr(moving.Moving, "has_outgrown", lambda *_: True)


def is_moved(path: Path) -> bool:
    names = files_of(path)
    assert any(name.startswith("workspace/") for name in names) != any(
        name.startswith("manifest-") for name in names
    )
    return not (path / "workspace").exists()


@pytest.mark.in_turns
def test_differential_a_state_moves_amid_its_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, batches that were applied, and what they changed, go along, and so do other objects."""
    state, delta = tmp_path / "state", tmp_path / "table"
    options = {**AUTO, "delta": delta}
    followed = Followed(spark, state, RULE, {"e": edges(40, 9)}, options)
    pickled = pickle.loads(pickle.dumps(followed.joined))
    random, made = Random(1), []
    for number in range(6):
        if number == 2:
            outgrown(monkeypatch)
        changes = {"e": random_changes(followed.relations["e"], 9, 6, random)}
        made.append(followed.batch(changes, (followed.joined, pickled)[number % 2], batch_id=number))
        assert is_moved(state) == (number >= 2)
        followed.check(followed.joined)
        followed.check(pickled)
        assert set(rows_of(DeltaTable(delta).to_pyarrow_table())) == set(rows_of(followed.expected()))
        if number == 3:
            followed.joined = followed.opened()
    assert (followed.joined.version, pickled.version) == (8, 8)
    assert isinstance(pickled.stats, BatchStats)
    for number, rows in enumerate(made):
        again = followed.joined.apply(followed.changes({"e": []}), batch_id=number)
        assert sorted(rows_of(again.toArrow())) == sorted(rows)
    assert followed.joined.explain().startswith("where='auto': on the executors, for the state is there")


def test_what_is_large_is_made_on_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    """By the relations alone, or by what the workspace has when it is made."""
    frames = {"e": spark.createDataFrame(edges(40, 9))}
    joined = MaintainedJoin(RULE, frames, state=tmp_path / "large", driver_bytes=99, **AUTO)
    assert "its relations would take some" in joined.explain() and is_moved(tmp_path / "large")
    assert joined.version == 1
    relations = 2 * 16 * frames["e"].count()
    joined = MaintainedJoin(RULE, frames, state=tmp_path / "head", driver_bytes=relations, **AUTO)
    assert is_moved(tmp_path / "head") and joined.version == 2
    assert f"bytes of driver_bytes={relations:,}" in joined.explain()
    joined = MaintainedJoin(RULE, frames, state=tmp_path / "small", **AUTO)
    assert not is_moved(tmp_path / "small")
    assert "with more it moves to the executors" in joined.explain()
    with pytest.raises(ValueError, match="driver_bytes is 5; it is a number of bytes, for where='auto'"):
        MaintainedJoin(RULE, frames, state=tmp_path / "none", where="driver", driver_bytes=5)


def test_what_executors_cant_keep_stays_in_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outgrown(monkeypatch)
    frames = {"e": spark.createDataFrame(edges(9, 9))}
    for number, joined in enumerate(
        (
            MaintainedJoin(
                "r(a, b) <- e(a, b). r(a, c) <- r(a, b), r(b, c).", frames, state=tmp_path / "0", **AUTO
            ),
            MaintainedJoin.from_sql(
                "SELECT src, rank() OVER (ORDER BY dst) AS n FROM e", frames, state=tmp_path / "1", **AUTO
            ),
        )
    ):
        changes = spark.createDataFrame([(1, 2, 1)], "src bigint, dst bigint, weight bigint")
        joined.apply({"e": changes})
        assert not is_moved(tmp_path / str(number)) and joined.version == 2
        assert "and stays in the driver: " in joined.explain()
    joined = MaintainedJoin.from_sql("SELECT DISTINCT dst FROM e", frames, state=tmp_path / "2", **AUTO)
    assert is_moved(tmp_path / "2") and joined.version == 2


def test_a_move_that_fails_is_tried_with_the_next_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    followed = Followed(spark, tmp_path, RULE, {"e": edges(20, 6)}, AUTO)
    outgrown(monkeypatch)

    def fails(*given: object) -> None:
        raise errors.StateError("no executor")

    with monkeypatch.context() as patched:
        patched.setattr(ExecutorState, "_run_whole", fails)
        followed.batch({"e": [((50, 51), 1)]})
    assert "it could not move to the executors, and will with the next batch: no executor" in caplog.text
    assert "it could not move" in followed.joined.explain() and (tmp_path / "workspace").exists()
    assert isinstance(followed.joined.stats, DriverStats) and followed.joined.version == 2
    followed.check()
    followed.batch({"e": [((51, 50), 1)]})
    assert is_moved(tmp_path) and followed.joined.version == 4
    followed.check()


def test_the_manifest_decides_when_a_driver_dies_amid_a_move(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is in place nothing has moved; then what is left in the driver goes."""
    followed = Followed(spark, tmp_path, RULE, {"e": edges(20, 6)}, AUTO)
    outgrown(monkeypatch)

    def dies(*given: object) -> None:
        raise KeyboardInterrupt

    for number, (where, name) in enumerate(((ExecutorState, "_run_whole"), (moving, "delete_at"))):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(where, name, dies)
            followed.joined.apply(followed.changes({"e": [((50, 60 + number), 1)]}), batch_id=number)
        followed.relations["e"].add((50, 60 + number))
        followed.joined.close()
        assert (tmp_path / "workspace").exists()
        if name == "_run_whole":
            assert not any(file.startswith("manifest-") for file in files_of(tmp_path))
            with monkeypatch.context() as patched:
                patched.setattr(moving.Moving, "has_outgrown", lambda *_: False)
                followed.joined = followed.opened()
                followed.check()
            continue
        followed.joined = followed.opened()
        assert is_moved(tmp_path)
    assert (followed.joined.version, followed.joined.applied()) == (4, 1)
    followed.check()
    followed.joined.apply(followed.changes({"e": [((1, 1), 1)]}), batch_id=1)
    assert followed.joined.version == 4
    followed.batch({"e": [((60, 50), 1)]})
