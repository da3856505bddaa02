"""Joins and SQL in a Spark session: what a child of the harness runs.

Invariant: a run starts from Parquet files and ends with the count, or with every row made; nothing is kept
from run to run but compiled code and processes.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.peers.spark_engine import Spark, counted_rows, listed, parts_of
from bench.report.process_tree import PeakMemory, processor_seconds
from bench.report.repetition import Times, repeated
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHUFFLE_PARTITIONS = (4, 8, 16, 32)
LEAST_LONG_RUNS = 3
WARMING = 10
"""Times as many seconds of runs as elsewhere: a JVM gets quicker for a dozen of them."""

NO_BROADCAST = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "true",
}


class SparkSubject(ABC):
    """One side of a workload; ``load``, ``first``, ``times``, ``figures``, ``close`` come in this order."""

    def __init__(self, workload: Workload, engine: str, files: Mapping[str, str]) -> None:
        self.workload = workload
        self.engine = engine
        self.query = workload.queries[engine]
        self.files = {name: Path(file) for name, file in files.items()}
        sort_merge = engine.startswith("spark:sort-merge")
        self.spark = Spark(workload.threads, NO_BROADCAST if sort_merge else {})
        self._memory = PeakMemory()
        self._figures: dict[str, float] = {}

    def load(self) -> None:
        """Write what is read in the runs."""
        for file in self.files.values():
            parts_of(file)

    @abstractmethod
    def first(self) -> int:
        """The answer, found for the first time."""

    @abstractmethod
    def times(self, least: int, spend: float) -> Iterator[Times | None]:
        """Times of the runs after the first; None says that it goes on, for the patience of the harness."""

    def figures(self) -> dict[str, float]:
        """What was counted."""
        largest = self._memory.of_one()
        return self._figures | {f"peak MiB of a {kind}": most / 2**20 for kind, most in largest.items()}

    def bytes(self) -> int | None:
        """Peak memory of this process and those that it started."""
        return self._memory.bytes()

    def close(self) -> None:
        """End the session, so that the next process finds the machine free."""
        self._memory.stop()
        self.spark.stop()

    def shuffled(self, run: Callable[[], object]) -> float:
        """MiB that the stages of a run wrote for others."""
        before = self.spark.shuffled_bytes()
        run()
        return (self.spark.shuffled_bytes() - before) / 2**20


class OneQuery(SparkSubject):
    """A query answered whole: counted, or listed."""

    @property
    def lists(self) -> bool:
        if self.workload.task == "spark batches":
            return "counted" not in self.engine
        return self.workload.task == "spark list"

    def tables(self) -> Mapping[str, Path]:
        """Folders of Parquet files by relation."""
        return {name: parts_of(file) for name, file in self.files.items()}

    def frame(self) -> DataFrame:
        """The query's DataFrame, from files."""
        frames = {name: self.spark.read(folder) for name, folder in self.tables().items()}
        if self.engine.partition(":")[0] == "lftj":
            from spark_bridge import join, join_sql

            if self.engine == "lftj:sql":
                return join_sql(self.query, frames)
            return join(self.query, frames, key=self.workload.keys)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        return self.spark.session.sql(self.query)

    def first(self) -> int:
        if self.lists:
            return counted_rows(self.frame())
        return int(self.frame().collect()[0][0])

    def run(self) -> None:
        if self.lists:
            listed(self.frame())
        else:
            self.frame().collect()

    def times(self, least: int, spend: float) -> Iterator[Times | None]:
        if self.engine.startswith("spark:sort-merge"):
            yield from self._tune()
        self._figures["shuffled MiB"] = self.shuffled(self.run)
        yield None
        yield from repeated(
            self.run,
            least,
            WARMING * spend,
            busy=processor_seconds,
            least_long=min(least, LEAST_LONG_RUNS),
        )

    def _tune(self) -> Iterator[None]:
        """Set the number of shuffle partitions that is quickest."""
        taken = {}
        for partitions in SHUFFLE_PARTITIONS:
            self.spark.session.conf.set("spark.sql.shuffle.partitions", str(partitions))
            started = time.perf_counter()
            self.run()
            taken[partitions] = time.perf_counter() - started
            self._figures[f"s with {partitions} shuffle partitions"] = taken[partitions]
            yield None
        best = min(taken, key=lambda partitions: taken[partitions])
        self.spark.session.conf.set("spark.sql.shuffle.partitions", str(best))
        self._figures["shuffle partitions"] = best
