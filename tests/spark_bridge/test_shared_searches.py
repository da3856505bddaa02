"""Heads of one rule are searched for in the same cells, which hold the relations once."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from spark_bridge.placing.grids import given_grids
from support.rows import rows_of
from support.stage_pipeline import StagePipeline, signed_table

RULE = "stats(a, count(), sum(w)) <- e(a, v), e(v, w)."
EDGES = pa.table({"a": pa.array([1, 1, 2, 3], pa.int64()), "b": pa.array([2, None, 3, 1], pa.int64())})


def rows(table: pa.Table) -> list[tuple]:
    return sorted(rows_of(table))


def test_relations_are_in_one_stage_however_many_aggregates_there_are(tmp_path: Path) -> None:
    def choose(text, head, relations, partitions, random):  # type: ignore[no-untyped-def]
        return given_grids(text.plans()[head], {"v": 2}, partitions)

    sizes = {}
    for share in (True, False):
        random = Random(1)
        random.random = lambda share=share: 0.0 if share else 0.9  # type: ignore[method-assign]
        path = tmp_path / str(share)
        followed = StagePipeline(RULE, {"e": EDGES}, path, 2, choose, random, nulls="keep")
        kinds = [stage.kind for stage in followed.chain.stages]
        assert kinds.count("search") == (2 if share else len(followed.chain.plans))
        sizes[share] = sum(state.rows for state in followed.manifest.partitions.values())
        assert rows(followed.table()) == [(1, 1, 3), (2, 1, 1), (3, 2, 2)]
        followed.apply({"e": signed_table(pa.table({"a": [2], "b": [1]}), [1])})
        assert rows(followed.table()) == [(1, 2, 4), (2, 3, 3), (3, 2, 2)]
    assert sizes[True] < sizes[False]
