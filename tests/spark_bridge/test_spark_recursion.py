"""oracle: heads that depend on themselves in Spark, against closures, components and ways found in Python.

Which programs give which rows is tested without Spark (``test_cells_recursion.py``): here is what Spark has a
part in, rounds with their checkpoints, and states on executors.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from lftj.errors import FunctionalConflictError, LimitError, RecursionNotSupportedError, RoundLimitError
from spark_bridge import MaintainedJoin
from support.by_cells import explain, join
from support.row_frames import frame_of_rows

Pair = tuple[int | None, int | None]

REACH = "reach(s, y) <- edge(s, y). reach(s, z) <- reach(s, y), edge(y, z)."
BY_HALVES = "reach(s, y) <- edge(s, y). reach(s, z) <- reach(s, y), reach(y, z)."
COMPONENTS = """
    label[x] = min(l) <- (edge(x, _) ; edge(_, x)), l = x.
    label[y] = min(l) <- label[x] = l, (edge(x, y) ; edge(y, x)).
"""


def some_edges(n_nodes: int = 12, n_edges: int = 20, seed: int = 1) -> list[Pair]:
    """With cycles, two rows that come twice, and NULLs."""
    random = Random(seed)
    pairs: list[Pair] = [(random.randrange(n_nodes), random.randrange(n_nodes)) for _ in range(n_edges)]
    return [*pairs, *pairs[:2], (None, 3), (4, None), (None, None)]


def closure(edges: list[Pair]) -> set[Pair]:
    """NULL joins nothing."""
    found = set(edges)
    while True:
        following = found | {(a, d) for a, b in found for c, d in edges if b == c and b is not None}
        if following == found:
            return found
        found = following


def labels(edges: list[Pair]) -> dict[int | None, int]:
    """NULL takes a label from beside it, and gives it to nothing."""
    found: dict[int | None, int] = {node: node for pair in edges for node in pair if node is not None}
    for _ in found:
        for a, b in edges:
            if a is not None and b is not None:
                found[a] = found[b] = min(found[a], found[b])
    beside = [found[b if a is None else a] for a, b in edges if (a is None) != (b is None)]
    return {**found, None: min(beside)}


def frame_of(spark: SparkSession, edges: list[Pair]) -> DataFrame:
    return frame_of_rows(spark, edges, "src bigint, dst bigint")


def rows(found: DataFrame) -> list[tuple[int, ...]]:
    return [tuple(row) for row in found.collect()]


def test_oracle_a_column_that_stays_is_cut(spark: SparkSession) -> None:
    edges = some_edges()
    expected = closure(edges)
    assert len(expected) >= 20
    frame = frame_of(spark, edges)
    found = rows(join(REACH, {"edge": frame}, nulls="keep", partitions=3, where="y > 2"))
    assert set(found) == {(s, y) for s, y in expected if y is not None and y > 2}
    assert len(found) == len(set(found))
    told = str(explain(REACH, {"edge": frame}, nulls="keep", partitions=3, shares={"s": 3}))
    assert "s the same in each rule: a cell goes round by itself" in told and "s in 3 parts" in told


@pytest.mark.in_turns
def test_oracle_a_head_by_rounds(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    edges = some_edges()
    expected = closure(edges)
    frame = frame_of(spark, edges)
    caplog.set_level(logging.INFO, "spark_bridge.recursion.rounds")
    rule = f"{BY_HALVES} n[s] = count() <- reach(s, _)."
    found = rows(join(rule, {"edge": frame}, nulls="keep", partitions=2))
    assert sorted(found, key=repr) == sorted(
        ((s, sum(a == s for a, _ in expected)) for s in {a for a, _ in expected}), key=repr
    )
    assert caplog.messages[0].startswith(f"reach: round 1, {len(set(edges))} new tuples in ")
    assert (
        caplog.messages[-1].endswith(f" s, {len(expected):,} in all")
        and "0 new tuples" in caplog.messages[-1]
    )
    in_one_cell = join(BY_HALVES, {"edge": frame}, nulls="keep", partitions=2, shares={})
    assert set(rows(in_one_cell)) == expected and len(caplog.messages) < 8


@pytest.mark.in_turns
def test_oracle_best_values_by_rounds(spark: SparkSession) -> None:
    edges = some_edges(30, 24, 2)
    found = rows(join(COMPONENTS, {"edge": frame_of(spark, edges)}, nulls="keep", partitions=2))
    assert dict(found) == labels(edges) and len(found) == len(labels(edges)) >= 20


def test_rounds_of_many_pieces_end_at_their_limit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.recursion.rounds.MOST_PIECES", 2)
    chain: list[Pair] = [(n, n + 1) for n in range(9)]
    same = "g(x, x) <- edge(x, _). g(y, z) <- g(w, x), edge(w, y), edge(x, z)."
    assert set(rows(join(same, {"edge": frame_of(spark, chain[:4])}, partitions=1))) == {
        (n, n) for n in range(5)
    }
    with pytest.raises(RoundLimitError) as caught:
        join(same, {"edge": frame_of(spark, [(0, 1), *chain])}, partitions=1, max_rounds=1)
    assert "the recursion of g still gave new tuples after 1 round, 1 in the last one" in str(caught.value)
    assert "where='driver'" in str(caught.value)
    with pytest.raises(LimitError, match="max_rounds is 0; it is a whole number from 1"):
        join(same, {"edge": frame_of(spark, chain)}, max_rounds=0)


def test_two_values_that_rounds_give_a_key_are_refused(spark: SparkSession) -> None:
    rule = "h[x] = v <- start(x, v). h[y] = v <- h[x] = v, edge(x, y)."
    relations = {"edge": frame_of(spark, [(1, 2), (2, 3)]), "start": frame_of(spark, [(1, 7), (3, 8)])}
    with pytest.raises(FunctionalConflictError, match=r"h\[3\] has two values, 7 and 8"):
        join(rule, relations, partitions=1)


def test_explain_says_when_one_process_is_quicker(spark: SparkSession) -> None:
    frame = frame_of(spark, some_edges())
    told = str(explain(f"{COMPONENTS} n[l] = count() <- label[_] = l.", {"edge": frame}, nulls="keep"))
    assert told.splitlines()[0] == "label(x, min), by rounds: no column stays the same in each rule"
    assert "100 rounds at most" in told and "edge  25 rows" in told
    assert "one process would take 800 bytes for that, and be quicker: shares={}" in told
    assert "GraphFrames' connectedComponents takes fewer rounds" in told
    assert "n(l, count), planned behind the rounds" in told


def test_oracle_a_kept_recursion_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    edges = [pair for pair in dict.fromkeys(some_edges()) if None not in pair]
    kept = MaintainedJoin(REACH, {"edge": frame_of(spark, edges)}, state=tmp_path / "state", partitions=2)
    was = closure(edges)
    assert set(rows(kept.table())) == was
    gone, come = edges[:4], [(1, 2), (11, 40), (40, 0)]
    changes = [(*pair, -1) for pair in gone] + [(*pair, 1) for pair in come]
    told = rows(kept.apply({"edge": frame_of_rows(spark, changes, "src bigint, dst bigint, weight int")}))
    now = closure([*edges[4:], *come])
    assert {row[:2] for row in told if row[2] > 0} == now - was
    assert {row[:2] for row in told if row[2] < 0} == was - now and was - now
    kept.check()
    assert "s the same in each rule" in kept.explain()


def test_what_partitions_cannot_keep_apart_names_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RecursionNotSupportedError, match=r"no column of it stays the same .* where='driver'"):
        MaintainedJoin(BY_HALVES, {"edge": frame_of(spark, [(1, 2)])}, state=tmp_path / "state", partitions=2)
