"""Appending to a journal: what a failing disk does to it, and who waits for whom."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable.journal import FILES, Journal
from maintenance.durable.records import read_records
from maintenance.store.disk import Disk, DiskFile
from support.disks import FailingDisk
from support.kept_lives import insert, with_edges, without_image


def contents(folder: Path, first: int = 1) -> list[bytes]:
    path = folder / FILES.name(first)
    read = read_records(path.read_bytes(), path)
    assert read is not None and not read.is_torn
    return [bytes(record.content) for record in read.records]


def test_records_stand_in_their_order_and_a_new_file_goes_on(tmp_path: Path) -> None:
    journal = Journal.begun(Disk(), tmp_path, 1, 0)
    assert [journal.append(content, content) for content in (b"a", b"b")] == [1, 2]
    assert (journal.last, journal.synced) == (b"b", 0)
    journal.rotate()
    assert (journal.synced, journal.append(b"c", None)) == (2, 3)
    journal.close()
    assert (contents(tmp_path), contents(tmp_path, 3)) == ([b"a", b"b"], [b"c"])


def test_a_tail_is_cut_off_and_the_journal_goes_on(tmp_path: Path) -> None:
    journal = Journal.begun(Disk(), tmp_path, 1, 0)
    journal.append(b"a", None)
    journal.close()
    path = tmp_path / FILES.name(1)
    path.write_bytes(path.read_bytes() + b"half a record" * 10)  # longer than what is written over it
    read = read_records(path.read_bytes(), path)
    assert read is not None and read.is_torn
    journal = Journal.continued(Disk(), path, read)
    assert journal.append(b"b", None) == 2
    journal.close()
    assert contents(tmp_path) == [b"a", b"b"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_write_that_fails_leaves_the_journal_as_it_was(tmp_path: Path, error: int) -> None:
    disk = FailingDisk(error)
    journal = Journal.begun(disk, tmp_path, 1, 0)
    journal.append(b"a", "a")
    disk.fails = lambda number, kind: kind == "write"
    with pytest.raises(errors.DurabilityError, match="the change can't be written, and was not made"):
        journal.append(b"b" * 100, "b")
    assert (journal.last, journal.number) == ("a", 1)
    disk.fails = lambda number, kind: False
    assert journal.append(b"c", None) == 2
    journal.close()
    assert contents(tmp_path) == [b"a", b"c"]


def test_where_the_half_of_a_write_can_not_be_taken_away_nothing_is_appended_any_more(tmp_path: Path) -> None:
    disk = FailingDisk(errno.EIO)
    journal = Journal.begun(disk, tmp_path, 1, 0)
    disk.fails = lambda number, kind: kind in ("write", "truncate")
    with pytest.raises(errors.DurabilityError):
        journal.append(b"a", None)
    disk.fails = lambda number, kind: False
    with pytest.raises(errors.ClosedError, match="takes no changes; those after change 0 were not kept"):
        journal.append(b"a", None)
    journal.close()


def test_a_sync_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    disk = FailingDisk(errno.EIO)
    journal = Journal.begun(disk, tmp_path, 1, 0)
    journal.append(b"a", None)
    journal.wait(1)
    journal.append(b"b", None)
    disk.fails = lambda number, kind: kind == "sync"
    with pytest.raises(errors.ClosedError, match="Input/output error"):
        journal.wait(2)
    disk.fails = lambda number, kind: False
    journal.wait(1)
    for call in (lambda: journal.wait(2), lambda: journal.append(b"c", None), journal.rotate):
        with pytest.raises(errors.ClosedError):
            call()
    journal.close()
    assert contents(tmp_path) == [b"a"]


class SlowFile(DiskFile):
    """Waits in each sync until it may end."""

    def __init__(self, disk: SlowDisk, path: Path) -> None:
        super().__init__(path, os.O_RDWR)
        self._disk = disk

    def sync(self) -> None:
        self._disk.began.release()
        self._disk.may_end.acquire()
        self._disk.syncs += 1
        super().sync()


class SlowDisk(Disk):
    """Counts the syncs of files that are opened."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Semaphore(0), threading.Semaphore(1)
        self.syncs = 0

    def open(self, path: Path) -> DiskFile:
        return SlowFile(self, path)


def test_those_who_wait_at_the_same_time_share_a_sync(tmp_path: Path) -> None:
    Journal.begun(Disk(), tmp_path, 1, 0).close()
    path = tmp_path / FILES.name(1)
    read = read_records(path.read_bytes(), path)
    assert read is not None
    disk = SlowDisk()
    journal = Journal.continued(disk, path, read)
    disk.began.acquire()
    journal.append(b"first", None)
    threads = [threading.Thread(target=journal.wait, args=(1,))]
    threads[0].start()
    assert disk.began.acquire(timeout=60)  # the first one waits for the disk
    for number in range(2, 10):
        journal.append(b"other", None)
        threads.append(threading.Thread(target=journal.wait, args=(number,)))
        threads[-1].start()
    disk.may_end.release(100)
    for thread in threads:
        thread.join(60)
    assert (journal.synced, disk.syncs) == (9, 3)  # when it was opened, for the first, for the eight
    journal.close()


def test_a_file_that_was_begun_and_not_gone_on_with_is_left_out(tmp_path: Path) -> None:
    """As where a new one could not be taken into use: the old one goes on."""
    workspace = with_edges(tmp_path / "ws")
    store = workspace._published.store
    assert store is not None
    Journal.begun(Disk(), tmp_path / "ws", store.number + 1, store.chain).close()
    insert(workspace, (3, 4))
    insert(workspace, (4, 5))
    assert len(Workspace.open(tmp_path / "ws", read_only=True)["edge"]) == 5
    workspace.checkpoint()
    insert(workspace, (5, 6))
    workspace.close()
    without_image(tmp_path / "ws")
    assert len(Workspace.open(tmp_path / "ws", read_only=True)["edge"]) == 6
