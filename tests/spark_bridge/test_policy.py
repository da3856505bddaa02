"""differential: cells that are maintained or joined anew, by policy, change the head in the same way.

Which of the two a batch was is counted, cell by cell.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from maintenance import Workspace
from maintenance.strategies.auto import auto_body
from spark_bridge.cells.search_engine import STRATEGIES, Policy, SearchEngine
from spark_bridge.cells.signed_tables import with_weight
from spark_bridge.maintained_join import MaintainedJoin
from spark_bridge.placing.grids import given_grids
from spark_bridge.placing.packets import cell_inputs
from spark_bridge.placing.plan_fit import PlanFit
from spark_bridge.stages.batch_stats import BatchStats
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import Receipt
from support.cell_pipeline import program_text
from support.rows import rows_of
from support.sets import load_set
from support.stage_pipeline import signed_table

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
N_CELLS = 8
SMALL, LARGE = 3, 4000


@cache
def edges(n_rows: int, seed: int) -> pa.Table:
    pairs = np.random.default_rng(seed).integers(0, 300, (2, n_rows))
    return pa.table({"a": pairs[0], "b": pairs[1]})


class Followed:
    """Eight cells in one engine, and a workspace over the whole."""

    def __init__(self, policy: Policy) -> None:
        text = program_text(TRIANGLES, {"e": edges(1, 0)})
        (plan,) = text.plans()
        shares = {"a": 2, "b": 2, "c": 2}
        self.chain = StageChain(text, (given_grids(plan, shares, 1),))
        self.engine = SearchEngine(text, [0], self.chain.schemas(0))
        self.workspace = Workspace()
        load_set(self.workspace, "e", edges(4000, 1))
        self.workspace.install(TRIANGLES)
        self.step(with_weight(edges(4000, 1)), policy)

    def step(self, changes: pa.Table, policy: Policy) -> None:
        inputs = cell_inputs(self.chain.placed([("e", changes)]))
        assert len(inputs) <= N_CELLS
        given = [row for _, _, table in self.engine.step(inputs, policy)[0] for row in rows_of(table)]
        with self.workspace.transaction() as transaction:
            transaction.apply("e", changes)
        assert len(given) == len(set(given))
        self.given = set(given)
        self.expected = set(rows_of(transaction.changes["tri"]))
        assert set(rows_of(self.engine.head())) == set(rows_of(self.workspace["tri"].table))


def batch(n_rows: int, seed: int) -> pa.Table:
    """Half of it erases what is there, half inserts."""
    old, new = edges(4000, 1).slice(0, n_rows // 2), edges(n_rows - n_rows // 2, seed)
    weights = [-1] * old.num_rows + [1] * new.num_rows
    return signed_table(pa.concat_tables([old, new]), weights)


@pytest.mark.parametrize(
    ("policy", "n_rows", "anew"),
    [
        ("auto", SMALL, False),
        ("auto", LARGE, True),
        ("maintain", SMALL, False),
        ("maintain", LARGE, False),
        ("anew", SMALL, True),
        ("anew", LARGE, True),
    ],
)
def test_cells_are_maintained_or_joined_anew(
    policy: Policy, n_rows: int, anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 1 << 8)  # operations that are not worth a decision
    followed = Followed(policy)
    assert followed.engine.anew == 0, "cells that are new are not counted"
    followed.step(batch(n_rows, 2), policy)
    assert followed.given == followed.expected
    assert followed.engine.taken >= n_rows
    assert bool(followed.engine.anew) == anew


def test_the_policy_may_change_from_batch_to_batch() -> None:
    followed = Followed("auto")
    order: list[Policy] = ["anew", "auto", "maintain", "anew", "maintain", "auto"]
    for seed, policy in enumerate(order):
        followed.step(batch(20, seed), policy)
        assert followed.given == followed.expected
        assert bool(followed.engine.anew) == (policy == "anew")


def test_stats_say_how_many_cells_were_joined_anew() -> None:
    receipts = [
        Receipt("0-0", source="kept", cells=3, anew=1, changed=20, head_rows=5),
        Receipt("0-1", source="image", cells=4, anew=4, changed=30),
        Receipt("1-1", source="kept"),
    ]
    assert all(Receipt.of(one.to_bytes()) == one for one in receipts)
    stats = BatchStats.of(receipts, 1.5, PlanFit())
    assert (stats.cells, stats.anew, stats.changed, stats.partitions) == (7, 5, 50, 3)
    assert (stats.engines, stats.head_changes) == ({"kept": 2, "image": 1}, 5)


def test_another_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="policy is 'always'; it can be 'auto', 'maintain', 'anew'"):
        MaintainedJoin(TRIANGLES, {}, state="/nowhere", policy="always")  # type: ignore[arg-type]
    assert list(STRATEGIES) == ["auto", "maintain", "anew"]
