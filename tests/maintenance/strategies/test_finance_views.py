"""worked example: DBToaster's finance views, beside sums made by hand and its published results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from maintenance import Workspace
from support import order_book
from support.order_book import COLUMNS, PROGRAM, Event
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

VIEWS = ("axf", "bsp", "twice", "mst", "psp", "vwap")


def empty_book() -> Workspace:
    ws = Workspace()
    for side in ("bids", "asks"):
        ws.load(side, pa.table({name: pa.array([], pa.int64()) for name in COLUMNS}))
    return ws


def follow(ws: Workspace, events: list[Event]) -> int:
    """Apply the events in one transaction; the operations that it took."""
    with ws.transaction() as tx:
        for side, weight, row in events:
            (tx.insert if weight > 0 else tx.erase)(side, [row])
    return sum(figures.operations for figures in tx.stats.rules.values())


def values(ws: Workspace, view: str) -> dict[tuple[int, ...], int]:
    return {tuple(keys): int(value) for *keys, value in rows_of(ws[view].table) if value}


@pytest.mark.parametrize("strategy", ["views", "delta", "auto", "recompute"])
def test_every_event_of_the_tiny_book(data_folder: Path, strategy: str) -> None:
    events = order_book.events(data_folder, "tiny")
    ws = empty_book()
    ws.install(PROGRAM, strategy=strategy)
    book: dict[str, set[tuple[int, ...]]] = {"bids": set(), "asks": set()}
    for number, event in enumerate(events):
        side, weight, row = event
        (book[side].add if weight > 0 else book[side].remove)(row)
        follow(ws, [event])
        if number % 4 == 0 or number == len(events) - 1:
            expected = order_book.by_hand(book)
            assert {view: values(ws, view) for view in VIEWS} == expected
    for view in order_book.ANSWERS:
        assert values(ws, view) == order_book.answer(data_folder, view, "tiny")
    ws.verify()
    ws.check_invariants()
