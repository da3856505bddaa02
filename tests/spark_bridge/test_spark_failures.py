"""differential: a maintained join whose application and workers are killed, against recomputation.

The application of ``failing_application.py`` is started again and again on one state, each time to be killed
with SIGKILL at the next of the fault points; it gives all batches anew each time.  Most of its drivers are at
the Java of the tests' session, and are forked from a process that has loaded their modules.  Those that have
to go on from what killed ones left have workers of their own, which know of nothing; the one that is killed
amid a stream, whose queries have to end with it, is a whole application.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from support.paths import TESTS, child_environment

pytest.importorskip("pyspark")

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import lftj
from maintenance import Workspace
from maintenance.store.fault_points import DRIVER_POINTS, MARKER, POINTS, VARIABLE
from spark_bridge.places.kept_workspace import ACCOUNT
from support.failing_application import (
    OWN_WORKERS,
    RULE,
    Edge,
    Run,
    batches,
    change_table,
    edge_table,
    first_edges,
)
from support.rows import rows_of
from support.sets import load_set
from support.transactions import after

SCRIPT = TESTS / "support" / "failing_application.py"
SECONDS = 1800
"""For an application that hangs: on a loaded machine that compiles all kernels one takes minutes."""

AT_WORKERS = [point for point in POINTS if point.startswith("worker")]
MANY, SOME = 12, 3
"""Batches: such that old versions are cleaned up, and such that there are some after a failure."""

IN_DRIVER = {
    "batch: before the job": False,
    "batch: job done": False,
    DRIVER_POINTS[0]: False,
    "folder: change written, not on disk": True,
    "folder: change on disk, not told": True,
    "batch: committed, not cleaned": True,
}
"""Points that a batch of a state in the driver reaches; whether it is applied then.

What a process has written stays when it is killed.
"""

IN_BATCHES = [point for point in POINTS if point.startswith(("batch", "commit"))]

Rows = set[tuple[int, ...]]


class Ended(NamedTuple):
    """How a driver ended: its exit code, or the signal below zero, and the last that it said."""

    code: int
    said: str


def environment() -> dict[str, str]:
    """For drivers: without the variables of the session that another test may have made here."""
    return {name: value for name, value in child_environment().items() if not name.startswith("PYSPARK_")}


class Drivers:
    """Runs one driver after another at the session's Java, by the application's ``fork``.

    Callbacks of streams there go to the last driver: this process has to ask for them anew.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway = spark.sparkContext._gateway
        its = self._gateway.gateway_parameters
        there = {"PYSPARK_GATEWAY_PORT": str(its.port), "PYSPARK_GATEWAY_SECRET": its.auth_token}
        pipe = subprocess.PIPE
        command = [sys.executable, str(SCRIPT), "fork"]
        self._process = subprocess.Popen(
            command, env=environment() | there, stdin=pipe, stdout=pipe, text=True, cwd=TESTS
        )

    def run(
        self,
        mode: str,
        folder: Path,
        n_batches: int,
        fault: str = "",
        once: Path | None = None,
        own_workers: bool = False,
    ) -> Ended:
        """Run a driver, to be killed at a fault point; a worker only once if there is a marker file."""
        told = {VARIABLE: fault} if fault else {}
        told |= {MARKER: str(once)} if once else {}
        told |= {OWN_WORKERS: str(folder)} if own_workers else {}
        said = folder / "said"
        run = Run([mode, str(folder), str(n_batches)], told, str(said))
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(run), file=self._process.stdin, flush=True)
        ended, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        assert ended, f"it hangs: {said.read_text()[-3000:]}"
        return Ended(int(self._process.stdout.readline()), said.read_text()[-3000:])

    def close(self) -> None:
        self._process.communicate(timeout=SECONDS)  # its input ends
        server = self._gateway.__dict__.get("_callback_server")
        if server is not None:  # not shut and started anew: shutting it can wait for a call that never ends
            java = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client)
            java.resetCallbackClient(java.getCallbackClient().getAddress(), server.get_listening_port())


@pytest.fixture(scope="module")
def drivers(spark: SparkSession) -> Iterator[Drivers]:
    drivers = Drivers(spark)
    yield drivers
    drivers.close()
    spark.sparkContext.setLogLevel("ERROR")


def run_whole(mode: str, folder: Path, n_batches: int, fault: str) -> Ended:
    """Run the application with a Java of its own, to be killed at a fault point."""
    command = [sys.executable, str(SCRIPT), mode, str(folder), str(n_batches)]
    own = environment() | {VARIABLE: fault}
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=SECONDS, cwd=TESTS)
    return Ended(done.returncode, done.stderr[-3000:])


def head_of(edges: set[Edge]) -> Rows:
    database = lftj.Database()
    load_set(database, "e", edge_table(edges))
    return set(rows_of(database.query(RULE, threads=1)))


def heads(n_batches: int) -> list[Rows]:
    """The head at first and after each batch, computed anew."""
    edges = {"e": {*first_edges()}}
    found = [head_of(edges["e"])]
    for changes in batches(n_batches):
        edges = after(edges, [("e", edge, weight) for edge, weight in changes])
        found.append(head_of(edges["e"]))
    return found


def check(folder: Path, n_batches: int, first: int = 1) -> None:
    """Each batch was applied once, what was delivered is what it changed, and no file is left over."""
    expected = heads(n_batches)
    assert len(set(map(frozenset, expected))) > n_batches // 2, "batches that change the head"
    assert set(rows_of(feather.read_table(str(folder / "head.arrow")))) == expected[-1]
    left = json.loads((folder / "left.json").read_text())
    assert left["version"] == first + n_batches
    assert left["left"] == left["named"]
    for number, (before, now) in enumerate(itertools.pairwise(expected)):
        changes = Counter(
            {
                tuple(row[:-1]): row[-1]
                for row in rows_of(feather.read_table(str(folder / f"made/{number}.arrow")))
            }
        )
        assert {row for row, weight in changes.items() if weight > 0} == now - before, number
        assert {row for row, weight in changes.items() if weight < 0} == before - now, number


def version(folder: Path) -> int:
    """The newest version, by the names of the manifests."""
    names = [file.name for file in (folder / "state").iterdir() if file.name.endswith(".json")]
    return max((int(name.removeprefix("manifest-").removesuffix(".json")) for name in names), default=0)


def version_in_driver(folder: Path) -> int:
    """The version of a state in the driver, which no process has open."""
    with Workspace.open(folder / "state" / "workspace", read_only=True) as workspace:
        return max((row["version"] for row in workspace[ACCOUNT].table.to_pylist()), default=1)


@pytest.mark.in_turns
def test_an_application_killed_at_every_point_applies_each_batch_once(
    tmp_path: Path, drivers: Drivers
) -> None:
    """Also before there is a first version, and while old versions are cleaned up."""
    killed_first = drivers.run("apply", tmp_path, MANY, "commit: before the manifest is written")
    assert (killed_first.code, version(tmp_path)) == (-signal.SIGKILL, 0)
    for point in IN_BATCHES:
        was = version(tmp_path)
        # The state is made at first, which passes the points of a commit too.
        fault = f"{point}:2" if was == 0 and point.startswith("commit") else point
        done = drivers.run("apply", tmp_path, MANY, fault)
        assert done.code == -signal.SIGKILL, (point, done.said)
        committed = {"commit: manifest moved", "batch: committed, not cleaned"}
        assert version(tmp_path) == max(was, 1) + (point in committed), point
    done = drivers.run("apply", tmp_path, MANY, "clean: manifests deleted, data not")
    assert done.code == -signal.SIGKILL, done.said
    done = drivers.run("apply", tmp_path, MANY, own_workers=True)
    assert done.code == 0, done.said
    check(tmp_path, MANY)


@pytest.mark.in_turns
def test_a_driver_that_has_the_state_is_killed_at_every_point(tmp_path: Path, drivers: Drivers) -> None:
    """Also while the state is made: what was begun goes."""
    for fault in ("folder: change on disk, not told:2", "folder: data written, no manifest"):
        done = drivers.run("driver", tmp_path, MANY, fault)
        assert done.code == -signal.SIGKILL, done.said
    version = 1
    for point, is_applied in IN_DRIVER.items():
        done = drivers.run("driver", tmp_path, MANY, point if version > 1 else f"{point}:2")
        assert done.code == -signal.SIGKILL, (point, done.said)
        version += is_applied + (version == 1)
        assert version_in_driver(tmp_path) == version, point
    done = drivers.run("driver", tmp_path, MANY)
    assert done.code == 0, done.said
    check(tmp_path, MANY)


@pytest.mark.in_turns
def test_a_driver_is_killed_amid_a_move_to_the_executors(tmp_path: Path, drivers: Drivers) -> None:
    """Before the manifest is in place, and behind that: nothing is left of the workspace then."""
    for point, is_there in (
        ("commit: manifest written, not moved", False),
        ("commit: manifest moved", True),
    ):
        done = drivers.run("moved", tmp_path, SOME, point)
        assert done.code == -signal.SIGKILL, done.said
        assert (tmp_path / "state" / "workspace" / "lock").exists()
        assert (version(tmp_path) == 2) == is_there
    done = drivers.run("moved", tmp_path, SOME)
    assert done.code == 0, done.said
    check(tmp_path, SOME, first=2)


@pytest.mark.in_turns
def test_nothing_is_left_of_a_batch_whose_workers_all_die(tmp_path: Path, drivers: Drivers) -> None:
    """A task is tried twice."""
    done = drivers.run("apply", tmp_path, SOME, "worker: written, not reported")
    assert (done.code, version(tmp_path)) == (1, 0), done.said
    assert not [file for file in (tmp_path / "state").rglob("*") if file.is_file()]


@pytest.mark.in_turns
def test_nothing_is_left_of_an_interrupted_batch(tmp_path: Path, drivers: Drivers) -> None:
    """By Ctrl-C, and of one of a stream that is stopped."""
    done = drivers.run("interrupted", tmp_path, SOME)
    assert done.code == 0, done.said
    check(tmp_path, SOME)


@pytest.mark.in_turns
@pytest.mark.parametrize("point", AT_WORKERS)
def test_workers_that_are_killed_are_replaced(tmp_path: Path, drivers: Drivers, point: str) -> None:
    """Spark tries a task again."""
    marker = tmp_path / "killed"
    done = drivers.run("apply", tmp_path, SOME, f"{point}:2", marker)
    assert done.code == 0, done.said
    assert marker.exists(), "a worker was killed"
    check(tmp_path, SOME)


@pytest.mark.in_turns
@pytest.mark.parametrize(
    ("mode", "fault"),
    [("stream", "commit: manifest moved:3"), ("driver-stream", "batch: committed, not cleaned:2")],
)
def test_a_stream_goes_on_from_its_checkpoint(
    tmp_path: Path, drivers: Drivers, mode: str, fault: str
) -> None:
    """Spark does not know yet of the batch that was committed, and gives it again."""
    (tmp_path / "incoming").mkdir()
    for number, changes in enumerate(batches(SOME)):
        file = tmp_path / "incoming" / f"{number:02}.parquet"
        pq.write_table(change_table(changes), file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # files are taken by their age
    done = run_whole(mode, tmp_path, SOME, fault)
    assert done.code == -signal.SIGKILL, done.said
    done = drivers.run(mode, tmp_path, SOME)
    assert done.code == 0, done.said
    check(tmp_path, SOME)
