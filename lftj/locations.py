"""Where files are: paths, globs, folders and URLs, of this machine or far away, as stored files.

Invariants

1. Files of a folder or glob come in the order of their names.
2. What other programs leave in folders of data, which begins with ``_`` or ``.``,
   is none of the data.
3. No message shows the user name or password of a URL.

pyarrow opens ``s3://``, ``gs://``, ``abfs://`` and ``hdfs://``; other kinds of URLs
need fsspec and what it needs for them, which are not installed along with lftj.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa

from lftj.errors import SourceError
from lftj.stored_file import StoredFile

PARQUET_SUFFIXES = (".parquet", ".pq")

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_SHORTENED_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")
_USER = re.compile(r"://[^/@]*@")
_PACKAGES = {
    "http": "fsspec aiohttp",
    "https": "fsspec aiohttp",
    "hf": "fsspec huggingface_hub",
    "az": "fsspec adlfs",
    "sftp": "fsspec paramiko",
    "ssh": "fsspec paramiko",
}


class Found(NamedTuple):
    """What stands at a place.

    ``files``: one or more.  ``partitions``: of each file the columns that its path tells, as arrays of one
    value; None where there are none.
    """

    files: list[StoredFile]
    partitions: list[dict[str, pa.Array]] | None = None


def find(place: str | os.PathLike[str]) -> Found:
    """The files at a path, glob or URL.  Raises SourceError when there is none, or it can't be asked for."""
    text = os.fspath(place)
    if isinstance(place, str) and _URL.match(place):
        return _find_far(place)
    path = Path(text)
    if not path.exists() and text.startswith("~"):
        path = path.expanduser()
    try:
        if path.is_dir():
            return _find_folder(str(path), *_local_files(path))
        if path.exists():
            return Found([StoredFile.at(path)])
    except OSError as error:
        raise SourceError(f"{path}: can't be opened: {error.strerror}") from None
    if glob.has_magic(text):
        names = sorted(name for name in glob.glob(str(path), recursive=True) if os.path.isfile(name))
        if names:
            return Found([StoredFile.at(Path(name)) for name in names])
        raise SourceError(f"{path}: no file has such a name")
    if shortened := _SHORTENED_URL.match(text):
        raise SourceError(
            f"{text}: there is no such file; a Path has lost a slash of the URL: pass it as a str,"
            f" {shortened[1]}://..."
        )
    raise SourceError(f"{path}: there is no such file")


def find_all(places: Sequence[str | os.PathLike[str]]) -> Found:
    """The files at several places, in their order.  Raises SourceError."""
    files: list[StoredFile] = []
    partitions: list[dict[str, pa.Array]] = []
    for place in places:
        try:
            found = find(place)
        except SourceError as error:
            raise SourceError(
                f"{error} (a list of strings is a list of files; a row of one value is a tuple, ({place!r},))"
            ) from None
        files += found.files
        partitions += found.partitions or [{} for _ in found.files]
    return Found(files, partitions)


def _local_files(path: Path) -> tuple[Any, list[str], list[StoredFile]]:
    from pyarrow import fs

    names = sorted(
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if _is_data(file.relative_to(path).as_posix()) and file.is_file()
    )
    return (
        fs.SubTreeFileSystem(str(path.absolute()), fs.LocalFileSystem()),
        names,
        [StoredFile.at(path / name) for name in names],
    )


def _is_data(name: str) -> bool:
    """
    >>> [_is_data(name) for name in ("year=2026/part-0.parquet", "_temporary/0.parquet", "notes.txt")]
    [True, False, False]
    """
    path = PurePosixPath(name)
    return path.suffix.lower() in PARQUET_SUFFIXES and not any(part[0] in "_." for part in path.parts)


def _find_folder(label: str, filesystem: Any, names: Sequence[str], files: list[StoredFile]) -> Found:
    if not files:
        raise SourceError(
            f"{label}: can't be read as a folder of Parquet files: there is no Parquet file in it"
        )
    if not any("=" in name for name in names):
        return Found(files, [{} for _ in files])
    from pyarrow import dataset

    options = dataset.FileSystemFactoryOptions(partitioning=dataset.HivePartitioning.discover())
    try:
        known = dataset.FileSystemDatasetFactory(
            filesystem, list(names), dataset.ParquetFileFormat(), options
        ).finish()
        keys = {
            fragment.path.lstrip("/"): dataset.get_partition_keys(fragment.partition_expression)
            for fragment in known.get_fragments()
        }
        partitions = [
            {key: pa.array([value], known.schema.field(key).type) for key, value in keys[name].items()}
            for name in names
        ]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(
            f"{label}: can't be read as a folder of Parquet files: {str(error).strip().splitlines()[0]}"
        ) from None
    return Found(files, partitions)


# -- far away ---------------------------------------------------------------


def _find_far(url: str) -> Found:
    from pyarrow import fs

    label = _USER.sub("://", url).partition("?")[0]
    with _told_of(label):
        filesystem, path = _filesystem(url, label)
        if isinstance(filesystem, fs.LocalFileSystem):
            return find(Path(path))
        information = filesystem.get_file_info(path)
        if information.type == fs.FileType.File:
            return Found([_far_file(filesystem, path, label)])
        if information.type == fs.FileType.Directory:
            names = [name for name in _names_below(filesystem, path) if _is_data(name)]
            files = [_far_file(filesystem, f"{path}/{name}", f"{label}/{name}") for name in names]
            return _find_folder(label, fs.SubTreeFileSystem(path, filesystem), names, files)
        if glob.has_magic(path):
            parts = PurePosixPath(path).parts
            plain = next(number for number, part in enumerate(parts) if glob.has_magic(part))
            base, pattern = "/".join(parts[:plain]), "/".join(parts[plain:])
            wanted = [name for name in _names_below(filesystem, base) if _matches(name, pattern)]
            top = label[: label.rindex(pattern)].rstrip("/") if pattern in label else label
            if wanted:
                return Found([_far_file(filesystem, f"{base}/{name}", f"{top}/{name}") for name in wanted])
            raise SourceError(f"{label}: no file has such a name")
    raise SourceError(f"{label}: there is no such file")


@contextmanager
def _told_of(label: str) -> Iterator[None]:
    try:
        yield
    except SourceError:
        raise
    except Exception as error:  # whatever the library behind the URL raises
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SourceError(f"{label}: can't be opened: {_USER.sub('://', reason)}") from None


def _filesystem(url: str, label: str) -> tuple[Any, str]:
    """A pyarrow filesystem and the path in it."""
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(url)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise
    scheme = url.partition("://")[0].lower()
    try:
        from fsspec.core import url_to_fs

        far, path = url_to_fs(url)
    except ImportError as error:
        packages = _PACKAGES.get(scheme, "fsspec")
        raise SourceError(
            f"{label}: {scheme}:// is read by way of other packages, of which one is missing ({error}):"
            f" pip install {packages}, or fetch the file and load it from the disk"
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(far)), path


def _far_file(filesystem: Any, path: str, label: str) -> StoredFile:
    return StoredFile(label, lambda: filesystem.open_input_file(path), PurePosixPath(path).name)


def _names_below(filesystem: Any, path: str) -> list[str]:
    from pyarrow import fs

    found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    start = path.rstrip("/") + "/"
    return sorted(info.path.removeprefix(start) for info in found if info.type == fs.FileType.File)


def _matches(name: str, pattern: str) -> bool:
    """Whether a path is of a pattern, in which ``**`` stands for folders, of any depth.

    >>> _matches("a/b/c.csv", "**/*.csv"), _matches("c.csv", "**/*.csv"), _matches("a/c.csv", "*.csv")
    (True, True, False)
    """
    return _match_parts(name.split("/"), pattern.split("/"))


def _match_parts(names: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_match_parts(names[skipped:], patterns[1:]) for skipped in range(len(names) + 1))
    return (
        bool(names) and fnmatch.fnmatchcase(names[0], patterns[0]) and _match_parts(names[1:], patterns[1:])
    )
