"""A small state of two partitions, committed to any store, and what lies in its folders."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyarrow import fs

from spark_bridge.state.manifest import Batch, Logged, PartitionState, StateManifest
from spark_bridge.state.store import StateStore

TABLE = pa.table({"a": [3, 1, 2], "b": ["x", None, "z"]})
MakeStore = Callable[[], StateStore]


def state(store: StateStore, version: int, before: StateManifest | None = None) -> StateManifest:
    """A manifest with two partitions whose files are there; what ``before`` logged stays."""
    token = store.begin(version)

    def file(kind: str, partition: str) -> str:
        name = store.new_name(token, kind, partition)
        store.write_table(name, TABLE)
        return name

    partitions = {}
    for key in ("0", "1"):
        if before is None:
            partitions[key] = PartitionState(file("snapshot", key), file("head", key), None, 3)
        else:
            old = before.partitions[key]
            logged = Logged(file("changes", key), file("head_changes", key), 1)
            partitions[key] = PartitionState(old.snapshot, old.head, old.image, 3, (*old.logged, logged))
    batches = (Batch(version, "clicks", version, (file("result", "all"),)),)
    store.end(token)
    return StateManifest(version, {"partitions": 2}, {}, {"clicks": version}, partitions, batches)


def commit(store: StateStore, version: int, before: StateManifest | None = None) -> StateManifest:
    manifest = state(store, version, before)
    store.commit(manifest)
    return manifest


def data_files(store: StateStore) -> set[str]:
    """What lies below data/, read without the store's own cleaning."""
    system, root = store._path._at("data")
    found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    return {f"data/{info.path.split('/data/')[1]}" for info in found if info.type == fs.FileType.File}


def data_folders(store: StateStore) -> set[str]:
    system, root = store._path._at("data")
    found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    return {info.base_name for info in found if info.type == fs.FileType.Directory}


def top_files(store: StateStore) -> set[str]:
    return {name for name, kind in store._path.listing() if kind == fs.FileType.File}
