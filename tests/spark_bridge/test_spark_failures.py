"""differential: a maintained join whose application and workers are killed, against recomputation.

The application of ``failing_application.py`` is started again and again on one state, each time to be killed
with SIGKILL at the next of the fault points; it gives all batches anew each time.  Most of its drivers are at
one Java; the last of those killed, which has to go on from what they left, and the one that is killed amid a
stream, whose queries have to end with it, are whole applications.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from support.paths import TESTS, child_environment

pytest.importorskip("pyspark")

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

import lftj
from spark_bridge.state.fault_points import MARKER, POINTS, VARIABLE
from support.failing_application import (
    MASTER,
    RULE,
    Edge,
    batches,
    change_table,
    edge_table,
    first_edges,
)
from support.rows import rows_of
from support.spark_session import SETTINGS, set_environment
from support.transactions import after

SCRIPT = TESTS / "support" / "failing_application.py"
SECONDS = 1800
"""For an application that hangs: on a loaded machine that compiles all kernels one takes minutes."""

AT_WORKERS = [point for point in POINTS if point.startswith("worker")]
MANY, SOME = 14, 6
"""Batches: such that old versions are cleaned up, and such that there are some after a failure."""

IN_BATCHES = [point for point in POINTS if point.startswith(("batch", "commit"))]

Rows = set[tuple[int, ...]]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    """For one driver after another.  No other test is at it: callbacks of a stream go to the last driver."""
    set_environment()
    conf = SparkConf(loadDefaults=False).setAll([*SETTINGS.items()])
    gateway = launch_gateway(conf.setMaster(MASTER).setAppName("failing application"))
    yield gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends with that
    gateway.proc.wait(SECONDS)


def run(
    mode: str,
    folder: Path,
    n_batches: int,
    fault: str = "",
    once: Path | None = None,
    at: JavaGateway | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the application, to be killed at a fault point; a worker only once if there is a marker file.

    ``at``: the gateway of the Java that it uses, instead of its own.
    """
    own = {name: value for name, value in child_environment().items() if not name.startswith("PYSPARK_")}
    own |= {VARIABLE: fault} if fault else {}
    own |= {MARKER: str(once)} if once else {}
    if at is not None:
        its = at.gateway_parameters
        own |= {"PYSPARK_GATEWAY_PORT": str(its.port), "PYSPARK_GATEWAY_SECRET": its.auth_token}
    command = [sys.executable, str(SCRIPT), mode, str(folder), str(n_batches)]
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=SECONDS, cwd=TESTS)


def head_of(edges: set[Edge]) -> Rows:
    database = lftj.Database()
    database.load("e", edge_table(edges))
    return set(rows_of(database.query(RULE, threads=1)))


def heads(n_batches: int) -> list[Rows]:
    """The head at first and after each batch, computed anew."""
    edges = {"e": {*first_edges()}}
    found = [head_of(edges["e"])]
    for changes in batches(n_batches):
        edges = after(edges, [("e", edge, weight) for edge, weight in changes])
        found.append(head_of(edges["e"]))
    return found


def check(folder: Path, n_batches: int) -> None:
    """Each batch was applied once, what was delivered is what it changed, and no file is left over."""
    expected = heads(n_batches)
    assert len(set(map(frozenset, expected))) > n_batches // 2, "batches that change the head"
    assert set(rows_of(feather.read_table(str(folder / "head.arrow")))) == expected[-1]
    left = json.loads((folder / "left.json").read_text())
    assert left["version"] == 1 + n_batches
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


def test_an_application_killed_at_every_point_applies_each_batch_once(
    tmp_path: Path, java: JavaGateway
) -> None:
    """Also before there is a first version, and while old versions are cleaned up."""
    killed_first = run("apply", tmp_path, MANY, "commit: before the manifest is written", at=java)
    assert (killed_first.returncode, version(tmp_path)) == (-signal.SIGKILL, 0)
    for point in IN_BATCHES:
        was = version(tmp_path)
        # The state is made at first, which passes the points of a commit too.
        fault = f"{point}:2" if was == 0 and point.startswith("commit") else point
        done = run("apply", tmp_path, MANY, fault, at=java)
        assert done.returncode == -signal.SIGKILL, (point, done.stderr[-3000:])
        committed = {"commit: manifest moved", "batch: committed, not cleaned"}
        assert version(tmp_path) == max(was, 1) + (point in committed), point
    done = run("apply", tmp_path, MANY, "clean: manifests deleted, data not", at=java)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    done = run("apply", tmp_path, MANY)
    assert done.returncode == 0, done.stderr[-3000:]
    check(tmp_path, MANY)


def test_nothing_is_left_of_a_batch_whose_workers_all_die(tmp_path: Path, java: JavaGateway) -> None:
    """A task is tried four times."""
    done = run("apply", tmp_path, SOME, "worker: written, not reported", at=java)
    assert (done.returncode, version(tmp_path)) == (1, 0), done.stderr[-3000:]
    assert not [file for file in (tmp_path / "state").rglob("*") if file.is_file()]


def test_nothing_is_left_of_an_interrupted_batch(tmp_path: Path, java: JavaGateway) -> None:
    """By Ctrl-C, and of one of a stream that is stopped."""
    done = run("interrupted", tmp_path, SOME, at=java)
    assert done.returncode == 0, done.stderr[-3000:]
    check(tmp_path, SOME)


@pytest.mark.parametrize("point", AT_WORKERS)
def test_workers_that_are_killed_are_replaced(tmp_path: Path, java: JavaGateway, point: str) -> None:
    """Spark tries a task again."""
    marker = tmp_path / "killed"
    done = run("apply", tmp_path, SOME, f"{point}:2", marker, at=java)
    assert done.returncode == 0, done.stderr[-3000:]
    assert marker.exists(), "a worker was killed"
    check(tmp_path, SOME)


def test_a_stream_goes_on_from_its_checkpoint(tmp_path: Path, java: JavaGateway) -> None:
    """Spark does not know yet of the batch that was committed, and gives it again."""
    (tmp_path / "incoming").mkdir()
    for number, changes in enumerate(batches(SOME)):
        file = tmp_path / "incoming" / f"{number:02}.parquet"
        pq.write_table(change_table(changes), file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # files are taken by their age
    done = run("stream", tmp_path, SOME, "commit: manifest moved:4")
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    done = run("stream", tmp_path, SOME, at=java)
    assert done.returncode == 0, done.stderr[-3000:]
    check(tmp_path, SOME)
