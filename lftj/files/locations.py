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
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.stored_file import StoredFile, suffix_of

PARQUET_SUFFIXES = (".parquet", ".pq")
OTHER_SUFFIXES = (".csv", ".tsv", ".arrow", ".arrows", ".feather", ".ipc", ".jsonl", ".ndjson")
"""Of other files that hold data for certain; a .txt or .json may be about it."""

_NO_PARQUET = "can't be read as a folder of Parquet files: there is no Parquet file in it"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_SHORTENED_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_KEY_TYPES = {True: pa.int64(), False: pa.string()}
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_USER = re.compile(r"://[^/@]*@")
_PACKAGES = {
    "http": "fsspec aiohttp",
    "https": "fsspec aiohttp",
    "hf": "fsspec huggingface_hub",
    "az": "fsspec adlfs",
    "sftp": "fsspec paramiko",
    "ssh": "fsspec paramiko",
}


class LocatedFiles(NamedTuple):
    """What stands at a place.

    ``files``: one or more.  ``partitions``: of each file the columns that its path tells, as arrays of one
    value; None where there are none.
    """

    files: list[StoredFile]
    partitions: list[dict[str, pa.Array]] | None = None


def find(place: str | os.PathLike[str]) -> LocatedFiles:
    """The files at a path, glob or URL.  Raises SourceError when there is none, or it can't be asked for."""
    text = os.fspath(place)
    if not text:
        raise SourceError("the path is empty")
    if isinstance(place, str) and _URL.match(place):
        return _find_far(place)
    path = Path(text)
    if not path.exists() and text.startswith("~"):
        path = path.expanduser()
    try:
        if path.is_dir():
            names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
            return _found_below(str(path), path, _parquet_among(str(path), names), _NO_PARQUET)
        if path.exists():
            return LocatedFiles([StoredFile.at(path)])
        if glob.has_magic(text):
            plain = list(itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
            base = Path(*plain)
            names = sorted(
                Path(name).relative_to(base).as_posix()
                for name in glob.glob(str(path), recursive=True)
                if os.path.isfile(name)
            )
            return _found_below(str(path), base, names, "no file has such a name")
    except OSError as error:
        raise SourceError(f"{path}: can't be opened: {error.strerror}") from None
    if shortened := _SHORTENED_URL.match(text):
        raise SourceError(
            f"{text}: there is no such file; a Path has lost a slash of the URL: pass it as a str,"
            f" {shortened[1]}://..."
        )
    raise SourceError(f"{path}: there is no such file")


def find_all(places: Sequence[str | os.PathLike[str]]) -> LocatedFiles:
    """The files at several places, in their order.  Raises SourceError."""
    files: list[StoredFile] = []
    partitions: list[dict[str, pa.Array]] = []
    for place in places:
        try:
            found = find(place)
        except SourceError as error:
            if isinstance(place, str) and not set("/.") & set(place):
                hint = f" (a list of strings is a list of files; a row of one value is a tuple, ({place!r},))"
                raise SourceError(f"{error}{hint}") from None
            raise
        files += found.files
        partitions += found.partitions or [{} for _ in found.files]
    return LocatedFiles(files, partitions)


def _found_below(label: str, base: Path, names: list[str], if_none: str) -> LocatedFiles:
    return _found(label, names, [StoredFile.at(base / name) for name in names], if_none)


def _parquet_among(label: str, names: Sequence[str]) -> list[str]:
    """The Parquet files of a folder.  Raises SourceError when there is data of other kinds beside them."""
    parquet = [name for name in names if _is_data(name)]
    other = [name for name in names if _is_data(name, OTHER_SUFFIXES)]
    if parquet and other:
        raise SourceError(
            f"{label}: the folder holds files of several kinds, such as {parquet[0]} and {other[0]}:"
            f" say which ones, as {label}/**/*{PurePosixPath(parquet[0]).suffix}"
        )
    return parquet


def _is_data(name: str, suffixes: Sequence[str] = PARQUET_SUFFIXES) -> bool:
    """
    >>> [_is_data(name) for name in ("year=2026/part-0.parquet", "_temporary/0.parquet", "notes.txt")]
    [True, False, False]
    """
    return suffix_of(name) in suffixes and not any(part[0] in "_." for part in PurePosixPath(name).parts)


def _found(label: str, names: Sequence[str], files: list[StoredFile], if_none: str) -> LocatedFiles:
    """The files, with the columns that Hive's way of naming folders tells: integers where all values are."""
    if not files:
        raise SourceError(f"{label}: {if_none}")
    keys = [_keys(name) if _is_data(name) else {} for name in names]
    whole = {key: True for of_file in keys for key in of_file}
    for of_file in keys:
        for key, value in of_file.items():
            whole[key] &= value is None or _INTEGER.fullmatch(value) is not None
    partitions = [
        {
            key: pa.array([int(value) if whole[key] and value is not None else value], _KEY_TYPES[whole[key]])
            for key, value in of_file.items()
        }
        for of_file in keys
    ]
    return LocatedFiles(files, partitions if whole else None)


def _keys(name: str) -> dict[str, str | None]:
    """
    >>> _keys("year=2026/city=S%C3%A3o Paulo/day=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'year': '2026', 'city': 'São Paulo', 'day': None}
    """
    keys: dict[str, str | None] = {}
    for part in PurePosixPath(name).parts[:-1]:
        key, equals, value = part.partition("=")
        if key and equals:
            keys[key] = None if value == _HIVE_NULL else unquote(value)
    return keys


# -- far away ---------------------------------------------------------------


def _find_far(url: str) -> LocatedFiles:
    from pyarrow import fs

    label = _USER.sub("://", url).partition("?")[0]
    with _told_of(label):
        filesystem, path = _filesystem(url, label)
        if isinstance(filesystem, fs.LocalFileSystem):
            return find(Path(path))
        information = filesystem.get_file_info(path)
        if information.type == fs.FileType.File:
            return LocatedFiles([_far_file(filesystem, path, label)])
        if information.type == fs.FileType.Directory:
            names = _parquet_among(label, _names_below(filesystem, path))
            return _found_far(label, filesystem, path, label, names, _NO_PARQUET)
        if glob.has_magic(path):
            plain = list(itertools.takewhile(lambda part: not glob.has_magic(part), path.split("/")))
            base, pattern = "/".join(plain), path.split("/")[len(plain) :]
            names = [name for name in _names_below(filesystem, base) if _matches(name.split("/"), pattern)]
            top = "/".join(label.split("/")[: -len(pattern)])
            return _found_far(label, filesystem, base, top, names, "no file has such a name")
    raise SourceError(f"{label}: there is no such file, or it can't be reached")


def _found_far(
    label: str, filesystem: Any, base: str, top: str, names: list[str], if_none: str
) -> LocatedFiles:
    """``base``: the folder of ``names`` in the filesystem; ``top``: the same as messages name it."""
    files = [_far_file(filesystem, f"{base}/{name}", f"{top.rstrip('/')}/{name}") for name in names]
    return _found(label, names, files, if_none)


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
    by_content = not PurePosixPath(label).suffix
    return StoredFile(label, lambda: filesystem.open_input_file(path), by_content=by_content)


def _names_below(filesystem: Any, path: str) -> list[str]:
    from pyarrow import fs

    found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    start = path.rstrip("/") + "/"
    return sorted(info.path.removeprefix(start) for info in found if info.type == fs.FileType.File)


def _matches(names: list[str], patterns: list[str]) -> bool:
    """Whether a path is of a pattern, in which ``**`` stands for folders, of any depth.

    >>> [_matches(path.split("/"), ["**", "*.csv"]) for path in ("a/b/c.csv", "c.csv", "a/c.txt")]
    [True, True, False]
    """
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_matches(names[skipped:], patterns[1:]) for skipped in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])
