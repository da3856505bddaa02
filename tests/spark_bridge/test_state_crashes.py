"""The machine stops between any two steps on a local path: what is there is what a commit left.

A crash loses or mixes up what was not synced (:mod:`support.disks`).  After it there is the last version of
which the commit had returned, or the one that was being committed, with all of its files.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from maintenance.store.path import StatePath
from spark_bridge.state.manifest import StateManifest
from spark_bridge.state.store import StateStore
from support.disks import ModelDisk, put
from support.state_stores import TABLE, commit, data_files, state

CONTENT_CHANCE = 0.05
"""Of the many steps amid the content of a file so many are looked at."""


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_each_step_leaves_the_last_version_or_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "state"
    versions: dict[int, StateManifest] = {}
    committed = 0
    crashes: list[tuple[str, int, dict[Path, bytes]]] = []

    def crash(label: str) -> None:
        if not label.endswith("written") or chance.random() < CONTENT_CHANCE:
            crashes.append((label, committed, disk.left(chance)))

    disk = ModelDisk(crash)
    with monkeypatch.context() as patched:
        patched.setattr(StatePath, "_disk", disk)
        store = StateStore(folder)
        store.create()
        for version in range(1, 5):
            if chance.random() < 0.5:  # a try that fails
                token = store.begin(version)
                store.write_table(store.new_name(token, "log", "0"), TABLE)
                store.drop(token)
            versions[version] = state(store, version, versions.get(version - 1))
            store.commit(versions[version])
            committed = version
            if version % 2:
                store.clean(chance.choice((1, 2)))
    assert len(crashes) > 100
    for number, (label, before, files) in enumerate(crashes):
        left = tmp_path / f"left-{number}"
        left.mkdir()
        put(files, folder, left)
        again = StateStore(left)
        newest = again.newest()
        found = 0 if newest is None else newest.version
        assert found in (before, before + 1), label
        if newest is not None:
            assert newest == versions[found]
            for name in newest.files():
                assert again.read_table(name).equals(TABLE), label
        following = commit(again, found + 1, newest)
        again.clean(1)
        assert data_files(again) == following.files()
