"""Lists as values: codes, their order, and what comes back, beside Python's own lists."""

from __future__ import annotations

import datetime
import itertools
import math
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lftj import errors
from lftj.values.collector import Collector
from lftj.values.comparisons import compare_arrays
from lftj.values.domain import taken
from lftj.values.domains import Domains
from lftj.values.rows import RowDomain

ELEMENTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "narrow": (pa.int8(), [-128, -1, 0, 127]),
    "unsigned": (pa.uint64(), [0, 1, 2**63 - 1]),
    "float": (pa.float64(), [-math.inf, -1.5, 0.0, 5e-324, math.inf]),
    "narrow float": (pa.float32(), [-1.5, 0.0, 2.5]),
    "boolean": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    "date64": (pa.date64(), [datetime.date(1960, 1, 1), datetime.date(1970, 1, 2)]),
    "time": (pa.time32("s"), [datetime.time(0), datetime.time(23, 59, 59)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(1, 1, 1), datetime.datetime(2026, 1, 31, 10)]),
    "zone": (
        pa.timestamp("s", "Europe/Berlin"),
        [datetime.datetime(2026, 1, d, tzinfo=datetime.UTC) for d in (1, 2)],
    ),
    "duration": (pa.duration("ms"), [datetime.timedelta(milliseconds=n) for n in (-5, 0, 7)]),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")],
    ),
    "wide decimal": (
        pa.decimal256(60, 30),
        [Decimal(-(10**29)), Decimal(0).scaleb(-30), Decimal(1).scaleb(-30)],
    ),
    "string": (
        pa.string(),
        ["", "\x00", "\x00\x00", "\x00\x01", "\x01", "\x01\x01", "\x01\x02", "a", "ab", "é", "😀"],
    ),
    "large string": (pa.large_string(), ["", "a"]),
    "string view": (pa.string_view(), ["", "a"]),
    "binary": (
        pa.binary(),
        [b"", b"\x00", b"\x00\xff", b"\x01", b"\x01\x01", b"\x01\x02", b"\x02", b"\xff", b"\xff\x00"],
    ),
    "fixed binary": (pa.binary(2), [b"\x00\x00", b"\x00\x01", b"\x01\x02", b"\xff\xff"]),
    "encoded": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    "inner": (pa.list_(pa.int16()), [[], [-1], [0], [0, 0], [0, None], [1], [None]]),
    "inner text": (
        pa.large_list(pa.string()),
        [[], [""], ["", ""], ["\x00"], ["\x01"], ["a"], ["a", "b"], [None]],
    ),
}
"""Values of each type in their order."""


def some_lists(values: list[Any]) -> list[Any]:
    """All of up to two elements, and some that are longer, in no order."""
    some = [None, *values]
    found = [list(one) for n in range(3) for one in itertools.product(some, repeat=n)]
    found += [[*values, *values], [None] * 5, [*reversed(values), None]]
    return found[::-2] + found[::2]


def order(values: list[Any]) -> Any:
    """A key of lists by which they are in order: an end before all values, and NULL behind them."""
    places = {repr(value): place for place, value in enumerate(values)}

    def compared(left: list[Any], right: list[Any]) -> int:
        sides = [
            [len(places) if value is None else places[repr(value)] for value in side]
            for side in (left, right)
        ]
        return (sides[0] > sides[1]) - (sides[0] < sides[1])

    return cmp_to_key(compared)


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("name", ELEMENTS)
def test_lists_come_back_and_are_in_order(name: str, is_large: bool) -> None:
    element, values = ELEMENTS[name]
    arrow = pa.large_list(element) if is_large else pa.list_(element)
    lists = some_lists(values)
    array = pa.array(lists, pa.list_(pa.string()) if name == "encoded" else arrow)
    if name == "encoded":
        encoded = array.values.dictionary_encode().cast(element)
        array = pa.ListArray.from_arrays(array.offsets, encoded).cast(arrow)
    domain = Domains().of(arrow)
    codes = domain.encode(array)
    assert len(set(codes.tolist())) == len({repr(one) for one in lists})
    back = domain.decode(codes, arrow)
    back.validate(full=True)
    assert back.type == arrow
    assert back.to_pylist() == array.to_pylist()
    sliced = array[1:-1]
    assert domain.encode(pa.chunked_array([array[:0], sliced, sliced[2:]])).tolist() == [
        *codes[1:-1],
        *codes[3:-1],
    ]

    by_rank = sorted(range(len(lists)), key=lambda row: domain.ranks()[codes[row]])
    by_value = sorted(lists, key=order(values))
    assert [lists[row] for row in by_rank] == by_value
    assert domain.places(codes)[0].tolist() == domain.ranks()[codes].tolist()
    less = compare_arrays("<", array[:-1], array[1:]).to_pylist()
    assert less == [order(values)(one) < order(values)(two) for one, two in itertools.pairwise(lists)]
    other = Domains().of(arrow)  # as in another process
    assert (
        other.hashes(other.encode(taken(array, np.arange(len(array))[::-1]))).tolist()
        == domain.hashes(codes).tolist()[::-1]
    )


@pytest.mark.parametrize("name", ELEMENTS)
def test_lists_in_rows_of_wide_relations(name: str) -> None:
    element, values = ELEMENTS[name]
    if name == "encoded":
        return
    arrow = pa.list_(element)
    lists = pa.array([None, [], *some_lists(values)], arrow)
    columns = [pa.array(range(len(lists))), lists, lists]
    domain = RowDomain([pa.int64(), arrow, arrow], Collector())
    codes = domain.codes([pa.chunked_array([column]) for column in columns])
    assert [column.to_pylist() for column in domain.columns(codes)] == [one.to_pylist() for one in columns]


def test_equal_lists_have_one_code_whatever_their_type() -> None:
    domain = Domains()
    lists = domain.of(pa.list_(pa.int8()))
    assert lists is domain.of(pa.large_list(pa.uint32()))
    assert lists.encode(pa.array([[1, 2]], pa.list_(pa.int8()))) == lists.encode(
        pa.array([[1, 2]], pa.large_list(pa.int64()))
    )
    floats = domain.of(pa.list_(pa.float64()))
    one, other, _ = floats.encode(pa.array([[0.0, math.nan], [-0.0, -math.nan], [0.0]]))
    assert one == other
    decimals = domain.of(pa.list_(pa.decimal128(5, 1)))
    one = decimals.encode(pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(5, 1))))
    assert one == decimals.encode(pa.array([[Decimal("1.500")]], pa.list_(pa.decimal128(9, 3))))


def test_null_and_the_empty_list_differ() -> None:
    domain = Domains().of(pa.list_(pa.string()))
    lists = pa.array([None, [], [None], [""]])
    codes = domain.encode_nullable(lists)
    assert len(set(codes.tolist())) == 4
    assert domain.decode(codes, pa.list_(pa.string())).to_pylist() == lists.to_pylist()


def test_what_no_list_can_hold() -> None:
    domains = Domains()
    for arrow, message in (
        (pa.list_(pa.struct([("a", pa.int8())])), "its values can't be joined on"),
        (pa.list_(pa.null()), "a column without values needs a type"),
        (pa.list_(pa.int64(), 2), r"cast the column to list<item: int64>"),
        (pa.map_(pa.int8(), pa.int8()), "its values can't be joined on"),
    ):
        with pytest.raises(errors.UnsupportedTypeError, match=message):
            domains.of(arrow)
    lists = domains.of(pa.list_(pa.uint64()))
    with pytest.raises(errors.RangeError, match="18446744073709551615 is above"):
        lists.encode(pa.array([[2**64 - 1]], pa.list_(pa.uint64())))
    with pytest.raises(errors.RangeError, match="don't fit type int8: Integer value 300"):
        lists.decode(lists.encode(pa.array([[300]])), pa.list_(pa.int8()))
    with pytest.raises(errors.TypeClashError, match="a binary string can't be compared with a list"):
        lists.encode_constant(b"")


def test_many_random_lists() -> None:
    random = np.random.default_rng(5)
    arrow = pa.list_(pa.binary())

    def value() -> bytes | None:
        return None if random.random() < 0.1 else bytes(random.integers(0, 3, random.integers(4)).tolist())

    lists = [[value() for _ in range(random.integers(4))] for _ in range(3000)]
    domain = Domains().of(arrow)
    codes = domain.encode(pa.array(lists, arrow))
    assert domain.decode(codes, arrow).to_pylist() == lists
    key = {repr(one): [b"\xff" * 9 if value is None else value for value in one] for one in lists}
    ranked = [lists[row] for row in np.argsort(domain.ranks()[codes], kind="stable")]
    assert [key[repr(one)] for one in ranked] == sorted(key[repr(one)] for one in lists)
