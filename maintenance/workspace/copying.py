"""A copy of a workspace as a folder of its own.

Invariant: it is there whole or not at all: it is written beside its place, its manifest last, and gets its
name when all of it is on disk.

Cost: one pass over the base relations.  No image is written: opening it installs the rules.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lftj.errors import DurabilityError
from lftj.storage.relation_table import RelationTable
from maintenance.durable.data_files import FOLDER, write_rows
from maintenance.durable.entries import Loaded
from maintenance.durable.manifest import Manifest
from maintenance.durable.store import begin_folder
from maintenance.store.disk import Disk
from maintenance.workspace.state import State


def write_copy(disk: Disk, path: Path, state: State, settings: Mapping[str, Any]) -> None:
    """Write a folder with base relations and programs.

    ``settings``: those of the workspace that hold for all heads.  Raises DurabilityError; then there is none.
    """
    for definition in state.definitions:
        definition.refuse_without_text()
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise DurabilityError(f"{path}: is there already: give the name of a folder that is to be made")
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")
    try:
        disk.make_folder(part / FOLDER)
        relations = []
        for name, version in state.versions.items():
            if name not in state.heads and name not in state.recents:
                schema = version.schema
                file = write_rows(disk, part, name, schema.as_declared(RelationTable(version).table))
                keeps_null, bag, key = schema.keeps_null, schema.bag, schema.key
                grown = state.strata.grown.get(name)
                loaded = Loaded(
                    name,
                    file,
                    schema.functional,
                    keeps_null=keeps_null,
                    bag=bag,
                    key=key,
                    grown=None if grown is None else grown.record,
                )
                relations.append(loaded)
        streams = {name: each.record for name, each in state.streams.items()}
        manifest = Manifest(state.number, 0, settings, tuple(relations), state.definitions, streams=streams)
        begin_folder(disk, part, manifest)
        disk.rename(part, path)
        disk.sync_folder(path.parent)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            why = error.strerror or error
            raise DurabilityError(f"{path}: no copy was written: {why}") from error
        raise
