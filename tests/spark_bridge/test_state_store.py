"""laws: a commit is all or nothing, whoever is killed; cleaning keeps what is named; errors name the file.

What tries of batches leave that failed, and when it goes, is in ``test_late_tasks.py``.

The store runs on local files (commits by links, files mapped into memory), on the same files behind another
Arrow file system, which knows neither, and on Arrow's mock in memory, whose moves replace what is there.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import StateError
from maintenance.store.fault_points import POINTS, reached
from spark_bridge.state.manifest import StateManifest
from spark_bridge.state.store import StateStore, token_of
from support.paths import child_environment
from support.state_stores import TABLE, MakeStore, commit, data_files, data_folders, state, top_files

COMMIT_POINTS = [point for point in POINTS if point.startswith("commit: ")]
CLEAN_POINT = "clean: manifests deleted, data not"


# -- manifests ----------------------------------------------------------------


def test_nothing_there_is_no_manifest(make_store: MakeStore) -> None:
    store = make_store()
    assert store.newest() is None
    assert store.clean(1) == 0
    store.create()
    assert store.newest() is None
    assert top_files(store) == set()


def test_the_newest_is_the_highest(make_store: MakeStore) -> None:
    store = make_store()
    for version in (1, 2, 9, 10, 100):
        manifest = commit(store, version)
        assert make_store().newest() == manifest
    assert top_files(store) == {f"manifest-{version:012d}.json" for version in (1, 2, 9, 10, 100)}


def test_messages_name_the_path_that_a_manifest_came_from(tmp_path: Path) -> None:
    commit(StateStore(tmp_path), 1)
    manifest = StateStore(tmp_path).newest()
    assert manifest is not None
    with pytest.raises(StateError, match="made for partitions=2, not 8") as caught:
        manifest.refuse_other({"partitions": 8})
    assert str(caught.value).startswith(f"state path {str(tmp_path)!r} was made")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_version_that_is_not_above_all_is_refused(make_store: MakeStore, version: int) -> None:
    first, second = make_store(), make_store()
    kept = commit(first, 3)
    with pytest.raises(
        StateError, match=f"has version 3 already, so version {version} can't follow: another"
    ):
        second.commit(state(second, version))
    assert second.newest() == kept
    assert top_files(first) == {"manifest-000000000003.json"}


@pytest.mark.parametrize("make_store", ["local", "conditional"], indirect=True)
@pytest.mark.parametrize("repetition", range(10))
def test_of_commits_at_once_one_succeeds(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, repetition: int
) -> None:
    """All have seen that there is no version yet before the first is moved."""
    make_store().create()
    together = threading.Barrier(8)

    def wait(point: str) -> None:
        if point == "commit: manifest written, not moved":
            together.wait()

    monkeypatch.setattr("spark_bridge.state.store.reached", wait)
    done: list[StateManifest] = []

    def attempt(number: int) -> None:
        manifest = StateManifest(1, {"by": number}, {}, {}, {}, ())
        with suppress(StateError):
            make_store().commit(manifest)
            done.append(manifest)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = make_store()
    assert [store.newest()] == done
    assert top_files(store) == {"manifest-000000000001.json"}


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "link", no_link)
    store = StateStore(tmp_path)
    manifest = commit(store, 1)
    assert store.newest() == manifest
    assert top_files(store) == {"manifest-000000000001.json"}
    assert not store._path.name_at_last("manifest-000000000001.json", "manifest-000000000001.json")


def test_a_version_with_thirteen_digits_is_no_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="10\\*\\*12"):
        StateStore(tmp_path).commit(StateManifest(10**12, {}, {}, {}, {}, ()))


# -- damage -------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, -1])
def test_a_move_that_was_cut_short_is_no_version(make_store: MakeStore, length: int) -> None:
    store = make_store()
    old = commit(store, 1)
    new = state(store, 2, old)
    store._path.write(f"manifest-000000000002.json.{'a' * 32}.tmp", new.to_bytes())
    store._path.write("manifest-000000000002.json", new.to_bytes()[:length])
    assert store.newest() == old
    store.commit(new)
    assert store.newest() == new
    store.clean(2)
    assert top_files(store) == {"manifest-000000000001.json", "manifest-000000000002.json"}


def test_cleaning_removes_a_move_that_was_cut_short(make_store: MakeStore) -> None:
    store = make_store()
    old = commit(store, 1)
    store._path.write(f"manifest-000000000002.json.{'a' * 32}.tmp", b"{}")
    store._path.write("manifest-000000000002.json", b"{")
    assert store.clean(1) == 2
    assert store.newest() == old
    assert top_files(store) == {"manifest-000000000001.json"}


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:40], lambda data: data[40:]])
def test_a_damaged_manifest_is_refused(make_store: MakeStore, damage: Callable[[bytes], bytes]) -> None:
    store = make_store()
    commit(store, 2, commit(store, 1))
    name = "manifest-000000000002.json"
    store._path.write(name, damage(store._path.read(name)))
    before = data_files(store)
    for use in (store.newest, lambda: store.clean(1)):
        with pytest.raises(StateError, match=f"state/{name}: the manifest is damaged") as caught:
            use()
        assert "put back a copy of it, or start anew with another state path" in str(caught.value)
    assert data_files(store) == before


def test_a_renamed_manifest_is_refused(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    commit(store, 1)
    (tmp_path / "manifest-000000000001.json").rename(tmp_path / "manifest-000000000004.json")
    with pytest.raises(StateError, match=r"manifest-000000000004\.json: this is the manifest of version 1"):
        store.newest()


def test_other_files_are_no_manifests(make_store: MakeStore) -> None:
    store = make_store()
    old = commit(store, 1)
    for name in ("manifest-2.json", "manifest-000000000003.json.bak", ".manifest-000000000003.json", "notes"):
        store._path.write(name, b"{}")
    store._path.write("manifest-000000000009.json/inside", b"a folder")
    assert store.newest() == old
    assert store.clean(1) == 0
    assert len(top_files(store)) == 5


# -- killed -------------------------------------------------------------------

SCRIPT = """
import os, sys
from support.state_stores import state
from spark_bridge.state.store import StateStore
for line in sys.stdin.read().splitlines():
    path, fault = line.split("|")
    child = os.fork()
    if not child:
        os.environ["LFTJ_FAULT"] = fault
        store = StateStore(path)
        store.commit(state(store, 2, store.newest()))
        store.clean(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""For each line of its input a process of its own, which has the modules: to load them takes longest."""

NOT_REACHED = "commit: manifest moved:2"


class Killed(NamedTuple):
    path: Path
    old: StateManifest
    code: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Killed]:
    """By fault a state of one version, and how a process ended that was to make the next and to clean."""
    paths = {fault: tmp_path_factory.mktemp("state") for fault in [*COMMIT_POINTS, CLEAN_POINT, NOT_REACHED]}
    old = {fault: commit(StateStore(path), 1) for fault, path in paths.items()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=child_environment(),
        input="".join(f"{path}|{fault}\n" for fault, path in paths.items()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = map(int, done.stdout.split())
    return {
        fault: Killed(path, old[fault], code)
        for (fault, path), code in zip(paths.items(), codes, strict=True)
    }


@pytest.mark.parametrize("point", [*COMMIT_POINTS, CLEAN_POINT])
def test_killed_anywhere_the_state_is_the_old_or_the_new(killed: dict[str, Killed], point: str) -> None:
    path, old, code = killed[point]
    assert code == -signal.SIGKILL
    store = StateStore(path)
    newest = store.newest()
    assert newest is not None
    moved = point in ("commit: manifest moved", CLEAN_POINT)
    assert newest.version == (2 if moved else 1)
    assert moved or newest == old
    assert newest.files() < data_files(store)
    everything = data_files(store)
    store.clean(1)
    assert store.newest() == newest
    # The killed try of version 2 could still be running for all that anybody knows, until there is one.
    assert data_files(store) == (newest.files() if moved else everything)
    assert top_files(store) == {f"manifest-{newest.version:012d}.json"}
    following = commit(store, newest.version + 1, newest)
    assert store.clean(1) > 0
    assert data_files(store) == following.files()
    assert data_folders(store) == {token_of(name) for name in following.files()}
    for name in following.files():
        assert store.read_table(name).equals(TABLE)


def test_a_point_that_is_not_reached_kills_nobody(killed: dict[str, Killed]) -> None:
    assert killed[NOT_REACHED].code == 0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("commit: manifest mooved", "'commit' is no point"),
        ("commit: manifest moved:0", "from 1 on"),
        ("commit: manifest moved:x", "from 1 on"),
        ("nonsense", "no point; there are: batch: before the job;"),
    ],
)
def test_a_wrong_fault_is_told(monkeypatch: pytest.MonkeyPatch, fault: str, message: str) -> None:
    monkeypatch.setenv("LFTJ_FAULT", fault)
    with pytest.raises(ValueError, match=message):
        reached("commit: manifest moved")


def test_an_unknown_point_is_told_where_faults_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reached("nowhere")
    monkeypatch.setenv("LFTJ_FAULT", POINTS[0])
    with pytest.raises(ValueError, match="'nowhere' is no point"):
        reached("nowhere")


def test_the_n_th_time(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr("maintenance.store.fault_points._times", {})
    monkeypatch.setattr(os, "kill", lambda process, sign: killed.append(process))
    monkeypatch.setenv("LFTJ_FAULT", f"{POINTS[0]}:3")
    so_far = []
    for _ in range(5):
        reached(POINTS[0])
        reached(POINTS[1])
        so_far.append(len(killed))
    assert so_far == [0, 0, 1, 1, 1]


# -- cleaning -----------------------------------------------------------------


def test_cleaning_keeps_what_kept_versions_name(make_store: MakeStore) -> None:
    store = make_store()
    versions = [commit(store, 1)]
    for version in (2, 3):
        versions.append(commit(store, version, versions[-1]))
    versions.append(commit(store, 4))
    everything = data_files(store)
    assert store.clean(4) == 0
    assert data_files(store) == everything
    assert store.clean(2) == 2 + len(everything - versions[2].files() - versions[3].files())
    assert data_files(store) == versions[2].files() | versions[3].files()
    store.clean(1)
    assert data_files(store) == versions[3].files()
    assert data_folders(store) == {token_of(name) for name in versions[3].files()}
    assert store.clean(1) == 0
    assert store.newest() == versions[3]


def test_cleaning_keeps_what_a_running_batch_may_have_written(make_store: MakeStore) -> None:
    """A try of the next version, whether it has written or not; not one of a version that there is."""
    store = make_store()
    tokens = [store.begin(version) for version in (1, 2, 2)]
    kept = commit(store, 1)
    outdated, running = (store.new_name(token, "changes", "0") for token in tokens[:2])
    for name in (outdated, running):
        store.write_table(name, TABLE)
    store.clean(1)
    assert data_files(store) == kept.files() | {running}
    assert data_folders(store) == {*tokens[1:], token_of(next(iter(kept.files())))}
    assert [store.is_running(token) for token in tokens] == [False, True, True]
    following = commit(store, 2)
    store.clean(1)
    assert data_files(store) == following.files()
    assert data_folders(store) == {token_of(name) for name in following.files()}
    assert top_files(store) == {"manifest-000000000002.json"}


def test_cleaning_removes_files_of_folders_that_no_try_has(make_store: MakeStore) -> None:
    """Such as versions of this software wrote that named them otherwise."""
    store = make_store()
    kept = commit(store, 1)
    for token in ("first" + "0" * 32, "batch7", f"batch7-{'0' * 32}.{'1' * 32}"):
        store._path.write(f"data/{token}/snapshot-0-0-{'a' * 32}", b"")
    assert store.clean(1) == 3
    assert data_files(store) == kept.files()
    assert data_folders(store) == {token_of(name) for name in kept.files()}


def test_cleaning_leaves_strangers_alone(make_store: MakeStore) -> None:
    store = make_store()
    commit(store, 1)
    strangers = {"data/mine.csv", "data/t0/notes.txt", f"data/t0/deeper/changes-0-{'a' * 32}"}
    for name in strangers:
        store._path.write(name, b"mine")
    assert store.clean(1) == 0
    assert strangers < data_files(store)


def test_at_least_one_version_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not 0"):
        StateStore(tmp_path).clean(0)


def test_a_refused_batch_is_dropped(make_store: MakeStore) -> None:
    store = make_store()
    kept = commit(store, 1)
    token = store.begin(2)
    store.write_table(store.new_name(token, "changes", "0"), TABLE)
    store.drop(token)
    store.drop(token)
    store.drop("never")
    assert data_files(store) == kept.files()
    assert data_folders(store) == {token_of(name) for name in kept.files()}
    assert top_files(store) == {"manifest-000000000001.json"}


@pytest.mark.parametrize("token", ["", ".", "..", "../t1", "a/b", "a\\b", "ä", "a b", "a\n"])
def test_a_token_is_one_part_of_a_path(tmp_path: Path, token: str) -> None:
    store = StateStore(tmp_path)
    for use in (store.drop, lambda token: store.new_name(token, "kind", "0")):
        with pytest.raises(ValueError, match="can't be in a file name"):
            use(token)


KEPT = st.integers(1, 4)
STEPS = st.lists(st.sampled_from(["grow", "anew", "garbage", "refuse"]) | KEPT, max_size=12)


@given(STEPS)
def test_files_follow_the_versions(tmp_path_factory: pytest.TempPathFactory, steps: list[str | int]) -> None:
    """stateful: whatever is committed and left behind, what a kept version names is there, and no more."""
    store = StateStore(tmp_path_factory.mktemp("state"))
    versions: list[StateManifest] = []
    perhaps_running: dict[str, int] = {}  # files of tries that were left, and which version they were for
    for number, step in enumerate(steps, start=1):
        if step in ("grow", "anew"):
            versions.append(commit(store, number, versions[-1] if versions and step == "grow" else None))
        elif step == "garbage":
            perhaps_running |= dict.fromkeys(state(store, number).files(), number)
        elif step == "refuse":
            store.drop(token_of(next(iter(state(store, number).files()))))
        else:
            store.clean(int(step))
            versions = versions[-int(step) :]
            newest = versions[-1].version if versions else 0
            left = {file for file, version in perhaps_running.items() if version > newest}
            assert data_files(store) == left.union(*(manifest.files() for manifest in versions))
            assert len(top_files(store)) == len(versions)
        assert store.newest() == (versions[-1] if versions else None)
        assert set().union(*(manifest.files() for manifest in versions)) <= data_files(store)


# -- data files ---------------------------------------------------------------


def test_tables_and_bytes_come_back(make_store: MakeStore) -> None:
    store, other = make_store(), make_store()
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    tables = [
        TABLE,
        TABLE.schema.empty_table(),
        pa.table({"many": pa.chunked_array([[1], [], [2, 3]])}),
        pa.table({"codes": pa.chunked_array(chunks)}),
        pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))]),
    ]
    token = store.begin(1)
    for table in tables:
        name = store.new_name(token, "table", "0")
        store.write_table(name, table)
        back = other.read_table(name)
        assert back.to_pydict() == table.to_pydict()
        assert (back.schema, back.num_rows) == (table.schema, table.num_rows)
    name = store.new_name(token, "batch", "0")
    store.write_table(name, TABLE.to_batches()[0])
    assert other.read_table(name).equals(TABLE)
    for data in (b"", b"\0" * 100_000, b"image"):
        name = store.new_name(token, "image", "0")
        with store.open_output(name) as stream:
            stream.write(data)
        assert other.read_buffer(name).to_pybytes() == data


def test_local_tables_are_mapped_and_outlive_their_file(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    token = store.begin(1)
    name = store.new_name(token, "table", "0")
    store.write_table(name, pa.table({"a": range(100_000)}))
    before = pa.total_allocated_bytes()
    table = store.read_table(name)
    assert pa.total_allocated_bytes() - before < 10_000
    store.drop(token)
    assert table["a"][99_999].as_py() == 99_999


def test_names_are_never_used_again(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    names = {store.new_name("t-1", "changes", "0") for _ in range(1000)}
    assert len(names) == 1000
    assert all(name.startswith("data/t-1/changes-0-") for name in names)


def test_a_missing_file_is_told(make_store: MakeStore) -> None:
    store = make_store()
    name = store.new_name("t", "changes", "0")
    for read in (store.read_table, store.read_buffer):
        with pytest.raises(
            StateError, match=f"/state/{name}: the state needs this file, and it is not there"
        ):
            read(name)


def test_every_prefix_of_a_table_is_damage(make_store: MakeStore) -> None:
    store = make_store()
    name = store.new_name(store.begin(1), "table", "0")
    store.write_table(name, TABLE)
    whole = store.read_buffer(name).to_pybytes()
    for length in (*range(0, len(whole), 7), len(whole) - 1):
        store._path.write(name, whole[:length])
        with pytest.raises(StateError, match=f"/state/{name}: can't be read: .*: put it back, or start anew"):
            store.read_table(name)


@pytest.mark.parametrize(
    "name", ["../x", "data/t/../../x", "/etc/passwd", "data/t/x", f"data/../x-{'a' * 32}", ""]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    store = StateStore(tmp_path)
    for use in (store.read_table, store.read_buffer, store.open_output):
        with pytest.raises(StateError, match="no data file has such a name"):
            use(name)
