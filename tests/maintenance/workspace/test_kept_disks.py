"""When changes of a kept workspace reach the disk, what checkpoints write, and disks that fail."""

from __future__ import annotations

import errno
import random
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable import store as store_module
from maintenance.workspace.folder import KeptFolder
from support.disks import FailingDisk
from support.kept_lives import EDGES, Expected, insert, life, with_edges, without_image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


# -- disks that fail ----------------------------------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize(
    ("error", "lasting"), [(errno.EIO, False), (errno.ENOSPC, True)], ids=["once", "from then on"]
)
def test_a_disk_that_fails_at_any_step_refuses_the_change(tmp_path: Path, error: int, lasting: bool) -> None:
    """The workspace is as before, and usable or closed; opened again, it has what was made."""

    def run(folder: Path, disk: FailingDisk) -> None:
        chance = random.Random(8)
        made = attempted = Expected()
        refused: set[str] = set()
        with mock.patch.object(Workspace, "_disk", disk):
            try:
                workspace = Workspace.open(folder)
            except errors.DurabilityError:
                pass
            else:
                for step, after in life(chance, 6):
                    attempted = after
                    try:
                        step(workspace)
                    except errors.DurabilityError as raised:
                        refused.add(type(raised).__name__)
                        made.check(workspace) if "edge" in workspace else None
                        if step is not Workspace.checkpoint:
                            break
                    else:
                        made = after
                disk.fails = lambda number, kind: False
                if "edge" in workspace and "ClosedError" not in refused:
                    insert(workspace, (5, 50))
                    made = made.with_rows("edge", made.relations["edge"] | {(5, 50)})
                    attempted = made
                workspace.close()
        without_image(folder) if folder.exists() else None
        with Workspace.open(folder) as again:
            (made if made.is_met_by(again) else attempted).check(again)

    disk = FailingDisk(error)
    run(tmp_path / "good", disk)
    for place in range(len(disk.steps)):
        fails = (lambda n, _, k=place: n >= k) if lasting else (lambda n, _, k=place: n == k)
        run(tmp_path / f"{place}", FailingDisk(error, fails))


def test_when_a_sync_fails_readers_stay_at_what_is_on_disk(folder: Path) -> None:
    disk = FailingDisk(errno.EIO)
    heard: list[pa.Table] = []
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(folder)
    workspace.subscribe("tri", heard.append)
    disk.fails = lambda number, kind: kind == "sync"
    transaction = workspace.transaction()
    transaction.insert("edge", [(3, 4), (2, 4)])
    with pytest.raises(errors.ClosedError, match="takes no changes"):
        transaction.commit()
    disk.fails = lambda number, kind: False
    assert sorted(workspace["tri"]) == [(1, 2, 3)]
    assert not heard
    with pytest.raises(errors.TransactionError, match="the commit failed"):
        len(transaction.changes)
    with pytest.raises(errors.ClosedError):
        insert(workspace, (5, 6))
    workspace.close()
    with Workspace.open(folder) as again:
        assert sorted(again["edge"]) == sorted(EDGES)


# -- checkpoints, and how durable ---------------------------------------------------------------------


def syncs_of(disk: FailingDisk) -> int:
    return disk.steps.count("sync") + disk.steps.count("sync folder")


def test_a_commit_syncs_once_and_one_that_changes_nothing_never(folder: Path) -> None:
    disk = FailingDisk(errno.EIO)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(folder)
    disk.steps.clear()
    for number in range(10):
        insert(workspace, (number, 100))
        insert(workspace, (number, 100))
    workspace.apply_many({"edge": {"x": [1, 2], "y": [70, 70], "weight": [1, 1], "txn": [1, 2]}})
    assert disk.steps == ["write", "sync"] * 11
    workspace.close()


def test_threads_that_commit_while_the_disk_is_busy_share_one_sync(folder: Path) -> None:
    """The first sync ends when all have been written: at most one more is for the others, however many."""
    disk = FailingDisk(errno.EIO)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(folder)
    store = workspace._published.store
    assert store is not None
    upto, written = store.number + 8, threading.Event()

    def held(number: int, kind: str) -> bool:
        while kind == "sync" and store.number < upto and not written.wait(0.002):
            pass
        return False

    disk.steps.clear()
    disk.fails = held
    threads = [threading.Thread(target=insert, args=(workspace, (number, 100))) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    written.set()
    assert store.durable == upto
    assert disk.steps.count("write") == 8
    assert 1 <= disk.steps.count("sync") <= 2
    workspace.close()
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 3 + 8


class Clock(threading.Event):
    """In place of what the thread that syncs waits by: it waits until the test says that the time is over."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float | None] = []
        self.waits, self.is_over = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        self.asked.append(timeout)
        self.waits.release()
        self.is_over.acquire()
        return self.is_set()

    def set(self) -> None:
        super().set()
        self.is_over.release()


def test_with_an_interval_all_that_came_is_on_disk_when_it_is_over(folder: Path) -> None:
    """By one sync; no commit waits for one."""
    disk, clock = FailingDisk(errno.EIO), Clock()
    stand_in = SimpleNamespace(Event=lambda: clock, Thread=threading.Thread)
    with mock.patch.object(Workspace, "_disk", disk), mock.patch.object(store_module, "threading", stand_in):
        workspace = with_edges(folder, durability="interval", interval=0.25)
    assert clock.waits.acquire(timeout=60)
    for number in range(3):
        disk.steps.clear()
        for other in range(4):
            insert(workspace, (10 * number, other))
        assert disk.steps == ["write"] * 4
        assert workspace.stats.changes_not_on_disk == 4 + (0 if number else 2)
        clock.is_over.release()
        assert clock.waits.acquire(timeout=60)
        assert disk.steps == ["write"] * 4 + ["sync"]
        assert workspace.stats.changes_not_on_disk == 0
    assert clock.asked == [0.25] * 4
    workspace.close()
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 3 + 12


def test_a_commit_that_is_left_to_the_system_syncs_nothing(folder: Path) -> None:
    disk = FailingDisk(errno.EIO)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(folder, durability="none")
    disk.steps.clear()
    insert(workspace, (3, 4))
    assert disk.steps == ["write"]
    workspace.close()
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 4


def test_a_checkpoint_writes_what_changed_and_cuts_the_journal(folder: Path) -> None:
    with with_edges(folder, feed_bytes=0) as workspace:
        workspace.load("still", [(1,)], columns=["a"])
        workspace.checkpoint()
        before = {path.name for path in (folder / "data").iterdir()}
        for number in range(50):
            insert(workspace, (number, 100))
        workspace.checkpoint()
        after = {path.name for path in (folder / "data").iterdir()}
        assert len(before) == len(after) == 2 and len(before & after) == 1
        (path,) = (folder / "data").glob("edge-*")
        with pa.ipc.open_file(path) as reader:  # which is Arrow's own format
            assert reader.read_all().sort_by("x").equals(workspace["edge"].table.sort_by("x"))
        names = sorted(path.name.split("-")[0] for path in folder.iterdir())
        assert names == ["data", "image", "journal", "lock", "manifest"]
        (journal,) = folder.glob("journal-*")
        assert journal.stat().st_size < 100


def test_checkpoints_come_by_themselves_while_commits_go_on(folder: Path) -> None:
    with with_edges(folder, checkpoint_bytes=2_000, feed_bytes=0, durability="none") as workspace:
        for number in range(300):
            insert(workspace, (number, number + 1))
        assert isinstance(workspace._folder, KeptFolder)
        checkpoints = workspace._folder.checkpoints
        checkpoints.end()
        store = workspace._published.store
        assert store is not None
        assert store._manifest.number > 10
        assert sum(path.stat().st_size for path in folder.glob("journal-*")) < 300 * 600
    with Workspace.open(folder) as again:
        assert len(again["edge"]) == 300 + 1
        again.verify()


def test_a_checkpoint_that_fails_is_tried_again_when_the_journal_has_grown(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with with_edges(folder, checkpoint_bytes=3_000) as workspace:
        assert isinstance(workspace._folder, KeptFolder)
        checkpoints = workspace._folder.checkpoints
        with mock.patch.object(store_module, "write_manifest", side_effect=OSError(errno.ENOSPC, "full")):
            for number in range(15):
                insert(workspace, (number, 100))
                checkpoints.end()
        n_failed = caplog.text.count("it is tried again later")
        assert 1 <= n_failed <= 4
        for number in range(20):
            insert(workspace, (number, 200))
            checkpoints.end()
        store = workspace._published.store
        assert store is not None
        assert store._manifest.number > 0
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 3 + 35


def test_others_commit_and_load_while_a_checkpoint_is_written(folder: Path) -> None:
    """What came behind the cut is in the next journal, and is written by the next checkpoint."""
    with with_edges(folder) as workspace:
        insert(workspace, (3, 4))
        original = store_module.write_rows

        def change() -> None:
            insert(workspace, (4, 5))
            workspace.load("new", [(1,)], columns=["a"])

        def meanwhile(*arguments: object) -> object:
            writing.side_effect = original
            other = threading.Thread(target=change)
            other.start()
            other.join(60)
            assert not other.is_alive(), "it waits for the checkpoint"
            assert (4, 5) in workspace["edge"]
            return original(*arguments)  # type: ignore[arg-type]

        with mock.patch.object(store_module, "write_rows", side_effect=meanwhile) as writing:
            workspace.checkpoint()
    without_image(folder)
    with Workspace.open(folder) as again:
        assert set(again["edge"]) == {*EDGES, (3, 4), (4, 5)}
        assert set(again["new"]) == {(1,)}
        again.checkpoint()
    without_image(folder)
    assert set(Workspace.open(folder, read_only=True)["edge"]) == {*EDGES, (3, 4), (4, 5)}
