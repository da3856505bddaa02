"""``python -m bench.spark.executors``: triangles on executors of little memory, by number of partitions.

    python -m bench.spark.executors                                RMAT 18/16, 32 and 128 partitions, 1 GB
    python -m bench.spark.executors --graph rmat-12 --partitions 8 --memory 600m

Two executors of one thread each are processes of their own (``local-cluster``), as on a cluster, and their
Python workers beside them.  For each number of partitions it says, as a Markdown table, what counting took:
seconds, processor seconds of all processes, bytes shuffled, and the most memory that one process of a kind
had, as the kernel counts it.  Memory is that since the session was made, so numbers of partitions come from
the largest to the smallest: cells get larger, and the mark can rise.

A count that is not that of GraphBLAS ends it with exit status 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench import datasets
from bench.joins.patterns import TRIANGLE_RULE
from bench.peers.graphblas_engine import GraphBLAS
from bench.peers.spark_engine import parts_of, shuffled_bytes
from bench.report.markdown import number, table
from bench.report.process_tree import PeakMemory, processor_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = f"n[] = count() <- {TRIANGLE_RULE.partition('<- ')[2]}"
EXECUTORS = 2
RUNS = 2
"""In the first one workers start and load the kernels; the last is what is shown."""


def session(memory: str) -> SparkSession:
    """A cluster of executors on this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_SCALA_VERSION", "2.13")  # what pip's Spark starts its executors with
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,{_mebibytes(memory)}]")
    settings = {
        "spark.executor.memory": memory,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def counted(spark: SparkSession, graph: Path, expected: int, partitions: int) -> dict[str, float]:
    """What the last of some counts took.  Raises ValueError if one is not the expected one."""
    from spark_bridge import join

    for _ in range(RUNS):
        shuffled, started, busy = shuffled_bytes(spark), time.perf_counter(), processor_seconds()
        edges = spark.read.parquet(str(graph))
        found = join(RULE, {"edge": edges}, partitions=partitions).collect()[0][0]
        if found != expected:
            raise ValueError(f"{partitions} partitions: {found:,} triangles, GraphBLAS counts {expected:,}")
        figures = {
            "s": time.perf_counter() - started,
            "CPU s": processor_seconds() - busy,
            "shuffled MiB": (shuffled_bytes(spark) - shuffled) / 2**20,
        }
    return figures


def expected_count(file: Path) -> int:
    """Triangles, by another engine."""
    peer = GraphBLAS(2)
    peer.load({"edge": file}, {})
    return peer.count("triangles")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark.executors")
    parser.add_argument("--graph", default="rmat-18-16", help="a table of bench.datasets")
    parser.add_argument("--partitions", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--memory", default="1g", help="of an executor, as Spark writes it (1g, 600m)")
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        file = datasets.file(chosen.graph, Path(folder))
        expected, graph = expected_count(file), parts_of(file)
        spark = session(chosen.memory)
        memory = PeakMemory()
        rows: list[Mapping[str, float]] = []
        try:
            for partitions in sorted(chosen.partitions, reverse=True):
                figures = counted(spark, graph, expected, partitions)
                peaks = {f"peak MiB of a {kind}": most / 2**20 for kind, most in memory.of_one().items()}
                rows.append({"partitions": partitions, **figures, **peaks})
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            memory.stop()
            spark.stop()
    print(f"{chosen.graph}, {expected:,} triangles, {EXECUTORS} executors of {chosen.memory}:\n")
    print(table(list(rows[0]), [[number(row.get(name)) for name in rows[0]] for row in rows]))
    return 0


def _mebibytes(memory: str) -> int:
    """What Spark's sizes say, in MiB."""
    return int(memory[:-1]) * {"m": 1, "g": 1024}[memory[-1]]


if __name__ == "__main__":
    sys.exit(main())
