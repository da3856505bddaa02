"""Which class measures which engine on which kind of Spark workload."""

from __future__ import annotations

from collections.abc import Mapping

from bench.spark.batches import Batches, ChangedGraph
from bench.spark.run import OneQuery, SparkSubject
from bench.spark.state import stream
from bench.workload import Workload


def spark_subject(workload: Workload, engine: str, files: Mapping[str, str]) -> SparkSubject:
    """What is timed for an engine on a workload; a session is open, nothing is loaded."""
    if workload.task == "spark stream":
        return stream(workload, engine, files)
    if workload.task == "spark batches":
        return (Batches if engine in ("lftj", "lftj:driver") else ChangedGraph)(workload, engine, files)
    return OneQuery(workload, engine, files)
