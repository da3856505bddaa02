"""laws: grids where little is known, when they no longer fit, and what they are planned from again."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from spark_bridge.cells.signed_tables import signed, with_weight
from spark_bridge.placing.grids import HeadGrids, InputSample, plan_grids
from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.key_sample import ONE_IN
from spark_bridge.placing.packets import cell_inputs
from spark_bridge.placing.plan_fit import PlanFit, plan_fit
from spark_bridge.stages.stages import StageChain
from support.cell_pipeline import program_text, random_grids
from support.rows import rows_of

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
    assert copies(planned(THREE, rows, 216), THREE) <= 20


def test_what_is_known_decides() -> None:
    grids = planned(THREE, {"r": 1e6, "s": 0.0, "t": 1e6}, 1000)
    assert dict(grids.grids[0].shares) == {"a": 1000}
    assert dict(grids.grids[0].expected)["r(a, _)"] == 1e6, "what is shown is what the sample tells"


# -- how far the plan is left --------------------------------------------------------


def fit(grids: HeadGrids, rows: dict[str, int], partitions: list[int]) -> PlanFit:
    planned = {name: int(number) for name, number in grids.rows.items()}
    return plan_fit([(plan_of(THREE), grids)], planned, rows, [partitions])


def test_nothing_has_changed() -> None:
    grids = planned(THREE, dict.fromkeys("rst", 1e6), 1000)
    found = fit(grids, dict.fromkeys("rst", 10**6), [3000] * 1000)
    assert (found.grown, found.load, found.skew) == (1.0, pytest.approx(1.0), 1.0)
    assert found.left_by(found) == 1.0


def test_growth_alone_asks_for_no_other_shares() -> None:
    grids = planned(THREE, dict.fromkeys("rst", 1e6), 1000)
    found = fit(grids, dict.fromkeys("rst", 10**7), [30_000] * 1000)
    assert found.grown == pytest.approx(10, rel=0.01)
    assert found.left_by(PlanFit()) == pytest.approx(1.0)


def test_a_relation_that_has_outgrown_the_others() -> None:
    """It was copied to all cells; by hand: 10**6 rows a cell, and under {10, 10, 10} some 30,000."""
    grids = planned(THREE, {"r": 1e6, "s": 0.0, "t": 1e6}, 1000)
    assert dict(grids.grids[0].shares) == {"a": 1000}
    found = fit(grids, dict.fromkeys("rst", 10**6), [10**6] * 1000)
    assert found.load == pytest.approx((10**6 + 2000) / 30_000, rel=0.1)
    again = planned(THREE, dict.fromkeys("rst", 1e6), 1000)
    assert fit(again, dict.fromkeys("rst", 10**6), [30_000] * 1000).load == pytest.approx(1.0)


def test_skew_counts_from_where_it_was_planned() -> None:
    """What planning again can't mend does not ask for it at every batch; nor do partitions of a few rows."""
    grids = planned(THREE, dict.fromkeys("rst", 1e6), 8)
    skewed = fit(grids, dict.fromkeys("rst", 10**6), [79_000, *[9_000] * 7])
    assert skewed.skew == pytest.approx(80_000 / (71_000 / 4 + 1000), rel=0.01)
    assert skewed.left_by(PlanFit()) > 4
    assert skewed.left_by(skewed) == 1.0
    assert fit(grids, dict.fromkeys("rst", 1), [3, *[0] * 7]).skew < 1.01


# -- homes ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_each_tuple_has_one_home(seed: int) -> None:
    """Whatever the grids: shares, and values that are called heavy, at random."""
    random = Random(seed)
    rows = [(random.randrange(9), random.randrange(9)) for _ in range(60)]
    tables = {name: pa.table(dict(zip("ab", zip(*rows, strict=True), strict=True))) for name in "rst"}
    rule = random.choice([ONE, THREE, "h(a) <- r(a, a), s(a, _), t(_, _). h(b) <- s(a, b), t(b, c)."])
    text = program_text(rule, tables)
    grids = random_grids(text, 0, tables, random.choice((1, 7)), random)
    chain = StageChain(text, (grids,))
    homes = chain.homes(chain.stages[0])
    read = {name: with_weight(table) for name, table in tables.items() if name in text.plans()[0].reads}
    assert set(read) == set(chain.homed(chain.stages[0]))
    found: dict[str, list[object]] = {name: [] for name in read}
    for cell in cell_inputs(chain.placed(read.items())):
        for name, label in homes.of(cell.address.number).items():
            found[name] += rows_of(cell.table(label, signed(tables[name].schema)))
    for name, table in read.items():
        assert sorted(map(str, found[name])) == sorted(map(str, rows_of(table)))
