"""oracle: what groups give when their values change, against Python's sorted rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance.groups.grouped import _difference
from support.bodies import BOTTOM, TOP

pytestmark = pytest.mark.kernel

VALUES = st.sampled_from((BOTTOM, -1, 0, 1, TOP))
COUNTS = st.integers(0, 2)
GROUPS = st.lists(st.tuples(VALUES, COUNTS, VALUES, COUNTS), max_size=12)


@given(st.integers(0, 3), GROUPS, st.randoms(use_true_random=False))
def test_the_difference_is_what_went_and_what_came(
    n_keys: int, groups: list[tuple[int, int, int, int]], random: Random
) -> None:
    """Of each group: the value before, its count before, and both after; slots in any order."""
    if not n_keys:
        groups = groups[:1]
    n = len(groups)
    keys = [(group // 2, group % 2, -group)[:n_keys] for group in range(n)]
    keys.sort()
    if n_keys < 2:
        keys = [(group,) * n_keys for group in range(n)]
    slots = list(range(n))
    random.shuffle(slots)
    published = np.zeros(n, np.int64)
    for slot, (old, *_) in zip(slots, groups, strict=True):
        published[slot] = old
    columns = [np.array([group[field] for group in groups], np.int64) for field in range(4)]
    table = np.array(keys, np.int64).reshape(n, n_keys).T.copy()
    rows, weights = _difference(
        table, np.array(slots, np.int64), published, columns[1], columns[3], columns[2]
    )
    expected = []
    for key, (old, before, new, after) in zip(keys, groups, strict=True):
        if before and after and old == new:
            continue
        changes = [((*key, old), -1)] * bool(before) + [((*key, new), 1)] * bool(after)
        expected += sorted(changes)
    assert list(zip(map(tuple, rows.T.tolist()), weights.tolist(), strict=True)) == expected
    assert rows.shape == (n_keys + 1, len(expected))
