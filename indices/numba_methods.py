"""Whether numba has the methods that are replaced or called here without being documented.

A version of numba that lacks one compiles kernels in its own way: by ``njit`` alone, anew in each process,
which a warning says.

Invariant: nothing else of the package needs them where some are missing (:mod:`indices.compiled`).
"""

from __future__ import annotations

import warnings
from importlib import import_module

import numba

from indices.errors import NumbaWarning

NEEDED = (
    "numba.core.caching:_Cache",
    "numba.core.ccallback:CFunc",
    "numba.core.codegen:JITCodeLibrary._finalize_dynamic_globals",
    "numba.core.codegen:JITCodeLibrary._finalize_final_module",
    "numba.core.codegen:JITCodeLibrary._optimize_final_module",
    "numba.core.compiler:CompileResult._rebuild",
    "numba.core.compiler:CompileResult._reduce",
    "numba.core.compiler:Compiler",
    "numba.core.dispatcher:Dispatcher._compile_for_args",
    "numba.core.dispatcher:Dispatcher.add_overload",
    "numba.core.dispatcher:Dispatcher.get_call_template",
    "numba.core.serialize:dumps",
    "numba.core.sigutils:normalize_signature",
    "numba.core.typing:Context.resolve_function_type",
    "numba.experimental.function_type:FunctionModel",
)
"""Module, and what is in it."""


def missing(needed: tuple[str, ...] = NEEDED) -> list[str]:
    """Those that the numba that is installed lacks.

    >>> missing(), missing(("numba.core.compiler:Compiler.compile_tomorrow",))
    ([], ['numba.core.compiler:Compiler.compile_tomorrow'])
    """
    return [name for name in needed if not _is_there(name)]


def _is_there(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found = import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError):
        return False
    return True


def all_are_there() -> bool:
    """Whether none is missing; else a warning says what follows."""
    lacks = missing()
    if lacks:
        warnings.warn(
            f"numba {numba.__version__} lacks {', '.join(lacks)}: kernels are compiled by numba alone, anew "
            "in each process, which takes minutes; a version that lftj is tested with (see its requirements) "
            "keeps them on disk",
            NumbaWarning,
            stacklevel=2,
        )
    return not lacks
