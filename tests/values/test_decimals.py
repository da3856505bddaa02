"""Decimals against Python's integers, where pyarrow's own division and multiplication go wrong.

The values lie near multiples of powers of ``2**32``, the words of pyarrow's division, and near the limit
of their type's digits.  Columns are built and read as bytes, so that no cast of pyarrow's makes them.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import lftj
from lftj.errors import ChangeError, RangeError
from lftj.values.comparisons import compare_arrays
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domains import Domains
from lftj.values.kinds import cast_decimal
from maintenance import Workspace

MAKERS: dict[int, tuple[Callable[[int, int], pa.DataType], int]] = {
    32: (pa.decimal32, 9),
    64: (pa.decimal64, 18),
    128: (pa.decimal128, 38),
    256: (pa.decimal256, 76),
}
PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
    "=": python.eq,
    "!=": python.ne,
}
DISTANCES = st.one_of(st.integers(-3, 3), st.integers(-(2**33), 2**33))
NEAR_WORDS = st.builds(
    lambda word, times, distance: 2**word * times + distance,
    st.sampled_from([32, 64, 96, 128, 160, 192]),
    st.one_of(st.integers(1, 99), st.integers(0, 29).map(lambda n: 10**n), st.integers(1, 2**128)),
    DISTANCES,
)
"""Whole numbers near multiples of ``2**32``, ``2**64``, ``2**128``."""


def whole_numbers(digits: int) -> st.SearchStrategy[int]:
    """Of at most so many digits."""
    limit = 10**digits
    near = NEAR_WORDS.filter(lambda n: abs(n) < limit) if digits > 11 else st.nothing()
    near_limit = st.integers(1, min(limit - 1, 10**6)).map(lambda distance: limit - distance)
    any_number = st.integers(0, limit - 1)
    return st.one_of(near, near_limit, any_number).flatmap(lambda n: st.sampled_from([n, -n]))


def column(unscaled: list[int], arrow_type: pa.DataType) -> pa.Array:
    """An array of whole numbers of units of the type's last digit."""
    n_bytes = arrow_type.bit_width // 8
    words = b"".join(number.to_bytes(n_bytes, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(arrow_type, len(unscaled), [None, pa.py_buffer(words)])


def numbers(array: pa.Array) -> list[int]:
    """Inverse of :func:`column`."""
    n_bytes = array.type.bit_width // 8
    words = array.buffers()[1].to_pybytes()[array.offset * n_bytes :]
    return [
        int.from_bytes(words[row * n_bytes : (row + 1) * n_bytes], "little", signed=True)
        for row in range(len(array))
    ]


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """``unscaled / 10**scale``; Decimal's own arithmetic would round to 28 digits."""
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def in_units(unscaled: int, scale: int) -> int:
    """The number in units of the 38th digit behind the point, the dictionary's."""
    return unscaled * 10 ** (38 - scale) if scale <= 38 else unscaled // 10 ** (scale - 38)


@st.composite
def types(draw: st.DrawFn, widths: tuple[int, ...] = (128, 256), least: int = 0) -> pa.DataType:
    make, most = MAKERS[draw(st.sampled_from(widths))]
    digits = draw(st.one_of(st.just(most), st.integers(1, most)))
    scales = st.one_of(st.sampled_from([0, 1, 2, 4, 18]), st.integers(least, digits))
    return make(digits, min(digits, draw(scales)))


@st.composite
def key_columns(draw: st.DrawFn) -> pa.Array:
    """Columns of any type accepted whose values have at most 38 digits before and behind the point."""
    arrow_type = draw(types(widths=(32, 64, 128, 256), least=-37))
    spare = max(0, arrow_type.scale - 38)  # digits that have to be 0
    digits = min(arrow_type.precision, 38 + arrow_type.scale) - spare
    assume(digits > 0)
    unscaled = draw(st.lists(whole_numbers(digits), min_size=1, max_size=6))
    return column([number * 10**spare for number in unscaled], arrow_type)


ISSUE = column([18446744073709551615], pa.decimal128(38, 2))


@given(key_columns())
@example(ISSUE)
@example(column([(2**64 - 1) * 10**20], pa.decimal256(76, 58)))
def test_round_trip(keys: pa.Array) -> None:
    domain = Domains().of(keys.type)
    back = domain.decode(domain.encode(keys), keys.type)
    assert back.type == keys.type
    assert numbers(back) == numbers(keys)


@given(st.lists(key_columns(), min_size=2, max_size=4))
@example([ISSUE, column([(2**64 - 1) * 10**36], pa.decimal256(76, 38))])
def test_scales_that_meet(parts: list[pa.Array]) -> None:
    """Equal values have equal codes whatever their type, and each column comes back."""
    domain = Domains().of(parts[0].type)
    values = [[in_units(number, part.type.scale) for number in numbers(part)] for part in parts]
    places: dict[int, int] = {}
    for part, of_part in zip(parts, values, strict=True):
        assert domain.encode(part).tolist() == [places.setdefault(value, len(places)) for value in of_part]
    for part, of_part in zip(parts, values, strict=True):
        codes = np.array([places[value] for value in of_part])
        assert numbers(domain.decode(codes, part.type)) == numbers(part)
        for other in parts:  # in another's type, or refused
            grain = 10 ** max(0, 38 - other.type.scale)
            wanted = [value * 10 ** max(0, other.type.scale - 38) // grain for value in of_part]
            limit = 10**other.type.precision
            if all(value % grain == 0 for value in of_part) and all(abs(n) < limit for n in wanted):
                assert numbers(domain.decode(codes, other.type)) == wanted
            else:
                with pytest.raises(RangeError, match="don't fit"):
                    domain.decode(codes, other.type)


@given(key_columns(), st.data())
def test_order_and_selection(keys: pa.Array, data: st.DataObject) -> None:
    domain = Domains().of(keys.type)
    assert isinstance(domain, DictionaryDomain)
    codes = domain.encode(keys)
    distinct = list(dict.fromkeys(numbers(keys)))
    order = sorted(distinct)
    assert domain.ranks().tolist() == [order.index(number) for number in distinct]
    place, code_of_place = domain.places(codes)
    assert [distinct[code_of_place[p]] for p in place] == numbers(keys)
    literal = data.draw(st.sampled_from(distinct)) + data.draw(st.integers(-1, 1))
    for operator, holds in PYTHON.items():
        found = domain.select(operator, decimal_of(literal, keys.type.scale)).tolist()
        assert found == [code for code, number in enumerate(distinct) if holds(number, literal)]


@given(types((32, 64, 128, 256), -9), types((32, 64, 128, 256), -9), st.data())
def test_casts_are_exact_or_refused(source: pa.DataType, wanted: pa.DataType, data: st.DataObject) -> None:
    rise = wanted.scale - source.scale
    shared = min(source.precision + min(rise, 0), wanted.precision - max(rise, 0))
    numbers_that_fit = (
        whole_numbers(shared).map(lambda n: n * 10 ** max(-rise, 0)) if shared > 0 else st.just(0)
    )
    unscaled = data.draw(st.one_of(numbers_that_fit, whole_numbers(source.precision)))
    numerator, denominator = unscaled * 10 ** max(rise, 0), 10 ** max(-rise, 0)
    array = column([0, unscaled, 0], source).slice(1)
    if numerator % denominator == 0 and abs(numerator // denominator) < 10**wanted.precision:
        cast = cast_decimal(array, wanted)
        assert cast.type == wanted
        assert numbers(cast) == [numerator // denominator, 0]
    else:
        with pytest.raises(pa.ArrowInvalid):
            cast_decimal(array, wanted)


@pytest.mark.parametrize(
    "source", [pa.decimal128(5, 120), pa.decimal128(5, 0), pa.decimal128(5, -80)], ids=str
)
@pytest.mark.parametrize(
    "wanted", [pa.decimal128(7, 120), pa.decimal256(5, 0), pa.decimal32(5, -80)], ids=str
)
def test_scales_beyond_every_power_of_ten(source: pa.DataType, wanted: pa.DataType) -> None:
    assert numbers(cast_decimal(column([0, 0], source), wanted)) == [0, 0]
    if source.scale == wanted.scale:
        assert numbers(cast_decimal(column([99999], source), wanted)) == [99999]
    else:
        with pytest.raises(pa.ArrowInvalid):
            cast_decimal(column([0, 99999], source), wanted)


@given(types(), types(), st.data())
def test_comparisons(left_type: pa.DataType, right_type: pa.DataType, data: st.DataObject) -> None:
    """Of a number with another, and with the nearest that the other type has."""
    left, other = (data.draw(whole_numbers(arrow_type.precision)) for arrow_type in (left_type, right_type))
    nearest = left * 10**right_type.scale // 10**left_type.scale
    for right in (other, nearest - 1, nearest, nearest + 1):
        if abs(right) >= 10**right_type.precision:
            continue
        columns = (column([left], left_type), column([right], right_type))
        for operator, holds in PYTHON.items():
            expected = holds(left * 10**right_type.scale, right * 10**left_type.scale)
            assert compare_arrays(operator, *columns).to_pylist() == [expected]


# -- rules --------------------------------------------------------------------

CENTS = [sign * (n * 2**64 + d) for n in (1, 2, 3, 50) for d in (-2, -1, 0, 1) for sign in (1, -1)]
RULES: dict[str, Callable[[Fraction], Any]] = {
    "o(v, w) <- r(v), w = v * 1.2.": lambda v: v * Fraction("1.2"),
    "o(v, w) <- r(v), w = v + 0.005.": lambda v: v + Fraction("0.005"),
    "o(v, w) <- r(v), w = 1 - v.": lambda v: 1 - v,
    "o(v, w) <- r(v), w = -v.": lambda v: -v,
    "o(v, w) <- r(v), w = v / 2.": lambda v: float(v) / 2,
    "o(v, w) <- r(v), s(w), v = w.": lambda v: v,
}


@pytest.fixture
def db() -> lftj.Database:
    """The same numbers in two types."""
    db = lftj.Database()
    db.load("r", pa.table({"v": column(CENTS, pa.decimal128(38, 2))}))
    db.load("s", pa.table({"v": column([cents * 100 for cents in CENTS], pa.decimal256(50, 4))}))
    return db


def test_columns_come_out_as_they_went_in(db: lftj.Database) -> None:
    for name, factor in (("r", 1), ("s", 100)):
        found = db.query(f"o(v) <- {name}(v).").column("v").combine_chunks()
        assert sorted(numbers(found)) == sorted(cents * factor for cents in CENTS)


@pytest.mark.parametrize("rule", RULES)
def test_expressions(db: lftj.Database, rule: str) -> None:
    rows = [tuple(map(Fraction, row.values())) for row in db.query(rule).to_pylist()]
    assert sorted(rows) == sorted((v, Fraction(RULES[rule](v))) for v in (Fraction(c, 100) for c in CENTS))


@pytest.mark.parametrize("operator", PYTHON)
def test_comparisons_in_rules(db: lftj.Database, operator: str) -> None:
    for limit in CENTS:
        rule = f"o(v) <- r(v), v {operator} {decimal_of(limit, 2)}."
        found = [int(v.scaleb(2)) for v in db.query(rule).column("v").to_pylist()]
        assert sorted(found) == sorted(cents for cents in CENTS if PYTHON[operator](cents, limit))
    pairs = [(a, b) for a in CENTS for b in CENTS if PYTHON[operator](a, b)]
    assert db.count(f"o(a, b) <- r(a), s(b), a {operator} b.") == len(pairs)


def test_aggregates(db: lftj.Database) -> None:
    above = [cents for cents in CENTS if cents > 0]
    for function, expected in (("sum", sum(above)), ("max", max(above)), ("min", min(above))):
        for name, scale in (("r", 2), ("s", 4)):
            found = db.query(f"t[] = {function}(v) <- {name}(v), v > 0.").column(0).combine_chunks()
            assert found.type.scale == scale
            assert numbers(found) == [expected * 10 ** (scale - 2)]
    assert db.query("t[] = avg(v) <- r(v), v > 0.").column(0).to_pylist() == [
        float(Fraction(sum(above), 100 * len(above)))
    ]


def test_a_change_of_another_scale_is_exact_or_refused() -> None:
    """pyarrow's own cast wraps around where the wider scale leaves no room."""
    workspace = Workspace()
    held = Decimal("0." + "0" * 37 + "1")
    workspace.load("r", pa.table({"v": pa.array([held], pa.decimal128(38, 38))}))
    fits, wide = Decimal("-0.2221128654467"), Decimal("-5534023.2221128654467")
    for value in (wide, fits):
        changes = pa.table({"v": pa.array([value], pa.decimal128(26, 13))})
        if value is wide:
            with pytest.raises(ChangeError, match="'r', column 'v'"), workspace.transaction() as tx:
                tx.insert("r", changes)
        else:
            with workspace.transaction() as tx:
                tx.insert("r", changes)
    assert sorted(workspace["r"]["v"].to_pylist()) == [fits, held]
