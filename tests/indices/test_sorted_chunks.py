"""stateful: a map in chunks against a dictionary."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from indices import sorted_chunks
from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from indices.sorted_chunks import CHUNK, SortedChunks

KEYS = st.one_of(st.integers(-40, 40), st.sampled_from([KEY_MIN, KEY_MAX]), st.integers(KEY_MIN, KEY_MAX))


def as_array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


class SortedChunksMachine(RuleBasedStateMachine):
    """``before``: maps that others have followed, which stay as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = SortedChunks([])
        self.expected: dict[int, int] = {}
        self.before: list[tuple[SortedChunks, dict[int, int]]] = []

    @rule(keys=st.sets(KEYS, max_size=12))
    def more(self, keys: set[int]) -> None:
        self.before.append((self.pairs, dict(self.expected)))
        new = sorted(keys - set(self.expected))
        values = [len(self.expected) + number for number in range(len(new))]
        with mock.patch.object(sorted_chunks, "CHUNK", 2):
            self.pairs = self.pairs.with_more(as_array(new), as_array(values))
        self.expected |= dict(zip(new, values, strict=True))

    @rule(keys=st.lists(KEYS, max_size=8))
    def look_up(self, keys: list[int]) -> None:
        there = self.pairs.has(as_array(keys))
        assert there.tolist() == [key in self.expected for key in keys]
        known = as_array([key for key in keys if key in self.expected])
        assert self.pairs.values(known).tolist() == [self.expected[key] for key in known.tolist()]

    @invariant()
    def holds(self) -> None:
        for pairs, expected in (*self.before[-2:], (self.pairs, self.expected)):
            with mock.patch.object(sorted_chunks, "CHUNK", 2):
                pairs.check_invariants()
            ordered = sorted(expected.items())
            assert list(map(tuple, pairs.pairs().T.tolist())) == ordered
            places = np.arange(len(ordered))[::-1]
            assert list(map(tuple, pairs.at(places).T.tolist())) == ordered[::-1]


TestSortedChunksMachine = SortedChunksMachine.TestCase


def test_a_pair_more_moves_a_chunk() -> None:
    keys = 2 * np.arange(50 * CHUNK)
    pairs = SortedChunks.of(keys, keys)
    before = housekeeping.rows
    for key in np.random.default_rng(3).permutation(keys)[:500].tolist():
        started = housekeeping.rows
        pairs = pairs.with_more(as_array([key + 1]), as_array([key]))
        assert housekeeping.rows - started <= 2 * CHUNK
    assert housekeeping.rows > before
    pairs.check_invariants()
    assert len(pairs) == 50 * CHUNK + 500
