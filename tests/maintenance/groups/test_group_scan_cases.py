"""oracle: ordered intermediates with trees of some levels, labels that run out, functions that raise."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from indices.scan_tree import ScanTree
from lftj.errors import AggregateError
from maintenance.groups.scan import GroupScan, scan_for
from maintenance.groups.text import GroupText
from support.aggregate_heads import made

pytestmark = pytest.mark.kernel


# -- trees of some levels -------------------------------------------------------------


def integer_scan(function: str) -> GroupScan:
    one = made(function, [pa.int64()], (pa.int64(),))
    return GroupScan(one.head, one.types, 1)


@pytest.mark.compiled
@pytest.mark.parametrize("function", ["min", "quantile", "gcd", "compose"])
@pytest.mark.parametrize("log_size", [9, 12, 15])
def test_a_change_touches_nodes_in_proportion_to_the_logarithm(function: str, log_size: int) -> None:
    size = 1 << log_size
    scan = integer_scan(function)
    groups, values = np.arange(size) % 8, 256 + np.arange(size)
    scan.stage([groups, values], np.ones(size, np.int64))
    scan.keep()
    height = math.ceil(math.log(size, 5))
    for number in range(40):
        before = scan.tree.touched
        row = [np.array([number % 8]), np.array([256 + (number % 8) + 8 * number])]
        scan.stage(row, np.array([-1 if number % 2 else 1]))
        scan.values([np.array([number % 8])])
        scan.keep() if number % 3 else scan.drop()
        assert scan.tree.touched - before <= 6 * (height + 1)


@pytest.mark.compiled
def test_a_function_never_meets_values_of_two_groups() -> None:
    generator = np.random.default_rng(3)
    scan = integer_scan("within")
    model: Counter[tuple[int, int]] = Counter()
    for round_ in range(60):
        size = 3_000 if round_ == 0 else int(generator.integers(1, 200))
        groups = generator.integers(0, 40, size)
        values = 1000 * groups + generator.integers(0, 200, size)
        came = list(zip(groups.tolist(), values.tolist(), strict=True))
        gone = [row for row in model if generator.random() < 0.1] if round_ % 2 else []
        following = Counter(model)
        following.update(came)
        following.subtract({row: model[row] for row in gone})
        rows = np.array(came + gone)
        scan.stage(list(rows.T), np.array([1] * len(came) + [-model[row] for row in gone]))
        if round_ % 5 == 4:
            scan.drop()
        else:
            scan.keep()
            model = Counter({row: count for row, count in following.items() if count})
        scan.check_invariants()
        greatest: dict[int, int] = {}
        for group, value in model:
            greatest[group] = max(value, greatest.get(group, 0))
        assert scan.values([np.array(sorted(greatest))]).tolist() == [greatest[g] for g in sorted(greatest)]


@pytest.mark.compiled
def test_a_large_multiplicity_is_reached_by_doubling() -> None:
    scan = integer_scan("compose")
    scan.stage([np.array([1]), np.array([256 * 3 + 5])], np.array([10**15]))
    x = 7 * pow(3, 10**15, 251) + 5 * (pow(3, 10**15, 251) - 1) * pow(2, -1, 251)
    packed = int(scan.values([np.array([1])])[0])
    assert ((packed // 256) * 7 + packed % 256) % 251 == x % 251


# -- batches over one tuple, labels that run out ---------------------------------------


@pytest.mark.parametrize("function", ["min", "last"])
def test_several_batches_over_one_tuple_are_dropped_in_reverse(function: str) -> None:
    scan = integer_scan(function)
    scan.stage([np.array([1, 1]), np.array([5, 7])], np.array([1, 2]))
    scan.keep()
    assert scan.values([np.array([1])]).tolist() == [5 if function == "min" else 7]
    for value, weight in ((5, -1), (5, 4), (9, 1), (9, -1), (7, -2), (3, 1)):
        scan.stage([np.array([1]), np.array([value])], np.array([weight]))
        scan.check_invariants()
    scan.drop()
    scan.check_invariants()
    assert scan.values([np.array([1])]).tolist() == [5 if function == "min" else 7]


@pytest.mark.parametrize("dropped", [True, False])
def test_labels_that_are_numbered_again_midway(dropped: bool) -> None:
    one = made("last", [pa.int64(), pa.string(), pa.string()], ())
    scan = GroupScan(one.head, one.types, 0, spacing=1)
    model = []
    for number, (first, second) in enumerate([("b", "z"), ("d", "y"), ("c", "x"), ("c", "bb"), ("bc", "cb")]):
        scan.stage(one.encoded([(first, second, number)]), np.array([1]))
        if dropped and number == 3:
            scan.drop()
        else:
            scan.keep()
            model.append((first, second, number))
        scan.check_invariants()
        assert scan.values([]).tolist() == [max(model)[-1]]


def test_labels_of_one_column_that_another_one_numbers_again() -> None:
    one = made("last", [pa.int64(), pa.string(), pa.string()], ())
    scan = GroupScan(one.head, one.types, 0, spacing=1)
    scan.stage(one.encoded([("b", "c", 1), ("d", "bb", 2)]), np.array([1, 1]))
    scan.keep()
    assert scan.values([]).tolist() == [2]
    scan.check_invariants()
    scan.stage(one.encoded([("d", "bb", 2)]), np.array([-1]))
    assert scan.values([]).tolist() == [1]


# -- what goes wrong -----------------------------------------------------------------


@pytest.mark.compiled
def test_a_function_that_raises_names_the_group_and_changes_nothing() -> None:
    scan = integer_scan("product")
    groups = np.arange(2_000) // 2
    scan.stage([groups, np.where(np.arange(2_000) % 2, 900, 1000)], np.ones(2_000, np.int64))
    scan.keep()
    assert scan.values([np.array([3])]).tolist() == [900_000]
    for values in ([2], [2, 3]):
        rows = [np.array([500, 501, 700])[: len(values)], np.array(values)]
        with pytest.raises(AggregateError) as caught:
            scan.stage(rows, np.ones(len(values), np.int64))
            scan.values([np.array([500])])
        assert str(caught.value).startswith("h[500] = product(a0): product(")
        assert "raised OverflowError: too large" in str(caught.value)
        scan.drop()
        scan.check_invariants()
        assert scan.values([np.array([500, 501])]).tolist() == [900_000, 900_000]
    scan.stage([np.array([500]), np.array([1])], np.array([1]))
    scan.keep()
    assert scan.values([np.array([500])]).tolist() == [900_000]
    scan.check_invariants()


@pytest.mark.parametrize("method", ["erase_many", "insert_many", "update_many"])
@pytest.mark.parametrize("function", ["max", "compose"])
def test_an_interrupt_midway(function: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = integer_scan(function)
    values = 256 * (1 + np.arange(300) % 250)
    scan.stage([np.arange(300) % 3, values], np.ones(300, np.int64))
    scan.keep()
    wanted = scan.values([np.arange(3)]).tolist()
    changes = [np.array([0, 1, 2]), np.array([256, values[1], 77])], np.array([-1, 1, 1])

    def interrupted(self: ScanTree, *_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ScanTree, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan.stage(*changes)
    scan.drop()
    scan.check_invariants()
    assert scan.values([np.arange(3)]).tolist() == wanted
    scan.stage(*changes)
    with monkeypatch.context() as patched:
        patched.setattr(ScanTree, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan.drop()
    scan.check_invariants()
    assert scan.values([np.arange(3)]).tolist() == wanted


def test_what_needs_no_order_is_kept_elsewhere() -> None:
    for function in ("count", "sum", "avg"):
        one = made(function, [pa.int64()])
        with pytest.raises(ValueError, match="no aggregate that needs an order"):
            scan_for(one.head, one.types, 2)
        with pytest.raises(ValueError, match="no minimum, maximum, rank, quantile or semigroup"):
            GroupScan(one.head, one.types, 2)
    one = made("min", [pa.int64()])
    with pytest.raises(ValueError, match="is no text or list"):
        GroupText(one.head, one.types, 2)
    one = made("concat", [pa.string()])
    with pytest.raises(ValueError, match="2 group columns"):
        GroupText(one.head, one.types, 1)
    with pytest.raises(ValueError, match="whole groups"):
        GroupText(one.head, one.types, 2).values([np.array([1])])
    one = made("last", [pa.int64()])
    with pytest.raises(ValueError, match="1 columns are no group of 2 columns"):
        GroupScan(one.head, one.types, 2).values([np.array([1])])


def test_a_global_aggregate_has_no_group_columns() -> None:
    for function, wanted in (("min", 2), ("gcd", 1), ("last", 9)):
        one = made(function, [pa.int64()], ())
        scan = GroupScan(one.head, one.types, 0)
        assert scan.values([]).tolist() == [0]
        scan.stage([np.array([9, 2, 4])], np.array([1, 1, 1]))
        assert scan.values([]).tolist() == [wanted]
        scan.stage([np.array([9, 2, 4])], np.array([-1, -1, -1]))
        assert scan.values([]).tolist() == [0]
        scan.check_invariants()
