"""ASOF joins: events a second as history grows, beside DuckDB's ASOF JOIN anew.

    python -m bench.asof [--quick]

writes ``asof/results.md`` into ``bench/results/`` (``--quick``: few events, only printed).

Trades and quotes of 1,000 items come in turn, one a millisecond, in transactions of 1,000.  Behind so many
events sixty transactions are measured, the first ten left out, and one of 500 quotes that come late.  The
last answer is compared with DuckDB's, whose time is that of the query anew.  One thread, processor time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from bench.report.machine import describe
from bench.report.markdown import table
from bench.report.page import is_quick, show
from maintenance import Workspace

HALF, ITEMS, COUNT, FIRST = 500, 1000, 60, 10

RULES = {
    "latest(u)": "h(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u).",
    "latest(u, per: e)": "h(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u, per: e).",
    "max(u), by hand": "at[e, s] = max(u) <- trade(s, t, e), quote(s, u, _), u <= t."
    " h(e, p) <- at[e, s] = u, quote(s, u, p).",
}
SQL = "select e, p from trade asof join quote on trade.s = quote.s and trade.t >= quote.u"


@dataclass
class Measured:
    """Events a second, operations for each, seconds of the late quotes and of DuckDB's query."""

    rate: float
    operations: float
    late: float
    peer: float


def part(random: np.random.Generator, number: int) -> tuple[pa.Table, pa.Table]:
    """Trades and quotes of a transaction."""
    times = 1_700_000_000_000 + np.arange(2 * HALF * number, 2 * HALF * (number + 1))
    moments = pa.array(times, pa.timestamp("ms"))
    trades = [random.integers(0, ITEMS, HALF), moments[::2], times[::2]]
    quotes = [random.integers(0, ITEMS, HALF), moments[1::2], times[1::2]]
    return pa.table(trades, names=["s", "t", "e"]), pa.table(quotes, names=["s", "u", "p"])


def measured(rules: str, n_events: int) -> Measured:
    """Raises AssertionError for an answer that is not DuckDB's."""
    random = np.random.default_rng(0)
    parts = [part(random, number) for number in range(n_events // (2 * HALF) + COUNT)]
    workspace = Workspace()
    for place, name in enumerate(("trade", "quote")):
        workspace.load(name, pa.concat_tables([both[place] for both in parts[:-COUNT]]))
    workspace.install(rules)
    spent, operations = 0.0, 0
    for number, (trades, quotes) in enumerate(parts[-COUNT:]):
        started = time.process_time()
        with workspace.transaction() as tx:
            tx.insert("trade", trades)
            tx.insert("quote", quotes)
        if number >= FIRST:
            spent += time.process_time() - started
            operations += sum(figures.operations for figures in tx.stats.rules.values())
    _, quotes = parts[len(parts) // 2]
    started = time.process_time()
    with workspace.transaction() as tx:
        tx.insert("quote", quotes.set_column(2, "p", pa.array(quotes["p"].to_numpy() + 1)))
    late = time.process_time() - started
    n_measured = 2 * HALF * (COUNT - FIRST)
    return Measured(n_measured / spent, operations / n_measured, late, _beside(workspace))


def _beside(workspace: Workspace) -> float:
    """DuckDB's time for all; ties, of which it takes one, are left out of what is compared."""
    peer = duckdb.connect(config={"threads": 1})
    for name in ("trade", "quote"):
        held = workspace[name].to_arrow()
        peer.register("held", held)
        peer.execute(f"create table {name} as select * from held")
    started = time.process_time()
    answer = peer.sql(SQL).to_arrow_table()
    spent = time.process_time() - started
    found = set(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    kept = set(workspace["h"])
    if not found <= kept or {e for e, _ in found} != {e for e, _ in kept}:
        raise AssertionError("another answer than DuckDB's")
    return spent


def report(quick: bool) -> str:
    """The table."""
    machine, rows = describe(), []
    histories = (5_000, 20_000) if quick else (50_000, 200_000, 800_000)
    for name, rules in RULES.items():
        first = 0.0
        for n_events in histories:
            found = measured(rules, n_events)
            first = first or found.rate
            rows.append(
                [
                    name,
                    f"{n_events:,}",
                    f"{found.rate:,.0f}",
                    f"{found.rate / first:.2f}",
                    f"{found.operations:.1f}",
                    f"{1000 * found.late:.1f}",
                    f"{2 * HALF / found.peer:,.0f}",
                ]
            )
    heads = [
        "rule",
        "events before",
        "events/s",
        "of the first",
        "operations an event",
        "500 late quotes, ms",
    ]
    return "\n\n".join(
        [
            "# ASOF joins",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            f"Trades and quotes of {ITEMS:,} items in transactions of {2 * HALF:,}, behind so many events.",
            table([*heads, f"DuckDB {duckdb.__version__} anew, events/s"], rows),
        ]
    )


def main() -> None:
    show(report(is_quick()), "asof/results.md")


if __name__ == "__main__":
    main()
