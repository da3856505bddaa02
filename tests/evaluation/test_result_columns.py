"""Columns of results: names, order, types that come out as they went in, heads without keys."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.database.database import Database

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]


@pytest.fixture
def db() -> Database:
    made = lftj.Database()
    made.load("edge", EDGES, columns=["src", "dst"])
    made.load("node", [(1,), (2,), (9,)], columns=["id"])
    made.load("base", [("tea", 100), ("soup", 250)], columns=["item", "pence"])
    return made


def test_names_of_columns(db: Database) -> None:
    def names(rule: str) -> list[str]:
        assert db.query(rule).column_names == next(db.stream(rule)).schema.names
        return list(db.query(rule).column_names)

    assert names("h(b, a, b, b) <- edge(a, b).") == ["b", "a", "b_2", "b_3"]
    assert names("n[a] = count() <- edge(a, _).") == ["a", "count"]
    assert names("n[] = count() <- edge(_, _).") == ["count"]
    assert names("x[] = v <- base(_, p), v = p, p > 200.") == ["v"]
    assert names("m[count] = max(b) <- edge(count, b).") == ["count", "max"]


def test_nullary_heads(db: Database) -> None:
    assert db.query("n[] = count() <- edge(_, _).").to_pydict() == {"count": [len(EDGES)]}
    assert db.query("n[] = count() <- edge(a, a).").to_pydict() == {"count": []}
    assert db.query('x[] = p <- base["tea"] = p.').to_pydict() == {"p": [100]}
    assert db.count("n[] = sum(p) <- base(_, p).") == 1
    with pytest.raises(errors.FunctionalConflictError, match="two values, 100 and 250"):
        db.query("x[] = p <- base(_, p).")
    with pytest.raises(errors.RuleSyntaxError, match="head 'h' needs at least one variable"):
        db.query("h() <- edge(_, _).")


def columns_of_every_type() -> dict[str, pa.Array]:
    """Three distinct values of each type."""
    made: list[pa.Array] = [pa.array([True, False, True])]
    integers = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    for name in (*integers, "float16", "float32", "float64"):
        made.append(pa.array([5, 0, 7], pa.int64()).cast(pa.type_for_alias(name)))
    made += [pa.array([1, -1, 20_000], pa.int32()).cast(pa.date32())]
    made += [pa.array([86_400_000, 0, -86_400_000], pa.int64()).cast(pa.date64())]
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            made.append(pa.array([1, -1, 2**61], pa.int64()).cast(pa.timestamp(unit, zone)))
        made.append(pa.array([1, -1, 2**61], pa.int64()).cast(pa.duration(unit)))
    for clock in (pa.time32("s"), pa.time32("ms")):
        made.append(pa.array([1, 0, 86_399], pa.int32()).cast(clock))
    for clock in (pa.time64("us"), pa.time64("ns")):
        made.append(pa.array([1, 0, 86_399], pa.int64()).cast(clock))
    prices = [Decimal("1.50"), Decimal("-0.25"), Decimal("0.00")]
    for exact in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2), pa.decimal256(70, 4)):
        made.append(pa.array(prices, exact))
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        made.append(pa.array(["b", "", "\N{GRINNING FACE}"], text))
    for octets in (pa.binary(), pa.large_binary(), pa.binary_view()):
        made.append(pa.array([b"b", b"", b"\xff\x00"], octets))
    made.append(pa.array([b"ab", b"\x00\x00", b"\xff\xff"], pa.binary(2)))
    made.append(pa.array([bytes([i]) * 16 for i in range(3)], pa.binary(16)).cast(pa.uuid()))
    words = pa.array(["b", "a", ""])
    for index in (pa.int8(), pa.uint16(), pa.int64()):
        made.append(pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], index), words))
    made.append(pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int8()), words, ordered=True))
    made.append(pa.array([datetime.date(2026, 1, d) for d in (1, 2, 3)]).dictionary_encode())
    return {str(column.type): column for column in made}


EVERY_TYPE = columns_of_every_type()


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_types_come_out_as_they_went_in(name: str) -> None:
    column = EVERY_TYPE[name]
    db = lftj.Database()
    db.load("r", pa.table({"k": pa.array([0, 1, 2], pa.int16()), "v": column}))
    db.load("s", pa.table({"v": column.slice(1)}))
    db.load("nothing", pa.table({"v": column.slice(0, 0)}))
    for rule, start in (
        ("h(k, v) <- r(k, v).", 0),
        ("h(k, v) <- r(k, v), s(v).", 1),
        ("h[k] = v <- r[k] = v.", 0),
        ("h(k, v) <- r(k, v), !nothing(v).", 0),
        ("h(k, w) <- r(k, v), w = v.", 0),
    ):
        if name == "bool" and "s(v)" in rule:
            start = 0  # true stands twice
        for table in (db.query(rule), pa.Table.from_batches(db.stream(rule, batch_rows=1))):
            assert [str(t) for t in table.schema.types] == ["int16", name]
            by_key = dict(zip(table.column(0).to_pylist(), plain(table.column(1)), strict=True))
            assert [by_key[key] for key in range(start, 3)] == plain(column.slice(start))
            assert len(by_key) == 3 - start
    for rule in ("h(v) <- nothing(v).", "h(v) <- r(_, v), nothing(v)."):
        assert str(db.query(rule).schema.types[0]) == name
        assert [str(t) for batch in db.stream(rule) for t in batch.schema.types] == [name]


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values that compare, of types that Python's own are too narrow for too."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in plain(chunk)]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):
        return list(column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist())
    return list(column.to_pylist())


def test_the_first_positive_atom_gives_the_type(db: Database) -> None:
    db.load("small", pa.table({"x": pa.array([1, 2], pa.int8())}))
    for rule, expected in (
        ("h(x) <- small(x), node(x).", "int8"),
        ("h(x) <- node(x), small(x).", "int64"),
        ("h(x) <- !node(x), small(x).", "int8"),
        ("h(x) <- small(x). h(x) <- node(x).", "int64"),
    ):
        assert str(db.query(rule).schema.types[0]) == expected
