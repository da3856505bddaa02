"""Copies of workspaces as folders, workspaces made small, and relations that get other columns."""

from __future__ import annotations

import errno
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from lftj import errors
from lftj.language.parser import parse
from maintenance import Workspace
from maintenance.workspace import copying
from support.disks import FailingDisk
from support.kept_lives import EDGES, TRIANGLES, insert, with_edges, without_image

ALL = (
    "two(a, c) <- edge(a, b), edge(b, c). path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z)."
    " n[a] = count() <- edge(a, _). all(count(), max(b)) <- edge(_, b)."
)


def contents(workspace: Workspace) -> dict[str, set[tuple[object, ...]]]:
    return {name: set(workspace[name]) for name in workspace.relations}


def in_memory() -> Workspace:
    workspace = Workspace(sensitivity_bytes=1 << 20, record_gap=3)
    workspace.load("edge", EDGES, columns=["x", "y"])
    workspace.load("word", [("a", 1.5), ("b", float("inf"))], columns=["w", "n"])
    workspace.install(TRIANGLES, "trace", order={"tri": ["b", "a", "c"]})
    workspace.install(ALL, {"two": "delta"}, sensitivity_bytes={"two": 5_000})
    workspace.set_strategy("n", "recompute")
    workspace.install("gone(a) <- edge(a, _).")
    workspace.uninstall("gone")
    insert(workspace, (3, 4), (2, 4))
    return workspace


@pytest.mark.parametrize("kept", ["in memory", "in a folder"])
def test_a_copy_is_loaded_and_opened_and_goes_its_own_way(tmp_path: Path, kept: str) -> None:
    workspace = in_memory()
    if kept == "in a folder":
        workspace.save(tmp_path / "first")
        workspace = Workspace.open(tmp_path / "first")
    workspace.save(tmp_path / "copy")
    expected, version = contents(workspace), workspace.version
    insert(workspace, (4, 5))
    loaded = Workspace.load_from(tmp_path / "copy")
    opened = Workspace.open(tmp_path / "copy")
    for again in (loaded, opened):
        assert contents(again) == expected
        assert again.version == version
        assert again.heads == workspace.heads
        for head in workspace.heads:
            here, there = again._state.heads[head].keeping, workspace._state.heads[head].keeping
            assert here == there
        assert {name: budget.limit for name, budget in again._state.budgets.items()} == {
            None: 1 << 20,
            "two": 5_000,
        }
        insert(again, (4, 5), (5, 6))
        assert again.changes_since(version, "tri").version == version + 1
        again.verify()
    assert loaded.folder is None and opened.folder == tmp_path / "copy"
    assert contents(loaded) == contents(opened) != contents(workspace)
    opened.close()
    assert contents(Workspace.load_from(tmp_path / "copy")) == contents(loaded)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "first") == ["copy"]


def test_what_can_not_be_a_copy(tmp_path: Path) -> None:
    workspace = in_memory()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("...")
    with pytest.raises(errors.DurabilityError, match="is there already"):
        workspace.save(tmp_path / "full")
    with pytest.raises(errors.DurabilityError, match="is there already"):
        workspace.save(tmp_path / "full" / "thesis.tex")
    with pytest.raises(errors.DurabilityError, match=r"holds 'thesis\.tex' and no workspace"):
        Workspace.load_from(tmp_path / "full")
    with pytest.raises(errors.DurabilityError, match="can't be opened"):
        Workspace.load_from(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.DurabilityError, match="there is no workspace in this folder"):
        Workspace.load_from(tmp_path / "empty")
    workspace.save(tmp_path / "empty")
    workspace.install(replace(parse("p(a) <- edge(a, _)."), text=""))
    with pytest.raises(errors.DurabilityError, match="install the text"):
        workspace.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_copy_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    workspace = in_memory()
    disk = FailingDisk(errno.ENOSPC)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace.save(tmp_path / "whole")
        n_steps = len(disk.steps)
        assert n_steps > 10
        for number in range(n_steps - 1):  # at the last one the copy has its name already
            disk.steps.clear()
            disk.fails = lambda step, kind, number=number: step == number  # type: ignore[misc]
            with pytest.raises(errors.DurabilityError, match="No space left"):
                workspace.save(tmp_path / "copy")
            assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_others_commit_while_a_copy_is_written(tmp_path: Path) -> None:
    """What they commit is not in it."""
    workspace = in_memory()
    expected, original = contents(workspace), copying.write_rows

    def meanwhile(*arguments: object) -> object:
        other = threading.Thread(target=insert, args=(workspace, (7, 8)))
        other.start()
        other.join(60)
        assert not other.is_alive(), "it waits for the copy"
        return original(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(copying, "write_rows", side_effect=meanwhile):
        workspace.save(tmp_path / "copy")
    assert (7, 8) in workspace["edge"]
    assert contents(Workspace.load_from(tmp_path / "copy")) == expected


def test_a_copy_that_was_stopped_half_way_is_refused(tmp_path: Path) -> None:
    """Files in their order: what a crash may leave has no manifest."""
    in_memory().save(tmp_path / "copy")
    (manifest,) = (tmp_path / "copy").glob("manifest-*")
    manifest.unlink()
    with pytest.raises(errors.DamagedFolderError, match="no manifest"):
        Workspace.load_from(tmp_path / "copy")


def test_compacting_changes_nothing_and_gives_back(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path / "ws", feed_bytes=0, durability="none")
    names = [f"name {number}" for number in range(120)]
    workspace.load("edge", list(pairwise(names)), columns=["x", "y"])
    workspace.install(TRIANGLES + ALL)
    workspace.load("still", [(1,)], columns=["a"])
    snapshot = workspace.snapshot()
    for number in range(5, 115):
        with workspace.transaction() as tx:
            tx.erase("edge", [(names[number], names[number + 1])])
    with workspace.transaction() as tx:
        tx.insert("edge", [(names[0], names[2])])
    expected, strings = contents(workspace), workspace.domains.of(pa.string())
    version = workspace.version
    workspace.compact()
    assert strings.n_values == 120  # type: ignore[attr-defined]
    del snapshot
    workspace.compact()
    assert strings.n_values < 30  # type: ignore[attr-defined]
    assert all(not version.primary.runs for version in workspace._state.versions.values())
    assert contents(workspace) == expected
    assert workspace.version == version
    with workspace.transaction() as tx:
        tx.insert("edge", [(names[1], names[50]), (names[0], names[50])])
    assert (names[0], names[1], names[50]) in workspace["tri"]
    workspace.verify()
    workspace.check_invariants()
    workspace.close()
    with pytest.raises(errors.ClosedError):
        workspace.compact()
    without_image(tmp_path / "ws")
    again = Workspace.open(tmp_path / "ws", read_only=True)
    assert len(again["edge"]) == 11 + 1
    memory = in_memory()
    before = contents(memory)
    memory.compact()
    assert contents(memory) == before


def test_relations_that_come_and_get_other_columns(tmp_path: Path) -> None:
    """One that rules read has to be let go of first; then it may be loaded anew, and all of it is kept."""
    with with_edges(tmp_path / "ws") as workspace:
        workspace.load("new", [("a",)], columns=["name"])
        wider = [(x, y, 0.5) for x, y in EDGES]
        with pytest.raises(errors.ChangeError, match="the rules of 'tri' read it"):
            workspace.load("edge", wider, columns=["x", "y", "w"])
        workspace.uninstall("tri")
        workspace.load("edge", wider, columns=["x", "y", "w"])
        workspace.install("tri(a, b, c) <- edge(a, b, _), edge(b, c, _), edge(a, c, _).")
        workspace.load("new", [("b", 1)], columns=["name", "n"])
        with workspace.transaction() as tx:
            tx.insert("edge", [(3, 4, 1.5), (2, 4, 2.5)])
            tx.insert("new", [("c", 2)])
        expected = contents(workspace)
    for _ in range(2):
        without_image(tmp_path / "ws")
        with Workspace.open(tmp_path / "ws") as again:
            assert contents(again) == expected
            assert again["edge"].schema.names == ["x", "y", "w"]
            assert len(again["tri"]) == 2
            again.checkpoint()
