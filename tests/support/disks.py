"""Disks that fail, and one that knows what would be left of it if the machine stopped now.

What is certain after a crash is only what was synced: of writes behind the last sync of a file any part may
be there, in any order, and of names behind the last sync of a folder any of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from maintenance.store.disk import Disk, DiskFile


@dataclass
class _Content:
    """What is certain of a file, and what was done to it since: a write at a place, or a length."""

    certain: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def all(self) -> bytes:
        return _done(self.certain, self.pending)

    def left(self, chance: random.Random) -> bytes:
        """One of the contents that a crash may leave."""
        if chance.random() < 0.2:
            return self.all()
        done: list[tuple[int, bytes | None]] = []
        for at, data in self.pending:
            if chance.random() < 0.5:
                continue
            if data is None or chance.random() < 0.4:
                done.append((at, data))
            else:
                done.append((at, data[: chance.randrange(len(data) + 1)]))
        return _done(self.certain, done)


def _done(content: bytes, steps: list[tuple[int, bytes | None]]) -> bytes:
    result = bytearray(content)
    for at, data in steps:
        if data is None:
            del result[at:]
            result.extend(bytes(at - len(result)))
        else:
            result.extend(bytes(max(at - len(result), 0)))
            result[at : at + len(data)] = data
    return bytes(result)


class _ModelFile(DiskFile):
    def __init__(self, disk: ModelDisk, path: Path, flags: int, content: _Content) -> None:
        super().__init__(path, flags)
        self._disk, self._content = disk, content

    def write(self, data: bytes | memoryview, at: int) -> None:
        data = bytes(data)
        half = (at, data[: len(data) // 2])
        self._content.pending.append(half)
        self._disk.step("half written")
        self._content.pending[-1] = (at, data)
        super().write(data, at)
        self._disk.step("written")

    def sync(self) -> None:
        self._disk.step("before a sync")
        certain = len(self._content.pending)
        super().sync()
        self._content.certain = _done(self._content.certain, self._content.pending[:certain])
        del self._content.pending[:certain]
        self._disk.step("synced")

    def truncate(self, length: int) -> None:
        super().truncate(length)
        self._content.pending.append((length, None))
        self._disk.step("truncated")


_Names = dict[Path, _Content | None]
"""Names that came, with what they hold, and names that went."""


class ModelDisk(Disk):
    """Does everything, and calls ``at_step`` between any two steps, where :meth:`left` may be asked."""

    def __init__(self, at_step: Callable[[str], None]) -> None:
        self.step = at_step
        self._names: dict[Path, _Content] = {}  # certain
        self._pending: list[tuple[Path, _Names]] = []  # what came and went by one step, and in which folder
        self._now: dict[Path, _Content] = {}

    def find(self, folder: Path) -> None:
        """Take the files of a folder for certain."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._names[path] = self._now[path] = _Content(path.read_bytes())

    def left(self, chance: random.Random) -> dict[Path, bytes]:
        """One of the sets of files that a crash may leave."""
        names = dict(self._names)
        every = chance.random() < 0.3
        for _, some in self._pending:
            if every or chance.random() < 0.5:
                self._name(names, some)
        return {path: content.left(chance) for path, content in names.items()}

    def _name(self, names: dict[Path, _Content], some: _Names) -> None:
        for path, content in some.items():
            if content is None:
                names.pop(path, None)
            else:
                names[path] = content

    def _note(self, folder: Path, some: _Names) -> None:
        self._name(self._now, some)
        self._pending.append((folder, some))

    def create(self, path: Path) -> DiskFile:
        content = _Content()
        file = _ModelFile(self, path, os.O_RDWR | os.O_CREAT | os.O_EXCL, content)
        self._note(path.parent, {path: content})
        self.step("created")
        return file

    def open(self, path: Path) -> DiskFile:
        content = self._now.setdefault(path, _Content(path.read_bytes()))
        self._names.setdefault(path, content)
        return _ModelFile(self, path, os.O_RDWR, content)

    def rename(self, path: Path, new: Path) -> None:
        self.step("before a rename")
        super().rename(path, new)
        if path in self._now:
            self._note(path.parent, {new: self._now[path]})
            self._note(path.parent, {path: None})
        else:
            self._note(path.parent, self._moved(path, new))
        self.step("renamed")

    def _moved(self, folder: Path, new: Path) -> _Names:
        """A folder gets another name: all in it is on disk by then, and goes with it."""
        inside = {path: content for path, content in self._now.items() if folder in path.parents}
        assert not any(content.pending for content in inside.values()), "files are not on disk"
        assert not any(folder in path.parents for _, some in self._pending for path in some), "names are not"
        gone: _Names = dict.fromkeys(inside)
        return {**gone, **{new / path.relative_to(folder): content for path, content in inside.items()}}

    def link(self, path: Path, new: Path) -> None:
        self.step("before a link")
        super().link(path, new)
        self._note(new.parent, {new: self._now[path]})
        self.step("linked")

    def delete(self, path: Path) -> bool:
        was_there = super().delete(path)
        if was_there:
            self._note(path.parent, {path: None})
            self.step("deleted")
        return was_there

    def sync_folder(self, path: Path) -> None:
        self.step("before the sync of a folder")
        super().sync_folder(path)
        for _, some in [each for each in self._pending if each[0] == path]:
            self._name(self._names, some)
        self._pending = [each for each in self._pending if each[0] != path]
        self.step("synced a folder")


def put(files: dict[Path, bytes], before: Path, after: Path) -> None:
    """Write what a crash left of a folder to another one."""
    for path, content in files.items():
        place = after / path.relative_to(before)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


class _FailingFile(DiskFile):
    def __init__(self, disk: FailingDisk, path: Path, flags: int) -> None:
        super().__init__(path, flags)
        self._disk = disk

    def write(self, data: bytes | memoryview, at: int) -> None:
        try:
            self._disk.step("write")
        except OSError:
            super().write(memoryview(data)[: len(data) // 2], at)
            raise
        super().write(data, at)

    def sync(self) -> None:
        self._disk.step("sync")
        super().sync()

    def truncate(self, length: int) -> None:
        self._disk.step("truncate")
        super().truncate(length)


class FailingDisk(Disk):
    """Raises an error at some steps: those of which ``fails`` says so, by their number and kind.

    Attributes:
        steps: Their kinds, so far.
    """

    def __init__(self, error: int, fails: Callable[[int, str], bool] = lambda number, kind: False) -> None:
        self.error = error
        self.fails = fails
        self.steps: list[str] = []

    def step(self, kind: str) -> None:
        self.steps.append(kind)
        if self.fails(len(self.steps) - 1, kind):
            raise OSError(self.error, os.strerror(self.error))

    def create(self, path: Path) -> DiskFile:
        self.step("create")
        return _FailingFile(self, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path: Path) -> DiskFile:
        self.step("open")
        return _FailingFile(self, path, os.O_RDWR)

    def rename(self, path: Path, new: Path) -> None:
        self.step("rename")
        super().rename(path, new)

    def delete(self, path: Path) -> bool:
        self.step("delete")
        return super().delete(path)

    def sync_folder(self, path: Path) -> None:
        self.step("sync folder")
        super().sync_folder(path)
