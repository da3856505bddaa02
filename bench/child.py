"""The process that measures one engine on one workload; ``bench.report.measurement`` starts it.

It reads one line of JSON from its standard input, the :class:`Assignment`, and
writes one line of JSON per event to its standard output:

    ready     the engine is imported and open; seconds, bytes
    loaded    the tables are in; seconds
    answer    the first run is over; seconds, count
    checksum  of its results; the sum, or null where the engine tells none
    run       a timed run is over; seconds, seconds of processor time
    alive     something that is not timed is over, such as the trial of a setting
    figures   what else was counted; figures by name
    done      all is over; peak memory in bytes
    failed    an exception; its message.  Nothing follows

Invariants

1. After an answer or a checksum that differs from the expected one, nothing is timed.
2. The process ends when its standard input closes: no child outlives the harness.
3. Whatever an engine prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.engine import Engine, engine_class
from bench.report.memory import peak_bytes
from bench.report.repetition import repeated
from bench.workload import IN_SPARK, MAINTENANCE, Workload
from bench.workloads import named

Tables = Mapping[str, Path | pa.Table]


@dataclass(frozen=True)
class Assignment:
    """What a child measures.

    Attributes:
        workload: A name of :func:`bench.workloads.named`.
        engine: An engine's name or engine:variant.
        files: Relation name to Parquet file.
        runs: The least number of timed runs after the first one.
        spend: Seconds of timed runs after which no more than ``runs`` are made.
    """

    workload: str
    engine: str
    files: dict[str, str]
    runs: int
    spend: float


def _run_once(engine_type: type[Engine], workload: Workload, query: str) -> Callable[[Engine, Tables], int]:
    """What one timed run does; its result is the count."""

    def count(engine: Engine, tables: Tables) -> int:
        return engine.count(query)

    def rows(engine: Engine, tables: Tables) -> int:
        return engine.rows(query)

    def tables_to_count(engine: Engine, tables: Tables) -> int:
        fresh = engine_type(engine.threads)
        fresh.load(tables, workload.ends)
        return fresh.count(query)

    def load(engine: Engine, tables: Tables) -> int:
        fresh = engine_type(engine.threads)
        fresh.load(tables, workload.ends)
        return fresh.index(query)

    return {
        "count": count,
        "list": rows,
        "tables to count": tables_to_count,
        "bulk load": tables_to_count,
        "load": load,
    }[workload.task]


def measure(assignment: Assignment, report: Callable[[dict[str, Any]], None]) -> None:
    """Measure, reporting each event as soon as it is over."""
    workload = named(assignment.workload)
    name = assignment.engine.partition(":")[0]
    if workload.task in IN_SPARK:
        _measure_in_spark(workload, assignment, report)
        return
    if workload.task == "sums" or (workload.task in MAINTENANCE and name == "lftj"):
        _measure_maintained(workload, assignment, report)
        return
    started = time.perf_counter()
    with closing(engine_class(name)(workload.threads)) as engine:
        report({"event": "ready", "seconds": time.perf_counter() - started, "bytes": peak_bytes()})
        _measure_engine(workload, assignment, engine, report)


def _measure_engine(
    workload: Workload, assignment: Assignment, engine: Engine, report: Callable[[dict[str, Any]], None]
) -> None:
    """The events of one question after that."""
    tables: dict[str, Path | pa.Table] = {name: Path(file) for name, file in assignment.files.items()}
    if workload.task in ("tables to count", "bulk load"):
        tables = {name: pq.read_table(file) for name, file in tables.items()}
    if workload.task in ("count", "list"):
        started = time.perf_counter()
        engine.load(tables, workload.ends)
        report({"event": "loaded", "seconds": time.perf_counter() - started})

    run = _run_once(type(engine), workload, workload.queries[assignment.engine])
    started = time.perf_counter()
    answer = run(engine, tables)
    first = time.perf_counter() - started
    report({"event": "answer", "seconds": first, "count": answer})
    checksum = None
    if workload.checksum is not None:
        checksum = engine.checksum(workload.queries[assignment.engine])
        report({"event": "checksum", "checksum": checksum})
    if answer == workload.expected and checksum in (None, workload.checksum):
        for seconds, processor in repeated(
            lambda: run(engine, tables), assignment.runs, assignment.spend, busy=engine.processor_seconds
        ):
            report({"event": "run", "seconds": seconds, "processor": processor})
    report({"event": "done", "bytes": engine.peak_bytes() or peak_bytes()})


def _measure_maintained(
    workload: Workload, assignment: Assignment, report: Callable[[dict[str, Any]], None]
) -> None:
    """The same events for rules that are kept up to date, by lftj or by a peer."""
    started = time.perf_counter()
    tables = {name: pq.read_table(file) for name, file in assignment.files.items()}
    found = _maintained(workload, assignment.engine, tables)
    report({"event": "ready", "seconds": time.perf_counter() - started, "bytes": peak_bytes()})
    if workload.task != "bulk load":
        started = time.perf_counter()
        found.load()
        report({"event": "loaded", "seconds": time.perf_counter() - started})
    started = time.perf_counter()
    answer = found.first()
    report({"event": "answer", "seconds": time.perf_counter() - started, "count": answer})
    if answer == workload.expected:
        for seconds, processor in found.times(assignment.runs, assignment.spend):
            report({"event": "run", "seconds": seconds, "processor": processor})
        report({"event": "figures", "figures": found.figures()})
    report({"event": "done", "bytes": peak_bytes()})


def _measure_in_spark(
    workload: Workload, assignment: Assignment, report: Callable[[dict[str, Any]], None]
) -> None:
    """The same events for what runs in a Spark session; memory is that of the JVM and the workers too."""
    from bench.spark.subject import spark_subject

    started = time.perf_counter()
    subject = spark_subject(workload, assignment.engine, assignment.files)
    report({"event": "ready", "seconds": time.perf_counter() - started, "bytes": subject.bytes()})
    started = time.perf_counter()
    subject.load()
    report({"event": "loaded", "seconds": time.perf_counter() - started})
    started = time.perf_counter()
    answer = subject.first()
    report({"event": "answer", "seconds": time.perf_counter() - started, "count": answer})
    if answer == workload.expected:
        for times in subject.times(assignment.runs, assignment.spend):
            if times is None:
                report({"event": "alive"})
            else:
                report({"event": "run", "seconds": times[0], "processor": times[1]})
        report({"event": "figures", "figures": subject.figures()})
    most = subject.bytes()
    subject.close()
    report({"event": "done", "bytes": most})


def _maintained(workload: Workload, engine: str, tables: Mapping[str, pa.Table]) -> Any:
    """What has ``load``, ``first``, ``times`` and ``figures``."""
    if workload.task == "sums":
        from bench.maintenance.signed_sums_run import DuckSums, MaintainedSums

        return (MaintainedSums if engine == "lftj" else DuckSums)(workload, tables)
    if workload.task == "window":
        from bench.maintenance.edge_window import Window

        return Window(workload, tables)
    from bench.maintenance.maintained import subject

    return subject(workload, engine.partition(":")[2], tables)


def _end_with_parent() -> None:
    """Leave as soon as standard input closes: the harness is gone or wants no more."""
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Read the assignment, measure, report."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    assignment = Assignment(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def report(event: dict[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    try:
        measure(assignment, report)
    except Exception as error:
        report({"event": "failed", "message": f"{type(error).__name__}: {error}"})
    channel.flush()
    os._exit(0)  # the thread above still waits


if __name__ == "__main__":
    main()
