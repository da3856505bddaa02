"""Arrays made in kernels from an address and a length: how one kernel reads any number of arrays.

Invariant: whoever passes an address keeps the array alive for as long as the kernel may run.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


def view_of(dtype: Any, frozen: bool = False, aligned: bool = True) -> Any:
    """``f(where, length)``, for kernels: the array of ``length`` items of a dtype at an address.

    It is read only by convention, or written by whoever may write the array that stands there; ``frozen``: it
    can't be written to, which numba takes for a type of its own.  ``aligned``: whether each address is a
    multiple of an item's size.
    """
    return _plain_view(dtype, frozen) if numba.config.DISABLE_JIT else _view_intrinsic(dtype, frozen, aligned)


def _plain_view(dtype: Any, frozen: bool) -> Any:
    """The same for code that is not compiled."""
    item = np.dtype(dtype)

    def make(where: int, length: int) -> np.ndarray:
        if length == 0:
            return np.empty(0, item)
        memory = (ctypes.c_char * (item.itemsize * int(length))).from_address(int(where))
        array: np.ndarray = np.ndarray(int(length), item, memory)
        if frozen:
            array.setflags(write=False)
        return array

    return make


def _view_intrinsic(dtype: Any, frozen: bool, aligned: bool) -> Any:
    """Builds the array's descriptor around the address, counting no references."""
    item = numba.from_dtype(np.dtype(dtype))
    array_type = numba.types.Array(item, 1, "C", readonly=frozen, aligned=aligned)

    @intrinsic
    def make(typing_context: Any, where: Any, length: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            array = make_array(array_type)(context, builder)
            size = context.get_constant(numba.types.intp, item.bitwidth // 8)
            pointer = builder.inttoptr(arguments[0], context.get_data_type(item).as_pointer())
            populate_array(
                array, data=pointer, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None
            )
            return array._getvalue()

        return array_type(numba.types.int64, numba.types.int64), generate

    return make
