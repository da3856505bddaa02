"""differential: the bridge on a standalone cluster against plain Python, while parts of it are killed.

Master, workers, executors and drivers are processes of their own, on loopback; a state is on a disk, and on a
server that speaks the protocol of S3.  ``make cluster-test`` runs it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import boto3
import psutil
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from pyspark.sql import DataFrame, SparkSession
from werkzeug.serving import make_server

from maintenance import Workspace
from spark_bridge import HeadSource, MaintainedJoin, join
from support.cluster import Cluster, Killing, cluster, killed
from support.paths import TESTS, child_environment
from support.racing_driver import FIRST, RULE, edge
from support.spark_session import builder

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
REACH = "reach(a, b) <- e(a, b). reach(a, c) <- reach(a, b), e(b, c)."
BY_HALVES = "reach(a, b) <- e(a, b). reach(a, c) <- reach(a, b), reach(b, c)."
CHANGES = "src bigint, dst bigint, weight bigint"
SECONDS = 240
RACES = 15
N_NODES = 14

Edge = tuple[int, int]
Changes = list[tuple[int, int, int]]
Rows = set[tuple[int, ...]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, warmed: Path | None) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), n_workers=2, cores=4, memory="3g") as running:
        yield running


@pytest.fixture(scope="module")
def on_cluster(running: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A driver with an executor on each worker, of two threads; a task is tried four times.

    Checkpoints are files that outlive executors.
    """
    making = builder().master(running.url).config("spark.cores.max", "4").config("spark.executor.cores", "2")
    making = making.config("spark.checkpoint.dir", str(tmp_path_factory.mktemp("checkpoints")))
    spark = making.config("spark.executor.memory", "700m").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URI of a bucket on a server that answers one request at a time: a conditional put is one step."""
    answer = DomainDispatcherApplication(create_backend_app)
    turn = threading.Lock()

    def one_at_a_time(environment: object, start: object) -> list[bytes]:
        with turn:
            return list(answer(environment, start))

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    address = f"127.0.0.1:{server.server_port}"
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{address}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="bucket")
    yield f"s3://key:secret@bucket/{{}}?endpoint_override={address}&scheme=http&region=us-east-1"
    server.shutdown()
    serving.join()


def random_edges(seed: int, n_edges: int) -> set[Edge]:
    random = Random(seed)
    return {(random.randrange(N_NODES), random.randrange(N_NODES)) for _ in range(n_edges)}


def triangles(edges: set[Edge]) -> Rows:
    return {(a, b, c) for a, b in edges for b2, c in edges if b == b2 and (a, c) in edges}


def closure(edges: set[Edge]) -> Rows:
    found: Rows = set(edges)
    while more := {(a, d) for a, b in found for c, d in edges if b == c} - found:
        found |= more
    return found


def batches(edges: set[Edge], n_batches: int) -> list[tuple[Changes, set[Edge]]]:
    """Changes, and the edges after them."""
    found = []
    for number in range(n_batches):
        new = random_edges(number + 10, 12) - edges
        old = set(Random(number).sample(sorted(edges), 8))
        found.append(([*((*pair, 1) for pair in sorted(new)), *((*pair, -1) for pair in sorted(old))],))
        edges = (edges | new) - old
        found[-1] = (*found[-1], edges)
    return found


def rows_of(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_of_two_drivers_that_commit_at_once_on_s3_one_wins(
    running: Cluster, on_cluster: SparkSession, bucket: str, tmp_path: Path
) -> None:
    """The other one is told so, and is right: what it did is not there, and its next batch is taken."""
    state = bucket.format("state")
    first = on_cluster.createDataFrame(FIRST, "src bigint, dst bigint")
    joined = MaintainedJoin(RULE, {"e": first}, state=state, partitions=2)
    script = str(TESTS / "support" / "racing_driver.py")
    drivers = [
        subprocess.Popen(
            [sys.executable, script, running.url, state, str(number), str(tmp_path), str(RACES)],
            env=child_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        said = [driver.communicate(timeout=SECONDS) for driver in drivers]
    finally:
        for driver in drivers:
            driver.kill()
    assert [driver.returncode for driver in drivers] == [0, 0], [errors[-3000:] for _, errors in said]
    races = list(zip(*(lines.split() for lines, _ in said), strict=True))
    assert len(races) == RACES
    assert all(sorted(race) == ["StateError", "won"] for race in races), races
    winners = [race.index("won") for race in races]
    expected = [(0, edge(winner, race)[1]) for race, winner in enumerate(winners)]
    assert rows_of(joined.table()) == sorted(expected)
    assert joined.version == 1 + RACES


def test_exact_while_executors_and_a_worker_are_killed(
    running: Cluster, on_cluster: SparkSession, tmp_path: Path
) -> None:
    edges = random_edges(1, 70)
    frame = on_cluster.createDataFrame(sorted(edges), "src bigint, dst bigint")
    assert rows_of(join(TRIANGLES, {"e": frame}, partitions=4)) == sorted(triangles(edges))
    joined = MaintainedJoin(TRIANGLES, {"e": frame}, state=tmp_path / "state", partitions=4)
    steps = batches(edges, 4)
    assert len({frozenset(triangles(after)) for _, after in steps}) == 4, "batches that change the head"

    def apply(number: int, killing: Killing) -> None:
        changes = on_cluster.createDataFrame(steps[number][0], CHANGES).mapInArrow(killing, CHANGES)
        before = triangles(steps[number - 1][1] if number else edges)
        now = triangles(steps[number][1])
        told = rows_of(joined.apply({"e": changes}, batch_id=number))
        assert told == sorted([*((*row, 1) for row in now - before), *((*row, -1) for row in before - now)])
        assert rows_of(joined.table()) == sorted(now)

    def kill_worker(executor: psutil.Process) -> None:
        daemon = executor.parent()
        assert daemon is not None
        assert daemon.pid in [worker.pid for worker in running.workers]
        killed(daemon)
        killed(executor)

    killing = Killing(tmp_path / "first")
    killing.during(killed, lambda: apply(0, killing))
    killing = Killing(tmp_path / "second")
    killing.during(kill_worker, lambda: apply(1, killing))
    assert sum(worker.poll() is None for worker in running.workers) == 1

    incoming, killing = tmp_path / "incoming", Killing(tmp_path / "third")
    incoming.mkdir()
    for changes, _ in steps[2:]:
        on_cluster.createDataFrame(changes, CHANGES).coalesce(1).write.mode("append").parquet(str(incoming))
        time.sleep(1.1)  # files are taken by their age, in seconds
    streamed = on_cluster.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1).parquet(str(incoming))
    delivered: list[int] = []

    def stream() -> None:
        query = joined.stream(
            {"e": streamed.mapInArrow(killing, CHANGES)},
            checkpoint=str(tmp_path / "checkpoint"),
            sink=lambda changes, number: delivered.append(number),
            trigger={"availableNow": True},
        )
        query.awaitTermination()

    killing.during(killed, stream)
    assert delivered == [0, 1]
    assert joined.version == 5
    assert rows_of(joined.table()) == sorted(triangles(steps[-1][1]))


def test_what_changes_in_a_state_goes_by_a_stream_into_a_workspace(
    on_cluster: SparkSession, tmp_path: Path
) -> None:
    """By Spark's data source, read and written; the state is what its relations give."""
    edges = random_edges(1, 60)
    first = on_cluster.createDataFrame(sorted(edges), "src bigint, dst bigint")
    state, folder = str(tmp_path / "state"), str(tmp_path / "workspace")
    joined = MaintainedJoin(TRIANGLES, {"e": first}, state=state, partitions=4)
    with Workspace.open(folder) as workspace:
        workspace.load("tri", joined.table().toArrow())
    on_cluster.dataSource.register(HeadSource)
    for changes, after in batches(edges, 2):
        joined.apply({"e": on_cluster.createDataFrame(changes, CHANGES)})
        followed = on_cluster.readStream.format("lftj").option("since", 1).load(state)
        options = {"path": folder, "relation": "tri", "checkpointLocation": str(tmp_path / "checkpoint")}
        query = followed.writeStream.format("lftj").options(**options).trigger(availableNow=True).start()
        query.awaitTermination()
        expected = sorted(triangles(after))
        assert rows_of(on_cluster.read.format("lftj").load(state)) == expected
        with Workspace.open(folder, read_only=True) as workspace:
            assert sorted(workspace["tri"]) == expected
    joined.check()


def test_recursions_by_rounds_and_kept_while_an_executor_is_killed(
    running: Cluster, on_cluster: SparkSession, tmp_path: Path
) -> None:
    edges = random_edges(3, 18)
    assert len(closure(edges)) >= 20
    frame = on_cluster.createDataFrame(sorted(edges), "src bigint, dst bigint")
    killing, found = Killing(tmp_path / "once"), list[tuple[int, ...]]()
    read = frame.mapInArrow(killing, "src bigint, dst bigint")
    killing.during(killed, lambda: found.extend(rows_of(join(BY_HALVES, {"e": read}, partitions=4))))
    assert found == sorted(closure(edges))
    joined = MaintainedJoin(REACH, {"e": frame}, state=tmp_path / "state", partitions=4)
    ((changes, after),) = batches(edges, 1)
    killing = Killing(tmp_path / "kept")
    sent = on_cluster.createDataFrame(changes, CHANGES).mapInArrow(killing, CHANGES)
    killing.during(killed, lambda: joined.apply({"e": sent}))
    assert rows_of(joined.table()) == sorted(closure(after)) != sorted(closure(edges))
    joined.check()
