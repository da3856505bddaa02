"""worked example: DBToaster's finance views, beside sums made by hand and its published results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lftj import errors
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


def refuse_other_answers(ws: Workspace, folder: Path, size: str) -> None:
    for view in order_book.ANSWERS:
        published = order_book.answer(folder, view, size)
        if view == "twice":
            halves = {broker: value / 2 for broker, value in values(ws, view).items()}
            assert halves == pytest.approx(published, rel=1e-13)
        else:
            assert values(ws, view) == published


@pytest.mark.in_turns
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
    refuse_other_answers(ws, data_folder, "tiny")
    ws.verify()
    ws.check_invariants()


def test_the_standard_book(data_folder: Path) -> None:
    """Its broker variances are beyond 64 bits."""
    events = order_book.events(data_folder, "standard")
    ws = empty_book()
    ws.install(PROGRAM, strategy="views")
    for begin in range(0, len(events), 500):
        follow(ws, events[begin : begin + 500])
    refuse_other_answers(ws, data_folder, "standard")
    worth: dict[tuple[int, ...], int] = {}
    for side, weight, (_, _, broker, volume, price) in events:
        if side == "bids":
            worth[broker,] = worth.get((broker,), 0) + weight * volume * price
    assert values(ws, "twice") == {broker: value**2 for broker, value in worth.items() if value}
    assert max(values(ws, "twice").values()) > 2**63
    ws.check_invariants()


def test_an_event_costs_the_logarithm_of_the_book() -> None:
    """Every price is its own, and each event moves the bar."""
    operations = []
    for n in (100, 1600):
        ws = empty_book()
        rules = [order_book.INSIDE.format(side=side) for side in ("bids", "asks")]
        ws.install("".join([*rules, order_book.VWAP, order_book.MST, order_book.PSP]), strategy="views")
        book: dict[str, set[tuple[int, ...]]] = {"bids": set(), "asks": set()}
        rows = [(side, 1, (i, i, i % 3, 1 + i % 7, 10 * i)) for i in range(n) for side in book]
        for begin in range(0, len(rows), 100):
            follow(ws, rows[begin : begin + 100])
        spent = 0
        for i in range(10):
            moving = ("bids", 1, (n, n + i, 0, n // 5, 10 * n + i))
            spent += follow(ws, [moving])
            rows.append(moving)
        for side, _, row in rows:
            book[side].add(row)
        expected = order_book.by_hand(book)
        for view in ("vwap", "mst", "psp"):
            assert values(ws, view) == expected[view]
        operations.append(spent)
        ws.check_invariants()
    assert operations[1] < 2 * operations[0]


def test_negative_volumes_have_no_bar_and_are_summed_by_price() -> None:
    ws, other = empty_book(), empty_book()
    ws.install(order_book.INSIDE.format(side="bids") + order_book.VWAP)
    other.install(order_book.BY_PRICE)
    rows = [(i, i, 0, volume, 10 * i) for i, volume in enumerate((5, 7, 3, 9, 2))]
    for one in (ws, other):
        follow(one, [("bids", 1, row) for row in rows])
    assert values(ws, "vwap") == values(other, "vwap")
    taken_back = ("bids", 1, (9, 9, 0, -6, 25))
    with pytest.raises(errors.EvaluationError, match="-6 is no weight"):
        follow(ws, [taken_back])
    follow(other, [taken_back])
    volumes = [(row[4], row[3]) for row in (*rows, taken_back[2])]
    total = sum(volume for _, volume in volumes)
    inside = [(p, v) for p, v in volumes if total > 4 * sum(w for q, w in volumes if q > p)]
    assert values(other, "vwap") == {(): sum(p * v for p, v in inside)}
    assert values(ws, "vwap") == {(): sum(p * v for p, v in ((30, 9), (40, 2)))}


def test_range_sums_take_fewer_operations_than_matches(data_folder: Path) -> None:
    events = order_book.events(data_folder, "standard")
    for rule in (order_book.AXF, order_book.BSP):
        operations = {}
        for strategy in ("views", "delta"):
            ws = empty_book()
            ws.install(rule, strategy=strategy)
            follow(ws, events[:-100])
            operations[strategy] = sum(follow(ws, [event]) for event in events[-100:])
        assert 2 * operations["views"] < operations["delta"]


def test_heads_that_begin_with_views_share_what_these_read() -> None:
    """Also where some stand above others that have none."""
    ws = empty_book()
    ws.install(PROGRAM)
    owners: dict[object, set[str]] = {}
    for name, head in ws._state.heads.items():
        for part in head.shared:
            owners.setdefault(part, set()).add(name.split("#")[0])
    assert {"axf", "bsp", "psp"} in owners.values() and {"bsp", "mst", "twice", "vwap"} in owners.values()
    for time in range(40):
        follow(ws, [(side, 1, (time, time, time % 3, 5 + time % 4, 90 * time)) for side in ("bids", "asks")])
    ws.verify()
    ws.check_invariants()
