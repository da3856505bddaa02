"""Readers beside the one who writes: whatever that does, they go on, and see what he has.

The writer loads, commits, installs, replaces, uninstalls, makes checkpoints and copies, closes and opens
again.  A reader refreshes, follows and asks what changed, at random, and is compared with sets of tuples.
"""

from __future__ import annotations

import random
from pathlib import Path
from unittest import mock

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable.journal import Journal
from maintenance.workspace import recovery
from support.head_rows import Rows, applied
from support.kept_lives import EDGES, Expected, insert, life, with_edges, without_image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


def check_told(workspace: Workspace, version: int, rows: Rows, one_by_one: bool) -> None:
    """What is said of the triangles since a version leads to those that there are."""
    if one_by_one:
        for each in workspace.follow("tri", since=version, timeout=0):
            assert version < each.version <= workspace.version
            version, rows = each.version, applied(rows, each.table)
    else:
        change = workspace.changes_since(version, "tri")
        assert change.version == workspace.version
        rows = applied(rows, change.table)
    assert rows == set(workspace["tri"])


class Beside:
    """A reader of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace.open(folder, read_only=True)
        self.openings = 1

    def look(self, chance: random.Random, version: int, expected: Expected, may_be_late: bool) -> None:
        """Come to the version that is there, by one of the ways, and compare.

        ``may_be_late``: whether a relation was loaded more than once since the last look.
        """
        late = ""
        try:
            if chance.random() < 0.5 or "tri" not in self.workspace:
                self.workspace.refresh()
            else:
                list(self.workspace.follow("tri", timeout=0))
        except errors.CursorError as error:
            late = str(error)
        if late:
            assert may_be_late
            assert "was loaded anew since: open the folder again" in late
            self.workspace = Workspace.open(self.folder, read_only=True)
            self.openings += 1
        assert self.workspace.version == self.workspace.refresh() == version
        assert expected.is_met_by(self.workspace)
        for head in expected.strategies:
            assert set(self.workspace[head]) == expected.head(head)


@pytest.mark.parametrize("seed", range(2))
def test_readers_go_on_through_a_life(folder: Path, tmp_path: Path, seed: int) -> None:
    """One opens the folder anew only where a relation was loaded more than once since its last look."""
    chance = random.Random(seed)
    writer = Workspace.open(folder)
    readers = [Beside(folder), Beside(folder)]
    loads = [0, 0]
    cursors: list[tuple[int, Rows]] = []
    for number, (step, expected) in enumerate(life(chance, 40)):
        with mock.patch.object(Workspace, "load", autospec=True, side_effect=Workspace.load) as loaded:
            step(writer)
        loads = [each + loaded.call_count for each in loads]
        if "tri" in writer:
            cursors.append((writer.version, set(writer["tri"])))
        what = chance.random()
        if what < 0.1:
            writer.close()
            if what < 0.05:
                without_image(folder)
            writer = Workspace.open(folder, checkpoint_bytes=chance.choice((1, 1 << 30)))
        elif what < 0.15:
            writer.save(tmp_path / f"copy-{number}")
            expected.check(Workspace.load_from(tmp_path / f"copy-{number}"))
        elif what < 0.3:
            writer.checkpoint()
        for place, often in enumerate((0.3, 0.1)):
            if chance.random() < often:
                readers[place].look(chance, writer.version, expected, loads[place] > 1)
                loads[place] = 0
                if cursors:
                    check_told(readers[place].workspace, *chance.choice(cursors), chance.random() < 0.5)
    writer.close()
    for reader, n_loads in zip(readers, loads, strict=True):
        reader.look(chance, writer.version, expected, n_loads > 1)
        reader.workspace.verify()
    assert readers[0].openings < 4


@pytest.mark.parametrize("bag", [False, True])
def test_a_relation_whose_file_was_replaced_is_loaded_as_it_was(folder: Path, bag: bool) -> None:
    """Rules over it, and changes of them, come one by one, from the load on."""
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        start = reader.version
        rows = [(1, None), (2, "b"), (2, "b")] if bag else [(1, None), (2, "b")]
        writer.load("word", rows, columns=["n", "w"], nulls="keep", bag=bag)
        writer.install("n[w] = count() <- word(_, w).")
        versions = [writer.version]
        for row in [(3, "b"), (4, None)]:
            with writer.transaction() as tx:
                tx.insert("word", [row])
            versions.append(writer.version)
            writer.checkpoint()
        with writer.transaction() as tx:
            tx.erase("word", [(1, None)])
        heard: list[int] = []
        reader.subscribe("tri", lambda table: heard.append(table.num_rows))
        assert reader.refresh() == writer.version > start
        assert sorted(map(str, reader["word"])) == sorted(map(str, writer["word"]))
        assert sorted(map(str, reader["n"])) == sorted(map(str, writer["n"]))
        changes = [each.version for each in reader.follow("n", since=versions[0], timeout=0)]
        assert changes == [each.version for each in writer.follow("n", since=versions[0], timeout=0)]
        assert set(changes) >= set(versions[1:2])
        reader.verify()


def test_of_two_loads_since_the_rows_of_the_first_are_gone(folder: Path) -> None:
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        for number in range(2):
            writer.load("word", [(number,)], columns=["n"])
        writer.checkpoint()
        with pytest.raises(errors.CursorError, match=r"'word' as it was loaded .*open the folder again"):
            reader.refresh()
        assert "word" not in reader
        assert set(Workspace.open(folder, read_only=True)["word"]) == {(1,)}


def test_a_file_that_is_gone_and_was_not_replaced_is_damage(folder: Path) -> None:
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        writer.load("word", [(1,)], columns=["n"])
        max((folder / "data").glob("word-*")).unlink()
        with pytest.raises(errors.DamagedFolderError, match="this file is not there"):
            reader.refresh()
        assert "word" not in reader


def test_a_checkpoint_that_ends_while_a_folder_is_read_is_no_damage(folder: Path) -> None:
    """It deletes files of data that were just read of."""
    with with_edges(folder) as writer:
        insert(writer, (3, 4))
        without_image(folder)
        rebuild, pending = recovery.rebuild, [writer.checkpoint, lambda: insert(writer, (4, 5))]

        def meanwhile(*arguments: object) -> None:
            if pending:
                pending.pop(0)()
                without_image(folder)
            rebuild(*arguments)  # type: ignore[arg-type]

        for read in (lambda: Workspace.open(folder, read_only=True), lambda: Workspace.load_from(folder)):
            with mock.patch.object(recovery, "rebuild", meanwhile):
                assert set(read()["edge"]) >= {*EDGES, (3, 4)}
            pending += [lambda: insert(writer, (5, 6)), writer.checkpoint]


def test_a_reader_stays_with_a_file_as_long_as_changes_come_there(folder: Path) -> None:
    """Another one was begun, and not gone on with, as where the writer was interrupted between the two."""
    with with_edges(folder) as writer:
        reader = Workspace.open(folder, read_only=True)
        store = writer._published.store
        assert store is not None
        Journal.begun(store._disk, folder, store.number + 1, store.chain).close()
        assert reader.refresh() == writer.version
        insert(writer, (3, 4))
        assert reader.refresh() == writer.version
        writer.checkpoint()
        insert(writer, (4, 5))
        assert reader.refresh() == writer.version
        assert set(reader["edge"]) == set(writer["edge"])


def test_a_reader_with_all_changes_outlives_their_file(folder: Path) -> None:
    with with_edges(folder, feed_bytes=0) as writer:
        insert(writer, (3, 4))
        reader = Workspace.open(folder, read_only=True)
        for number in range(3):
            writer.checkpoint()
            insert(writer, (10, number))
            assert reader.refresh() == writer.version
            writer.checkpoint()
            assert reader.refresh() == writer.version
