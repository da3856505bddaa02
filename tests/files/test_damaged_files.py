"""Damaged files: an error of ours or a whole table, never the end of the process.

The damages are loaded in one other process, so that a crash is seen.  A changed
byte that no checksum covers can be another value, so a table that comes out
only has to be valid.
"""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from lftj.database.database import Database
from lftj.errors import LftjError, SourceError
from lftj.files.file_stream import FileStream
from lftj.files.sources import read_table

N_DAMAGES = 100
N_ROWS = 300
_NUMBERS = range(N_ROWS)

TABLE = pa.table(
    {
        "key": [number % 50 for number in _NUMBERS],
        "text": [f"w{number % 17}" for number in _NUMBERS],
        "code": pa.array([f"c{number % 5}" for number in _NUMBERS]).dictionary_encode(),
        "bytes": [b"x" * (number % 4) for number in _NUMBERS],
        "view": pa.array([f"a longer text {number % 9}" for number in _NUMBERS], pa.string_view()),
        "price": pa.array([Decimal(number % 30) / 4 for number in _NUMBERS], pa.decimal128(9, 2)),
        "float": [number / 7 for number in _NUMBERS],
        "time": pa.array(_NUMBERS, pa.timestamp("us")),
        "even": [number % 2 == 0 for number in _NUMBERS],
        "gap": [None if number == 7 else number for number in _NUMBERS],
    }
)


def _write_file(path: Path, compression: str | None = None) -> None:
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_file(path, TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=100)


def _write_stream(path: Path, compression: str | None = None) -> None:
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_stream(path, TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=100)


WRITERS = {
    "file.arrow": _write_file,
    "stream.arrows": _write_stream,
    "packed.arrow": lambda path: _write_file(path, "zstd"),
    "packed.arrows": lambda path: _write_stream(path, "lz4"),
    "groups.parquet": lambda path: pq.write_table(TABLE, path, row_group_size=100),
    "plain.parquet": lambda path: pq.write_table(TABLE, path, compression="none", use_dictionary=False),
}


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """The content with some bytes changed, a run of bytes overwritten, left out or set to one value."""
    changed = bytearray(content)
    place = int(random.integers(len(content)))
    how = random.integers(4)
    if how == 0:
        for _ in range(random.integers(1, 8)):
            changed[random.integers(len(content))] = random.integers(256)
    elif how == 1:
        n_bytes = min(int(random.integers(1, 64)), len(content) - place)
        changed[place : place + n_bytes] = random.bytes(n_bytes)
    elif how == 2:
        del changed[place : place + int(random.integers(1, 300))]
    else:
        changed[place : place + 8] = [b"\xff", b"\x7f"][random.integers(2)] * min(8, len(content) - place)
    return bytes(changed)


def load_damages(folder: Path) -> None:
    """Load and stream each damage of each kind of file; print how many were errors and how many tables."""
    random = np.random.default_rng(11)
    for name, write in WRITERS.items():
        path = folder / name
        write(path)
        content = path.read_bytes()
        tables = refused = 0
        for _ in range(N_DAMAGES):
            path.write_bytes(damaged(content, random))
            try:
                database = Database()
                database.load("r", path, nulls="drop")
                database.relations["r"].table.validate(full=True)
                tables += 1
            except LftjError:
                refused += 1
            try:
                with FileStream(path, {}) as stream:
                    for batch in stream:
                        Database().load("r", batch, nulls="drop")
            except LftjError:
                pass
        print(name, tables, refused)


def test_no_damage_ends_the_process(tmp_path: Path) -> None:
    """Regression: a damaged dictionary of an Arrow IPC file ended it by a signal."""
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    counts = [line.split() for line in run.stdout.splitlines()]
    assert [name for name, *_ in counts] == list(WRITERS)
    for _, tables, refused in counts:
        assert int(tables) + int(refused) == N_DAMAGES
        assert int(refused) > N_DAMAGES // 4


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_not_damaged_is_read(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert read_table(tmp_path / name).equals(TABLE)


WRONG = {
    "index beyond the dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 7]), ["a"], safe=False),
    "index below 0": pa.DictionaryArray.from_arrays(pa.array([0, -1]), ["a"], safe=False),
    "offset beyond the text": pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 10**6, 2], np.int32)), pa.py_buffer(b"ab")]
    ),
    "offsets that decrease": pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 1], np.int32)), pa.py_buffer(b"ab")]
    ),
    "bytes that are no text": pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_arrow_data_that_leads_nowhere_is_refused(what: str, tmp_path: Path) -> None:
    """However it comes: by file, table, batch, reader, column or the C interface."""
    table = pa.table({"good": pa.array([1, 2][: len(WRONG[what])]), "wrong": WRONG[what]})
    with ipc.new_stream(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    batch = table.to_batches()[0]
    sources = [tmp_path / "t.arrow", table, batch, table.to_reader(), {"wrong": WRONG[what]}]
    for source in sources:
        with pytest.raises(SourceError, match="column 'wrong' is damaged: "):
            read_table(source)
    with (
        pytest.raises(SourceError, match="column 'wrong' is damaged: "),
        FileStream(tmp_path / "t.arrow", {}) as stream,
    ):
        list(stream)


def test_checksums_of_parquet_pages_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.arange(1000)})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"t.parquet: can't be read as Parquet: .*CRC"):
        read_table(path)
    with pytest.raises(SourceError, match="CRC"), FileStream(path, {}) as stream:
        list(stream)


def test_nulls_of_dictionaries_are_nulls(tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with ipc.new_file(tmp_path / "t.arrow", pa.schema({"a": values.type})) as writer:
        writer.write_table(pa.table({"a": values}))
    database = Database()
    with pytest.raises(LftjError, match="column 'a': NULL in row 1"):
        database.load("r", tmp_path / "t.arrow")
    database.load("r", tmp_path / "t.arrow", nulls="drop")
    assert database.relations["r"].count == 1


if __name__ == "__main__":
    load_damages(Path(sys.argv[1]))
