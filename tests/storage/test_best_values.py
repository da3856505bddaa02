"""oracle: the best value per key against dictionaries, with codes in the order of their values and not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage.best_values import IN_ORDER, BestValues

ROUNDS = st.lists(
    st.lists(st.tuples(st.integers(0, 600), st.integers(-3, 3), st.integers(0, 7)), max_size=400), max_size=6
)


@given(ROUNDS, st.integers(0, 2), st.booleans(), st.booleans())
def test_rounds(
    rounds: list[list[tuple[int, int, int]]], n_keys: int, largest: bool, is_ranked: bool
) -> None:
    ranks = np.array([3, 1, 7, 0, 6, 2, 5, 4]) if is_ranked else IN_ORDER
    place = ranks.tolist() if is_ranked else list(range(8))
    best = BestValues(n_keys, largest)
    expected: dict[tuple[int, ...], int] = {}
    for rows in rounds:
        before = dict(expected)
        better = []
        for number, (*keys, value) in enumerate(rows):
            key, known = tuple(keys[:n_keys]), expected.get(tuple(keys[:n_keys]))
            if known is None or (place[value] != place[known] and (place[value] > place[known]) == largest):
                expected[key] = value
                better.append(number)
        columns = [np.array([row[column] for row in rows], np.int64) for column in range(3)]
        assert best.add(columns[:n_keys], columns[2], ranks).tolist() == better
        best.check_invariants()
        improved = best.next_round()
        keys = [tuple(key) for key in improved.keys.T.tolist()]
        assert dict(zip(keys, improved.values.tolist(), strict=True)) == {
            key: value for key, value in expected.items() if before.get(key) != value
        }
        n_old = len(keys) - improved.n_new
        assert [before[key] for key in keys[:n_old]] == improved.before.tolist()
        assert before.keys().isdisjoint(keys[n_old:])
        *held, values = best.columns()
        keys = list(map(tuple, np.array(held).T.tolist())) if n_keys else [()] * len(values)
        assert dict(zip(keys, values.tolist(), strict=True)) == expected and len(values) == len(expected)
