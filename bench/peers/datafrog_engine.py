"""Datafrog: a Rust program of our own in ``bench/peers/datafrog``, built by cargo on demand.

It evaluates a recursive program from nothing each time it is asked, from rows that it has read before.  It
has no query language, so a "query" names one of its programs and the relations that this takes, in order.

What its file and its lines hold is said in ``datafrog/src/main.rs``.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.cargo_program import CargoProgram, last_words, write_words
from bench.peers.engine import Ends, Engine

PROGRAM = CargoProgram("datafrog", "datafrog")


class Datafrog(Engine):
    """The program, started by the first question; it ends with this process, or with :meth:`close`.

    Its times are from rows in memory to the sorted rows of the result.
    """

    module = distribution = "datafrog"
    program = PROGRAM

    def __init__(self, threads: int) -> None:
        if threads != 1:
            raise ValueError(f"datafrog has one thread, not {threads}")
        super().__init__(threads)
        self._tables: dict[str, np.ndarray] = {}
        self._query = ""
        self._processor = 0.0
        self._peak: int | None = None

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        for name, source in tables.items():
            table = pq.read_table(source) if isinstance(source, Path) else source
            self._tables[name] = np.stack([column.to_numpy() for column in table.columns], axis=1)

    def count(self, query: str) -> int:
        """The number of rows that a program finds: ``closure edge``.  Raises RuntimeError: its last words."""
        if query != self._query:
            self._start(query)
        n_rows, processor, _, peak = self._asked("count")
        self._processor += float(processor)
        self._peak = int(peak) or None
        return int(n_rows)

    def checksum(self, query: str) -> int:
        return int(self._asked("checksum")[0])

    def processor_seconds(self) -> float:
        return time.process_time() + self._processor

    def peak_bytes(self) -> int | None:
        return self._peak

    def close(self) -> None:
        super().close()
        self._query = ""

    def _start(self, query: str) -> None:
        self.close()
        program, *relations = query.split()
        with tempfile.NamedTemporaryFile(prefix="lftj-datafrog-") as file:
            parts = [(np.array([len(rows)]), rows) for rows in map(self._tables.__getitem__, relations)]
            write_words(Path(file.name), [array for part in parts for array in part])
            self._process = self.ending.enter_context(PROGRAM.start(program, file.name))
            self.ending.callback(self._process.kill)
            self._answer()
        self._query = query

    def _asked(self, question: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{question}\n")
        return self._answer()

    def _answer(self) -> list[str]:
        """What stands in the next line after its first word."""
        process: subprocess.Popen[str] = self._process
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(last_words(process))
        return line.split()[1:]
