"""Computed decimals, their comparisons and aggregates against Python's: every width, 64 bits and beyond.

Sums of some columns fit 64 bits in one batch and not in the next; columns are built as bytes.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lftj
from lftj.errors import RangeError
from maintenance import Workspace
from support.bodies import OPERATORS

EXACT = Context(prec=400)
MAKERS: dict[int, tuple[Callable[[int, int], pa.DataType], int]] = {
    32: (pa.decimal32, 9),
    64: (pa.decimal64, 18),
    128: (pa.decimal128, 38),
    256: (pa.decimal256, 76),
}


def column(units: Sequence[int | None], arrow: pa.DataType) -> pa.Array:
    """Decimals from their unscaled values."""
    width = arrow.bit_width // 8
    data = b"".join((number or 0).to_bytes(width, "little", signed=True) for number in units)
    plain = pa.Array.from_buffers(arrow, len(units), [None, pa.py_buffer(data)])
    places = [None if number is None else place for place, number in enumerate(units)]
    return plain.take(pa.array(places, pa.int64()))


def value(units: int | None, arrow: pa.DataType) -> Decimal | None:
    return None if units is None else Decimal(units).scaleb(-arrow.scale, EXACT)


@st.composite
def types(draw: st.DrawFn) -> pa.DataType:
    make, most = MAKERS[draw(st.sampled_from([32, 64, 128, 256]))]
    precision = draw(st.integers(1, min(most, 24)))
    return make(precision, draw(st.integers(-2, min(precision, 6))))


def numbers(arrow: pa.DataType) -> st.SearchStrategy[int | None]:
    """Unscaled values: small ones, those near the type's limit and near 64 bits, and NULL."""
    limit = 10**arrow.precision
    near = [limit, 2**63, 2**62, 2**32, 0]
    edges = [one + off for one in near for off in (-2, -1, 0, 1) if one + off < limit]
    one = st.one_of(st.integers(0, min(limit - 1, 999)), st.sampled_from(edges))
    return st.one_of(st.none(), one, one.map(lambda n: -n))


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[tuple[int, Decimal | None, Decimal | None, int]]]:
    a, b = draw(types()), draw(types())
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 1), numbers(a), numbers(b), st.sampled_from([-3, 0, 7, 2**62])),
            min_size=1,
            max_size=12,
        )
    )
    rows = list(dict.fromkeys(rows))
    made = pa.table(
        {
            "k": pa.array([k for k, *_ in rows], pa.int64()),
            "a": column([a_ for _, a_, _, _ in rows], a),
            "b": column([b_ for _, _, b_, _ in rows], b),
            "i": pa.array([i for *_, i in rows], pa.int64()),
        }
    )
    return made, [(k, value(x, a), value(y, b), i) for k, x, y, i in rows]


COMPUTED: dict[str, Callable[[Decimal, Decimal, int], Decimal]] = {
    "a * (1.25 - b)": lambda a, b, i: EXACT.multiply(a, EXACT.subtract(Decimal("1.25"), b)),
    "-a + b": lambda a, b, i: EXACT.add(-a, b),
    "(a - b) * 10": lambda a, b, i: EXACT.multiply(EXACT.subtract(a, b), Decimal(10)),
    "a * i": lambda a, b, i: EXACT.multiply(a, Decimal(i)),
    "0.5 + a": lambda a, b, i: EXACT.add(Decimal("0.5"), a),
}


def found(rule: str, table: pa.Table, maintained: bool) -> list[tuple[Any, ...]]:
    if maintained:
        workspace = Workspace()
        workspace.load("r", table.slice(0, 0), nulls="keep")
        workspace.install(rule)
        half = table.num_rows // 2
        for part in (table.slice(0, half), table.slice(half)):
            with workspace.transaction() as transaction:
                transaction.insert("r", part)
        columns = workspace["h"].to_arrow().to_pydict().values()
    else:
        db = lftj.Database()
        db.load("r", table, nulls="keep")
        columns = db.query(rule).to_pydict().values()
    return sorted(zip(*columns, strict=True))


@pytest.mark.in_turns
@pytest.mark.parametrize("maintained", [False, True])
@pytest.mark.parametrize("extremes", [False, True])
@pytest.mark.parametrize("text", COMPUTED)
@settings(max_examples=25)
@given(case=tables())
def test_aggregates_of_computed_decimals(
    text: str,
    extremes: bool,
    maintained: bool,
    case: tuple[pa.Table, list[tuple[int, Decimal | None, Decimal | None, int]]],
) -> None:
    table, rows = case
    groups: dict[int, list[Decimal]] = defaultdict(list)
    uses_b = "b" in text
    for k, a, b, i in rows:
        if a is not None and (b is not None or not uses_b):
            groups[k].append(COMPUTED[text](a, b or Decimal(0), i))
    calls = "n: count(), s: sum(v), m: avg(v)" + (", least: min(v), most: max(v)" if extremes else "")
    rule = f"h(k, {calls}) <- r(k, a, b, i), v = {text}."
    try:
        got = found(rule, table, maintained)
    except RangeError:
        got = None
    if got is None:  # something does not fit 38 digits, of a key or of its type
        every = list(itertools.chain.from_iterable(groups.values()))
        large = max((abs(v) for v in (*every, *(_total(vs) for vs in groups.values()))), default=Decimal(0))
        assert large >= Decimal(10) ** 20
        return
    expected = [
        (
            k,
            len(vs),
            _total(vs),
            float(Fraction(_total(vs)) / len(vs)),
            *((min(vs), max(vs)) if extremes else ()),
        )
        for k, vs in sorted(groups.items())
    ]
    assert got == expected


def _total(values: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for one in values:
        total = EXACT.add(total, one)
    return total


@settings(max_examples=60)
@given(tables(), st.sampled_from(list(OPERATORS)), st.sampled_from(["b", "i", "2.50", "7"]))
def test_comparisons_of_computed_decimals(
    case: tuple[pa.Table, list[tuple[int, Decimal | None, Decimal | None, int]]], operator: str, other: str
) -> None:
    table, rows = case
    holds = OPERATORS[operator]
    expected = set()
    for k, a, b, i in rows:
        side = {"b": b, "i": Decimal(i)}.get(other, None if other in "bi" else Decimal(other))
        if a is not None and side is not None and holds(EXACT.multiply(a, Decimal(2)), side):
            expected.add((k, a))
    rule = f"h(k, a) <- r(k, a, b, i), v = a * 2, v {operator} {other}."
    assert found(rule, table, False) == sorted(expected)


def test_sums_of_batches_of_which_some_need_more_than_64_bits() -> None:
    """The first and the last are narrow: each word of the wide ones is added apart."""
    small, large = 3, 10**37
    arrow = pa.decimal128(38, 2)
    units = [*[small] * 50_000, *[large, -large, large], *[-small] * 40_000]
    table = pa.table({"n": range(len(units)), "a": column(units, arrow)})
    db = lftj.Database()
    db.load("r", table)
    got = db.query("h(sum(a), avg(a), count()) <- r(n, a).", threads=1)
    total = sum(units)
    assert [c[0] for c in got.to_pydict().values()] == [
        Decimal(total).scaleb(-2, EXACT),
        float(Fraction(total, 100) / len(units)),
        len(units),
    ]


def test_a_sum_that_its_type_does_not_hold_names_its_group() -> None:
    arrow = pa.decimal128(38, 0)
    db = lftj.Database()
    db.load("r", pa.table({"k": [1, 2, 2], "a": column([1, 9 * 10**37, 9 * 10**37 - 1], arrow)}))
    with pytest.raises(RangeError, match=r"h\[2\] = sum\(a\) is 179999.*does not fit decimal128\(38, 0\)"):
        db.query("h[k] = sum(a) <- r(k, a).")


def test_a_computed_decimal_is_a_key_where_one_is_read() -> None:
    """Its code is that of the same value elsewhere."""
    arrow = pa.decimal128(9, 2)
    db = lftj.Database()
    db.load("r", pa.table({"k": [1, 2, 3], "a": column([150, 200, None], arrow)}), nulls="keep")
    db.load("s", pa.table({"v": column([30, 45], pa.decimal64(9, 1)), "n": ["three", "four and a half"]}))
    assert db.query("h(k, n) <- r(k, a), v = a * 2, s(v, n).").to_pydict() == {"k": [1], "n": ["three"]}
    assert db.query("h[v] = count() <- r(k, a), v = a * 2 - 3.").to_pydict()["v"] == [
        Decimal("0.00"),
        Decimal(1),
    ]


def test_many_rows_of_few_texts_are_tested_by_text() -> None:
    n_rows = 5_000
    db = lftj.Database()
    db.load("r", pa.table({"n": range(n_rows), "t": [f"t{n % 7}" for n in range(n_rows)]}))
    assert db.query('h(count()) <- r(n, t), t like "%3", u = t || "x", u = "t3x".').to_pydict()["count"] == [
        sum(n % 7 == 3 for n in range(n_rows))
    ]
