"""oracle: counts, sums and extremes that are found as rows come, against Python's integers."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices.keys import KEY_MAX, KEY_MIN
from lftj.aggregates import running_sums
from lftj.aggregates.running_sums import RunningSums
from lftj.errors import RangeError

pytestmark = pytest.mark.kernel

NUMBERS = st.one_of(st.integers(-5, 5), st.integers(KEY_MIN, KEY_MAX), st.sampled_from((KEY_MIN, KEY_MAX)))
WEIGHTS = st.one_of(st.just(1), st.integers(1, 3), st.integers(1, 2**60))


@given(st.integers(0, 3), st.integers(0, 2), st.data())
def test_sums_are_exact(n_keys: int, n_sums: int, data: st.DataObject) -> None:
    key = st.one_of(st.integers(0, 3), NUMBERS)
    row = st.tuples(st.tuples(*[key] * n_keys), st.tuples(*[NUMBERS] * n_sums), WEIGHTS)
    batches = data.draw(st.lists(st.lists(row, max_size=8), max_size=4))
    counts: Counter[tuple[int, ...]] = Counter()
    totals: defaultdict[tuple[int, ...], list[int]] = defaultdict(lambda: [0] * n_sums)
    extremes: defaultdict[tuple[int, ...], list[list[int]]] = defaultdict(lambda: [[] for _ in range(n_sums)])
    largest = [number % 2 == 0 for number in range(n_sums)]
    sums = RunningSums(n_keys, n_sums, largest)
    for batch in batches:
        for keys, values, weight in batch:
            counts[keys] += weight
            for came, value in zip(extremes[keys], values, strict=True):
                came.append(value)
            totals[keys] = [total + weight * v for total, v in zip(totals[keys], values, strict=True)]
        columns = [
            [int(number) for number in column] for column in zip(*(row[0] for row in batch), strict=True)
        ]
        summands = list(zip(*(row[1] for row in batch), strict=True))
        empty = np.empty(0, np.int64)
        if sum(counts.values()) > KEY_MAX:
            with pytest.raises(RangeError, match=r"more than 2\*\*63 assignments"):
                _add(sums, columns or [empty] * n_keys, summands or [empty] * n_sums, batch)
            return
        _add(sums, columns or [empty] * n_keys, summands or [empty] * n_sums, batch)
        sums.check_invariants()
    keys_found, counts_found, words, codes = sums.finish()
    found = sorted(counts)
    for number, of_groups in enumerate(codes):
        pick = max if largest[number] else min
        assert of_groups.tolist() == [pick(extremes[key][number]) for key in found]
    assert list(zip(*(column.tolist() for column in keys_found), strict=True)) == (found if n_keys else [])
    assert counts_found.tolist() == [counts[key] for key in found]
    for number, of_groups in enumerate(words):
        exact = [int.from_bytes(row.tobytes(), "little", signed=True) for row in of_groups]
        assert exact == [totals[key][number] for key in found]


def _add(sums: RunningSums, keys: list, summands: list, batch: list) -> None:  # type: ignore[type-arg]
    weights = np.array([weight for *_, weight in batch], np.int64)
    values = [np.array(c, np.int64) for c in summands]
    sums.add([np.array(c, np.int64) for c in keys], values, values, weights)


def test_many_groups_come_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_sums, "LEAST_GROUPS", 2)
    numbers = np.random.default_rng(1).permutation(1000)
    sums = RunningSums(1, 1, [False])
    for piece in (numbers, numbers[::-1]):
        sums.add([piece % 250], [piece], [piece], np.ones(1000, np.int64))
    sums.check_invariants()
    (keys,), counts, (words,), (least,) = sums.finish()
    assert least.tolist() == list(range(250))
    assert keys.tolist() == list(range(250)) and set(counts.tolist()) == {8}
    assert words[:, 0].tolist() == [2 * sum(range(key, 1000, 250)) for key in range(250)]


def test_sums_carry_into_their_high_word() -> None:
    """From both sides of a power of two, one by one and at once."""
    for step in (KEY_MAX, KEY_MIN, -1, 1 << 62):
        sums = RunningSums(0, 1)
        for weight in (1, 1, 5, 1 << 40):
            sums.add([], [np.array([step, step])], [], np.array([1, weight]))
        (_, _, (words,), _) = sums.finish()
        assert int.from_bytes(words[0].tobytes(), "little", signed=True) == step * (4 + 7 + (1 << 40))
