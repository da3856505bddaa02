"""A kernel is compiled for one layout of arrays; another one would be compiled inside a commit."""

from __future__ import annotations

import numpy as np
import pytest

from maintenance.groups.boundaries import group_boundaries

pytestmark = pytest.mark.compiled


def test_arrays_of_another_layout_are_told_under_debug() -> None:
    rows = np.array([[1, 1, 2], [5, 5, 6]], np.int64)
    keys, offsets = group_boundaries(rows, 1)
    assert (keys.tolist(), offsets.tolist()) == ([[1, 2]], [0, 2, 3])
    with pytest.raises(AssertionError, match=r"group_boundaries-function was called with .* and now with"):
        group_boundaries(np.asfortranarray(rows), 1)
    read_only = rows.copy()
    read_only.flags.writeable = False
    with pytest.raises(AssertionError, match="and now with"):
        group_boundaries(read_only, 1)
