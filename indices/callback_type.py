"""Compiled functions that kernels take for an argument, and their type: unboxed without a call of Python.

Numba has a type for them; to find where such a function stands it calls fifteen functions of Python, whenever
a kernel gets one.  It stands there all the while.

Invariant: a callback is compiled before a kernel gets it, and outlives the kernel's call.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.ccallback import CFunc
from numba.experimental.function_type import FunctionModel
from numba.extending import NativeValue, register_model, typeof_impl, unbox


class CallbackType(types.FunctionType):
    """Of functions of one signature."""


register_model(CallbackType)(FunctionModel)


@unbox(CallbackType)
def _unboxed(kind: CallbackType, function: Any, context: Any) -> NativeValue:
    unboxed = cgutils.create_struct_proxy(kind)(context.context, context.builder)
    address = context.pyapi.object_getattr_string(function, "_wrapper_address")
    unboxed.c_addr = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    unboxed.py_addr = context.builder.bitcast(function, unboxed.py_addr.type)
    return NativeValue(unboxed._getvalue())


class Callback(CFunc):
    """One of these functions."""

    def compile(self) -> None:
        super().compile()
        self._numba_type_ = CallbackType(self._sig)  # type: ignore[attr-defined]  # the dispatcher looks here


@typeof_impl.register(Callback)
def _type_of(function: Callback, context: Any) -> CallbackType:
    return function._numba_type_
