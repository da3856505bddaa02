"""In Spark: a Delta table in, the head as a Delta table out; each version of the one is in the other once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lftj.errors import ChangeError, StateError
from maintenance import changes_from_delta
from spark_bridge import MaintainedJoin
from spark_bridge.state.delta_head import DeltaHead
from support.delta_steps import append, made, rows_at
from support.followed_join import PLACES, placed
from support.rows import rows_of

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


def triangles(edges: str) -> set[tuple[int, ...]]:
    pairs = set(rows_at(edges))
    return {(a, b, c) for a, b in pairs for b_, c in pairs if b_ == b and (a, c) in pairs}


@PLACES
def test_a_table_in_and_a_table_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    edges, head = made(tmp_path / "edges", [(1, 2), (2, 3)]), str(tmp_path / "triangles")

    def opened() -> MaintainedJoin:
        table = DeltaTable(edges, version=0)
        frame = spark.createDataFrame(table.to_pyarrow_table())
        return MaintainedJoin(
            TRIANGLES,
            {"edge": frame},
            state=tmp_path / "state",
            applied={"edges": table.version()},
            delta=head,
            **placed(where, shares={}),
        )

    def followed(joined: MaintainedJoin) -> int:
        changes = changes_from_delta(edges, joined.applied("edges"))  # type: ignore[arg-type]
        batch = {"edge": spark.createDataFrame(changes.table)}
        return joined.apply(batch, batch_id=changes.version, source="edges").count()

    def check(version: int) -> None:
        table = DeltaTable(head)
        rows = rows_of(table.to_pyarrow_table())
        assert set(rows) == triangles(edges)
        assert len(rows) == len(set(rows))
        assert table.transaction_version(f"lftj {state_id} edges") == version

    joined = opened()
    state_id = joined._place.manifest.state_id
    check(0)
    append(edges, [(1, 3), (3, 1), (2, 1)])
    assert followed(joined) == len(triangles(edges))
    check(1)

    # A driver dies between the state's commit and the table's; the next one writes what is missing.
    before = triangles(edges)
    append(edges, [(3, 3)])
    new = len(triangles(edges) - before)
    with monkeypatch.context() as patched, pytest.raises(StateError, match="full"):
        patched.setattr(DeltaHead, "follow", failing)
        followed(joined)
    assert (joined.applied("edges"), DeltaTable(head).transaction_version(f"lftj {state_id}")) == (2, 2)
    joined.close()
    joined = opened()
    check(2)
    commits = DeltaTable(head).version()
    assert followed(joined) == new  # nothing happened: the last batch is told again, and not applied
    assert DeltaTable(head).version() == commits
    DeltaTable(edges).delete("src = 3")
    followed(joined)
    check(3)

    # A version without a batch is a commit without rows.
    if where == "executors":
        files, version = DeltaTable(head).file_uris(), joined.version
        joined.repartition(4)
        assert DeltaTable(head).file_uris() == files
        assert DeltaTable(head).transaction_version(f"lftj {state_id}") == version + 1
        check(3)
    append(edges, [(3, 1), (4, 1), (1, 4), (4, 4)])
    assert followed(joined) > 0
    check(4)


def failing(*_: object) -> None:
    raise StateError("full")


def test_what_is_contained_is_a_batch_of_a_source(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, 2)], "a bigint, b bigint")
    with pytest.raises(ChangeError, match="batch_id is -1; batches are numbered from 0"):
        MaintainedJoin("p(a) <- e(a, _).", {"e": frame}, state=tmp_path / "state", applied={"e": -1})
    assert not (tmp_path / "state").exists()


def test_without_the_package(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    frame = spark.createDataFrame([(1, 2)], "a bigint, b bigint")
    with pytest.raises(ImportError, match=r"a Delta table needs deltalake: pip install 'lftj\[delta\]'"):
        MaintainedJoin("p(a) <- e(a, _).", {"e": frame}, state=tmp_path / "state", delta=tmp_path / "head")
    assert not (tmp_path / "state").exists()
