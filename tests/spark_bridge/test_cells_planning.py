"""laws: the cells of a grid are planned once by each process, in whatever tasks and batches they come."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import lftj
from lftj.planning import planner, term_order
from spark_bridge.cells.cell_search import orders_of
from spark_bridge.placing.grids import HeadGrids, given_grids
from spark_bridge.placing.head_plan import ProgramText
from support.cell_pipeline import run
from support.rows import rows_of
from support.sets import load_set
from support.stage_pipeline import StagePipeline, signed_table

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
N_CELLS = 64


def in_64_cells(program: ProgramText, number: int, *_: Any) -> HeadGrids:
    return given_grids(program.plans()[number], {"a": 4, "b": 4, "c": 4}, N_CELLS)


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    orders_of.cache_clear()


@pytest.fixture
def edges() -> pa.Table:
    """Every cell gets some."""
    random = Random(3)
    pairs = {(random.randrange(40), random.randrange(40)) for _ in range(400)}
    return pa.table({"a": [a for a, _ in sorted(pairs)], "b": [b for _, b in sorted(pairs)]})


def triangles(edges: pa.Table) -> set[Any]:
    database = lftj.Database()
    load_set(database, "e", edges)
    return set(rows_of(database.query(TRIANGLES, threads=1)))


def test_a_join_plans_a_grid_of_64_cells_once(orders_chosen: list[str], edges: pa.Table) -> None:
    found = run(TRIANGLES, {"e": edges}, N_CELLS, Random(0), in_64_cells)
    assert orders_chosen == [planner.__name__]
    assert set(rows_of(found)) == triangles(edges)


def test_maintained_cells_of_a_grid_are_planned_once(
    orders_chosen: list[str], edges: pa.Table, tmp_path: Path
) -> None:
    """With the terms of their delta rules, and also those that are made anew from their snapshots."""
    pipeline = StagePipeline(
        TRIANGLES, {"e": edges}, tmp_path, N_CELLS, in_64_cells, Random(0), policies=["auto"]
    )
    # Once by the cells, and once by the workspace that tells the pipeline what the heads hold.
    assert sorted(orders_chosen) == [planner.__name__] * 2 + [term_order.__name__] * 2
    pipeline.lose_engines()
    pipeline.apply({"e": signed_table(edges.slice(0, 100), [-1] * 100)})
    assert len(orders_chosen) == 4
    assert set(rows_of(pipeline.table())) == triangles(edges.slice(100))
