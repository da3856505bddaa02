"""`kernel`: numba compilation, once per installation.

Compiled code is kept on disk (:mod:`indices.kernel_cache`) in a folder that is
never stale and that nobody else writes to (:mod:`indices.cache_folder`).  The
first compilation that takes long is announced (:mod:`indices.announcement`).

Invariant: each kernel has one signature, whatever work is done; another one
would be another compilation of all that it calls.  Callers see to it: arrays
are C-contiguous, and those that are read-only are so always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba import config
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

from indices import announcement
from indices.cache_folder import KERNEL_PACKAGES, cache_folder
from indices.kernel_cache import KernelCache

kernels: list[Any] = []
"""All kernels of the modules that are imported so far."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile ``function`` with ``njit(nogil=True)``, cached in :func:`~indices.cache_folder.cache_folder`.

    Options go to ``numba.njit``.
    """
    if function is None:
        return functools.partial(kernel, **options)
    compiled = numba.njit(nogil=True, **options)(function)
    if not config.DISABLE_JIT:
        _cache(compiled, function, "function")
        kernels.append(compiled)
        announcement.known.append(f"{function.__module__}.{function.__qualname__}")
    return compiled


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """A plain function as one that kernels take for an argument, compiled for numba's ``signature``."""
    compiled = CFunc(function, normalize_signature(signature), locals={}, options={})
    _cache(compiled, function, "callback")
    compiled.compile()
    return compiled


def _cache(compiled: Any, function: Callable[..., Any], kind: str) -> None:
    """Keep compiled code on disk, of functions that the folder's name covers: not what they close over."""
    folder = cache_folder()
    ours = function.__module__.split(".")[0] in KERNEL_PACKAGES and function.__closure__ is None
    if folder is not None and ours:
        compiled._cache = KernelCache(function, folder, kind)
