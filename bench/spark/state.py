"""A join that a stream of batches keeps up to date, with its state in files of our own and in Spark's store.

``FileState`` is ``MaintainedJoin.stream``: ``foreachBatch``, data files and a manifest.  ``SparkState`` does
the same work in ``transformWithState`` (:mod:`bench.spark.state_processor`): the same placement and engine,
the same rows written down.

Invariants

1. Both get the same batches, one Parquet file each, one at a time; a batch's time is the one that Spark
   reports of its trigger.
2. After the last batch, what was written of the head's changes adds up, by count and checksum, to what Spark
   finds in the changed graph, or there are no figures.
"""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.maintenance.edge_batches import EdgeBatches
from bench.report.process_tree import processor_seconds
from bench.report.repetition import Times
from bench.spark.batches import CHANGES_SCHEMA, check_triangles, checksum
from bench.spark.run import SparkSubject
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from spark_bridge.stages.stages import StageChain

PARTITIONS = 4
WARM_UP = 3
LEAST_BATCHES = 10


class Stream(SparkSubject):
    """One way of keeping the state.  What it keeps is below ``kept``, changes of the head go to ``made``."""

    def __init__(self, workload: Workload, engine: str, files: Mapping[str, str]) -> None:
        super().__init__(workload, engine, files)
        self._folder = Path(mkdtemp(prefix="spark-stream-", dir=self.files["edge"].parent))
        self.incoming, self.kept, self.made = (self._folder / name for name in ("incoming", "kept", "made"))
        for folder in (self.incoming, self.kept):
            folder.mkdir()
        self._taken = 0

    @abstractmethod
    def base(self) -> tuple[int, int]:
        """Checksum of the head without what was written of its changes."""

    def load(self) -> None:
        super().load()
        self._batches = EdgeBatches(pq.read_table(self.files["edge"]), seed=1)

    def edges(self) -> DataFrame:
        """The graph before all batches."""
        return self.spark.read(self.files["edge"].with_suffix(".parts"))

    def changes(self) -> DataFrame:
        """The stream of changes: one file to a batch."""
        reader = self.spark.session.readStream.schema(CHANGES_SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.incoming))

    def take(self, batch: pa.Table) -> float:
        """Give the stream one more file and wait for it; seconds of the trigger."""
        self._taken += 1
        part = self._folder / f"{self._taken:04}.parquet"
        pq.write_table(batch, part)
        part.replace(self.incoming / part.name)
        self.query_running.processAllAvailable()
        progress: list[Any] = [p for p in self.query_running.recentProgress if p["numInputRows"]]
        return float(progress[-1]["durationMs"]["triggerExecution"]) / 1000

    query_running: StreamingQuery

    def times(self, least: int, spend: float) -> Iterator[Times | None]:
        for _ in range(WARM_UP):
            self.take(self._batches.draw(self.workload.batch))
            yield None
        count, written, files = max(least, LEAST_BATCHES), 0, self._files()
        self._before()
        for _ in range(count):
            batch = self._batches.draw(self.workload.batch)
            busy = processor_seconds()
            seconds = self.take(batch)
            yield seconds, processor_seconds() - busy
            now = self._files()
            written += sum(size for file, size in now.items() if file not in files)
            files = now
        self._figures["written MiB per batch"] = written / count / 2**20
        self._figures["kept MiB"] = sum(files.values()) / 2**20
        self._after()
        self.query_running.stop()
        yield None
        self._check()

    def _before(self) -> None:
        """Before the first batch that is timed."""

    def _after(self) -> None:
        """After the last one."""

    def _files(self) -> dict[tuple[str, int], int]:
        """Sizes by name and time of change of what is kept: state and checkpoint, without the output."""
        found = {}
        for file in self.kept.rglob("*"):
            try:
                status = file.stat()
            except FileNotFoundError:  # cleaned up just now
                continue
            if file.is_file():
                found[str(file), status.st_mtime_ns] = status.st_size
        return found

    def head_count(self) -> int:
        """Number of the head's rows by what was written."""
        return self._added()[0] + self.base()[0]

    def _added(self) -> tuple[int, int]:
        from pyspark.sql import functions as F

        if not self.made.exists():
            return 0, 0
        changes = self.spark.session.read.option("recursiveFileLookup", True).parquet(str(self.made))
        hashed = F.xxhash64("a", "b", "c").cast("decimal(38,0)") * F.col("weight").cast("decimal(2,0)")
        row = changes.agg(F.sum("weight"), F.sum(hashed)).collect()[0]
        return int(row[0] or 0), int(row[1] or 0)

    def _check(self) -> None:
        base, added = self.base(), self._added()
        found = base[0] + added[0], base[1] + added[1]
        check_triangles(self.spark, self._batches.table(), self._folder / "changed.parts", found)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)


class FileState(Stream):
    """``MaintainedJoin.stream``: the state is built from the graph, then the stream starts."""

    def first(self) -> int:
        from spark_bridge import MaintainedJoin

        relations = {"edge": self.edges()}
        join = MaintainedJoin(self.query, relations, state=self.kept / "state", partitions=PARTITIONS)
        self._base = checksum(join.table())
        self.query_running = join.stream(
            {"edge": self.changes()}, checkpoint=str(self.kept / "checkpoint"), sink=str(self.made)
        )
        return self._base[0]

    def base(self) -> tuple[int, int]:
        return self._base


class SparkState(Stream):
    """``transformWithState``: the graph is the stream's first batch."""

    def first(self) -> int:
        session = self.spark.session
        store = "spark.sql.streaming.stateStore"
        provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        session.conf.set(f"{store}.providerClass", provider)
        session.conf.set(f"{store}.rocksdb.changelogCheckpointing.enabled", "true")
        session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
        writer = self._maintained().writeStream.format("parquet").outputMode("append")
        writer = writer.option("checkpointLocation", str(self.kept / "checkpoint"))
        self.query_running = writer.option("path", str(self.made)).start()
        edges = pq.read_table(self.files["edge"])
        self.take(edges.append_column("weight", pa.array([1] * edges.num_rows, pa.int64())))
        return self.head_count()

    def base(self) -> tuple[int, int]:
        return 0, 0

    def _maintained(self) -> DataFrame:
        from pyspark.sql import functions as F

        from bench.spark.state_processor import PartitionProcessor
        from spark_bridge.cells.signed_tables import signed
        from spark_bridge.placing.packets import SPARK_SCHEMA
        from spark_bridge.placing.schemas import arrow_schema, spark_schema
        from spark_bridge.placing.tagged_input import TaggedInput
        from spark_bridge.placing.worker_process import in_worker
        from spark_bridge.stages.placing_changes import placing_changes

        chain = self._chain()
        schema = arrow_schema("edge", self.edges().schema)
        tagged = TaggedInput.of({"edge": self.changes()}, [("edge", signed(schema))])
        place = in_worker(placing_changes(chain, tagged.reader()), "place changes")
        packets = tagged.frame.mapInArrow(place, SPARK_SCHEMA)
        groups = F.array(*map(F.lit, self._one_for_each_task()))
        grouped = packets.withColumn("pid", F.get(groups, F.col("pid"))).groupBy("pid")
        self._sources = self._folder / "sources"
        self._sources.mkdir()
        processor = PartitionProcessor(chain, str(self._folder), str(self._sources))
        made = spark_schema(signed(chain.plans[0].arrow_schema))
        return grouped.transformWithStateInPandas(processor, made, "Append", "None")

    def _chain(self) -> StageChain:
        """The rule's one stage, with a grid by a sample of the graph, as a ``MaintainedJoin`` has it."""
        from spark_bridge.placing.head_plan import ProgramText
        from spark_bridge.placing.key_sample import sampled_grids
        from spark_bridge.placing.schemas import arrow_schema
        from spark_bridge.stages.stages import StageChain

        relations = {"edge": self.edges()}
        text = ProgramText(self.query, None, (("edge", arrow_schema("edge", relations["edge"].schema)),))
        return StageChain(text, (sampled_grids(relations, text, 0, PARTITIONS),))

    def _one_for_each_task(self) -> list[int]:
        """For each task of a shuffle a key that Spark's hash sends there."""
        from pyspark.sql import functions as F

        key = F.col("id").cast("int")
        task = F.pmod(F.hash(key), F.lit(PARTITIONS))
        rows = self.spark.session.range(1000).select(key, task).collect()
        return [next(int(key) for key, task in rows if task == wanted) for wanted in range(PARTITIONS)]

    def _before(self) -> None:
        for file in self._sources.iterdir():
            file.unlink()

    def _after(self) -> None:
        sources = Counter(file.suffix[1:] for file in self._sources.iterdir())
        for source, count in sorted(sources.items()):
            self._figures[f"engines {source}, %"] = 100 * count / sources.total()


def stream(workload: Workload, engine: str, files: Mapping[str, str]) -> Stream:
    """What is timed for a variant; a session is open, nothing is loaded."""
    return (FileState if engine == "lftj" else SparkState)(workload, engine, files)
