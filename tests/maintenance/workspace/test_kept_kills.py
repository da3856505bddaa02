"""A process that keeps a workspace is killed (SIGKILL) at each point of a commit and of a checkpoint.

At random moments, and far more often, ``python -m bench.kills`` does it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from maintenance import Workspace
from maintenance.durable.reading import read_existing
from maintenance.store.fault_points import FOLDER_POINTS
from support.head_rows import Rows, applied
from support.kept_lives import EDGES, insert, with_edges
from support.paths import child_environment

SCRIPT = """
import os, sys
from maintenance import Workspace
from support.kept_lives import insert
for line in sys.stdin.read().splitlines():
    folder, fault = line.split("|")
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.environ["LFTJ_FAULT"] = fault
        workspace = Workspace.open(folder)
        for number in range(3):
            insert(workspace, (number, 100))
            os.write(tell, b"committed")
            workspace.checkpoint()
        os._exit(0)
    os.close(tell)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(len(os.read(told, 1000)) // len(b"committed"), code, flush=True)
"""
"""For each line of its input a process of its own, which has the modules: to load them takes longest."""

FAULTS = [f"{point}:{time}" for point in FOLDER_POINTS for time in (1, 3)]
NOT_REACHED = f"{FOLDER_POINTS[0]}:4"


class Killed(NamedTuple):
    """``version``, ``triangles``: before; ``returned``: so many commits did."""

    folder: Path
    version: int
    triangles: Rows
    returned: int
    code: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Killed]:
    """By fault a folder, and how the process ended that made three changes and three checkpoints there."""
    folders = {fault: tmp_path_factory.mktemp("killed") / "ws" for fault in [*FAULTS, NOT_REACHED]}
    before: dict[str, tuple[int, Rows]] = {}
    for fault, folder in folders.items():
        with with_edges(folder) as workspace:
            before[fault] = workspace.version, set(workspace["tri"])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=child_environment(),
        input="".join(f"{folder}|{fault}\n" for fault, folder in folders.items()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
    return {
        fault: Killed(folders[fault], *before[fault], *figures)
        for fault, figures in zip(folders, told, strict=True)
    }


@pytest.mark.in_turns
@pytest.mark.parametrize("fault", FAULTS)
def test_killed_at_any_point_nothing_that_returned_is_lost(killed: dict[str, Killed], fault: str) -> None:
    folder, version, triangles, returned, code = killed[fault]
    time = int(fault[-1])
    assert (code, returned) == (-signal.SIGKILL, time - 1 if "change" in fault else time)
    with Workspace.open(folder) as again:
        # What was written, and not synced, the system has: the machine did not stop.
        assert set(again["edge"]) == {*EDGES, *((number, 100) for number in range(time))}
        assert applied(triangles, again.changes_since(version, "tri").table) == set(again["tri"])
        again.verify()
        insert(again, (7, 100))
        again.checkpoint()
    manifest = read_existing(folder).manifest
    assert [path.name for path in folder.glob("manifest-*")] == [f"manifest-{manifest.number:020d}.json"]
    assert {path.name for path in (folder / "data").iterdir()} == manifest.files
    assert (7, 100) in Workspace.open(folder, read_only=True)["edge"]


def test_a_point_that_is_not_reached_kills_nobody(killed: dict[str, Killed]) -> None:
    assert (killed[NOT_REACHED].returned, killed[NOT_REACHED].code) == (3, 0)
