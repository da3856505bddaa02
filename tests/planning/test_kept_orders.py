"""Key orders that are chosen once for data sets that are alike (:mod:`lftj.planning.kept_orders`)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import lftj
from lftj.planning import kept_orders, planner, term_order
from lftj.planning.kept_orders import FEW_ROWS, KeptOrders, answered, each_keeping, is_kept, keeping
from maintenance import Workspace

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."


def edges(n_rows: int, seed: int) -> list[tuple[int, int]]:
    return [(seed + n % 97, n * 31 % 101) for n in range(n_rows)]


def counted(rows: list[tuple[int, int]], rule: str = TRIANGLES) -> int:
    database = lftj.Database()
    database.load("e", rows, columns=["a", "b"])
    return database.query(rule, threads=1).num_rows


def test_data_sets_of_like_sizes_are_planned_once(orders_chosen: list[str]) -> None:
    rules = [TRIANGLES, "h(a) <- e(a, b), e(b, 7)."]
    alone = [counted(edges(50 * n, n), rule) for rule in rules for n in range(1, 9)]
    assert len(orders_chosen) == 16
    orders_chosen.clear()
    kept = KeptOrders()
    with keeping(kept):
        together = [counted(edges(50 * n, n), rule) for rule in rules for n in range(1, 9)]
    assert together == alone
    assert len(orders_chosen) == kept.n_chosen == 2
    counted(edges(50, 1))
    assert len(orders_chosen) == 3, "what is asked behind the block is chosen anew"


def test_much_larger_relations_are_planned_for_themselves(orders_chosen: list[str]) -> None:
    with keeping(KeptOrders()):
        for n_rows in (10, FEW_ROWS, FEW_ROWS + 1, 4 * FEW_ROWS, 4 * FEW_ROWS + 1):
            counted([(n, n + 1) for n in range(n_rows)])
    assert len(orders_chosen) == 3


def test_an_order_of_the_callers_is_his(orders_chosen: list[str]) -> None:
    """It is neither kept nor taken from what is kept."""
    kept = KeptOrders()
    with keeping(kept):
        for order in (["c", "b", "a"], None, ["b", "a", "c"], None):
            database = lftj.Database()
            database.load("e", edges(50, 1), columns=["a", "b"])
            explained = str(database.explain(TRIANGLES, order=order))
            assert order is None or f"key order   {', '.join(order)} " in explained
    assert (len(orders_chosen), kept.n_chosen) == (3, 1)


def test_workspaces_of_like_sizes_share_orders_of_rules_and_their_terms(orders_chosen: list[str]) -> None:
    kept = KeptOrders()
    found = []
    for n in range(1, 5):
        with keeping(kept):
            workspace = Workspace()
            workspace.load("e", edges(60, n), columns=["a", "b"])
            workspace.install(TRIANGLES)
            with workspace.transaction() as transaction:
                transaction.insert("e", [(1, 2), (2, 3), (1, 3)])
            workspace.verify()
        found.append(len(orders_chosen))
    assert found[0] > 0 and found == [found[0]] * 4
    assert set(orders_chosen) == {planner.__name__, term_order.__name__}


def test_items_are_made_within_and_used_outside() -> None:
    def items() -> Iterator[bool]:
        yield is_kept()
        yield is_kept()

    assert [(inside, is_kept()) for inside in each_keeping(KeptOrders(), items())] == [(True, False)] * 2


def test_blocks_are_a_threads_own_and_nest() -> None:
    inner, outer = KeptOrders(), KeptOrders()
    with keeping(outer), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(is_kept).result()
        with keeping(inner):
            assert answered("where", lambda: "inside") == "inside"
        assert answered("where", lambda: "outside") == "outside"
    assert not is_kept()


def test_answers_go_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_orders, "MOST", 2)
    kept = KeptOrders()
    assert [kept.answer(asked, lambda asked=asked: -asked) for asked in (1, 2, 3, 2, 1)] == [
        -1,
        -2,
        -3,
        -2,
        -1,
    ]
    assert kept.n_chosen == 4
