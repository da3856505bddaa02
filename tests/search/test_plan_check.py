"""Plans that are broken on purpose are refused, for every invariant of lftj/search/plan_check.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lftj.search import layout as L
from lftj.search import plan_check
from lftj.search.base.plan import BoundPlan, Plan, compile_plan
from lftj.search.conditions import C_OTHER, fill_conditions
from lftj.search.plan_check import Level
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.regions.evaluation import RegionSearch, whole
from lftj.search.regions.plan import RUNS_CURSOR_FIELDS, RegionPlan, compile_regions
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from support.bodies import atom_of, relation

Break = Callable[[np.ndarray], None]

PROBLEM = JoinProblem(
    atoms=(
        atom_of("r", 2, (0, 1), "ad", label="r"),
        atom_of("s", 2, (0, 1), "ad", label="s"),
        atom_of("t", 2, (0, 1), "bd", label="t"),
        atom_of("u", 2, (0, 1), "ab", label="u"),
        atom_of("v", 2, (0, 1), "ac", label="v"),
    ),
    negations=(atom_of("n", 2, (0, 1), "bd", label="n"),),
    conditions=(JoinCondition("d", "!=", "a"),),
    emitted=("a", "b", "d"),
)
"""In the order a, b, c, d: c is a short circuit, and at d a stage covers r and s, another one t too."""

ROWS = {name: relation(name, 2, {(x, y) for x in range(3) for y in range(4)}) for name in "rstuvn"}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_plan(PROBLEM, "abcd", write=True)


@pytest.fixture(scope="module")
def bound(plan: Plan) -> BoundPlan:
    return plan.bind(ROWS)


@pytest.fixture(scope="module")
def regions() -> RegionPlan:
    return compile_regions(PROBLEM, "abcd", gap=0)


def depth_row(memory: np.ndarray, depth: int) -> int:
    return int(memory[L.H_DEPTH_ROWS]) + depth * L.DEPTH_FIELDS


def put(depth: int, field: int, value: int) -> Break:
    """Write into the row of a depth."""

    def change(memory: np.ndarray) -> None:
        memory[depth_row(memory, depth) + field] = value

    return change


def put_iterator(depth: int, number: int, field: int, value: int, lists: int = L.D_FIRST) -> Break:
    """Write into the row of one of a depth's participants, or negations."""

    def change(memory: np.ndarray) -> None:
        memory[memory[memory[depth_row(memory, depth) + lists] + number] + field] = value

    return change


def put_listed(depth: int, field: int, offset: int, value: int) -> Break:
    """Write into what a field of a depth's row leads to."""

    def change(memory: np.ndarray) -> None:
        memory[memory[depth_row(memory, depth) + field] + offset] = value

    return change


def header(field: int, value: int) -> Break:
    def change(memory: np.ndarray) -> None:
        memory[field] = value

    return change


def beside(field: int, to: int) -> Break:
    """Let two fields of the last depth's row name one place."""

    def change(memory: np.ndarray) -> None:
        memory[depth_row(memory, 3) + field] = memory[depth_row(memory, 3) + to]

    return change


BROKEN_BASE: list[tuple[int, Break]] = [
    (1, put(3, L.D_PARTICIPANTS, 1000)),
    (1, put(3, L.D_FIRST, -1)),
    (1, header(L.H_OUTPUTS, 2)),
    (1, header(L.H_DEPTH_ROWS, 1 << 20)),
    (1, beside(L.D_CONDITION, L.D_FIRST)),
    (2, put(3, L.D_SLOT, 3)),
    (2, put(3, L.D_SLOT, 1 << 20)),
    (2, beside(L.D_COUNTERS, L.D_NODE)),
    (2, put_iterator(0, 0, L.I_SLOT, L.REGISTERS)),
    (3, put_iterator(3, 0, L.I_DEPTH, 2)),
    (3, put_iterator(3, 0, L.I_LAST, 0)),
    (3, put_iterator(3, 0, L.I_PARENT, 0)),
    (4, put(2, L.D_PARTICIPANTS, 0)),
    (5, put_listed(3, L.D_CONDITION, C_OTHER, 3)),
    (6, put(3, L.D_FILTERS, L.FILTERS_NONE)),
    (6, put(0, L.D_FILTERS, L.FILTERS_POSITIONS)),
    (7, put_iterator(0, 0, L.I_SLOT, -1)),
    (8, put_listed(3, L.D_STAGE, L.S_COVERED, 4)),
    (8, put_listed(3, L.D_STAGE, L.S_BOUND_AT, 0)),
    (9, put(3, L.D_BACK, 3)),
    (9, put(3, L.D_BACK, 0)),
    (9, put(3, L.D_BLOCK, 0)),
    (10, header(L.H_TAIL, 3)),
    (10, header(L.H_SPLIT, 4)),
]


def check_base(plan: Plan, change: Break) -> None:
    memory = plan.template.copy()
    fill_conditions(memory, plan.condition_rows, plan.problem)
    change(memory)
    plan_check.check_base(memory, plan.state_length)


@pytest.mark.parametrize(("number", "change"), BROKEN_BASE)
def test_broken_plans_of_the_base_machine(plan: Plan, number: int, change: Break) -> None:
    check_base(plan, lambda memory: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check_base(plan, change)


def levels_of(bound: BoundPlan) -> dict[int, Level]:
    return {one.row: one.level_of(bound.views[one.use]) for one in bound.plan.iterators}


def test_a_stage_that_lacks_room(bound: BoundPlan) -> None:
    """The list of r and s has room for four keys and one; what they share while t waits must not be more."""
    memory, levels = bound.memory.copy(), levels_of(bound)
    plan_check.check_bound(memory, levels, bound.plan.state_length)
    first, second = memory[memory[depth_row(memory, 3) + L.D_FIRST] :][:2].tolist()
    wider = levels | {row: replace(levels[row], fanout=5) for row in (first, second)}
    with pytest.raises(AssertionError, match=r"^plan invariant 2: marks .* list of stage"):
        plan_check.check_bound(memory, wider, bound.plan.state_length)


def stage_field(field: int, value: int) -> Break:
    return put_listed(3, L.D_STAGE, field, value)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, header(L.H_STATE, L.REGISTERS)),
        (2, stage_field(L.S_MARKS, L.REGISTERS)),
        (2, stage_field(L.S_BASE, 1)),
        (12, put_iterator(0, 0, L.I_KEYS, 8)),
        (12, put_iterator(0, 0, L.I_LENGTH, -1)),
        (12, put_iterator(0, 0, L.I_CHILDREN, 0)),
    ],
)
def test_broken_bindings(bound: BoundPlan, number: int, change: Break) -> None:
    memory = bound.memory.copy()
    change(memory)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        plan_check.check_bound(memory, levels_of(bound), bound.plan.state_length)


def test_a_level_of_another_index(bound: BoundPlan) -> None:
    levels = {row: replace(level, index=(0, 0)) for row, level in levels_of(bound).items()}
    with pytest.raises(AssertionError, match=r"^plan invariant 3: "):
        plan_check.check_bound(bound.memory, levels, bound.plan.state_length)


BROKEN_REGIONS: list[tuple[int, Break]] = [
    (1, put(3, L.D_STREAM, 2)),
    (2, put(3, L.D_RING, L.REGISTERS)),
    (2, put(1, L.D_SLOT, L.REGISTERS)),
    (3, put_iterator(3, 0, L.I_LEVEL, 0)),
    (3, put_iterator(3, 0, L.I_INDEX, 77)),
    (5, put_listed(3, L.D_CONDITION, C_OTHER, 3)),
    (6, put(3, L.D_FILTERS, L.FILTERS_NONE)),
    (10, header(L.H_LISTED, 9)),
    (10, put(3, L.D_FIXED, 3)),
    (10, put(3, L.D_MERGES, 1)),
    (11, put(3, L.D_STREAMS, 1)),
    (11, put(3, L.D_LOG, -1)),
    (11, put(3, L.D_LOG, 0)),
    (11, put(3, L.D_LOG, 1 << 20)),
]


def check_regions(plan: RegionPlan, change: Break) -> None:
    memory = plan.memory.copy()
    change(memory)
    plan_check.check_regions(memory, plan.state_length, plan.log_length, RUNS_CURSOR_FIELDS)


@pytest.mark.parametrize(("number", "change"), BROKEN_REGIONS)
def test_broken_plans_of_the_region_machine(regions: RegionPlan, number: int, change: Break) -> None:
    check_regions(regions, lambda memory: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check_regions(regions, change)


def test_regions_bind_what_nothing_else_does() -> None:
    """A term of a delta has no atom for what the change binds; as a whole it can't be searched."""
    problem = JoinProblem((atom_of("r", 2, (0, 1), "ab"),), conditions=(JoinCondition("c", "<", "a"),))
    plan = compile_regions(problem, "cab", gap=0)
    assert plan.least_bound == 1
    with pytest.raises(AssertionError, match=r"^plan invariant 4: regions bind 0 depths"):
        RegionSearch(plan).run([], whole(3), record=False)


@pytest.mark.parametrize("places", [(0, 4), (-1,)])
def test_columns_of_a_delta(regions: RegionPlan, places: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 13: a column names a depth"):
        WeightedSearches([WeightedSearch(regions, 1, places)])


def test_branches_that_are_counted_of_a_delta() -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 13: a counted branch"):
        plan_check.check_term((0,), [(0, 2)], listed=2, depths=3)


def test_every_invariant_is_broken_here() -> None:
    stated = re.findall(r"^(\d+)\. ", str(plan_check.__doc__), re.MULTILINE)
    text = Path(__file__).read_text(encoding="utf-8")
    broken = re.findall(r"^ +\((\d+), |plan invariant (\d+)", text, re.MULTILINE)
    assert {number for pair in broken for number in pair} >= set(stated)
