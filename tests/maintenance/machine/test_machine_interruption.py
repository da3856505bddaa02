"""The commit machine under exceptions at every line, Ctrl-C at any moment, and readers in threads.

All of a transaction is there or nothing, what is published is told, once; readers see whole commits.
"""

from __future__ import annotations

import linecache
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from support.injected_lines import Injected, Lines
from support.machine_workspace import contents, degrees, expected, insert, made, of
from support.rows import rows_of

NODES = 7

INJECTIONS = float(os.environ.get("LFTJ_INJECTIONS", "0"))
"""How many times each line is tried; by default a part of them, drawn by chance."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


class Scene:
    """Random commits by the machine, and what has to be there."""

    def __init__(self, seed: int, sizes: Sizes, checks: bool = True, folder: Path | None = None) -> None:
        self.random = random.Random(seed)
        self.edges = {(1, 2), (2, 3)}
        self.ws = made(sizes=sizes, folder=folder)
        of(self.ws).checks = checks
        self.heard = Counter(rows_of(self.ws["deg"].table))
        self.told: list[pa.Table] = []
        self.fast = 0
        self.pending: tuple[Any, set[tuple[int, int]]] | None = None

    def commit(self, lines: AbstractContextManager[object] | None = None) -> None:
        draw = self.random
        rows = [(draw.randrange(NODES), draw.randrange(NODES)) for _ in range(draw.choice((1, 1, 2, 5)))]
        comes = draw.random() < 0.6
        after = self.edges | set(rows) if comes else self.edges - set(rows)
        tx = self.ws.transaction()
        (tx.insert if comes else tx.erase)("e", rows)
        self.pending = tx, after
        with lines or nullcontext():
            tx.commit()
        self.settle()

    def settle(self) -> None:
        """See whether the last transaction is published: what is is told, what is not is not there."""
        if self.pending is None:
            return
        tx, after = self.pending
        there = set(rows_of(self.ws["e"].table)) if self.random.random() < 0.3 else None
        try:
            changed = tx.changes["deg"]
        except errors.TransactionError:
            assert there in (None, self.edges)
        else:
            self.fast += tx.stats.fast
            weights = Counter(degrees(self.edges))
            for *row, weight in rows_of(changed):
                weights[tuple(row)] += weight
            assert +weights == Counter(degrees(after))
            assert there in (None, after)
            self.edges = after
        self.pending = None

    def listen(self) -> None:
        self.ws.subscribe("deg", self.told.append)

    def check_heard(self) -> None:
        """Behind a commit: subscribers have heard of all that was published, once."""
        while self.told:
            for *row, weight in rows_of(self.told.pop(0)):
                self.heard[tuple(row)] += weight
                assert self.heard[tuple(row)] in (0, 1)
        assert +self.heard == Counter(degrees(self.edges))

    def check(self, lines: Lines | None = None) -> None:
        with lines or nullcontext():
            assert contents(self.ws) == expected(self.edges)


class Armed(AbstractContextManager["Armed"]):
    """A block in which an alarm is Ctrl-C."""

    on = False

    def __enter__(self) -> Armed:
        self.on = True
        return self

    def __exit__(self, *raised: object) -> None:
        self.on = False

    def alarm(self, *call: object) -> None:
        if self.on:
            signal.raise_signal(signal.SIGINT)
        else:
            signal.setitimer(signal.ITIMER_REAL, 1e-4)


@pytest.fixture
def _python_takes_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::lftj.errors.HousekeepingWarning")
@pytest.mark.usefixtures("_python_takes_interrupts")
@pytest.mark.parametrize("way", ["", "checks", "listens", "in a folder", "in a folder, listens"])
@pytest.mark.parametrize("sizes", [Sizes(few=6, many=20, spilled=3), Sizes(rows=40, few=8, log=250)])
def test_an_exception_at_every_line(sizes: Sizes, way: str, tmp_path: Path) -> None:
    """Of the machine's own modules, at each of several times that they come to it."""
    listens, folder = "listens" in way, tmp_path / "ws" if "folder" in way else None
    scene = Scene(3, sizes, way == "checks", folder)
    if listens:
        scene.listen()
    every = Lines()
    for _ in range(60):
        scene.commit(every)
    scene.check(every)
    assert scene.fast > 30
    own = (
        "maintenance/machine/",
        "workspace/transaction.py",
        "workspace/published.py",
        "workspace/workspace.py",
        "durable/store.py",
        "durable/journal.py",
    )
    draw, share = random.Random(5), INJECTIONS or 0.3
    for (file, number), count in sorted(every.counts.items()):
        if not any(part in file for part in own):
            continue
        if linecache.getline(file, number).strip().startswith(("try:", "finally:")):
            continue  # where no signal comes, for nothing is done; a lock around it would stay
        for _ in range(int(share) + (draw.random() < share % 1)):
            try:
                nth, error = draw.randrange(min(count, 4)) + 1, draw.choice((Injected, MemoryError))
                lines = Lines((file, number), nth, error)
                for _ in range(6):
                    scene.commit(lines)
                scene.check(lines)
            except (Injected, MemoryError):
                pass
            try:
                scene.settle()
                scene.commit()
                if listens:
                    scene.check_heard()
                if draw.random() < 0.3:
                    scene.check()
            except BaseException as error:
                error.add_note(f"after an exception at {file}:{number}")
                raise
    scene.check()
    scene.ws.verify()
    scene.ws.check_invariants()
    if folder is not None:
        version = scene.ws.version
        scene.ws.close()
        with Workspace.open(folder) as scene.ws:
            scene.check()
            assert scene.ws.version == version


@pytest.mark.compiled
@pytest.mark.usefixtures("_python_takes_interrupts")
def test_signals_at_random_moments() -> None:
    scene = Scene(8, Sizes(few=4, many=20, spilled=2), checks=False)
    scene.listen()
    draw, interrupted = random.Random(2), 0
    armed = Armed()
    before = signal.signal(signal.SIGALRM, armed.alarm)
    try:
        for _ in range(150):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + draw.random() * 2e-3)
                for _ in range(50):
                    scene.commit(armed)
            except KeyboardInterrupt:
                interrupted += 1
            armed.on = False
            scene.settle()
            scene.commit()
            scene.check_heard()
            scene.check()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted
    scene.ws.verify()


@pytest.mark.compiled
def test_readers_in_threads_see_whole_commits() -> None:
    """Each transaction moves a token on: whoever reads sees one, and later ones later; snapshots stay."""
    ws = made(
        "deg[a] = count() <- e(a, _). far[a] = sum(c) <- e(a, b), e(b, c).",
        Sizes(few=3, many=9, spilled=1),
        [],
    )
    insert(ws, (0, 0))
    wrong: list[object] = []
    going = True

    def read() -> None:
        last = 0
        while going:
            snapshot = ws.snapshot()
            rows = rows_of(snapshot["e"].table)
            if len(rows) != 1 or rows[0][0] < last or rows_of(snapshot["deg"].table) != [(rows[0][0], 1)]:
                wrong.append((rows, last))
                return
            last = rows[0][0]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    end, at, fast = time.monotonic() + 3, 0, 0
    while time.monotonic() < end:
        with ws.transaction() as tx:
            tx.erase("e", [(at, at)])
            tx.insert("e", [(at + 1, at + 1)])
        at += 1
        fast += tx.stats.fast
    going = False
    for thread in threads:
        thread.join()
    assert not wrong and fast
    ws.verify()


@pytest.mark.compiled
def test_threads_commit_side_by_side() -> None:
    ws = made(sizes=Sizes(few=5, many=30, spilled=2))

    def commit(thread: int) -> None:
        for i in range(100):
            insert(ws, (thread, i))
            if i % 10 == 0:
                assert (thread, i) in ws["e"]

    threads = [threading.Thread(target=commit, args=(10 + n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ws["e"].count == 302
    ws.verify()
