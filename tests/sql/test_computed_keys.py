"""Joins by what is computed: no pair of rows is looked at that does not join, once and kept."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

from lftj.errors import CartesianProductWarning
from maintenance import Workspace

N = 400


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("bid", pa.table({"auction": range(N), "price": [3 * n for n in range(N)]}))
    workspace.load("side", pa.table({"key": range(N), "value": [f"v{n}" for n in range(N)]}))
    return workspace


def test_a_join_by_a_remainder_is_no_product(ws: Workspace) -> None:
    text = "SELECT auction, value FROM bid JOIN side ON auction % 100 = key"
    with warnings.catch_warnings():
        warnings.simplefilter("error", CartesianProductWarning)
        answer = ws.sql(text)
        ws.create_view("v", text)
    right = sorted((n, f"v{n % 100}") for n in range(N))
    assert sorted(zip(*answer.to_pydict().values(), strict=True)) == sorted(ws["v"]) == right
    with ws.transaction() as tx:
        tx.insert("bid", [(1_234, 5), (1_299, 6)])
    assert {(1_234, "v34"), (1_299, "v99")} <= set(ws["v"])
    assert 0 < tx.stats["v"].operations < N / 4


def test_only_what_one_side_reads_is_asked_for_its_key(ws: Workspace) -> None:
    text = "SELECT auction, value FROM bid JOIN side ON price // 2 = key WHERE auction < 10 AND value <> 'v3'"
    rules = str(ws.explain_sql(text))
    assert "#computed2(price, key2) <- bid(auction, price), auction < 10, " in rules and "value !=" in rules
    assert ws.sql(text).num_rows == 9


@pytest.mark.parametrize(
    "condition", ["auction = key", "auction + 3 = key", "auction = key AND price % 7 = key % 7"]
)
def test_what_joins_already_has_no_head_of_its_own(ws: Workspace, condition: str) -> None:
    rules = str(ws.explain_sql(f"SELECT auction FROM bid JOIN side ON {condition}"))
    assert "#computed" not in rules
