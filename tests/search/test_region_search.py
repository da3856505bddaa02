"""oracle: the search below regions, over versions with runs, against brute force.

Whole evaluations and random regions must give exactly the assignments below
them, in key order, with any buffers, threads, paths through the last depth and
pauses, and the records must not depend on those either.
"""

from __future__ import annotations

import contextlib
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest import mock

import numba
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.database.database import Database
from lftj.evaluation.trace import NEXT, OPEN, SEEK, trace_codes
from lftj.memory import address
from lftj.search import shares
from lftj.search.machine.cursor import bind_indexes, open_cursor, seek
from lftj.search.machine.plan import RegionPlan, compile_regions
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.queries.plan import compile_plan
from lftj.search.records import CURSOR, ROOM, Cursor, Node, Path, cursor_at, search_at
from lftj.search.regions import evaluation as region_evaluation
from lftj.search.regions.evaluation import Found, RegionSearch, evaluate_whole, whole
from lftj.storage import index_version
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation_version import RelationVersion, levels_of
from maintenance import Workspace
from support import rows
from support.bodies import (
    BOTTOM,
    TOP,
    Case,
    Row,
    advanced,
    atom_of,
    atom_rows,
    brute_rows,
    cases,
    change_between,
    first_versions,
    relation,
    rows_of,
    stepped,
)
from support.sets import load_set
from support.strategies import Scenario, any_row, scenarios

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

GAPS = st.sampled_from((0, 1, 8))


def last_indexes(case: Case, plan: RegionPlan) -> list[IndexVersion]:
    """Of the last state, made by changes to the first: the later tuples are in runs."""
    versions = first_versions(case)
    for use in plan.indexes:
        versions[use.relation].index_at(use.key)
    for state, following in itertools.pairwise(case.states):
        versions = stepped(versions, state, following)
    found = [versions[use.relation].index_at(use.key) for use in plan.indexes]
    event("runs" if any(index.runs for index in found) else "no runs")
    return found


def compiled(case: Case, gap: int) -> tuple[RegionPlan, list[IndexVersion], list[Row]]:
    """The plan, its indices over the last state, and the rows by brute force."""
    plan = compile_regions(case.problem, case.order, gap)
    return plan, last_indexes(case, plan), brute_rows(case.problem, case.order, case.states[-1])


def recorded(found: Found) -> list[tuple[int, Row]]:
    """Stream, prefix, interval and context of each record, sorted."""
    return sorted(
        (stream, row)
        for stream, its in found[1]
        for row in rows_of([*its.prefix, its.lo, its.hi, *its.context])
    )


# -- whole evaluations ---------------------------------------------------------------


@given(cases(), GAPS)
def test_whole_evaluations(case: Case, gap: int) -> None:
    plan, indexes, expected = compiled(case, gap)
    for record in (False, True):
        found = evaluate_whole(plan, indexes, record)
        assert rows_of(found[0]) == expected
        assert record or not recorded(found)
    event("some rows" if expected else "no rows")


@pytest.mark.parametrize("negated", [(2, 5), (0, 5), (1, 7)])
def test_below_a_key_that_a_negated_atom_does_not_hold_it_holds_nothing(negated: Row) -> None:
    """Neither what it holds below the next key nor below the last one; also where the key is its own."""
    atoms = (atom_of("a", 2, (0, 1), ("x", "y"), label="a"),)
    none = (atom_of("n", 2, (0, 1), ("x", "y"), label="n"),)
    rows = {"a": frozenset({(1, 5), (2, 6), (3, 5)}), "n": frozenset({negated})}
    case = Case(JoinProblem(atoms, none), ("x", "y"), (rows,))
    plan, versions = compile_regions(case.problem, case.order, 0), first_versions(case)
    indexes = [versions[use.relation].index_at(use.key) for use in plan.indexes]
    expected = brute_rows(case.problem, case.order, rows)
    assert rows_of(evaluate_whole(plan, indexes, False)[0]) == expected == sorted(rows["a"])


def test_a_node_in_blocks_leads_its_shortest_range_on() -> None:
    """Keys of it that are below all of another are passed over at once, not tried one by one."""
    atoms = tuple(atom_of(name, 2, (0, 1), ("x", y), label=name) for name, y in (("a", "y"), ("b", "z")))
    rows = {
        "a": frozenset((x, 1) for x in (*range(200), 5000)),
        "b": frozenset((x, 2) for x in range(1000, 5001)),
    }
    case = Case(JoinProblem(atoms), ("x", "y", "z"), (rows,))
    plan, versions = compile_regions(case.problem, case.order, 0), first_versions(case)
    indexes = [versions[use.relation].index_at(use.key) for use in plan.indexes]
    found = evaluate_whole(plan, indexes, False)
    assert rows_of(found[0]) == [(5000, 1, 2)]
    assert found[2].seeks <= 8, found[2]


def test_paths_are_told_in_the_call_that_asks_for_them() -> None:
    rows = {"a": frozenset({(1, 5), (2, 6)})}
    case = Case(JoinProblem((atom_of("a", 2, (0, 1), ("x", "y"), label="a"),)), ("x", "y"), (rows,))
    plan, versions = compile_regions(case.problem, case.order, 0), first_versions(case)
    indexes = [versions[use.relation].index_at(use.key) for use in plan.indexes]
    regions = np.array([[2, 5, 1, 5], [2, 5, 2, 5]])
    paths = np.array([Path.fields(failed=-1, matched=-1)] * 2)
    search = RegionSearch(plan)
    assert rows_of(search.run(indexes, regions, True, paths=paths)[0]) == [(1, 5)]
    assert [int(Path.view(path).failed) for path in paths] == [2, 1]
    paths[:] = -7
    assert rows_of(search.run(indexes, regions, True)[0]) == [(1, 5)]
    assert (paths == -7).all()


@given(cases(), GAPS)
def test_two_threads_give_the_same(case: Case, gap: int) -> None:
    plan, indexes, expected = compiled(case, gap)
    with mock.patch.object(shares, "SHARES_PER_THREAD", 3):
        assert rows_of(evaluate_whole(plan, indexes, True, threads=2)[0]) == expected


@contextlib.contextmanager
def small_buffers(capacity: int, budget: int) -> Iterator[None]:
    """Buffers of so many rows, and of one record more than a step may write; so many operations a call."""
    with contextlib.ExitStack() as stack:
        for name, value in {
            "LEAST_CAPACITY": capacity,
            "MOST_CAPACITY": capacity,
            "WHOLE_CAPACITY": capacity,
            "SLICE": budget,
        }.items():
            stack.enter_context(mock.patch.object(region_evaluation, name, value))
        yield


@given(cases(), GAPS, st.sampled_from((ROOM, ROOM + 1, 9)), st.sampled_from((0, 1, 7, 1 << 24)))
def test_tiny_buffers_and_budgets_change_nothing(case: Case, gap: int, capacity: int, budget: int) -> None:
    """The search stops and goes on everywhere: the same rows, the same records."""
    plan, indexes, expected = compiled(case, gap)
    plain = evaluate_whole(plan, indexes, True)
    with small_buffers(capacity, budget):
        small = evaluate_whole(plan, indexes, True)
        assert (
            rows_of(
                RegionSearch(plan, 1 if not plan.streams else capacity).run(
                    indexes, whole(plan.depths), False
                )[0]
            )
            == expected
        )
    assert rows_of(small[0]) == rows_of(plain[0]) == expected
    assert covered_points(case, plan, small) == covered_points(case, plan, plain)
    assert len(recorded(small)) >= len(recorded(plain))


@pytest.mark.parametrize("capacity", [ROOM, ROOM + 1, 11])
@pytest.mark.parametrize("atoms", ["a(x,y) b(y)", "a(x,y) b(y) c(y)"])
def test_a_node_with_many_records_in_small_buffers(atoms: str, capacity: int) -> None:
    """Each of three nodes leaves ten records, which leave the buffers in several parts."""
    rows = {
        "a": frozenset((x, y) for x in range(3) for y in range(0, 100, 10)),
        "b": frozenset((y,) for y in range(100)),
        "c": frozenset((y,) for y in range(0, 100, 2)),
    }
    split = [atom.rstrip(")").split("(") for atom in atoms.split()]
    joined = [
        atom_of(
            name,
            len(terms.split(",")),
            range(len(terms.split(","))),
            terms.split(","),
            label=name,
        )
        for name, terms in split
    ]
    case = Case(JoinProblem(tuple(joined)), ("x", "y"), ({name: rows[name] for name, _ in split},))
    plan, versions = compile_regions(case.problem, case.order, 0), first_versions(case)
    indexes = [versions[use.relation].index_at(use.key) for use in plan.indexes]
    expected = brute_rows(case.problem, case.order, case.states[0])
    plain = evaluate_whole(plan, indexes, True)
    with small_buffers(capacity, 1 << 24):
        small = evaluate_whole(plan, indexes, True)
    assert rows_of(small[0]) == rows_of(plain[0]) == expected
    assert recorded(small) == recorded(plain)
    first = {row[1] for stream, row in recorded(plain) if stream == 0 and row[-1] == 0}
    assert first == set(range(0, 100, 10))


def covered_points(case: Case, plan: RegionPlan, found: Found) -> list[set[Row]]:
    """Per stream every (prefix, context, key) that a record holds, over the case's keys.

    A record may be cut in two where a search stops.
    """
    points: list[set[Row]] = [set() for _ in plan.streams]
    for stream, its in found[1]:
        prefixes = rows_of([*its.prefix, *its.context]) or [()] * len(its.lo)
        for path, low, high in zip(prefixes, its.lo.tolist(), its.hi.tolist(), strict=True):
            points[stream] |= {(*path, key) for key in case.keys if low <= key <= high}
    return points


# -- paths through the last depth -------------------------------------------------------


def leapfrogged(plan: RegionPlan) -> RegionPlan:
    """The plan with no node whose matches are listed together."""
    template = plan.template.copy()
    for item in plan.nodes:
        Node.view(template, item).lists_matches = 0
    return replace(plan, template=template)


@st.composite
def merging_cases(draw: st.DrawFn) -> Case:
    """Bodies whose last depth has two participants and nothing that drops matches."""
    low, spread = draw(st.sampled_from(((0, 6), (0, 30), (-40, 80), (BOTTOM, 12), (TOP - 12, 12))))
    key = st.integers(low, low + spread)
    pairs = frozenset(draw(st.sets(st.tuples(key, key), max_size=30)))
    others = frozenset(draw(st.sets(st.tuples(key, key), max_size=30)))
    shape = draw(st.sampled_from(("ab bc ac", "ac bc", "ab ac", "ab bc")))
    sources = {"e": pairs, "f": others}
    atoms = tuple(
        atom_of(draw(st.sampled_from(("e", "f"))), 2, (0, 1), names, label=names) for names in shape.split()
    )
    problem = JoinProblem(atoms)
    last = [name for name in problem.variables if sum(name in atom.variables for atom in atoms) == 2]
    final = draw(st.sampled_from(sorted(last)))
    order = [*draw(st.permutations([name for name in problem.variables if name != final])), final]
    state = {atom.relation: sources[atom.relation] for atom in atoms}
    return Case(problem, tuple(order), (state,))


@given(merging_cases(), GAPS)
def test_marks_merges_and_the_plain_leapfrog_agree(case: Case, gap: int) -> None:
    """Rows and coverage: the quick loops of the last depth do what align and step do."""
    plan = compile_regions(case.problem, case.order, gap)
    indexes = last_indexes(case, plan)
    expected = brute_rows(case.problem, case.order, case.states[0])
    region = whole(plan.depths)
    assert Node.view(plan.template, plan.nodes[-1]).lists_matches == 1
    staged = RegionSearch(plan, staged_over=indexes)
    ways = {
        "marks": staged.run(indexes, region, True),
        "marks again": staged.run(indexes, region, True),
        "merge": RegionSearch(plan).run(indexes, region, True),
        "leapfrog": RegionSearch(leapfrogged(plan)).run(indexes, region, True),
    }
    for way, found in ways.items():
        assert rows_of(found[0]) == expected, way
    with mock.patch.object(region_evaluation, "MOST_CAPACITY", ROOM + 1):
        small = RegionSearch(plan, ROOM + 1, indexes).run(indexes, region, True)
    assert rows_of(small[0]) == expected
    event(f"stages: {len(plan.stages)}")
    assert recorded(ways["marks"]) == recorded(ways["marks again"]) == recorded(ways["merge"])


@st.composite
def clique_cases(draw: st.DrawFn) -> Case:
    """Bodies of pairs in which the last variable is in one atom to four, of which some stay the same."""
    key = st.integers(0, draw(st.sampled_from((4, 9, 40))))
    pairs = frozenset(draw(st.sets(st.tuples(key, key), max_size=60)))
    shape = draw(
        st.sampled_from(("ab", "ab bc", "ab ac bc", "ab ad bd cd bc", "ab ad bd cd", "ae be ce de ab cd"))
    )
    atoms = tuple(atom_of("e", 2, (0, 1), names, label=names) for names in shape.split())
    problem = JoinProblem(atoms)
    return Case(problem, tuple(sorted(problem.variables)), ({"e": pairs},))


@given(clique_cases(), st.sampled_from((1, 2, 7, 1 << 10)))
def test_any_number_of_participants_is_intersected(case: Case, capacity: int) -> None:
    """With stages and without, where buffers are full at every step, and again over what they hold then."""
    plan, indexes, expected = compiled(case, 8)
    region = whole(plan.depths)
    with mock.patch.object(region_evaluation, "MOST_CAPACITY", capacity):
        for search in (RegionSearch(plan, capacity), RegionSearch(plan, capacity, indexes)):
            for _ in range(2):
                assert rows_of(search.run(indexes, region, False)[0]) == expected
    assert rows_of(evaluate_whole(plan, indexes, True)[0]) == expected
    event(f"stages: {len(plan.stages)}, some rows: {bool(expected)}")


@given(clique_cases(), st.sampled_from((1, 2, 7, 1 << 10)), st.data())
def test_keys_of_runs_stand_apart(case: Case, capacity: int, data: st.DataObject) -> None:
    """Under prefixes where runs insert and erase, as where each key is sought, and in full buffers too."""
    states = [case.states[0]["e"]]
    key = st.sampled_from((*case.keys, BOTTOM, TOP))
    for _ in range(2):
        states.append(states[-1] ^ data.draw(st.frozensets(st.tuples(key, key), max_size=8)))
    case = replace(case, states=tuple({"e": pairs} for pairs in states))
    with mock.patch.object(index_version, "BASE_LEAST", 1000):
        plan, indexes, expected = compiled(case, 8)
    region = whole(plan.depths)
    with mock.patch.object(region_evaluation, "MOST_CAPACITY", capacity):
        for its in (plan, leapfrogged(plan)):
            assert rows_of(RegionSearch(its, capacity).run(indexes, region, False)[0]) == expected


@pytest.mark.parametrize("inserted", [range(1000, 1005), range(3000, 4000)])
def test_runs_cost_no_more_than_the_shortest_range(inserted: range) -> None:
    """A few of their keys are looked up one by one; many are leapt over where another range is short."""
    held = {
        "a": frozenset((x, key) for x, n in ((1, 1000), (2, 9000)) for key in range(n)),
        "b": frozenset((1, key) for key in range(0, 50, 5)),
    }
    atoms = tuple(atom_of(name, 2, (0, 1), ("x", "y"), label=name) for name in held)
    after = {**held, "a": (held["a"] | {(1, key) for key in inserted}) - {(1, 10)}}
    case = Case(JoinProblem(atoms), ("x", "y"), (held, after))
    plan, versions = compile_regions(case.problem, case.order, 0), first_versions(case)
    with mock.patch.object(index_version, "BASE_LEAST", 10_000):
        indexes = [stepped(versions, held, after)[use.relation].index_at(use.key) for use in plan.indexes]
    assert any(index.runs for index in indexes)
    found = evaluate_whole(plan, indexes, False)
    assert rows_of(found[0]) == brute_rows(case.problem, case.order, after)
    assert found[2].seeks <= 45, found[2]


# -- exact records and the trace ---------------------------------------------------------


def traced_points(case: Case, plan: RegionPlan) -> list[set[Row]]:
    """Per stream every (prefix, context, key) that the trace is sensitive to (ILFTJ 4.1)."""
    tables = {
        name: relation(name, len(its.schema.columns), case.states[-1][name])
        for name, its in first_versions(case).items()
    }
    problem = replace(case.problem, emitted=case.order)  # else it would stop at the first success
    traced = compile_plan(problem, case.order, write=True, share=False)
    levels = [(atom, level) for atom in problem.atoms for level in range(len(atom.variables))]
    streams = (stream_of_level(case, plan, atom, level) for atom, level in levels)
    stream_of = dict(zip(traced.layout.names, streams, strict=False))
    points: list[set[Row]] = [set() for _ in plan.streams]
    for depth, iterator, operation, start, landed, ended, *bound in trace_codes(
        traced.bind(tables), 1 << 20
    ).tolist():
        stream = stream_of.get(iterator)
        if stream is None:
            continue
        low = {OPEN: BOTTOM, SEEK: start, NEXT: min(start, TOP - 1) + 1}[operation]
        where = plan.streams[stream]
        path = [bound[place] for place in (*where.places[:-1], *where.context_places)]
        assert depth == where.depth
        points[stream] |= {(*path, key) for key in case.keys if low <= key <= (TOP if ended else landed)}
    return points


def stream_of_level(case: Case, plan: RegionPlan, atom: JoinAtom, level: int) -> int | None:
    """The record stream of a level of a positive atom."""
    by_depth = sorted(range(len(atom.variables)), key=lambda i: case.order.index(atom.variables[i]))
    places = tuple(case.order.index(atom.variables[i]) for i in by_depth)
    levels = levels_of(tuple(atom.columns[i] for i in by_depth), atom.equal, atom.identity)
    (stream,) = {
        its.stream
        for its in plan.participants
        if not its.negated
        and its.places == places[: level + 1]
        and plan.indexes[its.index].relation == atom.relation
        and plan.indexes[its.index].key == (levels, atom.equal)
    }
    return stream


@given(cases())
def test_exact_records_are_what_the_trace_is_sensitive_to(case: Case) -> None:
    """With a gap of 0 no key is recorded at which no operation of the full trace has landed or passed.

    The search may leave a node earlier than the trace does: when a participant has no key at all, or
    stands on the greatest key that conditions allow.
    """
    plan, indexes, _ = compiled(case, 0)
    if any(not state for state in case.states[-1].values()) or any(not i.n_tuples for i in indexes):
        return  # the trace of a body that cannot hold is empty
    found = evaluate_whole(plan, indexes, True)
    traced, recorded_points = traced_points(case, plan), covered_points(case, plan, found)
    for participant, its, others in zip(plan.streams, recorded_points, traced, strict=True):
        assert participant.negated or its <= others, participant
    event(f"records: {any(recorded_points)}, equal: {recorded_points == traced}")


@given(merging_cases())
def test_exact_records_of_merges_are_what_the_trace_is_sensitive_to(case: Case) -> None:
    """Where two participants meet at the last depth, in the loop of its own: the same set of keys."""
    plan = compile_regions(case.problem, case.order, 0)
    indexes = last_indexes(case, plan)
    if any(not rows for rows in case.states[0].values()):
        return
    last = len(case.order) - 1
    both = plan, leapfrogged(plan)
    ways = [RegionSearch(its).run(indexes, whole(plan.depths), True) for its in both]
    traced = traced_points(case, plan)
    for found in ways:
        points = covered_points(case, plan, found)
        for participant, its, others in zip(plan.streams, points, traced, strict=True):
            assert its == others if participant.depth == last else its <= others, participant


# -- regions --------------------------------------------------------------------------


@st.composite
def disjoint_regions(draw: st.DrawFn, case: Case, near: Sequence[Row]) -> np.ndarray:
    """Sorted regions, points and intervals at their last coordinate, none of which shares a binding."""
    depths = len(case.order)
    keys = case.keys
    boxes: list[list[tuple[int, int]]] = []
    for _ in range(draw(st.integers(1, 7))):
        bound = draw(st.integers(1, depths))
        if near and draw(st.integers(0, 3)):
            path = list(draw(st.sampled_from(near))[:bound])
            if draw(st.booleans()):
                path[-1] = draw(st.sampled_from(keys))
        else:
            path = [draw(st.sampled_from(keys)) for _ in range(bound)]
        end = path[-1]
        if draw(st.booleans()):
            end = draw(st.sampled_from([key for key in keys if key >= path[-1]]))
        box = [(key, key) for key in path[:-1]] + [(path[-1], end)]
        if not any(_meet(box, other) for other in boxes):
            boxes.append(box)
    boxes.sort(key=lambda box: [low for low, _ in box])
    regions = np.full((len(boxes), 2 + depths), BOTTOM, dtype=np.int64)
    for row, box in zip(regions, boxes, strict=True):
        row[0], row[1] = len(box), box[-1][1]
        row[2 : 2 + len(box)] = [low for low, _ in box]
    return regions


def _meet(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> bool:
    pairs = zip(left, right, strict=False)
    return all(low <= its_high and its_low <= high for (low, high), (its_low, its_high) in pairs)


def below(regions: np.ndarray, rows: Sequence[Row]) -> list[Row]:
    """The rows of each region, region after region."""
    found = []
    for bound, end, *path in regions.tolist():
        found += [
            row
            for row in rows
            if list(row[: bound - 1]) == path[: bound - 1] and path[bound - 1] <= row[bound - 1] <= end
        ]
    return found


@given(cases(), GAPS, st.data())
def test_regions_give_the_assignments_below_them(case: Case, gap: int, data: st.DataObject) -> None:
    plan, indexes, expected = compiled(case, gap)
    constants = tuple(limit for limit in case.problem.conditions if limit.left == "k")
    loose = JoinProblem(case.problem.atoms, conditions=constants)
    near = brute_rows(loose, case.order, case.states[0])
    search = RegionSearch(plan, data.draw(st.sampled_from((ROOM, 64))))
    for _ in range(2):  # what one run leaves behind must not matter to the next
        regions = data.draw(disjoint_regions(case, [*expected, *near[:20]]))
        for record in (False, True):
            found = search.run(indexes, regions, record)
            assert rows_of(found[0]) == below(regions, expected)
            assert found[2].failed_regions <= len(regions)


@given(cases(), st.data())
def test_regions_that_split_everything(case: Case, data: st.DataObject) -> None:
    """The first variable's keys cut into closed ranges: together they give all rows, once each."""
    plan, indexes, expected = compiled(case, 8)
    cuts = data.draw(st.lists(st.sampled_from([key for key in case.keys if key > BOTTOM]), unique=True))
    starts = [BOTTOM, *sorted(cuts)]
    ends = [*(start - 1 for start in starts[1:]), TOP]
    regions = np.concatenate([whole(plan.depths, low, high) for low, high in zip(starts, ends, strict=True)])
    assert rows_of(RegionSearch(plan).run(indexes, regions, True)[0]) == expected


# -- cursors --------------------------------------------------------------------------


@numba.njit
def open_here(where, indexes, number):  # type: ignore[no-untyped-def]
    """The kernels' own function, for Python code to call, as is the next one."""
    search = search_at(where)
    bind_indexes(search, indexes)
    open_cursor(cursor_at(search.cursors + number * CURSOR))


@numba.njit
def seek_here(where, number, key, gap):  # type: ignore[no-untyped-def]
    return seek(cursor_at(search_at(where).cursors + number * CURSOR), key, gap)


@given(cases(most_steps=5), st.data())
def test_a_cursor_lands_on_the_least_present_key(case: Case, data: st.DataObject) -> None:
    """Seeks of one atom, level by level, over base and runs, against the sorted keys."""
    atom = case.problem.atoms[0]
    problem, state = JoinProblem((atom,)), case.states[-1]
    case = Case(
        problem,
        tuple(data.draw(st.permutations(atom.variables))),
        tuple({atom.relation: its[atom.relation]} for its in case.states),
    )
    plan, indexes, _ = compiled(case, 0)
    memories = np.array([address(index.memory) for index in indexes], dtype=np.int64)
    by_level = [atom.variables.index(name) for name in case.order]
    rows = {tuple(row[i] for i in by_level) for row in atom_rows(atom, state)}
    memory = plan.new_memory(record=True)
    cursors = [Cursor.view(memory, item) for item in plan.cursors]
    path: Row = ()
    for level in range(len(case.order)):
        present = sorted({row[level] for row in rows if row[:level] == path})
        open_here(address(memory), memories, level)
        for key in sorted(data.draw(st.lists(st.sampled_from(case.keys), min_size=1, max_size=6))):
            gap = data.draw(st.sampled_from((0, 1, 8)))
            landed = bool(seek_here(address(memory), level, key, gap))
            place = bisect_left(present, key)
            assert landed == (place < len(present)), (level, key)
            assert cursors[level].key == (present[place] if landed else TOP)
            if landed and data.draw(st.integers(0, 3)) == 0:
                break
        if not landed:
            return
        path = (*path, int(cursors[level].key))


def test_a_key_that_runs_erase_everywhere_is_passed() -> None:
    """Base keys 0..9 of which runs erase all but the last, and insert one at either end of int64."""
    version = RelationVersion(relation("r", 1, [(key,) for key in range(10)]))
    states = [frozenset((key,) for key in range(10))]
    with mock.patch.object(index_version, "BASE_LEAST", 1000):
        for change in ({(key,) for key in range(9)}, {(BOTTOM,), (TOP,)}):
            states.append(states[-1] ^ change)
            version = advanced(version, change_between(states[-2], states[-1]))
    assert len(version.primary.runs) == 2
    plan = compile_regions(JoinProblem((atom_of("r", 1, (0,), "a"),)), "a", 0)
    rows = evaluate_whole(plan, [version.primary], True)[0]
    assert rows_of(rows) == [(BOTTOM,), (9,), (TOP,)]


# -- rules ----------------------------------------------------------------------------


@pytest.mark.compiled
@given(scenarios(most_atoms=4, plain=True), GAPS)
def test_rules_give_what_queries_give(scenario: Scenario, gap: int) -> None:
    """Pinned constants, comparisons, negations, repeated variables: by way of a workspace's first build."""
    db, ws = Database(), Workspace(record_gap=gap)
    for loaded in scenario.loaded:
        load_set(db, loaded.name, loaded.table())
        load_set(ws, loaded.name, loaded.table())
    ws.install(scenario.text)
    held = rows.rows_of(ws[scenario.wanted].table)
    assert any_row(set(held)) == any_row(set(rows.rows_of(db.query(scenario.text))))
