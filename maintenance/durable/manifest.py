"""What a workspace was at a checkpoint: the files of its relations, and the programs installed.

A manifest is a file of two lines: JSON, and its checksum.  It is there whole or not at all, for it is written
under another name and renamed when it is on disk.

Invariants

1. The folder holds a workspace when it holds a manifest; the one with the highest number counts, and the
   changes of the journal behind it.
2. What it names is on disk before it is.
3. It may say how far the journal went when the folder was closed, or opened behind a crash: where less is
   found behind it, the journal was damaged.
4. Its format is that of the whole folder: whoever changes a folder of an older one writes the manifest anew
   first (:meth:`maintenance.durable.store.Store.begin`), so that an older version does not go on with it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lftj.errors import DamagedFolderError
from maintenance.durable.definitions import Definition
from maintenance.durable.entries import Loaded, plain_entry
from maintenance.durable.records import FORMAT, End, newer_format
from maintenance.store.disk import Disk
from maintenance.store.new_file import replacing
from maintenance.store.numbered import Numbered

FILES = Numbered("manifest-", 20, ".json", r"\.part")
"""Names of manifests, by the number of the last change that is in them."""


@dataclass(frozen=True)
class Manifest:
    """``number`` and ``chain``: of the last change that is in it (:mod:`maintenance.durable.records`).

    ``settings``: those of the workspace that hold for all heads.  ``format``: of the file that it was read
    from.  ``end``: of the journal behind it, None where there was nothing in it yet.  ``streams``: what makes
    base relations streams, and where these stand.
    """

    number: int
    chain: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    relations: tuple[Loaded, ...] = ()
    definitions: tuple[Definition, ...] = ()
    format: int = FORMAT
    end: End | None = None
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """Names of the files of data that it needs."""
        return {loaded.file.name for loaded in self.relations}

    @property
    def nbytes(self) -> int:
        """Bytes of these files."""
        return sum(loaded.file.nbytes for loaded in self.relations)

    def to_bytes(self) -> bytes:
        """
        >>> manifest = Manifest(7, 99, {"record_gap": 9})
        >>> manifest_of(manifest.to_bytes(), Path("m")) == manifest
        True
        """
        line = json.dumps(asdict(self), sort_keys=True).encode()
        return b"%s\n%08x\n" % (line, zlib.crc32(line))


def manifest_of(data: bytes, path: Path) -> Manifest:
    """The manifest of a file, ``path`` for messages.

    Raises DamagedFolderError, and DurabilityError where a newer version wrote it.
    """
    line, _, checksum = data.partition(b"\n")
    try:
        if checksum != b"%08x\n" % zlib.crc32(line):
            raise ValueError("its checksum is that of other bytes")
        fields = json.loads(line)
        format_ = fields["format"]
        if format_ > FORMAT:
            raise newer_format(path, format_)
        relations = tuple(plain_entry(Loaded, each) for each in fields.pop("relations"))
        # Format 1 did not say when a program was installed: at the manifest's change at the latest.
        since = {"since": fields["number"]} if format_ == 1 else {}
        definitions = tuple(Definition(**since, **each) for each in fields.pop("definitions"))
        end = fields.pop("end", None)  # which formats before 5 did not have
        end = None if end is None else End(**end)
        return Manifest(**fields, relations=relations, definitions=definitions, end=end)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFolderError(f"{path}: damaged: {error}; put back a copy of the folder") from None


def write_manifest(disk: Disk, folder: Path, manifest: Manifest) -> None:
    """Make a manifest the newest; it is so, and on disk, when this returns.  Raises OSError."""
    path = folder / FILES.name(manifest.number)
    with replacing(disk, path.with_name(f"{path.name}.part"), path) as file:
        file.write(manifest.to_bytes())


def newest_manifest(folder: Path, names: list[str]) -> Manifest | None:
    """The newest of a folder with these files; None where it has none.

    Raises DamagedFolderError, FileNotFoundError where it is gone by now, and OSError.
    """
    number = max((number for number in map(FILES.number, names) if number is not None), default=None)
    if number is None:
        return None
    path = folder / FILES.name(number)
    manifest = manifest_of(path.read_bytes(), path)
    if manifest.number != number:
        raise DamagedFolderError(f"{path}: this is manifest {manifest.number}: give it back its name")
    return manifest
