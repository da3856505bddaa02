"""laws: a batch whose input gives other rows when Spark computes it again, since what it had sent was lost.

The first task that has stepped its partitions takes the shuffle's files away from those that come after it.
By its checksums Spark finds that what it computed again is not what that task had, and ends the query
(``spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch``, on as Spark comes).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_bridge import MaintainedJoin
from spark_bridge.places import executor_state
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker
from spark_bridge.stages import running

CHANGES = "a bigint, b bigint, weight bigint"
NODES = range(16)


def losing(function: TaskFunction, since: float, lost: Path) -> TaskFunction:
    """The function; when it has run for the first time, shuffles that began later than ``since`` are gone."""

    def run(batches: Batches) -> Batches:
        yield from function(batches)
        if not lost.exists():
            for folder in os.environ["SPARK_LOCAL_DIRS"].split(","):  # of this application alone
                for file in Path(folder).rglob("shuffle_*"):
                    if file.stat().st_mtime >= since:
                        file.unlink(missing_ok=True)
            lost.touch()

    return run


def test_a_batch_is_of_one_computation_of_its_input(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = spark.createDataFrame([], "a bigint, b bigint")
    nodes = spark.createDataFrame([(b,) for b in NODES], "b bigint")
    joined = MaintainedJoin(
        "h(a, b) <- e(a, b), f(b).",
        {"e": empty, "f": nodes},
        state=tmp_path / "state",
        partitions=4,
        shares={"b": 4},
    )
    computed = tmp_path / "computed"
    computed.mkdir()

    def numbered(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows have the number of the computation."""
        for batch in given:
            number = len(list(computed.iterdir()))
            (computed / str(number)).touch()
            rows = batch.set_column(0, "a", pa.array([number] * batch.num_rows, pa.int64()))
            yield pa.RecordBatch.from_arrays(rows.columns, names=["a", "b", "weight"])

    changes = spark.createDataFrame([(0, b, 1) for b in NODES], CHANGES).coalesce(1)
    since, lost = time.time() - 1, tmp_path / "lost"

    def lossy(function: TaskFunction, does: str) -> TaskFunction:
        steps = getattr(function, "__name__", "") == "packets"
        return in_worker(losing(function, since, lost) if steps else function, does)

    given = {"e": changes.mapInArrow(numbered, CHANGES)}
    with monkeypatch.context() as patched:
        patched.setattr(running, "in_worker", lossy)
        # More tasks than threads: some begin when one has ended.
        patched.setattr(executor_state, "chosen_partitions", lambda session, partitions: 4)
        with pytest.raises(Py4JJavaError, match="shuffle map stage with indeterminate output"):
            joined.apply(given, batch_id=0)
    assert lost.exists()
    assert len(list(computed.iterdir())) == 2, "it was computed again"
    assert (joined.version, joined.applied(), joined.table().count()) == (1, None, 0)

    told = {tuple(row) for row in joined.apply(given, batch_id=0).collect()}
    assert told == {(2, b, 1) for b in NODES}, "of the third computation alone"
    assert {tuple(row) for row in joined.table().collect()} == {(2, b) for b in NODES}
    erased = spark.createDataFrame([(2, b, -1) for b in NODES], CHANGES)
    assert joined.apply({"e": erased}).count() == len(NODES), "engines have what the files have"
    assert joined.table().count() == 0
