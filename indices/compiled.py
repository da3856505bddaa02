"""`kernel`: numba compilation, once per installation.

Compiled code is kept on disk (:mod:`indices.kernel_cache`) in a folder that is
never stale and that nobody else writes to (:mod:`indices.cache_folder`).  The
first compilation that takes long is announced (:mod:`indices.announcement`).

Invariant: each kernel has one signature, whatever work is done; another one
would be another compilation of all that it calls.  Callers see to it: arrays
are C-contiguous, and those that are read-only are so always; ``LFTJ_DEBUG=1`` sees
to that.  Numba would take each constant argument for a type of its own; here it
does not.

Where the installed numba lacks what this needs (:mod:`indices.numba_methods`), ``njit`` does it alone:
kernels are compiled in each process, constants have types of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config, types

from indices import announcement
from indices.cache_folder import cache_folder
from indices.numba_methods import all_are_there
from indices.sources import KERNEL_PACKAGES

OWN_COMPILER = all_are_there()
"""Whether kernels are compiled and kept as this package has it; else as numba has it."""

if OWN_COMPILER:
    from numba.core.sigutils import normalize_signature

    from indices.callback_type import Callback
    from indices.kernel_cache import KernelCache, files_by_kernel, signatures_in
    from indices.known_calls import KernelCompiler
    from indices.part import PartCompiler, make_part

kernels: list[Any] = []
"""All kernels of the modules that are imported so far."""

parts: list[Any] = []
"""All parts of kernels, likewise."""


def kernel(function: Callable[..., Any] | None = None, *, makes_arrays: bool = False, **options: Any) -> Any:
    """A function that Python code calls: ``njit(nogil=True)``, kept on disk.

    ``makes_arrays``: whether it allocates arrays, or returns a part of one.  Only then are references to
    arrays counted, which costs atomic increments wherever one is passed on or looked at in part.  Options
    go to ``numba.njit``.
    """
    if function is None:
        return functools.partial(kernel, makes_arrays=makes_arrays, **options)
    if OWN_COMPILER:
        options |= {"no_cfunc_wrapper": True, "pipeline_class": KernelCompiler, "_nrt": makes_arrays}
    compiled = numba.njit(nogil=True, **options)(function)
    if not config.DISABLE_JIT:
        if OWN_COMPILER:
            _take_constants_as_numbers(compiled)
            _keep_on_disk(compiled, function, "function")
        kernels.append(compiled)
        announcement.kernels.append(f"{function.__module__}.{function.__qualname__}")
    return compiled


def load_kernels(is_wanted: Callable[[str], bool]) -> None:
    """Load those kernels of some modules, by name, that were compiled before; nothing is compiled.

    Else each is loaded when it is first called, in a few milliseconds.
    """
    for one, files in _not_loaded(is_wanted):
        for signature in signatures_in(files) if files else ():
            one.compile(signature.args)


def all_are_compiled(is_wanted: Callable[[str], bool] = lambda module: True) -> bool:
    """Whether there is code for all kernels of the modules, by name, that are imported so far.

    Of those alone that are kept on disk, if any are.
    """
    return all(files for _, files in _not_loaded(is_wanted))


def _not_loaded(is_wanted: Callable[[str], bool]) -> list[tuple[Any, list[Path]]]:
    """Kernels that this process has no code for, and the files that have it."""
    waiting = [one for one in kernels if not one.overloads and is_wanted(one.__module__)]
    if not OWN_COMPILER:
        return [(one, []) for one in waiting]
    waiting = [one for one in waiting if isinstance(one._cache, KernelCache)]
    folder = cache_folder() if waiting else None
    files = {} if folder is None else files_by_kernel(folder)
    return [(one, files.get(one._cache.key, [])) for one in waiting]


def part(function: Callable[..., Any] | None = None, *, makes_arrays: bool = False, **options: Any) -> Any:
    """A function that kernels call, and Python code does not (:mod:`indices.part`).

    ``makes_arrays``: as of :func:`kernel`; who calls one that does so does it, too, or what it got would
    never be freed.  Options go to ``numba.njit``.
    """
    if function is None:
        return functools.partial(part, makes_arrays=makes_arrays, **options)
    if OWN_COMPILER:
        options |= {"pipeline_class": PartCompiler, "_nrt": makes_arrays}
    compiled = numba.njit(**options)(function)
    if not config.DISABLE_JIT:
        if OWN_COMPILER:
            _take_constants_as_numbers(compiled)
            make_part(compiled)
        parts.append(compiled)
    return compiled


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """A plain function as one that kernels take for an argument, compiled for numba's ``signature``."""
    if not OWN_COMPILER:
        return numba.cfunc(signature)(function)
    compiled = Callback(function, normalize_signature(signature), locals={}, options={})
    _keep_on_disk(compiled, function, "callback")
    compiled.compile()
    return compiled


def _take_constants_as_numbers(compiled: Any) -> None:
    """Let kernels that call it pass a constant as any other number, not as a type of its own."""
    template = compiled.get_call_template

    def get_call_template(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return template(tuple(map(types.unliteral, arguments)), named)

    compiled.get_call_template = get_call_template


def _keep_on_disk(compiled: Any, function: Callable[..., Any], kind: str) -> None:
    """Of functions that their sources are known of: not what they close over."""
    folder = cache_folder()
    ours = function.__module__.split(".")[0] in KERNEL_PACKAGES and function.__closure__ is None
    if folder is not None and ours:
        compiled._cache = KernelCache(function, folder, kind)
