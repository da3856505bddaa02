"""The machine stops between any two steps on the disk: what comes back is what was there, and nothing half.

A crash loses or mixes up what was not synced (:mod:`support.disks`).  After it there is the state of the last
call that had returned, or of the one that was going on; and whoever kept a version from before the crash,
with the rows of a head then, is told what leads from them to the rows that came back.
"""

from __future__ import annotations

import itertools
import random
import shutil
import threading
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from maintenance import Workspace
from maintenance.durable.records import FORMAT
from support.disks import ModelDisk, put
from support.head_rows import Rows, applied
from support.kept_lives import Expected, life


def put_folder(files: dict[Path, bytes], before: Path, after: Path) -> None:
    """What a crash left, with the folder of data, which is made before all else."""
    (after / "data").mkdir(parents=True)
    put(files, before, after)


def check_feed(workspace: Workspace, version: int, then: Rows, rows: Rows) -> None:
    """What is told of a head since a version, by which it had the rows ``then``, leads to ``rows``."""
    change = workspace.changes_since(version, "tri")
    assert change.version == workspace.version
    assert applied(then, change.table) == rows


def check_feed_one_by_one(workspace: Workspace, version: int, then: Rows, rows: Rows) -> None:
    """The same, commit by commit."""
    for each in workspace.follow("tri", since=version, timeout=0):
        assert version < each.version <= workspace.version
        version, then = each.version, applied(then, each.table)
    assert then == rows


class Crash(NamedTuple):
    """``done``: steps that had returned; ``cursor``: a version from before, with the rows of ``tri`` then."""

    label: str
    done: int
    cursor: tuple[int, Rows] | None
    files: dict[Path, bytes]


@pytest.mark.in_turns
@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_each_step_loses_no_change_that_was_made(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "first"
    expected = [Expected()]
    done = 0
    cursors: list[tuple[int, Rows]] = []
    crashes: list[Crash] = []

    def crash(label: str) -> None:
        cursor = chance.choice((cursors[-1], chance.choice(cursors))) if cursors else None
        crashes.append(Crash(label, done, cursor, disk.left(chance)))

    disk = ModelDisk(crash)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = Workspace.open(folder)
        for step, after in life(chance):
            expected.append(after)
            step(workspace)
            done = len(expected) - 1
            workspace["edge"]
            if "tri" in after.strategies:
                cursors.append((workspace.version, after.head("tri")))
        workspace.close()
    expected[-1].check(workspace)

    assert len(crashes) > 100
    assert {label for label, *_ in crashes} == {
        *("created", "half written", "written", "before a sync", "synced", "before a rename", "renamed"),
        *("before the sync of a folder", "synced a folder", "deleted"),
    }
    alike: dict[frozenset[tuple[Path, bytes]], list[Crash]] = {}
    for each in crashes:
        alike.setdefault(frozenset(each.files.items()), []).append(each)
    checks = itertools.cycle((check_feed_one_by_one, check_feed, check_feed, check_feed))
    for number, same in enumerate(alike.values()):
        left = tmp_path / f"left-{number}"
        put_folder(same[0].files, folder, left)
        with Workspace.open(left) as again:
            for label, done, cursor, _ in same:
                met = [state for state in expected[done : done + 2] if state.is_met_by(again)]
                assert met, f"after {label!r}, step {done}: {again.relations}"
                if cursor is not None:
                    next(checks)(again, *cursor, met[0].head("tri"))
            met[0].check(again)
            if "edge" in again:
                with again.transaction() as tx:
                    tx.insert("edge", [(9, 9)])
                assert (9, 9) in again["edge"]


def test_a_crash_while_a_copy_is_written_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    chance = random.Random(3)
    workspace = Workspace()
    steps = list(life(chance, 8))
    for step, _ in steps:
        if step is not Workspace.checkpoint:
            step(workspace)
    expected = steps[-1][1]
    crashes: list[tuple[str, dict[Path, bytes]]] = []
    disk = ModelDisk(lambda label: crashes.append((label, disk.left(chance))))
    with mock.patch.object(Workspace, "_disk", disk):
        workspace.save(tmp_path / "copy")
    crashes += [("returned", disk.left(chance)) for _ in range(5)]
    whole = set()
    for number, (label, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        put(files, tmp_path, left)
        if (left / "copy").exists():
            whole.add(label)
            expected.check(Workspace.load_from(left / "copy"))
        else:
            assert label != "returned"
            assert all(path.name.startswith(".copy-") for path in left.glob("*"))
    assert len(crashes) > 30 and {"renamed", "returned"} <= whole


@pytest.mark.parametrize("older", range(1, FORMAT))
def test_a_crash_while_a_folder_becomes_one_of_the_newest_format(tmp_path: Path, older: int) -> None:
    chance = random.Random(older)
    folder = tmp_path / "first"
    shutil.copytree(Path(__file__).parent / f"format_{older}", folder)
    crashes: list[tuple[str, dict[Path, bytes]]] = []
    disk = ModelDisk(lambda label: crashes.append((label, disk.left(chance))))
    disk.find(folder)
    with mock.patch.object(Workspace, "_disk", disk):
        Workspace.open(folder).close()
    assert {"half written", "before a rename", "renamed"} <= {label for label, _ in crashes}
    for number, (label, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        put_folder(files, folder, left)
        with Workspace.open(left) as again:
            assert set(again["edge"]) == {(2, 3), (1, 3), (3, 4), (2, 4), (1, 4)}, label
            assert set(again["tri"]) == {(1, 3, 4), (2, 3, 4)}, label


@pytest.mark.parametrize("durability", ["commit", "interval", "none"])
def test_of_threads_that_commit_together_what_returned_is_kept(tmp_path: Path, durability: str) -> None:
    """Without waiting for the disk, what is left are the first changes: all that had been synced, or more."""
    chance = random.Random(5)
    folder = tmp_path / "first"
    lock = threading.Lock()
    order: list[tuple[int, int]] = []
    returned: set[tuple[int, int]] = set()
    crashes: list[tuple[set[tuple[int, int]], int, dict[Path, bytes]]] = []

    def crash(label: str) -> None:
        if len(order) > 3 and chance.random() < 0.5:
            with lock:
                certain = set(returned) if durability == "commit" else set()
                crashes.append((certain, store._journal.synced - installed, disk.left(chance)))

    disk = ModelDisk(crash)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = Workspace.open(folder, durability=durability, interval=0.002)  # type: ignore[arg-type]
        store = workspace._published.store
        assert store is not None
        workspace.load("edge", [(0, 0)], columns=["x", "y"])
        workspace.install("back(b, a) <- edge(a, b).")
        installed = store.number
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
    for number, (certain, synced, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        put_folder(files, folder, left)
        with Workspace.open(left, read_only=True) as again:
            there = {(a, b) for a, b in again["edge"]} - {(0, 0)} if "edge" in again else set()
            assert there == set(order[: len(there)])
            assert certain <= there
            assert len(there) >= synced
