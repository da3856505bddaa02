"""``python -m bench.nexmark``: the 24 queries of Nexmark kept as rules and as SQL, beside DuckDB anew.

    python -m bench.nexmark                        all, 400,000 events; results.md into bench/results/nexmark/
    python -m bench.nexmark --quick                20,000 events
    python -m bench.nexmark --only q5 --only q7    queries whose name this is
    python -m bench.nexmark --events 2000000

The last quarter of the events comes in transactions of 1,000; the others are loaded before.  A transaction is
done when its changes of the result are there as a table.  DuckDB inserts the same rows and asks anew, at some
of the transactions, where the answers are compared.  One thread, processor time.

A selection writes into bench/results/selection/ or, with ``--quick``, bench/results/quick/.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.nexmark.events import Tables, events, transactions
from bench.nexmark.peer import check
from bench.nexmark.queries import QUERIES, Query
from bench.report.machine import as_markdown, describe
from bench.report.markdown import table
from bench.report.options import results_folder
from maintenance import Workspace

EVENTS, QUICK = 400_000, 20_000
SIZE = 1_000
"""Events of a transaction."""
ASKED, WARMING = 5, 4
"""How often DuckDB is asked, and transactions before those that are timed."""


@dataclass
class Measured:
    """Seconds of a transaction: kept as rules and as SQL, and DuckDB's."""

    kept: dict[str, list[float]] = field(default_factory=lambda: {"rules": [], "sql": []})
    peer: list[float] = field(default_factory=list)

    def rate(self, written: str) -> float:
        """Events a second."""
        return SIZE / statistics.mean(self.kept[written])

    @property
    def peer_rate(self) -> float:
        return SIZE / statistics.mean(self.peer)

    def ratio(self, written: str) -> float:
        return self.rate(written) / self.peer_rate


def measured(query: Query, tables: Tables, n_events: int) -> Measured:
    """Raises AssertionError where a result is not DuckDB's answer."""
    first = n_events * 3 // 4 // SIZE * SIZE
    before = next(transactions(tables, 0, first))
    batches = list(transactions(tables, first, SIZE))
    every = max(len(batches) // ASKED, 1)
    found, peer, kept = Measured(), _peer(query, before), _kept(query, before)
    for number, batch in enumerate(batches, 1):
        for written, workspace in kept.items():
            seconds = _transaction(workspace, batch)
            if number > min(WARMING, len(batches) // 4):
                found.kept[written].append(seconds)
        started = time.process_time()
        _insert(peer, batch)
        if number % every == 0:
            answer = peer.sql(query.peer).to_arrow_table()
            found.peer.append(time.process_time() - started)
            for written, workspace in kept.items():
                check(f"{query.name} as {written}", workspace["out"].to_arrow(), answer)
    return found


def _kept(query: Query, before: Tables) -> dict[str, Workspace]:
    kept = {"rules": Workspace(), "sql": Workspace()}
    for workspace in kept.values():
        for name, rows in {**before, **query.tables}.items():
            workspace.load(name, rows)
    kept["rules"].install(query.rules)
    kept["sql"].create_view("out", query.sql)
    return kept


def _transaction(workspace: Workspace, batch: Tables) -> float:
    started = time.process_time()
    with workspace.transaction() as tx:
        for name, rows in batch.items():
            tx.insert(name, rows)
    changed: pa.Table = tx.changes["out"]
    assert changed.num_columns
    return time.process_time() - started


def _peer(query: Query, before: Tables) -> duckdb.DuckDBPyConnection:
    peer = duckdb.connect(config={"threads": 1})
    for name, rows in {**before, **query.tables}.items():
        peer.register("coming", rows)
        peer.execute(f"CREATE TABLE {name} AS FROM coming")
    return peer


def _insert(peer: duckdb.DuckDBPyConnection, batch: Tables) -> None:
    peer.execute("BEGIN")
    for name, rows in batch.items():
        peer.register("coming", rows)
        peer.execute(f"INSERT INTO {name} FROM coming")
    peer.execute("COMMIT")


def _figures(of: Measured) -> list[str]:
    rates = [*(of.rate(written) for written in of.kept), of.peer_rate]
    return [*(f"{rate:,.0f}" for rate in rates), *(f"{of.ratio(written):.1f}" for written in of.kept)]


def report(found: Mapping[str, Measured]) -> str:
    """The table, and the means."""
    rows = [[name, *_figures(of)] for name, of in found.items()]
    heads = [
        "query",
        "rules, events/s",
        "SQL, events/s",
        "DuckDB anew, events/s",
        "rules/DuckDB",
        "SQL/DuckDB",
    ]
    means = {
        written: statistics.geometric_mean(of.ratio(written) for of in found.values())
        for written in ("rules", "sql")
    }
    ahead = {written: sum(of.ratio(written) > 1 for of in found.values()) for written in means}
    return "\n\n".join(
        [
            table(heads, rows),
            f"Geometric mean over DuckDB: {means['rules']:.2f} for rules, {means['sql']:.2f} for SQL;"
            f" ahead in {ahead['rules']} and {ahead['sql']} of {len(found)}.",
        ]
    )


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.nexmark", description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, metavar="N", help=f"in all (default {EVENTS:,})")
    parser.add_argument("--only", action="append", default=[], choices=QUERIES, help="a query; repeatable")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} events")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go; in bench/results")
    chosen = parser.parse_args(arguments)
    if chosen.events is not None and chosen.events < 8 * SIZE:
        parser.error(f"--events: {8 * SIZE:,} at least")
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.  Raises AssertionError where a result is not DuckDB's answer."""
    chosen = _arguments(arguments)
    n_events = chosen.events or (QUICK if chosen.quick else EVENTS)
    tables = events(n_events)
    found = {}
    for name in chosen.only or QUERIES:
        found[name] = measured(QUERIES[name], tables, n_events)
        print(f"{name}: {' | '.join(_figures(found[name]))}", file=sys.stderr)
    text = "\n\n".join(
        [
            "# Nexmark",
            as_markdown(describe()),
            f"{n_events:,} events, the last quarter in transactions of {SIZE:,}; processor time, one thread."
            " DuckDB inserts the same and asks anew; every answer is its own, row by row.",
            report(found),
        ]
    )
    print(text)
    folder = results_folder(chosen, bool(chosen.only or chosen.events), "nexmark")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
