"""The path of a state: files below one local folder or URI, reached by ``pyarrow.fs``.

What goes wrong is a StateError that begins with the path; passwords in a URI are not shown.

Invariants

1. Nothing at the path is read or made before it is used, and a pickled path is
   its text alone: a relative one means the folder of the process that made it.
2. A local file that is written under a temporary name gets its name by a link,
   which fails where the name is taken: of two processes that do so at once one
   succeeds.  HDFS refuses, too, and on S3 the object is put on condition that there is none
   (:mod:`maintenance.store.conditional_put`); other object stores and file systems
   without links leave a gap between looking and moving.
3. A local file is on disk when it is closed, names in a local folder when that was synced
   (:meth:`StatePath.sync_folders`), and so is a name that was given at last.  What others promise of
   files that were closed is their own affair.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from lftj.errors import StateError
from lftj.files.whole_files import reason
from maintenance.store.conditional_put import SCHEME, ConditionalPut, conditional_put
from maintenance.store.disk import Disk
from maintenance.store.new_file import NewFile

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_NOT_ESCAPED = "%:/?[]@!$&'()*+,;="
"""Signs of a URI.  Others, such as blanks, are escaped for those who did not."""

_PASSWORD = re.compile(r"(?<=//)[^/@:]*:[^/@]*(?=@)")
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

_TRIES = 100
"""To delete a folder: some for each of the threads and processes that write into it."""

_UNREADABLE = "put it back, or start anew with another state path and checkpoint"
_UNWRITABLE = "give a state path at which driver and workers may make files"


class StatePath:
    """Files by their names, relative to a path.  Every method raises StateError.

    >>> StatePath("s3://key:secret@bucket/state")
    StatePath('s3://...@bucket/state')
    """

    _disk: ClassVar[Disk] = Disk()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        if not text:
            raise StateError("the state path is empty: give a folder or a URI")
        self.text = text if _URI.match(text) else os.path.abspath(text)
        self.shown = _PASSWORD.sub("...", self.text)
        self._opened: tuple[fs.FileSystem, str] | None = None
        self._put: ConditionalPut | None = None

    def __reduce__(self) -> tuple[type[StatePath], tuple[str]]:
        return StatePath, (self.text,)

    def __repr__(self) -> str:
        return f"StatePath({self.shown!r})"

    def full(self, name: str) -> str:
        """A file's path, for messages."""
        return f"{self.shown.rstrip('/')}/{name}" if name else self.shown

    # -- files ----------------------------------------------------------------

    def listing(self, name: str = "", recursive: bool = False) -> list[tuple[str, fs.FileType]]:
        """What is in a folder, by names relative to it; nothing if there is no such folder."""
        system, path = self._at(name)
        with self.writing(name, "listed"):
            infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=recursive))
        # Some file systems put their scheme before the paths that they list.
        return [(info.path.partition(f"{path.rstrip('/')}/")[2], info.type) for info in infos]

    def input(self, name: str) -> pa.NativeFile:
        """A file to read from, mapped into memory where it is local."""
        system, path = self._at(name)
        with self.reading(name):
            return system.open_input_file(path)

    def output(self, name: str) -> NewFile | pa.NativeFile:
        """A new file to write to.  Its folder has to be there, where the file system has folders."""
        system, path = self._at(name)
        with self.writing(name):
            if isinstance(system, fs.LocalFileSystem):
                return NewFile(self._disk, Path(path))
            return system.open_output_stream(path)

    def read(self, name: str) -> bytes:
        with self.reading(name), self.input(name) as stream:
            return stream.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file, in a folder that is made if need be; another one of this name goes."""
        system, path = self._at(name)
        with self.writing(name):
            system.create_dir(path.rpartition("/")[0] or "/", recursive=True)
            if isinstance(system, fs.LocalFileSystem):
                self._disk.delete(Path(path))
        with self.writing(name), self.output(name) as stream:
            stream.write(data)

    def make_folder(self, name: str) -> None:
        """Make a folder, and those above it, where there is none."""
        system, path = self._at(name)
        with self.writing(name):
            system.create_dir(path, recursive=True)

    def sync_folders(self, names: Iterable[str]) -> None:
        """Wait until the names in folders are on disk, where they are local."""
        for name in names:
            system, path = self._at(name)
            if isinstance(system, fs.LocalFileSystem):
                with self.writing(name):
                    self._disk.sync_folder(Path(path))

    def is_file(self, name: str) -> bool:
        system, path = self._at(name)
        with self.reading(name):
            return system.get_file_info(path).type == fs.FileType.File

    def nbytes(self, names: Sequence[str]) -> int:
        """The bytes of files together; of one that is not there none."""
        if not names:
            return 0
        paths = [self._at(name) for name in names]
        with self.reading(names[0]):
            infos = paths[0][0].get_file_info([path for _, path in paths])
        return sum(info.size or 0 for info in infos)

    def prepare_names(self) -> None:
        """Raise StateError if :meth:`name_at_last` needs what is not installed."""
        if self._put is None and urlsplit(self.text).scheme.lower() == SCHEME:
            self._put = conditional_put(quote(self.text, safe=_NOT_ESCAPED), self.shown)

    def name_at_last(self, temporary: str, name: str) -> bool:
        """Give a complete file its name; False if that is taken."""
        self.prepare_names()
        system, source = self._at(temporary)
        _, target = self._at(name)
        with self.writing(name):
            if self._put is not None:
                given = self._put(target.partition("/")[2], self.read(temporary))
                if given:
                    with suppress(StateError):  # it has its name, whatever comes
                        self.delete(temporary)
                return given
            if isinstance(system, fs.LocalFileSystem):
                return self._linked(Path(source), Path(target))
            if system.get_file_info(target).type != fs.FileType.NotFound:
                return False
            system.move(source, target)
            return True

    def _linked(self, source: Path, target: Path) -> bool:
        """Give a complete local file its name, on disk; False if that is taken.  Raises OSError."""
        try:
            self._disk.link(source, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if target.exists():
                return False
            self._disk.rename(source, target)
        self._disk.sync_folder(target.parent)
        with suppress(OSError):  # it has its name, whatever comes
            self._disk.delete(source)
        return True

    def delete(self, name: str) -> bool:
        """Delete a file; False if there is none."""
        system, path = self._at(name)
        with self.writing(name, "deleted"), suppress(FileNotFoundError):
            if isinstance(system, fs.LocalFileSystem):
                return self._disk.delete(Path(path))
            system.delete_file(path)
            return True
        return False

    def delete_folder(self, name: str) -> None:
        """Delete a folder, if there is one, and what is in it."""
        system, path = self._at(name)
        with self.writing(name, "deleted"), suppress(FileNotFoundError):
            if isinstance(system, fs.LocalFileSystem):
                # Under another name first: who looks for it while it is being emptied does not find it.
                aside = f"{path}.{uuid4().hex}"
                os.rename(path, aside)
                _delete_all(aside)
            else:
                system.delete_dir(path)

    # -- errors ---------------------------------------------------------------

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """What Arrow and the system raise in the block, as a StateError about a file of the state."""
        try:
            yield
        except FileNotFoundError:
            raise StateError(
                f"{self.full(name)}: the state needs this file, and it is not there (was it deleted, did"
                f" another application clean this path, is it another machine's?): {_UNREADABLE}"
            ) from None
        except (OSError, pa.ArrowException) as error:
            raise StateError(f"{self.full(name)}: can't be read: {_cause(error)}: {_UNREADABLE}") from None

    @contextmanager
    def writing(self, name: str, done: str = "written") -> Iterator[None]:
        """What Arrow and the system raise in the block, as a StateError about the place."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StateError(f"{self.full(name)}: can't be {done}: {_cause(error)}: {_UNWRITABLE}") from None

    # -- the file system ------------------------------------------------------

    def _at(self, name: str) -> tuple[fs.FileSystem, str]:
        """The file system and a file's place in it."""
        if self._opened is None:
            self._opened = self._open()
        system, root = self._opened
        return system, f"{root}/{name}" if name else root or "/"

    def _open(self) -> tuple[fs.FileSystem, str]:
        if not _URI.match(self.text):
            return fs.LocalFileSystem(use_mmap=True), self.text.rstrip("/")
        try:
            system, root = fs.FileSystem.from_uri(quote(self.text, safe=_NOT_ESCAPED))
        except (OSError, pa.ArrowException) as error:
            raise StateError(
                f"state path {self.shown!r} can't be opened: {reason(error)}:"
                " give a folder, or a URI that Arrow knows, such as file:///, hdfs:// or s3://"
            ) from None
        if isinstance(system, fs.LocalFileSystem):
            system = fs.LocalFileSystem(use_mmap=True)
        return system, root.rstrip("/")


def _delete_all(folder: str) -> None:
    """Delete a local folder that nobody finds any more.

    Who found it before is still making a file in it, once: then it is not empty where it should be.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not tries_left:
                raise
        else:
            return


def _cause(error: Exception) -> str:
    """What went wrong, without the path that Arrow puts before it."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else reason(error)
