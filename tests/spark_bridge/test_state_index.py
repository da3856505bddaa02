"""laws: what is sent to the tasks of a batch, and read by one, does not grow with the number of partitions.

Without Spark: functions are pickled as Spark pickles them, and their bytes counted.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest import mock

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from lftj import errors
from spark_bridge.cells.signed_tables import with_weight
from spark_bridge.placing.grids import given_grids
from spark_bridge.placing.packets import SCHEMA
from spark_bridge.placing.worker_process import in_worker
from spark_bridge.stages import worker as stage_worker
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import StageWorker
from spark_bridge.state.engine_cache import (
    KEPT_PART,
    MOST_BYTES,
    CachedEngine,
    EngineCache,
    check_engine_bytes,
    kept_bytes,
)
from spark_bridge.state.manifest import Logged, PartitionState
from spark_bridge.state.state_index import TOGETHER, StateIndex
from spark_bridge.state.store import StateStore
from support.cell_pipeline import program_text
from support.state_stores import MakeStore

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
EDGES = pa.table({"a": [1, 2, 1, 3], "b": [2, 3, 3, 4]})
SHARES = {8: (2, 2, 2), 1000: (10, 10, 10), 10_000: (25, 20, 20)}


def states(partitions: int, batches: int = 10) -> dict[str, PartitionState]:
    """As a manifest has them after some batches that reached every partition."""

    def state(pid: int) -> PartitionState:
        folder = f"data/batch1-{pid:032x}"
        logged = tuple(
            Logged(f"{folder}/log-0-{pid}-{n:032x}", f"{folder}/changes-0-{pid}-{n:032x}", n)
            for n in range(batches)
        )
        return PartitionState(f"{folder}/snapshot", f"{folder}/head", f"{folder}/image", 99, logged)

    return {f"0-{pid}": state(pid) for pid in range(partitions)}


def chain_of(partitions: int) -> StageChain:
    text = program_text(TRIANGLES, {"e": EDGES})
    (plan,) = text.plans()
    shares = dict(zip("abc", SHARES[partitions], strict=True))
    return StageChain(text, (given_grids(plan, shares, partitions),))


def test_a_function_has_the_same_bytes_for_any_number_of_partitions(tmp_path: Path) -> None:
    """At 1,000 partitions of 10 logged batches 2.8 GB went to the workers with each batch."""
    sizes = {}
    for partitions in SHARES:
        store = StateStore(tmp_path / "state")
        token = store.begin(2)
        chain = chain_of(partitions)
        index = StateIndex.written(store, token, states(partitions), 1, partitions)
        step = in_worker(StageWorker(chain, chain.last, index, token).packets, "step")
        sizes[partitions] = len(cloudpickle.dumps(step))
    assert max(sizes.values()) - min(sizes.values()) < 100
    assert max(sizes.values()) < 8 << 10


def test_a_task_reads_the_states_that_it_steps(make_store: MakeStore) -> None:
    store = make_store()
    token = store.begin(2)
    known = {name: state for name, state in states(1000, 2).items() if int(name[2:]) % 3}
    index = StateIndex.written(store, token, known, 1, 1000)
    read: list[pa.RecordBatch] = []
    read_batch = StateStore.read_batch

    def watched(self: StateStore, name: str, number: int) -> pa.RecordBatch:
        read.append(read_batch(self, name, number))
        return read[-1]

    with mock.patch.object(StateStore, "read_batch", watched):
        for pid in (0, 1, 500, 998, 999):
            assert index.of(0, pid) == known.get(f"0-{pid}")
    assert [batch.num_rows for batch in read] == [TOGETHER] * 5
    assert sum(batch.nbytes for batch in read) < 5 * TOGETHER * 1500
    index.delete()
    with pytest.raises(errors.StateError):
        index.of(0, 1)


def test_before_the_first_version_there_is_no_file(make_store: MakeStore) -> None:
    index = StateIndex.written(make_store(), "batch1-0", {}, 3, 1000)
    assert index.file is None
    assert index.of(2, 999) is None
    index.delete()


def test_only_partitions_with_changes_are_stepped(tmp_path: Path) -> None:
    """Also where tasks are fewer than partitions: each takes several, one after the other."""
    store = StateStore(tmp_path / "state")
    token = store.begin(1)
    chain = chain_of(1000)
    packets = pa.Table.from_batches(list(chain.placed([("e", with_weight(EDGES))])), SCHEMA)
    reached = set(packets.column("pid").to_pylist())
    assert len(reached) < 120
    asked: list[int] = []
    of = StateIndex.of

    def watched(self: StateIndex, stage: int, pid: int) -> PartitionState | None:
        asked.append(pid)
        return of(self, stage, pid)

    index = StateIndex.written(store, token, {}, 1, 1000)
    worker = StageWorker(chain, chain.last, index, token, engine_bytes=0)
    found: list[str] = []
    order = list(range(packets.num_rows))
    Random(0).shuffle(order)
    with (
        mock.patch.object(StateIndex, "of", watched),
        mock.patch.object(stage_worker, "_engines", EngineCache()),
    ):
        for task in range(7):
            rows = packets.take(pa.array(order)).to_pylist()
            mine = pa.Table.from_pylist([row for row in rows if row["pid"] % 7 == task], SCHEMA)
            for batch in worker.packets(iter(mine.to_batches(max_chunksize=10))):
                found += batch.column("read").to_pylist()
    assert set(asked) == reached
    assert len(asked) == len(found) == len(reached)
    assert set(found) == {stage_worker.RECEIPT}


# -- engines that are kept ------------------------------------------------------


def test_engines_are_kept_up_to_a_number_of_bytes() -> None:
    cache: EngineCache[str] = EngineCache()
    for number in range(5):
        cache.put(f"p{number}", CachedEngine("t", f"engine {number}", 30), most_bytes=100)
    assert cache.nbytes == 90
    assert [cache.take(f"p{number}") is not None for number in range(5)] == [False, False, True, True, True]


def test_an_engine_that_is_too_large_is_not_kept_and_drives_none_out() -> None:
    """One of 50 million rows was kept whatever else the worker had."""
    cache: EngineCache[str] = EngineCache()
    cache.put("small", CachedEngine("t", "engine", 30), most_bytes=100)
    cache.put("large", CachedEngine("t", "engine", 101), most_bytes=100)
    assert cache.take("large") is None
    assert cache.take("small") == ("t", "engine", 30)


def test_an_engine_that_is_kept_again_counts_once() -> None:
    cache: EngineCache[str] = EngineCache()
    for token in "abc":
        cache.put("p", CachedEngine(token, "engine", 60), most_bytes=100)
    assert cache.nbytes == 60


@pytest.mark.parametrize(
    ("asked", "memory", "most"),
    [
        (None, None, MOST_BYTES),
        (None, "-1", MOST_BYTES),
        (5000, None, 5000),
        (None, "400", int(KEPT_PART * (400 << 20))),
        (2 << 30, "400", int(KEPT_PART * (400 << 20))),
        (0, "400", 0),
    ],
)
def test_the_limit_respects_sparks(
    asked: int | None, memory: str | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``spark.executor.pyspark.memory`` comes to workers as an environment variable, in MiB."""
    monkeypatch.delenv("PYSPARK_EXECUTOR_MEMORY_MB", raising=False)
    if memory is not None:
        monkeypatch.setenv("PYSPARK_EXECUTOR_MEMORY_MB", memory)
    assert kept_bytes(asked) == most


@pytest.mark.parametrize("asked", [-1, 1.5, True, "1g"])
def test_a_limit_that_is_none_is_refused(asked: object) -> None:
    with pytest.raises(errors.LimitError, match="engine_bytes is"):
        check_engine_bytes(asked)  # type: ignore[arg-type]
