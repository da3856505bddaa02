"""Arrays by address: how one compiled kernel reads any number of tries.

A kernel argument's type is part of its signature, so a tuple of arrays would
compile anew for every number of atoms.  The plan holds the *addresses* of the
trie levels instead, as plain int64, and ``view(where, length)`` makes an array
of one inside the kernel at no cost (``view32`` for int32 items, ``frozen_view`` for an array that
may not be written to).

Invariant: whoever passes an address keeps the array alive for as long as the
kernel may run (the plan holds references to its tries).
"""

from __future__ import annotations

import numpy as np

from indices.array_views import view_of


def address(array: np.ndarray) -> int:
    """Address of the first item of a C-contiguous array.

    Not by ``__array_interface__``: its use fills up Python's table of interned strings, which is written
    anew now and then, megabytes of it: the commit amid which that came took 25 to 45 times the median.
    """
    if not array.flags.c_contiguous:
        raise ValueError("only a C-contiguous array has one address for all its items")
    return int(array.ctypes.data)


view = view_of(np.int64)
frozen_view = view_of(np.int64, frozen=True)
view32 = view_of(np.int32)
