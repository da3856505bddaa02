"""Batches of changes to a join that is kept in Spark, and the changed graph evaluated whole.

Invariants

1. All sides see the same changes (:mod:`bench.maintenance.edge_batches`).
2. After the last batch the head has, by count and checksum, the rows that Spark finds in the changed graph,
   or there are no figures; a process that is started anew goes on from the files alone.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.maintenance.edge_batches import EdgeBatches
from bench.peers.spark_engine import Spark, write_parts
from bench.report.process_tree import processor_seconds
from bench.report.repetition import Times
from bench.spark.run import OneQuery, SparkSubject
from bench.spark.workloads import TRIANGLE_ROWS_SQL, WARM_UP_BATCHES
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_BATCHES = 7
CHANGES_SCHEMA = "src bigint, dst bigint, weight bigint"


def checksum(frame: DataFrame) -> tuple[int, int]:
    """Number of rows, and the sum of their hashes, which order does not change."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(*frame.columns).cast("decimal(38,0)")
    row = frame.agg(F.count(F.lit(1)), F.sum(hashed)).collect()[0]
    return int(row[0]), int(row[1] or 0)


def check_triangles(spark: Spark, graph: pa.Table, folder: Path, found: tuple[int, int]) -> None:
    """Refuse a checksum of rows that is not that of the triangles which Spark finds in a graph.

    ``folder``: where the graph is written for it.
    """
    write_parts(graph, folder)
    spark.read(folder).createOrReplaceTempView("edge")
    expected = checksum(spark.session.sql(TRIANGLE_ROWS_SQL))
    assert found == expected, f"the head has {found[0]:,} rows, Spark finds {expected[0]:,}, or others"


class ChangedGraph(OneQuery):
    """A query over the graph with the changes of the warm-up batches."""

    def tables(self) -> Mapping[str, Path]:
        file = self.files["edge"]
        folder = file.with_name(f"{file.stem}-after-{WARM_UP_BATCHES}-of-{self.workload.batch}.parts")
        if not folder.exists():
            batches = EdgeBatches(pq.read_table(file), seed=1)
            for _ in range(WARM_UP_BATCHES):
                batches.draw(self.workload.batch)
            write_parts(batches.table(), folder)
        return {"edge": folder}

    def load(self) -> None:
        self.tables()


class Batches(SparkSubject):
    """``MaintainedJoin.apply``, with the state on the executors or in the driver."""

    def __init__(self, workload: Workload, engine: str, files: Mapping[str, str]) -> None:
        super().__init__(workload, engine, files)
        self._folder = Path(mkdtemp(prefix="spark-batches-", dir=self.files["edge"].parent))
        self._sources: Counter[str] = Counter()
        self._behind: list[float] = []
        self._place: dict[str, Any] = {"where": "driver"} if engine == "lftj:driver" else {}
        self._drawn = 0

    def load(self) -> None:
        """Build the state."""
        from spark_bridge import MaintainedJoin

        super().load()
        self._batches = EdgeBatches(pq.read_table(self.files["edge"]), seed=1)
        parts = self.files["edge"].with_suffix(".parts")
        started = time.perf_counter()
        before = self.spark.shuffled_bytes()
        self._join = MaintainedJoin(
            self.query,
            {"edge": self.spark.read(parts)},
            state=self._folder / "state",
            **self._place,
        )
        self._figures["build s"] = time.perf_counter() - started
        self._figures["build shuffled MiB"] = (self.spark.shuffled_bytes() - before) / 2**20
        self._figures["state when built MiB"] = self._state_bytes() / 2**20

    def first(self) -> int:
        """The head after the warm-up batches."""
        for _ in range(WARM_UP_BATCHES):
            self._apply(self._next())
        return self._join.table().count()

    def _next(self) -> Path:
        """A file with the next batch."""
        self._drawn += 1
        file = self._folder / f"{self._drawn}.parquet"
        pq.write_table(self._batches.draw(self.workload.batch), file)
        return file

    def _apply(self, file: Path) -> DataFrame:
        """Apply it, and note where engines came from, or how long the commit took behind the rows."""
        from spark_bridge.stages.batch_stats import BatchStats, DriverStats

        changes = self.spark.session.read.schema(CHANGES_SCHEMA).parquet(str(file))
        found = self._join.apply({"edge": changes})
        stats = self._join.stats
        if isinstance(stats, BatchStats):
            self._sources.update(stats.engines)
        elif isinstance(stats, DriverStats):
            self._behind.append(stats.seconds - stats.arrival)
        return found

    def times(self, least: int, spend: float) -> Iterator[Times | None]:
        self._sources.clear()
        self._behind.clear()
        reads, shuffled, rows, state = [], [], [], self._state_bytes()
        count = max(least, LEAST_BATCHES)
        for _ in range(count):
            file, before = self._next(), self.spark.shuffled_bytes()
            started, busy = time.perf_counter(), processor_seconds()
            changes = self._apply(file)
            yield time.perf_counter() - started, processor_seconds() - busy
            shuffled.append((self.spark.shuffled_bytes() - before) / 2**20)
            started = time.perf_counter()
            rows.append(changes.toArrow().num_rows)
            reads.append(time.perf_counter() - started)
        self._figures |= {
            "reading the changes, median s": statistics.median(reads),
            "changes of the head, median": statistics.median(rows),
            "shuffled MiB per batch, median": statistics.median(shuffled),
            "state MiB": self._state_bytes() / 2**20,
            "state grows by MiB per batch": (self._state_bytes() - state) / count / 2**20,
        }
        steps = self._sources.total()
        self._figures |= {
            f"engines {source}, %": 100 * n / steps for source, n in sorted(self._sources.items())
        }
        if self._behind:
            self._figures["commit behind the rows, median s"] = statistics.median(self._behind)
        yield None
        self._check()

    def _check(self) -> None:
        found = checksum(self._join.table())
        check_triangles(self.spark, self._batches.table(), self._folder / "changed.parts", found)

    def figures(self) -> dict[str, float]:
        """The figures, last those of a process which has nothing but the files."""
        return super().figures() | self.restarted(self._next())

    def restarted(self, file: Path) -> dict[str, float]:
        """:func:`restart` in a process of its own."""
        self._join.close()
        self.spark.stop()
        command = [sys.executable, "-m", "bench.spark.batches", str(self._folder / "state"), str(file)]
        wanted = json.dumps({"rule": self.query, "threads": self.workload.threads, "place": self._place})
        done = subprocess.run(command, input=wanted, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found

    def _state_bytes(self) -> int:
        return sum(f.stat().st_size for f in (self._folder / "state").rglob("*") if f.is_file())

    def close(self) -> None:
        self._join.close()
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)


def restart(state: str, file: str, rule: str, threads: int, place: dict[str, Any]) -> dict[str, float]:
    """What the first batches take in a process that is new: times in seconds."""
    from spark_bridge import MaintainedJoin

    started = time.perf_counter()
    spark = Spark(threads)
    opened = time.perf_counter()
    changes = spark.session.read.schema(CHANGES_SCHEMA).parquet(file)
    join = MaintainedJoin(rule, {"edge": changes.drop("weight")}, state=state, **place)
    join.apply({"edge": changes})
    applied = time.perf_counter()
    spark.stop()
    return {"restart: session s": opened - started, "restart: first batch s": applied - opened}


if __name__ == "__main__":
    print(json.dumps(restart(sys.argv[1], sys.argv[2], **json.loads(sys.stdin.read()))))
