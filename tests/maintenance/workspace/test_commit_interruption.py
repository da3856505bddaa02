"""An exception or Ctrl-C at any point: all of an operation is there or nothing, and the workspace goes on.

Exceptions are injected by ``sys.settrace`` at every line of our packages that an operation comes to, at one
of the times that it does, and real signals come at random moments.  After each, heads are what brute force
says, subscribers have heard of what was published, once, and more commits go right.

LFTJ_INJECTIONS: how many times each line is tried; by default a part of them, drawn by chance.
"""

from __future__ import annotations

import io
import os
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from indices import record_contents
from lftj import errors
from maintenance import Workspace
from maintenance.groups import grouped
from maintenance.image import write_image
from maintenance.strategies.trace import body_trace, built
from support.injected_lines import Injected, Lines

pytestmark = pytest.mark.compiled

INJECTIONS = float(os.environ.get("LFTJ_INJECTIONS", "0"))

RULES = """
tri(a, b, c) <- e(a, b), e(b, c), e(a, c).
hub(a) <- e(a, b), e(b, c), e(a, c).
two(a, c) <- e(a, b), e(b, c).
n[a] = count(), low[a] = min(b), s[a] = sum(b), f[a] = avg(w) <- e(a, b), weight[b] = w.
names[] = concat(t) <- label(a, t), e(a, _).
top[a] = v <- n[a] = k, s[a] = m, v = k * m.
odd(a) <- e(a, b), v = a + b, !e(v, a).
"""
APART = "wide(a, count(), max(b)) <- e(a, b). alone(a) <- e(a, _), !hub(a)."
AT_ONCE = (
    "ways(a, c) <- road(a, b), road(b, c). out[a] = count() <- road(a, _). far[a] = sum(c) <- ways(a, c)."
)
COUNTED = """
best(a, b, r) <- e(a, b), r = top(2, by: (b desc, a), per: a).
near(a, b, w) <- e(a, b), w = lag(b, by: (a, b)).
so_far(a, b, w) <- e(a, b), w = sum(b, by: (a, b)).
bag starts(a) <- e(a, _).
spread(a, variance(b)) <- e(a, b).
"""
NODES = 12


class Failure(MemoryError):
    """An error at a chosen place."""


@pytest.fixture(autouse=True)
def _python_takes_interrupts() -> Iterator[None]:
    """Not the handler of a Spark session of another test, nor a shell that starts us in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _everything_happens_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small structures merge, are renewed and free slots as often as large ones."""
    monkeypatch.setattr(record_contents, "TAIL_RECORDS", 16)
    monkeypatch.setattr(built, "GROWN_LEAST", 16)
    monkeypatch.setattr(built, "RENEWED_FROM", 64)
    monkeypatch.setattr(body_trace, "RENEWED_LEAST", 64)
    monkeypatch.setattr(grouped, "_LEAST_TIDIED", 4)


class Scene:
    """A workspace, some of whose heads have little memory, and what its subscribers hear of the heads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ws = Workspace(record_gap=0)
        self.ws.load("e", sorted(self.edges(40)), columns=["a", "b"])
        self.ws.load("label", [(i, f"node {i}") for i in range(NODES)], columns=["id", "text"])
        self.ws.load("weight", [(i, i / 4) for i in range(NODES + 3)], columns=["id", "w"])
        self.ws.install(RULES, order={"hub": ["a", "b", "c"]}, sensitivity_bytes={"hub": 1000, "odd": 1000})
        self.ws.install("again(a, c) <- e(a, b), e(b, c).", "recompute")
        self.ws.install(APART)
        self.ws.load("road", sorted(self.edges(12)), columns=["a", "b"])
        self.ws.install(AT_ONCE, "delta")
        self.ws.install(COUNTED)
        self.heard: dict[str, Counter[tuple[Any, ...]]] = {}
        self.told: dict[str, list[pa.Table]] = {}
        for head in self.ws.heads:
            self.heard[head] = Counter(rows_of(self.ws[head].table))
            self.ws.subscribe(head, self.told.setdefault(head, []).append)

    def edges(self, n: int) -> set[tuple[int, int]]:
        return {(self.random.randrange(NODES), self.random.randrange(NODES)) for _ in range(n)}

    def commit(self) -> None:
        there = sorted(rows_of(self.ws["e"].table))
        tx = self.ws.transaction()
        tx.erase("e", self.random.sample(there, min(4, len(there))))
        tx.insert("e", sorted(self.edges(4)))
        if self.random.random() < 0.3:
            tx.insert("label", [(self.random.randrange(NODES), f"name {self.random.randrange(99)}")])
        before = self.ws._state
        try:
            tx.commit()
        finally:
            self.published(tx, before)

    def apply_many(self, relation: str) -> None:
        """Four transactions in one call, of which all are there or none."""
        before = set(rows_of(self.ws[relation].table))
        after = set(before)
        changes: list[tuple[int, int, int, int]] = []
        for txn in range(4):
            for edge in sorted(self.edges(3)):
                changes.append((*edge, -1 if edge in after else 1, txn))
                after ^= {edge}
        rows = dict(zip(("a", "b", "weight", "txn"), map(list, zip(*changes, strict=True)), strict=True))
        try:
            applied = self.ws.apply_many({relation: rows})
            assert bool(applied.stats.one_by_one) == (relation == "e") and len(applied) == 4
        finally:
            assert set(rows_of(self.ws[relation].table)) in (before, after)

    def published(self, tx: Any, before: object) -> None:
        if self.ws._state is not before:
            assert tx.changes["tri"].num_rows >= 0, "a transaction that is published knows its changes"

    def check(self) -> None:
        """Heads are what brute force says, and what subscribers heard."""
        contents = {head: Counter(rows_of(self.ws[head].table)) for head in self.ws.heads}
        edges, labels, weights, roads = (
            rows_of(self.ws[name].table) for name in ("e", "label", "weight", "road")
        )
        for head, rows in (expected(set(edges), dict(weights)) | expected_at_once(set(roads))).items():
            assert contents[head] == Counter(rows), head
        assert {a for a, _ in edges if a in dict(labels)} == set() or contents["names"], "names"
        for head, heard in self.heard.items():
            while self.told[head]:
                for *row, weight in rows_of(self.told[head].pop()):
                    heard[tuple(row)] += weight
            assert +heard == contents[head], f"{head}: not told once of all"


def expected(edges: set[tuple[int, int]], weights: dict[int, float]) -> dict[str, set[tuple[Any, ...]]]:
    """The heads of RULES and APART but for names, whose texts ``verify`` compares."""
    after: dict[int, list[int]] = {}
    for a, b in sorted(edges):
        after.setdefault(a, []).append(b)
    two = {(a, b, c) for a, b in edges for c in after.get(b, ())}
    tri = {(a, b, c) for a, b, c in two if (a, c) in edges}
    hub = {(a,) for a, _, _ in tri}
    n, s = {(a, len(bs)) for a, bs in after.items()}, {(a, sum(bs)) for a, bs in after.items()}
    return {
        "tri": tri,
        "hub": hub,
        "two": {(a, c) for a, _, c in two},
        "again": {(a, c) for a, _, c in two},
        "n": n,
        "s": s,
        "low": {(a, min(bs)) for a, bs in after.items()},
        "f": {(a, sum(weights[b] for b in bs) / len(bs)) for a, bs in after.items()},
        "top": {(a, len(bs) * sum(bs)) for a, bs in after.items()},
        "odd": {(a,) for a, b in edges if (a + b, a) not in edges},
        "wide": {(a, len(bs), max(bs)) for a, bs in after.items()},
        "alone": {(a,) for a in after} - hub,
    }


def expected_at_once(roads: set[tuple[int, int]]) -> dict[str, set[tuple[Any, ...]]]:
    """The heads of AT_ONCE."""
    ways = {(a, d) for a, b in roads for c, d in roads if b == c}
    return {
        "ways": ways,
        "out": {(a, n) for a, n in Counter(a for a, _ in roads).items()},
        "far": {(a, sum(c for other, c in ways if other == a)) for a, _ in ways},
    }


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    columns = table.to_pydict().values()
    return list(zip(*columns, strict=True))


def _query(scene: Scene) -> None:
    scene.ws.query('q(a, c, t) <- tri(a, _, c), label(c, t), t > "node 2".', threads=1)
    scene.ws.count(f"q(a, b) <- e(a, b), a > {scene.random.randrange(NODES)}.", threads=1)
    for _ in scene.ws.stream("q[a] = concat(t) <- e(a, b), label(b, t)."):
        pass


def _install(scene: Scene) -> None:
    ws = scene.ws
    ws.install(
        "late(a, b) <- tri(a, b, _), n[a] = k, k > 1. k[a] = max(b), m[a] = sum(b) <- e(a, b).", replace=True
    )
    ws.install("late(a) <- tri(a, _, _). k[a] = min(b) <- e(a, b).", replace=True)
    ws.uninstall("m", "k")
    ws.load("other", sorted(scene.edges(5)), columns=["a", "b"])


def _image(scene: Scene) -> None:
    sink = io.BytesIO()
    write_image(scene.ws, sink)


OPERATIONS: dict[str, Callable[[Scene], None]] = {
    "commit": Scene.commit,
    "a batch at once": lambda scene: scene.apply_many("road"),
    "a batch one by one": lambda scene: scene.apply_many("e"),
    "query": _query,
    "install": _install,
    "image": _image,
    "verify": lambda scene: scene.ws.verify(),
}


@pytest.mark.in_turns
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_exception_at_every_line(operation: str) -> None:
    run = OPERATIONS[operation]
    scene = Scene(5)
    run(scene)
    times = 3
    with Lines() as lines:
        for _ in range(times):
            run(scene)
    draw = random.Random(7)
    share = INJECTIONS or (0.03 if operation == "commit" else 0.015)
    for line, count in sorted(lines.counts.items()):
        wanted = int(share) + (draw.random() < share % 1)
        for _ in range(wanted):
            nth = draw.randrange(-(-count // times)) + 1
            inject(scene, run, Lines(line, nth, draw.choice([Injected, Failure])))
    scene.check()
    scene.ws.verify()
    scene.ws.check_invariants()


def inject(scene: Scene, run: Callable[[Scene], None], lines: Lines) -> None:
    try:
        with lines, warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.HousekeepingWarning)
            run(scene)
    except (Injected, MemoryError, errors.RuleError):
        pass
    try:
        scene.check()
        scene.commit()  # which the next check, after an exception at the next line, sees too
        if scene.random.random() < 0.05:
            scene.ws.verify()
            scene.ws.check_invariants()
    except BaseException as error:
        error.add_note(f"after an exception at {lines.at}, time {lines.nth}, or at the line before")
        raise


@pytest.mark.in_turns
def test_signals_at_random_moments() -> None:
    """Ctrl-C comes out of a commit as KeyboardInterrupt or not at all, and what is published is told."""
    scene = Scene(9)
    scene.commit()
    started = time.perf_counter()
    for _ in range(5):
        scene.commit()
    typical = (time.perf_counter() - started) / 5
    draw = random.Random(3)
    armed, fired = [False], [False]

    def alarm(*call: object) -> None:
        if armed[0]:  # else the commit was quicker
            fired[0] = True
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, alarm)
    interrupted = 0
    try:
        for _ in range(int(INJECTIONS * 300) or 150):
            try:
                armed[0], fired[0] = True, False
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, draw.random() * typical))
                scene.commit()
                armed[0] = False
                if fired[0]:  # it may be put off for a moment
                    time.sleep(0.1)
            except KeyboardInterrupt:
                interrupted += 1
                armed[0] = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            scene.check()
            scene.commit()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted, "no signal came in time"
    scene.check()
    scene.ws.verify()
    scene.ws.check_invariants()
