"""Engine images: a workspace, or what is made of some, as one file to go on from in another process.

What is written is everything that the next transaction's work depends on: versions with
their runs, dictionaries, sensitivity records, witnesses, support counts, group tables,
scan trees, plans.  So nothing is evaluated when it is read, and a transaction afterwards
takes the steps that it would have taken in the process that wrote it.

An image is an Arrow IPC file with one large_binary column.  Row 0 is a header in JSON,
row 1 a pickle of the engine (protocol 5), each further row one of its large arrays.

Invariants

1. No address is in an image.  What holds addresses is written without them and makes its
   own again of the arrays they were of: indices (:class:`~lftj.storage.index_version.IndexVersion`)
   and searches here, support counts in their own file.
2. Nothing compiled is in it, and no lock: operations are known by their names, late
   evaluations by the body they are of, locks are new.
3. What was one object is one object: domains, bases, runs, the searches that heads share.
4. Arrays come back as copies that nothing else holds, those that may not be written to as such.
5. An image is read by the software that wrote it, or not at all; and whole, or not at all:
   the header has a fingerprint of all sources and versions, and a checksum of all rows.
6. At a path there is at any time a whole image, or what was there before (:mod:`maintenance.store.new_file`).

Subscribers, changes that are still being told to them, snapshots and staged transactions
are no part of an image.

Cost: one pass over the memory of the engine for the checksum and one for writing it, or for
copying it out.  Arrays are not taken as they stand in what is read: an engine lives long, and
one small array that stays would keep all of it in memory.

A pickle is a program: read images from where only one's own processes write.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import platform
import secrets
import shutil
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, Protocol, runtime_checkable

import numba
import numpy as np
import pyarrow as pa

from indices.monoid import COUNT, MAX, MIN, SUM, Monoid
from indices.sources import KERNEL_PACKAGES, sources_of_packages
from lftj.errors import ImageError
from lftj.files import sink
from lftj.language.conditionals import CONDITIONS
from lftj.language.syntax import Call, Expression, Span
from lftj.search.regions.evaluation import RegionSearch
from lftj.search.regions.pieces import PieceSearch
from lftj.search.regions.weighted import WeightedSearches
from lftj.storage.index_version import IndexVersion
from lftj.values.functions import FUNCTIONS, missing
from lftj.values.own_functions import digest
from lftj.values.semigroup import Operation, registered_names, semigroup
from maintenance.store.disk import Disk
from maintenance.store.new_file import NewFile, replacing

FORMAT = 1

_SCHEMA = pa.schema([("row", pa.large_binary())])
_SMALL = 1 << 10
"""Arrays of fewer bytes stand in the pickle itself."""

_MONOIDS = {monoid.name: monoid for monoid in (SUM, COUNT, MIN, MAX)}


@runtime_checkable
class Pausable(Protocol):
    """What other threads may change; a workspace is."""

    def paused(self) -> AbstractContextManager[object]:
        """Nothing changes within it."""


def write_image(
    engine: object, target: str | os.PathLike[str] | IO[bytes] | NewFile, packages: Sequence[str] = ()
) -> None:
    """Write an engine as it is between two transactions.

    ``engine``: a workspace, commits of other threads to which wait meanwhile, or an object that holds
    workspaces and combined heads and is used by this thread only.  ``target``: a path, or a binary file that
    is open for writing, which need not be one that can seek.  ``packages``: whose sources the engine's
    classes stand in, beside its own.

    At a path the image takes the place of the one before when it is whole and on disk: after an error, and
    also when the process was killed, the one before is there as it was.

    Raises OSError.

    Examples:
        >>> from maintenance import Workspace
        >>> ws = Workspace()
        >>> ws.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
        >>> ws.install("path(a, c) <- edge(a, b), edge(b, c).")
        >>> file = io.BytesIO()
        >>> write_image(ws, file)
        >>> again = read_image(file.getvalue())
        >>> with again.transaction() as tx:
        ...     tx.insert("edge", [(3, 1)])
        >>> tx.changes["path"].num_rows, again["path"].count, ws["path"].count
        (2, 3, 1)
    """
    if isinstance(target, str | os.PathLike):
        path = sink.check_place(target)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        with replacing(Disk(), part, path) as file:
            write_image(engine, file, packages)
            if path.exists():
                shutil.copymode(path, part)
        return
    _refuse_text(target)
    arrays: list[pickle.PickleBuffer] = []
    pickled = io.BytesIO()
    with engine.paused() if isinstance(engine, Pausable) else nullcontext():
        _Pickler(pickled, arrays).dump(engine)
        rows: list[memoryview] = [pickled.getbuffer(), *(array.raw() for array in arrays)]
        header = {**_software(packages), "rows": len(rows), "checksum": _checksum(rows)}
        with pa.ipc.new_file(_FromHere(target), _SCHEMA) as writer:
            writer.write_batch(_batch_of(json.dumps(header).encode()))
            for row in rows:
                writer.write_batch(_batch_of(row))
        target.flush()


def read_image(
    source: str | os.PathLike[str] | IO[bytes] | pa.Buffer | bytes, packages: Sequence[str] = ()
) -> Any:
    """The engine of an image.

    ``source``: the path of an image, a binary file, whose rest from where it stands is one, or the bytes
    themselves; it is not needed any more afterwards.  ``packages``: as it was written.

    Aggregates and functions of a user's that its rules have must be registered by then
    (`maintenance.aggregate`, `lftj.function`), with the code that they had.
    Raises `ImageError`.
    """
    if isinstance(source, str | os.PathLike):
        try:
            with open(source, "rb") as opened, _mapped(opened) as buffer:
                return _engine_of(buffer, packages)
        except OSError as error:
            raise ImageError(f"{os.fspath(source)}: {error.strerror or error}") from None
        except ImageError as error:
            raise ImageError(f"{os.fspath(source)}: {error}") from error
    _refuse_text(source)
    return _engine_of(source.read() if hasattr(source, "read") else source, packages)


def _refuse_text(file: object) -> None:
    if isinstance(file, io.TextIOBase):
        raise TypeError("an image is no text: open its file in binary mode, 'wb' or 'rb'")


@contextmanager
def _mapped(file: IO[bytes]) -> Iterator[pa.Buffer | bytes]:
    """The content of a file, mapped where there is something to map."""
    if not os.fstat(file.fileno()).st_size:
        yield file.read()  # of a pipe, or nothing
        return
    with pa.memory_map(file.name) as source:
        yield source.read_buffer()


class _FromHere:
    """A binary file as Arrow writes to one: it begins where it stands, and takes all of a write."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._position = 0

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        n_bytes = len(rest)
        while len(rest):
            written = self._file.write(rest)  # of an unbuffered file perhaps a part
            if written is None and isinstance(self._file, io.RawIOBase):
                raise BlockingIOError("an image is not written to a file that does not wait")
            rest = rest[len(rest) if written is None else written :]
        self._position += n_bytes
        return n_bytes

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """The one who opened the file flushes it."""


def _engine_of(source: pa.Buffer | bytes, packages: Sequence[str]) -> Any:
    header, rows = _parsed(source)
    for name, here in _software(packages).items():
        if header.get(name) != here:
            raise ImageError(
                f"the image is of other software: its {name} is {header.get(name)}, here it is {here};"
                " make the workspace from its data again"
            )
    _refuse_damaged(header, rows)
    arrays = (np.frombuffer(row, np.uint8).copy() for row in rows[1:])
    try:
        return pickle.loads(rows[0], buffers=arrays)
    except ImageError:
        raise
    except Exception as error:
        raise ImageError(f"the image can't be read: {type(error).__name__}: {error}") from error


def check_image(path: str | os.PathLike[str]) -> None:
    """Raise ImageError if an image is not as it was written, by whatever software; also OSError.

    Nothing of it is made.
    """
    with open(path, "rb") as opened, _mapped(opened) as buffer:
        _refuse_damaged(*_parsed(buffer))


def _refuse_damaged(header: dict[str, Any], rows: Sequence[memoryview]) -> None:
    if header.get("rows") != len(rows) or not rows or header.get("checksum") != _checksum(rows):
        raise ImageError("the image is damaged: its checksum is not that of what it holds")


def _batch_of(row: memoryview | bytes) -> pa.RecordBatch:
    """A batch with one row, over the memory of ``row``."""
    ends = pa.py_buffer(np.array([0, len(row)], np.int64))
    column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(row)])
    return pa.RecordBatch.from_arrays([column], schema=_SCHEMA)


def _parsed(source: pa.Buffer | bytes) -> tuple[dict[str, Any], list[memoryview]]:
    """The header and the other rows, over the memory of ``source``."""
    try:
        with pa.ipc.open_file(pa.BufferReader(source)) as reader:
            if reader.schema != _SCHEMA:
                raise ImageError("this is an Arrow file, but no engine image")
            rows = []
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)
                (row,) = batch.column(0)
                rows.append(memoryview(row.as_buffer()))
        header = json.loads(bytes(rows[0]))
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
    except ImageError:
        raise
    except Exception as error:  # whatever Arrow, JSON and Python say of wrong bytes
        raise ImageError(f"the image is damaged: {type(error).__name__}: {error}") from None
    return header, rows[1:]


def _checksum(rows: Sequence[memoryview]) -> int:
    """Of all rows and where each ends."""
    checksum = 0
    for row in rows:
        checksum = zlib.crc32(row, zlib.crc32(len(row).to_bytes(8, "little"), checksum))
    return checksum


def _software(packages: Sequence[str]) -> dict[str, Any]:
    """What an image's reader must have in common with its writer."""
    return {
        "format": FORMAT,
        "sources": "".join([_SOURCES, *map(sources_of_packages, packages)]),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "pyarrow": pa.__version__,
        "byteorder": sys.byteorder,
    }


_SOURCES = sources_of_packages(*KERNEL_PACKAGES)  # now, when what is imported is what the files say

# -- forms: how what can't be written as it is gets written -----------------------------


class _Pickler(pickle.Pickler):
    """Writes some types in the forms below, and large arrays apart."""

    def __init__(self, sink: IO[bytes], arrays: list[pickle.PickleBuffer]) -> None:
        def stays(array: pickle.PickleBuffer) -> bool:
            if len(array.raw()) < _SMALL:
                return True
            arrays.append(array)
            return False

        super().__init__(sink, protocol=5, buffer_callback=stays)

    def reducer_override(self, value: Any) -> Any:
        form = _FORMS.get(type(value))
        return NotImplemented if form is None else form(value)


def _operation(name: str, dtype: str, its_digest: str) -> Operation:
    if name not in registered_names():
        raise ImageError(
            f"rules of the image have the aggregate '{name}', which is not registered here:"
            f" call maintenance.aggregate({name!r}, ...) before the image is read"
        )
    if semigroup(name).digest != its_digest:
        raise ImageError(f"the aggregate '{name}' is not what it was when the image was written")
    return semigroup(name).operation(dtype)


def _call(function: str, arguments: tuple[Expression, ...], span: Span, its_digest: str | None) -> Call:
    if function not in (*FUNCTIONS, "in", *CONDITIONS):
        raise ImageError(missing(function))
    if digest(function) != its_digest:
        raise ImageError(f"the function '{function}' is not what it was when the image was written")
    return Call(function, arguments, span)


def _form_of_operation(operation: Operation) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    known = operation.semigroup
    return _operation, (known.name, operation.dtype.str, known.digest)


def _built_in(name: str) -> Monoid:
    return _MONOIDS[name]


def _of_operation(*form: Any) -> Monoid:
    return _operation(*form).monoid


def _form_of_monoid(monoid: Monoid) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if monoid is _MONOIDS.get(monoid.name):
        return _built_in, (monoid.name,)
    made: Iterable[Operation] = semigroup(monoid.name)._operations.values()
    (operation,) = (operation for operation in made if operation.monoid is monoid)
    return _of_operation, _form_of_operation(operation)[1]


_FORMS: dict[type, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    type(threading.Lock()): lambda lock: (threading.Lock, ()),
    type(threading.RLock()): lambda lock: (threading.RLock, ()),
    IndexVersion: lambda index: (IndexVersion, (index.base, index.runs, index.searched)),
    RegionSearch: lambda search: (RegionSearch, (search.plan,)),
    PieceSearch: lambda search: (PieceSearch, (search.plan,)),
    WeightedSearches: lambda searches: (WeightedSearches, (searches.searches,)),
    Operation: _form_of_operation,
    Monoid: _form_of_monoid,
    Call: lambda call: (_call, (call.function, call.arguments, call.span, digest(call.function))),
}
