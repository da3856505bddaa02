"""Domains against plain Python: round trips, order, intervals and selections by brute force."""

from __future__ import annotations

import datetime
import math
import operator
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj.errors import RangeError, TypeClashError, UnsupportedTypeError
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import NAN_CODE
from lftj.values.domains import Domains

INT64 = st.integers(-(2**63), 2**63 - 1)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def _stored_as(integers: st.SearchStrategy[int], arrow_type: pa.DataType) -> st.SearchStrategy[pa.Array]:
    width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
    return st.lists(integers, max_size=12).map(lambda values: pa.array(values, width).cast(arrow_type))


def _values(values: st.SearchStrategy[Any], arrow_type: pa.DataType) -> st.SearchStrategy[pa.Array]:
    return st.lists(values, max_size=12).map(lambda column: pa.array(column, arrow_type))


def _decimals(arrow_type: pa.DataType, digits: int) -> st.SearchStrategy[pa.Array]:
    """Decimals of at most so many digits, and of 38 behind the point: a type may be wider than its values."""
    unscaled = st.integers(-(10**digits) + 1, 10**digits - 1)
    return _values(
        unscaled.map(lambda n: _scaled(n * 10 ** max(0, arrow_type.scale - 38), arrow_type.scale)), arrow_type
    )


def _scaled(unscaled: int, scale: int) -> Decimal:
    """``unscaled / 10**scale``; Decimal's own arithmetic would round to 28 digits."""
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def _plain_arrays() -> dict[pa.DataType, st.SearchStrategy[pa.Array]]:
    arrays: dict[pa.DataType, st.SearchStrategy[pa.Array]] = {}
    for width in (8, 16, 32, 64):
        signed, unsigned = pa.type_for_alias(f"int{width}"), pa.type_for_alias(f"uint{width}")
        arrays[signed] = _values(st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1), signed)
        arrays[unsigned] = _values(st.integers(0, min(2**width, 2**63) - 1), unsigned)
    arrays[pa.bool_()] = _values(st.booleans(), pa.bool_())
    for width in (16, 32, 64):
        numbers = st.floats(width=width)  # type: ignore[call-overload]
        arrays[pa.type_for_alias(f"float{width}")] = st.lists(numbers, max_size=12).map(
            lambda column, width=width: pa.array(np.array(column, dtype=f"float{width}"))
        )
    arrays[pa.date32()] = _stored_as(st.integers(-(2**31), 2**31 - 1), pa.date32())
    arrays[pa.date64()] = _stored_as(
        st.integers(-(10**6), 10**6).map(lambda day: day * 86_400_000), pa.date64()
    )
    for unit, seconds in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        time = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        arrays[time] = _stored_as(st.integers(0, 86_400 * seconds - 1), time)
        for other in (pa.timestamp(unit), pa.timestamp(unit, "Europe/Berlin"), pa.duration(unit)):
            arrays[other] = _stored_as(INT64, other)
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        arrays[text] = _values(st.text(max_size=20), text)
    for octets in (pa.binary(), pa.large_binary(), pa.binary_view()):
        arrays[octets] = _values(st.binary(max_size=20), octets)
    arrays[pa.binary(3)] = _values(st.binary(min_size=3, max_size=3), pa.binary(3))
    for decimal, digits in (
        (pa.decimal32(9, 2), 9),
        (pa.decimal64(18, 5), 18),
        (pa.decimal128(38, 0), 38),
        (pa.decimal128(38, 38), 38),
        (pa.decimal128(12, -3), 12),
        (pa.decimal256(76, 38), 76),
        (pa.decimal256(76, 10), 48),
        (pa.decimal256(60, 0), 38),
        (pa.decimal256(76, 60), 54),
    ):
        arrays[decimal] = _decimals(decimal, digits)
    return arrays


PLAIN = _plain_arrays()
DICTIONARIES = {
    pa.dictionary(pa.int8(), pa.string()): pa.string(),
    pa.dictionary(pa.int32(), pa.string_view()): pa.string_view(),
    pa.dictionary(pa.uint16(), pa.large_binary(), ordered=True): pa.large_binary(),
    pa.dictionary(pa.int64(), pa.int32()): pa.int32(),
    pa.dictionary(pa.int32(), pa.timestamp("ms", "Europe/Berlin")): pa.timestamp("ms", "Europe/Berlin"),
    pa.dictionary(pa.int32(), pa.decimal128(38, 0)): pa.decimal128(38, 0),
}


def _dictionary_array(values: pa.Array, arrow_type: pa.DictionaryType) -> pa.Array:
    """Each row points at a dictionary entry of its own, in reverse, and some entries are used by none."""
    indices = pa.array(range(len(values) - 1, -1, -1), arrow_type.index_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=arrow_type.ordered)


def _comparable(array: pa.Array) -> list[Any]:
    """The column's values such that equal means equal: integers for what Python's own types can't hold."""
    if pa.types.is_dictionary(array.type):
        dictionary = _comparable(array.dictionary)
        return [dictionary[place] for place in array.indices.to_pylist()]
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    values = array.to_pylist()
    if pa.types.is_floating(array.type):
        return ["nan" if math.isnan(value) else value for value in values]
    return values


@pytest.mark.parametrize("arrow_type", [*PLAIN, *DICTIONARIES], ids=str)
def test_round_trip_of_every_type(arrow_type: pa.DataType) -> None:
    plain_type = DICTIONARIES.get(arrow_type, arrow_type)

    @settings(max_examples=25)
    @given(st.lists(PLAIN[plain_type], min_size=1, max_size=3))
    def round_trip(chunks: list[pa.Array]) -> None:
        if arrow_type is not plain_type:
            chunks = [_dictionary_array(chunk, arrow_type) for chunk in chunks]
        column = pa.chunked_array(chunks, arrow_type)
        domain = Domains().of(arrow_type)
        for source in (column, column.slice(1)):
            codes = domain.encode(source)
            assert codes.dtype == np.int64
            back = domain.decode(codes, arrow_type)
            assert back.type == arrow_type
            expected = [value for chunk in source.chunks for value in _comparable(chunk)]
            assert _comparable(back) == expected
            assert domain.decode_chunked(codes, arrow_type).combine_chunks().equals(back) or "nan" in expected
            # Equal codes, equal values.
            by_code = dict(zip(codes.tolist(), expected, strict=True))
            assert [by_code[code] for code in codes.tolist()] == expected
            assert len(by_code) == len(set(expected))

    round_trip()


ORDERED = [
    arrow_type
    for arrow_type in PLAIN
    if pa.types.is_integer(arrow_type)
    or pa.types.is_boolean(arrow_type)
    or pa.types.is_temporal(arrow_type)
    or pa.types.is_floating(arrow_type)
]


@pytest.mark.parametrize("arrow_type", ORDERED, ids=str)
def test_codes_keep_the_order_of_ordered_domains(arrow_type: pa.DataType) -> None:
    @settings(max_examples=25)
    @given(PLAIN[arrow_type])
    def order(column: pa.Array) -> None:
        domain = Domains().of(arrow_type)
        assert domain.ordered
        keys = [math.inf if value == "nan" else value for value in _comparable(column)]
        codes = domain.encode(column).tolist()
        is_nan = [code == NAN_CODE and pa.types.is_floating(arrow_type) for code in codes]
        for i in range(len(codes)):
            for j in range(len(codes)):
                # NaN comes behind infinity.
                assert (codes[i] < codes[j]) == ((is_nan[i], keys[i]) < (is_nan[j], keys[j]))

    order()


@pytest.mark.parametrize("arrow_type", [t for t in PLAIN if t not in ORDERED], ids=str)
def test_ranks_are_the_order_of_unordered_domains(arrow_type: pa.DataType) -> None:
    @settings(max_examples=25)
    @given(PLAIN[arrow_type], PLAIN[arrow_type])
    def ranks(first: pa.Array, second: pa.Array) -> None:
        domain = Domains().of(arrow_type)
        assert not domain.ordered
        assert not domain.integral
        values = []
        for column in (first, second):
            codes = domain.encode(column)
            values += [value for value in dict.fromkeys(column.to_pylist()) if value not in values]
            assert codes.tolist() == [values.index(value) for value in column.to_pylist()]
            rank = domain.ranks()
            assert sorted(range(len(values)), key=values.__getitem__) == np.argsort(rank).tolist()
            assert domain.ranks() is rank

    ranks()


NUMBERS = st.one_of(
    INT64,
    st.integers(-3, 3),
    st.integers(2**63 - 3, 2**63 + 3),
    st.integers(-(2**63) - 3, -(2**63) + 3),
    st.just(10**400),
    st.just(-(10**400)),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.fractions(-4, 4, max_denominator=4).map(float),
    st.fractions(-4, 4, max_denominator=4).map(lambda f: Decimal(f.numerator) / Decimal(f.denominator)),
)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))
DAYS = st.dates()


def _exact(number: Any) -> Any:
    return number if isinstance(number, float) and not math.isfinite(number) else Fraction(number)


def _check_interval(domain: Any, column: pa.Array, values: list[Any], literal: Any, reference: Any) -> None:
    codes = domain.encode(column).tolist()
    for symbol in ("<", "<=", ">", ">=", "="):
        low, high = domain.interval(symbol, literal)
        if low <= high:
            assert -(2**63) <= low <= high < 2**63
        held = [low <= code <= high for code in codes]
        assert held == [OPERATORS[symbol](value, reference) for value in values], (symbol, literal)
    code = domain.encode_constant(literal)
    assert [c == code for c in codes] == [value == reference for value in values]
    with pytest.raises(ValueError, match="no interval"):
        domain.interval("!=", literal)


@given(st.lists(st.one_of(st.integers(-4, 4), INT64), max_size=8), NUMBERS)
def test_intervals_of_integers(values: list[int], literal: Any) -> None:
    domain = Domains().of(pa.int64())
    assert domain.integral
    if isinstance(literal, float) and math.isnan(literal):
        assert domain.interval(">", literal) == (0, -1)
        return
    _check_interval(
        domain, pa.array([*values, 2**63 - 1, -(2**63)]), [*values, 2**63 - 1, -(2**63)], literal, literal
    )


@given(st.lists(st.floats(), max_size=8), NUMBERS)
def test_intervals_of_floats(values: list[float], literal: Any) -> None:
    domain = Domains().of(pa.float64())
    assert not domain.integral
    reference = literal
    if isinstance(literal, Decimal) and math.isfinite(float(literal)):
        reference = float(literal)
        values = [*values, reference]
    values = [*values, math.inf, -math.inf, 1.7976931348623157e308, 0.0, -0.0]
    if isinstance(literal, float) and math.isnan(literal):
        assert domain.interval(">", literal) == (0, -1)
        assert domain.encode_constant(literal) is None
        return
    column = pa.array(np.array(values))
    _check_interval(domain, column, values, literal, reference)


@given(st.lists(DAYS, max_size=8), st.one_of(DAYS, MOMENTS))
def test_intervals_of_dates(values: list[datetime.date], literal: datetime.date) -> None:
    day = literal.date() if isinstance(literal, datetime.datetime) else literal
    values = [*values, day]
    moments = [datetime.datetime(v.year, v.month, v.day) for v in values]
    reference = literal if isinstance(literal, datetime.datetime) else moments[-1]
    for arrow_type in (pa.date32(), pa.date64()):
        _check_interval(Domains().of(arrow_type), pa.array(values, arrow_type), moments, literal, reference)


@given(st.sampled_from(["s", "ms", "us", "ns"]), st.lists(MOMENTS, max_size=8), st.one_of(DAYS, MOMENTS))
def test_intervals_of_timestamps(unit: str, values: list[datetime.datetime], literal: datetime.date) -> None:
    reference = literal
    if not isinstance(literal, datetime.datetime):
        reference = datetime.datetime(literal.year, literal.month, literal.day)
    step = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[unit]
    values = [value.replace(microsecond=value.microsecond // step * step) for value in [*values, reference]]
    if unit == "ns":
        values = [value for value in values if 1700 < value.year < 2200]
    column = pa.array(values, pa.timestamp(unit))
    _check_interval(Domains().of(column.type), column, values, literal, reference)


@given(st.lists(MOMENTS, max_size=8), MOMENTS, st.sampled_from(["UTC", "Asia/Kathmandu"]))
def test_intervals_of_timestamps_with_zone(values: list[Any], literal: datetime.datetime, zone: str) -> None:
    values = [value.replace(tzinfo=datetime.UTC) for value in values]
    column = pa.array(values, pa.timestamp("us", zone))
    # A literal carries its own offset; the zone of the column is only how it is shown.
    literal = literal.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    _check_interval(Domains().of(column.type), column, values, literal, literal)


def test_intervals_of_booleans() -> None:
    for literal in (False, True):
        _check_interval(Domains().of(pa.bool_()), pa.array([False, True]), [False, True], literal, literal)


def _check_selection(domain: Any, values: list[Any], literal: Any, reference: Any) -> None:
    distinct = list(dict.fromkeys(values))
    for symbol, compare in OPERATORS.items():
        selected = domain.select(symbol, literal)
        assert selected.dtype == np.int64
        assert selected.tolist() == [c for c, value in enumerate(distinct) if compare(value, reference)], (
            symbol
        )
    code = domain.encode_constant(literal)
    assert code == (distinct.index(reference) if reference in distinct else None)
    assert len(domain.values()) == len(distinct), "a literal is never added"


@given(st.lists(st.text(max_size=5), max_size=8), st.text(max_size=5))
def test_selections_of_strings(values: list[str], literal: str) -> None:
    domain = Domains().of(pa.string())
    domain.encode(pa.array(values, pa.string()))
    _check_selection(domain, values, literal, literal)


@given(st.lists(st.binary(max_size=3), max_size=8), st.binary(max_size=3))
def test_selections_of_binary(values: list[bytes], literal: bytes) -> None:
    domain = Domains().of(pa.binary_view())
    domain.encode(pa.array(values, pa.binary_view()))
    _check_selection(domain, values, literal, literal)


@given(
    st.lists(st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: _scaled(n, 2)), max_size=8),
    st.one_of(
        st.integers(-4, 4),
        st.just(10**400),
        st.sampled_from([10**38, -(10**38), 10**38 - 1, math.inf, -math.inf, 0.25, -1e-3, 1e300]),
        st.fractions(-4, 4, max_denominator=8).map(float),
        st.decimals(-4, 4, places=3),
        st.decimals(-4, 4, places=45),
        st.just(Decimal("99999999999999999999999999999999999999.999")),
    ),
)
def test_selections_of_decimals(values: list[Decimal], literal: Any) -> None:
    domain = Domains().of(pa.decimal128(38, 2))
    values = [*values, Decimal("0.25"), Decimal("-4.00"), Decimal("0.00"), Decimal("3.50")]
    domain.encode(pa.array(values, pa.decimal128(38, 2)))
    finite = not isinstance(literal, float) or math.isfinite(literal)
    reference = Decimal(repr(literal)) if isinstance(literal, float) and finite else literal
    _check_selection(domain, values, literal, reference)


def test_every_type_of_a_domain_meets() -> None:
    domains = Domains()

    def codes(values: list[Any], *types: pa.DataType) -> None:
        found = {tuple(domains.of(t).encode(pa.array(values, t)).tolist()) for t in types}
        assert len(found) == 1
        assert len({id(domains.of(t)) for t in types}) == 1

    codes(
        [1, 0, 100],
        *(pa.type_for_alias(f"{sign}int{width}") for sign in ("", "u") for width in (8, 16, 32, 64)),
    )
    codes([1.5, 0.0], pa.float16(), pa.float32(), pa.float64())
    codes([datetime.date(2026, 1, 31)], pa.date32(), pa.date64())
    codes(
        ["b", "a", "b"],
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    )
    codes([b"b", b"a"], pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
    codes(
        [Decimal("1.5"), Decimal("-2")],
        *(pa.decimal128(5, s) for s in (1, 2, 4)),
        pa.decimal32(5, 1),
        pa.decimal256(50, 20),
    )
    moment = datetime.datetime(2026, 1, 31, tzinfo=ZoneInfo("Asia/Tokyo"))
    codes([moment], pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo"))


def test_domains_that_differ() -> None:
    domains = Domains()
    names = [
        domains.of(t).name
        for t in (
            pa.int8(), pa.bool_(), pa.float16(), pa.date64(), pa.time32("ms"), pa.time64("ns"),
            pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.duration("us"), pa.string_view(),
            pa.binary(4), pa.decimal64(9, 1),
        )
    ]  # fmt: skip
    assert names == [
        "integer", "boolean", "float", "date", "time[ms]", "time[ns]", "timestamp[s]",
        "timestamp[s, zone]", "duration[us]", "string", "binary", "decimal",
    ]  # fmt: skip


def test_extension_types_come_back() -> None:
    column = pa.array([b"0123456789abcdef", b"fedcba9876543210"], pa.binary(16)).cast(pa.uuid())
    domain = Domains().of(pa.uuid())
    assert domain.name == "binary"
    assert domain.decode(domain.encode(column), pa.uuid()).equals(column)


def test_dictionary_values_that_no_row_uses_get_no_code() -> None:
    domain = Domains().of(pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array([2, 2]), pa.array(["unused", None, "used"]))
    assert domain.encode(column).tolist() == [0, 0]
    assert isinstance(domain, DictionaryDomain)
    assert domain.values().to_pylist() == ["used"]
    assert domain.nbytes > 0


def test_more_values_than_an_index_type_counts() -> None:
    domain = Domains().of(pa.int64())
    narrow = pa.dictionary(pa.int8(), pa.int64())
    assert len(domain.decode(np.arange(128), narrow).dictionary) == 128
    with pytest.raises(RangeError, match="integer don't fit type dictionary"):
        domain.decode(np.arange(129), narrow)


def test_strings_beyond_one_array_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domains().of(pa.string())
    codes = domain.encode(pa.array(["a", "b", "c", "a", "b"]))
    whole = domain.decode

    def small(codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        if len(codes) > 2:
            raise RangeError("too much for one array")
        return whole(codes, arrow_type)

    monkeypatch.setattr(domain, "decode", small)
    column = domain.decode_chunked(codes, pa.string())
    assert column.to_pylist() == ["a", "b", "c", "a", "b"]
    assert column.num_chunks == 3
    with pytest.raises(RangeError):
        domain.decode_chunked(codes, pa.large_string())


def test_threads_agree_on_codes() -> None:
    domain = Domains().of(pa.string())
    columns = [pa.array([f"value {(i * step) % 500}" for i in range(500)]) for step in (1, 3, 7, 9)]
    found: list[np.ndarray] = [np.empty(0)] * len(columns)

    def encode(place: int) -> None:
        found[place] = domain.encode(columns[place])

    threads = [threading.Thread(target=encode, args=(place,)) for place in range(len(columns))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for column, codes in zip(columns, found, strict=True):
        assert domain.decode(codes, pa.string()).equals(column)
    assert len(domain.ranks()) == 500


CLASHES = [
    (pa.int64(), "abc", "a string can't be compared with values of type integer"),
    (pa.int64(), True, "a boolean can't be compared with values of type integer"),
    (pa.bool_(), 1, "a number can't be compared with values of type boolean"),
    (pa.float32(), b"x", "a binary string can't be compared with values of type float"),
    (pa.float32(), True, "a boolean can't be compared with values of type float"),
    (pa.date32(), 5, "a number can't be compared with values of type date"),
    (
        pa.date32(),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "a timestamp with zone can't be compared with values of type date",
    ),
    (
        pa.timestamp("us", "UTC"),
        datetime.datetime(2026, 1, 1),
        "a timestamp without zone can't be compared with values of type timestamp[us, zone]",
    ),
    (
        pa.timestamp("s"),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "a timestamp with zone can't be compared with values of type timestamp[s]",
    ),
    (
        pa.timestamp("us", "UTC"),
        datetime.date(2026, 1, 1),
        "a date can't be compared with values of type timestamp[us, zone]",
    ),
    (pa.time32("s"), 5, "a number can't be compared with values of type time[s]"),
    (pa.duration("s"), 5, "a number can't be compared with values of type duration[s]"),
    (pa.string(), 5, "a number can't be compared with values of type string"),
    (pa.string(), b"a", "a binary string can't be compared with values of type string"),
    (pa.string(), "\ud800", "is no Unicode text: it holds half a surrogate pair"),
    (pa.binary(), "a", "a string can't be compared with values of type binary"),
    (pa.decimal128(5, 2), "1.5", "a string can't be compared with values of type decimal"),
    (pa.decimal128(5, 2), True, "a boolean can't be compared with values of type decimal"),
    (pa.decimal128(5, 2), math.nan, "a number can't be compared with values of type decimal"),
]


@pytest.mark.parametrize(("arrow_type", "literal", "message"), CLASHES, ids=lambda value: repr(value)[:40])
def test_literals_of_another_kind_clash(arrow_type: pa.DataType, literal: Any, message: str) -> None:
    domain = Domains().of(arrow_type)
    with pytest.raises(TypeClashError) as raised:
        domain.encode_constant(literal)
    assert message in str(raised.value)
    with pytest.raises(TypeClashError):
        domain.interval("<", literal) if domain.ordered else domain.select("<", literal)


def test_what_a_domain_does_not_offer() -> None:
    integer, string = Domains().of(pa.int64()), Domains().of(pa.string())
    with pytest.raises(TypeError, match="use interval"):
        integer.select("=", 1)
    with pytest.raises(TypeError, match="codes are ranks"):
        integer.ranks()
    with pytest.raises(TypeError, match="use select"):
        string.interval("=", "a")


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(pa.int64(), 2),
        pa.list_(pa.struct([("a", pa.int64())])),
        pa.struct([("a", pa.int64())]),
        pa.map_(pa.string(), pa.int64()),
        pa.null(),
        pa.dictionary(pa.int8(), pa.list_view(pa.int8())),
        pa.decimal128(5, -38),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_types_without_a_domain(arrow_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match="is not supported"):
        Domains().of(arrow_type)


def test_values_without_a_code() -> None:
    with pytest.raises(RangeError, match="the uint64 value 9223372036854775808 is above 2\\*\\*63 - 1"):
        Domains().of(pa.uint64()).encode(pa.chunked_array([pa.array([1, 2**63], pa.uint64())]))
    for scale, digits in ((0, 39), (39, 39), (10, 60)):
        value = _scaled(int("1" * digits), scale)
        with pytest.raises(RangeError, match=r"a value of type decimal256.* has more than 38 digits"):
            Domains().of(pa.decimal256(76, 0)).encode(pa.array([value], pa.decimal256(76, scale)))


def test_values_that_do_not_fit_the_type_asked_for() -> None:
    domain = Domains().of(pa.int64())
    with pytest.raises(RangeError, match="values of domain integer don't fit type int8"):
        domain.decode(np.array([300]), pa.int8())
    decimal = Domains().of(pa.decimal128(5, 3))
    codes = decimal.encode(pa.array([Decimal("1.125")], pa.decimal128(5, 3)))
    with pytest.raises(RangeError, match="values of domain decimal don't fit type decimal128\\(5, 2\\)"):
        decimal.decode(codes, pa.decimal128(5, 2))
