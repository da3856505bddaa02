"""laws: a path is one place, however it is written; a place that can't be used is told, by its name."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc

from lftj.errors import StateError
from spark_bridge.state.manifest import StateManifest
from spark_bridge.state.store import StateStore
from support.state_stores import TABLE, commit


@pytest.mark.parametrize("folder", ["plain", "with space", "ünï-日本", "50%25", "a#b", "deep/er/", "q'\"x"])
def test_paths_and_uris_of_one_folder(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder
    forms = [str(path), path, path.as_uri(), f"file:{path.as_uri().removeprefix('file://')}"]
    if "%" not in folder:  # else it would be another one
        forms.append(f"file://{path}")
    manifest = commit(StateStore(path), 1)
    assert (path / "manifest-000000000001.json").is_file()
    for form in forms:
        store = StateStore(form)
        assert store.newest() == manifest
        for name in manifest.files():
            assert store.read_table(name).equals(TABLE)
        assert store.clean(1) == 0


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = StateStore("here/state")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    manifest = commit(store, 1)
    assert StateStore(tmp_path / "here" / "state").newest() == manifest


def test_a_pickled_store_is_its_path(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    manifest = commit(store, 1)
    again = pickle.loads(pickle.dumps(store))
    assert again._path._opened is None
    assert (again.path, again.newest()) == (str(tmp_path), manifest)
    assert len(pickle.dumps(store)) < 500


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the state path is empty"),
        ("foo://host/x", "state path 'foo://host/x' can't be opened: .*foo.*: give a folder, or a URI"),
        ("file://host/x", "state path 'file://host/x' can't be opened"),
        ("s4://me:secret@host/x", "state path 's4://...@host/x' can't be opened"),
    ],
)
def test_a_path_that_is_none_is_told(path: str, message: str) -> None:
    with pytest.raises(StateError, match=message):
        StateStore(path).newest()


def every_use(store: StateStore) -> list[Callable[[], object]]:
    return [
        store.create,
        lambda: store.commit(StateManifest(1, {}, {}, {}, {}, ())),
        lambda: store.write_table(store.new_name("t", "changes", "0"), TABLE),
        lambda: store.open_output(store.new_name("t", "changes", "0")),
    ]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_in_the_way_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("here")
    store = StateStore(tmp_path / place)
    for use in every_use(store):
        with pytest.raises(StateError, match=f"^{tmp_path}/{place}.*: (Not a directory|File exists): give a"):
            use()
    assert (tmp_path / "file").read_text() == "here"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc, where nobody can make a file")
def test_a_path_that_cant_be_made_is_told() -> None:
    for use in every_use(StateStore("/proc/state")):
        with pytest.raises(
            StateError, match=r"^/proc/state/.* can't be written: .*: give a state path at which"
        ):
            use()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_path_is_told(tmp_path: Path) -> None:
    manifest = commit(StateStore(tmp_path), 1)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StateError, match=r"can't be written: .*Permission denied"):
            StateStore(tmp_path).create()
        assert StateStore(tmp_path).newest() == manifest
    finally:
        tmp_path.chmod(0o700)


def test_a_write_that_fails_half_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(ipc.RecordBatchFileWriter):
        def write_table(self, table: pa.Table, max_chunksize: int | None = None) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("spark_bridge.state.store.ipc.new_file", lambda *of: Full(*of))
    store = StateStore(tmp_path)
    name = store.new_name(store.begin(1), "changes", "0")
    with pytest.raises(StateError, match=f"/{name}: can't be written: .*No space left"):
        store.write_table(name, TABLE)
