"""The rows of a relation as a file: Arrow IPC, which any reader of Arrow opens, checked by a checksum.

Invariant: a file never changes; it is on disk before anything names it.

Cost: one pass over the rows for writing and one for the checksum.  What is read is held in memory, not
mapped: a file that is damaged later must not be able to end the process.
"""

from __future__ import annotations

import re
import secrets
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from lftj.errors import DamagedFolderError
from maintenance.durable.entries import DataFile
from maintenance.store.disk import Disk
from maintenance.store.new_file import NewFile

FOLDER = "data"
NAME = re.compile(r"[A-Za-z0-9_]{0,40}-[0-9a-f]{16}\.arrow")


class _SummedFile(NewFile):
    """Adds up the checksum of what is written."""

    checksum = 0

    def write(self, data: Any) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return super().write(data)


def write_rows(disk: Disk, folder: Path, relation: str, rows: pa.Table) -> DataFile:
    """Write the rows of a relation to a new file, on disk when this returns.  ``folder``: of the workspace.

    Raises OSError.
    """
    data_folder = folder / FOLDER
    shown = re.sub(r"[^A-Za-z0-9_]", "_", relation)[:40]
    name = f"{shown}-{secrets.token_hex(8)}.arrow"
    with _SummedFile(disk, data_folder / name) as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows.unify_dictionaries())  # a file has one dictionary for a column
    try:
        disk.sync_folder(data_folder)
    except BaseException:
        file.discard()
        raise
    return DataFile(name, rows.num_rows, file.nbytes, file.checksum)


def read_rows(folder: Path, file: DataFile) -> pa.Table:
    """The rows of a file.  Raises DamagedFolderError if it is not as it was written, and OSError."""
    path = folder / FOLDER / file.name
    if not NAME.fullmatch(file.name):
        raise DamagedFolderError(f"{path}: no file of data has such a name; put back a copy of the folder")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DamagedFolderError(
            f"{path}: this file is not there, and the workspace needs it; put it back"
        ) from None
    if len(data) != file.nbytes or zlib.crc32(data) != file.checksum:
        raise DamagedFolderError(
            f"{path}: damaged: its {len(data):,} bytes are not the {file.nbytes:,} that were written;"
            " put back a copy of it"
        )
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        return reader.read_all()
