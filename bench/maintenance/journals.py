"""What a journal costs: the project's own file against SQLite's, with the same records.

    python -m bench.maintenance.journals [FOLDER]

Each commit appends one record and waits for the disk; both are read back and compared before a time is taken.
A round runs one store after the other, and the median of the rounds is shown with the least and the most.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from maintenance.durable.entries import Changed, entry_bytes
from maintenance.durable.journal import FILES, Journal
from maintenance.durable.records import read_records
from maintenance.store.disk import Disk

ROUNDS = 7
COMMITS = 200
ROWS = (1, 1_000)


class OwnFile:
    """A file with checksums, synced by fdatasync."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = Journal.begun(Disk(), folder, 1, 0)

    def commit(self, content: bytes) -> None:
        self._journal.wait(self._journal.append(content, None))

    def contents(self) -> list[bytes]:
        self._journal.close()
        path = self._folder / FILES.name(1)
        read = read_records(path.read_bytes(), path)
        assert read is not None
        return [bytes(record.content) for record in read.records]


class Sqlite:
    """A table of blobs; journal_mode=WAL, synchronous=FULL."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "journal.db", isolation_level=None)
        (mode,) = self._connection.execute("pragma journal_mode=wal").fetchone()
        assert mode == "wal"
        self._connection.execute("pragma synchronous=full")
        self._connection.execute("create table journal(number integer primary key, content blob)")

    def commit(self, content: bytes) -> None:
        self._connection.execute("insert into journal(content) values (?)", (content,))

    def contents(self) -> list[bytes]:
        rows = self._connection.execute("select content from journal order by number").fetchall()
        self._connection.close()
        return [content for (content,) in rows]


STORES: dict[str, Callable[[Path], OwnFile | Sqlite]] = {"file": OwnFile, "SQLite": Sqlite}


def run(place: str | None, content: bytes, make: Callable[[Path], OwnFile | Sqlite]) -> tuple[float, float]:
    """Milliseconds of a commit, and bytes on disk for one."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        store = make(Path(folder))
        started = time.perf_counter()
        for _ in range(COMMITS):
            store.commit(content)
        seconds = time.perf_counter() - started
        nbytes = sum(path.stat().st_size for path in Path(folder).iterdir())
        assert store.contents() == [content] * COMMITS
    return seconds / COMMITS * 1_000, nbytes / COMMITS


def main() -> None:
    place = sys.argv[1] if len(sys.argv) > 1 else None
    for n_rows in ROWS:
        columns = {"src": range(n_rows), "dst": range(n_rows), "weight": [1] * n_rows}
        content = entry_bytes(Changed({"edge": pa.table(columns)}))
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in STORES}
        for _ in range(ROUNDS):
            for name, make in STORES.items():
                figures[name].append(run(place, content, make))
        for name, rounds in figures.items():
            times = [each for each, _ in rounds]
            print(
                f"{n_rows:>6,} rows, {len(content):>7,} bytes  {name:<7}"
                f"{statistics.median(times):7.3f} ms a commit ({min(times):.3f} to {max(times):.3f}),"
                f" {rounds[0][1]:>8,.0f} bytes on disk"
            )


if __name__ == "__main__":
    main()
