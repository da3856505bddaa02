"""laws: grids where little is known, when they no longer fit, and what they are planned from again."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from spark_bridge.placing.grids import HeadGrids, InputSample, plan_grids
from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.key_sample import ONE_IN
from support.cell_pipeline import program_text

THREE = "tri(a, b, c) <- r(a, b), s(b, c), t(a, c)."
ONE = "tri(a, b, c) <- r(a, b), r(b, c), r(a, c)."
PAIRS = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})


def plan_of(rule: str) -> HeadPlan:
    (plan,) = program_text(rule, dict.fromkeys("rst", PAIRS)).plans()
    return plan


def planned(rule: str, rows: dict[str, float], partitions: int) -> HeadGrids:
    return plan_grids(plan_of(rule), InputSample(rows, {}), partitions)


def copies(grids: HeadGrids, rule: str) -> int:
    """Of a tuple of each placement, in all."""
    placements = plan_of(rule).rules[0].placements(grids.grids[0].marks)
    return sum(grids.grids[0].copies(placement) for placement in placements)


# -- where nothing is known ----------------------------------------------------------


@pytest.mark.parametrize("rule", [ONE, THREE])
def test_relations_of_which_nothing_is_known_are_of_one_size(rule: str) -> None:
    """A join that started empty sent each tuple to 1,001 cells for ever, in place of 30."""
    rows = dict.fromkeys(plan_of(rule).reads, 0.0)
    grids = planned(rule, rows, 1000)
    assert dict(grids.grids[0].shares) == {"a": 10, "b": 10, "c": 10}
    assert copies(grids, rule) == 30


@pytest.mark.parametrize("taken", list(product((0, 1), repeat=3)))
def test_a_row_more_or_less_in_the_sample_does_not_decide(taken: tuple[int, ...]) -> None:
    """Of relations of 16 rows one is taken, or none, as chance has it."""
    rows = {name: float(ONE_IN * number) for name, number in zip("rst", taken, strict=True)}
    assert copies(planned(THREE, rows, 1000), THREE) <= 33


def test_what_is_known_decides() -> None:
    grids = planned(THREE, {"r": 1e6, "s": 0.0, "t": 1e6}, 1000)
    assert dict(grids.grids[0].shares) == {"a": 1000}
    assert dict(grids.grids[0].expected)["r(a, _)"] == 1e6, "what is shown is what the sample tells"
