"""When the commit machine runs: soon, again behind reads where it did much, and not before it is compiled."""

from __future__ import annotations

import pytest

from maintenance import Workspace
from maintenance.machine import machine
from support.machine_workspace import insert, made


def test_it_goes_on_at_once_behind_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where others change the state, if it did much; else it stays out for longer and longer."""
    monkeypatch.setattr(machine, "ENOUGH", 10)
    ws = made("deg[a] = count() <- e(a, _).")
    insert(ws, (0, 1))
    for number in range(1, 60):
        assert insert(ws, (number, 1)).stats.fast == 1
        assert number % 3 or ws["deg"].count == number + 1
    many = [[(1000 + 100 * number + each, 1) for each in range(70)] for number in range(60)]
    for number in range(3):
        assert insert(ws, *many[number]).stats.fast == 0  # too many of one call
        assert all(insert(ws, (number, each)).stats.fast for each in range(10, 25))
    waits = []
    for number in range(3, 60):
        waits += [insert(ws, (number, each)).stats.fast for each in range(2, 5)]
        insert(ws, *many[number])
    assert sum(waits[:30]) > 2 * sum(waits[-30:])
    ws.verify()


def test_kernels_that_are_not_compiled_are_waited_with(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(machine, "all_are_compiled", lambda wanted: asked.append(wanted))
    monkeypatch.setattr(machine, "MOST", 30)
    ws = Workspace()
    ws.load("e", [(0, 0)], columns=["a", "b"])
    fast = [insert(ws, (number, 1)).stats.fast for number in range(40)]
    assert fast == [0] * 30 + [1] * 10 and len(asked) == 1
    assert asked[0]("maintenance.machine.kernel") and not asked[0]("maintenance.heads.head")
