"""Differential dataflow: a Rust program of our own in ``bench/peers/differential``, built by cargo on demand.

One worker keeps one view over edges up to date; triangles are the worst-case optimal delta query of
differential-dogs3.  It has no query language, so a "query" names one of the program's views (:data:`VIEWS`).

The program gets its data in a file and tells of each commit in a line; what both hold is said in
``differential/src/main.rs``.  What cargo makes goes to ``differential/target``, which git ignores.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.engine import Ends, Engine

VIEWS = ("triangles", "hubs", "degrees", "sums")

_PROJECT = Path(__file__).resolve().parent / "differential"
_PROGRAM = _PROJECT / "target" / "release" / "differential-peer"


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

    def __init__(self, threads: int) -> None:
        if threads != 1:
            raise ValueError(f"differential dataflow is measured with one worker, not {threads}")
        super().__init__(threads)
        self._edges = np.empty((0, 2), np.int64)

    @classmethod
    def version(cls) -> str | None:
        """The crate's version; None where the program is not built, see :func:`build`."""
        if not is_built():
            return None
        found = re.search(r'^differential-dataflow = "=(.*)"$', (_PROJECT / "Cargo.toml").read_text(), re.M)
        assert found is not None
        return found[1]

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
            with subprocess.Popen(
                [str(_PROGRAM), view, file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None and process.stderr is not None
                try:
                    for line in process.stdout:
                        yield _event(line)
                except BaseException:  # whoever asks wants no more: so does the program end
                    process.kill()
                    raise
                complaints = process.stderr.read().strip().splitlines()
            if process.returncode:
                raise RuntimeError(complaints[-1] if complaints else f"exit status {process.returncode}")


def is_built() -> bool:
    """The program is there; it may be older than its source."""
    return _PROGRAM.is_file()


def build() -> None:
    """Let cargo build the program where it is not up to date; the first time takes minutes.

    Raises:
        RuntimeError: There is no cargo, or it could not; what it said.
    """
    if shutil.which("cargo") is None:
        if is_built():
            return
        raise RuntimeError("cargo is not installed")
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    done = subprocess.run(
        [*command, "--target-dir", str(_PROJECT / "target")], cwd=_PROJECT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"cargo: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")


def _write(path: Path, edges: np.ndarray, batches: Batches) -> None:
    head = [batches.in_flight, round(1000 * batches.seconds), len(batches.transactions)]
    parts = [np.array([len(edges)]), edges.ravel(), np.array(head)]
    for changes in batches.transactions:
        parts += [np.array([len(changes)]), changes.ravel()]
    np.concatenate(parts).astype("<i8").tofile(path)


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
