"""What `auto` costs where rules are installed before there is any row, beside the best fixed strategy.

All is counted: operations of commits and of samples, and each rule that a commit steps, at the price that
`auto` takes for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa

from maintenance import Workspace
from maintenance.strategies.auto.view_choice import STEP_OPERATIONS
from support.rows import rows_of

Book = dict[str, dict[tuple[int, int, int], int]]

COLUMNS = ("broker", "volume", "price")
SIDES = ("bids", "asks")
RULE = "h[b] = sum(d) <- bids(b, v, p), asks(b, w, q), abs(p - q) > 1000, d = w - v."


def changes(n_commits: int, n_rows: int) -> Iterator[Book]:
    """Rows that come, and one in ten that goes."""
    random = Random(3)
    there: dict[str, list[tuple[int, int, int]]] = {side: [] for side in SIDES}
    for _ in range(n_commits):
        net: Book = {side: {} for side in SIDES}
        for _ in range(n_rows):
            side = random.choice(SIDES)
            if there[side] and random.random() < 0.1:
                row, weight = there[side].pop(random.randrange(len(there[side]))), -1
            else:
                row, weight = (random.randrange(10), random.randrange(10**6), random.randrange(10**4)), 1
                there[side].append(row)
            net[side][row] = net[side].get(row, 0) + weight
        yield net


def cost(strategy: str) -> tuple[int, list[tuple[object, ...]]]:
    """Of all commits, and the head in the end."""
    ws = Workspace()
    for side in SIDES:
        ws.load(side, pa.table({name: pa.array([], pa.int64()) for name in COLUMNS}))
    ws.install(RULE, strategy)
    total = 0
    for net in changes(16, 400):
        with ws.transaction() as tx:
            for side, rows in net.items():
                tx.insert(side, [row for row, weight in rows.items() if weight > 0])
                tx.erase(side, [row for row, weight in rows.items() if weight < 0])
        for figures in tx.stats.rules.values():
            total += figures.operations + figures.shadow_operations + STEP_OPERATIONS
    return total, rows_of(ws["h"].table)


def test_from_empty_tables_auto_costs_little_more_than_the_best_strategy() -> None:
    """Relations grow from nothing: what was known of them, or sampled of a way, is soon wrong by far."""
    (delta, head), (views, same) = cost("delta"), cost("views")
    auto, found = cost("auto")
    assert head == same == found
    assert views < delta / 2
    assert auto < 1.5 * min(delta, views)
