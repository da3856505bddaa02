"""Who follows a head while others commit loses nothing: at each line of a commit, and beside threads.

The reference are the rows of the heads at each version, worked out by hand, and what there is in the end.
"""

from __future__ import annotations

import errno
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.workspace import commit_feed, published
from maintenance.workspace.commit import Commit
from support.disks import FailingDisk
from support.head_rows import Rows, applied
from support.injected_lines import AtEachLine
from support.kept_lives import insert, with_edges

KEPT = ["memory", "commit", "interval", "none"]
BACK = "back(b, a) <- edge(a, b)."


def edges_at(place: Path | None, durability: str, **options: object) -> Workspace:
    """A workspace with the edge (0, 0) turned round; ``place`` None: in memory."""
    if durability == "memory":
        workspace = Workspace()
    else:
        assert place is not None
        workspace = Workspace.open(place, durability=durability, **options)  # type: ignore[arg-type]
    workspace.load("edge", [(0, 0)], columns=["a", "b"])
    workspace.install(BACK)
    return workspace


def many(workspace: Workspace, *rows: tuple[int, int]) -> None:
    """Insert rows, each by a transaction of one batch."""
    columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows]}
    workspace.apply_many({"edge": {**columns, "weight": [1] * len(rows), "txn": list(range(len(rows)))}})


def elsewhere(act: Callable[[], object]) -> None:
    """Do something in another thread, which must not wait for this one."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "a reader waits for a commit"
    for error in raised:
        raise error


# -- at each line -----------------------------------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize("change", [insert, many])
@pytest.mark.parametrize("durability", KEPT)
@pytest.mark.parametrize("is_asked_before", [True, False])
def test_a_reader_at_each_line_of_a_commit(
    tmp_path: Path, durability: str, change: Callable[..., None], is_asked_before: bool
) -> None:
    """Whatever version he was shown, changes since an earlier one reach it, with all that led to it.

    ``is_asked_before``: somebody asked for a version before the commit; else readers are the first to ask.
    """
    change(edges_at(None, "memory"), (1, 2))  # what is loaded for the first commit is not traced
    workspace = edges_at(tmp_path / "ws", durability)
    start = workspace._published.shown.number
    if is_asked_before:
        assert workspace.version == start
    history: dict[int, Rows] = {start: {(0, 0)}, start + 1: {(0, 0), (2, 1), (3, 1)}}
    cursors: set[int] = set()
    n_looks = [0]

    def look() -> None:
        n_looks[0] += 1
        snapshot = workspace.snapshot()
        assert set(snapshot["back"]) == history[snapshot.version]
        cursors.add(workspace.version)
        for since in cursors:
            told = workspace.changes_since(since, "back")
            assert told.version >= snapshot.version
            assert applied(history[since], told.table) == history[told.version]
        loop = workspace.follow("back", since=start, timeout=0)
        rows = {each.version: applied(history[start], each.table) for each in loop}
        assert loop.version >= snapshot.version
        assert rows == {version: history[version] for version in range(start + 1, loop.version + 1)}

    in_use = workspace._published.feed._lock.locked  # while a reader works out what was offered others wait
    with AtEachLine([published], lambda: in_use() or elsewhere(look)):
        change(workspace, (1, 2), (1, 3))
    elsewhere(look)
    assert n_looks[0] > 50
    assert cursors == {start, start + 1}
    workspace.close()


def test_a_commit_that_failed_has_told_nothing(tmp_path: Path) -> None:
    """The version that it would have led to is another's: a load's, or a commit's."""
    fails = [False]
    disk = FailingDisk(errno.ENOSPC, lambda number, kind: fails[0] and kind == "write")
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = edges_at(tmp_path / "ws", "commit")
    start = workspace.version
    for again in (lambda: workspace.load("other", [(1,)], columns=["a"]), lambda: insert(workspace, (5, 6))):
        fails[0] = True
        with pytest.raises(errors.DurabilityError):
            insert(workspace, (8, 9))
        fails[0] = False
        again()
    told = list(workspace.follow("back", since=start, timeout=0))
    assert [(each.version, set(applied(set(), each.table))) for each in told] == [(start + 2, {(6, 5)})]
    workspace.close()


@pytest.mark.parametrize("raises", [Commit.keep, Commit.drop, commit_feed.CommitFeed.take])
def test_a_commit_that_is_interrupted_is_told_once(raises: Callable[..., None]) -> None:
    workspace = edges_at(None, "memory")
    start = workspace.version
    owner, is_published = (
        commit_feed.CommitFeed if raises is commit_feed.CommitFeed.take else Commit,
        raises is not Commit.drop,
    )
    failing = mock.patch.object(owner, raises.__name__, side_effect=KeyboardInterrupt)
    unpublished = mock.patch.object(commit_feed.CommitFeed, "offer", side_effect=MemoryError)
    with failing, nullcontext() if is_published else unpublished, pytest.raises(KeyboardInterrupt):
        insert(workspace, (1, 2))
    elsewhere(lambda: workspace.changes_since(start, "back"))
    wanted = [start + 1] if is_published else []
    assert [each.version for each in workspace.follow("back", since=start, timeout=0)] == wanted
    insert(workspace, (3, 4))
    wanted.append(workspace.version)
    assert [each.version for each in workspace.follow("back", since=start, timeout=0)] == wanted
    workspace.verify()


def test_a_head_that_goes_while_it_is_asked_for(tmp_path: Path) -> None:
    """What is given is of the state that the question found."""
    workspace = edges_at(None, "memory")
    start = workspace.version
    between = workspace._published.feed.between

    def uninstalled(*arguments: object) -> object:
        if "back" in workspace.heads:
            workspace.uninstall("back")
        return between(*arguments)  # type: ignore[arg-type]

    workspace.load("other", [(1,)], columns=["a"])
    with mock.patch.object(workspace._published.feed, "between", side_effect=uninstalled):
        told = workspace.changes_since(start, "back")
    assert (told.version, told.table.num_rows, told.table.column_names) == (
        start + 1,
        0,
        ["b", "a", "weight"],
    )


# -- beside threads -----------------------------------------------------------------------------------


@pytest.fixture
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Mirrors:
    """Copies of a head, each kept by a thread in a way of its own, until all is done."""

    def __init__(self) -> None:
        self.is_done = threading.Event()
        self.raised: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def run(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.raised.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        self._threads.append(thread)
        return thread

    def polling(self, workspace: Workspace, *, by_loop: bool = False, refreshing: bool = False) -> list[Rows]:
        """One that asks again and again what changed since; beginning anew from a snapshot now and then."""
        mirror: list[Rows] = [set()]
        workspace.version  # noqa: B018  from now on changes are kept

        def work() -> None:
            begins = 0
            while True:
                snapshot = workspace.snapshot()
                version, mirror[0] = snapshot.version, set(snapshot["back"])
                for _ in range(5 + begins):
                    is_last = self.is_done.is_set()
                    if refreshing:
                        workspace.refresh()
                    if by_loop:
                        loop = workspace.follow("back", since=version, timeout=0)
                        for each in loop:
                            assert each.version > version
                            mirror[0], version = applied(mirror[0], each.table), each.version
                        version = loop.version
                    else:
                        told = workspace.changes_since(version, "back")
                        mirror[0], version = applied(mirror[0], told.table), told.version
                    if is_last:
                        return
                begins += 5

        self.run(work)
        return mirror

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        for error in self.raised:
            raise error


@pytest.mark.usefixtures("_threads_take_turns_often")
@pytest.mark.parametrize("durability", KEPT)
def test_threads_that_commit_install_and_make_checkpoints(tmp_path: Path, durability: str) -> None:
    workspace = edges_at(tmp_path / "ws", durability)
    mirrors, n_commits = Mirrors(), 15
    copies = [mirrors.polling(workspace), mirrors.polling(workspace, by_loop=True)]
    if durability != "memory":
        reader = Workspace.open(tmp_path / "ws", read_only=True)
        copies += [mirrors.polling(reader, refreshing=True), mirrors.polling(reader)]
    heard: list[Rows] = [{(0, 0)}]
    workspace.subscribe("back", lambda table: heard.append(applied(heard[-1], table)))

    def commits(thread: int, change: Callable[..., None]) -> Callable[[], None]:
        def work() -> None:
            for number in range(n_commits):
                change(workspace, (thread, number), (thread, -number - 1))

        return work

    def others() -> None:
        for number in range(6):
            workspace.install(f"other{number}(a) <- edge(a, _).")
            if durability != "memory" and number % 3 == 1:
                workspace.checkpoint()
            workspace.uninstall(f"other{number}")

    following = workspace.follow("back")
    given: list[Rows] = [{(0, 0)}]

    def follows() -> None:
        for each in following:
            given.append(applied(given[-1], each.table))
            if len(given) == 2 * n_commits + 1:
                return

    mirrors.run(follows)
    committing = [mirrors.run(commits(1, insert)), mirrors.run(commits(2, many)), mirrors.run(others)]
    for thread in committing:
        thread.join()
    mirrors.is_done.set()
    mirrors.join()
    rows = {(b, a) for a in (1, 2) for b in range(-n_commits, n_commits)} | {(0, 0)}
    assert set(workspace["back"]) == rows
    assert heard[-1] == given[-1] == rows
    assert len(heard) == n_commits + 2 * n_commits + 1  # of a batch each transaction is told
    for copy in copies[:3]:
        assert copy[0] == rows
    workspace.close()


def test_who_waits_for_a_version_that_is_shown_gets_its_change(tmp_path: Path) -> None:
    """A loop that is woken while a commit is not settled yet does not pass over it."""
    workspace = with_edges(tmp_path / "ws", durability="none")
    following = workspace.follow("tri", timeout=30)
    got: list[int] = []
    keep = Commit.keep

    def kept(*arguments: object) -> None:
        workspace._published.feed.wake()
        elsewhere(lambda: got.append(next(following).version))
        keep(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(Commit, "keep", kept):
        insert(workspace, (3, 4), (2, 4))
    assert got == [workspace.version]
    workspace.close()
