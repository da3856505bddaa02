"""Folders of workspaces: who may open one, and what is said of one that is damaged."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from lftj import errors
from lftj.language.parser import parse
from maintenance import Workspace
from maintenance.durable import manifest, records
from maintenance.durable.records import FORMAT
from support.disks import FailingDisk
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


FORKING = """
import os, sys
from lftj import errors
from maintenance import Workspace

workspace = Workspace.open(sys.argv[1])
child = os.fork()
if not child:
    try:
        with workspace.transaction() as tx:
            tx.insert("edge", [(3, 4)])
    except errors.ClosedError as error:
        os._exit(0 if "another process opened the workspace, and this is a fork" in str(error) else 2)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
with workspace.transaction() as tx:
    tx.insert("edge", [(3, 4)])
workspace.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_can_not_change_what_its_parent_has_open(folder: Path) -> None:
    with_edges(folder).close()
    subprocess.run([sys.executable, "-c", FORKING, folder], env=child_environment(), check=True)
    assert len(Workspace.open(folder, read_only=True)["edge"]) == 4


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


def format_of(folder: Path) -> int:
    """What the manifest says."""
    (path,) = folder.glob("manifest-*")
    return int(json.loads(path.read_bytes().partition(b"\n")[0])["format"])


def put_older(folder: Path, number: int) -> None:
    """A folder as an older version wrote it: a manifest of change 3, and 4 and 5 in its journal."""
    shutil.copytree(TESTS / "maintenance" / "durable" / f"format_{number}", folder)


@pytest.mark.parametrize("older", range(1, FORMAT))
def test_a_folder_of_an_older_format_is_opened_and_goes_on_in_the_newest(folder: Path, older: int) -> None:
    put_older(folder, older)
    rows = {(2, 3), (1, 3), (3, 4), (2, 4), (1, 4)}
    assert set(Workspace.load_from(folder)["edge"]) == rows
    for format_ in (older, FORMAT):
        assert set(Workspace.open(folder, read_only=True)["edge"]) == rows
        assert format_of(folder) == format_
        with Workspace.open(folder) as workspace:
            assert format_of(folder) == FORMAT
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


@pytest.mark.parametrize("begun", range(1, FORMAT + 1))
def test_an_older_version_refuses_what_this_one_wrote(folder: Path, begun: int) -> None:
    """Here relations that keep NULL, which versions of format 2 would take for damage, or for values.

    Also where the process was killed before a checkpoint, in a folder that an older version had begun.
    """
    if begun < FORMAT:
        put_older(folder, begun)
    left = folder.with_name("left")
    with Workspace.open(folder) as workspace:
        workspace.load("person", [(1, None), (2, "Bo")], columns=["id", "name"], nulls="keep")
        with workspace.transaction() as tx:
            tx.insert("person", [(None, "Ann")])
        shutil.copytree(folder, left)
    ways: list[Callable[[Path], Workspace]] = [
        Workspace.open,
        Workspace.load_from,
        lambda place: Workspace.open(place, read_only=True),
    ]
    for place in (folder, left):
        with (
            mock.patch.object(records, "FORMAT", FORMAT - 1),
            mock.patch.object(manifest, "FORMAT", FORMAT - 1),
        ):
            for way in ways:
                with pytest.raises(
                    errors.DurabilityError, match=f"its format is {FORMAT}, and .* up to {FORMAT - 1}:"
                ):
                    way(place)
        with Workspace.open(place) as again:
            assert set(again["person"]) == {(1, None), (2, "Bo"), (None, "Ann")}


def test_a_newer_manifest_is_refused(folder: Path) -> None:
    with_edges(folder).close()
    (path,) = folder.glob("manifest-*")
    fields = json.loads(path.read_bytes().partition(b"\n")[0])
    line = json.dumps({**fields, "format": FORMAT + 1}).encode()
    path.write_bytes(b"%s\n%08x\n" % (line, zlib.crc32(line)))
    with pytest.raises(
        errors.DurabilityError, match=f"its format is {FORMAT + 1}, and this version of lftj reads"
    ):
        Workspace.open(folder)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_folder_that_can_not_be_made_one_of_the_newest_format_stays_as_it_is(
    tmp_path: Path, lasting: bool
) -> None:
    """A disk that fails at any step of opening."""
    disk = FailingDisk(errno.ENOSPC)
    put_older(tmp_path / "good", 2)
    with mock.patch.object(Workspace, "_disk", disk), Workspace.open(tmp_path / "good"):
        n_steps = len(disk.steps)
    assert n_steps > 5
    refused = 0
    for place in range(n_steps):
        folder = tmp_path / f"{place}"
        put_older(folder, 2)
        fails = (lambda n, _, k=place: n >= k) if lasting else (lambda n, _, k=place: n == k)
        with mock.patch.object(Workspace, "_disk", FailingDisk(errno.ENOSPC, fails)):
            try:
                Workspace.open(folder)._published.store.close()  # type: ignore[union-attr]
            except errors.DurabilityError as error:
                refused += "No space left" in str(error)
        assert set(Workspace.open(folder, read_only=True)["tri"]) == {(1, 3, 4), (2, 3, 4)}
        with Workspace.open(folder) as again:
            insert(again, (4, 5))
        assert (4, 5) in Workspace.open(folder, read_only=True)["edge"]
    assert refused > 3
