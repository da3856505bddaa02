"""`ToldChanges`: what the last batches changed, in files of the driver, for whoever asks again.

    told-000000000012       Arrow IPC streams in a row: the changes of the first result, then by stream the
                            late rows, then the changes of the other results

Invariants

1. A version's file is on disk before the version is (``prepare`` of a transaction), and written anew by each
   try of it: of a version that is there it has what that changed.  Files of later versions count for nothing.
2. Files are kept of the last ten versions.

Cost: of a batch one file and two syncs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from lftj.errors import StateError
from maintenance.store.disk import Disk
from maintenance.store.new_file import replacing
from maintenance.store.numbered import Numbered
from spark_bridge.stages.state_versions import KEPT_BATCHES
from spark_bridge.state.manifest import Batch

FILES = Numbered("told-", 12)
_BATCH = b"batch"


class ToldChanges:
    """The files in a folder of the driver."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._disk = folder, Disk()

    def write(
        self,
        version: int,
        source: str,
        batch_id: int,
        changes: pa.Table,
        late: Mapping[str, pa.Table],
        others: Mapping[str, pa.Table],
    ) -> None:
        """Note what a batch is about to change; ``others``: the results but the first.  Raises StateError."""
        path = self._folder / FILES.name(version)
        said = json.dumps([source, batch_id, list(late), *([list(others)] if others else [])])
        first = changes.replace_schema_metadata({_BATCH: said.encode()})
        try:
            self._disk.make_folder(self._folder)
            with replacing(self._disk, path.with_name(f"{path.name}.part"), path) as file:
                for table in (first, *late.values(), *others.values()):
                    with ipc.new_stream(file, table.schema) as writer:
                        writer.write_table(table.unify_dictionaries())
        except OSError as error:
            raise StateError(
                f"{path}: what the batch changes can't be written, and it was not applied:"
                f" {error.strerror or error}"
            ) from error

    def batches(self, version: int) -> tuple[Batch, ...]:
        """The batches that led to a version, the last ones of which there are files."""
        found = []
        for number in sorted(self._numbers()):
            if version - KEPT_BATCHES < number <= version:
                name = FILES.name(number)
                with ipc.open_stream(pa.memory_map(str(self._folder / name))) as reader:
                    source, batch_id, late, *more = json.loads(reader.schema.metadata[_BATCH])
                parts = [late, *more]
                files = iter(f"{name}/{place}" for place in range(1, 1 + sum(map(len, parts))))
                late_files, *others = ({of: (next(files),) for of in part} for part in parts)
                found.append(Batch(number, source, batch_id, (f"{name}/0",), late_files, *others))
        return tuple(found)

    def read_table(self, name: str) -> pa.Table:
        """The table that a batch names.  Raises StateError where its file is gone."""
        file, _, place = name.partition("/")
        try:
            source = pa.memory_map(str(self._folder / file))
            for _ in range(int(place)):
                ipc.open_stream(source).read_all()
            return ipc.open_stream(source).read_all().replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise StateError(
                f"{self._folder / file}: what a batch changed can't be read ({error}): read the head whole"
            ) from error

    def clean(self, version: int) -> None:
        """Delete the files of versions that nobody asks for any more."""
        for number in self._numbers():
            if number <= version - KEPT_BATCHES:
                self._disk.delete(self._folder / FILES.name(number))

    def _numbers(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        numbers = (FILES.number(file.name) for file in self._folder.iterdir())
        return [number for number in numbers if number is not None]
