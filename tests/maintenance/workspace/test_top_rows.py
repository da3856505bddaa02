"""oracle: the best rows of each group, kept by every strategy, against DuckDB's ``rank()``."""

from __future__ import annotations

import itertools
from random import Random

import pyarrow as pa
import pytest

from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support import peer

RULES = """
bar[s] = kth_largest(v, 3) <- sale(s, _, v).
best(s, i, v) <- sale(s, i, v), bar[s] = least, v >= least.
first(s, i) <- sale(s, i, _), bottom(2, by: i, per: s).
"""
SQL = {
    "best": "select s, i, v from (select *, rank() over (partition by s order by v desc) as r from sale)"
    " where r <= 3",
    "first": "select distinct s, i from (select *, rank() over (partition by s order by i) as r from sale)"
    " where r <= 2",
}
ROWS = list(itertools.product(("x", "y", "z"), ("ä", "b", "c", "d"), range(-2, 3)))
Row = tuple[str, str, int]


def expected(sales: set[Row]) -> dict[str, list[tuple[object, ...]]]:
    names = ("s", "i", "v")
    sale = pa.table(dict(zip(names, zip(*sorted(sales), strict=True), strict=True)))
    with peer.connection() as connection:
        connection.register("sale", sale)
        return {name: sorted(connection.execute(query).fetchall()) for name, query in SQL.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_best_rows_of_each_group(strategy: str) -> None:
    random = Random(5)
    held = set(random.sample(ROWS, 25))
    ws = Workspace()
    ws.load("sale", sorted(held), columns=["s", "i", "v"])
    ws.install(RULES, strategy)
    for _ in range(10):
        changed = set(random.sample(ROWS, random.choice((1, 2, 8))))
        with ws.transaction() as tx:
            tx.erase("sale", sorted(changed & held))
            tx.insert("sale", sorted(changed - held))
        held ^= changed
        assert {name: sorted(ws[name]) for name in SQL} == expected(held)
    ws.verify()


def operations(strategy: str, n_rows: int) -> list[int]:
    """Of a row that comes into the best three, one that goes, one that ties with them, one far from them."""
    ws = Workspace()
    ws.load("sale", [("x", f"i{n}", n) for n in range(n_rows)], columns=["s", "i", "v"])
    ws.install(RULES, strategy)
    counted = []
    for item, value, moved in (
        ("new", n_rows - 2, [-1, 1]),
        (f"i{n_rows - 1}", n_rows - 1, [-1, 1]),
        ("tie", n_rows - 3, [1]),
        ("low", 3, []),
    ):
        row = [("x", item, value)]
        with ws.transaction() as tx:
            (tx.erase if item.startswith("i") else tx.insert)("sale", row)
        assert sorted(tx.changes["best"].column("weight").to_pylist()) == moved
        counted.append(sum(rule.opens + rule.nexts + rule.seeks for rule in tx.stats.rules.values()))
    return counted


@pytest.mark.parametrize("strategy", ["auto", "trace", "delta", "views"])
def test_a_change_costs_the_rows_that_move_not_the_group(strategy: str) -> None:
    few, many = operations(strategy, 500), operations(strategy, 4000)
    assert few == many
    assert 0 < max(few) < 100
