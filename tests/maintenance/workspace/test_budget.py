"""regressions: what a memory budget makes of the records that come."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from indices.max_scan import M_CONTEXT, M_QUERY
from indices.sensitivity import SensitivityIndex
from maintenance.workspace.budget import Budget

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize(
    ("prefix_width", "limit"), [(1, 60_000), (2, 100_000), (0, 40_000)], ids=["one", "two", "none"]
)
def test_budget_is_kept_while_recording(prefix_width: int, limit: int) -> None:
    rng = np.random.default_rng(5)
    budget = Budget(limit)
    index = SensitivityIndex(prefix_width, 1)
    plain = SensitivityIndex(prefix_width, 1)
    for _ in range(60):
        n = int(rng.integers(1, 3000))
        prefix = [rng.integers(0, 20, n) for _ in range(prefix_width)]
        lo = rng.integers(0, 1 << 17, n)
        for one in (index, plain):
            one.record(prefix, lo, lo + 5, [prefix[0] if prefix else lo % 50])
        budget.enforce([index])
        assert index.nbytes <= limit
    index.check_invariants()
    assert plain.nbytes > 2 * limit
    assert index.joined_records > 0
    keys = rng.integers(0, 1 << 17, 200)
    queries = [rng.integers(0, 20, 200) for _ in range(prefix_width)]
    exact, sharp = (
        set(zip(found[M_QUERY].tolist(), found[M_CONTEXT].tolist(), strict=True))
        for found in (plain.find(queries, keys), index.find(queries, keys))
    )
    assert exact <= sharp


def test_a_budget_that_cannot_be_kept_does_not_shrink_each_time() -> None:
    index, budget = SensitivityIndex(0, 1), Budget(100)
    with mock.patch.object(
        SensitivityIndex, "shrink", autospec=True, side_effect=SensitivityIndex.shrink
    ) as shrink:
        for context in range(4000):
            index.record([], np.array([0]), np.array([1]), [np.array([context])])
            budget.enforce([index])
    assert index.n_records == 4000
    assert shrink.call_count < 150


def test_two_indices_share_what_there_is() -> None:
    """Each is shrunk in proportion to its size."""
    rng = np.random.default_rng(6)
    large, small = SensitivityIndex(0, 1), SensitivityIndex(0, 1)
    for index, n in ((large, 40_000), (small, 10_000)):
        lo = rng.integers(0, 1 << 40, n)
        index.record([], lo, lo + 5, [lo % 50])
    before = large.nbytes, small.nbytes
    Budget(sum(before) // 2).enforce([large, small])
    after = large.nbytes, small.nbytes
    assert sum(after) <= sum(before) // 2
    assert after[0] / after[1] == pytest.approx(before[0] / before[1], rel=0.1)
