"""oracle: the data source `lftj`: heads of states in both places and of workspaces, and changes into one.

To plan a query of a data source Spark starts a Python, which takes seconds: most is asked of what that runs,
a query that is no stream is on the page (docs/spark-sources.md), a stream that is written in tests/cluster.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lftj.errors import CursorError, SourceError, StateError, UnknownRelationError
from maintenance import Workspace
from spark_bridge import HeadSource, MaintainedJoin
from spark_bridge.data_source.changes_sink import ChangesSink
from spark_bridge.data_source.kept_heads import kept_head

RULE = "two(a, c) <- edge(a, b), edge(b, c)."
SCHEMA = "a bigint, b bigint"


def kept(spark: SparkSession, path: Path, where: str) -> MaintainedJoin:
    edges = spark.createDataFrame([(1, 2), (2, 3)], SCHEMA)
    parts = {"partitions": 2} if where == "executors" else {}
    return MaintainedJoin(RULE, {"edge": edges}, state=path, where=where, **parts)


def apply(kept: MaintainedJoin, *changes: tuple[int, int, int]) -> None:
    kept.apply({"edge": kept.session.createDataFrame(changes, SCHEMA + ", weight int")})


def whole(path: Path, head: str | None = None) -> list[tuple]:
    found = kept_head(str(path), head)
    return sorted(row for part in found.whole() for batch in found.rows(part) for row in tuples(batch))


def changes(path: Path, since: int, until: int | None = None, head: str | None = None) -> list[tuple]:
    found = kept_head(str(path), head)
    parts = found.changes(since, found.look() if until is None else until)
    return sorted(row for part in parts for batch in found.changed_rows(part) for row in tuples(batch))


def tuples(batch: pa.RecordBatch) -> list[tuple]:
    return list(zip(*batch.to_pydict().values(), strict=True))


def rows(frame: DataFrame) -> list[tuple]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("where", ["driver", "executors"])
def test_a_state_is_read_whole_and_by_what_changed(spark: SparkSession, tmp_path: Path, where: str) -> None:
    join = kept(spark, tmp_path, where)
    looked = kept_head(str(tmp_path), "two")
    assert looked.look() == 1 and looked.schema.names == ["a", "c"] and whole(tmp_path) == [(1, 3)]
    apply(join, (3, 4, 1), (1, 2, -1))
    apply(join, (4, 5, 1))
    assert looked.look() == join.version == 3
    assert whole(tmp_path) == rows(join.table()) == [(2, 4), (3, 5)]
    assert changes(tmp_path, 2) == [(3, 5, 1)]
    assert changes(tmp_path, 1) == [(1, 3, -1), (2, 4, 1), (3, 5, 1)]
    assert changes(tmp_path, 1, 2) == [(1, 3, -1), (2, 4, 1)]
    assert changes(tmp_path, 3) == []
    for since in (0, 4):
        with pytest.raises(StateError, match=f"since version {since} are not there: it is at version 3"):
            changes(tmp_path, since)
    with pytest.raises(SourceError, match="its head is 'two', not 'one'"):
        kept_head(str(tmp_path), "one")
    join.close()


def test_a_workspace_is_read_beside_the_process_that_has_it(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
        workspace.install(RULE)
        first = workspace.version
        looked = kept_head(str(tmp_path), "two")
        for edge in (3, 4), (4, 5):
            with workspace.transaction() as transaction:
                transaction.insert("edge", [edge])
        assert looked.look() == workspace.version == first + 2
        assert whole(tmp_path, "two") == [(1, 3), (2, 4), (3, 5)]
        assert changes(tmp_path, first, head="two") == [(2, 4, 1), (3, 5, 1)]
        assert changes(tmp_path, first, first + 1, head="two") == [(2, 4, 1)]
        with pytest.raises(CursorError, match="no version"):
            changes(tmp_path, first + 3, head="two")
    with pytest.raises(SourceError, match="it has the heads two: say which"):
        kept_head(str(tmp_path), None)
    with pytest.raises(UnknownRelationError):
        kept_head(str(tmp_path), "three")
    with pytest.raises(StateError, match="there is no state, and no workspace"):
        kept_head(str(tmp_path / "nothing"), None)


def test_a_batch_of_a_stream_is_one_transaction_once(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no workspace: make one that has 'edge'"):
        ChangesSink(str(tmp_path / "nothing"), "edge", "").commit([], 0)
    with Workspace.open(tmp_path) as workspace:
        workspace.load("edge", [(1, 2)], columns=["a", "b"])
    batch = pa.RecordBatch.from_pydict({"a": [2, 1], "b": [3, 2], "weight": [1, -1]})
    one, other = (ChangesSink(str(tmp_path), "edge", source) for source in ("one", "other"))
    again = one.write(iter([batch.slice(1)]))
    one.commit([one.write(iter([batch])), one.write(iter([])), None], 4)
    one.commit([one.write(iter([pa.RecordBatch.from_pydict({"a": [9], "b": [9], "weight": [1]})]))], 4)
    other.commit([], 0)
    with Workspace.open(tmp_path, read_only=True) as workspace:
        assert set(workspace["edge"]) == {(2, 3)}
    with pytest.raises(UnknownRelationError):
        ChangesSink(str(tmp_path), "node", "").commit([again], 0)


@pytest.mark.in_turns
def test_a_stream_of_sparks_from_a_state(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(HeadSource)
    join = kept(spark, tmp_path / "state", "executors")
    apply(join, (3, 4, 1), (1, 2, -1))
    followed = spark.readStream.format("lftj").option("since", 1).load(str(tmp_path / "state"))
    checkpoint = str(tmp_path / "checkpoint")
    query = followed.writeStream.format("memory").queryName("followed").trigger(availableNow=True)
    query.option("checkpointLocation", checkpoint).start().awaitTermination()
    assert rows(spark.table("followed")) == [(1, 3, -1), (2, 4, 1)]
