"""What the tests of this room share: stores of states on four kinds of file system."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import LocalStore
from pyarrow import fs

from maintenance.store.conditional_put import ConditionalPut
from spark_bridge.state.store import StateStore
from support.state_stores import MakeStore


@pytest.fixture(params=["local", "sub tree", "mock", "conditional"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes stores that share one path."""
    if request.param == "local":
        return lambda: StateStore(tmp_path / "state")
    system: fs.FileSystem
    if request.param == "mock":
        system = fs.FileSystem.from_uri("mock:///")[0]
    else:
        system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    put = (
        ConditionalPut(LocalStore(tmp_path / "bucket", mkdir=True))
        if request.param == "conditional"
        else None
    )

    def make() -> StateStore:
        """``conditional`` is what S3 does: moving replaces, and of the first part of a path is the bucket."""
        store = StateStore(f"{request.param.replace(' ', '')}:///bucket/state")
        store._path._opened = (system, "bucket/state")
        store._path._put = put
        return store

    return make
