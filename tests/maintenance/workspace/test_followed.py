"""What heads did since a version: in memory, from the journal, and by those who wait for it.

The reference are the rows of the head at each version, worked out on sets of tuples without the engine.
"""

from __future__ import annotations

import errno
import pickle
import random
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.workspace import follower, recovery
from maintenance.workspace.folder import KeptFolder
from support.disks import FailingDisk
from support.head_rows import Rows, applied
from support.kept_lives import EDGES, TRIANGLES, Expected, insert, life, with_edges, without_image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


def in_memory(**options: int) -> Workspace:
    workspace = Workspace(**options)  # type: ignore[arg-type]
    workspace.load("edge", EDGES, columns=["x", "y"])
    workspace.install(TRIANGLES)
    return workspace


def check_feed(workspace: Workspace, head: str, history: dict[int, Rows]) -> None:
    """Changes since each version, at once and one by one, are what the history of a head's rows says."""
    now = workspace.version
    for version, rows in history.items():
        change = workspace.changes_since(version, head)
        assert (change.version, change.head) == (now, head)
        assert applied(rows, change.table) == history[now]
        known = [number for number in history if number >= version]
        steps = {
            number: history[number]
            for before, number in pairwise(known)
            if history[number] != history[before]
        }
        given = {}
        for each in workspace.follow(head, since=version, timeout=0):
            rows = given[each.version] = applied(rows, each.table)
        assert given == steps


# -- what changed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["in memory", "in a folder"])
def test_changes_since_each_version(folder: Path, kept: str) -> None:
    chance = random.Random(7)
    workspace = in_memory() if kept == "in memory" else with_edges(folder)
    expected = Expected({"edge": frozenset(EDGES)})
    history: dict[int, Rows] = {workspace.version: expected.head("tri")}
    for number in range(25):
        before = expected.relations["edge"]
        edges: set[tuple[int, int]] = set(before)
        for _ in range(3):
            edges ^= {(chance.randrange(6), chance.randrange(6))}
        rows = sorted(edges ^ before)
        weights = [1 if row in edges else -1 for row in rows]
        columns = {"x": [x for x, _ in rows], "y": [y for _, y in rows], "weight": weights}
        if number % 5 == 4:  # a batch is one version
            workspace.apply_many({"edge": {**columns, "txn": list(range(len(rows)))}})
        else:
            with workspace.transaction() as tx:
                tx.apply("edge", columns)
        expected = expected.with_rows("edge", frozenset(edges))
        if rows:
            assert workspace.version == max(history) + 1
        history[workspace.version] = expected.head("tri")
    insert(workspace, next(iter(expected.relations["edge"])))  # which is there already
    check_feed(workspace, "tri", history)


@pytest.mark.parametrize("seed", range(2))
def test_lives_whose_changes_are_asked_for_behind_openings(folder: Path, seed: int) -> None:
    """Closed or left open, with images or without, through checkpoints, strategies and other rules."""
    chance = random.Random(seed)
    workspace = Workspace.open(folder)
    history: dict[int, Rows] = {}
    for step, expected in life(chance, 24):
        step(workspace)
        if "tri" in expected.strategies:
            history[workspace.version] = expected.head("tri")
        if len(history) > 1 and chance.random() < 0.15:
            if chance.random() < 0.5:
                workspace.close()
            else:  # as if the process had ended
                assert workspace._published.store is not None and isinstance(workspace._folder, KeptFolder)
                workspace._folder.checkpoints.end()
                workspace._published.store._lock.release()
            if chance.random() < 0.5:
                without_image(folder)
            some = {version: history[version] for version in chance.sample(sorted(history), 2)}
            reader = Workspace.open(folder, read_only=True)
            check_feed(
                reader, "tri", dict(sorted({**some, max(history): history[max(history)]}.items())[-1:])
            )
            assert applied(history[min(some)], reader.changes_since(min(some), "tri").table) == expected.head(
                "tri"
            )
            workspace = Workspace.open(folder, checkpoint_bytes=chance.choice((1, 1 << 30)))
    check_feed(workspace, "tri", history)
    workspace.close()


def test_heads_over_heads_functions_sums_and_texts_from_the_journal(folder: Path) -> None:
    rows = [("a", "b", 1.5), ("b", "c", 0.1), ("a", "c", 7.25)]
    with Workspace.open(folder) as workspace:
        workspace.load("edge", rows, columns=["x", "y", "w"])
        workspace.install("two(x, z) <- edge(x, y, _), edge(y, z, _).", "delta")
        workspace.install(
            "path(x, y) <- edge(x, y, _). path(x, z) <- path(x, y), edge(y, z, _)."
            " far(x) <- path(x, y), !two(x, y). total[x] = sum(w), n[x] = count() <- edge(x, _, w)."
            " all(sum(w), max(y)) <- edge(_, y, w)."
        )
        start = workspace.version
        before = {head: set(workspace[head]) for head in workspace.heads}
        for came, went in (("cd", "ab"), ("de", "bc"), ("ab", "cd")):
            with workspace.transaction() as tx:
                tx.insert("edge", [(*came, 0.3)])
                tx.erase("edge", [(x, y, w) for x, y, w in rows if x + y == went])
        assert workspace.version == start + 3
        live = {
            head: [(each.version, each.table) for each in workspace.follow(head, start, 0)] for head in before
        }
    with Workspace.open(folder) as again:
        for head, changes in live.items():
            told = [(each.version, each.table) for each in again.follow(head, start, 0)]
            assert [(version, sorted(map(repr, table.to_pylist()))) for version, table in told] == [
                (version, sorted(map(repr, table.to_pylist()))) for version, table in changes
            ]
            assert applied(before[head], again.changes_since(start, head).table) == set(again[head])


# -- versions that can't be asked for -----------------------------------------------------------------


def test_cursors_of_the_future_the_past_and_of_other_rules() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["x", "y"])
    workspace.install(TRIANGLES)
    start = workspace.version
    insert(workspace, (3, 4), (2, 4))
    with pytest.raises(errors.CursorError, match=r"no version 99 of 'tri' yet: the last one is 3"):
        workspace.changes_since(99, "tri")
    with pytest.raises(errors.CursorError, match=r"'tri' was installed, as it is, by version 2") as caught:
        workspace.follow("tri", since=start - 1)
    assert caught.value.oldest == start
    assert pickle.loads(pickle.dumps(caught.value)).oldest == start
    with pytest.raises(errors.UnknownRelationError, match="did you mean 'tri'"):
        workspace.follow("tir")
    with pytest.raises(errors.UnknownRelationError):
        workspace.changes_since(start, "edge")
    workspace.set_strategy("tri", "recompute")
    assert workspace.changes_since(start, "tri").table.num_rows == 1
    workspace.install("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), a < 2.", replace=True)
    with pytest.raises(errors.CursorError, match="by version 5"):
        workspace.changes_since(start, "tri")
    workspace.uninstall("tri")
    with pytest.raises(errors.UnknownRelationError):
        workspace.changes_since(start, "tri")


def test_a_head_is_as_it_was_installed_also_behind_an_opening(folder: Path) -> None:
    with with_edges(folder) as workspace:
        start = workspace.version
        insert(workspace, (3, 4), (2, 4))
        workspace.set_strategy("tri", "recompute")
        insert(workspace, (4, 5), (3, 5))
    with Workspace.open(folder) as workspace:
        assert workspace.changes_since(start, "tri").table.num_rows == 2
        workspace.install("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), a < 2.", replace=True)
        installed = workspace.version
    for _ in range(2):
        with Workspace.open(folder) as workspace:
            for version in (start, installed - 1):
                with pytest.raises(errors.CursorError, match=f"by version {installed}") as caught:
                    workspace.changes_since(version, "tri")
            assert caught.value.oldest == installed
            assert not workspace.changes_since(installed, "tri").table.num_rows
            workspace.checkpoint()


def test_memory_keeps_the_last_changes_and_says_behind_which_version() -> None:
    workspace = in_memory(feed_bytes=10_000)
    workspace.install("back(b, a) <- edge(a, b), a < 0.")
    start = workspace.version
    insert(workspace, (-1, 5))
    for number in range(40):
        insert(workspace, (4 + number, 5 + number), (3 + number, 5 + number))
    feed = workspace._published.feed
    assert 5_000 < feed.nbytes <= 10_000
    with pytest.raises(errors.CursorError, match="feed_bytes") as caught:
        workspace.changes_since(start, "tri")
    assert start < caught.value.oldest < workspace.version - 5
    assert workspace.changes_since(caught.value.oldest, "tri").table.num_rows == workspace.version - (
        caught.value.oldest
    )
    with pytest.raises(errors.CursorError):
        workspace.changes_since(caught.value.oldest - 1, "tri")
    assert not workspace.changes_since(start + 1, "back").table.num_rows  # of which nothing was forgotten
    rows = [(100 + number, 200 + number) for number in range(2_000)]
    insert(workspace, *rows, *((b, a) for a, b in rows), *((a, a) for a, _ in rows))
    assert workspace.changes_since(workspace.version - 1, "tri").table.num_rows > 2_000


def test_nothing_is_kept_before_somebody_asks() -> None:
    workspace = in_memory()
    for number in range(4, 10):
        insert(workspace, (number - 1, number), (number - 2, number))
    feed = workspace._published.feed
    assert feed.nbytes == 0
    with pytest.raises(errors.CursorError, match="oldest version that can be asked for is 8"):
        workspace.changes_since(4, "tri")
    insert(workspace, (9, 10), (8, 10))
    assert workspace.changes_since(8, "tri").table.num_rows == 1


def test_a_folder_keeps_so_much_of_its_journal(folder: Path) -> None:
    with with_edges(folder, feed_bytes=2_000) as workspace:
        start = workspace.version
        versions = []
        for number in range(4, 20):
            insert(workspace, (number - 1, number), (number - 2, number))
            versions.append(workspace.version)
            if number % 2:
                workspace.checkpoint()
    journals = sorted(folder.glob("journal-*"))
    assert sum(path.stat().st_size for path in journals) < 2_000 + 2 * 1_500
    with Workspace.open(folder) as workspace:
        with pytest.raises(
            errors.CursorError, match=r"'tri': .* are not kept any more; the oldest"
        ) as caught:
            workspace.changes_since(start, "tri")
        oldest = caught.value.oldest
        assert versions[0] < oldest < versions[-2]
        assert workspace.changes_since(oldest, "tri").table.num_rows == versions[-1] - oldest
    with with_edges(folder.parent / "none", feed_bytes=0) as workspace:
        insert(workspace, (3, 4))
        workspace.checkpoint()
        assert len(list(workspace.folder.glob("journal-*"))) == 1  # type: ignore[union-attr]


# -- waiting -------------------------------------------------------------------------------------------


def test_who_follows_gets_all_that_threads_commit(folder: Path) -> None:
    workspace = with_edges(folder)
    start = workspace.version
    rows = set(workspace["tri"])

    def work(thread: int) -> None:
        for number in range(thread * 1000, thread * 1000 + 10):
            insert(workspace, (number, -1), (-1, number + 500), (number, number + 500))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(1, 4)]
    feed = workspace.follow("tri")
    for thread in threads:
        thread.start()
    versions = []
    for each in feed:
        rows = applied(rows, each.table)
        versions.append(each.version)
        if len(versions) == 30:
            break
    for thread in threads:
        thread.join()
    assert versions == list(range(start + 1, start + 31))
    assert rows == set(workspace["tri"])
    assert len(rows) == 31
    workspace.close()


def test_a_change_is_done_with_when_the_next_is_asked_for() -> None:
    workspace = in_memory()
    start = workspace.version
    for number in range(4, 8):
        insert(workspace, (number - 1, number), (number - 2, number))
    feed = workspace.follow("tri", since=start, timeout=0)
    seen = []
    with pytest.raises(ZeroDivisionError):
        for each in feed:
            seen.append(each.version)
            if len(seen) == 2:
                raise ZeroDivisionError
    assert feed.version == start + 1
    for each in feed:  # again, from the one that was not done with
        seen.append(each.version)
        if len(seen) == 4:
            break
    assert seen == [start + 1, start + 2, start + 2, start + 3]
    other = workspace.follow("tri", since=feed.version, timeout=0)
    assert [each.version for each in other] == [start + 3, start + 4]
    assert other.version == start + 4
    assert not workspace._published.subscribers.waiting
    insert(workspace, (100, 200))  # which changes no triangle, and need not be looked at again
    assert (list(other), other.version) == ([], start + 5)


@pytest.mark.parametrize("end", ["timeout", "close of the workspace", "close of the loop", "interruption"])
def test_who_waits_is_let_go(end: str) -> None:
    workspace = in_memory()
    start = workspace.version
    feed = workspace.follow("tri", timeout=0.05 if end == "timeout" else 30)
    changes: Iterator[follower.HeadChange] = iter(feed)
    acts = {
        "close of the workspace": workspace.close,
        "close of the loop": feed.close,
    }
    if end == "interruption":
        with (
            mock.patch.object(threading.Condition, "wait", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            next(changes)
        insert(workspace, (3, 4), (2, 4))
        assert next(changes).version == start + 1
        return
    with mock.patch.object(follower, "_LOOK_AGAIN", 0.05):
        timer = threading.Timer(0.1, acts.get(end, lambda: None))
        timer.start()
        assert next(changes, None) is None
        timer.join()
    assert feed.version == start


def test_a_loop_that_waits_is_woken_and_one_that_is_too_slow_is_told() -> None:
    workspace = in_memory(feed_bytes=4_000)
    feed = workspace.follow("tri", timeout=30)
    timer = threading.Timer(0.05, lambda: insert(workspace, (3, 4), (2, 4)))
    arrived = workspace._published.feed.arrived
    woken: list[bool] = []
    wait = arrived.wait
    with mock.patch.object(arrived, "wait", side_effect=lambda seconds: woken.append(wait(30))):
        timer.start()
        first = next(feed)
    timer.join()
    assert woken == [True]
    for number in range(5, 15):
        insert(workspace, (number - 1, number), (number - 2, number))
    with pytest.raises(errors.CursorError):
        next(feed)
    assert feed.version == first.version


def test_what_is_not_on_disk_is_not_told(folder: Path) -> None:
    syncs = [0]

    def fails(number: int, kind: str) -> bool:
        return kind == "sync" and syncs[0] > 0

    disk = FailingDisk(errno.EIO, fails)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(folder)
    start = workspace.version
    insert(workspace, (3, 4), (2, 4))
    syncs[0] = 1
    with pytest.raises(errors.ClosedError):
        insert(workspace, (4, 5), (3, 5))
    assert workspace.version == start + 1
    assert workspace.changes_since(start, "tri").table.num_rows == 1
    feed = workspace.follow("tri", since=start)
    assert next(feed).version == start + 1
    with pytest.raises(errors.ClosedError, match="can't be written any more"):
        next(feed)


# -- reading beside the one who writes -------------------------------------------------------------------


def test_readers_follow_through_checkpoints_loads_and_rules(folder: Path) -> None:
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        other = Workspace.open(folder, read_only=True)
        feed = reader.follow("tri", timeout=0)
        rows = set(reader["tri"])
        for number in range(4, 12):
            insert(writer, (number - 1, number), (number - 2, number))
            if number == 6:
                writer.checkpoint()
            if number == 8:
                writer.load("new", [(1,)], columns=["a"])
                writer.install("one(a) <- new(a).")
                writer.set_strategy("tri", "delta")
            if number % 3 == 0:
                told = list(feed)
                for each in told:
                    rows = applied(rows, each.table)
                assert rows == set(writer["tri"]) == set(reader["tri"])
                assert feed.version == reader.version == writer.version
        assert other.refresh() == writer.version
        for each in (reader, other):
            each.refresh()
            assert each.relations.keys() == writer.relations.keys()
            assert {head: each.strategy_of(head) for head in each.heads} == {"tri": "delta", "one": "auto"}
            assert set(each["tri"]) == set(writer["tri"])
            each.verify()
            with pytest.raises(errors.DurabilityError, match="for reading only"):
                insert(each, (50, 51))
        assert writer.refresh() == writer.version


def test_a_reader_that_was_interrupted_goes_on(folder: Path) -> None:
    with with_edges(folder) as writer:
        for number in range(3):
            reader = Workspace.open(folder, read_only=True)
            start = reader.version
            for each in range(4):
                insert(writer, (10 * number + each, 100), (10 * number + each, 101))
            taken = iter([recovery.Replay.take] * number)

            def take(replay: recovery.Replay, entry: object, taken: Iterator[Any] = taken) -> None:
                next(taken, interrupt)(replay, entry)

            with mock.patch.object(recovery.Replay, "take", take), pytest.raises(KeyboardInterrupt):
                reader.refresh()
            assert reader.version == start + number
            assert reader.refresh() == writer.version
            assert set(reader["edge"]) == set(writer["edge"])
            assert reader.changes_since(start, "tri").version == writer.version


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_reader_waits_for_the_one_who_writes(folder: Path) -> None:
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        timer = threading.Timer(0.1, lambda: insert(writer, (3, 4), (2, 4)))
        timer.start()
        each = next(reader.follow("tri", timeout=30))
        timer.join()
        assert (each.version, each.table.num_rows) == (writer.version, 1)
        timer = threading.Timer(0.05, reader.close)
        timer.start()
        assert list(reader.follow("tri", timeout=30)) == []
        timer.join()


def test_a_reader_that_came_too_late_is_told_to_open_again(folder: Path) -> None:
    with with_edges(folder, feed_bytes=0) as writer:
        reader = Workspace.open(folder, read_only=True)
        for _ in range(2):
            insert(writer, (writer.version, 100))
            writer.checkpoint()
        before = set(reader["edge"])
        with pytest.raises(errors.CursorError, match="not kept any more: open the folder again"):
            reader.refresh()
        assert set(reader["edge"]) == before


def test_a_reader_of_what_was_taken_back_is_told_to_open_again(folder: Path) -> None:
    with with_edges(folder, durability="none") as writer:
        insert(writer, (3, 4))
        store = writer._published.store
        assert store is not None
        place = store._journal._end
        insert(writer, (4, 5))
        reader = Workspace.open(folder, read_only=True)
        store._journal._file.truncate(place)
        with pytest.raises(errors.DurabilityError, match="was taken back"):
            reader.refresh()
        assert (4, 5) in set(reader["edge"])
