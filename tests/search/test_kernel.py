"""oracle: the compiled search against brute force, for random join problems and every key order.

The `kernel` marker: these tests also run without the JIT and with numba's bounds checks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices.records import WORD
from lftj.errors import RangeError
from lftj.search import marks
from lftj.search.machine import plan_check
from lftj.search.machine.plan import StageRow
from lftj.search.plan_memory import PlanMemory
from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem, needs_distinct, segments_of
from lftj.search.queries.plan import BoundPlan, compile_plan
from lftj.search.queries.search import Search, batches, count, shares
from lftj.search.records import SHORT_BLOCK, Stage
from lftj.storage.catalog import Catalog, SearchView, Table
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

pytestmark = pytest.mark.kernel

INTEGER = ColumnType(Domains().of(pa.int64()), pa.int64())
VARIABLES = "abcd"
OPERATORS = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "=": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def relation(rows: set[tuple[int, ...]], arity: int, name: str = "r") -> Relation:
    schema = Schema(tuple(Column(f"c{i}", INTEGER) for i in range(arity)))
    table = np.array(sorted(rows), dtype=np.int64).reshape(len(rows), arity)
    return Relation.from_codes(name, schema, [np.ascontiguousarray(table[:, i]) for i in range(arity)])


@dataclass(frozen=True)
class Case:
    """A problem and the tables that it reads: relations, or versions with runs."""

    problem: JoinProblem
    tables: Catalog


def atom_over(
    table: Table,
    columns: Sequence[int],
    variables: Sequence[str],
    equal: tuple[tuple[int, int], ...] = (),
    counted: Sequence[int] = (),
) -> JoinAtom:
    label = f"{table.name}{tuple(variables)}"
    return JoinAtom(
        table.name, table.schema, tuple(columns), tuple(variables), equal, tuple(counted), label=label
    )


def changed(table: Relation, toggled: set[tuple[int, ...]]) -> RelationVersion:
    """A version after a change: what was there of the rows went, the others came."""
    version = RelationVersion(table)
    for rows in (sorted(toggled)[::2], sorted(toggled)[1::2]):  # two runs
        columns = [np.array([row[i] for row in rows], dtype=np.int64) for i in range(len(table.codes))]
        version = version.advance(columns, 1 - 2 * version.weights(columns)) if rows else version
    return version


@st.composite
def atoms(draw: st.DrawFn, pool: Sequence[Table], names: str) -> JoinAtom:
    source = draw(st.sampled_from(pool))
    arity = len(source.schema.columns)
    width = draw(st.integers(1, min(arity, len(names))))
    columns = draw(st.permutations(range(arity)))[:width]
    variables = draw(st.permutations(names))[:width]
    equal: tuple[tuple[int, int], ...] = ()
    if arity > width and draw(st.integers(0, 4)) == 0:
        left_out = next(c for c in range(arity) if c not in columns)
        equal = ((columns[0], left_out),) if columns[0] < left_out else ((left_out, columns[0]),)
    others = [c for c in range(arity) if c not in columns and c not in (second for _, second in equal)]
    counted = tuple(c for c in others if draw(st.booleans()))
    return atom_over(source, columns, variables, equal, counted)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pool: list[Table] = []
    for number in range(draw(st.integers(1, 3))):
        arity = draw(st.integers(1, 3))
        key = st.integers(0, draw(st.sampled_from([2, 4, 40])))
        rows = draw(st.sets(st.tuples(*[key] * arity), max_size=14))
        toggled = draw(st.sets(st.tuples(*[key] * arity), max_size=draw(st.sampled_from([0, 2, 8]))))
        loaded = relation(rows, arity, f"r{number}")
        pool.append(changed(loaded, toggled) if toggled else loaded)
    positive = tuple(draw(st.lists(atoms(pool, VARIABLES), min_size=1, max_size=4)))
    bound = "".join(sorted({v for atom in positive for v in atom.variables}))
    negations = tuple(replace(atom, counted=()) for atom in draw(st.lists(atoms(pool, bound), max_size=2)))
    conditions = []
    for _ in range(draw(st.integers(0, 2))):
        left, operator = draw(st.sampled_from(bound)), draw(st.sampled_from(sorted(OPERATORS)))
        right = draw(st.sampled_from([*bound, None]))
        if right != left:
            conditions.append(JoinCondition(left, operator, right, draw(st.integers(-2, 3))))
    emitted = tuple(name for name in bound if draw(st.booleans()))
    counted = draw(st.booleans())
    if not counted:
        positive = tuple(replace(atom, counted=()) for atom in positive)
    problem = JoinProblem(positive, negations, tuple(conditions), emitted, counted)
    return Case(problem, {table.name: table for table in pool})


def rows_of(atom: JoinAtom, tables: Catalog) -> set[tuple[int, ...]]:
    """Rows on which the equal columns agree: the variables' columns, then the counted ones."""
    rows = zip(*(column.tolist() for column in tables[atom.relation].columns()), strict=True)
    kept = [row for row in rows if all(row[i] == row[j] for i, j in atom.equal)]
    return {tuple(row[c] for c in (*atom.columns, *atom.counted)) for row in kept}


def brute_force(case: Case) -> Counter[tuple[int, ...]]:
    """Emitted rows with the number of agreeing choices of a row per atom, or 1 when not counted."""
    problem = case.problem
    found: Counter[tuple[int, ...]] = Counter()
    negated = [(atom, rows_of(atom, case.tables)) for atom in problem.negations]

    def extend(binding: dict[str, int], left: list[JoinAtom]) -> None:
        if left:
            atom = left[0]
            for row in rows_of(atom, case.tables):
                values = dict(zip(atom.variables, row, strict=False))
                if all(binding.get(name, value) == value for name, value in values.items()):
                    extend(binding | values, left[1:])
            return
        for condition in problem.conditions:
            right = condition.offset + (0 if condition.right is None else binding[condition.right])
            if not OPERATORS[condition.operator](binding[condition.left], right):
                return
        if any(tuple(binding[v] for v in atom.variables) in rows for atom, rows in negated):
            return
        found[tuple(binding[name] for name in problem.emitted)] += 1

    extend({}, list(problem.atoms))
    return found if problem.counted else Counter(dict.fromkeys(found, 1))


def run(case: Case, order: Sequence[str], batch_rows: int, threads: int = 1) -> Counter[tuple[int, ...]]:
    problem = case.problem
    compiled = compile_plan(problem, order, write=True).bind(case.tables)
    got: Counter[tuple[int, ...]] = Counter()
    counters = compiled.new_counters()
    for columns, weights in batches(compiled, counters, batch_rows, threads):
        n_rows = len(columns[0]) if columns else 1
        assert n_rows <= batch_rows
        rows = list(zip(*(c.tolist() for c in columns), strict=True)) if columns else [()]
        for row, weight in zip(rows, [1] * n_rows if weights is None else weights.tolist(), strict=True):
            got[row] += weight
    if not problem.counted:
        if not needs_distinct(problem, order, segments_of(problem, order)):
            assert all(count == 1 for count in got.values()), "a row came out twice"
        got = Counter(dict.fromkeys(got, 1))
    return got


@given(cases(), st.integers(1, 5), st.data())
def test_every_order_gives_what_brute_force_gives(case: Case, batch_rows: int, data: st.DataObject) -> None:
    expected = brute_force(case)
    orders = list(itertools.permutations(case.problem.variables))
    for order in data.draw(st.lists(st.sampled_from(orders), min_size=1, max_size=4, unique=True)):
        assert run(case, order, batch_rows) == expected, order
        assert run(case, order, 1000, threads=2) == expected, order


@given(cases(), st.data())
def test_counting_without_writing(case: Case, data: st.DataObject) -> None:
    problem = case.problem
    order = data.draw(st.permutations(problem.variables))
    if problem.counted or needs_distinct(problem, order, segments_of(problem, order)):
        return
    compiled = compile_plan(problem, order, write=False).bind(case.tables)
    assert count(compiled, compiled.new_counters()) == len(brute_force(case))


@given(cases(), st.integers(1, 30), st.data())
def test_a_search_resumes_after_any_number_of_operations(
    case: Case, budget: int, data: st.DataObject
) -> None:
    problem = case.problem
    order = data.draw(st.permutations(problem.variables))
    compiled = compile_plan(problem, order, write=True).bind(case.tables)
    if not compiled.depths:
        return
    one = Search(compiled)
    rows = np.empty((compiled.plan.layout.width, 10_000), dtype=np.int64)
    filled = 0
    while not one.done:
        filled = one.run(rows, budget)
    got: Counter[tuple[int, ...]] = Counter()
    for at in range(filled):
        row = tuple(rows[: len(problem.emitted), at].tolist())
        got[row] += int(rows[-1, at]) * compiled.factor if problem.counted else 1
    if not problem.counted:
        got = Counter(dict.fromkeys(got, 1))
    assert got == brute_force(case)


@given(cases())
def test_stages_blocks_and_marks_change_nothing(case: Case) -> None:
    """Small blocks and no marks take other paths through a node."""
    expected = brute_force(case)
    with mock.patch.object(marks, "MARKS_MAX_BITS", 0):
        assert run(case, case.problem.variables, 7) == expected


def test_dense_cliques_use_stages() -> None:
    rng = np.random.default_rng(5)
    pairs = {tuple(sorted(p)) for p in rng.integers(0, 30, (300, 2)).tolist() if p[0] != p[1]}
    edge = relation(pairs, 2)  # type: ignore[arg-type]
    names = "abcd"
    problem = JoinProblem(
        tuple(atom_over(edge, (0, 1), (x, y)) for x, y in itertools.combinations(names, 2)),
        emitted=tuple(names),
    )
    plan = compile_plan(problem, names, write=True)
    assert sum(plan.stages(depth) for depth in range(4)) >= 3
    one = Search(plan.bind({"r": edge}))
    rows = np.empty((4, 100_000), dtype=np.int64)
    while not one.done:
        one.run(rows)
    assert (one.counters[2:, 2] > 0).all()
    got = {tuple(row) for row in rows[:, : one.total].T.tolist()}
    expected = {
        c
        for c in itertools.combinations(range(30), 4)
        if all(p in pairs for p in itertools.combinations(c, 2))
    }
    assert got == expected


def stage_case(n_keys: int, second: str) -> Case:
    """Order x, y, z: of four atoms at z three stay while y varies.  The first two share ``n_keys`` keys, the
    third has 0 alone; the fourth, which depends on y, has all of them.

    ``second``: the variables of the second.
    """
    wide = {(0, key) for key in range(n_keys)}
    pool = [
        relation(wide, 2, "r"),
        relation({row[-len(second) :] for row in (*wide, (0, n_keys))}, len(second), "s"),
        relation({(0, 0)}, 2, "t"),
        relation({(0, y) for y in range(n_keys)}, 2, "u"),
        relation({(y, z) for y in range(n_keys) for z in range(n_keys)}, 2, "v"),
    ]
    over = zip(pool, ("xz", second, "xz", "xy", "yz"), strict=True)
    atoms = tuple(atom_over(table, range(len(names)), names) for table, names in over)
    problem = JoinProblem(atoms, emitted=tuple("xyz"))
    return Case(problem, {table.name: table for table in pool})


@pytest.mark.parametrize("second", ["xz", "z"])
@pytest.mark.parametrize("n_keys", [2, 3, 64])
def test_a_stage_has_room_for_its_results_on_the_way(n_keys: int, second: str) -> None:
    """What two atoms share can be longer than what all of them share, of which its list had the length.

    Behind the list are the marks, so keys came that not all of them have, or the process died.
    """
    case = stage_case(n_keys, second)
    assert compile_plan(case.problem, "xyz", write=True).stages(2) == 1
    with guarded() as look:
        one = Search(compile_plan(case.problem, "xyz", write=True).bind(case.tables))
        rows = np.empty((3, 1000), np.int64)
        assert one.run(rows) == n_keys and one.done
        look(one)
    assert run(case, "xyz", 1000) == Counter({(0, y, 0): 1 for y in range(n_keys)})


GUARD = -0x5AFE
GUARDED = (SHORT_BLOCK + 1,)
"""Lengths of lists behind which a guard stands."""


@contextmanager
def guarded() -> Iterator[Callable[[Search], None]]:
    """Plans made here have an item between any two lists of a memory.  Gives what looks at those of a search.

    Numba's bounds checks see what leaves the view of a list, and nothing where that is too long.
    """
    guards: list[int] = []
    plain = PlanMemory.room

    def room(memory: PlanMemory, length: int) -> int:
        place = plain(memory, length + (length in GUARDED))
        if length in GUARDED:
            guards.append(place + length)
        return place

    def list_room(stage: StageRow, views: Sequence[SearchView], room=StageRow.list_room) -> int:  # type: ignore[no-untyped-def]
        return room(stage, views) + 1

    def new_memory(plan: BoundPlan, new=BoundPlan.new_memory) -> np.ndarray:  # type: ignore[no-untyped-def]
        memory: np.ndarray = new(plan)
        memory[places(plan)] = GUARD
        return memory

    def places(plan: BoundPlan) -> list[int]:
        lists = [
            Stage.view(plan.template, stage.row).list // WORD + stage.list_room(plan.views) - 1
            for stage in plan.plan.layout.stages
            if len(stage.first) > 1
        ]
        return guards + lists

    def look(search: Search) -> None:
        assert (search.memory[places(search.plan)] == GUARD).all(), "a list is too short"

    with (
        mock.patch.object(PlanMemory, "room", room),
        mock.patch.object(StageRow, "list_room", list_room),
        mock.patch.object(plan_check, "check_regions"),
        mock.patch.object(BoundPlan, "new_memory", new_memory),
    ):
        yield look


@st.composite
def staged_cases(draw: st.DrawFn) -> Case:
    """Order a, b, c, d: at d are atoms that stay while c varies, with up to 20 keys each, and others."""
    pool = [relation({(0,), (1,)}, 1, "k"), relation({(key,) for key in range(8)}, 1, "n")]
    atoms = [atom_over(pool[0], (0,), "a"), atom_over(pool[0], (0,), "b"), atom_over(pool[1], (0,), "c")]
    for above in draw(st.lists(st.sampled_from(["", "a", "b", "ab", "c"]), min_size=2, max_size=5)):
        keys = range(draw(st.integers(0, 3)), draw(st.integers(4, 20)), draw(st.integers(1, 4)))
        rows = {(*prefix, key) for prefix in itertools.product(*[range(8)] * len(above)) for key in keys}
        pool.append(relation(rows, len(above) + 1, f"r{len(pool)}"))
        atoms.append(atom_over(pool[-1], range(len(above) + 1), above + "d"))
    return Case(JoinProblem(tuple(atoms), emitted=tuple("abcd")), {table.name: table for table in pool})


@given(st.one_of(cases(), staged_cases()))
def test_nothing_is_written_behind_a_list_of_the_state(case: Case) -> None:
    problem = case.problem
    order = sorted(problem.variables)
    with guarded() as look:
        one = Search(compile_plan(problem, order, write=True).bind(case.tables))
        rows = np.empty((one.plan.plan.layout.width, 10_000), dtype=np.int64)
        while one.plan.depths and not one.done:
            one.run(rows, 100)
        look(one)


def test_shares_cover_every_key_once() -> None:
    edge = relation({(i % 50, i) for i in range(500)}, 2)
    problem = JoinProblem((atom_over(edge, (0, 1), "ab"),), emitted=("a", "b"))
    pieces = shares(compile_plan(problem, "ab", write=True).bind({"r": edge}), 8)
    assert len(pieces) == 8
    assert pieces[0][0] == np.iinfo(np.int64).min and pieces[-1][1] == np.iinfo(np.int64).max
    assert all(high + 1 == low for (_, high), (low, _) in itertools.pairwise(pieces))


def test_a_count_beyond_int64_is_an_error() -> None:
    wide = relation({(i,) for i in range(3000)}, 1)
    pair = relation({(0, i) for i in range(3000)}, 2)
    product = JoinProblem(tuple(atom_over(wide, (), (), counted=(0,)) for _ in range(3)), counted=True)
    compiled = compile_plan(product, (), write=True).bind({"r": wide})
    assert compiled.factor == 27_000_000_000
    many = JoinProblem(tuple(atom_over(pair, (0,), "a", counted=(1,)) for _ in range(6)), counted=True)
    plan = compile_plan(many, "a", write=True).bind({"r": pair})
    with pytest.raises(RangeError, match="exceeds"):
        list(batches(plan, plan.new_counters(), 1))
