"""oracle: searches in sorted ranges against Python's ``bisect``; what lies outside has no order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.memory import address
from lftj.storage.seek import gallop, lower_bound, ranked, upper_bound
from lftj.storage.trie import rank_table

pytestmark = pytest.mark.kernel

KEYS = st.integers(0, 60) | st.integers(-(2**63), 2**63 - 1)


@numba.njit
def found(keys, start, end, key):  # type: ignore[no-untyped-def]
    """Where each of them comes to."""
    return (
        gallop(keys, start, end, key),
        lower_bound(keys, start, end, key),
        upper_bound(keys, start, end, key),
    )


@given(rows=st.lists(KEYS, max_size=40), data=st.data())
def test_oracle_seeks(rows: list[int], data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(rows)))
    start = data.draw(st.integers(0, end))
    rows[start:end] = sorted(rows[start:end])
    keys = np.array(rows, np.int64)
    for key in (data.draw(KEYS), *rows):
        left, right = (bisect(rows, key, start, end) for bisect in (bisect_left, bisect_right))
        assert found(keys, start, end, key) == (left, left, right)


@numba.njit
def found_by_rank(ranks, base, spread, start, end, key):  # type: ignore[no-untyped-def]
    return ranked(ranks, base, spread, start, end, key)


@given(
    rows=st.sets(st.integers(0, 200), min_size=1).map(sorted),
    at=st.sampled_from((-(2**63), -70, 0, 2**63 - 201)),
    data=st.data(),
)
def test_oracle_ranks(rows: list[int], at: int, data: st.DataObject) -> None:
    rows = [at + row for row in rows]
    keys = np.array(rows, np.int64)
    ranks = rank_table(keys, len(keys))
    assert ranks is not None
    end = data.draw(st.integers(0, len(rows)))
    start = data.draw(st.integers(0, end))
    for key in (data.draw(KEYS), *rows, -(2**63), 2**63 - 1):
        with np.errstate(over="ignore"):  # keys are as far apart as keys can be
            place = found_by_rank(
                address(ranks),
                keys[0],
                np.int64(len(ranks) - 1),
                np.int64(start),
                np.int64(end),
                np.int64(key),
            )
        assert place == bisect_left(rows, key, start, end)
