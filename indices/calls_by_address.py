"""Kernels that kernels call by where their code is, in place of having it compiled into their own.

What a kernel calls is optimised and written down with it, anew for each caller.  The search machine takes ten
seconds to compile: whoever runs it for longer than a call costs gets its address among its arguments.

Invariants

1. An address holds for as long as the process: kernels are never unloaded.
2. It leads to code for the signature that it was asked for with, and the call is compiled for the same.

Departs from numba's documented interface: extensions may call by numba's own calling convention, but where
a function's code stands is not among what is said.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic


def code_address(compiled: Any, arguments: Sequence[types.Type]) -> int:
    """Where the code of a kernel for arguments of these types is; it is loaded, or compiled, now.

    Of code that is not compiled 0, which :func:`caller_of` does not look at.
    """
    return 0 if config.DISABLE_JIT else _address(compiled, tuple(arguments))


@functools.cache
def _address(compiled: Any, arguments: tuple[types.Type, ...]) -> int:
    made = _made(compiled, arguments)
    where: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    assert where
    return where


def caller_of(compiled: Any, arguments: Sequence[types.Type]) -> Any:
    """``f(where, *arguments)``, for kernels: the kernel whose :func:`code_address` this is."""
    if config.DISABLE_JIT:
        return lambda where, *given: compiled(*given)

    @intrinsic
    def call(typing_context: Any, where: Any, *given: Any) -> Any:
        result = _made(compiled, arguments).signature.return_type

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            shape = context.call_conv.get_function_type(result, tuple(arguments))
            code = builder.inttoptr(values[0], shape.as_pointer())
            passed = cgutils.unpack_tuple(builder, values[1])
            status, found = context.call_conv.call_function(builder, code, result, tuple(arguments), passed)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return found

        given_as = types.StarArgTuple(tuple(arguments))  # type: ignore[attr-defined]
        return result(types.int64, given_as), generate

    return call


def _made(compiled: Any, arguments: Sequence[types.Type]) -> Any:
    """The code of a kernel for arguments of these types, as numba has it."""
    compiled.compile(tuple(arguments))
    return compiled.overloads[tuple(arguments)]
