"""What commits, installing and verifying show on a terminal, unasked, where they take their time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lftj.process import progress
from maintenance import Workspace
from support.terminal import Terminal, terminal_of


class Patient:
    """An operator that takes until something is drawn, once it has a terminal."""

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self.error: BaseException | None = None

    def __call__(self, edge: pa.Table) -> pa.Table:
        if self.terminal is not None:
            assert self.terminal.is_drawn.wait(60)
            self.terminal.is_drawn.clear()
        if self.error is not None:
            raise self.error
        return edge.select(["a", "weight"])


@pytest.fixture
def patient() -> Patient:
    return Patient()


@pytest.fixture
def workspace(patient: Patient) -> Workspace:
    made = Workspace()
    made.load("edge", [(1, 2)], columns=["a", "b"])
    made.operator("slow", patient, reads=["edge"], linear=True)
    made.install("after(a) <- slow(a).", "recompute")
    return made


def insert(workspace: Workspace, *rows: tuple[int, int]) -> None:
    with workspace.transaction() as tx:
        tx.insert("edge", list(rows))


def test_a_commit_says_which_head_it_is_at(
    workspace: Workspace, patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.terminal = terminal_of(monkeypatch)
    insert(workspace, (2, 3))
    assert "committing, slow" in patient.terminal.getvalue()
    assert sorted(workspace["after"]) == [(1,), (2,)]
    patient.terminal.is_drawn.set()
    workspace.verify()


def test_ctrl_c_takes_the_bar_and_the_commit_away(
    workspace: Workspace, patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.terminal, patient.error = terminal_of(monkeypatch), KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        insert(workspace, (2, 3))
    assert progress._standing is None and not progress._drawing.locked()
    assert sorted(workspace["edge"]) == [(1, 2)] and sorted(workspace["after"]) == [(1,)]


def test_a_commit_elsewhere_asks_nobody(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_on_terminal", None)
    insert(workspace, (2, 3))
    workspace.verify()
    assert sorted(workspace["after"]) == [(1,), (2,)]
