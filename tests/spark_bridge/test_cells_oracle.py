"""oracle: the join by cells (support/cell_pipeline.py) against the brute-force reference, on random rules.

Grids are those that the join chooses itself, or any at all: shares and heavy values decide what is sent,
never what comes out.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from lftj import errors
from support.cell_pipeline import ChooseGrids, planned_grids, random_grids, run
from support.reference import FunctionalConflict, Row, evaluate
from support.rows import rows_of
from support.spark_types import in_spark, spark_tables
from support.strategies import Scenario, any_row, scenarios

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

N_EXAMPLES = settings.default.max_examples if settings.default else 100
"""Of each kind: there are five."""


def compare_with_reference(scenario: Scenario, partitions: int, choose: ChooseGrids, random: Random) -> None:
    scenario = in_spark(scenario)
    wanted = [scenario.wanted, *(head.relation for head in scenario.program[-1].heads[1:])][-1]
    tables = spark_tables(scenario)
    conflicts, rows = set(), set[Row]()
    for name in dict.fromkeys(head.relation for rule in scenario.program for head in rule.heads):
        try:
            rows = evaluate(scenario.program, scenario.relations, name)
        except FunctionalConflict:
            conflicts.add(name)
    if wanted in conflicts:
        event("functional conflict")
        with pytest.raises(errors.FunctionalConflictError):
            run(scenario.text, tables, partitions, random, choose, wanted, "keep")
        return
    assume(not conflicts)
    rows = evaluate(scenario.program, scenario.relations, wanted)
    event("some rows" if rows else "no rows")
    event("NULLs" if any(None in row for row in rows) else "no NULLs")
    found = rows_of(run(scenario.text, tables, partitions, random, choose, wanted, "keep"))
    assert any_row(set(found)) == any_row(rows)
    assert len(found) == len(rows)


ways = given(
    partitions=st.sampled_from((1, 2, 3, 4, 8)),
    choose=st.sampled_from((random_grids, planned_grids, random_grids)),
    random=st.randoms(use_true_random=False),
    data=st.data(),
)


@pytest.mark.in_turns
@pytest.mark.parametrize("most_atoms", [2, 3, 4])
@settings(max_examples=N_EXAMPLES)
@ways
def test_oracle_rules(
    most_atoms: int, partitions: int, choose: ChooseGrids, random: Random, data: st.DataObject
) -> None:
    compare_with_reference(data.draw(scenarios(most_atoms, nulls=True)), partitions, choose, random)


@pytest.mark.in_turns
@settings(max_examples=N_EXAMPLES)
@ways
def test_oracle_programs(partitions: int, choose: ChooseGrids, random: Random, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(most_atoms=3, most_rules=3, nulls=True))
    compare_with_reference(scenario, partitions, choose, random)


@settings(max_examples=N_EXAMPLES)
@ways
def test_oracle_conjunctions(
    partitions: int, choose: ChooseGrids, random: Random, data: st.DataObject
) -> None:
    compare_with_reference(
        data.draw(scenarios(most_atoms=4, plain=True, nulls=True)), partitions, choose, random
    )
