"""Results out: every type in every format, bounded memory, and no half file whatever happens."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lftj.errors import RangeError
from lftj.files import sink

NAN = float("nan")
COLUMNS = {
    "int8": pa.array([1, -2], pa.int8()),
    "uint64": pa.array([0, 2**63 - 1], pa.uint64()),
    "boolean": pa.array([True, False]),
    "float16": pa.array([1.5, -0.25], pa.float16()),
    "float64": pa.array([0.1, NAN]),
    "date32": pa.array([datetime.date(2026, 1, 31), datetime.date(1, 1, 1)]),
    "date64": pa.array([0, 86_400_000], pa.date64()),
    "timestamp": pa.array([1, 2], pa.timestamp("ns")),
    "zoned": pa.array([1, 2], pa.timestamp("us", "Europe/Paris")),
    "time": pa.array([1, 2], pa.time64("ns")),
    "duration": pa.array([1, 2], pa.duration("ms")),
    "string": pa.array(['a "quoted", text\n', ""]),
    "large_string": pa.array(["a", "é"], pa.large_string()),
    "string_view": pa.array(["a", "é"], pa.string_view()),
    "binary": pa.array([b"\xff\x00", b""]),
    "fixed": pa.array([b"ab", b"\xff\xfe"], pa.binary(2)),
    "binary_view": pa.array([b"\xff", b"ab"], pa.binary_view()),
    "decimal": pa.array([Decimal("1.50"), Decimal("-2.25")]),
    "dictionary": pa.array(["x", "y"]).dictionary_encode(),
}


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    if path.suffix == ".csv":
        return csv.read_csv(path)
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ARROW"])
@pytest.mark.parametrize("name", COLUMNS)
def test_arrow_files_keep_every_type(name: str, suffix: str, tmp_path: Path) -> None:
    batch = pa.record_batch({name: COLUMNS[name]})
    assert sink.write_file([batch, batch], tmp_path / f"out{suffix}") == 4
    back = read(tmp_path / f"out{suffix}")
    assert back.schema == batch.schema
    assert str(back.to_batches()) == str([batch, batch])  # by text: NaN equals NaN there


@pytest.mark.parametrize("name", sorted(COLUMNS.keys() - {"date64"}))  # Parquet has date32 only
def test_parquet_files_keep_every_type(name: str, tmp_path: Path) -> None:
    batch = pa.record_batch({name: COLUMNS[name]})
    assert sink.write_file([batch], tmp_path / "out.parquet") == 2
    back = read(tmp_path / "out.parquet").combine_chunks().to_batches()[0]
    assert back.schema.types == batch.schema.types
    assert str(back) == str(batch)


@pytest.mark.parametrize("name", COLUMNS)
def test_csv_and_tables_take_every_type(name: str) -> None:
    batch = pa.record_batch({name: COLUMNS[name]})
    buffer = io.BytesIO()
    assert sink.write_csv([batch], buffer) == 2
    text = buffer.getvalue().decode()
    assert text.startswith(f"{name}\n")
    assert sink.format_table([batch], limit=10, width=80).endswith("\n2 rows")


def test_csv_reads_back_as_it_was(tmp_path: Path) -> None:
    table = pa.table({"plain": [1, 2], 'with "quotes", and commas': ['x,"y"\nz', ""]})
    sink.write_file(table.to_batches(), tmp_path / "out.csv")
    assert read(tmp_path / "out.csv") == table


def test_binary_in_csv_is_hexadecimal() -> None:
    buffer = io.BytesIO()
    sink.write_csv([pa.record_batch({"b": COLUMNS["binary"], "f": COLUMNS["fixed"]})], buffer)
    assert buffer.getvalue() == b'b,f\n"ff00","6162"\n"","fffe"\n'


@pytest.mark.parametrize("suffix", sink.FORMATS)
def test_an_empty_result_is_a_file_with_columns(suffix: str, tmp_path: Path) -> None:
    empty = pa.record_batch({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    assert sink.write_file([empty], tmp_path / f"out{suffix}") == 0
    assert read(tmp_path / f"out{suffix}").column_names == ["a", "b"]


def test_small_batches_become_large_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "ROW_GROUP_ROWS", 1000)
    batches = [pa.record_batch({"a": range(i, i + 100)}) for i in range(0, 2500, 100)]
    sink.write_file(batches, tmp_path / "out.parquet")
    metadata = parquet.read_metadata(tmp_path / "out.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [1000, 1000, 500]
    assert read(tmp_path / "out.parquet").column("a").to_pylist() == list(range(2500))


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("suffix", sink.FORMATS)
def test_a_run_that_stops_leaves_the_old_file(
    suffix: str, error: type[BaseException], tmp_path: Path
) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise error

    target = tmp_path / f"out{suffix}"
    with pytest.raises(error):
        sink.write_file(batches(), target)
    assert list(tmp_path.iterdir()) == []
    target.write_text("older")
    with pytest.raises(error):
        sink.write_file(batches(), target)
    assert target.read_text() == "older"
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_takes_the_place_and_the_mode_of_the_old(tmp_path: Path) -> None:
    target, link = tmp_path / "out.csv", tmp_path / "link.csv"
    target.write_text("older")
    target.chmod(0o640)
    link.symlink_to(target)
    sink.write_file([pa.record_batch({"a": [1]})], link)
    assert target.read_text() == "a\n1\n"
    assert target.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_a_target_that_cannot_be_is_said_beforehand(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path, message in [
        (tmp_path / "out.txt", r"ends in none of \.parquet, \.csv, \.arrow, \.feather"),
        (tmp_path / "missing" / "out.csv", "there is no folder"),
        (tmp_path / "folder.csv", "not a regular file"),
    ]:
        with pytest.raises(OSError, match=message):
            sink.check_target(path)


def test_tables_show_the_first_rows_and_count_all() -> None:
    batches = [pa.record_batch({"number": range(i, i + 3)}) for i in range(0, 3000, 3)]
    lines = sink.format_table(batches, limit=4, width=40).splitlines()
    assert [line.strip() for line in lines] == [
        "number",
        "─" * 8,
        "0",
        "1",
        "2",
        "3",
        "3,000 rows, the first 4 shown",
    ]
    assert sink.format_table(batches[:1], limit=4, width=40).endswith("\n3 rows")
    one = [pa.record_batch({"a": [1]})]
    assert sink.format_table(one, limit=4, width=40).endswith("\n1 row")


def test_tables_show_text_as_it_is_and_harmlessly() -> None:
    batch = pa.record_batch({"[bold]name": ["[red]x[/red]", "\x1b[31mred\x07", "tab\there", "é"]})
    table = sink.format_table([batch], limit=10, width=80)
    assert "[bold]name" in table
    assert "[red]x[/red]" in table
    assert "\x1b" not in table
    assert r"\x1b[31mred\x07" in table
    assert r"tab\there" in table


def test_tables_cut_long_values_to_the_width() -> None:
    table = sink.format_table([pa.record_batch({"a": ["x" * 500], "b": ["y" * 500]})], limit=10, width=60)
    assert all(len(line) <= 60 for line in table.splitlines())
    assert "…" in table


FAR = {
    "56728-02-22": pa.array([20_000_000, None], pa.int32()).cast(pa.date32()),
    "148108-07-06 14:00:27.387904": pa.array([2**62, None]).cast(pa.timestamp("us")),
}


@pytest.mark.parametrize("text", FAR)
def test_dates_that_csv_can_not_have_are_refused(text: str, tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, 2], "day": FAR[text]})
    assert text in sink.format_table([batch], limit=2)
    message = f"column 'day': CSV can't be written with {text.replace(' ', 'T')}: write Parquet or Arrow"
    with pytest.raises(RangeError, match=message):
        sink.write_file([batch], tmp_path / "h.csv")
    assert not list(tmp_path.iterdir())
    assert sink.write_file([batch], tmp_path / "h.parquet") == 2
    assert read(tmp_path / "h.parquet")["day"].combine_chunks().equals(FAR[text])
