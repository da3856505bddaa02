"""oracle: what the records cover, and what the change oracle makes of them, against brute force.

The coverage invariant (docs/design/engine.md section 4): at every node that a search
reaches and for every key, either all participants hold the key, no negated atom
does, and each of them is covered at it, or one that refuses the key is covered.
It is checked node by node, after a build and after every step that follows.
The oracle's regions are compared with a list made from all records one by one,
and a change that gives no region must change nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from lftj.planning.lowered import Lowered
from lftj.search.machine.plan import compile_regions
from maintenance import Workspace
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Building, Round
from maintenance.strategies.surgery import surgeries_in
from maintenance.strategies.trace import body_trace
from maintenance.strategies.trace.body_trace import BodyTrace
from maintenance.strategies.trace.oracle import MINUS, PLUS, Regions, find_regions
from support.bodies import (
    Case,
    Contents,
    Row,
    atoms_of,
    brute_rows,
    cases,
    change_between,
    first_versions,
    nodes,
    participants,
    rows_of,
)
from support.records import Records, is_left, needed_streams, renewed_all_the_time, round_of

pytestmark = pytest.mark.kernel

GAPS = st.sampled_from((0, 0, 8))
FANS = (40, pytest.param(600, marks=pytest.mark.compiled))
"""Values of a variable: their records fit the tail, or do not."""

SMALL = cases(most_rows=10)
MORE = settings(
    max_examples=6 * settings.default.max_examples if settings.default else 300,
    suppress_health_check=list(HealthCheck),
)


def traced(case: Case, gap: int) -> BodyTrace:
    plan = compile_regions(case.problem, case.order, gap)
    return BodyTrace(Lowered(case.problem, {}), plan)


def regions_of(trace: BodyTrace, change: Round) -> Regions:
    uses = trace.plan.indexes
    return find_regions(
        trace.plan,
        lambda index: surgeries_in(change, uses[index].relation, uses[index].key),
        trace.sensitivity,
    )


# -- coverage, by brute force ----------------------------------------------------------


def check_coverage(case: Case, trace: BodyTrace, state: Contents, only_new: bool = False) -> None:
    """``only_new``: of a body that is being renewed, by the records that are not old, at what is not left."""
    levels = participants(case, state)
    streams = needed_streams(case, trace, levels)
    records = Records(trace, only_new)
    for binding, keys in nodes(case, state, case.keys):
        here = [
            (level, stream)
            for level, stream in zip(levels, streams, strict=True)
            if level.depth == len(binding)
        ]
        for key in keys:
            if only_new and is_left(trace, (*binding, key)):
                continue
            refusing = [pair for pair in here if pair[0].holds((*binding, key)) == pair[0].negated]
            covered = [records.holds(stream, binding, key) for _, stream in refusing or here]
            assert any(covered) if refusing else all(covered), (
                f"{binding} + {key}: {'no refusing one' if refusing else 'not every participant'} is covered"
            )


@MORE
@given(SMALL, GAPS, st.sampled_from((None, 0, 4, 30)))
def test_records_cover_every_node(case: Case, gap: int, piece: int | None) -> None:
    """After the build, and after every change; also where bodies are renewed all the time, piece by piece."""
    trace = traced(case, gap)
    versions = first_versions(case)
    columns, signs = trace.build(Building(versions))
    rows = brute_rows(case.problem, case.order, case.states[0])
    assert rows_of(columns) == rows and signs.tolist() == [1] * len(rows)
    check_coverage(case, trace, case.states[0])
    with renewed_all_the_time(piece):
        for before, after in itertools.pairwise(case.states):
            change = round_of(case, versions, before, after)
            stats = RuleStats()
            columns, signs = trace.step(change, stats)
            trace.keep()
            following = brute_rows(case.problem, case.order, after)
            found = list(zip(rows_of(columns), signs.tolist(), strict=True))
            assert sorted(found) == sorted(change_between(set(rows), set(following)).items())
            assert stats.regions <= stats.surgeries + stats.matches
            assert stats.dropped_records <= stats.matches
            event(f"dropped: {stats.dropped_records > 0}")
            trace.check_invariants()
            check_coverage(case, trace, after)
            versions, rows = dict(change.new), following
            for _ in range(2):
                trace.tidy(versions)
                trace.check_invariants()
                check_coverage(case, trace, after)
                check_coverage(case, trace, after, only_new=True)
            left = trace._built.left
            event("at rest" if left is None else f"left: {min(len(left), 3)} regions")


@settings(suppress_health_check=list(HealthCheck))
@given(SMALL, GAPS, st.sampled_from((0, 4, 30)))
def test_records_that_begin_with_none_cover_what_is_not_left(case: Case, gap: int, piece: int) -> None:
    """While changes come, and everything when nothing is left; then steps find all rows."""
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.begin()
    states = [(state, set(brute_rows(case.problem, case.order, state))) for state in case.states]
    walk = [*states, *states[-2::-1]] * 3
    with mock.patch.object(body_trace, "RENEWED_LEAST", piece):
        for (before, rows), (after, following) in itertools.pairwise(walk):
            was_whole = trace.is_whole
            change = round_of(case, versions, before, after)
            columns, signs = trace.step(change, RuleStats())
            trace.keep()
            if was_whole:
                expected = change_between(rows, following)
                assert dict(zip(rows_of(columns), signs.tolist(), strict=True)) == expected
            check_coverage(case, trace, after, only_new=True)
            versions = dict(change.new)
            trace.tidy(versions)
            trace.check_invariants()
            check_coverage(case, trace, after, only_new=True)
            event(f"whole: {trace.is_whole}")


# -- the change oracle ----------------------------------------------------------------


def brute_regions(case: Case, trace: BodyTrace, before: Contents, after: Contents) -> dict[Row, int]:
    """Regions with their signs, by a look at every record."""
    records = Records(trace)
    old, new = participants(case, before), participants(case, after)
    found: dict[Row, int] = {}
    for was, now, stream in zip(old, new, needed_streams(case, trace, old), strict=True):
        for path in was.paths ^ now.paths:
            bit = PLUS if (path in now.paths) != was.negated else MINUS
            bindings: list[Row] = [path]
            if stream is not None:
                at = dict(zip(was.places, path, strict=True))
                bindings = [
                    (*binding, path[-1])
                    for binding in records.intervals[stream]
                    if records.holds(stream, binding, path[-1])
                    and all(binding[place] == at[place] for place in was.places[:-1])
                ]
            for binding in bindings:
                found[binding] = found.get(binding, 0) | bit
    return {
        binding: bits
        for binding, bits in found.items()
        if not any(binding[:length] in found for length in range(1, len(binding)))
    }


def as_listed(regions: Regions) -> list[tuple[Row, int]]:
    return [
        (tuple(row[2 : 2 + row[0]]), sign)
        for row, sign in zip(regions.rows.tolist(), regions.signs.tolist(), strict=True)
    ]


@MORE
@given(SMALL, GAPS)
def test_the_oracle_names_the_regions_that_the_records_give(case: Case, gap: int) -> None:
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    for before, after in itertools.pairwise(case.states):
        change = round_of(case, versions, before, after)
        regions = regions_of(trace, change)
        assert as_listed(regions) == sorted(brute_regions(case, trace, before, after).items())
        assert len(regions) <= regions.surgeries + regions.matches
        for row in regions.rows.tolist():
            assert row[1] == row[1 + row[0]]  # a point at the last coordinate
        trace.step(change, RuleStats())
        trace.keep()
        versions = dict(change.new)


def single_changes(case: Case, state: Contents) -> list[tuple[str, Row, Contents]]:
    """Every tuple over some of the keys, inserted or erased: its relation, itself, the state after."""
    keys = [key for key in case.keys if -2 <= key <= 9][:7]
    arities = {atom.relation: len(atom.schema.columns) for atom in atoms_of(case.problem)}
    found = []
    for name, rows in state.items():
        tuples = {*rows, *itertools.islice(itertools.product(keys, repeat=arities[name]), 150)}
        found += [(name, row, {**state, name: rows ^ {row}}) for row in sorted(tuples)]
    return found


@settings(suppress_health_check=list(HealthCheck))
@given(SMALL, GAPS)
def test_a_change_outside_the_records_changes_nothing(case: Case, gap: int) -> None:
    """And one inside them changes nothing outside of its regions."""
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    for before, after in itertools.pairwise(case.states):
        change = round_of(case, versions, before, after)
        trace.step(change, RuleStats())
        trace.keep()
        versions = dict(change.new)
    state = case.states[-1]
    rows = set(brute_rows(case.problem, case.order, state))
    outside = 0
    for name, row, following in single_changes(case, state):
        regions = as_listed(regions_of(trace, round_of(case, versions, state, following)))
        outside += not regions
        signs = dict(regions)
        for binding, sign in change_between(
            rows, set(brute_rows(case.problem, case.order, following))
        ).items():
            above = {signs.get(binding[:length], 0) for length in range(1, len(binding) + 1)}
            assert (PLUS if sign > 0 else MINUS) in above, (name, row, binding)
    event("some changes are outside" if outside else "all changes are inside")


@MORE
@given(SMALL, GAPS)
def test_a_change_and_its_inverse(case: Case, gap: int) -> None:
    """Back and forth through all states, twice: the assignments that come are those that went."""
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    states = [(state, set(brute_rows(case.problem, case.order, state))) for state in case.states]
    walk = [*states, *states[-2::-1]] * 2
    for (before, rows), (after, following) in itertools.pairwise(walk):
        change = round_of(case, versions, before, after)
        columns, signs = trace.step(change, RuleStats())
        trace.keep()
        expected = change_between(rows, following)
        assert dict(zip(rows_of(columns), signs.tolist(), strict=True)) == expected
        check_coverage(case, trace, after)
        versions = dict(change.new)


@settings(suppress_health_check=list(HealthCheck))
@given(SMALL, GAPS)
def test_a_step_that_is_dropped_drops_no_record(case: Case, gap: int) -> None:
    """Each step is taken twice, dropped and then kept."""
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    for before, after in itertools.pairwise(case.states):
        change = round_of(case, versions, before, after)
        trace.step(change, RuleStats())
        trace.drop()
        check_coverage(case, trace, before)
        trace.step(change, RuleStats())
        trace.keep()
        trace.keep()
        check_coverage(case, trace, after)
        versions = dict(change.new)


# -- cut records ---------------------------------------------------------------------------


@MORE
@given(SMALL, GAPS)
def test_a_row_that_comes_again_matches_nothing_in_vain(case: Case, gap: int) -> None:
    """Where nothing but the want of a key refuses: what it matched in vain at first has been cut."""
    assume(not case.problem.negations and not case.problem.conditions)
    trace = traced(case, gap)
    versions = first_versions(case)
    trace.build(Building(versions))
    state = case.states[0]
    in_vain = []
    for _, _, following in [one for one in single_changes(case, state) if more_rows(state, one[2])][:12]:
        for round_number in range(3):
            for before, after in ((state, following), (following, state)):
                wasted = trace._built.wasted_operations
                change = round_of(case, versions, before, after)
                trace.step(change, RuleStats())
                trace.keep()
                if after is following:
                    in_vain.append((round_number, trace._built.wasted_operations - wasted))
                versions = dict(change.new)
        check_coverage(case, trace, state)
    assert not any(wasted for round_number, wasted in in_vain if round_number)


def more_rows(state: Contents, following: Contents) -> bool:
    return sum(map(len, following.values())) > sum(map(len, state.values()))


def below_one(keys: Mapping[str, Sequence[int]]) -> Workspace:
    """Unary relations, joined below a variable that they lack: so they have records."""
    workspace = Workspace(record_gap=0)
    workspace.load("one", [(1,)], columns=["y"])
    for name, its in keys.items():
        workspace.load(name, pa.table({"x": pa.array(its, pa.int64())}))
    body = ", ".join(f"{name}(x)" for name in keys)
    workspace.install(f"h(y, x) <- one(y), {body}.", "trace", order={"h": ["y", "x"]})
    return workspace


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@settings(suppress_health_check=list(HealthCheck))
@given(st.integers(2, 4), st.data())
def test_cover_comes_to_rest(n_atoms: int, data: st.DataObject) -> None:
    """While the keys of one atom stay, those of the others match each gap of it so often as there are others.

    Keys from 1 to 49; the last atom has few of them, which all have.
    """
    keys = sorted(data.draw(st.sets(st.integers(0, 4), max_size=3)))
    names = [f"r{number}" for number in range(n_atoms)]
    drawn = data.draw(st.permutations(names))
    workspace = below_one({name: [10 * key for key in keys] for name in names})
    matches = 0
    toggled = st.tuples(st.sampled_from(drawn[1:]), st.integers(1, 49).filter(lambda key: key % 10))
    for name, key in data.draw(st.lists(toggled, max_size=30)):
        for change in ("insert", "erase"):
            with workspace.transaction() as transaction:
                getattr(transaction, change)(name, [(key,)])
            matches += transaction.stats["h"].matches
        workspace.verify()
    assert matches <= (n_atoms - 1) * (len(keys) + 1)


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_cover_goes_to_whose_turn_it_is() -> None:
    """Two atoms of three take turns in having 15: each is matched once, and cover rests with the third.

    If it went to the first atom that lacks 15, the two would hand it to each other for ever.
    """
    workspace = below_one({name: [10, 20] for name in "ABC"})
    found = [turned(workspace, name, (15,), sign=sign) for name in "ABABAB" for sign in (1, -1)]
    assert [stats.matches for stats in found] == [1, 0, 1, *[0] * 9]


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("n_others", [1, 2, 3])
def test_after_a_match_the_participant_steps_whose_turn_it_is(n_others: int) -> None:
    """A steps from 10 to 20; B seeks 20 and lands on 30, the others follow, A last.  Then it is B's turn.

    If it were always A's, a hostile change of A would be matched in each node that passes over it.
    """
    others = "BCD"[:n_others]
    for name in ("A", *others):
        keys = {"A": [10, 20, 30, 40], **{other: [10, 30, 40] for other in others}}
        assert turned(below_one(keys), name, (35,), sign=1).matches == (name == "B"), name


@pytest.mark.parametrize("n", FANS)
def test_a_record_that_a_change_has_shortened_is_matched_once(n: int) -> None:
    """S opens at 10 in each node.  When 7 comes, T covers what is between 5 and 10 instead."""
    workspace = fan(n, (10, 90), (5, 90))
    assert turned(workspace, "S", (0, 7), sign=1).matches == n
    for sign in (1, -1, 1, -1):
        assert turned(workspace, "S", (0, 8), sign=sign).operations == 1
    assert turned(workspace, "T", (3, 8), sign=1).head_changes == 0
    assert turned(workspace, "S", (0, 8), sign=1).head_changes == 1


# -- dead records ------------------------------------------------------------------------


def fan(n: int, s_keys: Sequence[int] = (0, 10, 90), t_keys: Sequence[int] = (0, 90)) -> Workspace:
    """``R(a, 0)`` and ``T(a, t_keys)`` for n values of a, and ``S(0, s_keys)``; exact records."""
    workspace = Workspace(record_gap=0)
    workspace.load("R", [(a, 0) for a in range(n)], columns=["a", "b"])
    workspace.load("S", [(0, c) for c in s_keys], columns=["b", "c"])
    workspace.load("T", [(a, c) for a in range(n) for c in t_keys], columns=["a", "c"])
    workspace.install("h(a, b, c) <- R(a, b), S(b, c), T(a, c).", "trace", order={"h": ["a", "b", "c"]})
    return workspace


def turned(workspace: Workspace, relation: str, *rows: Row, sign: int) -> RuleStats:
    with workspace.transaction() as transaction:
        (transaction.insert if sign > 0 else transaction.erase)(relation, list(rows))
    workspace.verify()
    workspace.check_invariants()
    return transaction.stats["h"]


@pytest.mark.parametrize("n", FANS)
def test_a_record_below_a_branch_that_is_gone_is_matched_once(n: int) -> None:
    workspace = fan(n)
    turned(workspace, "R", *[(a, 0) for a in range(n)], sign=-1)
    records = workspace.explain_maintenance("h")
    first = turned(workspace, "S", (0, 90), sign=-1)
    assert (first.matches, first.dropped_records) == (n, n), records
    for sign in (1, -1, 1):
        stats = turned(workspace, "S", (0, 90), sign=sign)
        assert (stats.matches, stats.dropped_records, stats.opens + stats.seeks + stats.nexts) == (0, 0, 0)
    assert turned(workspace, "R", (7, 0), sign=1).head_changes == 2
    assert turned(workspace, "S", (0, 90), sign=-1).head_changes == 1


def test_copies_of_a_record_are_matched_once() -> None:
    workspace = fan(3)
    for _ in range(20):
        turned(workspace, "R", (1, 0), sign=-1)
        turned(workspace, "R", (1, 0), sign=1)
    found = [turned(workspace, "S", (0, 90), sign=sign).matches for sign in (-1, 1, -1, 1, -1)]
    assert found[0] == 23 and max(found[1:]) <= 6


def test_a_record_of_a_transaction_that_is_rolled_back_stays() -> None:
    workspace = fan(5)
    turned(workspace, "R", *[(a, 0) for a in range(5)], sign=-1)
    with pytest.raises(ZeroDivisionError), workspace.transaction() as transaction:
        transaction.erase("S", [(0, 90)])
        assert workspace["h"].count == 0
        raise ZeroDivisionError
    assert turned(workspace, "S", (0, 90), sign=-1).dropped_records == 5


@pytest.mark.parametrize(("key", "matches"), [(-5, 30), (5, 0), (50, 0), (95, 0)])
def test_what_the_trace_passes_over_matches_nothing(key: int, matches: int) -> None:
    """S opens at 0.  After the match T steps from 0 to 90, then S seeks 90, then T steps to its end."""
    assert turned(fan(30), "S", (0, key), sign=1).matches == matches


@pytest.mark.parametrize("gap", [0, 8])
def test_a_participant_that_comes_to_be_needed_is_covered(gap: int) -> None:
    """At node x = 1 neither atom holds y = 40; then b gets it, then a, and then b loses it."""
    workspace = Workspace(record_gap=gap)
    workspace.load("a", [(1, 50)], columns=["x", "y"])
    workspace.load("b", [(y,) for y in range(20)], columns=["y"])
    workspace.install("h(x, y) <- a(x, y), b(y).", "trace", order={"h": ["x", "y"]})
    with workspace.transaction() as transaction:
        transaction.insert("b", [(40,)])
    assert transaction.stats.rules["h"].regions == 0
    with workspace.transaction() as transaction:
        transaction.insert("a", [(1, 40)])
    assert workspace["h"].to_pylist() == [{"x": 1, "y": 40}]
    with workspace.transaction() as transaction:
        transaction.erase("b", [(40,)])
    assert workspace["h"].count == 0
