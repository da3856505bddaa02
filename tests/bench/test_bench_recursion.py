"""Peers that evaluate recursion from nothing: their rows are lftj's.  No time is asserted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import child, datasets, harness
from bench.child import Assignment
from bench.joins.recursion import closure, document, ontology, same_generation
from bench.maintenance.document import random_edits
from bench.peers.datafrog_engine import PROGRAM, Datafrog
from bench.peers.lftj_engine import Lftj
from bench.report.measurement import Measurement
from bench.workload import Workload
from bench.workloads import quick

needs_datafrog = pytest.mark.skipif(not PROGRAM.is_built(), reason="cargo has not built bench/peers/datafrog")

Tables = dict[str, pa.Table]


def drawn(*sizes: tuple[int, int], values: int = 12) -> list[pa.Table]:
    """Distinct random rows, by number of rows and of columns."""
    generator = np.random.default_rng(1)
    found = [np.unique(generator.integers(0, values, size), axis=0) for size in sizes]
    return [pa.table({f"c{place}": column for place, column in enumerate(rows.T)}) for rows in found]


def small(name: str) -> tuple[Workload, Tables]:
    if name == "galen":
        given = drawn((5, 3), (9, 2), (9, 3), (6, 3), (3, 2), (6, 3))
        return ontology(), dict(zip(("c", "given_p", "given_q", "r", "s", "u"), given, strict=True))
    if name == "crdt":
        return document(), random_edits(60)
    (edges,) = drawn((20, 2))
    made = closure("", (0, 0), "") if name == "closure" else same_generation(0, (0, 0))
    return made, {"edge": edges}


@needs_datafrog
@pytest.mark.parametrize("name", ["closure", "generation", "galen", "crdt"])
def test_oracle_datafrog_finds_the_rows_of_lftj(name: str) -> None:
    workload, tables = small(name)
    found = []
    for kind in (Lftj, Datafrog):
        with closing(kind(1)) as engine:
            engine.load(tables, {})
            query = workload.queries[engine.distribution]
            found += [(engine.count(query), engine.checksum(query)) for _ in range(2)]
    assert len(set(found)) == 1
    assert found[0][0] > 20


@needs_datafrog
def test_datafrog_says_what_is_wrong() -> None:
    with closing(Datafrog(1)) as engine:
        engine.load({"edge": pa.table({"a": [1, -2], "b": [2, 3]})}, {})
        with pytest.raises(RuntimeError, match="-2 is out of range"):
            engine.count("closure edge")
        with pytest.raises(RuntimeError, match="no program is called"):
            engine.count("squares edge")
    with pytest.raises(ValueError, match="one thread"):
        Datafrog(2)


def measured(
    workload: Workload, engine: str, files: dict[str, str]
) -> tuple[Measurement, list[dict[str, Any]]]:
    """What the harness makes of the events of a child, which runs in this process."""
    events: list[dict[str, Any]] = []
    child.measure(Assignment(workload.name, engine, files, 1, 0.0), events.append)
    result = Measurement(workload.name, engine, 1)
    for event in events:
        harness.take(event, result)
    return result, events


@pytest.mark.parametrize("engine", ["lftj", pytest.param("datafrog", marks=needs_datafrog)])
def test_other_rows_of_the_same_number_are_a_wrong_answer(engine: str, tmp_path: Path) -> None:
    (workload,) = (one for one in quick() if one.name == "closure-upward-300-440")
    right = datasets.table(workload.tables["edge"])
    moved = pa.table({name: pa.array(right[name].to_numpy() + 1) for name in right.column_names})
    statuses = []
    for number, table in enumerate((right, moved)):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(table, file)
        found, events = measured(workload, engine, {"edge": str(file)})
        statuses.append(found.status)
        assert found.answer == workload.expected
        assert [event["event"] for event in events].count("run") == (not number)
    assert statuses == ["ok", "wrong answer"]
    assert f"found {workload.expected:,}, checksum {found.checksum}" == found.detail
