"""oracle: many aggregates of one body, distinct and filtered, against Python; one search feeds all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from lftj.evaluation.finishing import Finishing
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES

Row = tuple[Any, ...]
PASSES: dict[str, Callable[[int], bool]] = {
    "v < 3": lambda v: v < 3,
    "(v >= 3, v < 6)": lambda v: 3 <= v < 6,
    "v >= 6": lambda v: v >= 6,
}
CALLS = [f"count({what} if {test})".replace("( if", "(if") for what in ("", "distinct b") for test in PASSES]
RULE = f"h(g, count(), {', '.join(CALLS)}, count(distinct b), max(v)) <- r(g, b, v)."


def expected(rows: set[Row]) -> list[Row]:
    found = []
    for g in sorted({row[0] for row in rows}):
        own = [(b, v) for of, b, v in rows if of == g]
        passing = [[(b, v) for b, v in own if holds(v)] for holds in PASSES.values()]
        found.append(
            (
                g,
                len(own),
                *map(len, passing),
                *(len({b for b, _ in some}) for some in passing),
                len({b for b, _ in own}),
                max(v for _, v in own),
            )
        )
    return found


def workspace(rows: set[Row], strategy: str, rule: str = RULE) -> Workspace:
    ws = Workspace()
    ws.load("r", sorted(rows), columns=["g", "b", "v"])
    ws.install(rule, strategy=strategy)
    return ws


def some_rows(random: Random, n: int) -> set[Row]:
    return {(random.randrange(4), random.randrange(6), random.randrange(9)) for _ in range(n)}


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_groups_and_values_come_and_go(strategy: str) -> None:
    random = Random(strategy)
    rows = some_rows(random, 30)
    ws = workspace(rows, strategy)
    assert sorted(ws["h"]) == expected(rows)
    for turn in range(12):
        gone = set(random.sample(sorted(rows), len(rows) if turn == 5 else min(6, len(rows))))
        come = some_rows(random, 8)
        with ws.transaction() as tx:
            tx.erase("r", sorted(gone))
            tx.insert("r", sorted(come))
        rows = rows - gone | come
        assert sorted(ws["h"]) == expected(rows)
    ws.verify()


def test_many_transactions_in_one_call() -> None:
    random = Random(0)
    rows = some_rows(random, 30)
    ws = workspace(rows, "delta")
    changes: list[Row] = []
    for txn in range(6):
        gone, come = random.sample(sorted(rows), 3), sorted(some_rows(random, 4) - rows)
        changes += [(*row, weight, txn) for some, weight in ((come, 1), (gone, -1)) for row in some]
        rows = rows - set(gone) | set(come)
    names = ("g", "b", "v", "weight", "txn")
    ws.apply_many({"r": dict(zip(names, map(list, zip(*changes, strict=True)), strict=True))})
    assert sorted(ws["h"]) == expected(rows)


def test_what_is_computed_is_computed_once_for_all() -> None:
    """Distinct values of a body are not searched for apart from what is aggregated of it."""
    ws = workspace(some_rows(Random(1), 30), "delta")
    bodies = []
    finish = Finishing.finish

    def counted(self: Finishing, *arguments: Any) -> Any:
        bodies.append(self)
        return finish(self, *arguments)

    with mock.patch.object(Finishing, "finish", counted), ws.transaction() as tx:
        tx.insert("r", [(1, 77, 1), (1, 78, 4), (2, 79, 7)])
    assert len(bodies) == 1


def skipping_null(n: int) -> Workspace:
    """A head of sums whose auxiliary heads are joined, for each skips NULL by a search of its own."""
    names = [f"v{number}" for number in range(n)]
    columns = {name: pa.array([0] * 50, pa.int64()) for name in names}
    ws = Workspace()
    ws.load("r", pa.table({"g": range(50), "b": [0] * 50, **columns}), nulls="keep", not_null=["g", "b"])
    calls = ", ".join(f"c{name}: sum({name})" for name in names)
    ws.install(f"h(g, {calls}) <- r(g, _, {', '.join(names)}).", "delta")
    return ws


def test_operations_grow_as_the_aggregates_do_not_as_their_pairs() -> None:
    """The heads of the aggregates are joined below the groups that changed."""

    def operations(n: int) -> int:
        ws = skipping_null(n)
        with ws.transaction() as tx:
            tx.insert("r", [(g, 1, *[1] * n) for g in range(50)])
        assert len(ws["h"]) == 50
        return int(tx.stats["h"].operations)

    few, many = operations(4), operations(16)
    assert 0 < many < 6 * few


def test_explanation_shows_the_keys() -> None:
    assert "many changed keys: g" in str(skipping_null(3).explain_maintenance("h"))


@pytest.mark.parametrize(("gone", "left"), list(itertools.permutations(["n", "h"])))
def test_a_head_that_goes_leaves_the_search_to_another(gone: str, left: str) -> None:
    rows = some_rows(Random(3), 30)
    ws = workspace(
        rows, "delta", "n[g] = count() <- r(g, b, v). h(g, count(distinct b), max(v)) <- r(g, b, v)."
    )
    ws.uninstall(gone)
    with ws.transaction() as tx:
        tx.insert("r", [(1, 99, 1)])
        tx.erase("r", sorted(rows)[:5])
    now = rows - set(sorted(rows)[:5]) | {(1, 99, 1)}
    whole = {row[0]: row for row in expected(now)}
    kept = sorted(ws[left])
    assert kept == [(g, row[1]) if left == "n" else (g, row[-2], row[-1]) for g, row in sorted(whole.items())]
    ws.verify()
