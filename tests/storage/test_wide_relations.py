"""Wide relations: rows as values, columns that are coded when they are asked for, and the same answers."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj import Database, errors
from lftj.planning.statistics import about
from lftj.storage import wide_columns
from lftj.storage.wide_columns import WideColumns
from lftj.values.collector import Collector
from lftj.values.domains import Domains
from lftj.values.rows import PIECE_ROWS, RowDomain
from lftj.values.schema import is_wide, wide_schema
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.small_limits import wide_relations
from support.wide_tables import NAMES, RULES, agrees_with_sql, array_of, distinct, one_form, wide_table

POOLS: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 0, 127],
    pa.uint64(): [0, 1, 2**63 - 1],
    pa.bool_(): [False, True],
    pa.float16(): [np.float16(0.5), np.float16(-2)],
    pa.float32(): [0.0, -0.0, math.nan, math.inf],
    pa.float64(): [0.0, -0.0, math.nan, 1e-300],
    pa.date32(): [datetime.date(1, 1, 1), datetime.date(2026, 5, 4)],
    pa.date64(): [datetime.date(1970, 1, 1), datetime.date(2026, 5, 4)],
    pa.time32("s"): [datetime.time(0), datetime.time(23, 59, 59)],
    pa.timestamp("ns", "UTC"): [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
    pa.duration("ms"): [datetime.timedelta(0), datetime.timedelta(milliseconds=-1)],
    pa.decimal32(5, 2): [Decimal("1.50"), Decimal("-0.01")],
    pa.decimal64(12, 0): [Decimal(7), Decimal(-7)],
    pa.decimal128(38, 10): [Decimal("1.5"), Decimal("-1e-10")],
    pa.decimal256(60, 3): [Decimal("1.5"), Decimal(10) ** 50],
    pa.string(): ["", "a", "aa", "\x00", "ä"],
    pa.large_string(): ["", "b"],
    pa.string_view(): ["", "a string that is longer than a view holds"],
    pa.binary(): [b"", b"\x00", b"\x00\x00"],
    pa.binary_view(): [b"", b"\xff" * 20],
    pa.binary(3): [b"abc", b"\x00\x00\x00"],
    pa.dictionary(pa.int8(), pa.string()): ["x", "y"],
    pa.bool8(): [0, 1],
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[Any]]]:
    types = draw(st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=10))
    n_rows = draw(st.integers(0, 12))
    values = [st.sampled_from([None, *POOLS[type_]]) for type_ in types]
    return types, [draw(st.lists(one, min_size=n_rows, max_size=n_rows)) for one in values]


@pytest.mark.kernel
@given(columns(), st.integers(0, 3))
def test_rows_are_equal_when_all_their_values_are(
    drawn: tuple[list[pa.DataType], list[list[Any]]], skipped: int
) -> None:
    """Codes say so, values come back, also of arrays that begin amid their buffers and come in pieces."""
    types, values = drawn
    whole = [array_of([*v[:1] * skipped, *v], t) for v, t in zip(values, types, strict=True)]
    arrays = [
        array[min(skipped, len(array)) if len(v) else 0 :] for array, v in zip(whole, values, strict=True)
    ]
    half = len(arrays[0]) // 2
    pieces = [pa.chunked_array([array[:half], array[half:]], array.type) for array in arrays]
    domain = RowDomain(types, Collector())
    codes = domain.codes(pieces)
    rows = [tuple(map(one_form, row)) for row in zip(*(array.to_pylist() for array in arrays), strict=True)]
    first = {row: number for number, row in reversed(list(enumerate(rows)))}
    expected = {row: code for code, row in enumerate(sorted(first, key=lambda row: first[row]))}
    assert codes.tolist() == [expected[row] for row in rows]
    back = domain.columns(codes)
    assert [column.type for column in back] == types
    found = [tuple(map(one_form, row)) for row in zip(*(c.to_pylist() for c in back), strict=True)]
    assert found == rows
    for number in range(len(types)):
        turned = domain.column(codes[::-1], number).to_pylist()
        assert [one_form(value) for value in turned] == [row[number] for row in reversed(rows)]
        numbers = domain.integers(domain.packed(codes), number)
        if numbers is not None:
            assert numbers.values.tolist() == [_counted(row[number], types[number]) for row in rows]
            assert not rows or numbers.least <= numbers.values.min() <= numbers.values.max() <= numbers.most
        elif types[number] in (pa.int8(), pa.date32(), pa.decimal128(38, 10)):
            assert None in [row[number] for row in rows]
    for row in range(len(rows)):
        assert domain.find([array[row : row + 1] for array in arrays]) == codes[row]


def _counted(value: Any, arrow_type: pa.DataType) -> int:
    """A value as a whole number: of a decimal the last digits, of a moment the units since 1970."""
    if pa.types.is_decimal(arrow_type):
        return int(value.scaleb(arrow_type.scale))
    width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
    return (
        pa.array([value], arrow_type)
        .cast(width if pa.types.is_temporal(arrow_type) else pa.int64())[0]
        .as_py()
    )


@pytest.mark.kernel
@given(columns())
def test_texts_are_read_off_the_bytes(table: tuple[list[pa.DataType], list[list[Any]]]) -> None:
    """What codes are made of without arrays, beside what the arrays say."""
    types, values = table
    domain = RowDomain(types, Collector())
    rows = domain.packed(domain.codes([array_of(each, one) for each, one in zip(values, types, strict=True)]))
    for number, (arrow, each) in enumerate(zip(types, values, strict=True)):
        is_text = arrow in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view())
        texts = domain.texts(rows, number)
        if not (is_text or pa.types.is_dictionary(arrow)) or None in each:
            assert texts is None
            continue
        assert texts is not None
        data, offsets = texts
        found = [bytes(data[first:last]) for first, last in itertools.pairwise(offsets)]
        assert found == [one if isinstance(one, bytes) else one.encode() for one in each]


@pytest.mark.parametrize("width", [128, 256])
def test_decimals_of_more_than_64_bits_are_no_integers(width: int) -> None:
    """Be it by one bit, or by one that stands far above; NULL is none either, nor what has its code."""
    make = pa.decimal128 if width == 128 else pa.decimal256
    arrow = make(38, 0)
    fitting = [Decimal(2**63 - 1), Decimal(1 - 2**63), Decimal(0)]
    for value in (2**63, 2**64, 2**64 + 1, 2**100, -(2**63), -(2**63) - 1, -(2**64) + 5, None):
        domain = RowDomain([arrow], Collector())
        values = [*fitting, None if value is None else Decimal(value)]
        codes = domain.codes([pa.array(values, arrow)])
        numbers = domain.integers(domain.packed(codes[:3]), 0)
        assert numbers is not None and numbers.values.tolist() == [int(one) for one in fitting]
        assert (numbers.least, numbers.most) == (1 - 2**63, 2**63 - 1)
        assert domain.integers(domain.packed(codes), 0) is None


def test_many_rows_go_in_pieces() -> None:
    n_rows = 2 * PIECE_ROWS + 7
    table = pa.table({"n": np.arange(n_rows), "s": [f"row {n % 1000}" for n in range(n_rows)]})
    domain = RowDomain(table.schema.types, Collector())
    domain.wait(table)
    assert domain.column(np.arange(n_rows), 1) == table["s"]
    assert domain.column(np.array([5, 3]), 1).to_pylist() == ["row 5", "row 3"]
    assert domain.waits
    assert domain.codes(table.slice(n_rows - 2).columns).tolist() == [n_rows - 2, n_rows - 1]
    assert not domain.waits
    assert domain.column(np.arange(n_rows), 1).to_pylist() == table["s"].to_pylist()
    domain._interner.check_invariants()


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(3))
def test_codes_where_tables_grow_and_move(seed: int) -> None:
    """Rows longer than any before, more of them than a table holds, amid a move, refused ones between."""
    draw = random.Random(seed)
    types = [pa.int32(), pa.string(), pa.large_binary(), pa.bool_()]
    domain = RowDomain(types, Collector())
    known: dict[tuple[Any, ...], int] = {}
    for step in range(40):
        rows = [
            (
                draw.choice([None, *range(9)]),
                draw.choice([None, "", "ab" * draw.randrange(1 + 8 * step)]),
                draw.choice([b"", bytes(draw.randrange(20))]),
                draw.choice([None, True, False]),
            )
            for _ in range(draw.choice([0, 1, 2, 40, 90]))
        ]
        columns = [pa.array([row[at] for row in rows], type_) for at, type_ in enumerate(types)]
        batch = pa.RecordBatch.from_arrays(columns, ["a", "b", "c", "d"])
        skipped = draw.randrange(3) if len(rows) > 3 else 0
        batch, rows = batch.slice(skipped), rows[skipped:]
        refused = draw.choice([0, 0, 0b0001, 0b1010])
        before = domain.n_codes
        codes = domain.codes_where_known(batch, refused)
        if any(row[at] is None for row in rows for at in range(4) if refused >> at & 1):
            assert codes is None and domain.n_codes == before
            continue
        assert codes is not None and len(codes) == len(rows)
        for row, code in zip(rows, codes.tolist(), strict=True):
            assert known.setdefault(row, code) == code, row
        interner = domain._interner
        if draw.random() < 0.2 and not interner.is_moving:
            interner.begin()
        elif interner.is_moving and draw.random() < 0.5:
            interner.keep(np.array(sorted(known.values()), np.int64), 0, len(known))
            interner.end()
        interner.check_invariants()
    assert len(set(known.values())) == len(known)
    for row, code in draw.sample(sorted(known.items(), key=repr), 20):
        assert [domain.column(np.array([code]), at).to_pylist()[0] for at in range(4)] == list(row)
        assert (
            domain.find([pa.array([value], type_) for value, type_ in zip(row, types, strict=True)]) == code
        )
    assert (
        domain.find(
            [pa.array([value], type_) for value, type_ in zip((77, "", b"", None), types, strict=True)]
        )
        is None
    )


def test_what_nobody_reads_is_not_coded() -> None:
    domains = Domains()
    schema = wide_schema(
        pa.schema([("a", pa.int64()), ("s", pa.string()), ("t", pa.string())]), domains, nullable=False
    )
    rows = schema.rows.codes([pa.array([1, 2]), pa.array(["x", "y"]), pa.array(["no", None])])
    read = WideColumns("r", schema, rows)
    assert read[2].tolist() == [0, 1]
    assert read.coded == (2,)
    assert domains.of(pa.string()).n_values == 2  # type: ignore[attr-defined]
    with pytest.raises(errors.NullError, match=r"relation 'r', column 't': NULL in row 1"):
        read[3]


def test_estimates_read_rows_that_are_drawn() -> None:
    """Keys that come equally often, as many as rows, a few of many rows; NULL is none."""
    drawn, n_rows = random.Random(1), 100_000
    columns: dict[str, list[Any]] = {
        "key": list(range(n_rows)),
        "each": [drawn.randrange(5_000) for _ in range(n_rows)],
        "skewed": [0 if drawn.random() < 0.3 else number for number in range(n_rows)],
        "text": [f"text {drawn.randrange(50)}" for _ in range(n_rows)],
        "price": [Decimal(number).scaleb(-2) for number in range(n_rows)],
        "gone": [None if number % 2 else number // 8 for number in range(n_rows)],
    }
    db = Database()
    with wide_relations(2):
        db.load("r", pa.table(columns), nulls="keep")
    table = db["r"].tuples
    seen = {name: about(table, number) for number, name in enumerate(columns, 1)}
    expected = {name: len({*values} - {None}) for name, values in columns.items()}
    assert all(
        0.75 * expected[name] < seen[name].n_keys < 1.3 * expected[name]
        for name in columns
        if name != "skewed"
    )
    assert 0.25 * n_rows < seen["skewed"].fullest < 0.35 * n_rows
    assert 1 <= seen["key"].fullest < 3 and 10 < seen["each"].fullest < 80
    halves = seen["key"].share_between(np.array([0]), np.array([n_rows // 2]), of_rows=True)
    assert 0.45 < halves[0] < 0.55
    codes = table.columns()
    assert isinstance(codes, WideColumns) and codes.coded == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rules_over_wide_relations_agree_with_sql(strategy: str) -> None:
    """Through commits that erase rows, bring some back and repeat others; the table itself stays right."""
    generator = random.Random(strategy)
    edge = pa.table({"x": [1, 2, 3, 9], "y": [0, 0, 0, 0]})
    table = distinct(wide_table(generator, 120))
    assert is_wide(table.schema.types)
    workspace = Workspace()
    workspace.load("w", table)
    workspace.load("edge", edge)
    workspace.install(RULES, strategy=strategy)
    for _ in range(6):
        gone = generator.sample(range(table.num_rows), min(25, table.num_rows))
        left = [row for row in range(table.num_rows) if row not in set(gone)]
        came = wide_table(generator, 20)
        with workspace.transaction() as transaction:
            transaction.erase("w", table.take(gone))
            transaction.insert("w", came)
        table = distinct(pa.concat_tables([table.take(left), came]).unify_dictionaries())
        agrees_with_sql(lambda head: workspace[head].to_arrow(), table, edge)
        shown = workspace["w"]
        assert len(shown) == table.num_rows
        assert sorted(map(repr, shown)) == sorted(repr(tuple(row.values())) for row in table.to_pylist())
        assert all(tuple(row.values()) in shown for row in table.slice(0, 5).to_pylist())
    database = Database()
    database.load("w", table)
    database.load("edge", edge)
    agrees_with_sql(lambda head: database.query(RULES, head=head), table, edge)


def test_a_commit_that_no_head_reads_codes_nothing() -> None:
    workspace = Workspace()
    table = distinct(wide_table(random.Random(1), 200))
    workspace.load("w", table)
    workspace.load("edge", {"x": [1], "y": [2]})
    workspace.install("h(x) <- edge(x, _).")
    texts = workspace.domains.of(pa.string()).n_values  # type: ignore[attr-defined]
    with workspace.transaction() as transaction:
        transaction.erase("w", table.slice(0, 10))
        transaction.insert("w", wide_table(random.Random(2), 10))
    assert transaction.stats.erased["w"] == 10
    assert workspace.domains.of(pa.string()).n_values == texts  # type: ignore[attr-defined]
    assert len(workspace._state.versions["w"].index_keys) == 1


def test_null_is_refused_where_a_rule_reads_it() -> None:
    """And nowhere else; a rule that comes later says which row it is."""
    workspace = Workspace()
    table = pa.table({name: [1, 2] for name in NAMES})
    workspace.load("w", table)
    workspace.install("h(a) <- w(a: a).")
    null = pa.array([None], pa.int64())
    row = {name: pa.array([7]) for name in NAMES}
    with (
        pytest.raises(errors.ChangeError, match=r"changes of 'w', column 'a': NULL in row 0"),
        workspace.transaction() as transaction,
    ):
        transaction.insert("w", pa.table({**row, "a": null}))
    with workspace.transaction() as transaction:
        transaction.insert("w", pa.table({**row, "b": null}))
    assert sorted(workspace["h"]) == [(1,), (2,), (7,)]
    with pytest.raises(errors.NullError, match=r"relation 'w', column 'b': NULL in row 2"):
        workspace.install("k(b) <- w(b: b).")
    assert "k" not in workspace
    workspace.install("s[a] = sum(d) <- w(a: a, d: d).", strategy="delta")  # which is read off rows
    with (
        pytest.raises(errors.ChangeError, match=r"changes of 'w', column 'd': NULL in row 0"),
        workspace.transaction() as transaction,
    ):
        transaction.insert("w", pa.table({**row, "d": null}))
    database = Database()
    database.load("w", pa.table({**{name: [1] for name in NAMES}, "c": null}))
    assert database.query("h(a) <- w(a: a).").to_pylist() == [{"a": 1}]
    with pytest.raises(errors.NullError, match="a rule reads this column"):
        database.query("h(c) <- w(c: c).")
    database.load("w", pa.table({**{name: [1] for name in NAMES}, "c": null}), nulls="drop")
    assert len(database["w"]) == 0


def test_a_wide_relation_can_be_read_as_a_function() -> None:
    with wide_relations():
        workspace = Workspace()
        workspace.load("price", {"item": [1, 2], "shop": ["a", "b"], "v": [5, 6]})
        workspace.install("h(i, p) <- price[i, _] = p.")
        with workspace.transaction() as transaction:
            transaction.erase("price", [(1, "a", 5)])
            transaction.insert("price", [(1, "a", 7)])
        assert sorted(workspace["h"]) == [(1, 7), (2, 6)]
        with (
            pytest.raises(errors.FunctionalConflictError, match='item=2, shop="b"'),
            workspace.transaction() as transaction,
        ):
            transaction.insert("price", [(2, "b", 9)])
        assert sorted(workspace["h"]) == [(1, 7), (2, 6)]


def test_rows_that_go_are_given_back() -> None:
    """A window of rows that moves on: as many are kept as there are, and some that wait for a walk."""
    workspace = Workspace()
    make = lambda start: pa.table(  # noqa: E731
        {name: [f"{name}{start + n}" for n in range(500)] for name in NAMES}
    )
    workspace.load("w", make(0))
    workspace.install("h(a) <- w(a: a).")
    rows = workspace._state.versions["w"].schema.rows
    for step in range(1, 60):
        with workspace.transaction() as transaction:
            transaction.erase("w", make(500 * (step - 1)))
            transaction.insert("w", make(500 * step))
    assert rows.n_values < 6_000
    assert workspace.domains.of(pa.string()).n_values < 9_000  # type: ignore[attr-defined]


@pytest.mark.parametrize("arrow", POOLS, ids=str)
def test_rows_are_drawn_without_codes_for_all(arrow: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every type, also those that hardly any function of Arrow knows."""
    monkeypatch.setattr(wide_columns, "DRAWN", 4)
    workspace = Workspace()
    with wide_relations():
        values = array_of([*POOLS[arrow]] * 30, arrow)
        workspace.load("r", pa.table({"k": pa.array(range(len(values))), "v": values}))
    columns = workspace.relations["r"].tuples.columns()
    assert isinstance(columns, WideColumns)
    coded = columns.coded
    drawn = columns.drawn(2)
    assert drawn is not None
    assert len(drawn) == (0 if arrow == pa.decimal256(60, 3) else 4)  # 10**50 has no code
    assert len(set(drawn.tolist())) <= len(POOLS[arrow])
    assert columns.coded == coded
