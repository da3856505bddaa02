"""oracle: lists that stages cut, and the last depth counted at once, against nested loops.

The graphs are dense, for only then are lists long enough to be cut.
"""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.search.machine import plan
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.queries.plan import compile_plan
from lftj.search.queries.search import Search, batches, count
from lftj.search.records import Node, Stage
from lftj.search.regions.evaluation import RegionSearch, whole
from lftj.storage.relation_version import RelationVersion
from support.bodies import atom_of, relation, rows_of

pytestmark = pytest.mark.kernel

FOUR = "ab ac bc ad bd cd"
FIVE = f"{FOUR} ae be ce de"
SHAPES = (FOUR, FIVE, "ab bc ac bd cd", "ab ac ad bd cd", f"{FOUR} be ce de", "ab bc cd ad bd")

Pairs = set[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> Pairs:
    """Up to 18 nodes with many edges; some with keys too far apart for marks, some with lists of hundreds."""
    nodes, density = draw(st.integers(4, 18)), draw(st.sampled_from((0.5, 0.8)))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    there = generator.random((nodes, nodes)) < density
    there = np.triu(there, 1)  # else there are too many cliques for loops
    if draw(st.booleans()):
        there |= np.triu(generator.random((nodes, nodes)) < 0.2).T
    factor = draw(st.sampled_from((1, 1, 1 << 20)))
    pairs = {(int(a) * factor, int(b) * factor) for a, b in np.argwhere(there)}
    for hub in range(draw(st.sampled_from((0, 0, 2)))):  # most of its keys are in no other list
        pairs |= {(hub * factor, (nodes + other) * factor) for other in range(200)}
    return pairs


def nested_loops(shape: str, pairs: Pairs, conditions: tuple[JoinCondition, ...]) -> set[tuple[int, ...]]:
    """All bindings of the variables of a shape, in their order."""
    atoms, names = shape.split(), sorted(set(shape) - {" "})
    below: dict[int, list[int]] = {}
    for a, b in pairs:
        below.setdefault(a, []).append(b)
    bindings: list[tuple[int, ...]] = [(a,) for a in below]
    for name in names[1:]:
        leading = [names.index(a) for a, b in atoms if b == name]
        tests = [(c.operator, names.index(str(c.right))) for c in conditions if c.left == name]
        bindings = [
            (*binding, key)
            for binding in bindings
            for key in below.get(binding[leading[0]], ())
            if all((binding[place], key) in pairs for place in leading[1:])
            and all(key > binding[p] if op == ">" else key != binding[p] for op, p in tests)
        ]
    return set(bindings)


CONDITIONS = (
    (),
    (),
    (JoinCondition("d", ">", "c"),),
    (JoinCondition("d", "!=", "a"),),
    (JoinCondition("c", ">", "b"),),
)


@given(graphs(), st.sampled_from(SHAPES), st.sampled_from(CONDITIONS), st.sampled_from((1 << 20, 20)))
def test_cuts_change_nothing(
    pairs: Pairs, shape: str, conditions: tuple[JoinCondition, ...], room: int
) -> None:
    """Rows, their number, numbers by first variables, and regions; also where the lists have little room."""
    names = sorted(set(shape) - {" "})
    expected = nested_loops(shape, pairs, conditions)
    edge = relation("e", 2, pairs)
    atoms = tuple(atom_of("e", 2, (0, 1), name) for name in shape.split())
    problem = JoinProblem(atoms, conditions=conditions, emitted=tuple(names))
    with mock.patch.object(plan, "CUT_ROOM", room):
        bound = compile_plan(problem, names, write=True).bind({"e": edge})
        rows = [columns for columns, _ in batches(bound, bound.new_counters(), 1000)]
        found = [row for columns in rows for row in zip(*(c.tolist() for c in columns), strict=True)]
        assert len(found) == len(expected) and set(found) == expected
        bound = compile_plan(problem, names, write=False).bind({"e": edge})
        assert count(bound, bound.new_counters()) == len(expected)
        for n in (1, 2):
            by_first = JoinProblem(atoms, conditions=conditions, emitted=tuple(names[:n]), counted=True)
            bound = compile_plan(by_first, names, write=True).bind({"e": edge})
            numbers: Counter[tuple[int, ...]] = Counter()
            for columns, weights in batches(bound, bound.new_counters(), 1000):
                assert weights is not None
                keys = zip(*(c.tolist() for c in columns), strict=True)
                for key, weight in zip(keys, weights.tolist(), strict=True):
                    numbers[key] += weight
            assert numbers == Counter(row[:n] for row in expected)
        regions = plan.compile_regions(problem, names, gap=8)
        version = RelationVersion(edge)
        indexes = [version.index_at(use.key) for use in regions.indexes]
        search = RegionSearch(regions, staged_over=indexes)
        assert set(rows_of(search.run(indexes, whole(regions.depths), False)[0])) == expected
    event(f"some rows: {bool(expected)}")


@pytest.mark.parametrize("room", [1 << 20, 20])
@pytest.mark.parametrize("shape", [FOUR, pytest.param(FIVE, marks=pytest.mark.compiled)])
def test_cliques_are_cut_and_counted_at_once(shape: str, room: int) -> None:
    """What the test above is about takes place: lists are cut, and the last depth opens few nodes."""
    names = sorted(set(shape) - {" "})
    pairs = {(a, b) for a in range(40) for b in range(a + 1, 40) if (a * 7 + b * 5) % 6}
    atoms = tuple(atom_of("e", 2, (0, 1), name) for name in shape.split())
    problem = JoinProblem(atoms, emitted=tuple(names))
    with mock.patch.object(plan, "CUT_ROOM", room):
        bound = compile_plan(problem, names, write=False).bind({"e": relation("e", 2, pairs)})
    search = Search(bound)
    rows = np.empty((1, 1), np.int64)
    while not search.done:
        search.run(rows)
    layout = bound.plan.layout
    cut = [Stage.view(search.memory, stage.row).cut_stamp for stage in layout.stages if stage.cut is not None]
    assert all(cut)
    smaller = nested_loops(" ".join(name for name in shape.split() if names[-1] not in name), pairs, ())
    last = Node.view(search.memory, layout.nodes[-1])
    assert rows[0, 0] == len(nested_loops(shape, pairs, ()))
    assert len(smaller) < last.opens < 2.2 * len(smaller), "two for each that is counted, more for each node"
