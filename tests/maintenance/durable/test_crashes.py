"""The machine stops between any two steps on the disk: what comes back is what was there, and nothing half.

A crash loses or mixes up what was not synced (:mod:`support.disks`).  After it there is the state of the last
call that had returned, or of the one that was going on.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from unittest import mock

import pytest

from maintenance import Workspace
from support.disks import ModelDisk
from support.kept_lives import Expected, life


def put(files: dict[Path, bytes], before: Path, after: Path) -> None:
    (after / "data").mkdir(parents=True)
    for path, content in files.items():
        (after / path.relative_to(before)).write_bytes(content)


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_each_step_loses_no_change_that_was_made(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "first"
    expected = [Expected()]
    done = 0
    crashes: list[tuple[str, int, dict[Path, bytes]]] = []

    def crash(label: str) -> None:
        crashes.append((label, done, disk.left(chance)))

    disk = ModelDisk(crash)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = Workspace.open(folder)
        for step, after in life(chance):
            expected.append(after)
            step(workspace)
            done = len(expected) - 1
            workspace["edge"]
        workspace.close()
    expected[-1].check(workspace)

    assert len(crashes) > 100
    for number, (label, done, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        put(files, folder, left)
        with Workspace.open(left) as again:
            possible = expected[done : done + 2]
            met = [state for state in possible if state.is_met_by(again)]
            assert met, f"after {label!r}, step {done}: {again.relations}"
            met[0].check(again)
            if "edge" in again:
                with again.transaction() as tx:
                    tx.insert("edge", [(9, 9)])
                assert (9, 9) in again["edge"]


@pytest.mark.parametrize("durability", ["commit", "none"])
def test_of_threads_that_commit_together_what_returned_is_kept(tmp_path: Path, durability: str) -> None:
    """Without waiting for the disk, what is left are the first changes, however many."""
    chance = random.Random(5)
    folder = tmp_path / "first"
    lock = threading.Lock()
    order: list[tuple[int, int]] = []
    returned: set[tuple[int, int]] = set()
    crashes: list[tuple[set[tuple[int, int]], dict[Path, bytes]]] = []

    def crash(label: str) -> None:
        if len(order) > 3 and chance.random() < 0.5:
            with lock:
                crashes.append((set(returned), disk.left(chance)))

    disk = ModelDisk(crash)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = Workspace.open(folder, durability=durability)  # type: ignore[arg-type]
        workspace.load("edge", [(0, 0)], columns=["x", "y"])
        workspace.install("back(b, a) <- edge(a, b).")
        workspace.subscribe(
            "back", lambda table: order.append((table["a"][0].as_py(), table["b"][0].as_py()))
        )

        def work(thread: int) -> None:
            for number in range(12):
                with workspace.transaction() as tx:
                    tx.insert("edge", [(thread, number)])
                with lock:
                    returned.add((thread, number))

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        workspace.close()

    assert len(order) == 36 and len(crashes) > 10
    for number, (certain, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        put(files, folder, left)
        with Workspace.open(left, read_only=True) as again:
            there = {(a, b) for a, b in again["edge"]} - {(0, 0)} if "edge" in again else set()
            assert there == set(order[: len(there)])
            assert durability == "none" or certain <= there
