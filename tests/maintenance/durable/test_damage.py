"""A folder of which something was damaged: opened it has all that was there, or says what it has not.

Each file is damaged in turn, in folders of every durability, closed or left by a process that was killed.  No
byte that was in a journal, or in a file of data, goes.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable.records import FILE_HEADER_BYTES, read_records
from maintenance.workspace.folder import KeptFolder
from maintenance.workspace.folder_check import check_folder
from support.head_rows import applied
from support.kept_lives import insert, with_edges, without_image

START = [(1, 1)]
COMMITS = [(number, number) for number in range(2, 7)]
FIRST, LAST = 2, 7
"""Versions: of the checkpoint, and behind the commits; the last is a load of another relation."""

DURABILITIES = ["commit", "interval", "none"]
ENDS = ["closed", "killed"]


def leave(workspace: Workspace) -> None:
    """As where the process was killed: nothing is written any more, and others may open the folder."""
    store = workspace._published.store
    assert store is not None and isinstance(workspace._folder, KeptFolder)
    workspace._folder.checkpoints.end()
    store._stop.set()
    store._lock.release()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """By durability, and how the process ended that wrote it."""
    made = {}
    for durability in DURABILITIES:
        for end in ENDS:
            folder = tmp_path_factory.mktemp("sound") / "ws"
            workspace = Workspace.open(folder, durability=durability, interval=1e6)  # type: ignore[arg-type]
            workspace.load("edge", START, columns=["x", "y"])
            insert(workspace, (0, 0))
            workspace.checkpoint()
            for row in COMMITS[:-1]:
                insert(workspace, row)
            workspace.load("more", COMMITS, columns=["x", "y"])
            workspace.close() if end == "closed" else leave(workspace)
            made[durability, end] = folder
    return made


def rows_at(version: int) -> dict[str, set[tuple[int, ...]]]:
    """The relations at a version."""
    edge = {*START, (0, 0), *COMMITS[: version - FIRST][:4]}
    return {"edge": edge, "more": set(COMMITS)} if version == LAST else {"edge": edge}


def rows_of(workspace: Workspace) -> dict[str, set[tuple[int, ...]]]:
    return {name: set(workspace[name]) for name in workspace.relations}


def journal_of(folder: Path) -> Path:
    return max(folder.glob("journal-*"))


def files_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def refuse_lost_bytes(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Raise AssertionError if bytes of a journal, of data or of an image are not there any more."""
    kept = [data for name, data in after.items() if "damaged-" in name]
    for name, data in before.items():
        if name.startswith("manifest") or after.get(name, b"").startswith(data):
            continue
        now = after.get(name, b"")
        left = {data[len(now) :]} if data.startswith(now) else set()
        assert left & set(kept) or data in kept, f"of {name} bytes are gone"


class Opened(NamedTuple):
    """``version``: -1 where it was refused; ``told``: by the error, or by a warning."""

    version: int
    told: str


def opened(folder: Path, **options: object) -> Opened:
    """Open a folder, look whether its rows are those of the version that it says, and close it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            workspace = Workspace.open(folder, **options)  # type: ignore[arg-type]
        except errors.DamagedFolderError as error:
            return Opened(-1, str(error))
    assert {each.category for each in caught} <= {errors.DamagedFolderWarning}
    assert rows_of(workspace) == rows_at(workspace.version)
    version = workspace.version
    if "read_only" not in options:
        leave(workspace)
    return Opened(version, " ".join(str(each.message) for each in caught))


def check(folder: Path, end: str, *, is_journal: bool = True) -> None:
    """What opening a damaged folder promises; it is copied for each way to open it."""
    before = files_of(folder)
    checked = check_folder(folder)
    reader = opened(folder, read_only=True)
    assert files_of(folder) == before
    writer = opened(folder)
    assert (writer.version, bool(writer.told)) == (reader.version, bool(reader.told))
    if writer.version < 0:
        assert not all(each.is_whole for each in checked)
        assert str(folder) in writer.told and files_of(folder) == before
        if not is_journal:
            return
        assert "damaged='set aside'" in writer.told and "check`" in writer.told
        version = opened(folder, damaged="set aside", read_only=True).version
        assert files_of(folder) == before
        writer = opened(folder, damaged="set aside")
        assert FIRST <= writer.version == version < LAST
        assert f"version {LAST} is known" in writer.told or end == "killed" or "is not there" in writer.told
    else:
        assert writer.version == LAST or end == "killed"
    assert writer.version == LAST or f"is opened at version {writer.version}, and version " in writer.told
    refuse_lost_bytes(before, files_of(folder))
    assert opened(folder) == Opened(writer.version, "")
    assert all(each.is_whole for each in check_folder(folder))


def damaged_copy(folder: Path, to: Path, damage: Callable[[bytearray], object], with_image: bool) -> Path:
    """A copy, its last journal damaged."""
    shutil.copytree(folder, to)
    data = bytearray(journal_of(to).read_bytes())
    damage(data)
    journal_of(to).write_bytes(data)
    if not with_image:
        without_image(to)
    return to


def ends_of(folder: Path) -> list[int]:
    """Where the records of the last journal end."""
    path = journal_of(folder)
    read = read_records(path.read_bytes(), path)
    assert read is not None and read.next - 1 == LAST
    return [FILE_HEADER_BYTES, *(record.end for record in read.records)]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_bit_of_each_record_flipped(
    folders: dict[tuple[str, str], Path], tmp_path: Path, durability: str, end: str
) -> None:
    folder = folders[durability, end]
    ends = ends_of(folder)
    places = [5, *((a + 20, b - 9)[a % 2] for a, b in pairwise(ends))]
    for number, place in enumerate(places):

        def flip(data: bytearray, place: int = place) -> None:
            data[place] ^= 4

        copy = damaged_copy(folder, tmp_path / f"{number}", flip, with_image=number % 2 == 0)
        check(copy, end)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_journal_cut_at_any_length(
    folders: dict[tuple[str, str], Path], tmp_path: Path, durability: str, end: str
) -> None:
    """But for a cut between two records behind a kill: then the first is the last that was ever written."""
    folder = folders[durability, end]
    ends = ends_of(folder)
    between = [ends[0], ends[2], ends[-2]] if end == "closed" else []
    inside = [ends[0] + 1, ends[2] + 60, ends[-1] - 1]
    for number, length in enumerate([0, FILE_HEADER_BYTES - 1, *between, *inside]):

        def cut(data: bytearray, length: int = length) -> None:
            del data[length:]

        copy = damaged_copy(folder, tmp_path / f"{number}", cut, with_image=number % 2 == 0)
        check(copy, end)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_file_that_is_gone_or_damaged(
    folders: dict[tuple[str, str], Path], tmp_path: Path, durability: str, end: str
) -> None:
    def gone(path: Path) -> None:
        path.unlink()

    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    folder = folders[durability, end]
    for number, (patterns, damage) in enumerate(
        [
            (["journal-*"], gone),
            (["journal-*", "image-*"], gone),
            (["image-*"], gone),
            (["image-*"], cut),
            (["image-*"], flip),
            (["manifest-*"], gone),
            (["manifest-*"], cut),
            (["manifest-*"], flip),
            (["image-*", "data/edge-*"], gone),
            (["image-*", "data/edge-*"], flip),
            (["image-*", "data/more-*"], flip),
        ]
    ):
        if durability != "commit" and patterns[0] != "journal-*":
            continue
        copy = tmp_path / f"{number}"
        shutil.copytree(folder, copy)
        for pattern in patterns:
            damage(max(copy.glob(pattern)))
        if patterns == ["image-*"]:
            assert opened(copy) == Opened(LAST, "")
        else:
            check(copy, end, is_journal=patterns[0] == "journal-*")
    with Workspace.open(tmp_path / "0") as workspace:
        insert(workspace, (8, 8))
    assert set(Workspace.open(tmp_path / "0", read_only=True)["edge"]) == {*START, (0, 0), (8, 8)}


def test_all_that_is_left_of_a_workspace_without_its_manifest_is_no_new_one(tmp_path: Path) -> None:
    """Of one with rules only, whose journal is empty."""
    with Workspace.open(tmp_path / "ws", feed_bytes=0) as workspace:
        workspace.load("edge", START, columns=["x", "y"])
        workspace.install("back(b, a) <- edge(a, b).")
        workspace.checkpoint()
    without_image(tmp_path / "ws")
    for pattern in ("manifest-*", "data/edge-*"):
        max((tmp_path / "ws").glob(pattern)).unlink()
    with pytest.raises(errors.DamagedFolderError, match="no manifest"):
        Workspace.open(tmp_path / "ws")


def test_an_image_says_what_was_there_though_nothing_was_waited_for(tmp_path: Path) -> None:
    """What it is made of is on disk before it is, with every durability."""
    folder = tmp_path / "ws"
    for durability in ("interval", "none"):
        workspace = Workspace.open(folder, durability=durability, interval=1e6)  # type: ignore[arg-type]
        if "edge" not in workspace:
            workspace.load("edge", START, columns=["x", "y"])
        insert(workspace, (5, len(durability)))
        assert workspace.stats.changes_not_on_disk
        assert isinstance(workspace._folder, KeptFolder)
        workspace._folder.write_image(workspace)
        assert not workspace.stats.changes_not_on_disk
        leave(workspace)


def test_a_folder_left_by_an_older_version_may_have_an_image_that_is_ahead(tmp_path: Path) -> None:
    """It did not wait for the disk before it wrote one."""
    folder = tmp_path / "ws"
    shutil.copytree(Path(__file__).parent / "format_4", folder)
    image = folder / f"image-{9:020d}-{7:08x}.arrow"
    image.write_bytes(b"an image")
    with pytest.warns(errors.DamagedFolderWarning, match="opened at version 5, and version 5 is known"):
        Workspace.open(folder).close()
    assert b"an image" in files_of(folder).values()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Workspace.open(folder).close()


# -- those who read beside -------------------------------------------------------------------------------


def test_a_reader_is_told_of_damage_that_comes_while_it_reads(tmp_path: Path) -> None:
    """A record that is not whole may be being written; one that has others behind it is damaged."""
    folder = tmp_path / "ws"
    for durability in ("commit", "none"):
        workspace = with_edges(folder / durability, durability=durability)
        reader = Workspace.open(folder / durability, read_only=True)
        path = journal_of(folder / durability)
        place = path.stat().st_size
        version = reader.version
        insert(workspace, (3, 4))
        data = bytearray(path.read_bytes())
        data[place + 100] ^= 1
        path.write_bytes(data)
        assert reader.refresh() == version
        insert(workspace, (2, 4))
        for look in (reader.refresh, lambda reader=reader: next(reader.follow("tri", timeout=0))):
            with pytest.raises(errors.DamagedFolderError, match=f"damaged at byte {place}, where change 3"):
                look()
        assert reader.version == version
        workspace.close()
        with pytest.raises(errors.DamagedFolderError, match=f"damaged at byte {place}"):
            Workspace.open(folder / durability)


def test_who_followed_what_was_set_aside_is_told(tmp_path: Path) -> None:
    """The version that was reached is one that the folder has not any more."""
    folder = tmp_path / "ws"
    with with_edges(folder) as workspace:
        insert(workspace, (3, 4), (2, 4))
        before, rows = workspace.version, set(workspace["tri"])
        insert(workspace, (4, 5), (3, 5))
    without_image(folder)
    path = journal_of(folder)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(errors.DamagedFolderWarning, match="damaged at byte"):
        again = Workspace.open(folder, damaged="set aside")
    with again:
        assert set(again["tri"]) == rows
        with pytest.raises(errors.CursorError, match=f"no version {before + 1} of 'tri' yet"):
            again.changes_since(before + 1, "tri")
        insert(again, (4, 6), (3, 6))
        assert applied(rows, again.changes_since(before, "tri").table) == set(again["tri"])


def test_a_copy_of_a_damaged_folder_has_what_was_opened(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    workspace = with_edges(folder)
    insert(workspace, (3, 4))
    leave(workspace)
    path = journal_of(folder)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(errors.DamagedFolderWarning, match="opened at version 2"):
        memory = Workspace.load_from(folder)
    with pytest.warns(errors.DamagedFolderWarning, match="they are kept in damaged-journal-"):
        again = Workspace.open(folder)
    again.save(tmp_path / "copy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = Workspace.load_from(tmp_path / "copy")
    assert set(copy["edge"]) == set(memory["edge"]) == {(1, 2), (2, 3), (1, 3)}
    again.close()


def test_what_becomes_of_damage_is_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="damaged is 'ignore'; it can be refuse, set aside"):
        Workspace.open(tmp_path / "ws", damaged="ignore")  # type: ignore[arg-type]
