"""Folders of workspaces: who may open one, and what is said of one that is damaged."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from lftj import errors
from lftj.language.parser import parse
from maintenance import Workspace
from support.kept_lives import EDGES, insert, with_edges, without_image
from support.paths import ROOT, TESTS, child_environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


# -- who may open -------------------------------------------------------------------------------------


def test_a_second_process_is_refused_and_may_read(folder: Path) -> None:
    code = (
        "import sys; from lftj import errors; from maintenance import Workspace\n"
        "try:\n    Workspace.open(sys.argv[1])\n"
        "except errors.FolderInUseError as error:\n    print(error)\n"
        "print(sorted(Workspace.open(sys.argv[1], read_only=True)['tri']))\n"
    )
    with with_edges(folder):
        run = [sys.executable, "-c", code, str(folder)]
        done = subprocess.run(run, cwd=ROOT, env=child_environment(), text=True, capture_output=True)
        with pytest.raises(errors.FolderInUseError):
            Workspace.open(folder)
    assert f"is open already by process {os.getpid()} on " in done.stdout, done.stderr
    assert done.stdout.endswith("[(1, 2, 3)]\n")
    Workspace.open(folder).close()


def test_what_is_open_for_reading_can_not_be_changed(folder: Path) -> None:
    with pytest.raises(errors.DurabilityError, match="can't be opened: No such file"):
        Workspace.open(folder, read_only=True)
    with_edges(folder).close()
    before = {path: path.stat() for path in folder.rglob("*")}
    reader = Workspace.open(folder, read_only=True)
    for change in (
        lambda: insert(reader, (8, 9)),
        lambda: reader.load("new", EDGES, columns=["x", "y"]),
        lambda: reader.install("p(a) <- edge(a, _)."),
        lambda: reader.uninstall("tri"),
        lambda: reader.set_strategy("tri", "delta"),
        lambda: reader.apply_many({"edge": {"x": [1], "y": [9], "weight": [1]}}),
    ):
        with pytest.raises(errors.DurabilityError, match=r"for reading only|read it"):
            change()
    with pytest.raises(errors.DurabilityError, match=r"in memory only|for reading only"):
        reader.checkpoint()
    reader.close()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == {
        path: status.st_mtime_ns for path, status in before.items()
    }


def test_a_workspace_that_is_closed_can_be_read_and_not_changed(folder: Path) -> None:
    workspace = with_edges(folder)
    workspace.close()
    workspace.close()
    assert sorted(workspace["tri"]) == [(1, 2, 3)]
    for change in (
        lambda: insert(workspace, (8, 9)),
        workspace.checkpoint,
        lambda: insert(workspace, (1, 2)),
    ):
        with pytest.raises(errors.ClosedError, match="closed: open it again"):
            change()


def test_a_workspace_in_memory_has_no_folder() -> None:
    workspace = Workspace()
    with pytest.raises(errors.DurabilityError, match=r"Workspace\.open"):
        workspace.checkpoint()
    workspace.close()
    assert workspace.folder is None


def test_folders_that_are_no_workspace(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("...")
    with pytest.raises(errors.DurabilityError, match=r"holds 'thesis\.tex' and no workspace"):
        Workspace.open(folder)
    assert sorted(path.name for path in folder.iterdir() if path.name != "lock") == ["thesis.tex"]
    file = folder / "thesis.tex"
    with pytest.raises(errors.DurabilityError, match="can't be opened"):
        Workspace.open(file)
    with pytest.raises(ValueError, match="durability is 'often'"):
        Workspace.open(folder / "new", durability="often")  # type: ignore[arg-type]


def test_a_program_without_its_text_is_refused(folder: Path) -> None:
    with with_edges(folder) as workspace:
        with pytest.raises(errors.DurabilityError, match="install the text"):
            workspace.install(replace(parse("p(a) <- edge(a, _)."), text=""))
        assert workspace.heads == ("tri",)
        workspace.install("p(a) <- edge(a, _).")


# -- damage -------------------------------------------------------------------------------------------


def test_each_byte_of_a_folder_damaged_is_refused_or_taken_back_to_a_beginning(folder: Path) -> None:
    """Only what the last change has may go: nothing says that it had been on disk."""
    workspace = with_edges(folder, feed_bytes=0)
    workspace.checkpoint()
    insert(workspace, (3, 4))
    insert(workspace, (4, 5))
    workspace.close()
    without_image(folder)
    all_rows = {*EDGES, (3, 4), (4, 5)}
    chance = random.Random(3)
    refused: list[tuple[str, str]] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "lock":
            continue
        good = path.read_bytes()
        for place in chance.sample(range(len(good)), 40):
            path.write_bytes(good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :])
            try:
                rows = set(Workspace.open(folder, read_only=True)["edge"])
            except errors.DurabilityError as error:
                refused.append((path.name, str(error)))
            else:
                assert rows == all_rows - {(4, 5)}, (path, place)
                assert path.name.startswith("journal")
        path.write_bytes(good)
    assert all(name in error for name, error in refused)
    assert set(Workspace.open(folder, read_only=True)["edge"]) == all_rows


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    workspace = with_edges(folder, feed_bytes=0)
    insert(workspace, (3, 4))
    workspace.checkpoint()
    workspace.close()
    without_image(folder)
    for pattern in ("data/edge-*", "journal-*", "manifest-*"):
        (path,) = folder.glob(pattern)
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(errors.DurabilityError):
            Workspace.open(folder)
        path.write_bytes(content)
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 4


def test_a_folder_of_the_first_format_is_opened_and_goes_on_in_the_newest(folder: Path) -> None:
    """It was written before journals were kept behind checkpoints, at change 3; 4 and 5 are in its own."""
    shutil.copytree(TESTS / "maintenance" / "durable" / "format_1", folder)
    rows = {(2, 3), (1, 3), (3, 4), (2, 4), (1, 4)}
    for _ in range(2):
        assert set(Workspace.open(folder, read_only=True)["edge"]) == rows
        with Workspace.open(folder) as workspace:
            assert set(workspace["edge"]) == rows
            assert set(workspace["tri"]) == {(1, 3, 4), (2, 3, 4)}
            assert set(workspace["back"]) == {(b, a) for a, b in rows}
            assert workspace.strategy_of("tri") == "trace"
            assert workspace.changes_since(3, "tri").table.to_pylist() == [
                {"a": 1, "b": 2, "c": 3, "weight": -1},
                {"a": 1, "b": 3, "c": 4, "weight": 1},
            ]
            with pytest.raises(errors.CursorError):
                workspace.changes_since(2, "tri")
            workspace.checkpoint()
    (manifest,) = folder.glob("manifest-*")
    assert b'"format": 2' in manifest.read_bytes()


def test_a_newer_manifest_is_refused(folder: Path) -> None:
    with_edges(folder).close()
    (path,) = folder.glob("manifest-*")
    line = path.read_bytes().partition(b"\n")[0].replace(b'"format": 2', b'"format": 3')
    path.write_bytes(b"%s\n%08x\n" % (line, zlib.crc32(line)))
    with pytest.raises(errors.DurabilityError, match="its format is 3, and this version of lftj reads"):
        Workspace.open(folder)
