"""Relations: rows as a set, NULL and NaN, indices against brute force, every error message."""

from __future__ import annotations

import math
import threading
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj import trie as trie_module
from lftj.domains import Domains
from lftj.errors import FunctionalConflictError, NanError, NullError, RangeError, UnsupportedTypeError
from lftj.relation import Relation
from lftj.trie import Trie

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
                others = tuple(c for c in range(arity) if c not in columns and c not in (b for _, b in equal))
                for counted in dict.fromkeys([(), others[:1], others]):
                    trie = relation.index(columns, equal, counted)
                    assert _trie_rows(trie) == sorted(set(projected))
                    assert relation.index(columns, equal, counted) is trie
                    if counted:
                        combined = {tuple(row[column] for column in (*columns, *counted)) for row in kept}
                        counts = [sum(c[:width] == row for c in combined) for row in sorted(set(projected))]
                        found = (
                            [1] * len(counts)
                            if trie.multiplicity is None
                            else np.diff(trie.multiplicity).tolist()
                        )
                        assert found == counts
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
        ' relations hold no NULL: pass nulls="drop" to leave such rows out'
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
    with pytest.raises(ValueError, match="nulls is 'keep'; it can be 'refuse' or 'drop'"):
        _relation(table, nulls="keep")


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
        assert relation.index((1,), counted=(0,)).n_tuples == 0
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
        " for p='b', q=1 there are two values, v=0.5 and v=0.75"
    )
    _relation({"v": [3, 3]}).check_functional()
    with pytest.raises(FunctionalConflictError) as raised:
        _relation({"v": [3, 4]}).check_functional()
    assert str(raised.value) == (
        "relation 'r' can't be read as a function of nothing: there are two values, v=3 and v=4"
    )


def test_columns_that_can_not_be_loaded() -> None:
    with pytest.raises(UnsupportedTypeError) as raised:
        _relation({"a": [1], "tags": [["x"]]})
    assert str(raised.value).startswith("relation 'r', column 'tags': type list<")
    with pytest.raises(RangeError) as range_error:
        _relation({"a": pa.array([1, 2**64 - 1], pa.uint64())})
    assert str(range_error.value) == (
        "relation 'r', column 'a': the uint64 value 18446744073709551615 is above 2**63 - 1, the largest key"
    )


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
