"""oracle: bodies kept by short circuit, against brute force, node by node.

A tail of random length behind the head variables.  Each head binding that holds
has one witness, which is a row by brute force and is covered; a binding that
fails, and the nodes above the tail, are covered as docs/design/engine.md section 4 says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lftj.planning.lowered import Lowered
from lftj.search.machine.plan import compile_regions
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Building, Round
from maintenance.strategies.trace.witnessed_trace import WitnessedTrace
from support.bodies import (
    Case,
    Contents,
    Row,
    brute_rows,
    cases,
    first_versions,
    nodes,
    participants,
    rows_of,
)
from support.records import Records, is_left, needed_streams, renewed_all_the_time, round_of

pytestmark = pytest.mark.kernel

GAPS = st.sampled_from((0, 0, 8))
MORE = settings(
    max_examples=3 * settings.default.max_examples if settings.default else 300,
    suppress_health_check=list(HealthCheck),
)


@st.composite
def tailed_cases(draw: st.DrawFn) -> tuple[Case, int]:
    """A case and the first depth of its tail; 0: the body asks one question."""
    case = draw(cases(most_rows=10))
    return case, draw(st.integers(0, len(case.order) - 1))


def witnessed(case: Case, tail: int, gap: int) -> WitnessedTrace:
    plan = compile_regions(case.problem, case.order, gap, tail)
    return WitnessedTrace(Lowered(case.problem, {}), plan)


def witnesses(trace: WitnessedTrace) -> list[Row]:
    return rows_of(trace.witnesses.columns())


def check_witnesses(case: Case, trace: WitnessedTrace, state: Contents) -> None:
    rows = brute_rows(case.problem, case.order, state)
    held = witnesses(trace)
    assert set(held) <= set(rows)
    bindings = [row[: trace.tail] for row in held]
    assert sorted(set(bindings)) == sorted(bindings)
    assert set(bindings) == {row[: trace.tail] for row in rows}


def nodes_that_matter(case: Case, trace: WitnessedTrace, state: Contents) -> Iterator[tuple[Row, list[int]]]:
    """Nodes above the tail and of tails that fail, with all keys; the witness's nodes, with its keys."""
    held = {row[: trace.tail]: row for row in witnesses(trace)}
    for binding, keys in nodes(case, state, case.keys):
        witness = held.get(binding[: trace.tail])
        if len(binding) < trace.tail or witness is None:
            yield binding, keys
        elif binding == witness[: len(binding)]:
            yield binding, [witness[len(binding)]]


def check_tail_coverage(case: Case, trace: WitnessedTrace, state: Contents, only_new: bool = False) -> None:
    """``only_new``: of a body that is being renewed, by the records that are not old, at what is not left."""
    levels = participants(case, state)
    streams = needed_streams(case, trace, levels)
    records = Records(trace, only_new)
    for binding, keys in nodes_that_matter(case, trace, state):
        here = [(lv, s) for lv, s in zip(levels, streams, strict=True) if lv.depth == len(binding)]
        for key in keys:
            if only_new and is_left(trace, (*binding, key)):
                continue
            refusing = [pair for pair in here if pair[0].holds((*binding, key)) == pair[0].negated]
            covered = [records.holds(stream, binding, key) for _, stream in refusing or here]
            assert any(covered) if refusing else all(covered), f"{binding} + {key}"


def stepped_to(
    case: Case, trace: WitnessedTrace, change: Round, before: Contents, after: Contents
) -> RuleStats:
    """Step, check the change of the head bindings, keep."""
    stats = RuleStats()
    columns, signs = trace.step(change, stats)
    old = {row[: trace.tail] for row in brute_rows(case.problem, case.order, before)}
    new = {row[: trace.tail] for row in brute_rows(case.problem, case.order, after)}
    rows = rows_of(columns) if trace.tail else [()] * len(signs)
    expected = [(row, 1) for row in new - old] + [(row, -1) for row in old - new]
    assert sorted(zip(rows, signs.tolist(), strict=True)) == sorted(expected)
    trace.keep()
    assert stats.skipped_regions <= stats.regions <= stats.surgeries + stats.matches
    return stats


@MORE
@given(tailed_cases(), GAPS, st.sampled_from((None, 0, 4, 30)))
def test_witnesses_and_records_follow(tailed: tuple[Case, int], gap: int, piece: int | None) -> None:
    case, tail = tailed
    trace = witnessed(case, tail, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    trace.keep()
    check_witnesses(case, trace, case.states[0])
    check_tail_coverage(case, trace, case.states[0])
    with renewed_all_the_time(piece):
        for before, after in itertools.pairwise(case.states):
            change = round_of(case, versions, before, after)
            stats = stepped_to(case, trace, change, before, after)
            event(f"skipped: {min(stats.skipped_regions, 2)}")
            versions = dict(change.new)
            for _ in range(2):
                event(f"renewed: {trace.tidy(versions)}")
                trace.check_invariants()
                check_witnesses(case, trace, after)
                check_tail_coverage(case, trace, after)
                check_tail_coverage(case, trace, after, only_new=True)


@MORE
@given(tailed_cases(), GAPS)
def test_back_and_forth_with_dropped_rounds(tailed: tuple[Case, int], gap: int) -> None:
    """Every round is first dropped, then made; records that a dropped round left do no harm."""
    case, tail = tailed
    trace = witnessed(case, tail, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    trace.keep()
    walk = [*case.states, *case.states[-2::-1]] * 2
    for before, after in itertools.pairwise(walk):
        change = round_of(case, versions, before, after)
        held = witnesses(trace)
        trace.step(change, RuleStats())
        trace.drop()
        assert witnesses(trace) == held
        stepped_to(case, trace, change, before, after)
        check_witnesses(case, trace, after)
        check_tail_coverage(case, trace, after)
        versions = dict(change.new)


# -- what a change costs -------------------------------------------------------------------


def hubs() -> Workspace:
    """Vertex 0 holds by its witness (1, 2), and by others; vertex 7 has edges and is no hub."""
    workspace = Workspace(record_gap=0)
    edges = [(0, 1), (1, 2), (0, 2), (1, 3), (0, 3), (7, 8), (7, 9)]
    workspace.load("e", edges, columns=["src", "dst"])
    workspace.install("hub(a) <- e(a, b), e(b, c), e(a, c).", order={"hub": ["a", "b", "c"]})
    return workspace


def commit(workspace: Workspace, sign: int, *edges: Row) -> RuleStats:
    with workspace.transaction() as transaction:
        (transaction.insert if sign > 0 else transaction.erase)("e", list(edges))
    workspace.verify()
    workspace.check_invariants()
    return transaction.stats["hub"]


@pytest.mark.parametrize(("sign", "edge"), [(1, (0, 5)), (-1, (1, 3)), (-1, (0, 3))])
def test_what_misses_the_witness_costs_no_evaluation(sign: int, edge: Row) -> None:
    stats = commit(hubs(), sign, edge)
    assert (stats.opens, stats.nexts, stats.seeks) == (0, 0, 0)
    assert stats.head_changes == 0
    assert stats.matches <= 1 and stats.skipped_regions == stats.regions


def test_a_lost_witness_is_replaced() -> None:
    workspace = hubs()
    stats = commit(workspace, -1, (1, 2))
    assert stats.head_changes == 0 and stats.opens > 0
    stats = commit(workspace, -1, (1, 3))
    assert stats.head_changes == 1 and workspace["hub"].count == 0
    assert commit(workspace, 1, (1, 3)).head_changes == 1


def test_a_failed_search_is_tried_where_a_branch_came() -> None:
    workspace = hubs()
    stats = commit(workspace, 1, (8, 9))
    assert (stats.head_changes, stats.matches) == (1, 1)
    assert sorted(workspace["hub"]["a"].to_pylist()) == [0, 7]


def test_records_of_a_tail_that_holds_are_points() -> None:
    """One record per stream of the witness, however long the search before it."""
    workspace = Workspace(record_gap=0)
    edges = [(0, b) for b in range(1, 200)] + [(199, 7)]
    workspace.load("e", edges, columns=["src", "dst"])
    workspace.install("hub(a) <- e(a, b), e(b, c), e(a, c).", order={"hub": ["a", "b", "c"]})
    (trace,) = workspace._heads["hub"].searches
    records = Records(trace)
    of_zero = [
        interval
        for stream in records.intervals.values()
        for binding, intervals in stream.items()
        if binding[0] == 0
        for interval in intervals
    ]
    assert len(of_zero) == 3 and all(low == high for low, high in of_zero)


# -- how it is decided -----------------------------------------------------------------------


def explained(
    rule: str, order: list[str] | None = None, strategy: str = "trace", **relations: list[Row]
) -> str:
    workspace = Workspace()
    for name, rows in relations.items():
        workspace.load(name, rows, columns=[f"c{i}" for i in range(len(rows[0]))])
    workspace.install(rule, strategy, order=None if order is None else {"h": order})
    return workspace.explain_maintenance("h")


SKEWED = {"big": [(y % 50, y) for y in range(5_000)], "small": [(7,), (9,)]}


def test_the_cheaper_way_is_taken() -> None:
    """With few values of y it costs less to enumerate; where each x is soon proved, to stop there."""
    text = explained("h(x) <- big(x, y), small(y).", **SKEWED)
    assert "enumerated, rows have support counts (estimated operations" in text
    text = explained("h(x) <- big(x, y), all(y).", big=SKEWED["big"], all=[(y,) for y in range(5_000)])
    assert "{y}: short circuit, a witness per row (estimated operations" in text


def test_auto_charges_witnesses_for_matching_records() -> None:
    """One assignment for each row is counted; where a row meets thousands there are witnesses."""
    everything = [(y,) for y in range(5_000)]
    text = explained("h(x) <- big(x, y), all(y).", strategy="auto", big=SKEWED["big"], all=everything)
    assert "enumerated, rows have support counts" in text
    assert "; 5,000,000 for matching records" in text
    text = explained(
        "h(x) <- big(x, y), many(y, z), all(z).",
        strategy="auto",
        big=[(x, y) for x in range(20) for y in range(10)],
        many=[(y, z) for y in range(10) for z in range(400)],
        all=everything[:400],
    )
    assert "{y, z}: enumerated, rows have support counts" in text  # 400 operations a row
    text = explained(
        "h(x) <- big(x, y), many(y, z), all(z).",
        strategy="auto",
        big=[(x, y) for x in range(1500) for y in range(2)],
        many=[(y, z) for y in range(2) for z in range(1500)],
        all=everything[:1500],
    )
    assert "{y, z}: short circuit, a witness per row" in text
    assert "auto: trace, for x by first success" in text


def test_a_given_order_decides() -> None:
    assert "short circuit" in explained("h(x) <- big(x, y), small(y).", ["x", "y"], **SKEWED)
    assert "support counts" in explained("h(x) <- big(x, y), small(y).", ["y", "x"], **SKEWED)


def test_separate_components_are_separate_searches() -> None:
    rule = "h(x) <- big(x, y), small(y), big(x, z), small(z), y != 3."
    text = explained(rule, ["x", "y", "z"], **SKEWED)
    assert "{y}, {z}: 2 separate short circuits" in text
    assert text.count("    key order ") == 2


def test_what_no_head_variable_touches_is_a_test() -> None:
    text = explained("h(x) <- small(x), big(u, v), small(v), u < v.", **SKEWED)
    assert "{u, v}: a test of its own, apart from the rows" in text
    assert "test order   | " in text
    assert "!small(_): a test of its own" in explained("h(x) <- big(x, _), !small(_).", **SKEWED)


@pytest.mark.parametrize("rule", ["h(c) <- r(_), c = 1.", "h(c) <- r(2), c = 1.", "h[] = c <- r(_), c = 1."])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_without_a_variable_to_search(rule: str, strategy: str) -> None:
    """Only computed variables are left for the rows, and tests let them through."""
    workspace = Workspace()
    workspace.load("r", [(2,)], columns=["x"])
    workspace.install(rule, strategy)
    assert workspace["h"].table.to_pylist() == [{"c": 1}]
    for change, rows in (("erase", []), ("insert", [{"c": 1}])):
        with workspace.transaction() as transaction:
            getattr(transaction, change)("r", [(2,)])
        assert workspace["h"].table.to_pylist() == rows
        workspace.verify()
