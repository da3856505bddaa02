"""Compiled kernels on disk: one file per kernel, signature and sources.

Takes the place of numba's own cache, which keeps an index beside its files: two
processes that compile one function for different types at once can make one
index entry name the other's code, and a folder that can't be written to is not
read either.

Invariants

1. A file appears under its name when it is whole, and never changes: any number of processes
   may compile into one folder.
2. A file's name carries the types that it was compiled for and a hash of the sources it was made of
   (:mod:`indices.sources`); all else that it depends on is in the folder's name
   (:mod:`indices.cache_folder`).
3. Of one kernel and signature the ``KEPT`` files that were written last stay: other branches and versions.
4. What can't be read or written is compiled again; nothing fails for it.
5. A kernel has one signature for arguments of the same types (:mod:`indices.compiled`).  Under
   ``LFTJ_DEBUG=1`` another one, of arrays of another layout or that are read-only, is an AssertionError.

Cost: one small file read per kernel that Python code calls; those that it calls are in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any

from numba.core import types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from indices import announcement
from indices.sources import sources_of

SUFFIX = ".kernel"

DEBUG = os.environ.get("LFTJ_DEBUG", "0") not in ("", "0")

SIGNATURE = 3
"""Where among the parts of compiled code its signature stands, as numba writes them."""

KEPT = 4
"""So many files of a kernel and signature stay, made of other sources."""


class KernelCache(_Cache):
    """What numba asks for compiled code of one function, and tells of it.

    ``kind``: tells apart the two forms that one function may be compiled in.
    """

    def __init__(self, function: Callable[..., Any], folder: Path, kind: str) -> None:
        self._folder = folder
        self._name = f"{function.__module__}.{function.__qualname__}-{kind}"
        self._sources = sources_of(function.__module__)
        self.key = self._name, self._sources
        self._asked: dict[object, object] = {}

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature; None where there is none, and it is going to be compiled."""
        target_context.refresh()
        if DEBUG:
            self._check(normalize_signature(signature)[0])
        try:
            parts = pickle.loads(self._file(signature).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            announcement.begins(self._folder)
            return None
        return CompileResult._rebuild(target_context, *parts)

    def save_overload(self, signature: Any, result: Any) -> None:
        announcement.ended()
        if result.library.has_dynamic_globals or result.lifted:
            return
        file = self._file(signature)
        whole = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        with contextlib.suppress(OSError):
            try:
                with open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as sink:
                    sink.write(dumps(result._reduce()))
                whole.replace(file)
                self._forget_others(file)
            finally:
                whole.unlink(missing_ok=True)

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...

    def _check(self, arguments: tuple[Any, ...]) -> None:
        before = self._asked.setdefault(tuple(map(_unlaid, arguments)), arguments)
        if before != arguments:
            raise AssertionError(f"{self._name} was called with {before}, and now with {arguments}")

    def _file(self, signature: Any) -> Path:
        types = hashlib.sha256(repr(normalize_signature(signature)).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{types}-{self._sources}{SUFFIX}"

    def _forget_others(self, file: Path) -> None:
        """Remove what was made of other sources, and was written longest ago."""
        same = file.name.removesuffix(f"{self._sources}{SUFFIX}")
        others = [path for path in self._folder.glob(f"{escape(same)}*{SUFFIX}") if path != file]
        for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT - 1 :]:
            path.unlink(missing_ok=True)


def files_by_kernel(folder: Path) -> Mapping[tuple[str, str], list[Path]]:
    """The files in a folder, by the ``key`` of the kernels whose code they hold."""
    try:
        return _listed(folder, folder.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=1)
def _listed(folder: Path, changed: int) -> Mapping[tuple[str, str], list[Path]]:
    """Not looked through again until it has ``changed``: each install asks what is there."""
    found: dict[tuple[str, str], list[Path]] = {}
    for name in os.listdir(folder):
        if name.endswith(SUFFIX):
            kernel, _, sources = name.removesuffix(SUFFIX).rsplit("-", 2)
            found.setdefault((kernel, sources), []).append(folder / name)
    return found


def signatures_in(files: Iterable[Path]) -> Iterator[Any]:
    """What there is code for; nothing of it is loaded."""
    for file in files:
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            yield pickle.loads(file.read_bytes())[SIGNATURE]


def _unlaid(kind: Any) -> object:
    """What tells types apart but for the layout of arrays and whether they are read-only."""
    if isinstance(kind, types.Array):
        return kind.dtype, kind.ndim
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        return tuple(map(_unlaid, kind))
    return kind
