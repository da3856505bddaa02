"""Arrays by address: how one compiled kernel reads any number of tries.

A kernel argument's type is part of its signature, so a tuple of arrays would
compile anew for every number of atoms.  The plan holds the *addresses* of the
trie levels instead, as plain int64, and ``view(where, length)`` makes an array
of one inside the kernel at no cost (``view32`` for int32 items, ``frozen_view`` for an array that
may not be written to, which numba takes for a type of its own).

Invariant: whoever passes an address keeps the array alive for as long as the
kernel may run (the plan holds references to its tries).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


def address(array: np.ndarray) -> int:
    """Address of the first item of a C-contiguous array."""
    if not array.flags.c_contiguous:
        raise ValueError("only a C-contiguous array has one address for all its items")
    return int(array.__array_interface__["data"][0])  # quicker than array.ctypes


if numba.config.DISABLE_JIT:

    def _from_address(where: int, length: int, item: Any) -> np.ndarray:
        if length == 0:
            return np.empty(0, np.dtype(item))
        return np.ctypeslib.as_array(ctypes.cast(int(where), ctypes.POINTER(item)), shape=(int(length),))

    def view(where: int, length: int) -> np.ndarray:
        """The int64 array of ``length`` items at an address; read only by convention."""
        return _from_address(where, length, ctypes.c_int64)

    def frozen_view(where: int, length: int) -> np.ndarray:
        """The int64 array of ``length`` items at an address, which may not be written to."""
        array = view(where, length)
        array.setflags(write=False)
        return array

    def view32(where: int, length: int) -> np.ndarray:
        """The int32 array of ``length`` items at an address; read only by convention."""
        return _from_address(where, length, ctypes.c_int32)

else:

    def _view_intrinsic(item: types.Integer, readonly: bool = False) -> Any:
        """``f(where, length)``: builds the array's descriptor around the address, counting no references."""
        array_type = types.Array(item, 1, "C", readonly=readonly)

        @intrinsic
        def make(typing_context: Any, where: Any, length: Any) -> Any:
            def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
                array = make_array(array_type)(context, builder)
                size = context.get_constant(types.intp, item.bitwidth // 8)
                pointer = builder.inttoptr(arguments[0], context.get_data_type(item).as_pointer())
                populate_array(
                    array, data=pointer, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None
                )
                return array._getvalue()

            return array_type(types.int64, types.int64), generate

        return make

    view = _view_intrinsic(types.int64)
    frozen_view = _view_intrinsic(types.int64, readonly=True)
    view32 = _view_intrinsic(types.int32)
