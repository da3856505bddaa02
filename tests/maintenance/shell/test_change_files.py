"""Change files: how their rows become transactions, in every format, and what is refused with which place."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lftj import errors
from lftj.files import file_stream, sink
from lftj.storage.relation import Nulls
from lftj.values.schema import Schema
from maintenance import Workspace
from maintenance.shell.change_files import ChangeFile, check_together, merged_transactions
from support.change_tables import CHANGES, EDGE, IN_TRANSACTIONS, Transactions, schema_of, write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text(content: str, path: str = "changes.csv") -> str:
    Path(path).write_text(content, encoding="utf-8")
    return path


@contextlib.contextmanager
def opened(*paths: str, schema: Schema = EDGE, nulls: Nulls = "refuse") -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ChangeFile("edge", path, schema, nulls)) for path in paths]


def transactions(*paths: str, **options: Any) -> Transactions:
    """Each transaction's identifier and its rows in order."""
    with opened(*paths, **options) as files:
        return [
            (
                None if identifier is None else identifier.plain(),
                [tuple(row.values()) for part in parts for row in part.rows.to_pylist()],
            )
            for identifier, parts in merged_transactions(files)
        ]


# -- rows to transactions -----------------------------------------------------

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather", ".arrows")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_with_one_txn_are_a_transaction_in_every_format(suffix: str) -> None:
    assert transactions(write(CHANGES, f"c{suffix}")) == IN_TRANSACTIONS
    shuffled = CHANGES.select(["weight", "b", "txn", "a"])
    assert transactions(write(shuffled, f"s{suffix}")) == IN_TRANSACTIONS


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_txn_a_file_is_one_transaction(suffix: str) -> None:
    rows = [row for _, some in IN_TRANSACTIONS for row in some]
    path = write(CHANGES.drop_columns(["txn"]), f"c{suffix}")
    assert transactions(path) == [(None, rows)]
    assert transactions(path, path) == [(None, rows), (None, rows)]


def test_transactions_span_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_stream, "BATCH_ROWS", 2)
    assert transactions(write(CHANGES, "c.csv")) == IN_TRANSACTIONS
    with opened("c.csv") as files:
        parts = list(files[0].parts())
    assert max(part.rows.num_rows for part in parts) == 2
    assert [part.transaction.key for part in parts] == [1, 2, 5, 5, 9]


def test_transactions_of_several_files_merge_by_value() -> None:
    first = text("a,b,weight,txn\n1,1,1,1\n2,2,1,3\n", "first.csv")
    second = text("a,b,weight,txn\n3,3,1,2\n4,4,1,3\n5,5,1,4\n", "second.csv")
    assert transactions(first, second) == [
        (1, [(1, 1, 1)]),
        (2, [(3, 3, 1)]),
        (3, [(2, 2, 1), (4, 4, 1)]),
        (4, [(5, 5, 1)]),
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([-3, 250], pa.int16()), [-3, 250]),
        (pa.array([1, 2**62], pa.uint64()), [1, 2**62]),
        (pa.array(["a", "é"], pa.large_string()), ["a", "é"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (
            pa.array([datetime.date(1969, 1, 31), datetime.date(2026, 1, 1)], pa.date32()),
            ["1969-01-31", "2026-01-01"],
        ),
        (
            pa.array([1, 1_000_000_001], pa.timestamp("ns")),
            ["1970-01-01 00:00:00.000000001", "1970-01-01 00:00:01.000000001"],
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_types_of_txn(values: pa.Array, shown: list[Any]) -> None:
    table = pa.table({"a": [1, 2], "b": [1, 2], "weight": [1, 1], "txn": values})
    assert transactions(write(table, "c.arrow")) == [(shown[0], [(1, 1, 1)]), (shown[1], [(2, 2, 1)])]
    with pytest.raises(errors.ChangeError, match=r"row 1 \(counting from 0\): txn goes backwards, from"):
        transactions(write(table.take([1, 0]), "back.arrow"))


def test_empty_files() -> None:
    header = text("a,b,weight,txn\n", "empty.csv")
    assert transactions(header) == []
    other = write(CHANGES.set_column(0, "txn", CHANGES["txn"].cast(pa.string())), "c.parquet")
    assert [txn for txn, _ in transactions(header, other)] == ["1", "2", "5", "9"]
    with opened(header, other) as files:
        assert check_together(files) == pa.string()
    assert transactions(text("a,b,weight\n", "none.csv")) == [(None, [])]
    assert transactions(write(CHANGES.slice(0, 0), "none.parquet")) == []


def test_a_relation_with_columns_of_these_names() -> None:
    table = pa.table({"txn": [5], "weight": [0.5]})
    path = text("txn,weight,weight_,txn_\n5,0.5,1,7\n6,1.5,-1,8\n")
    assert transactions(path, schema=schema_of(table)) == [(7, [(5, 0.5, 1)]), (8, [(6, 1.5, -1)])]
    workspace = Workspace()
    workspace.load("edge", table)
    with opened(path, schema=schema_of(table)) as files, workspace.transaction() as transaction:
        for part in files[0].parts():
            transaction.apply("edge", part.rows)
    assert workspace["edge"].to_pydict() == {"txn": [5], "weight": [0.5]}
    assert transaction.stats.no_changes == {"edge": 2}


# -- types ----------------------------------------------------------------------

VALUES: dict[str, pa.Array] = {
    "int8": pa.array([1, -2], pa.int8()),
    "uint64": pa.array([1, 2**63 - 1], pa.uint64()),
    "bool": pa.array([True, False]),
    "float16": pa.array([0.5, -2.0], pa.float16()),
    "float32": pa.array([0.5, -2.25], pa.float32()),
    "float64": pa.array([1.0, 1e300]),
    "digits": pa.array(["01", "2"]),
    "text": pa.array(["", 'a,"b"\nc'], pa.large_string()),
    "view": pa.array(["x", "y"], pa.string_view()),
    "dictionary": pa.array(["x", "y"]).dictionary_encode(),
    "small_dictionary": pa.array(["x", "y"]).cast(pa.dictionary(pa.int8(), pa.string())),
    "binary": pa.array([b"\x00\xff", b""], pa.binary()),
    "fixed": pa.array([b"\x00\xff", b"ab"], pa.binary(2)),
    "date": pa.array([0, 20484], pa.int32()).cast(pa.date32()),
    "timestamp": pa.array([0, 1_700_000_000_000_001], pa.timestamp("us")),
    "zoned": pa.array([0, 1_700_000_000], pa.timestamp("s", "UTC")),
    "time": pa.array([1, 86_399], pa.time32("s")),
    "duration": pa.array([-1, 5000], pa.duration("ms")),
    "decimal32": pa.array([Decimal("1.50"), Decimal("-0.25")], pa.decimal32(5, 2)),
    "decimal": pa.array([Decimal("1.50"), Decimal("-12345678901234567890.25")], pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_columns_have_the_relation_s_own_types(suffix: str) -> None:
    """What ``lftj`` writes as changes it reads as changes, value by value."""
    unwritable = {"float16": ".csv"}  # pyarrow writes no half floats as text
    table = pa.table({name: values for name, values in VALUES.items() if unwritable.get(name) != suffix})
    schema = schema_of(table)
    path = write(table.append_column("weight", pa.array([1, -1])), f"c{suffix}")
    with opened(path, schema=schema) as files:
        rows = pa.Table.from_batches([part.rows for part in files[0].parts()])
    assert rows.drop_columns(["weight"]).to_pylist() == table.to_pylist()
    workspace = Workspace()
    workspace.load("edge", table.slice(1))
    with opened(path, schema=schema) as files, workspace.transaction() as transaction:
        for part in files[0].parts():
            transaction.apply("edge", part.rows)
    assert transaction.stats.no_changes == {"edge": 0}
    assert workspace["edge"].to_pylist() == table.slice(0, 1).to_pylist()


def test_half_floats_from_csv() -> None:
    schema = schema_of(pa.table({"h": VALUES["float16"]}))
    assert transactions(text("h,weight\n0.5,1\n"), schema=schema) == [(None, [(0.5, 1)])]


def test_binary_that_is_not_hexadecimal() -> None:
    schema = schema_of(pa.table({"v": VALUES["binary"]}))
    with pytest.raises(errors.SourceError, match=r"changes.csv: .*column 'v': 'xyz' is not pairs"):
        transactions(text("v,weight\nxyz,1\n"), schema=schema)


# -- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a,b,weight,txn\n1,1,1,1\n2,2,1,3\n3,3,1,2\n", ["row 2", "goes backwards, from 3 to 2"]),
        ("a,b,weight,txn\n1,1,1,1\n2,2,1,\n", ["row 1", "txn is NULL"]),
        ("a,b,weight,txn\n1,1,1,1\n2,,1,2\n", ["row 1", "transaction 2", "b is NULL"]),
        ("a,b,weight,txn\n1,1,,1\n", ["row 0", "transaction 1", "weight is NULL"]),
        ("a,b,weight\n1,1,1\n1,2,1.5\n", ["column 'weight'", "row 1", "'1.5'"]),
        ("a,b,weight\n1,1,1\n1,x,1\n", ["column 'b'", "row 1", "'x'"]),
        ("a,b,weight\n1,1,1\n1,2\n", ["line 3 has 2 fields instead of 3"]),
        ("a,b\n1,1\n", ["no column 'weight'", "a, b, weight"]),
        ("a,weight\n1,1\n", ["no column 'b'"]),
        ("a,b,weight,tnx\n1,1,1,1\n", ["no column 'tnx'", "did you mean 'txn'?"]),
        ("a,b,weight,note\n1,1,1,x\n", ["no column 'note'"]),
        ("a,b,weight,weight\n1,1,1,1\n", ["'weight'"]),
        ("a,b,weight,txn\n1,1,1,1.5\n", ["'txn' is of type double"]),
        ("1,2,1\n", ["has no column names"]),
        ("", ["the file is empty"]),
    ],
)
def test_what_is_refused_is_named_with_its_place(content: str, parts: list[str]) -> None:
    path = text(content)
    with pytest.raises(errors.DataError) as caught:
        transactions(path)
    message = str(caught.value)
    assert message.startswith("changes.csv: ")
    for part in parts:
        assert part in message
    assert "\n" not in message


def test_a_late_error_is_named_by_its_row_in_the_file() -> None:
    def read(content: str) -> None:
        with opened(text(content)) as files:
            for _ in files[0].parts():
                pass

    lines = [f"{i},{i},1,{i}" for i in range(100_000)]
    lines[90_000] = "1,,1,90000"
    with pytest.raises(errors.ChangeError, match=r"row 90000 \(counting from 0\), transaction 90000: b is"):
        read("\n".join(["a,b,weight,txn", *lines]))
    lines[90_000] = "1,1,1,7"
    with pytest.raises(errors.ChangeError, match=r"row 90000 .* backwards, from 89999 to 7"):
        read("\n".join(["a,b,weight,txn", *lines]))
    lines[90_000] = "1,one,1,90000"
    with pytest.raises(errors.SourceError, match=r"column 'b', row 90000 .*'one'"):
        read("\n".join(["a,b,weight,txn", *lines]))


def test_nulls_are_dropped_on_request() -> None:
    path = text("a,b,weight,txn\n1,1,1,1\n,2,1,1\n3,,1,2\n4,4,1,3\n")
    assert transactions(path, nulls="drop") == [(1, [(1, 1, 1)]), (2, []), (3, [(4, 4, 1)])]
    with opened(path, nulls="drop") as (file,):
        list(file.parts())
        assert file.dropped_rows == 2
    with pytest.raises(errors.ChangeError, match="weight is NULL"):
        transactions(text("a,b,weight\n1,1,\n"), nulls="drop")


def test_nulls_of_a_relation_that_keeps_them_are_not_dropped() -> None:
    nullable = Schema(tuple(replace(one, type=replace(one.type, nullable=True)) for one in EDGE.columns))
    path = text("a,b,weight\n1,,1\n,,-1\n")
    for nulls in ("refuse", "drop", "keep"):
        assert transactions(path, schema=nullable, nulls=nulls) == [(None, [(1, None, 1), (None, None, -1)])]
    with pytest.raises(errors.ChangeError, match=r"row 1 .*: a is NULL"):
        transactions(path, nulls="keep")


def test_files_that_do_not_go_together() -> None:
    with_txn = text("a,b,weight,txn\n1,1,1,1\n", "with.csv")
    without = text("a,b,weight\n1,1,1\n", "without.csv")
    for pair in ((with_txn, without), (without, with_txn)):
        with pytest.raises(errors.ChangeError, match=r"with.csv has a column 'txn' and without.csv has none"):
            transactions(*pair)
    named = text("a,b,weight,txn\n1,1,1,x\n", "named.csv")
    with pytest.raises(errors.ChangeError, match=r"int64 in with.csv and of type string in named.csv"):
        transactions(with_txn, named)


def test_files_that_are_none(folder: Path) -> None:
    with pytest.raises(errors.SourceError, match=r"no\.csv: there is no such file"):
        transactions("no.csv")
    with pytest.raises(errors.SourceError, match="not a regular file"):
        transactions(str(folder))
    whole = Path(write(CHANGES, "c.parquet")).read_bytes()
    Path("cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(errors.SourceError, match=r"cut\.parquet: can't be read as Parquet"):
        transactions("cut.parquet")
    floating = pa.table({"a": [1], "b": [1], "weight": [1.0]})
    with pytest.raises(errors.ChangeError, match=r"w\.parquet: the weight is of type double"):
        transactions(write(floating, "w.parquet"))


# -- memory and progress ------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_large_file_is_never_in_memory_as_a_whole(suffix: str) -> None:
    """100,000 transactions of ten rows; Arrow's own count of what it holds stays far below the file."""
    n = 100_000
    rows = np.arange(10 * n)
    table = pa.table({"a": rows, "b": rows, "weight": np.ones(10 * n, np.int64), "txn": rows // 10})
    size = table.nbytes
    path = f"large{suffix}"
    if suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=50_000)
    elif suffix == ".csv":
        csv.write_csv(table, path)
    else:
        sink.write_file(table.to_batches(max_chunksize=50_000), path)
    del table
    before = pa.total_allocated_bytes()
    most, count, fractions = 0, 0, []
    with opened(path) as files:
        for identifier, parts in merged_transactions(files):
            assert identifier is not None
            assert identifier.key == count
            assert sum(part.rows.num_rows for part in parts) == 10
            count += 1
            if count % 10_000 == 0:
                most = max(most, pa.total_allocated_bytes() - before)
                fractions.append(files[0].fraction)
    assert count == n
    assert most < size / 3
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < 1
    assert fractions[-1] == 1


def test_operations_and_rows_that_their_key_tells() -> None:
    """Of a relation with a key an erased row needs its key alone; of others all columns."""
    database = Workspace()
    database.load("r", {"id": [1], "v": [2], "w": [3]}, key=["id"])
    database.load("s", {"id": [1], "v": [2], "w": [3]})
    Path("ops.csv").write_text("id,op,v,w\n1,D,,\n2,U,5,6\n3,I,7,8\n", encoding="utf-8")
    with ChangeFile("r", "ops.csv", database["r"].tuples.schema.shown) as file:
        (part,) = file.parts()
        assert part.rows.schema.names == ["id", "v", "w", "op"]
        assert part.rows.column("v").to_pylist() == [None, 5, 7]
    refused = pytest.raises(errors.ChangeError, match=r"ops.csv: row 0 \(counting from 0\): v is NULL")
    with ChangeFile("s", "ops.csv", database["s"].tuples.schema.shown) as file, refused:
        list(file.parts())
    Path("ops.csv").write_text("id,op,v,w\n1,D,,\n2,U,,6\n,D,7,8\n", encoding="utf-8")
    with ChangeFile("r", "ops.csv", database["r"].tuples.schema.shown, nulls="drop") as file:
        (part,) = file.parts()
        assert part.rows.column("id").to_pylist() == [1]
        assert file.dropped_rows == 2
    refused = pytest.raises(errors.ChangeError, match=r"ops.csv: row 2 \(counting from 0\): id is NULL")
    with ChangeFile("r", "ops.csv", database["r"].tuples.schema.shown) as file, refused:
        list(file.parts())
