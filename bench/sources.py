"""Sources and sinks: rows a second from a server to a head, and how long a change is on its way.

    python -m bench.sources [--quick] [--load SECONDS]

writes ``sources/results.md`` into ``bench/results/`` (``--quick``: few rows, only printed); ``--load`` runs
:mod:`bench.sources_load` in its place, for an hour or any number of seconds, and writes ``sources/load.md``.

A PostgreSQL of its own, without waits for the disk, has a table of two integers with a key; the workspace is
in a folder and keeps a count by one of them.  What the server has done already is pulled: the time is that of
its decoding, the way, and the commits.  Then a writer commits single rows at a rate while one thread pulls
and another pushes the head to a table of the same server: a change is on its way from the return of the
writer's commit to that of the sink's.  Kafka is confluent's mock, and that and the client of Arrow Flight are
within this process.  What came is compared with what was sent, before anything is reported.  Clock time, and
processor time of this process, which on the way from Kafka has the cluster's in it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from bench.postgres_server import Server, running
from bench.report.machine import describe
from bench.report.markdown import table
from bench.report.page import is_quick, show
from bench.sources_load import report_load, started
from maintenance import Workspace
from maintenance.serving.service import FlightService
from maintenance.sinks.postgres import to_postgres
from maintenance.sources.kafka import kafka
from maintenance.sources.postgres import postgres
from maintenance.sources.source import Source

SETTINGS = ("wal_level=logical", "max_wal_size=4GB")
RATE, SECONDS = 1000, 5.0
BATCH = 1_000
"""Rows of a batch that Flight brings."""

FILLED = {
    "one transaction": ["INSERT INTO edge SELECT i, i % 1000 FROM generate_series(1, {n}) i"],
    "transactions of 100 rows": [
        "DO $$ BEGIN FOR k IN 0 .. {n} / 100 - 1 LOOP INSERT INTO edge SELECT k * 100 + i, i"
        " FROM generate_series(1, 100) i; COMMIT; END LOOP; END $$"
    ],
    "updates, one transaction": [
        "INSERT INTO edge SELECT i, i % 1000 FROM generate_series(1, {n}) i",
        "UPDATE edge SET b = b + 1",
    ],
}
"""How the server comes to its rows; the last statement's are measured."""


@dataclass
class Pulled:
    """Rows, and the seconds they took by the clock and of this process; ``commits``: in so many."""

    rows: int
    seconds: float
    processor: float
    commits: int


@contextmanager
def _folder() -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory() as made, Workspace.open(Path(made) / "ws") as workspace:
        yield workspace


def _pull(source: Source, workspace: Workspace, rows: int) -> Pulled:
    started, processor, commits = time.perf_counter(), time.process_time(), 0
    for _ in source.pull(workspace, timeout=0):
        commits += 1
    seconds = time.perf_counter() - started
    return Pulled(rows, seconds, time.process_time() - processor, commits)


def _check(found: set[Any], wanted: set[Any]) -> None:
    if found != wanted:
        raise AssertionError(f"{len(found ^ wanted):,} rows differ from the upstream's")


def from_postgres(server: Server, statements: list[str], n: int) -> Pulled:
    """Raises AssertionError where the relation is not the table."""
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as connection, _folder() as workspace:
        for clean in ("DROP PUBLICATION IF EXISTS p", "DROP TABLE IF EXISTS edge"):
            connection.execute(clean)
        connection.execute("CREATE TABLE edge (a bigint PRIMARY KEY, b bigint NOT NULL)")
        connection.execute("CREATE PUBLICATION p FOR TABLE edge")
        source = postgres(server.dsn, "p")
        _pull(source, workspace, 0)
        workspace.install("n[b] = count() <- edge(_, b).")
        for statement in statements:
            _pull(source, workspace, 0)
            connection.execute(statement.format(n=n))
        measured = _pull(source, workspace, n)
        _check(set(workspace["edge"]), set(connection.execute("SELECT a, b FROM edge").fetchall()))
        workspace.verify()
        connection.execute("SELECT pg_drop_replication_slot(%s)", [source.slot])
    return measured


def from_kafka(n: int) -> Pulled:
    """Raises AssertionError where a message is not in, or is twice."""
    from confluent_kafka import Producer

    config = {"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0}
    producer = Producer({**config, "queue.buffering.max.messages": 1_000_000})
    brokers = producer.list_topics(timeout=20).brokers.values()
    schema = pa.schema({"auction": pa.int64(), "price": pa.int64(), "id": pa.int64()})
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    with _folder() as workspace:
        workspace.load("bid", schema.empty_table())
        workspace.install("total[a] = sum(p) <- bid(a, p, _).")
        source = kafka(servers, "bids", "bid")
        for first in (0, n):  # the first time is not measured: kernels are loaded then
            for i in range(first, first + n):
                text = b'{"auction": %d, "price": %d, "id": %d}' % (i % 500, i % 997, i)
                producer.produce("bids", text, partition=i % 2)
                producer.poll(0)
            producer.flush(60)
            measured = _pull(source, workspace, n)
        _check(set(workspace["bid"]), {(i % 500, i % 997, i) for i in range(2 * n)})
    return measured


def through_flight(n: int) -> tuple[Pulled, Pulled]:
    """Put in batches, each acknowledged, and taken out at once.  Raises AssertionError where rows differ."""
    schema = pa.schema({"id": pa.int64(), "price": pa.int64()})
    ids = np.arange(n).reshape(-1, BATCH)
    batches = [pa.record_batch([its, its % 997], schema=schema) for its in ids]
    with _folder() as workspace:
        workspace.load("bid", schema.empty_table())
        workspace.install("n[p] = count() <- bid(_, p).")
        with FlightService(workspace) as service, flight.connect(service.address) as client:
            started, processor = time.perf_counter(), time.process_time()
            writer, acknowledged = client.do_put(flight.FlightDescriptor.for_path("bid"), schema)
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                    acknowledged.read()
                writer.done_writing()
            seconds = time.perf_counter() - started
            put = Pulled(n, seconds, time.process_time() - processor, len(batches))
            started, processor = time.perf_counter(), time.process_time()
            found = client.do_get(flight.Ticket(b'{"relation": "bid"}')).read_all()
            seconds = time.perf_counter() - started
            got = Pulled(n, seconds, time.process_time() - processor, 0)
    _check(set(zip(*found.to_pydict().values(), strict=True)), {(i, i % 997) for i in range(n)})
    return put, got


def on_the_way(server: Server, rate: int, seconds: float) -> np.ndarray:
    """Seconds from a commit in the server to that of the sink there, for each row.  Raises AssertionError."""
    import psycopg

    n, sent, arrived = int(rate * seconds), dict[int, float](), dict[int, float]()
    failed: list[BaseException] = []
    with psycopg.connect(server.dsn, autocommit=True) as connection, _folder() as workspace:
        connection.execute("CREATE TABLE tick (a bigint PRIMARY KEY)")
        connection.execute("CREATE PUBLICATION ticks FOR TABLE tick")
        source, sink = postgres(server.dsn, "ticks"), to_postgres(server.dsn, "seen", key=["a"])
        _pull(source, workspace, 0)
        workspace.install("seen(a, b) <- tick(a), b = a + 1.")
        for _ in sink.push(workspace, timeout=0):
            pass

        def pull() -> None:
            for _ in source.pull(workspace, timeout=2.0):
                pass

        def push() -> None:
            for change in sink.push(workspace, timeout=2.0):
                arrived.update(dict.fromkeys(change.table.column("a").to_pylist(), time.perf_counter()))

        threads = started(failed, pull, push)
        begun = time.perf_counter()
        for number in range(n):
            time.sleep(max(0.0, begun + number / rate - time.perf_counter()))
            connection.execute("INSERT INTO tick VALUES (%s)", [number])
            sent[number] = time.perf_counter()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        _check(set(connection.execute("SELECT a FROM seen").fetchall()), {(number,) for number in range(n)})
    return np.array([arrived[number] - sent[number] for number in range(n // 10, n)])


def report(quick: bool) -> str:
    """The page."""
    machine, rows = describe(), []
    n, seconds = (5_000, 1.0) if quick else (200_000, SECONDS)
    with running(*SETTINGS) as server:
        for name, statements in FILLED.items():
            rows.append((f"PostgreSQL, {name}", from_postgres(server, statements, n)))
        way = 1000 * on_the_way(server, RATE, seconds)
    rows.append(("Kafka, JSON of three integers", from_kafka(n)))
    put, got = through_flight(n)
    rows += [(f"Flight, put in batches of {BATCH:,}", put), ("Flight, got", got)]
    shown = [
        [
            name,
            f"{each.rows:,}",
            f"{each.commits:,}",
            f"{each.rows / each.seconds:,.0f}",
            f"{1e6 * each.processor / each.rows:.1f}",
        ]
        for name, each in rows
    ]
    p50, p99 = np.percentile(way, [50, 99])
    return "\n\n".join(
        [
            "# Sources and sinks",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']}."
            f" Load at the start {machine['load']}.",
            table(["what came", "rows", "commits", "rows/s", "processor, µs a row"], shown),
            f"From a commit in PostgreSQL to the row in the sink's table, at {RATE:,} commits a second of one"
            f" row for {seconds:.0f} s: p50 {p50:.1f} ms, p99 {p99:.1f} ms.",
        ]
    )


def main() -> None:
    if "--load" in sys.argv[1:]:
        seconds = float(sys.argv[sys.argv.index("--load") + 1])
        show(report_load(seconds), "sources/load.md")
        return
    show(report(is_quick()), "sources/results.md")


if __name__ == "__main__":
    main()
