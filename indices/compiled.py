"""`kernel`: numba compilation with an on-disk cache that is never stale.

Numba's cache notices a change of the file that a function stands in, not of the
functions it calls in *other* files.  So the cache folder's name carries a hash
of the sources of all kernel modules, of this package and of ``lftj``: a change
in any of them starts a new folder, and nobody runs a stale kernel.  Kernels
compiled with bounds checks (``NUMBA_BOUNDSCHECK=1``) have a folder of their
own: numba would mix them up.

The folder is in this package's own ``__pycache__`` (inside the checkout or the
environment, never a user's home); where that cannot be written, a folder of
the user's in the system's temporary directory.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba import config

_HERE = Path(__file__).resolve().parent
_KERNEL_PACKAGES = (_HERE, _HERE.parent / "lftj")
"""The folders whose kernels are hashed.  By place, not by import: this package imports no other."""


@functools.cache
def cache_folder() -> Path:
    """The folder that compiled kernels are kept in; made when missing."""
    digest = hashlib.sha256(f"bounds checks: {config.BOUNDSCHECK}".encode())
    for source in [path for package in _KERNEL_PACKAGES for path in sorted(package.glob("*.py"))]:
        text = source.read_bytes()
        if b"indices.compiled" in text or source == Path(__file__).resolve():
            digest.update(f"{source.parent.name}/{source.name}\0".encode() + text)
    name = f"kernels-{digest.hexdigest()[:16]}"
    folder = _HERE / "__pycache__" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir()) / f"lftj-{getpass.getuser()}" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@contextlib.contextmanager
def cached(wanted: bool = True) -> Iterator[bool]:
    """Within it numba's caches are made in :func:`cache_folder`; gives ``wanted`` back, for ``cache=``.

    The process-wide cache setting that other users of numba rely on is left as it was.
    """
    saved = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder()) if wanted else saved
    try:
        yield wanted
    finally:
        config.CACHE_DIR = saved


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile ``function`` with ``njit(nogil=True, cache=True)``, cached in :func:`cache_folder`.

    Options go to ``numba.njit``.
    """
    if function is None:
        return functools.partial(kernel, **options)
    with cached() as cache:
        return numba.njit(nogil=True, cache=cache, **options)(function)
