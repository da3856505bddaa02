"""laws: what a try of a batch wrote that was not committed goes, however late a task of it writes.

Without Spark: its tasks are `StageWorker`s, and late is one that is stopped at a fault point, where the
driver does its part.  Whose try can't be in progress any more is swept, and nobody else's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from lftj.errors import StateError
from maintenance.store.fault_points import POINTS
from spark_bridge.cells.signed_tables import with_weight
from spark_bridge.join import checked_grids
from spark_bridge.stages import worker as stage_worker
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import StageWorker
from spark_bridge.state.attempt import attempt
from spark_bridge.state.manifest import PartitionState, StateManifest
from spark_bridge.state.state_index import StateIndex
from spark_bridge.state.store import StateStore, token_of
from spark_bridge.state.task_files import TaskFiles
from support.cell_pipeline import program_text
from support.state_stores import TABLE, MakeStore, commit, data_files, state, top_files

IN_STEP = [point for point in POINTS if point.startswith("worker")]
EDGES = pa.table({"a": [1, 2], "b": [2, 3]})


class Session:
    """The part of a Spark session that a try takes."""

    def __init__(self) -> None:
        self.tags: set[str] = set()
        self.interrupted: list[str] = []

    def addTag(self, tag: str) -> None:
        self.tags.add(tag)

    def removeTag(self, tag: str) -> None:
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> list[str]:
        self.interrupted.append(tag)
        return []


@cache
def chain() -> StageChain:
    text = program_text("h(a, b) <- e(a, b).", {"e": EDGES})
    plans = text.plans()
    return StageChain(text, (checked_grids(plans, plans[0], {}, 1),))


def step(store: StateStore, token: str) -> None:
    """What a task does: the step of the only partition of the only stage."""
    packets = list(chain().placed([("e", with_weight(EDGES))]))
    list(StageWorker(chain(), chain().last, StateIndex(store, 1), token).packets(iter(packets)))


@contextmanager
def meanwhile(point: str, happens: Callable[[], object]) -> Iterator[None]:
    """Something happens once when a task has come to a point."""
    left = [happens]

    def reached(at: str) -> None:
        if at == point and left:
            left.pop()()

    with mock.patch.object(stage_worker, "reached", reached):
        yield


# -- tasks of a batch that is over ----------------------------------------------


def test_a_task_in_time_writes(make_store: MakeStore) -> None:
    store = make_store()
    token = store.begin(1)
    step(make_store(), token)
    kinds = {name.rpartition("/")[2].partition("-")[0] for name in data_files(store)}
    assert kinds == {"snapshot", "image", "head", "changes"}


def test_a_task_that_begins_late_writes_nothing(make_store: MakeStore) -> None:
    store = make_store()
    token = store.begin(1)
    store.drop(token)
    with pytest.raises(StateError, match=f"{token} is over"):
        step(make_store(), token)
    assert (data_files(store), top_files(store)) == (set(), set())


@pytest.mark.parametrize("point", IN_STEP)
def test_what_a_task_writes_late_goes(make_store: MakeStore, point: str) -> None:
    """The batch is dropped while the task is about to write, or when it has."""
    store = make_store()
    token = store.begin(1)
    with meanwhile(point, lambda: store.drop(token)), suppress(StateError):
        step(make_store(), token)
    assert (data_files(store), top_files(store)) == (set(), set())


@pytest.mark.parametrize("n_before", range(4))
def test_what_a_task_writes_late_goes_also_where_there_are_no_folders(
    make_store: MakeStore, n_before: int
) -> None:
    """As in an object store: the batch's folder does not hinder anybody.  Dropped before the n-th file."""
    store = make_store()
    token = store.begin(1)
    with pytest.raises(StateError, match=f"{token} is over"), TaskFiles(make_store(), token, "0-0") as files:
        for number in range(4):
            if number == n_before:
                store.drop(token)
            store._path.make_folder(f"data/{token}")
            files.write("snapshot", TABLE)
    assert (data_files(store), top_files(store)) == (set(), set())


def test_a_task_killed_when_it_has_written_late_leaves_nothing_in_a_folder(tmp_path: Path) -> None:
    """It never comes to look whether it was late, and need not: nobody makes a dropped folder again."""
    store = StateStore(tmp_path)
    token = store.begin(1)
    name, opened = (store.new_name(token, "snapshot", "0") for _ in range(2))
    with store.open_output(opened) as stream:
        stream.write(b"early")
        store.drop(token)
        stream.write(b"late")
    for write in (lambda: store.write_table(name, TABLE), lambda: store.open_output(name)):
        with pytest.raises(StateError, match="can't be written: No such file"):
            write()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("repetition", range(5))
def test_dropped_while_many_write(tmp_path: Path, repetition: int) -> None:
    """Whatever the threads' order is: files are made all the while that the folder is being deleted."""
    store = StateStore(tmp_path)
    token = store.begin(1)
    together = threading.Barrier(5)

    def write() -> None:
        own = StateStore(tmp_path)
        together.wait()
        with suppress(StateError):
            while True:
                with own.open_output(own.new_name(token, "snapshot", "0")) as stream:
                    stream.write(b"x")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    together.wait()
    store.drop(token)
    for thread in threads:
        thread.join()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("n_late", [1, 5])
def test_dropped_while_files_are_made_that_have_found_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_late: int
) -> None:
    """Each time that the folder has been emptied, another file is there."""
    store = StateStore(tmp_path)
    token = store.begin(1)
    rmdir, left = os.rmdir, [*range(n_late)]

    def late(path: str, **options: Any) -> None:
        if left and token in str(path):
            Path(path, f"late{left.pop()}").touch()
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", late)
    store.drop(token)
    assert left == [] and [*(tmp_path / "data").iterdir()] == []


def test_a_second_try_of_a_task_of_a_batch_that_was_committed(make_store: MakeStore) -> None:
    """It removes its own files, and no others."""
    store = make_store()
    token = store.begin(1)
    with pytest.raises(StateError, match=f"{token} is over"), TaskFiles(make_store(), token, "0-0") as late:
        with TaskFiles(store, token, "0-0") as files:
            kept = files.write("snapshot", TABLE)
        late.write("snapshot", TABLE)
        partition = PartitionState(kept, None, None, 3)
        store.commit(StateManifest(1, {}, {}, {}, {"0-0": partition}, ()))
        store.end(token)
    assert data_files(store) == {kept}
    assert store.read_table(kept).equals(TABLE)


# -- the driver -----------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("of Spark"), StateError("full")])
def test_a_failed_try_leaves_nothing(make_store: MakeStore, error: BaseException) -> None:
    store, session = make_store(), Session()
    kept = commit(store, 1)
    with pytest.raises(type(error)) as caught, attempt(store, session, 2) as token:  # type: ignore[arg-type]
        assert session.tags == {token}
        step(store, token)
        raise error
    assert caught.value is error
    assert (data_files(store), top_files(store)) == (kept.files(), {"manifest-000000000001.json"})
    assert (session.interrupted, session.tags) == ([token], set())


def test_tasks_learn_that_a_try_is_over_before_they_are_interrupted(make_store: MakeStore) -> None:
    store, session = make_store(), Session()
    running: list[bool] = []
    session.interruptTag = lambda tag: running.append(store.is_running(tag))  # type: ignore[assignment, func-returns-value]
    with pytest.raises(RuntimeError), attempt(store, session, 1):  # type: ignore[arg-type]
        raise RuntimeError
    assert running == [False]


@pytest.mark.parametrize("late", [1, 2, 3])
def test_interrupted_when_it_is_committed_it_stays(make_store: MakeStore, late: int) -> None:
    """Also when others have committed versions after it meanwhile."""
    store = make_store()
    manifest = commit(store, 1)
    with pytest.raises(KeyboardInterrupt), attempt(store, Session(), 2) as token:  # type: ignore[arg-type]
        name = store.new_name(token, "snapshot", "0")
        store.write_table(name, TABLE)
        partition = PartitionState(name, None, None, 3)
        for version in range(2, 2 + late):
            store.commit(StateManifest(version, {}, {}, {}, {**manifest.partitions, "2": partition}, ()))
        raise KeyboardInterrupt
    assert store.read_table(name).equals(TABLE)
    assert data_files(store) == manifest.files() | {name}
    assert not store.is_running(token)


def test_a_try_that_another_application_overtakes_says_so(make_store: MakeStore) -> None:
    """Its files are swept by the other one, and its tasks fail by that."""
    store, other = make_store(), make_store()
    commit(store, 1)
    with (
        pytest.raises(StateError, match="has version 2 already, so version 2 can't follow: another"),
        attempt(store, Session(), 2) as token,  # type: ignore[arg-type]
    ):
        kept = commit(other, 2)
        other.sweep()
        assert not store.is_running(token)
        raise RuntimeError("a task has failed four times")
    other.clean(1)
    assert data_files(store) == kept.files()


def test_an_error_is_not_hidden_by_one_of_dropping(make_store: MakeStore) -> None:
    store = make_store()
    with (
        mock.patch.object(StateStore, "drop", side_effect=StateError("can't be deleted")),
        pytest.raises(KeyboardInterrupt),
        attempt(store, Session(), 1),  # type: ignore[arg-type]
    ):
        raise KeyboardInterrupt


# -- drivers that were killed ---------------------------------------------------


def left_by_a_killed_driver(store: StateStore, version: int) -> set[str]:
    """The files of a try that nobody ended."""
    token = store.begin(version)
    step(store, token)
    return {name for name in data_files(store) if token_of(name) == token}


def test_what_a_killed_driver_left_is_swept_when_it_cant_be_running(make_store: MakeStore) -> None:
    """Also before there is a first version."""
    store = make_store()
    left = left_by_a_killed_driver(store, 1) | left_by_a_killed_driver(store, 1)
    store.sweep()
    assert data_files(store) == left, "another application may be making the first version"
    first = commit(store, 1)
    left = left_by_a_killed_driver(store, 2)
    store.sweep()
    assert data_files(store) == first.files() | left, "another application may be making the second version"
    second = commit(store, 2, first)
    store.sweep()
    assert data_files(store) == first.files() | second.files()
    assert top_files(store) == {"manifest-000000000001.json", "manifest-000000000002.json"}


def test_what_was_committed_before_its_driver_was_killed_stays(make_store: MakeStore) -> None:
    """Its marker goes, its files when versions after it do not name them."""
    store = make_store()
    token = store.begin(1)
    with TaskFiles(store, token, "0-0") as files:
        name = files.write("snapshot", TABLE)
    partition = PartitionState(name, None, None, 3)
    store.commit(StateManifest(1, {}, {}, {}, {"0-0": partition}, ()))
    assert store.is_running(token)
    store.sweep()
    assert not store.is_running(token)
    assert data_files(store) == {name}


def test_a_later_version_may_name_what_its_killed_driver_committed(make_store: MakeStore) -> None:
    """The sweep comes late, when the manifest of the try's own version is gone."""
    store = make_store()
    token = store.begin(1)
    first = state(store, 1)
    with TaskFiles(store, token, "2") as files:
        partition = PartitionState(files.write("snapshot", TABLE), None, None, 3)
    for version in (1, 2, 3):
        store.commit(StateManifest(version, {}, {}, {}, {**first.partitions, "2": partition}, ()))
    for version in (1, 2):
        store._path.delete(f"manifest-{version:012d}.json")
    store.sweep()
    assert data_files(store) >= {partition.snapshot}
    assert not store.is_running(token)
