"""`single_orders`: one order with its items a transaction, rows of Python, and views kept up to date; by the
commit machine and the general way.

Answers are compared with DuckDB's while all these orders are gone, and when they are back.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from bench.report.markdown import number, table
from bench.tpch.peer import Peer, check
from bench.tpch.queries import Query
from bench.tpch.tables import Refreshes
from maintenance import Transaction, Workspace

READ = (3, 5, 10)
"""Queries over orders and their items, joined with others."""

ORDERS, TURNS = 2_000, 5
"""So many orders, and turns in which all of them go, and come back."""

QUICK = 200, 2
"""Orders and turns of ``--quick``."""

WAYS: tuple[Literal["machine", "general"], ...] = ("machine", "general")

Row = tuple[object, ...]
Order = tuple[list[Row], list[Row]]
"""The order's row, and those of its items."""


def single_orders(
    queries: Sequence[Query],
    loaded: Mapping[str, pa.Table],
    say: Callable[[str], None],
    strategy: str,
    quick: bool = False,
) -> str:
    """Each query in workspaces of its own."""
    n_orders, turns = QUICK if quick else (ORDERS, TURNS)
    rows = []
    for query in (query for query in queries if query.number in READ):
        say(f"single: Q{query.number}")
        cells = [f"Q{query.number}"]
        for way in WAYS:
            each, share = _transactions(query, loaded, strategy, way, n_orders, turns)
            spread = f"{number(1 / max(each))} - {number(1 / min(each))}"
            cells += [f"{number(1 / statistics.median(each))} ({spread})", f"{share:.0%}"]
        rows.append(cells)
    heads = [
        "query",
        "transactions a second",
        "by the machine",
        '`single_changes="general"`',
        "by the machine",
    ]
    return "\n\n".join(
        [
            "## Single orders",
            f"{n_orders:,} orders go, one with its items a transaction, and come back, {turns} times, under"
            f" `{strategy}`: medians and ranges of these, of processor time, values as Python has them.",
            table(heads, rows),
        ]
    )


def _transactions(
    query: Query,
    loaded: Mapping[str, pa.Table],
    strategy: str,
    way: Literal["machine", "general"],
    n_orders: int,
    turns: int,
) -> tuple[list[float], float]:
    """Seconds of a transaction, by turn and direction, and the share by the machine of those before."""
    workspace, peer = Workspace(single_changes=way), Peer(loaded)
    for name, arrow in loaded.items():
        workspace.load(name, arrow)
    workspace.create_view(query.head, query.unlimited_sql, strategy=strategy)
    batch = Refreshes(loaded, seed=3).batch(n_orders)
    orders = _orders(batch["orders"][0], batch["lineitem"][0])
    seconds: list[float] = []
    _commit_all(workspace, orders, comes=False)
    fast = sum(transaction.stats.fast for transaction in _commit_all(workspace, orders, comes=True))
    for _ in range(turns):
        for comes in (False, True):
            started = time.process_time()
            _commit_all(workspace, orders, comes)
            seconds.append((time.process_time() - started) / len(orders))
            gone = {name: (its[0], its[0].slice(0, 0)) for name, its in batch.items()}
            back = {name: (its[0].slice(0, 0), its[0]) for name, its in batch.items()}
            peer.apply(back if comes else gone)
            answer = peer.answer(query.unlimited_sql)
            check(f"Q{query.number}, kept", workspace[query.head].to_arrow(), answer)
    return seconds, fast / len(orders)


def _commit_all(workspace: Workspace, orders: Sequence[Order], comes: bool) -> list[Transaction]:
    done = []
    for order, items in orders:
        with workspace.transaction() as transaction:
            change = transaction.insert if comes else transaction.erase
            change("orders", order)
            change("lineitem", items)
        done.append(transaction)
    return done


def _orders(orders: pa.Table, items: pa.Table) -> list[Order]:
    found: dict[object, Order] = {}
    for row in _rows(orders):
        found[row[0]] = [row], []
    for row in _rows(items):
        found[row[0]][1].append(row)
    return list(found.values())


def _rows(arrow: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in arrow.columns), strict=True))
