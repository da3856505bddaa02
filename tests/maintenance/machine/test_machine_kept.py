"""The commit machine in a folder: prepare, journal, publish; kills between them, disks that fail."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import table_of_change
from maintenance.durable.entries import Changed, entry_bytes, entry_of
from maintenance.durable.journal import Journal
from maintenance.durable.reading import read_existing
from maintenance.machine import entry_form, machine
from maintenance.machine.entry_form import EntryForms
from maintenance.machine.structures import Sizes
from support.disks import FailingDisk
from support.kept_lives import without_image
from support.machine_workspace import begun, contents, erase, expected, insert, made, of, opened
from support.rows import rows_of


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


def entries(folder: Path) -> list[Any]:
    return [entry for _, entry in read_existing(folder).entries(0)]


# -- what is kept ------------------------------------------------------------------------------------


def test_what_the_machine_commits_is_in_the_folder(folder: Path) -> None:
    ws = made(folder=folder)
    edges = {(1, 2), (2, 3)}
    before = ws.version
    for i in range(60):
        rows = [(i % 7, i % 5), (i % 3, 50 + i)]
        assert insert(ws, *rows).stats.fast == 1
        edges |= set(rows)
        if i % 4 == 0:
            assert erase(ws, rows[0]).stats.fast == 1
            edges -= {rows[0]}
    version = ws.version
    reader = Workspace.open(folder, read_only=True)
    assert contents(reader) == contents(ws) == expected(edges)
    insert(ws, (80, 81))
    assert reader.refresh() == version + 1 and (80, 81) in reader["e"]
    ws.close()
    with opened(folder) as again:
        assert contents(again) == expected(edges | {(80, 81)})
        assert again.version == version + 1
        added = again.changes_since(before, "deg").table
        assert sum(weight for *_, weight in rows_of(added)) == again["deg"].count - 2
        begun(again)
        assert insert(again, (7, 7)).stats.fast == 1
        again.verify()


def test_entries_are_those_of_the_general_way(tmp_path: Path) -> None:
    """Also of several relations in one transaction, and of many rows."""
    both = [
        opened(tmp_path / "one"),
        Workspace.open(tmp_path / "other", durability="interval", single_changes="general"),
    ]
    for ws in both:
        ws.load("e", [(1, 2)], columns=["a", "b"])
        ws.load("f", {"weight": [1], "x": [-5], "y": [0]})
        ws.load("g", [(4,)], columns=["a"])
        ws.install("deg[a] = count() <- e(a, _), g(a).")
    of(both[0])._wait = 1
    for ws in both:
        for i in range(30):
            with ws.transaction() as tx:
                tx.insert("e", [(i, -(2**62)), (i, 3), (1, 2)])
                if i % 3 == 1:
                    tx.insert("f", [(i, 2, 2**63 - 1)] * 2)
                    tx.erase("e", [(i - 1, 3)])
                if i % 5 == 2:
                    tx.insert("g", [(n,) for n in range(i)])
        assert ws["f"].count == 11
    assert tx.stats.fast == 0 and of(both[0]).layout is not None
    for ws in both:
        ws.close()
    one, other = (entries(tmp_path / name) for name in ("one", "other"))
    assert len(one) == len(other) == 34
    assert [entry for entry in one if isinstance(entry, Changed)] == [
        entry for entry in other if isinstance(entry, Changed)
    ]


def test_forms_are_the_entries_that_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes themselves, whatever was asked for before; few forms are kept."""

    monkeypatch.setattr(entry_form, "MOST_FORMS", 3)
    ws = Workspace()
    kinds = [pa.int64(), pa.bool_(), pa.int8(), pa.uint32(), pa.date32(), pa.timestamp("s")]
    ws.load("e", pa.table({f"c{i}": pa.array([], kind) for i, kind in enumerate(kinds)}))
    ws.load("weight", {"weight": [1]})
    schemas = {name: ws._state.versions[name].schema for name in ("e", "weight")}
    draw = np.random.default_rng(1)
    buffers = [(np.zeros(len(s.columns) * 9, np.int64), np.zeros(9, np.int64)) for s in schemas.values()]
    forms = EntryForms([(*pair, its) for pair, its in zip(schemas.items(), buffers, strict=True)])
    names = list(schemas)
    for _ in range(200):
        written, changes = [], {}
        for number in sorted(draw.choice(2, draw.integers(1, 3), replace=False)):
            n, (columns, weights), name = int(draw.integers(1, 10)), buffers[number], names[number]
            rows = draw.integers(0, 2, (len(schemas[name].columns), n))
            weights[:n] = draw.choice((-1, 1), n)
            columns.reshape(-1, 9)[:, :n] = rows
            written += [int(number), n]
            changes[name] = table_of_change(schemas[name], Change(rows, weights[:n].copy()))
        form = forms.form(np.array(written, np.int64).data)
        assert bytes(form.filled()) == entry_bytes(Changed(changes))
        assert entry_of(bytes(form.filled())) == Changed(changes)
        assert form.entry.changes.keys() == changes.keys() and len(forms._forms) <= 3


def test_what_waits_for_the_disk_goes_the_general_way(folder: Path) -> None:
    with Workspace.open(folder, single_changes="machine") as ws:
        ws.load("e", [(1, 2)], columns=["a", "b"])
        ws.install("deg[a] = count() <- e(a, _).")
        assert {insert(ws, (i, 2)).stats.fast for i in range(9)} == {0}
        text = str(ws.explain_maintenance("deg"))
    assert "single changes go the general way: each commit waits for the disk" in text


def test_checkpoints_come_by_themselves(folder: Path) -> None:
    """And what came behind one is in the journal that is begun then."""
    ws = opened(folder, checkpoint_bytes=40_000)
    ws.load("e", [(1, 2), (2, 3)], columns=["a", "b"])
    ws.install("deg[a] = count() <- e(a, _).", "delta")
    of(ws).sizes = Sizes(log=2_000)
    begun(ws)
    fast = [insert(ws, (i % 50, i)).stats.fast for i in range(600)]
    assert sum(fast) > 550
    ws.checkpoint()
    assert insert(ws, (60, 60)).stats.fast == 1
    ws.checkpoint()
    assert insert(ws, (61, 60)).stats.fast == 1
    assert read_existing(folder).manifest.number > 600
    with mock.patch.object(Workspace, "close"):
        del ws
    without_image(folder)
    again = Workspace.open(folder, read_only=True)
    assert set(again["e"]) == {(1, 2), (2, 3), (60, 60), (61, 60), *((i % 50, i) for i in range(600))}
    again.verify()


def test_a_closed_workspace_takes_nothing(folder: Path) -> None:
    ws = made(folder=folder)
    assert insert(ws, (5, 5)).stats.fast == 1
    tx = ws.transaction()
    tx.insert("e", [(6, 6)])
    ws.close()
    with pytest.raises(errors.ClosedError):
        tx.commit()
    with pytest.raises(errors.TransactionError):
        tx.changes["deg"]
    assert (5, 5) in ws["e"] and (6, 6) not in ws["e"]


# -- disks that fail ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_write_that_fails_publishes_nothing(folder: Path, error: int) -> None:
    disk = FailingDisk(error)
    with mock.patch.object(Workspace, "_disk", disk):
        ws = made(folder=folder)
        insert(ws, (5, 5))
        state, before = contents(ws), ws.stats.version
        insert(ws, (7, 7))  # binds
        erase(ws, (7, 7))
        told: list[Any] = []
        ws.subscribe("deg", told.append)
        disk.fails = lambda number, kind: kind == "write"
        tx = ws.transaction()
        tx.insert("e", [(6, 6), (6, 7)])
        with pytest.raises(errors.DurabilityError, match="can't be written, and was not made"):
            tx.commit()
        disk.fails = lambda number, kind: False
        assert insert(ws, (8, 8)).stats.fast == 1
        with pytest.raises(errors.TransactionError):
            tx.changes["deg"]
        erase(ws, (8, 8))
        assert contents(ws) == state and ws.stats.version == before + 4 and len(told) == 2
        ws.verify()
        ws.check_invariants()
        ws.close()
    with Workspace.open(folder) as again:
        assert contents(again) == state


# -- kills -------------------------------------------------------------------------------------------


def _killed(*arguments: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _before(name: str) -> Callable[[], Any]:
    return lambda: mock.patch.object(machine, name, _killed)


def _behind_journal() -> Any:
    append = Journal.append

    def appended(*arguments: Any) -> Any:
        append(*arguments)
        _killed()

    return mock.patch.object(Journal, "append", appended)


def _behind_publishing() -> Any:
    published = machine.end
    return mock.patch.object(machine, "end", lambda where: (published(where), _killed()))


KILLS: dict[str, tuple[Callable[[], Any], bool]] = {
    "before it is prepared": (_before("commit"), False),
    "prepared": (lambda: mock.patch.object(Journal, "append", _killed), False),
    "in the journal": (_behind_journal, True),
    "before it is published": (_before("end"), True),
    "published": (_behind_publishing, True),
}
"""By where a process is killed: what does it there, and whether the commit is in the folder then."""


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("where", KILLS)
def test_killed_anywhere_a_commit_is_there_or_not(folder: Path, where: str) -> None:
    made(folder=folder).close()
    patch, is_there = KILLS[where]
    child = os.fork()
    if not child:
        try:
            ws = begun(opened(folder))
            assert insert(ws, (5, 5)).stats.fast == 1
            with patch():
                insert(ws, (6, 6), (6, 7))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with opened(folder) as again:
        edges = {(1, 2), (2, 3), (5, 5)} | ({(6, 6), (6, 7)} if is_there else set())
        assert contents(again) == expected(edges)
        again.verify()
        assert insert(begun(again), (9, 9)).stats.fast == 1


def test_what_is_in_the_journal_when_ctrl_c_comes_is_published(folder: Path) -> None:
    append = Journal.append

    def interrupted(*arguments: Any) -> Any:
        append(*arguments)
        raise KeyboardInterrupt

    ws = made(folder=folder)
    heard: list[Any] = []
    ws.subscribe("deg", heard.append)
    insert(ws, (5, 5))
    tx = ws.transaction()
    tx.insert("e", [(6, 6)])
    with mock.patch.object(Journal, "append", interrupted), pytest.raises(KeyboardInterrupt):
        tx.commit()
    assert rows_of(tx.changes["deg"]) == [(6, 1, 1)] and tx.stats.fast == 1 and len(heard) == 2
    assert contents(ws) == expected({(1, 2), (2, 3), (5, 5), (6, 6)})
    version = ws.version
    ws.close()
    with Workspace.open(folder) as again:
        assert again.version == version and (6, 6) in again["e"]
        again.verify()


def test_an_interrupted_attempt_is_not_taken_for_a_later_one() -> None:
    """That is published at the same place of the log."""
    ws = made()
    tx = ws.transaction()
    tx.insert("e", [(5, 5)])
    with (
        mock.patch.object(machine, "commit", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        tx.commit()
    assert insert(ws, (6, 6)).stats.fast == 1
    with pytest.raises(errors.TransactionError):
        tx.changes["deg"]
    assert (5, 5) not in ws["e"]
