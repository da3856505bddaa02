"""Ctrl-C at any step of a commit: all of the transaction is there or nothing, and the workspace goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

from lftj.relation_version import RelationVersion
from maintenance import Workspace, uninterrupted
from maintenance.group_scan import GroupScan
from maintenance.group_sums import GroupSums
from maintenance.grouped import GroupedAggregate
from maintenance.head import MaintainedHead
from maintenance.intermediate import Intermediate
from maintenance.support import SupportVersion
from maintenance.uninterrupted import uninterrupted as uninterrupted_block
from maintenance.witnessed_trace import WitnessedTrace

RULES = """
two(a, c) <- e(a, b), e(b, c).
hub(a) <- e(a, b), e(b, c), e(a, c).
n[a] = count(), low[a] = min(b), s[a] = sum(b) <- e(a, b).
names[] = concat(t) <- label(a, t), e(a, _).
top[a] = v <- n[a] = k, s[a] = m, v = k * m.
"""

STEPS = [
    (RelationVersion, "advance"),
    (MaintainedHead, "step"),
    (MaintainedHead, "keep"),
    (Intermediate, "step"),
    (Intermediate, "keep"),
    (GroupedAggregate, "stage"),
    (GroupedAggregate, "keep"),
    (GroupScan, "stage"),
    (GroupScan, "keep"),
    (GroupSums, "stage"),
    (SupportVersion, "step"),
    (WitnessedTrace, "step"),
    (WitnessedTrace, "keep"),
    (Workspace, "_publish"),
]


@pytest.fixture(autouse=True)
def _python_takes_interrupts() -> Iterator[None]:
    """Not the handler of a Spark session of another test, nor a shell that starts us in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(function: Callable[..., Any], calls: list[int], at: int, after: bool) -> Callable[..., Any]:
    """The function, with a Ctrl-C before or after its call number ``at``."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        now = calls[0] == at
        if now and not after:
            os.kill(os.getpid(), signal.SIGINT)
        result = function(*arguments, **options)
        if now and after:
            os.kill(os.getpid(), signal.SIGINT)
        return result

    return wrapped


def everything(ws: Workspace) -> dict[str, list[tuple[Any, ...]]]:
    names = ["e", *ws.heads]
    return {n: sorted(zip(*ws[n].table.to_pydict().values(), strict=True)) for n in names}


def loaded(edges: list[tuple[int, int]]) -> Workspace:
    ws = Workspace()
    ws.load("e", edges, columns=["a", "b"])
    ws.load("label", [(1, "one"), (2, "two"), (3, "three")], columns=["id", "text"])
    ws.install(RULES)
    return ws


EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
AFTER = [(1, 2), (1, 3), (3, 4), (2, 4), (1, 4)]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_commit_is_whole_or_not_at_all(owner: type, name: str, at: int, after: bool) -> None:
    ws = loaded(EDGES)
    old, new = everything(ws), everything(loaded(AFTER))
    calls = [0]
    wrapped = interrupting(getattr(owner, name), calls, at, after)

    def change() -> None:
        with ws.transaction() as tx:
            tx.erase("e", [(2, 3)])
            tx.insert("e", [(2, 4), (1, 4)])

    with mock.patch.object(owner, name, wrapped):
        if calls[0] < at:
            try:
                change()
            except KeyboardInterrupt:
                pass
            else:
                assert calls[0] < at, "the interruption was lost"
    assert everything(ws) in (old, new)
    ws.check_invariants()
    ws.verify()
    change()
    assert everything(ws) == new
    ws.verify()
    ws.check_invariants()


def test_an_interruption_waits_for_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted_block():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest of the block")
    assert done
    with uninterrupted_block():
        done.append("as usual")
    assert uninterrupted.signal.getsignal(signal.SIGINT) is signal.default_int_handler
