"""Relations: rows as a set, NULL and NaN, indices against brute force, every error message."""

from __future__ import annotations

import math
import sys
import threading
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import FunctionalConflictError, NanError, NullError, RangeError, UnsupportedTypeError
from lftj.storage import trie as trie_module
from lftj.storage.relation import Relation
from lftj.storage.trie import Trie
from lftj.values.domains import Domains

Row = tuple[Any, ...]


def _relation(table: pa.Table | dict[str, Any], **options: Any) -> Relation:
    return Relation.from_table("r", pa.table(table), Domains(), **options)


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _trie_rows(trie: Trie) -> list[Row]:
    """The tuples of a trie, walked from its root."""
    rows: list[Row] = [()]
    places = [0]
    offsets = np.array([0, len(trie.keys[0])])
    for level, keys in enumerate(trie.keys):
        deeper = [
            (row, child)
            for row, place in zip(rows, places, strict=True)
            for child in range(*offsets[place : place + 2])
        ]
        rows = [(*row, int(keys[child])) for row, child in deeper]
        places = [child for _, child in deeper]
        offsets = trie.children[level] if level < len(trie.children) else offsets
    return rows


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    arity = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*[st.integers(-2, 3)] * arity), max_size=25))
    return pa.table({f"c{i}": pa.array([row[i] for row in rows], pa.int64()) for i in range(arity)})


@given(tables())
def test_rows_are_a_sorted_set(table: pa.Table) -> None:
    relation = _relation(table)
    relation.check_invariants()
    distinct = sorted(set(_rows(table)))
    assert _rows(relation.to_table()) == distinct
    assert relation.n_rows == len(distinct)
    assert relation.duplicate_rows == table.num_rows - len(distinct)
    assert relation.dropped_rows == 0


@given(tables())
def test_oracle_indices(table: pa.Table) -> None:
    relation = _relation(table)
    arity, rows = table.num_columns, set(_rows(table))
    for width in range(1, arity + 1):
        for columns in permutations(range(arity), width):
            for equal in ((), ((0, arity - 1),), ((0, 1), (1, arity - 1))):
                if arity < 2 and equal:
                    continue
                kept = [row for row in rows if all(row[a] == row[b] for a, b in equal)]
                projected = [tuple(row[column] for column in columns) for row in kept]
                trie = relation.index(columns, equal)
                assert _trie_rows(trie) == sorted(set(projected))
                assert relation.index(columns, equal) is trie
                view = relation.view((columns, equal))
                assert view.base is trie and view.patch is None
                for level in range(width):
                    prefixes = {row[: level + 1] for row in projected}
                    assert relation.n_branches((columns, equal), level) == len(prefixes)
    relation.check_invariants()


def test_types_come_back_as_they_went_in() -> None:
    table = pa.table(
        {
            "text": pa.array(["b", "a", "b"], pa.dictionary(pa.int8(), pa.string())),
            "view": pa.array(["x", "", "x"], pa.string_view()),
            "price": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("1.50")], pa.decimal128(7, 2)),
            "small": pa.array([1, -2, 1], pa.int8()),
            "half": pa.array(np.array([0.5, np.nan, 0.5], dtype=np.float16)),
            "at": pa.array([5, -7, 5], pa.int64()).cast(pa.timestamp("ns", "Europe/Berlin")),
            "id": pa.array(
                [b"0123456789abcdef", b"fedcba9876543210", b"0123456789abcdef"], pa.binary(16)
            ).cast(pa.uuid()),
        }
    )
    relation = _relation(table)
    assert relation.to_table().schema == table.schema
    assert relation.n_rows == 2
    assert relation.duplicate_rows == 1
    # Codes of strings are in the order of appearance, and that is the order of rows.
    assert relation.to_table().column("text").to_pylist() == ["b", "a"]
    assert math.isnan(relation.to_table().column("half").to_pylist()[1])


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([[1, 2], [None, 4, None]]),
        pa.chunked_array([["a", "b"], [None, "d", None]], pa.string_view()),
        pa.chunked_array([[0.5, 1.5], [None, float("nan"), None]]),
        pa.chunked_array([pa.array(["a", "b", None, "d", None]).dictionary_encode()]),
        pa.chunked_array(
            [pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 2]), pa.array(["a", "b", None, "d"]))]
        ),
        pa.chunked_array(
            [pa.array([b"0" * 16, b"1" * 16, None, b"3" * 16, None], pa.binary(16)).cast(pa.uuid())]
        ),
        pa.chunked_array([[True, False, None, True, None]]),
    ],
    ids=lambda column: str(column.type),
)
def test_null_is_refused_or_dropped(column: pa.ChunkedArray) -> None:
    table = pa.table({"key": [5, 6, 7, 8, None], "value": column})
    with pytest.raises(NullError) as raised:
        _relation(table.slice(0, 4))
    assert str(raised.value) == (
        "relation 'r', column 'value': NULL in row 2 (counting from 0);"
        ' pass nulls="drop" to leave such rows out, or nulls="keep"'
    )
    with pytest.raises(NullError, match="column 'value': NULL in row 2 \\(counting from 0\\) and in 1 more;"):
        _relation(table.select(["value", "key"]))
    relation = _relation(table, nulls="drop")
    relation.check_invariants()
    assert relation.dropped_rows == 2
    assert relation.n_rows == 3
    assert relation.to_table().schema == table.schema
    assert relation.to_table().column("key").to_pylist() == [5, 6, 8]


def test_a_column_of_nothing_but_null() -> None:
    table = pa.table({"a": [1, 2], "b": pa.nulls(2)})
    with pytest.raises(NullError, match="column 'b': NULL in row 0 "):
        _relation(table)
    assert _relation(table, nulls="drop").n_rows == 0
    with pytest.raises(UnsupportedTypeError, match=r"column 'b': type null .*: a column without values"):
        _relation(table, nulls="keep")
    with pytest.raises(ValueError, match="nulls is 'some'; it can be 'refuse', 'drop' or 'keep'"):
        _relation(table, nulls="some")


@pytest.mark.parametrize(
    "types", [(pa.int64(), pa.string()), (pa.null(), pa.null()), (pa.float64(), pa.decimal128(5, 2))]
)
def test_a_relation_without_rows(types: tuple[pa.DataType, pa.DataType]) -> None:
    for chunks in ([], [[]]):
        relation = _relation(pa.table([pa.chunked_array(chunks, t) for t in types], ["a", "b"]))
        assert relation.n_rows == 0
        assert relation.to_table().num_rows == 0
        assert relation.index((1, 0)).n_tuples == 0
        assert relation.index((1,), ((0, 1),)).n_tuples == 0
        relation.refuse_nan(0)
        relation.check_functional()
        relation.check_invariants()


def test_nan_is_loaded_but_is_no_key() -> None:
    nan = float("nan")
    table = pa.table(
        {"a": [1, 2, None, 4, 1], "x": pa.array(np.array([0.5, 1.5, nan, nan, 0.5], dtype=np.float32))}
    )
    relation = _relation(table, nulls="drop")
    assert (relation.dropped_rows, relation.duplicate_rows, relation.n_rows) == (1, 1, 3)
    relation.refuse_nan(0)
    for _ in range(2):
        with pytest.raises(NanError) as raised:
            relation.refuse_nan(1)
        assert str(raised.value) == (
            "relation 'r', column 'x': NaN in row 3 (counting from 0);"
            " NaN equals nothing, so a rule can't use this column as a key: load it without such rows"
        )
    derived = Relation.from_codes("d", relation.schema, [column.copy() for column in relation.codes])
    with pytest.raises(NanError, match="relation 'd', column 'x': NaN in row 2 "):
        derived.refuse_nan(1)
    _relation({"x": [0.5, float("inf")]}).refuse_nan(0)


def test_functional_relations() -> None:
    relation = _relation({"p": ["b", "a", "b"], "q": [1, 1, 2], "v": [0.5, 0.25, 0.5]})
    relation.check_functional()
    relation.check_functional()
    conflict = _relation({"p": ["b", "a", "b"], "q": [1, 1, 1], "v": [0.5, 0.25, 0.75]})
    with pytest.raises(FunctionalConflictError) as raised:
        conflict.check_functional()
    assert str(raised.value) == (
        "relation 'r' can't be read as a function of p, q:"
        ' for p="b", q=1 there are two values, v=0.5 and v=0.75'
    )
    _relation({"v": [3, 3]}).check_functional()
    with pytest.raises(FunctionalConflictError) as raised:
        _relation({"v": [3, 4]}).check_functional()
    assert str(raised.value) == (
        "relation 'r' can't be read as a function of nothing: there are two values, v=3 and v=4"
    )


def _of_numbers(numbers: list[int], arrow_type: pa.DataType) -> pa.Array:
    width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
    return pa.array(numbers, width).view(arrow_type)


CONFLICTS: list[tuple[pa.Array, str, str]] = [
    (pa.array([1, 2], pa.uint8()), "1", "2"),
    (pa.array([False, True]), "false", "true"),
    (pa.array([0.5, math.inf], pa.float16()), "0.5", "inf"),
    (pa.array([-math.inf, 3.0], pa.float32()), "-inf", "3.0"),
    (_of_numbers([20484, 2**31 - 1], pa.date32()), "2026-01-31", "5881580-07-11"),
    (_of_numbers([-86_400_000, 86_400_000 * 10**7], pa.date64()), "1969-12-31", "29349-01-26"),
    (_of_numbers([0, 2**63 - 1], pa.timestamp("s")), "1970-01-01T00:00:00", "292277026596-12-04T15:30:07"),
    (_of_numbers([0, 10**15], pa.timestamp("ms", "UTC")), "1970-01-01T00:00:00.000Z",
     "33658-09-27T01:46:40.000Z"),
    (_of_numbers([-1, 1], pa.timestamp("us", "Nowhere/Nowhere")), "1969-12-31T23:59:59.999999Z",
     "1970-01-01T00:00:00.000001Z"),
    (_of_numbers([-(2**63), 10**18 + 1], pa.timestamp("ns")), "-9223372036854775808 ns since 1970-01-01",
     "2001-09-09T01:46:40.000000001"),
    (_of_numbers([0, 86399], pa.time32("s")), "00:00:00", "23:59:59"),
    (_of_numbers([1, 86399999999999], pa.time64("ns")), "00:00:00.000000001", "23:59:59.999999999"),
    (_of_numbers([-(2**63), 5], pa.duration("ns")), "-9223372036854775808", "5"),
    (pa.array(['a "b"', "c\n"], pa.string_view()), '"a \\"b\\""', '"c\\n"'),
    (pa.array(["x", "y"], pa.large_string()).dictionary_encode(), '"x"', '"y"'),
    (pa.array([b"\x00\xff", b"ab"], pa.binary(2)), 'x"00ff"', 'x"6162"'),
    (pa.array([bytes(16), b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid()), f'x"{"00" * 16}"',
     'x"30313233343536373839616263646566"'),
    (pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal32(5, 2)), "1.50", "2.25"),
    (pa.array([Decimal(10**37), Decimal(10**37 + 1)], pa.decimal256(50, 0)), str(10**37), str(10**37 + 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "first", "second"), CONFLICTS, ids=lambda value: str(getattr(value, "type", "."))
)
def test_a_conflict_names_values_of_every_type(
    values: pa.Array, first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # nothing of it may be needed
    relation = _relation({"k": pa.concat_arrays([values[:1], values[:1]]), "v": values})
    with pytest.raises(FunctionalConflictError) as raised:
        relation.check_functional()
    assert f"for k={first} there are two values, v={first} and v={second}" in str(raised.value)
    db = lftj.Database()
    db.add(relation)
    with pytest.raises(FunctionalConflictError) as raised:
        db.query("h[k] = v <- r(k, v).")
    assert str(raised.value).startswith(f"h[{first}] has two values, {first} and {second}; ")


def test_columns_that_can_not_be_loaded() -> None:
    with pytest.raises(UnsupportedTypeError) as raised:
        _relation({"a": [1], "tags": [{"x": 1}]})
    assert str(raised.value).startswith("relation 'r', column 'tags': type struct<")
    with pytest.raises(RangeError) as range_error:
        _relation({"a": pa.array([1, 2**64 - 1], pa.uint64())})
    assert str(range_error.value) == (
        "relation 'r', column 'a', row 1 (counting from 0): the uint64 value 18446744073709551615 is above"
        " 2**63 - 1, the largest key; cast the column to decimal128(20, 0) or to string"
    )


BEYOND = pa.array([5, None, 7, 2**63 + 1, 2**64 - 1], pa.uint64())


@pytest.mark.parametrize(
    "column",
    [
        BEYOND,
        pa.chunked_array([BEYOND[:2], BEYOND[2:2], BEYOND[2:4], BEYOND[4:]]),
        BEYOND.dictionary_encode(),
        pa.DictionaryArray.from_arrays([1, None, 1, 0, 2], pa.array([2**63 + 1, 7, 2**64 - 1], pa.uint64())),
    ],
    ids=["plain", "chunks", "dictionary", "dictionary in another order"],
)
def test_the_first_row_that_has_no_code_is_named(column: Any) -> None:
    with pytest.raises(RangeError) as raised:
        Relation.from_table("r", pa.table({"a": column}), Domains(), nulls="drop")
    assert str(raised.value).startswith(
        "relation 'r', column 'a', row 3 (counting from 0): the uint64 value 9223372036854775809 is above"
    )


@pytest.mark.parametrize("to", [pa.decimal128(20, 0), pa.string()], ids=str)
def test_the_way_out_for_large_unsigned_values(to: pa.DataType) -> None:
    table = pa.table({"a": BEYOND.drop_null().cast(to)})
    assert Relation.from_table("r", table, Domains()).n_rows == 4


def test_the_row_of_a_decimal_without_a_code() -> None:
    column = pa.array([1, 2, 10**38], pa.decimal256(39, 0))
    with pytest.raises(RangeError, match=r"column 'd', row 2 \(counting from 0\): a value of type"):
        _relation({"d": column})


def test_relation_is_immutable_and_apart_from_its_source() -> None:
    source = np.array([1, 2, 3])
    relation = _relation({"a": source})
    source[:] = 9
    assert relation.to_table().column("a").to_pylist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        relation.codes[0][0] = 5
    assert (
        repr(_relation({"a": range(1500), "b": ["x"] * 1500}))
        == "<Relation r(a: int64, b: string), 1,500 rows>"
    )


def test_memory_is_counted_once() -> None:
    relation = _relation({"a": [1, 2, 3], "b": [4, 5, 6]})
    codes = relation.nbytes
    assert codes == 2 * 3 * 8
    trie = relation.index((0, 1))
    assert codes < relation.nbytes < codes + trie.nbytes, "the last level is the last column itself"


def test_threads_share_one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = _relation({"a": range(100), "b": range(100, 0, -1)})
    build, built = trie_module.Trie.from_sorted, []
    started = threading.Barrier(4)

    def slow(*arguments: Any) -> Trie:
        built.append(threading.get_ident())
        return build(*arguments)

    monkeypatch.setattr(trie_module.Trie, "from_sorted", slow)
    found: list[Trie] = []

    def ask() -> None:
        started.wait()
        found.append(relation.index((1, 0)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len({id(trie) for trie in found}) == 1


def test_an_index_that_failed_is_built_by_the_next_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = _relation({"a": [2, 1]})

    def fail(*arguments: Any) -> Trie:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trie_module.Trie, "from_sorted", fail)
        with pytest.raises(KeyboardInterrupt):
            relation.index((0,))
    assert relation.index((0,)).n_tuples == 2
