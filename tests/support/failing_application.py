"""An application with a `MaintainedJoin`, which a test kills and starts again (``test_spark_failures.py``).

    python failing_application.py apply|interrupted|stream|driver|driver-stream|moved FOLDER BATCHES
    python failing_application.py fork

``FOLDER/state`` is the state.  ``apply`` gives all batches, the first one again first; ``interrupted`` does,
after Ctrl-C in the middle of one and the end of a stream in the middle of another; ``stream`` reads one
Parquet file per batch from ``FOLDER/incoming``; with ``driver`` the state is in the driver, and with
``moved`` it is made there and moves to the executors.  What a batch changed goes to ``FOLDER/made``, the head
at last to ``FOLDER/head.arrow``, what is left of the state after cleaning to ``FOLDER/left.json``.

Java of its own takes most of the time of an application.  With it go workers of Spark's own daemon and plans
that are compiled, as users have them, so that both ways are tested.  Where the environment names the gateway
of one that runs (``PYSPARK_GATEWAY_PORT`` and ``_SECRET``) the driver is at its context instead; what is
killed and started anew is the driver, and workers of its own if it is to have some, or if the fault is in a
worker.

``fork`` loads Python's modules once for many such drivers: of each line of its input, the ``Run`` of one, it
makes a process by fork, and says in a line how that ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import feather
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from maintenance.store.fault_points import MARKER, VARIABLE
from spark_bridge import MaintainedJoin
from support.spark_session import MASTER, builder

RULE = "n[c] = count() <- e(a, b), e(b, c), e(a, c)."
"""Cells cut by ``b`` have to be combined: there are two stages."""

SHARES = {"b": 2}
N_NODES = 12
CHANGES_SCHEMA = "src bigint, dst bigint, weight bigint"

AS_USERS_HAVE_IT = {
    "spark.python.daemon.module": "pyspark.daemon",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.python.sql.dataFrameDebugging.enabled": "true",
}
"""Settings of an application with a Java of its own."""

RELATION_BYTES = 32 * 50
"""Of the first edges, as they are estimated before there is a state; a workspace of them takes more."""

OWN_WORKERS = "LFTJ_OWN_WORKERS"
"""In the environment: a driver at a Java that runs has workers that no other one with another value has."""

Edge = tuple[int, int]


class Run(NamedTuple):
    """A driver that is to be forked.  ``said``: the file for what it writes to its standard streams."""

    arguments: list[str]
    environment: dict[str, str]
    said: str


def first_edges() -> set[Edge]:
    random = Random(1)
    return {(random.randrange(N_NODES), random.randrange(N_NODES)) for _ in range(50)}


def batches(n_batches: int) -> list[list[tuple[Edge, int]]]:
    """Signed edges.  Each erases some that the one before has inserted: applied twice, it would show."""
    random = Random(2)
    found: list[list[tuple[Edge, int]]] = []
    for _ in range(n_batches):
        new = {(random.randrange(N_NODES), random.randrange(N_NODES)) for _ in range(8)}
        undone = {(edge, -weight) for edge, weight in (found[-1] if found else []) if edge not in new}
        found.append([*((edge, 1) for edge in sorted(new)), *sorted(undone)])
    return found


def edge_table(edges: set[Edge]) -> pa.Table:
    rows = sorted(edges)
    return pa.table({"src": [a for a, _ in rows], "dst": [b for _, b in rows]})


def change_table(changes: list[tuple[Edge, int]]) -> pa.Table:
    columns = [[edge[0] for edge, _ in changes], [edge[1] for edge, _ in changes], [w for _, w in changes]]
    return pa.table([pa.array(column, pa.int64()) for column in columns], ["src", "dst", "weight"])


def told_to_workers() -> dict[str, str]:
    """What workers at a Java that runs already have to be told; others run in this process's environment."""
    faults = (VARIABLE, MARKER) if os.environ.get(VARIABLE, "").startswith("worker") else ()
    return {name: os.environ[name] for name in (OWN_WORKERS, *faults) if name in os.environ}


def session() -> SparkSession:
    making = builder()
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        gateway = launch_gateway()
        running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
        context = gateway.jvm.JavaSparkContext.fromSparkContext(running)
        conf = SparkConf(_jconf=context.getConf())
        SparkContext(gateway=gateway, jsc=context, conf=conf, environment=told_to_workers())
    else:
        for key, value in AS_USERS_HAVE_IT.items():
            making = making.config(key, value)
    spark = making.master(MASTER).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def files_of(state: Path) -> list[str]:
    return sorted(str(file.relative_to(state)) for file in state.rglob("*") if file.is_file())


class Waiting:
    """Tasks of a batch that go on when it is over."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._begun, self._over = folder / "begun", folder / "over"

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self._begun.touch()
        while not self._over.exists():
            time.sleep(0.01)
        yield from given

    def run(self) -> None:
        """Wait until there is one."""
        while not self._begun.exists():
            time.sleep(0.01)

    def go_on(self) -> None:
        self._over.touch()


def interrupted(joined: MaintainedJoin, changes: DataFrame, folder: Path) -> None:
    """Ctrl-C while tasks of a batch run, and a stream that is stopped then: nothing has changed."""
    before = files_of(folder / "state")
    tasks = Waiting(folder / "applied")

    def interrupt() -> None:
        tasks.run()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        joined.apply({"e": changes.mapInArrow(tasks, CHANGES_SCHEMA)}, batch_id=0)
        raise AssertionError("it was interrupted")
    except KeyboardInterrupt:
        assert files_of(folder / "state") == before
    tasks.go_on()

    changes.write.parquet(str(folder / "incoming"))
    reader = changes.sparkSession.readStream.schema(CHANGES_SCHEMA).parquet(str(folder / "incoming"))
    tasks = Waiting(folder / "streamed")
    delivered: list[int] = []
    query = joined.stream(
        {"e": reader.mapInArrow(tasks, CHANGES_SCHEMA)},
        checkpoint=str(folder / "checkpoint"),
        sink=lambda changes, number: delivered.append(number),
    )
    tasks.run()
    query.stop()
    assert files_of(folder / "state") == before
    tasks.go_on()
    assert (joined.version, joined.applied(), delivered) == (1, None, [])


def left_in_files(joined: MaintainedJoin, folder: Path) -> dict[str, list[str]]:
    """The files that are there, and those that the last version names."""
    store = joined._place.versions.store
    store.clean(1)
    manifest = store.newest()
    assert manifest is not None
    named = sorted([*manifest.files(), f"manifest-{manifest.version:012d}.json"])
    return {"left": files_of(folder / "state"), "named": named}


def left_in_driver(joined: MaintainedJoin, folder: Path) -> dict[str, list[str]]:
    """The files of what batches changed that are there, and those of the last ten versions."""
    named = [f"told-{version:012d}" for version in range(max(2, joined.version - 9), joined.version + 1)]
    return {"left": files_of(folder / "state" / "told"), "named": named}


def main(mode: str, folder: Path, n_batches: int) -> None:
    spark = session()
    edges = {"e": spark.createDataFrame(edge_table(first_edges()))}
    in_driver = mode.startswith("driver")
    options: dict[str, Any] = {"where": "driver"} if in_driver else {"partitions": 2, "shares": SHARES}
    if mode == "moved":
        options |= {"where": "auto", "driver_bytes": RELATION_BYTES}
    joined = MaintainedJoin(RULE, edges, state=folder / "state", **options)
    made = folder / "made"
    made.mkdir(exist_ok=True)

    def deliver(changes: DataFrame, number: int) -> None:
        part = made / f"{number}.part"
        feather.write_feather(changes.toArrow(), str(part), compression="uncompressed")
        part.replace(made / f"{number}.arrow")

    if mode == "interrupted":
        interrupted(joined, spark.createDataFrame(change_table(batches(1)[0])), folder)
    if not mode.endswith("stream"):
        for number, changes in enumerate(batches(n_batches)):
            given = {"e": spark.createDataFrame(change_table(changes))}
            deliver(joined.apply(given, batch_id=number), number)
    else:
        reader = spark.readStream.schema(CHANGES_SCHEMA).option("maxFilesPerTrigger", 1)
        query = joined.stream(
            {"e": reader.parquet(str(folder / "incoming"))},
            checkpoint=str(folder / "checkpoint"),
            sink=deliver,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    feather.write_feather(joined.table().toArrow(), str(folder / "head.arrow"), compression="uncompressed")
    left = left_in_driver(joined, folder) if in_driver else left_in_files(joined, folder)
    (folder / "left.json").write_text(json.dumps({"version": joined.version, **left}))
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        spark.stop()


def fork() -> None:
    """Each process has its own standard streams from its beginning, and no thread runs when it is made."""
    import pandas  # noqa: F401  # Spark imports it with the first DataFrame: here it is once for all

    for line in sys.stdin:
        run = Run(*json.loads(line))
        child = os.fork()
        if child == 0:
            said = os.open(run.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.environ.update(run.environment)
            start(run.arguments)
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def start(arguments: list[str]) -> None:
    main(arguments[0], Path(arguments[1]), int(arguments[2]))


if __name__ == "__main__":
    if sys.argv[1:] == ["fork"]:
        fork()
    else:
        start(sys.argv[1:])
