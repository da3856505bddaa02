"""A pipeline under load in fast motion, and the memory that it takes meanwhile.

    python -m bench.sources --load 3600

prints a line each ``EVERY`` seconds, and in the end whether memory is flat.  A writer changes rows of a table
of PostgreSQL as quickly as they are taken, in transactions of ``ROWS``; it has ``KEYS`` keys, so that what
there is to hold stays the same.  One thread pulls, another pushes a head to a table of the same server; the
workspace is in a folder on disk.  In the end the relation is compared with the table, and the head with the
sink's.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.postgres_server import Server, running
from bench.report.machine import describe
from bench.report.markdown import table
from maintenance import Workspace
from maintenance.sinks.postgres import to_postgres
from maintenance.sources.postgres import postgres

KEYS, GROUPS, ROWS = 20_000, 500, 100

MOST_BACKLOG = 4 << 20
"""Bytes of the server's log that may wait: the writer does."""

EVERY = 5.0
"""Seconds between two looks, or what makes twenty of them."""

FLAT = 0.1
"""By so much of it memory may be larger in the last quarter of the time than in the second one."""


@dataclass(frozen=True)
class Look:
    """``rows``: taken so far; ``resident``, ``held``, ``folder``: bytes of the process, workspace, files."""

    seconds: float
    commits: int
    rows: int
    resident: int
    held: int
    folder: int
    backlog: int


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def load(server: Server, seconds: float, say: Callable[[Look], object] = lambda look: None) -> list[Look]:
    """What was seen.  Raises AssertionError where rows are lost or doubled, and what the pipeline raises."""
    import psycopg

    with (
        tempfile.TemporaryDirectory() as folder,
        psycopg.connect(server.dsn, autocommit=True) as connection,
        Workspace.open(Path(folder) / "ws") as workspace,
    ):
        connection.execute("CREATE TABLE stock (k bigint PRIMARY KEY, g bigint NOT NULL, n bigint NOT NULL)")
        connection.execute("CREATE PUBLICATION stocks FOR TABLE stock")
        source, sink = postgres(server.dsn, "stocks"), to_postgres(server.dsn, "total", key=["g"])
        for _ in source.pull(workspace, timeout=0):
            pass
        workspace.install("total[g] = sum(n) <- stock(_, g, n).")
        done: Counter[str] = Counter()
        failed: list[BaseException] = []

        def pull() -> None:
            for transaction in source.pull(workspace):
                done["commits"] += 1
                done["rows"] += sum(transaction.stats.inserted.values())

        def push() -> None:
            for _ in sink.push(workspace):
                done["changes"] += 1

        threads = started(failed, pull, push)
        looks: list[Look] = []
        begun, every = time.monotonic(), min(EVERY, seconds / 20)
        for statement in _statements():
            past = time.monotonic() - begun
            if past >= len(looks) * every:
                held = sum(workspace.stats.memory_bytes.values())
                in_folder = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
                backlog = source.backlog() or 0
                look = Look(past, done["commits"], done["rows"], _resident(), held, in_folder, backlog)
                looks.append(look)
                say(look)
            if past >= seconds or failed:
                break
            while (source.backlog() or 0) > MOST_BACKLOG and not failed:
                time.sleep(0.001)
            connection.execute(*statement)
        _ended(connection, workspace, failed)
        source.stop()
        sink.stop()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        _check(workspace["stock"], connection.execute("SELECT * FROM stock").fetchall())
        _check(workspace["total"], connection.execute("SELECT * FROM total").fetchall())
        workspace.verify()
    return looks


def started(failed: list[BaseException], *loops: Callable[[], None]) -> list[threading.Thread]:
    """Threads that run loops; what one raises comes to ``failed``."""

    def run(loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(loop,)) for loop in loops]
    for thread in threads:
        thread.start()
    return threads


def _statements() -> Iterator[tuple[Any, ...]]:
    """Changes of some rows, for ever."""
    chosen = random.Random(1)
    upsert = (
        "INSERT INTO stock SELECT (i * 7919 + %(a)s) %% %(keys)s, (i + %(b)s) %% %(groups)s, %(b)s"
        " FROM generate_series(1, %(rows)s) i ON CONFLICT (k) DO UPDATE SET g = excluded.g, n = excluded.n"
    )
    while True:
        numbers = {"a": chosen.randrange(KEYS), "b": chosen.randrange(10**6)}
        yield upsert, {**numbers, "keys": KEYS, "groups": GROUPS, "rows": ROWS}
        if chosen.random() < 0.1:
            yield "DELETE FROM stock WHERE k BETWEEN %(a)s AND %(a)s + 20", numbers


def _ended(connection: Any, workspace: Workspace, failed: list[BaseException]) -> None:
    """Wait until what was written is in the sink's table: a last row's group is."""
    last = GROUPS + 1
    connection.execute("INSERT INTO stock VALUES (%s, %s, 1)", [KEYS + 1, last])
    while not failed and not connection.execute("SELECT 1 FROM total WHERE g = %s", [last]).fetchone():
        time.sleep(0.01)


def _check(found: Any, wanted: list[tuple[Any, ...]]) -> None:
    rows = Counter(tuple(map(int, row)) for row in found)
    if rows != Counter(tuple(map(int, row)) for row in wanted):
        raise AssertionError("rows differ from the server's")


def growth(looks: list[Look]) -> float:
    """By how much of it the memory of the process is larger in the last quarter than in the second one."""
    quarter = len(looks) // 4
    second, last = looks[quarter : 2 * quarter], looks[-quarter:]
    before = sum(look.resident for look in second) / len(second)
    return sum(look.resident for look in last) / len(last) / before - 1.0


def report_load(seconds: float) -> str:
    """The page of a run; its lines are printed while it goes on."""
    machine = describe()
    with running("wal_level=logical", "max_wal_size=1GB") as server:
        looks = load(server, seconds, lambda look: print(*_shown(look), sep="  ", flush=True))
    rate, grown = looks[-1].rows / looks[-1].seconds, growth(looks)
    every = max(1, len(looks) // 20)
    return "\n\n".join(
        [
            "# A pipeline under load",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']}."
            f" Load at the start {machine['load']}.",
            table(list(_TITLES), [_shown(look) for look in looks[::every]]),
            f"{rate:,.0f} rows a second over {looks[-1].seconds:,.0f} s; in the last quarter the process has"
            f" {grown:+.1%} of memory beside the second: {'flat' if grown <= FLAT else 'not flat'}.",
        ]
    )


_TITLES = ("seconds", "commits", "rows", "process, MB", "workspace, MB", "folder, MB", "backlog, kB")


def _shown(look: Look) -> list[str]:
    sizes = [f"{size / 1e6:,.1f}" for size in (look.resident, look.held, look.folder)]
    backlog = f"{look.backlog / 1e3:,.0f}"
    return [f"{look.seconds:,.0f}", f"{look.commits:,}", f"{look.rows:,}", *sizes, backlog]
