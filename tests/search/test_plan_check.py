"""Plans that are broken on purpose are refused, for every invariant of plan_check.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indices.records import WORD
from lftj.search.conditions import Condition
from lftj.search.machine import plan_check
from lftj.search.machine.plan import RegionPlan, compile_regions
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.queries.plan import BoundPlan, Plan, compile_plan
from lftj.search.records import Cursor, Factor, Node, Search, Stage, StreamLog
from lftj.search.regions.evaluation import RegionSearch, whole
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from support.bodies import atom_of, relation

PROGRAM = """\
a: r(a, ..), s(a, ..), u(a, ..), v(a, ..)
b: u(a, b), t(b, ..) where towards not n(b, ..)
c: v(a, c)
d: r(a, d), s(a, d), t(b, d) where d != a + $0, not n(b, d)"""

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

COUNTING = replace(atom_of("w", 2, (0,), "d", label="w"), counted=(1,))

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


Break = Callable[[np.ndarray, RegionPlan], None]


def node(depth: int, field: str, value: int) -> Break:
    """Write into the node of a depth."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Node.view(template, plan.nodes[depth]), field, value)

    return change


def node_of_next(depth: int, field: str) -> Break:
    """Let the node of a depth name what that of the next one does."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        following = Node.view(template, plan.nodes[depth + 1])
        setattr(Node.view(template, plan.nodes[depth]), field, getattr(following, field))

    return change


def cursor(number: int, field: str, value: int) -> Break:
    """Write into a cursor; those of a depth follow each other."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Cursor.view(template, plan.cursors[number]), field, value)

    return change


def search(field: str, value: int) -> Break:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Search.view(template), field, value)

    return change


def condition(depth: int, field: str, value: int) -> Break:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        first = Node.view(template, plan.nodes[depth]).conditions // WORD
        setattr(Condition.view(template, first), field, value)

    return change


def stage(number: int, field: str, value: int) -> Break:
    """Write into one of the last depth's stages."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        first = Node.view(template, plan.nodes[-1]).stages // WORD
        setattr(Stage.view(template, first + number * Stage.LENGTH), field, value)

    return change


def factor(field: str, value: int) -> Break:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        setattr(Factor.view(template, Search.view(template).factors // WORD), field, value)

    return change


def column(number: int, depth: int) -> Break:
    """Let a column of the rows be of a depth."""

    def change(template: np.ndarray, plan: RegionPlan) -> None:
        template[Search.view(template).outputs // WORD + number] = depth

    return change


def stream_number(stream: int, value: int) -> Break:
    def change(template: np.ndarray, plan: RegionPlan) -> None:
        StreamLog.view(template, plan.stream_logs[stream]).number = value

    return change


BROKEN: list[tuple[int, Break]] = [
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
    (7, search("scratch", 0)),
    (7, node(2, "lists_matches", 1)),
    (7, node(3, "first_block", 0)),
    (8, stream_number(0, 7)),
    (10, cursor(-5, "staged", 2)),
    (10, stage(0, "bound_at", WORD)),
    (11, node(3, "back", 3)),
]

BROKEN_QUERIES: list[tuple[int, Break]] = [
    (1, search("outputs", 2 * WORD)),
    (1, search("factors", 1 << 20)),
    (3, cursor(0, "leads", 0)),
    (11, column(1, 2)),
    (7, column(0, 7)),
    (7, factor("inner", 0)),
    (7, search("weighs", 0)),
    (10, stage(1, "bound_at", WORD)),
    (11, node(3, "back", 0)),
]


def check(plan: RegionPlan, change: Break) -> None:
    template = plan.template.copy()
    change(template, plan)
    plan_check.check_regions(template, plan.addresses)


@pytest.mark.parametrize(("number", "change"), BROKEN)
def test_broken_plans(regions: RegionPlan, number: int, change: Break) -> None:
    check(regions, lambda template, plan: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check(regions, change)


@pytest.mark.parametrize(("number", "change"), BROKEN_QUERIES)
def test_broken_plans_of_queries(plan: Plan, number: int, change: Break) -> None:
    counting = replace(PROBLEM, atoms=(*PROBLEM.atoms, COUNTING), emitted=("a",), counted=True)
    broken = []
    for layout in (plan.layout, compile_plan(counting, "abcd", write=True).layout):
        check(layout, lambda template, plan: None)
        try:
            check(layout, change)
        except AssertionError as error:
            broken.append(str(error))
    assert any(message.startswith(f"plan invariant {number}: ") for message in broken)


def test_addresses_that_are_not_made(regions: RegionPlan) -> None:
    with pytest.raises(AssertionError, match=r"^plan invariant 2: 53 of 54 addresses"):
        plan_check.check_regions(regions.template, regions.addresses[1:])


def test_what_is_left_out_where_nothing_records(regions: RegionPlan) -> None:
    for record in (False, True):
        memory = regions.new_memory(record)
        nodes = [Node.view(memory, item) for item in regions.nodes]
        cursors = [Cursor.view(memory, item) for item in regions.cursors]
        assert Search.view(memory).records == record
        assert any(node.log for node in nodes) == any(cursor.stream for cursor in cursors) == record
        assert not any(node.n_stages for node in nodes)


def test_a_depth_that_nothing_binds() -> None:
    problem = JoinProblem((atom_of("r", 2, (0, 1), "ab"),), conditions=(JoinCondition("c", "<", "a"),))
    with pytest.raises(AssertionError, match=r"^plan invariant 4: "):
        compile_plan(problem, "cab", write=True)


def test_a_stage_that_lacks_room(bound: BoundPlan) -> None:
    """The list of r and s has room for four keys and one; what they share while t waits must not be more."""
    plan_check.check_staged(bound.template, bound.length, bound.views)
    wider = [view._replace(base=replace(view.base, max_fanouts=(5, 5))) for view in bound.views]
    with pytest.raises(AssertionError, match=r"^plan invariant 12: marks .* list of stage"):
        plan_check.check_staged(bound.template, bound.length, wider)


@pytest.mark.parametrize(
    "change",
    [
        stage(0, "list", WORD),
        stage(0, "list", 0),
        stage(0, "marks", WORD),
        stage(0, "marks_words", 2),
        stage(0, "marks_first", 1),
    ],
)
def test_broken_rooms(bound: BoundPlan, change: Break) -> None:
    template = bound.template.copy()
    change(template, bound.plan.layout)
    with pytest.raises(AssertionError, match=r"^plan invariant 12: "):
        plan_check.check_staged(template, bound.length, bound.views)


CLIQUE = JoinProblem(
    tuple(atom_of("r", 2, (0, 1), pair) for pair in ("ab", "ac", "bc", "ad", "bd", "cd")),
    emitted=tuple("abcd"),
)
"""At d stages cover what a and b lead to, and what c leads to varies."""


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (13, node(3, "varying", 0)),
        (13, node(3, "varying", 1)),
        (13, node(3, "varying", 2)),
        (14, node(1, "counts_below", 1)),
        (14, node(2, "counts_below", 1)),
    ],
)
def test_broken_cuts(number: int, change: Break) -> None:
    """``varying`` by number of the cursor here; of four rows of keys nothing is only counted."""
    rows = compile_plan(CLIQUE, "abcd", write=True).layout

    def change_cut(template: np.ndarray, plan: RegionPlan) -> None:
        change(template, plan)
        last = Node.view(template, plan.nodes[3])
        if number == 13:
            last.varying = plan.cursors[last.varying] * WORD

    check(rows, lambda template, plan: None)
    with pytest.raises(AssertionError, match=rf"^plan invariant {number}: "):
        check(rows, change_cut)


@pytest.mark.parametrize(
    "change", [stage(0, "cuts", WORD), stage(0, "room", WORD), stage(0, "room_length", 1 << 20)]
)
def test_broken_rooms_of_cuts(change: Break) -> None:
    plan = compile_plan(CLIQUE, "abcd", write=True)
    bound = plan.bind(ROWS)
    template = bound.template.copy()
    plan_check.check_staged(template, bound.length, bound.views)
    change(template, plan.layout)
    with pytest.raises(AssertionError, match=r"^plan invariant 12: "):
        plan_check.check_staged(template, bound.length, bound.views)


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
        plan_check.check_term((0,), [(0, 2)], listed=2, depths=3)


def test_a_plan_shows_its_program(plan: Plan, regions: RegionPlan) -> None:
    """An instruction per depth."""
    assert repr(plan) == f"{PROGRAM}\nc: the first success is enough\nemit a, b, d"
    streams = zip(range(6), ["r at d", "s at d", "t at b", "t at d", "v at c", "n at d"], strict=True)
    assert repr(regions) == "\n".join([PROGRAM, *(f"stream {number}: {what}" for number, what in streams)])
    counted = compile_regions(PROBLEM, "abcd", gap=0, listed=2)
    assert "from c on assignments are counted" in repr(counted)
    held = compile_regions(PROBLEM, "abcd", gap=0, tail=3)
    assert "from d on the first success is enough" in repr(held)


def test_every_invariant_is_broken_here() -> None:
    """In a list, or by a test that names its number."""
    stated = set(re.findall(r"^(\d+)\. ", str(plan_check.__doc__), re.MULTILINE))
    by_name = re.findall(
        r"^ +\((\d+), |plan invariant (\d+)", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {str(number) for number, _ in (*BROKEN, *BROKEN_QUERIES)}
    elsewhere = {number for pair in by_name for number in pair} - {""}
    assert listed <= stated <= listed | elsewhere
