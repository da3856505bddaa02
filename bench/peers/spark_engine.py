"""Spark as a peer, and the session that the Spark bridge is measured in: ``local[threads]``.

Tables are folders of Parquet files that each query reads, so scans are part of every run.
A table is cut into several files, its rows in random order: one small file would be one task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.engine import Ends, Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 8
DRIVER_MEMORY = "8g"


class Spark(Engine):
    """A session of its own, upon a context that all of one process share; it asks in SQL."""

    module = "pyspark"
    distribution = "pyspark"

    def __init__(self, threads: int, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(threads)
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(f"local[{threads}]").appName("lftj bench")
        fixed = {
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.python.unix.domain.socket.enabled": "true",  # as docs/spark.md advises
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        for name, value in fixed.items():
            builder = builder.config(name, value)
        root = SparkSession.getActiveSession() or builder.getOrCreate()
        root.sparkContext.setLogLevel("ERROR")
        self.session = root.newSession()
        for name, value in (settings or {}).items():
            self.session.conf.set(name, value)

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        for name, given in tables.items():
            assert isinstance(given, Path), "Spark reads files"
            self.read(parts_of(given)).createOrReplaceTempView(name)

    def read(self, folder: Path) -> DataFrame:
        """A folder of Parquet files as a DataFrame."""
        return self.session.read.parquet(str(folder))

    def count(self, query: str) -> int:
        return int(self.session.sql(query).collect()[0][0])

    def rows(self, query: str) -> int:
        return counted_rows(self.session.sql(query))

    def stop(self) -> None:
        """End the session and its context."""
        self.session.stop()

    def shuffled_bytes(self) -> int:
        """What all stages so far wrote for others to read.

        From the status that Spark keeps for its web pages, which only Classic lets one see.
        """
        return shuffled_bytes(self.session)


def shuffled_bytes(session: SparkSession) -> int:
    """What all stages of a classic session's context wrote for others to read."""
    return stage_bytes(session, "shuffleWriteBytes")


def stage_bytes(session: SparkSession, measure: str) -> int:
    """A measure of Spark's ``StageData``, ``inputBytes`` for one, of all stages of a classic context."""
    context = session.sparkContext
    store = context._jsc.sc().statusStore()
    assert context._gateway is not None
    none: Any = context._gateway.new_array(context._gateway.jvm.double, 0)
    stages = store.stageList(None, False, False, none, None)
    return sum(int(getattr(stages.apply(n), measure)()) for n in range(stages.size()))


def listed(frame: DataFrame) -> None:
    """Make all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def counted_rows(frame: DataFrame) -> int:
    """Make all rows and keep none; their number."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    listed(frame.observe(seen, F.count(F.lit(1)).alias("rows")))
    return int(seen.get["rows"])


def parts_of(file: Path) -> Path:
    """A Parquet file's rows as a folder of several files beside it, written when it is not there yet."""
    folder = file.with_suffix(".parts")
    if not folder.exists():
        write_parts(pq.read_table(file), folder)
    return folder


def write_parts(table: pa.Table, folder: Path) -> None:
    """Write a table as several Parquet files, rows in an order that is random and always the same."""
    part = folder.with_suffix(".making")
    part.mkdir(parents=True)
    order = np.random.default_rng(1).permutation(table.num_rows)
    for number in range(FILES):
        pq.write_table(table.take(pa.array(order[number::FILES])), part / f"{number}.parquet")
    part.replace(folder)
