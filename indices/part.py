"""Parts: functions that kernels call, compiled as far as a kernel needs them.

Numba makes a library of machine code of every function, with all that the function
calls, and optimises it there: what lies five calls deep is optimised and written
down six times, and what Python would call it by as often.  A part stays intermediate code
until a kernel takes it over, and only that is optimised and made machine code, whole.

Invariants

1. A part has no address.  Numba's dispatcher, which calls what it is told of, is told
   of none; Python code that calls a part gets a TypeError.
2. A part is never written to disk: the kernels that took it over are.
3. A part raises nothing whose message is made as it runs: that would need numba's environment,
   which only kernels have.  Errors of indices and divisions come through.

Departs from numba's documented interface: ``pipeline_class=`` is part of it, the
methods of the library that are replaced here are not.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

from indices import announcement
from indices.known_calls import KernelCompiler


class PartLibrary(JITCodeLibrary):
    """The code of a part and of the parts that it calls, to be linked into kernels."""

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(KernelCompiler):
    """Numba's stages up to intermediate code."""

    def __init__(
        self, typing: Any, target: Any, library: None, args: Any, returned: Any, flags: Any, names: Any
    ) -> None:
        announcement.goes_on()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().__init__(typing, target, PartLibrary(target.codegen(), "part"), args, returned, flags, names)


def make_part(compiled: Any) -> None:
    """Let a dispatcher that compiles by :class:`PartCompiler` keep invariant 1."""

    def add(made: Any) -> None:
        made = made._replace(entry_point=object())  # what numba's contexts know it by
        compiled.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        compiled.overloads[tuple(made.signature.args)] = made

    def refuse(*_: Any) -> None:
        raise TypeError(f"{compiled.__module__}.{compiled.__qualname__} is a part of kernels")

    compiled.add_overload = add
    compiled._compile_for_args = refuse
