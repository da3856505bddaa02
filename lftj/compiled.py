"""`kernel`: numba compilation with an on-disk cache that is never stale.

Numba's cache notices a change of the file that a function stands in, not of the
functions it calls in *other* files.  So the cache folder's name carries a hash
of the sources of all kernel modules: a change in any of them starts a new
folder, and nobody runs a stale kernel.  Kernels compiled with bounds checks
(``NUMBA_BOUNDSCHECK=1``) have a folder of their own: numba would mix them up.

The folder is the package's own ``__pycache__`` (inside the checkout or the
environment, never a user's home); where that cannot be written, a folder of
the user's in the system's temporary directory.
"""

from __future__ import annotations

import functools
import getpass
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config

_PACKAGE = Path(__file__).resolve().parent


@functools.cache
def cache_folder() -> Path:
    """The folder that compiled kernels are kept in; made when missing."""
    digest = hashlib.sha256(f"bounds checks: {config.BOUNDSCHECK}".encode())
    for source in sorted(_PACKAGE.glob("*.py")):
        text = source.read_bytes()
        if b"lftj.compiled" in text or source.name == "compiled.py":
            digest.update(source.name.encode() + b"\0" + text)
    name = f"kernels-{digest.hexdigest()[:16]}"
    folder = _PACKAGE / "__pycache__" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir()) / f"lftj-{getpass.getuser()}" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile ``function`` with ``njit(nogil=True, cache=True)``, cached in :func:`cache_folder`.

    Options go to ``numba.njit``.  The process-wide cache setting that other
    users of numba rely on is left as it was.
    """
    if function is None:
        return functools.partial(kernel, **options)
    saved = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    finally:
        config.CACHE_DIR = saved
