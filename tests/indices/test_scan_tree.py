"""stateful, oracle, laws: scan trees against a sorted dictionary and ``functools.reduce``.

The reference folds Python's own operations over the sorted keys and imports
nothing of the tree.  One of its monoids, the composition of affine maps modulo
a prime, does not commute, so an aggregate taken in the wrong order shows.
Floats are small dyadic fractions: their sums are exact in any grouping.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from indices.monoid import COUNT, MAX, MIN, SUM, Monoid, monoid
from indices.node_pool import CAPACITY
from indices.scan_climb import FULL_ENOUGH, MINIMUM, query_ranges
from indices.scan_tree import ScanTree

pytestmark = pytest.mark.kernel

INT64 = np.iinfo(np.int64)
PRIME = 251


@numba.njit
def compose(left, right):  # type: ignore[no-untyped-def]
    """First ``x -> a*x + b`` of ``left``, then that of ``right``; a map is packed as ``256*a + b``."""
    slope = (left // 256) * (right // 256) % 251
    return slope * 256 + ((right // 256) * (left % 256) + right % 256) % 251


def plain_compose(left: int, right: int) -> int:
    """The same, from the definition: where the composition takes 0 and 1."""
    ends = []
    for x in (0, 1):
        for packed in (left, right):
            slope, shift = divmod(packed, 256)
            x = (slope * x + shift) % PRIME
        ends.append(x)
    return (ends[1] - ends[0]) % PRIME * 256 + ends[0]


COMPOSE = monoid("compose", compose, 256)

integers = st.integers(-1000, 1000)
fractions = st.integers(-1000, 1000).map(lambda number: number / 8)
maps = st.tuples(st.integers(1, PRIME - 1), st.integers(0, PRIME - 1)).map(lambda ab: 256 * ab[0] + ab[1])

KINDS: dict[str, tuple[Monoid, Any, st.SearchStrategy, Callable[[Any, Any], Any], Any]] = {
    "sum": (SUM, np.int64, integers, operator.add, 0),
    "sum of floats": (SUM, np.float64, fractions, operator.add, 0.0),
    "count": (COUNT, np.int64, st.just(1), operator.add, 0),
    "min": (MIN, np.int64, integers, min, INT64.max),
    "max": (MAX, np.int64, integers, max, INT64.min),
    "min of floats": (MIN, np.float64, fractions, min, math.inf),
    "max of floats": (MAX, np.float64, fractions, max, -math.inf),
    "compose": (COMPOSE, np.int64, maps, plain_compose, 256),
}


class ScanTreeMachine(RuleBasedStateMachine):
    """Random changes and queries; runs of keys come and go whole, so that trees gain and lose levels."""

    @initialize(
        data=st.data(),
        kind=st.sampled_from(sorted(KINDS)),
        columns=st.integers(1, 3),
        size=st.integers(0, 300),
    )
    def build(self, data: st.DataObject, kind: str, columns: int, size: int) -> None:
        self.monoid, self.dtype, self.values, self.combine, self.identity = KINDS[kind]
        self.columns = columns
        self.model: dict[tuple[int, ...], Any] = {}
        values = self.draw_values(data, size)
        self.model = {self.key(3 * number): value for number, value in enumerate(values)}
        keys = np.array(sorted(self.model), np.int64).reshape(size, columns)
        self.tree = ScanTree.from_sorted(keys, np.array(values, self.dtype), self.monoid)

    def key(self, number: int) -> tuple[int, ...]:
        """Keys in the order of the numbers, which fill the last columns first."""
        digits = [number // 7**place for place in range(self.columns - 1, -1, -1)]
        return (digits[0], *(digit % 7 for digit in digits[1:]))

    def draw_values(self, data: st.DataObject, size: int) -> list[Any]:
        few = data.draw(st.lists(self.values, min_size=1, max_size=5))
        return [few[number * number % len(few)] for number in range(size)]

    def fold(self, low: tuple[int, ...], high: tuple[int, ...]) -> Any:
        """Keys cut short stand for all that they begin."""
        inside = [
            self.model[key]
            for key in sorted(self.model)
            if key[: len(low)] >= low and key[: len(high)] <= high
        ]
        return functools.reduce(self.combine, inside, self.identity)

    numbers = st.integers(-20, 950)

    @rule(data=st.data(), number=numbers)
    def insert(self, data: st.DataObject, number: int) -> None:
        value = data.draw(self.values)
        assert self.tree.insert(self.key(number), value) == (self.key(number) not in self.model)
        self.model.setdefault(self.key(number), value)

    @rule(data=st.data(), number=numbers)
    def update(self, data: st.DataObject, number: int) -> None:
        value = data.draw(self.values)
        assert self.tree.update(self.key(number), value) == (self.key(number) in self.model)
        if self.key(number) in self.model:
            self.model[self.key(number)] = value

    @rule(number=numbers)
    def erase(self, number: int) -> None:
        assert self.tree.erase(self.key(number)) == (self.key(number) in self.model)
        self.model.pop(self.key(number), None)

    @rule(data=st.data(), first=numbers, size=st.integers(0, 200), step=st.sampled_from([1, 2, 3, -1, -5]))
    def insert_run(self, data: st.DataObject, first: int, size: int, step: int) -> None:
        keys = [self.key(first + step * number) for number in range(size)]
        values = self.draw_values(data, size)
        new = self.tree.insert_many(np.array(keys, np.int64).reshape(size, self.columns), values)
        assert new.tolist() == [key not in self.model for key in keys]
        for key, value in zip(keys, values, strict=True):
            self.model.setdefault(key, value)

    @rule(first=numbers, size=st.integers(0, 400), step=st.sampled_from([1, 2, 3, -1, -5]))
    def erase_run(self, first: int, size: int, step: int) -> None:
        keys = [self.key(first + step * number) for number in range(size)]
        there = self.tree.erase_many(np.array(keys, np.int64).reshape(size, self.columns))
        assert there.tolist() == [key in self.model for key in keys]
        for key in keys:
            self.model.pop(key, None)

    @rule(low=numbers, high=numbers, data=st.data())
    def query(self, low: int, high: int, data: st.DataObject) -> None:
        ends = [self.key(number)[: data.draw(st.integers(0, self.columns))] for number in (low, high)]
        assert self.tree.query(*ends) == self.fold(*ends)
        assert self.tree.prefix(ends[1]) == self.fold((), ends[1])

    @rule(pairs=st.lists(st.tuples(numbers, numbers), max_size=20))
    def query_many(self, pairs: list[tuple[int, int]]) -> None:
        lows, highs = ([self.key(pair[end]) for pair in pairs] for end in (0, 1))
        expected = [self.fold(low, high) for low, high in zip(lows, highs, strict=True)]
        assert self.tree.query_many(lows, highs).tolist() == expected

    @invariant()
    def same_records(self) -> None:
        self.tree.check_invariants()
        keys, values = self.tree.records()
        assert dict(zip(map(tuple, keys.tolist()), values.tolist(), strict=True)) == self.model
        assert len(self.tree) == len(self.model)
        assert self.tree.query((), ()) == self.fold((), ())


TestScanTreeMachine = ScanTreeMachine.TestCase
TestScanTreeMachine.settings = settings(stateful_step_count=30)


# -- laws -------------------------------------------------------------------

record_sets = st.dictionaries(st.integers(INT64.min, INT64.max), maps, max_size=150)


def tree_of(records: dict[int, int], operation: Monoid = COMPOSE) -> ScanTree:
    return ScanTree.from_sorted(sorted(records), [records[key] for key in sorted(records)], operation)


def columns_of(tree: ScanTree) -> list[Any]:
    return [column.tolist() for column in tree.records()]


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_operations_are_associative_and_keep_their_identity(kind: str, data: st.DataObject) -> None:
    operation, dtype, values, plain, identity = KINDS[kind]
    a, b, c = (dtype(data.draw(values)) for _ in range(3))
    combine = operation.combine
    assert combine(a, combine(b, c)) == combine(combine(a, b), c) == plain(plain(a, b), c)
    assert operation.identity_of(dtype) == identity
    assert combine(a, operation.identity_of(dtype)) == combine(operation.identity_of(dtype), a) == a


@given(record_sets, st.randoms(use_true_random=False))
def test_built_at_once_or_one_by_one_in_any_order(records: dict[int, int], random: Any) -> None:
    keys = list(records)
    random.shuffle(keys)
    one_by_one = ScanTree(COMPOSE)
    for key in keys:
        assert one_by_one.insert(key, records[key])
    one_by_one.check_invariants()
    assert columns_of(one_by_one) == columns_of(tree_of(records))


@given(record_sets, st.integers(INT64.min, INT64.max - 1))
def test_a_range_is_the_combination_of_its_parts(records: dict[int, int], cut: int) -> None:
    tree = tree_of(records)
    assert tree.query((), ()) == plain_compose(tree.prefix(cut), tree.query(cut + 1, ()))


@given(record_sets, record_sets)
def test_a_change_and_its_inverse(records: dict[int, int], changes: dict[int, int]) -> None:
    tree = tree_of(records)
    changes = {key: value for key, value in changes.items() if key not in records}
    assert tree.insert_many(list(changes), list(changes.values())).all()
    assert tree.erase_many(list(changes)).all()
    tree.check_invariants()
    assert columns_of(tree) == columns_of(tree_of(records))


@given(record_sets, maps)
def test_an_update_is_an_erasure_and_an_insert(records: dict[int, int], value: int) -> None:
    updated, replaced = tree_of(records), tree_of(records)
    for key in list(records)[::3]:
        assert updated.update(key, value)
        assert replaced.erase(key) and replaced.insert(key, value)
    updated.check_invariants()
    assert columns_of(updated) == columns_of(replaced)
    assert updated.query((), ()) == replaced.query((), ())


@pytest.mark.parametrize("size", range(MINIMUM, CAPACITY + 1))
@pytest.mark.parametrize("short_is_left", [True, False])
def test_a_leaf_that_becomes_too_short_beside_one_of_any_size(size: int, short_is_left: bool) -> None:
    keys = range(0, 1300, 100)  # two leaves, of 6 and 7 records
    tree = ScanTree.from_sorted(keys, keys, SUM)
    short, other = (keys[:6], keys[6:]) if short_is_left else (keys[6:], keys[:6])
    kept = list(other)[:size] + [other[0] + 1 + number for number in range(size - len(other))]
    assert (
        tree.erase_many(other[size:]).all() and tree.insert_many(kept[len(other) :], kept[len(other) :]).all()
    )
    for count, key in enumerate(short):
        assert tree.erase(key)
        tree.check_invariants()
        assert tree.query((), ()) == sum(kept) + sum(short[count + 1 :])


def test_order_and_structure_in_a_tree_of_four_levels() -> None:
    """Inner nodes below inner nodes: splits, mends and queries whose two ways part high up."""
    generator = np.random.default_rng(20)
    records = {2 * key: int(256 * generator.integers(1, PRIME) + key % PRIME) for key in range(1_800)}
    tree = tree_of(records)
    for phase in range(12):
        start = int(generator.integers(0, 2_500))
        for key in generator.integers(start, start + 1_200, 150).tolist():
            if phase % 3 == 0:
                assert tree.insert(key, 257) == (key not in records)
                records.setdefault(key, 257)
            else:
                assert tree.erase(key) == (key in records)
                records.pop(key, None)
            if key % 10 == 0:
                tree.check_invariants()
        tree.check_invariants()
        for low, high in generator.integers(-10, 3_700, (10, 2)).tolist():
            inside = [records[key] for key in sorted(records) if low <= key <= high]
            assert tree.query(low, high) == functools.reduce(plain_compose, inside, 256)


def test_a_count_ignores_the_values() -> None:
    tree = ScanTree.from_sorted([1, 2], [0.5, 7.5], COUNT)
    assert tree.insert(3) and tree.insert(4, 99) and tree.update(1, 5)
    assert tree.query(1, 4) == 4
    assert tree.dtype == np.int64


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 16, 17, 24, 25, 144, 145, 157, 1728, 1729, 1741])
def test_bulk_build_at_the_edges_of_its_node_sizes(size: int) -> None:
    tree = ScanTree.from_sorted(range(size), range(size), SUM)
    tree.check_invariants()
    assert tree.query(0, size) == sum(range(size))


def test_keys_at_the_ends_of_64_bits() -> None:
    tree = ScanTree.from_sorted([INT64.min, 0, INT64.max], [1, 2, 4], SUM)
    assert tree.query(INT64.min, INT64.max) == 7
    assert tree.query(INT64.min, INT64.min) == 1
    assert tree.query(1, INT64.max) == 4
    assert tree.erase(INT64.min) and tree.insert(INT64.min, 8) and tree.prefix(0) == 10


# -- worked example, of the shape of ILFTJ 3.1 --------------------------------

SALES = {
    (1, 1): 310, (1, 2): 125, (1, 3): 940, (1, 4): 75,
    (2, 1): 500, (2, 2): 505, (2, 3): 15, (2, 4): 220, (2, 5): 490,
    (3, 1): 60,
    (4, 1): 700, (4, 2): 810, (4, 3): 805, (4, 4): 20, (4, 5): 330, (4, 6): 115,
}  # fmt: skip


def test_greatest_sale_of_a_region() -> None:
    """16 sales by region and store: a region's greatest is one range query, kept up under changes.

    The figures are this test's own.
    """
    tree = ScanTree.from_sorted(sorted(SALES), [SALES[key] for key in sorted(SALES)], MAX)
    assert [tree.query(region, region) for region in (1, 2, 3, 4)] == [940, 505, 60, 810]
    assert tree.query(2, 3) == 505
    assert tree.prefix((1, 2)) == 310
    assert tree.erase((1, 3)) and tree.query(1, 1) == 310
    assert tree.update((3, 1), 65) and tree.query(3, 3) == 65
    assert tree.insert((2, 9), 506) and tree.query(2, 2) == 506
    assert tree.query(5, 5) == INT64.min


# -- cost -------------------------------------------------------------------


def levels(size: int) -> int:
    """The greatest number of levels that a tree of so many records can have."""
    return 2 + math.ceil(math.log(max(size, 2) / 2, MINIMUM))


def touched_by(tree: ScanTree, operation: Callable[[], Any]) -> int:
    before = tree.touched
    operation()
    return tree.touched - before


@pytest.mark.compiled
@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_operations_touch_a_number_of_nodes_that_grows_with_the_logarithm(size: int) -> None:
    tree = ScanTree.from_sorted(np.arange(size) * 2, np.ones(size, np.int64), SUM)
    height = levels(size)
    generator = np.random.default_rng(size)
    for _ in range(300):
        low, high = (int(key) for key in generator.integers(0, 2 * size, 2))
        assert touched_by(tree, lambda low=low, high=high: tree.query(low, high)) <= 2 * height
        assert touched_by(tree, lambda low=low: tree.insert(low, 1)) <= 2 * height + 1
        assert touched_by(tree, lambda low=low: tree.update(low, 2)) <= height
        assert touched_by(tree, lambda high=high: tree.erase(high)) <= 2 * height
    tree.check_invariants()


@pytest.mark.compiled
def test_growth_is_by_doubling_and_erased_rows_come_back() -> None:
    tree = ScanTree(SUM)
    sizes = []
    for number in range(5_000):
        tree.insert(number * 7919 % 5_003, number)
        sizes.append(tree.nbytes)
    grown = sum(before != after for before, after in itertools.pairwise(sizes))
    assert grown <= 2 * math.log2(5_000)
    keys = tree.records()[0]
    for _ in range(5):
        assert tree.erase_many(keys).all() and len(tree) == 0
        assert tree.insert_many(keys, range(5_000)).all()
    tree.check_invariants()
    assert tree.nbytes <= 2 * sizes[-1]


def test_bytes_per_record_after_building() -> None:
    tree = ScanTree.from_sorted(range(12_000), range(12_000), SUM)
    assert tree.nbytes / 12_000 < 16 * CAPACITY / FULL_ENOUGH * 1.3


@pytest.mark.compiled
def test_one_kernel_for_all_monoids_of_a_type() -> None:
    for operation, dtype, *_ in KINDS.values():
        ScanTree(operation, dtype=dtype).query(1, 2)
    assert len(query_ranges.signatures) <= 2
