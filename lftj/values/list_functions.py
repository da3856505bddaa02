"""Functions of lists.  Places count from 1, as in SQL; a place before the first counts from the end.

Cost: whole-array operations over the elements.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.comparisons import compare_arrays
from lftj.values.domain import without_views
from lftj.values.kinds import plain_array


def length(lists: pa.Array) -> pa.Array:
    """Numbers of elements, NULLs too.

    >>> length(pa.array([[5, None], []])).to_pylist()
    [2, 0]
    """
    return pc.list_value_length(lists).cast(pa.int64())


def extract(lists: pa.Array, places: pa.Array) -> pa.Array:
    """The element of each list at its place; NULL where there is none.

    >>> extract(pa.array([[5, 6], [5, 6], []]), pa.array([1, -1, 1])).to_pylist()
    [5, 6, None]
    """
    first, wanted = lists.offsets.to_numpy()[:-1], places.to_numpy()
    lengths = length(lists).to_numpy()
    from_first = np.where(wanted > 0, wanted - 1, lengths + wanted)
    there = (wanted != 0) & (from_first >= 0) & (from_first < lengths)
    values = without_views(plain_array(lists.values))
    return values.take(pa.array(np.where(there, first + from_first, 0), mask=~there))


def contains(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Whether an element of each list equals its value, as ``=`` would say.

    >>> contains(pa.array([[5, None], [6], []]), pa.array([5, 5, 5])).to_pylist()
    [True, False, False]
    """
    rows = pc.list_parent_indices(lists)
    same = pc.fill_null(compare_arrays("=", lists.flatten(), values.take(rows)), False)
    hits = rows.to_numpy()[same.to_numpy(zero_copy_only=False)]
    return pa.array(np.bincount(hits, minlength=len(lists)) > 0)
