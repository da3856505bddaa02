"""Differential dataflow: a Rust program of our own in ``bench/peers/differential``, built by cargo on demand.

One worker keeps one view over edges up to date; triangles are the worst-case optimal delta query of
differential-dogs3.  It has no query language, so a "query" names one of the program's views (:data:`VIEWS`).

The program gets its data in a file and tells of each commit in a line; what both hold is said in
``differential/src/main.rs``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.cargo_program import CargoProgram, last_words, write_words
from bench.peers.engine import Ends, Engine

VIEWS = ("triangles", "hubs", "degrees", "sums", "closure", "reach", "labels")

PROGRAM = CargoProgram("differential", "differential-dataflow")


class Batches(NamedTuple):
    """Transactions that follow the loading of the edges.

    Attributes:
        transactions: Of each, int64 (changes, 3): the edge's ends and the weight.
        in_flight: So many are handed over before they are waited for; a commit stands for all of them.
        seconds: No commit begins after so much processor time.
    """

    transactions: Sequence[np.ndarray]
    in_flight: int
    seconds: float


class Loaded(NamedTuple):
    """The view of the edges is there.  Times are seconds; ``weight`` and ``checksum`` are the view's."""

    processor: float
    seconds: float
    weight: int
    checksum: int


class Commit(NamedTuple):
    """One commit is over; ``head_changes`` are not netted."""

    processor: float
    seconds: float
    head_changes: int
    weight: int
    checksum: int


class Ended(NamedTuple):
    """The last commit is over."""

    peak_bytes: int


class Differential(Engine):
    """The program, started anew for every question."""

    module = distribution = "differential-dataflow"
    program = PROGRAM

    def __init__(self, threads: int) -> None:
        if threads != 1:
            raise ValueError(f"differential dataflow is measured with one worker, not {threads}")
        super().__init__(threads)
        self._edges = np.empty((0, 2), np.int64)

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        (source,) = tables.values()
        table = pq.read_table(source) if isinstance(source, Path) else source
        self._edges = np.stack([column.to_numpy() for column in table.columns], axis=1)

    def count(self, query: str) -> int:
        loaded, _ = self.keep(query, Batches([], 1, 0.0))
        assert isinstance(loaded, Loaded)
        return loaded.weight

    def keep(self, view: str, batches: Batches) -> Iterator[Loaded | Commit | Ended]:
        """Load, then commit.

        Raises:
            RuntimeError: The program failed; its last words.
            FileNotFoundError: It is not built.
        """
        with tempfile.NamedTemporaryFile(prefix="lftj-differential-") as file:
            _write(Path(file.name), self._edges, batches)
            with PROGRAM.start(view, file.name) as process:
                assert process.stdout is not None
                try:
                    for line in process.stdout:
                        yield _event(line)
                except BaseException:  # whoever asks wants no more: so does the program end
                    process.kill()
                    raise
                if process.wait():
                    raise RuntimeError(last_words(process))


def _write(path: Path, edges: np.ndarray, batches: Batches) -> None:
    head = [batches.in_flight, round(1000 * batches.seconds), len(batches.transactions)]
    parts = [np.array([len(edges)]), edges, np.array(head)]
    for changes in batches.transactions:
        parts += [np.array([len(changes)]), changes]
    write_words(path, parts)


def _event(line: str) -> Loaded | Commit | Ended:
    """
    >>> _event("end 4096")
    Ended(peak_bytes=4096)
    """
    kind, *fields = line.split()
    if kind == "end":
        return Ended(int(fields[0]))
    times = float(fields[0]), float(fields[1])
    if kind == "loaded":
        return Loaded(*times, *map(int, fields[2:]))
    return Commit(*times, *map(int, fields[2:]))
