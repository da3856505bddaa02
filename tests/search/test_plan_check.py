"""Plans that are broken on purpose are refused, for every invariant of either machine's plan_check.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from indices.records import WORD
from lftj.search.base import plan_check
from lftj.search.base import records as base
from lftj.search.base.plan import BoundPlan, Plan, compile_plan
from lftj.search.base.plan_check import Level
from lftj.search.conditions import Condition, fill_conditions
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.records import Cursor, Node, Search, StreamLog
from lftj.search.regions import plan_check as region_check
from lftj.search.regions.evaluation import RegionSearch, whole
from lftj.search.regions.plan import RegionPlan, compile_regions
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from support.bodies import atom_of, relation

PROGRAM = """\
a: r(a, ..), s(a, ..), u(a, ..), v(a, ..)
b: u(a, b), t(b, ..) where towards not n(b, ..)
c: v(a, c)
d: r(a, d), s(a, d), t(b, d) where d != a + $0, not n(b, d)"""

Break = Callable[[np.ndarray, Plan], None]

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


def base_node(memory: np.ndarray, plan: Plan, depth: int) -> base.Node:
    return base.Node.view(memory, plan.nodes[depth])


def put(depth: int, field: str, value: int) -> Break:
    """Write into the node of a depth."""

    def change(memory: np.ndarray, plan: Plan) -> None:
        setattr(base_node(memory, plan, depth), field, value)

    return change


def put_cursor(depth: int, number: int, field: str, value: int) -> Break:
    """Write into one of a depth's participants."""

    def change(memory: np.ndarray, plan: Plan) -> None:
        first = base_node(memory, plan, depth).participants // WORD
        setattr(base.Cursor.view(memory, first + number * base.Cursor.LENGTH), field, value)

    return change


def put_stage(field: str, value: int) -> Break:
    """Write into the first stage of the last depth."""

    def change(memory: np.ndarray, plan: Plan) -> None:
        setattr(base.Stage.view(memory, base_node(memory, plan, 3).stages // WORD), field, value)

    return change


def put_condition(field: str, value: int) -> Break:
    def change(memory: np.ndarray, plan: Plan) -> None:
        setattr(Condition.view(memory, base_node(memory, plan, 3).conditions // WORD), field, value)

    return change


def header(field: str, value: int) -> Break:
    def change(memory: np.ndarray, plan: Plan) -> None:
        setattr(base.Search.view(memory), field, value)

    return change


def beside(field: str, to: str) -> Break:
    """Let two fields of the last depth's node name one place."""

    def change(memory: np.ndarray, plan: Plan) -> None:
        node = base_node(memory, plan, 3)
        setattr(node, field, getattr(node, to))

    return change


FAR = WORD << 20

BROKEN_BASE: list[tuple[int, Break]] = [
    (1, put(3, "negations", FAR)),
    (1, put(3, "participants", -WORD)),
    (1, header("outputs", 2 * WORD)),
    (1, header("nodes", FAR)),
    (1, header("factors", FAR)),
    (1, beside("conditions", "participants")),
    (1, beside("stages", "participants")),
    (2, put(3, "matches", 3 * WORD)),
    (2, put(3, "matches", FAR)),
    (2, put_cursor(0, 0, "positions", WORD)),
    (3, put_cursor(3, 0, "depth", 2)),
    (3, put_cursor(3, 0, "is_last", 0)),
    (3, put_cursor(3, 0, "parent", WORD)),
    (5, put_condition("other", 3)),
    (6, put(3, "filters", base.FILTERS_NONE)),
    (6, put(0, "filters", base.FILTERS_POSITIONS)),
    (7, put_cursor(0, 0, "positions", 0)),
    (8, put_stage("rest", FAR)),
    (8, put_stage("bound_at", WORD)),
    (9, put(3, "back", 3)),
    (9, put(3, "back", 0)),
    (9, put(3, "first_block", 0)),
    (10, header("tail", 3)),
    (10, header("split", 4)),
]


def check_base(plan: Plan, change: Break) -> None:
    memory = plan.template.copy()
    fill_conditions(memory, plan.condition_rows, plan.problem)
    change(memory, plan)
    plan_check.check_base(memory, plan.addresses, plan.length)


@pytest.mark.parametrize(("number", "change"), BROKEN_BASE)
def test_broken_plans_of_the_base_machine(plan: Plan, number: int, change: Break) -> None:
    check_base(plan, lambda memory, plan: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check_base(plan, change)


def test_a_depth_that_nothing_binds() -> None:
    problem = JoinProblem((atom_of("r", 2, (0, 1), "ab"),), conditions=(JoinCondition("c", "<", "a"),))
    with pytest.raises(AssertionError, match=r"^plan invariant 4: "):
        compile_plan(problem, "cab", write=True)


def levels_of(bound: BoundPlan) -> dict[int, Level]:
    return {one.row: one.level_of(bound.views[one.use]) for one in bound.plan.cursors}


def check_bound(bound: BoundPlan, memory: np.ndarray, levels: dict[int, Level]) -> None:
    plan_check.check_bound(memory, bound.addresses, levels, bound.plan.length, bound.length)


def test_a_stage_that_lacks_room(bound: BoundPlan) -> None:
    """The list of r and s has room for four keys and one; what they share while t waits must not be more."""
    levels = levels_of(bound)
    check_bound(bound, bound.memory, levels)
    first = base_node(bound.memory, bound.plan, 3).participants // WORD
    rows = (first, first + base.Cursor.LENGTH)
    wider = levels | {row: replace(levels[row], fanout=5) for row in rows}
    with pytest.raises(AssertionError, match=r"^plan invariant 2: marks .* list of stage"):
        check_bound(bound, bound.memory, wider)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, put_stage("list", WORD)),
        (2, put_stage("list", 0)),
        (2, put_stage("marks", WORD)),
        (2, put_stage("marks_words", 2)),
        (2, put_stage("marks_first", 1)),
        (11, put_cursor(0, 0, "base", 8)),
        (11, put_cursor(0, 0, "keys", 8)),
        (11, put_cursor(0, 0, "length", -1)),
        (11, put_cursor(0, 0, "children", 0)),
    ],
)
def test_broken_bindings(bound: BoundPlan, number: int, change: Break) -> None:
    memory = bound.memory.copy()
    change(memory, bound.plan)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check_bound(bound, memory, levels_of(bound))


def test_a_level_of_another_index(bound: BoundPlan) -> None:
    levels = {row: replace(level, index=(0, 0)) for row, level in levels_of(bound).items()}
    with pytest.raises(AssertionError, match=r"^plan invariant 3: "):
        check_bound(bound, bound.memory, levels)


RegionBreak = Callable[[np.ndarray, RegionPlan], None]


def node(depth: int, field: str, value: int) -> RegionBreak:
    """Write into the node of a depth."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Node.view(template, plan.nodes[depth]), field, value)

    return change


def node_of_next(depth: int, field: str) -> RegionBreak:
    """Let the node of a depth name what that of the next one does."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        following = Node.view(template, plan.nodes[depth + 1])
        setattr(Node.view(template, plan.nodes[depth]), field, getattr(following, field))

    return change


def cursor(number: int, field: str, value: int) -> RegionBreak:
    """Write into a cursor; those of a depth follow each other."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Cursor.view(template, plan.cursors[number]), field, value)

    return change


def search(field: str, value: int) -> RegionBreak:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Search.view(template), field, value)

    return change


def condition(depth: int, field: str, value: int) -> RegionBreak:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        first = Node.view(template, plan.nodes[depth]).conditions // WORD
        setattr(Condition.view(template, first), field, value)

    return change


def stream_number(stream: int, value: int) -> RegionBreak:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        StreamLog.view(template, plan.stream_logs[stream]).number = value

    return change


BROKEN_REGIONS: list[tuple[int, RegionBreak]] = [
    (1, search("nodes", 1 << 20)),
    (1, search("n_cursors", 1 << 20)),
    (1, node(3, "n_participants", 1)),
    (1, node(3, "participants", 8)),
    (1, node_of_next(0, "ring")),
    (1, node(3, "conditions", 8)),
    (1, cursor(0, "ranges", 8)),
    (1, cursor(-1, "stream", 8)),
    (1, node(1, "matches", 0)),
    (1, node(3, "log", 0)),
    (2, cursor(0, "parent", 8)),
    (3, cursor(-1, "depth", 2)),
    (3, cursor(0, "is_last", 1)),
    (3, cursor(-1, "level_number", 0)),
    (3, cursor(-1, "number", 77)),
    (5, condition(3, "other", 3)),
    (6, node(3, "filters", 0)),
    (7, search("tail", 9)),
    (7, search("listed", 9)),
    (7, node(3, "fixed", 3)),
    (7, node(2, "lists_matches", 1)),
    (8, stream_number(0, 7)),
]


def check_regions(plan: RegionPlan, change: RegionBreak) -> None:
    template = plan.template.copy()
    change(template, plan)
    region_check.check_regions(template, plan.addresses, plan.recording)


@pytest.mark.parametrize(("number", "change"), BROKEN_REGIONS)
def test_broken_plans_of_the_region_machine(regions: RegionPlan, number: int, change: RegionBreak) -> None:
    check_regions(regions, lambda template, plan: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check_regions(regions, change)


def test_what_is_left_out_where_nothing_records(regions: RegionPlan) -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 2: 8 of 9 logs"):
        region_check.check_regions(regions.template, regions.addresses, regions.recording[1:])


def test_regions_bind_what_nothing_else_does() -> None:
    """A term of a delta has no atom for what the change binds; as a whole it can't be searched."""
    problem = JoinProblem((atom_of("r", 2, (0, 1), "ab"),), conditions=(JoinCondition("c", "<", "a"),))
    plan = compile_regions(problem, "cab", gap=0)
    assert plan.least_bound == 1
    with pytest.raises(AssertionError, match=r"^plan invariant 4: regions bind 0 depths"):
        RegionSearch(plan).run([], whole(3), record=False)


@pytest.mark.parametrize("places", [(0, 4), (-1,)])
def test_columns_of_a_delta(regions: RegionPlan, places: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 9: a column names a depth"):
        WeightedSearches([WeightedSearch(regions, 1, places)])


def test_branches_that_are_counted_of_a_delta() -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 9: a counted branch"):
        region_check.check_term((0,), [(0, 2)], listed=2, depths=3)


def test_a_plan_shows_its_program(plan: Plan, regions: RegionPlan) -> None:
    """An instruction per depth."""
    assert repr(plan) == f"{PROGRAM}\nc: the first success is enough\nemit a, b, d"
    streams = zip(range(6), ["r at d", "s at d", "t at b", "t at d", "v at c", "n at d"], strict=True)
    assert repr(regions) == "\n".join([PROGRAM, *(f"stream {number}: {what}" for number, what in streams)])
    counted = compile_regions(PROBLEM, "abcd", gap=0, listed=2)
    assert "from c on assignments are counted" in repr(counted)
    held = compile_regions(PROBLEM, "abcd", gap=0, tail=3)
    assert "from d on the first success is enough" in repr(held)


@pytest.mark.parametrize(("check", "broken"), [(plan_check, BROKEN_BASE), (region_check, BROKEN_REGIONS)])
def test_every_invariant_is_broken_here(check: ModuleType, broken: list[tuple[int, object]]) -> None:
    """In a list, or by a test that names its number."""
    stated = set(re.findall(r"^(\d+)\. ", str(check.__doc__), re.MULTILINE))
    by_name = re.findall(
        r"^ +\((\d+), |plan invariant (\d+)", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {str(number) for number, _ in broken}
    elsewhere = {number for pair in by_name for number in pair} - {""}
    assert listed <= stated <= listed | elsewhere
