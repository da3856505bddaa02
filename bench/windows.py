"""Streams with a window: events a second, and whether rate and memory stay what they are as time goes on.

    python -m bench.windows [--quick]

writes ``results.md`` into ``bench/results/windows/`` (``--quick``: few events, only printed).

Trades come in transactions of 1,000, one a millisecond, up to two seconds out of order; a stream keeps the
last 100 seconds, so 100,000 of them.  Each rule is kept in a workspace of its own.  Beside it DuckDB, at each
tenth of the way: the same transaction on a table with the same window, and the query anew; the answers are
compared.  What closes is compared at the end, with DuckDB over all events.  One thread, processor time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.memory import resident_bytes
from bench.report.page import is_quick, show
from maintenance import Workspace

BATCH, KEEP, LATE = 1000, 100_000, 2000
"""Events, and milliseconds."""

RULES = {
    "a sum for each of 100": (
        "h[s] = sum(q) <- trade(s, q, _, _).",
        "select s, sum(q)::bigint from trade group by s",
    ),
    "pairs within 3 ms": (
        "h(e, f) <- trade(s, _, t, e), trade(s, _, u, f), u > t, u <= t + 3ms.",
        "select a.e, b.e from trade a join trade b"
        " on a.s = b.s and b.t > a.t and b.t <= a.t + interval 3 milliseconds",
    ),
    "sums of windows of 1 s, each told once when it closes": (
        "h[s, w] = sum(q) <- trade(s, q, t, _), w = tumble(t, 1s). final h at w + 1s.",
        "select s, time_bucket(interval 1 second, t) w, sum(q)::bigint from trade group by all",
    ),
}


def batches(n_events: int) -> Iterator[pa.Table]:
    """Of trades: 100 items, 1 to 9 pieces, a time, a number."""
    random = np.random.default_rng(0)
    for first in range(0, n_events, BATCH):
        numbers = np.arange(first, first + BATCH)
        times = 1_700_000_000_000 + numbers - random.integers(0, LATE, BATCH)
        columns = [random.integers(0, 100, BATCH), random.integers(1, 10, BATCH)]
        yield pa.table([*columns, pa.array(times, pa.timestamp("ms")), numbers], names=["s", "q", "t", "e"])


@dataclass
class Measured:
    """Seconds and memory of each tenth."""

    seconds: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)


def measured(rules: str, sql: str, n_events: int) -> Measured:
    """Raises AssertionError for an answer that is not DuckDB's."""
    closes = "final" in rules
    workspace, peer, found = Workspace(), duckdb.connect(config={"threads": 1}), Measured()
    all_batches = list(batches(n_events))
    workspace.load("trade", all_batches[0], time="t", lateness="2s", keep="100s")
    workspace.install(rules)
    told: list[pa.Table] = []
    if closes:
        workspace.subscribe("h_final", lambda table: told.append(table.drop_columns("weight")))
    tenth = len(all_batches) // 10
    for part in range(10):
        spent = 0.0
        for batch in all_batches[max(1, part * tenth) : (part + 1) * tenth]:
            started = time.process_time()
            with workspace.transaction() as tx:
                tx.insert("trade", batch)
            spent += time.process_time() - started
        found.seconds.append(spent)
        found.memory.append(resident_bytes())
        found.held.append(len(workspace["trade"]))
        found.peer.append(_beside(workspace, peer, sql, all_batches[(part + 1) * tenth - 1], closes))
    if closes:
        _check_closed(workspace, peer, sql, told, all_batches[: 10 * tenth])
    return found


def _beside(
    workspace: Workspace, peer: duckdb.DuckDBPyConnection, sql: str, batch: pa.Table, closes: bool
) -> float:
    """What DuckDB takes for a batch over the rows that the workspace holds."""
    held = workspace["trade"].to_arrow()
    peer.register("held", held)
    peer.execute("create or replace table trade as select * from held where e not in (select e from batch)")
    started = time.process_time()
    peer.execute("insert into trade select * from batch")
    peer.execute("delete from trade where t < (select min(t) from held)")
    answer = peer.sql(sql).to_arrow_table()
    spent = time.process_time() - started
    if not closes and sorted(_tuples(answer)) != sorted(workspace["h"]):
        raise AssertionError(f"another answer than DuckDB's: {sql}")
    return spent


def _check_closed(
    workspace: Workspace,
    peer: duckdb.DuckDBPyConnection,
    sql: str,
    told: list[pa.Table],
    every: list[pa.Table],
) -> None:
    peer.register("every", pa.concat_tables(every))
    peer.execute("create or replace table trade as select * from every")
    second = pa.scalar(workspace.now, pa.timestamp("ms")).as_py()
    query = f"select * from ({sql}) where w + interval 1 second <= '{second}'"
    right, closed = sorted(peer.execute(query).fetchall()), sorted(_tuples(pa.concat_tables(told)))
    if closed != right or len(workspace["h_final"]) != len(right):
        raise AssertionError(f"{len(closed)} windows closed, where DuckDB has {len(right)}")


def _tuples(rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def report(quick: bool) -> str:
    """The table."""
    machine, rows, n_events = describe(), [], 20_000 if quick else 2_000_000
    for name, (rules, sql) in RULES.items():
        found = measured(rules, sql, n_events)
        a_tenth = n_events / 10
        rates = [a_tenth / seconds for seconds in found.seconds]
        full = [size for size in found.held if size >= KEEP] or found.held
        rows.append(
            [
                name,
                f"{n_events / sum(found.seconds):,.0f} ({min(rates):,.0f} - {max(rates):,.0f})",
                f"{BATCH / (sum(found.peer) / len(found.peer)):,.0f}",
                f"{full[0]:,} - {full[-1]:,}",
                f"{number(found.memory[1] / 1e6)} - {number(found.memory[-1] / 1e6)}",
            ]
        )
    heads = ["kept", "events/s (tenths)", f"DuckDB {duckdb.__version__} anew, events/s", "rows held"]
    return "\n\n".join(
        [
            "# Streams with a window",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            f"{n_events:,} trades in transactions of {BATCH:,}. Rate of all, and the least and greatest of a"
            " tenth; memory of the process behind the second and last tenth, with DuckDB and all trades.",
            table([*heads, "memory, MB"], rows),
        ]
    )


def main() -> None:
    show(report(is_quick()), "windows/results.md")


if __name__ == "__main__":
    main()
