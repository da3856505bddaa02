"""Who hears of a commit, when, and what of others' misfortunes: nothing."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from lftj.errors import HousekeepingWarning, SubscriberWarning
from maintenance import Workspace
from maintenance.heads.head import MaintainedHead

PATH = "path(a, c) <- edge(a, b), edge(b, c)."


@pytest.fixture
def ws() -> Workspace:
    ws = Workspace()
    ws.load("edge", [(1, 2)], columns=["a", "b"])
    ws.install(PATH)
    return ws


def insert(ws: Workspace, *edges: tuple[int, int]) -> Any:
    with ws.transaction() as tx:
        tx.insert("edge", list(edges))
    return tx


def raising(error: BaseException) -> Callable[[pa.Table], None]:
    def callback(table: pa.Table) -> None:
        raise error

    return callback


@pytest.mark.parametrize("filter_", ["error", "always"])
def test_one_that_raises_keeps_no_other_from_hearing(ws: Workspace, filter_: Any) -> None:
    heard: list[str] = []
    ws.subscribe("path", lambda table: heard.append("first"))
    ws.subscribe("path", raising(ValueError("one")))
    ws.subscribe("path", raising(ValueError("two")))
    ws.subscribe("path", lambda table: heard.append("last"))
    tx = ws.transaction()
    tx.insert("edge", [(2, 3)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(filter_)
        if filter_ == "error":
            with pytest.raises(
                SubscriberWarning, match=r"the commit stands, but subscriber .* ValueError: one"
            ):
                tx.commit()
        else:
            tx.commit()
    assert heard == ["first", "last"]
    assert [str(error) for _, error in tx.subscriber_errors] == ["one", "two"]
    assert len(caught) == (0 if filter_ == "error" else 2)
    assert all(warning.filename == __file__ for warning in caught)
    assert tx.changes["path"].to_pylist() == [{"a": 1, "c": 3, "weight": 1}]
    insert_quietly(ws, (3, 4))
    assert heard == ["first", "last"] * 2


def insert_quietly(ws: Workspace, *edges: tuple[int, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubscriberWarning)
        insert(ws, *edges)


def test_an_interrupted_one_keeps_no_other_from_hearing(ws: Workspace) -> None:
    heard: list[pa.Table] = []
    stop = ws.subscribe("path", raising(KeyboardInterrupt()))
    ws.subscribe("path", heard.append)
    tx = ws.transaction()
    tx.insert("edge", [(2, 3)])
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    assert len(heard) == 1 and tx.changes["path"].num_rows == 1
    stop()
    insert(ws, (3, 4))
    assert len(heard) == 2


def test_a_callback_may_commit(ws: Workspace) -> None:
    """What it commits is told behind the callbacks of before, in the order of the commits."""
    heard: list[tuple[str, int]] = []

    def answer(table: pa.Table) -> None:
        heard.append(("answering", table["c"][0].as_py()))
        if table["c"][0].as_py() < 5:
            c = table["c"][0].as_py()
            insert(ws, (c, c + 1))

    ws.subscribe("path", answer)
    ws.subscribe("path", lambda table: heard.append(("listening", table["c"][0].as_py())))
    insert(ws, (2, 3))
    assert heard == [(who, c) for c in (3, 4, 5) for who in ("answering", "listening")]
    ws.verify()


def test_others_read_and_commit_while_callbacks_run(ws: Workspace) -> None:
    """A callback holds no lock of the workspace: another thread's commit is published meanwhile."""
    committed = threading.Event()
    heard: list[int] = []
    begun = threading.Event()

    def slow(table: pa.Table) -> None:
        heard.append(table["c"][0].as_py())
        if len(heard) == 1:
            begun.set()
            assert committed.wait(60)

    ws.subscribe("path", slow)

    def other() -> None:
        assert begun.wait(60)
        tx = ws.transaction()
        tx.insert("edge", [(3, 4)])
        before = ws._state
        waiting = threading.Thread(target=tx.commit)
        waiting.start()
        while ws._state is before:
            assert waiting.is_alive()
        assert ws.count("q(a, c) <- path(a, c).", threads=1) == 2
        committed.set()
        waiting.join()

    thread = threading.Thread(target=other)
    thread.start()
    insert(ws, (2, 3))
    thread.join()
    assert heard == [3, 4]


def test_one_that_left_hears_no_more(ws: Workspace) -> None:
    heard: list[str] = []
    stops: list[Callable[[], None]] = []
    ws.subscribe("path", lambda table: stops[0]())
    stops.append(ws.subscribe("path", lambda table: heard.append("never")))
    insert(ws, (2, 3))
    assert not heard
    stops[0]()


def test_tidying_up_that_fails_is_told_and_does_no_harm(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[pa.Table] = []
    ws.subscribe("path", heard.append)

    def fail(self: MaintainedHead, versions: object) -> int:
        raise MemoryError("no room")

    tx = ws.transaction()
    tx.insert("edge", [(2, 3)])
    with monkeypatch.context() as patch:
        patch.setattr(MaintainedHead, "tidy", fail)
        with pytest.warns(
            HousekeepingWarning, match="what was published stands, but tidying up 'path' failed .* no room"
        ):
            tx.commit()
    assert tx.changes["path"].num_rows == len(heard) == 1
    with pytest.raises(errors.TransactionError):
        tx.commit() or tx.insert("edge", [(1, 1)])
    insert(ws, (3, 4))
    ws.verify()
