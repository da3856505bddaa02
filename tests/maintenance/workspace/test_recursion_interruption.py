"""Ctrl-C within the rounds of a recursion: a commit is there or nothing of it, and the next ones go right.

``KeyboardInterrupt`` is raised at lines of what evaluates and keeps recursive heads, at one of the times that
they are reached.  What the heads have to be is told by loops over all nodes.

LFTJ_INJECTIONS: how many times each line is tried; by default a part of them, drawn by chance.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from unittest import mock

import pytest

from lftj.evaluation.fixpoint import Fixpoint
from maintenance import Workspace
from maintenance.strategies.stages.step import Step
from support.injected_lines import Injected, Lines
from support.rows import rows_of
from support.shortest_paths import SHORTEST, bellman_ford

pytestmark = pytest.mark.compiled

INJECTIONS = float(os.environ.get("LFTJ_INJECTIONS", "0"))
NODES = 7
ROOMS = ("/maintenance/strategies/stages/", "/lftj/evaluation/", "/maintenance/heads/recursive_source")
CLOSURE = "path(a, b) <- road(a, b, _). path(a, c) <- path(a, b), path(b, c)."
AGAIN = "way(a, b) <- road(a, b, _). way(a, c) <- way(a, b), road(b, c, _)."
REACH = "r(x) <- start(x). r(y) <- r(x), road(x, y, _)."

Road = tuple[int, int, int]


class Scene:
    """Roads, and recursive heads over them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.workspace = Workspace()
        self.workspace.load("road", [self.road() for _ in range(9)], columns=["a", "b", "w"])
        self.workspace.load("start", [(0,)], columns=["x"])
        self.workspace.install(CLOSURE + SHORTEST, "stages")
        self.workspace.install(AGAIN, "recompute")

    def road(self) -> Road:
        return self.random.randrange(NODES), self.random.randrange(NODES), self.random.randrange(3)

    def roads(self) -> set[Road]:
        return set(rows_of(self.workspace["road"].table))

    def commit(self) -> None:
        there = sorted(self.roads())
        with self.workspace.transaction() as transaction:
            transaction.erase("road", self.random.sample(there, min(2, len(there))))
            transaction.insert("road", [self.road() for _ in range(2)])

    def check(self) -> None:
        roads = self.roads()
        reached = {(a, b) for a, b, _ in roads}
        for b in range(NODES):
            reached |= {(a, c) for a, x in reached if x == b for y, c in reached if y == b}
        for head in ("path", "way"):
            assert set(rows_of(self.workspace[head].table)) == reached, head
        assert dict(rows_of(self.workspace["dist"].table)) == bellman_ford(roads)


def _query(scene: Scene) -> None:
    found = scene.workspace.query(CLOSURE.replace("path", "asked"))
    assert set(rows_of(found)) == set(rows_of(scene.workspace["path"].table))


def _install(scene: Scene) -> None:
    scene.workspace.install(CLOSURE.replace("path", "late"))
    scene.workspace.uninstall("late")


OPERATIONS: dict[str, Callable[[Scene], None]] = {
    "commit": Scene.commit,
    "query": _query,
    "install": _install,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interruption_at_every_line(operation: str) -> None:
    run = OPERATIONS[operation]
    scene = Scene(3)
    times = 4
    for _ in range(2):
        run(scene)
    with Lines() as lines:
        for _ in range(times):
            run(scene)
    draw = random.Random(7)
    share = INJECTIONS or 0.02
    for line, count in sorted(lines.counts.items()):
        wanted = int(share) + (draw.random() < share % 1) if any(room in line[0] for room in ROOMS) else 0
        for _ in range(wanted):
            nth = draw.randrange(-(-count // times)) + 1
            try:
                with Lines(line, nth):
                    run(scene)
            except Injected:
                pass
            try:
                scene.check()
                scene.workspace.check_invariants()
                scene.workspace.uninstall(*({"late"} & set(scene.workspace.heads)))
                scene.commit()
                scene.check()
            except BaseException as error:
                error.add_note(f"after an interruption at {line}, time {nth}")
                raise
    scene.workspace.verify()
    scene.workspace.check_invariants()


def long_path(n: int, text: str = REACH + SHORTEST) -> Workspace:
    workspace = Workspace()
    workspace.load("road", [(i, i + 1, 1) for i in range(n)], columns=["a", "b", "w"])
    workspace.load("start", [(0,)], columns=["x"])
    workspace.install(text, "stages")
    return workspace


class InRound:
    """Calls a method, and interrupts instead at the n-th call."""

    def __init__(self, method: Callable[..., object], nth: int) -> None:
        self.method, self.nth, self.calls = method, nth, 0

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        if self.calls == self.nth:
            raise KeyboardInterrupt
        return self.method(*arguments)


@pytest.mark.parametrize("method", ["_leave", "_check"])
def test_ctrl_c_in_round_50_of_a_commit(method: str) -> None:
    """While facts leave, and while they come."""
    n = 80
    workspace = long_path(n)
    change, other = ("erase", "insert") if method == "_leave" else ("insert", "erase")
    with workspace.transaction() as transaction:
        getattr(transaction, other)("road", [(0, 1, 1)])
    before = {name: workspace[name].table for name in ("road", "r", "dist")}
    in_round = InRound(getattr(Step, method), 50)
    with (
        mock.patch.object(Step, method, lambda *arguments: in_round(*arguments)),
        pytest.raises(KeyboardInterrupt),
        workspace.transaction() as transaction,
    ):
        getattr(transaction, change)("road", [(0, 1, 1)])
    assert in_round.calls == 50
    assert {name: workspace[name].table for name in before} == before
    workspace.check_invariants()
    with workspace.transaction() as transaction:
        getattr(transaction, change)("road", [(0, 1, 1)])
    assert workspace["r"].count == workspace["dist"].count == (1 if change == "erase" else n + 1)
    assert transaction.changes["r"].num_rows == n
    workspace.verify()
    workspace.check_invariants()


def test_ctrl_c_in_round_50_of_an_evaluation() -> None:
    workspace = long_path(80)
    for run in (
        lambda: workspace.install(REACH.replace("r(", "late("), "stages"),
        lambda: workspace.query(REACH.replace("r(", "asked(")),
    ):
        in_round = InRound(Fixpoint._check_frontiers, 50)
        with (
            mock.patch.object(Fixpoint, "_check_frontiers", lambda self, call=in_round: call(self)),
            pytest.raises(KeyboardInterrupt),
        ):
            run()
        assert set(workspace.heads) == {"r", "dist"}
    assert workspace.query(REACH.replace("r(", "asked(")).num_rows == 81
    workspace.verify()


def test_a_thousand_rounds() -> None:
    """The head of a path goes and comes: a rank after the other, an assignment for each tuple."""
    n = 1000
    workspace = long_path(n, REACH)
    for change, sign in (("erase", -1), ("insert", 1)):
        with workspace.transaction() as transaction:
            getattr(transaction, change)("road", [(0, 1, 1)])
        assert set(transaction.changes["r"]["weight"].to_pylist()) == {sign}
        assert transaction.changes["r"].num_rows == transaction.stats["r"].instances == n
    workspace.check_invariants()
