"""differential: an aggregate by partials of cells against one Aggregation of all rows, to the last bit.

Every cell has dictionaries of its own, and so has the one that puts the partials
together: their tables go there as bytes, shuffled, cut and put together anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lftj.aggregates import number_columns
from lftj.aggregates import partial as partial_aggregates
from lftj.aggregates.partial import FinalAggregation, PartialAggregation, key_names, partial_schema
from lftj.aggregates.whole import Aggregation
from lftj.errors import AggregateError, LftjError, RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.values.domains import Domains
from lftj.values.names import DISTINCT_COUNT
from lftj.values.schema import Column, ColumnType, Schema
from support.aggregate_heads import GROUPS, Made, aggregate
from support.cell_aggregates import ALL, MAX, ORDERED, SUMS, TINY, head_of, row_strategy

pytestmark = pytest.mark.kernel

Rows = list[tuple[tuple[Any, ...], int]]


def columns_of(it: Made, rows: Rows) -> tuple[dict[str, np.ndarray], np.ndarray]:
    codes = it.encoded([row for row, _ in rows])
    return dict(zip(it.columns, codes, strict=True)), np.array([weight for _, weight in rows], np.int64)


def partials(it: Made, batches: list[Rows]) -> pa.Table:
    place = PartialAggregation(it.head, it.types)
    for batch in batches:
        place.add(*columns_of(it, batch))
    table = place.finish()
    assert table.schema.equals(partial_schema(it.head, it.types))
    table.validate(full=True)
    return table


def through_bytes(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def outcome(run: Any) -> tuple[Any, ...]:
    """Keys and values by their bits, or the error."""
    try:
        keys, values = run()
    except LftjError as error:
        return type(error), str(error)
    values.validate(full=True)
    codes = [column.tolist() for column in keys]
    if pa.types.is_floating(values.type):
        return codes, values.type, values.to_numpy().view(f"i{values.type.bit_width // 8}").tolist()
    if pa.types.is_duration(values.type):
        return codes, values.type, values.cast(pa.int64()).to_pylist()
    return codes, values.type, values.to_pylist()


def over_all(it: Made, rows: Rows) -> Any:
    columns, weights = columns_of(it, rows)
    return lambda: aggregate(it.head, columns, weights, it.types)


@contextmanager
def sizes(buffer: int, window: int, words: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_aggregates, "BUFFER_ROWS", buffer)
        patch.setattr(number_columns, "_WINDOW_ROWS", window)
        patch.setattr(number_columns, "_COLUMN_WORDS", words)
        yield


@pytest.mark.in_turns
@pytest.mark.parametrize("name", ALL)
@settings(max_examples=settings.default.max_examples // 2 if settings.default else 30)
@given(data=st.data())
def test_differential_partials(name: str, data: st.DataObject) -> None:
    case = ALL[name]
    with_groups = data.draw(st.integers(0, 3)) > 0
    groups = GROUPS if with_groups else ()
    weight = st.one_of(st.integers(1, 3), st.just(2**40)) if case in SUMS.values() else st.integers(1, 3)
    n_cells = data.draw(st.integers(1, 5))
    item = st.tuples(st.tuples(row_strategy(case, with_groups), weight), st.integers(0, n_cells - 1))
    drawn = data.draw(st.lists(item, max_size=20))
    tables = []
    with sizes(*data.draw(st.sampled_from([(1 << 20, 1 << 13, 2**29 - 1), (1, 2, 3), (4, 1, 80)]))):
        for cell in range(n_cells):
            rows = [row for row, its in drawn if its == cell]
            cut = data.draw(st.integers(0, len(rows)))
            place = head_of(case, groups, data.draw(st.integers(0, 3)))
            tables.append(through_bytes(partials(place, [rows[:cut], rows[cut:]])))
        whole = pa.concat_tables(tables)
        whole = whole.take(pa.array(data.draw(st.permutations(range(len(whole)))), pa.int64()))
        cut = data.draw(st.integers(0, len(whole)))
        it = head_of(case, groups, data.draw(st.integers(0, 3)))
        final = FinalAggregation(it.head, it.types)
        for table in (whole[:cut], whole[cut:]):
            final.add(table)
        found = outcome(final.finish)
    event(f"{name}: {'error' if isinstance(found[1], str) else 'values'}")
    assert found == outcome(over_all(it, [row for row, _ in drawn]))
    assert outcome(final.finish) == found, "finishing changes nothing"


# -- examples by name ---------------------------------------------------------


def in_cells(name: str, cells: list[list[Any]], weights: int = 1) -> Any:
    """The only group's value, from cells of argument values; checked against one Aggregation."""
    it = head_of(ALL[name], ())
    final = FinalAggregation(it.head, it.types)
    rows: list[Rows] = [[((value,), weights) for value in cell] for cell in cells]
    for cell in rows:
        final.add(partials(head_of(ALL[name], ()), [cell]))
    found = outcome(final.finish)
    assert found == outcome(over_all(it, [row for cell in rows for row in cell]))
    (value,) = final.finish()[1].to_pylist()
    return value


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([[1e308], [1e308], [-1e308]], 1e308),
        ([[1e308, 1e308], [-1e308, -1e308, TINY]], TINY),
        ([[MAX], [MAX]], math.inf),
        ([[1.1e31, 1.0], [-1.1e31, 2.5], [-0.125]], 3.375),
        ([[1.0], [2.0**-53]], 1.0),
        ([[1.0], [2.0**-53], [TINY]], math.nextafter(1.0, 2)),
        ([[-0.0], [-0.0]], 0.0),
        ([[math.inf], [1.0]], math.inf),
        ([[math.inf], [-math.inf]], math.nan),
        ([[math.nan], [1.0]], math.nan),
    ],
)
def test_floats_are_rounded_once(cells: list[list[float]], wanted: float) -> None:
    assert repr(in_cells("sum float", cells)) == repr(wanted)


def test_an_average_is_the_exact_quotient_rounded_once() -> None:
    assert in_cells("avg float", [[1e308], [1e308], [1e308]]) == 1e308
    assert in_cells("avg int64", [[2**63 - 1], [2**63 - 1, 2**63 - 3]]) == (3 * 2**63 - 5) / 3


def test_partial_sums_may_be_larger_than_the_declared_type() -> None:
    assert in_cells("sum int64", [[2**63 - 1, 2**63 - 1], [-(2**63), -(2**63)]]) == -2


def test_the_widest_decimals_as_often_as_can_be() -> None:
    largest = Decimal("9" * 38 + "." + "9" * 38)
    name = "avg decimal256(76, 38)"
    assert in_cells(name, [[largest], [largest]], 2**62 - 1) == float(largest)
    it = head_of(ALL["sum decimal256(76, 38)"], ())
    final = FinalAggregation(it.head, it.types)
    for value in (largest, largest.copy_negate()):
        final.add(partials(it, [[((value,), 2**61)], [((Decimal(1),), 1)]]))
    assert final.finish()[1].to_pylist() == [2]


def test_overflow_names_head_and_group() -> None:
    it = head_of(ALL["sum int64"])
    final = FinalAggregation(it.head, it.types)
    for value in (2**63 - 1, 1):
        final.add(partials(head_of(ALL["sum int64"]), [[((1, "x", value), 1), ((1, "y", value), 1)][:1]]))
    with pytest.raises(RangeError, match=r'^h\[1, "x"\] = sum\(a0\) is 9223372036854775808, which does not'):
        final.finish()


@pytest.mark.parametrize("name", ["count", "sum int64", "avg float", "concat"])
def test_more_assignments_than_int64_counts(name: str) -> None:
    it = head_of(ALL[name], ())
    row = {"count": (), "concat": ("s",)}.get(name, (1,))
    table = partials(it, [[(row, 2**62)]])
    final = FinalAggregation(it.head, it.types)
    final.add(table)
    with pytest.raises(RangeError, match=r"^h = .*: there are more than 2\*\*63 assignments"):
        final.add(table)
    place = PartialAggregation(it.head, it.types)
    columns, weights = columns_of(it, [(row, 2**62)])
    place.add(columns, weights)
    with pytest.raises(RangeError, match=r"more than 2\*\*63 assignments"):
        place.add(columns, weights)


@pytest.mark.parametrize("name", ALL)
def test_a_global_aggregate_over_nothing_has_no_row(name: str) -> None:
    it = head_of(ALL[name], ())
    table = partials(it, [])
    assert len(table) == 0
    final = FinalAggregation(it.head, it.types)
    assert outcome(final.finish) == outcome(Aggregation(it.head, it.types).finish)
    final.add(table)
    assert outcome(final.finish) == outcome(Aggregation(it.head, it.types).finish)


def test_a_key_may_be_the_argument_and_stand_twice() -> None:
    def head() -> Made:
        it = head_of(ORDERED["max of string"], (pa.string(), pa.string()))
        schema = Schema(tuple(it.head.schema.columns[n] for n in (0, 0, 2)), True)
        call = replace(it.head.value, arguments=(it.head.value.arguments[0].__class__("g0"),))
        return Made(replace(it.head, variables=("g0", "g0"), value=call, schema=schema), it.types, ["g0"])

    it = head()
    final = FinalAggregation(it.head, it.types)
    for values in ("ab", "b"):
        table = partials(head(), [[((value,), 1) for value in values]])
        assert key_names(it.head) == table.column_names[:2]
        final.add(table)
    keys, values = final.finish()
    assert [it.types["g0"].domain.decode(codes, pa.string()).to_pylist() for codes in keys] == [
        ["a", "b"]
    ] * 2
    assert values.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "arrow", [pa.dictionary(pa.int32(), pa.string()), pa.string_view(), pa.large_string()]
)
def test_keys_travel_in_their_own_type(arrow: pa.DataType) -> None:
    it = head_of(ALL["sum float"], (arrow,))
    table = partials(it, [[(("b", 0.5), 1), (("a", 1.5), 2)]])
    assert table.schema.field("key#0").type == arrow
    other = head_of(ALL["sum float"], (arrow,), 3)
    final = FinalAggregation(other.head, other.types)
    final.add(table.to_batches()[0])
    (codes,), values = final.finish()
    found = other.types["g0"].domain.decode(codes, pa.string()).to_pylist()
    assert dict(zip(found, values.to_pylist(), strict=True)) == {"a": 3.0, "b": 0.5}


def test_a_users_function_that_raises_names_the_group() -> None:
    it = head_of(ALL["careful"])
    final = FinalAggregation(it.head, it.types)
    for value in (13, 2):
        final.add(partials(head_of(ALL["careful"]), [[((1, "x", value), 1)]]))
    with pytest.raises(AggregateError, match=r'^h\[1, "x"\] = careful\(a0\): careful\(2, 13\) raised'):
        final.finish()


def test_a_negative_multiset_is_refused() -> None:
    with pytest.raises(ValueError, match="negative weight"):
        partials(head_of(ALL["concat"], ()), [[(("s",), -1)]])


def test_other_tables_are_refused() -> None:
    it = head_of(ALL["sum float"], ())
    final = FinalAggregation(it.head, it.types)
    with pytest.raises(ValueError, match="partials of h have the columns count#, sum#, nan#"):
        final.add(pa.table({"count#": [1]}))
    table = partials(it, [[((0.5,), 1)]])
    for data in (b"", b"abc", b"\x50\0\0\0\1\0\0\0", b"\0\0\0\0\1\0\0\0", None):
        with pytest.raises(ValueError, match="no exact numbers"):
            final.add(table.set_column(1, "sum#", pa.array([data], pa.binary())))
    assert final.finish()[1].to_pylist() == []


def test_distinct_values_of_several_places_are_counted_without_null() -> None:
    """NULL travels as NULL, and is no value anywhere; a value that two places have is one."""
    parts = []
    for values in ([None, 3, 4, 3], [4, None], [5, 4]):  # each place has codes of its own
        types, head = _counting()
        place = PartialAggregation(head, types)
        codes = {"p": np.zeros(len(values), np.int64), "c": types["c"].encode(pa.array(values, pa.int64()))}
        place.add(codes, np.ones(len(values), np.int64))
        parts.append(place.finish())
    types, head = _counting()
    final = FinalAggregation(head, types)
    final.add(through_bytes(pa.concat_tables(parts)))
    keys, found = final.finish()
    assert ([column.tolist() for column in keys], found.to_pylist()) == ([[0]], [3])


def _counting() -> tuple[dict[str, ColumnType], CheckedHead]:
    """``n[p] = count(distinct c)``, where c may be NULL."""
    domains = Domains()
    type_ = ColumnType(domains.of(pa.int64()), pa.int64())
    types = {"p": type_, "c": replace(type_, nullable=True)}
    schema = Schema((Column("p", type_), Column("n", type_)), functional=True)
    return types, CheckedHead("n", ("p",), Aggregate(DISTINCT_COUNT, (Variable("c"),)), schema, (0, 0))
