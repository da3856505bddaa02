"""What a small commit takes in Python, counted: calls of functions, which no other heads add to."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FrameType

import pytest

from maintenance import Workspace

TOUCHED = """
    degree[a] = count() <- edge(a, _).
    total[a] = sum(c) <- edge(a, b), edge(b, c).
    tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
"""


def others(n: int) -> str:
    """Rules of heads that read something else, each head by another."""
    rules = "".join(f"o{i}[a] = sum(b) <- other(a, b), b != {i}. p{i}(a) <- o{i}[a] = b.\n" for i in range(n))
    return rules


def a_workspace(rules: str, strategy: str = "delta") -> Workspace:
    workspace = Workspace(single_changes="general")
    for name in ("edge", "other"):
        workspace.load(name, {"x": [1, 1, 2, 3], "y": [2, 3, 3, 1]})
    if rules:
        workspace.install(rules, strategy)
    return workspace


def calls_of(workspace: Workspace, number: int) -> int:
    """Calls of Python functions by the commit of one row."""
    n_calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    gc.disable()  # whose callbacks are calls, too
    sys.setprofile(count)
    try:
        with workspace.transaction() as tx:
            tx.insert("edge", [(number, number + 1)])
    finally:
        sys.setprofile(None)
        gc.enable()
    return n_calls


def calls_of_several(workspace: Workspace) -> list[int]:
    """Of some commits behind the first two, which make what is made once, and look at the memory."""
    return [calls_of(workspace, number) for number in range(10, 22)][2:]


@pytest.mark.parametrize("strategy", ["delta", "auto", "trace"])
def test_heads_that_a_commit_does_not_touch_cost_it_nothing(strategy: str) -> None:
    few, many = (calls_of_several(a_workspace(TOUCHED + others(n), strategy)) for n in (1, 40))
    assert few == many


def test_a_small_commit_takes_few_calls() -> None:
    assert min(calls_of_several(a_workspace(""))) <= 180
    assert min(calls_of_several(a_workspace("degree[a] = count() <- edge(a, _)."))) <= 330


@pytest.mark.parametrize("rules", ["", "degree[a] = count() <- edge(a, _)."])
@pytest.mark.parametrize(("where", "most"), [("memory", 18), ("folder", 33)])
def test_a_commit_by_the_machine_takes_few_calls(rules: str, where: str, most: int, tmp_path: Path) -> None:
    if where == "memory":
        workspace = Workspace(single_changes="machine")
    else:
        workspace = Workspace.open(tmp_path / "ws", durability="interval", single_changes="machine")
    workspace.load("edge", {"x": [1, 1, 2, 3], "y": [2, 3, 3, 1]})
    if rules:
        workspace.install(rules, "delta")
    machine = workspace._published.machine
    assert machine is not None
    machine.checks = False  # which do each commit the general way, too
    assert sorted(calls_of(workspace, number) for number in range(10, 110))[10] <= most
    workspace.close()


def test_what_nobody_asked_for_is_not_worked_out() -> None:
    plain, heard = a_workspace(TOUCHED), a_workspace(TOUCHED)
    heard.subscribe("degree", lambda table: None)
    assert min(calls_of_several(plain)) < min(calls_of_several(heard))
