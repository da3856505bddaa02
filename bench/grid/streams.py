"""Where the views of the grid get what they hold and how it changes: of each a function of the setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from bench import datasets, graphs
from bench.grid.changes import Kind, Rows, Stream, Transaction, drawn, in_batches, keystrokes, netted
from bench.grid.view import Setting
from bench.maintenance import existence, order_book
from bench.maintenance.edge_window import window_steps


def sizes(
    *mixed: int, kinds: tuple[Kind, ...] = ("insert", "erase", "window"), at: int = 100
) -> tuple[Setting, ...]:
    """``mixed`` changes of growing size, and the other kinds at one."""
    return (*(Setting("mixed", size) for size in mixed), *(Setting(kind, at) for kind in kinds))


EDGE = {"edge": ("src", "dst")}
"""The columns of the only relation."""


@cache
def rows_of(name: str) -> Rows:
    """The distinct rows of a table of :mod:`bench.datasets`."""
    return np.unique(np.stack([column.to_numpy() for column in datasets.table(name).columns], axis=1), axis=0)


def drawn_from(
    relation: str, table: str, beside: Mapping[str, str] | None = None
) -> Callable[[Setting], Stream]:
    """Changes drawn from a table; the relations ``beside`` it stay as they are."""

    def stream(setting: Setting) -> Stream:
        found = drawn(rows_of(table), setting.kind, setting.size, setting.count, relation)
        still = {name: rows_of(other) for name, other in (beside or {}).items()}
        return Stream({**found.tables, **still}, found.transactions)

    return stream


def window_of(name: str) -> Callable[[Setting], Stream]:
    """The distinct edges of a window that slides over arrivals; self-loops are dropped."""

    def stream(setting: Setting) -> Stream:
        source, destination = (c.to_numpy() for c in datasets.table(f"stream-{name}").columns)
        proper = source != destination
        source, destination = source[proper], destination[proper]
        window = existence.WINDOWS[name][0]
        first = np.column_stack(graphs.distinct(source[:window], destination[:window]))
        steps = chain.from_iterable(window_steps(source, destination, window))
        batches = islice(in_batches(steps, setting.size), setting.count)
        return Stream({"e": first}, [{"e": changes} for changes in batches])

    return stream


def replayed(table: str) -> Callable[[Setting], Stream]:
    """The second half of an order book's events as they came, upon what the first half leaves.

    A transaction may erase what it inserts: a change is an event.
    """

    def stream(setting: Setting) -> Stream:
        changes: pa.Table = datasets.table(table)
        sides = changes["relation"].to_numpy(zero_copy_only=False)
        rows = np.stack([changes[name].to_numpy() for name in (*order_book.COLUMNS, "weight")], axis=1)

        def events(first: int, last: int) -> Transaction:
            of_side = {name: sides[first:last] == side for name, side in order_book.RELATIONS.items()}
            return {name: rows[first:last][mine] for name, mine in of_side.items() if mine.any()}

        half = len(rows) // 2
        begins = range(half, len(rows), setting.size)[: setting.count]
        held = {name: netted(mine)[:, :-1] for name, mine in events(0, half).items()}
        return Stream(held, [events(first, first + setting.size) for first in begins])

    return stream


def typed(document: str) -> Callable[[Setting], Stream]:
    """Keystrokes on a document."""

    def stream(setting: Setting) -> Stream:
        insert, remove = (rows_of(document.format(name)) for name in ("insert", "remove"))
        return keystrokes(insert, remove, setting.size, setting.count)

    return stream
