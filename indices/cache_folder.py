"""The folder of compiled kernels: which one it is, whom it may belong to, when it goes.

Invariants

1. One folder, one compiler: its name carries a hash of all that compiled code depends on beside
   the sources, which are in the names of the files (:mod:`indices.kernel_cache`).  That is Python, numpy,
   numba and its compiler, the processor, and the compiler's settings, bounds checks among them.
2. What is in the folder is unpickled and executed.  So it belongs to this user, to root or
   to whom the sources belong to (whose code runs anyway), and others can't write to it.
   Another folder is passed over with a warning that says what to do.
3. A folder that another process reads may go at any time: each file is read at once, and
   what is missing is compiled again.  Of the folders of other compilers beside a new one, the
   ``KEPT`` that were used last stay.

It is looked for below ``LFTJ_CACHE_DIR``, else below numba's own setting
``NUMBA_CACHE_DIR``; then in this package's ``__pycache__`` (inside the checkout or the
environment, never a user's home); then in a folder of the user's in the system's
temporary directory.  A folder that can't be written to is taken as it is when somebody has
filled it for others to read (:func:`share`): an image's or an administrator's.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba import config

from indices.errors import CacheFolderWarning

KEPT = 8
"""So many folders of other compilers stay: other interpreters, settings."""

_HERE = Path(__file__).resolve().parent
_OWN = _HERE / "__pycache__"
_SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "ENABLE_AVX",
    "CPU_NAME",
    "CPU_FEATURES",
    "DEBUGINFO_DEFAULT",
)
"""Those of numba's that change the code it makes."""


def folder_name() -> str:
    """The folder's name (invariant 1)."""
    compiler = {
        "python": sys.version,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": f"{sys.platform} {platform.machine()}",
        "processor": llvmlite.binding.get_host_cpu_name(),
        "features": llvmlite.binding.get_host_cpu_features().flatten(),
        **{name: getattr(config, name, None) for name in _SETTINGS},
    }
    return f"kernels-{hashlib.sha256(repr(compiler).encode()).hexdigest()[:16]}"


@functools.cache
def cache_folder() -> Path | None:
    """The folder that compiled kernels are kept in, made when missing; None where there can be none."""
    name = folder_name()
    for base, setting in _bases():
        folder = base / name
        with contextlib.suppress(OSError):  # one that is there may do, whoever can write to it
            base.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            _forget_others(base, name)
        # Who can write to this package's own __pycache__ has its code executed anyway.
        refusal = (None if base == _OWN else _refusal(base)) or _refusal(folder)
        if refusal is None and os.access(folder, os.R_OK | os.X_OK):
            with contextlib.suppress(OSError):
                os.utime(folder)  # used
            return folder
        if refusal is None and setting:
            refusal = "it can't be made or read"
        if refusal is not None:
            _warn(f"compiled kernels are not kept in {folder}: {refusal}{_way_out(setting)}")
    _warn("compiled kernels are kept nowhere, each process compiles them again; set LFTJ_CACHE_DIR")
    return None


def share(folder: Path) -> None:
    """Let other users read a folder of this user's, never write to it; another user's stays as it is."""
    for path in [folder, *folder.iterdir()]:
        with contextlib.suppress(FileNotFoundError, PermissionError):  # gone meanwhile; not this user's
            path.chmod(0o755 if path.is_dir() else 0o644)


def _bases() -> Iterator[tuple[Path, str]]:
    """Where to look, best first, and the setting that says so."""
    for setting, value in (
        ("LFTJ_CACHE_DIR", os.environ.get("LFTJ_CACHE_DIR")),
        ("NUMBA_CACHE_DIR", config.CACHE_DIR),
    ):
        if value:
            yield Path(value).absolute(), setting
            break
    yield _OWN, ""
    with contextlib.suppress(FileNotFoundError):  # no temporary directory can be written to
        yield Path(tempfile.gettempdir()) / f"lftj-{os.getuid()}", ""


def _refusal(folder: Path) -> str | None:
    """What is wrong with a folder that is there (invariant 2), as the rest of a sentence."""
    try:
        found = folder.stat()
    except OSError:
        return None
    sources = next(path for path in (_HERE, *_HERE.parents) if path.exists())  # _HERE, or a zip file
    if found.st_uid not in (os.getuid(), 0, sources.stat().st_uid):
        return f"{folder} belongs to user {found.st_uid}, and what is in it would be executed"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        return f"others can write to {folder}, and what is in it would be executed (chmod go-w)"
    return None


def _way_out(setting: str) -> str:
    if setting:
        return f"; give {setting} a folder that only you can write to"
    return "; remove it, or set LFTJ_CACHE_DIR to a folder that only you can write to"


def _warn(message: str) -> None:
    warnings.warn(message, CacheFolderWarning, stacklevel=2)


def _forget_others(base: Path, name: str) -> None:
    """Remove folders of other compilers that were not used for longest."""
    others = [path for path in base.glob("kernels-*") if path.name != name]
    used = {path: path.stat().st_mtime for path in others}
    for path in sorted(others, key=used.__getitem__, reverse=True)[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
