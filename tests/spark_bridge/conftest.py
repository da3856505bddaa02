"""What the tests of this room share: stores of states on three kinds of file system."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs

from spark_bridge.state.store import StateStore
from support.state_stores import MakeStore


@pytest.fixture(params=["local", "sub tree", "mock"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes stores that share one path."""
    if request.param == "local":
        return lambda: StateStore(tmp_path / "state")
    system: fs.FileSystem
    if request.param == "mock":
        system = fs.FileSystem.from_uri("mock:///")[0]
    else:
        system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def make() -> StateStore:
        store = StateStore(f"{request.param.replace(' ', '')}:///state")
        store._path._opened = (system, "state")
        return store

    return make
