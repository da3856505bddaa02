"""``python -m bench.spark.components``: connected components in Spark, beside GraphFrames' algorithm.

GraphFrames is a jar of Maven Central's, which a benchmark here can't install.  :func:`two_phase` is what its
``connectedComponents()`` does as it comes, written anew over DataFrames: ``TwoPhase.run`` of
graphframes/graphframes, commit e49a655b, for vertices that are whole numbers.  That is large-star and
small-star (Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, SoCC 2014) with adaptive execution off,
all that a round makes persisted, a checkpoint as Parquet every two rounds, and a sum that stays the same as
the end; hubs, vertices of more than 1,000,000 edges, are left away.

Beside it the recursive rule of ``docs/spark.md``, by rounds and by one task (``shares={}``).  By rounds a
value goes one step a round, so a path of 10,000 vertices would take 9,999 and is not run.  All run in turn
and find the same labels, which is checked; printed are medians of seconds, and of the processor time of Java
and its workers.
"""

from __future__ import annotations

import logging
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from bench import datasets
from bench.report.process_tree import processor_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULE = """
    label[x] = min(l) <- (edge(x, _) ; edge(_, x)), l = x.
    label[y] = min(l) <- label[x] = l, (edge(x, y) ; edge(y, x)).
"""
PARTITIONS = 4
CHECKPOINT_INTERVAL = 2
PATH = "path of 10,000 vertices"
GRAPHS: dict[str, Callable[[], pa.Table]] = {
    "wiki-vote": lambda: datasets.table("directed/wiki-vote"),
    "RMAT 14/8": lambda: datasets.table("rmat-14"),
    PATH: lambda: pa.table({"src": list(range(9_999)), "dst": list(range(1, 10_000))}),
}


def two_phase(edges: DataFrame, folder: Path) -> tuple[DataFrame, int]:
    """Vertices with the least one of their component, and the rounds; ``folder``: an empty one."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    def stored(frame: DataFrame) -> DataFrame:
        made.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return made[-1]

    def least_neighbours(frame: DataFrame) -> DataFrame:
        both = F.array(F.struct("src", "dst"), F.struct(F.col("dst").alias("src"), F.col("src").alias("dst")))
        each = frame.select(F.explode(both).alias("edge")).select("edge.src", "edge.dst").groupBy("src")
        found = each.agg(F.min("dst").alias("least"), F.count("*").alias("often"))
        return found.withColumn("least", F.least("src", "least"))

    def sum_of(frame: DataFrame) -> object:
        return frame.select(F.sum(F.col("least").cast("decimal(38,0)"))).first()

    session = edges.sparkSession
    made: list[DataFrame] = []
    adaptive = str(session.conf.get("spark.sql.adaptive.enabled"))
    session.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        vertices = edges.select(F.explode(F.array("src", "dst")).alias("id")).distinct()
        least, most = F.least("src", "dst").alias("src"), F.greatest("src", "dst").alias("dst")
        rows = stored(edges.where("src <> dst").select(least, most).distinct())
        rows.count()
        least_of = stored(least_neighbours(rows))
        before, now, rounds = None, sum_of(least_of), 0
        while before != now:
            last, made, rounds = made, [], rounds + 1
            large = rows.join(least_of, "src").select(F.col("dst").alias("src"), F.col("least").alias("dst"))
            rows = stored(large.distinct())
            least_of = stored(
                rows.groupBy("src").agg(F.min("dst").alias("least"), F.count("*").alias("often"))
            )
            small = rows.join(least_of, "src").select(F.col("least").alias("src"), "dst").where("src <> dst")
            own = least_of.select(F.col("least").alias("src"), F.col("src").alias("dst"))
            rows = small.union(own).distinct()
            if rounds % CHECKPOINT_INTERVAL == 0:
                rows.write.parquet(str(folder / str(rounds)))
                rows = session.read.parquet(str(folder / str(rounds)))
            rows = stored(rows)
            least_of = stored(least_neighbours(rows))
            before, now = now, sum_of(least_of)
            for frame in last:
                frame.unpersist()
        label = F.coalesce(F.col("src"), F.col("id")).alias("component")
        found = vertices.join(rows, F.col("id") == F.col("dst"), "left_outer").select("id", label).persist()
        found.count()
        for frame in made:
            frame.unpersist()
        return found, rounds
    finally:
        session.conf.set("spark.sql.adaptive.enabled", adaptive)


class _RoundsTold(logging.Handler):
    """The number of the last round with new rows, as ``spark_bridge`` tells it."""

    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        told = re.search(r"round ([\d,]+), ([\d,]+) new", record.getMessage())
        if told is not None and told[2] != "0":
            self.number = int(told[1].replace(",", ""))


def sides(edges: DataFrame) -> dict[str, Callable[[], tuple[DataFrame, int | None]]]:
    """What finds the vertices of a graph with their labels, and in how many rounds."""
    from spark_bridge import join

    def by_rounds() -> tuple[DataFrame, int]:
        log, told = logging.getLogger("spark_bridge.recursion.rounds"), _RoundsTold()
        log.setLevel(logging.INFO)
        log.addHandler(told)
        try:
            return join(RULE, {"edge": edges}, partitions=PARTITIONS), told.number
        finally:
            log.removeHandler(told)

    return {
        "two-phase": lambda: two_phase(edges, Path(tempfile.mkdtemp())),
        "join, by rounds": by_rounds,
        "join, one task": lambda: (join(RULE, {"edge": edges}, partitions=PARTITIONS, shares={}), None),
    }


def measure(session: SparkSession, name: str, table: pa.Table, times: int = 3) -> list[str]:
    """A line for each side of a graph, of ``times`` runs; raises AssertionError for other labels."""
    folder = Path(tempfile.mkdtemp()) / "edges"
    session.createDataFrame(table).repartition(PARTITIONS).write.parquet(str(folder))
    found = sides(session.read.parquet(str(folder)))
    if name == PATH:
        del found["join, by rounds"]
    labels: dict[str, list[tuple[int, int]]] = {}
    took: dict[str, list[tuple[float, float]]] = {side: [] for side in found}
    rounds: dict[str, int | None] = {}
    for _ in range(times):
        for side, run in found.items():
            clock, processor = time.perf_counter(), processor_seconds()
            frame, rounds[side] = run()
            frame.count()
            took[side].append((time.perf_counter() - clock, processor_seconds() - processor))
            labels[side] = sorted(map(tuple, frame.collect()))
            frame.unpersist()
        assert all(each == labels["two-phase"] for each in labels.values()), f"{name}: the sides differ"
    lines = []
    for side, each in took.items():
        seconds, processor = (statistics.median(column) for column in zip(*each, strict=True))
        said = "no rounds" if rounds[side] is None else f"{rounds[side]} rounds"
        lines.append(f"{name}: {side}: {seconds:.1f} s, processor {processor:.1f} s, {said}")
    return lines


def main() -> int:
    from bench.peers.spark_engine import Spark

    session = Spark(2, {"spark.sql.shuffle.partitions": str(PARTITIONS)}).session
    for name, graph in GRAPHS.items():
        for line in measure(session, name, graph()):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
