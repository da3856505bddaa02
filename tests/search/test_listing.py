"""oracle: what is listed below bindings, against brute force and against the search."""

from __future__ import annotations

import itertools
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.search.machine.plan import RegionPlan, compile_regions
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.regions import weighted
from lftj.search.regions.listing import LISTED_ROWS, listing_of
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation_version import RelationVersion
from support.bodies import BOTTOM, TOP, Row, atom_of, columns_of, relation

pytestmark = pytest.mark.kernel

KEYS = (0, 1, 2, 5, BOTTOM, TOP - 1, TOP)


class Listed:
    """Atoms each of which has one free variable at most, their rows, and bindings of the others."""

    def __init__(self, random: Random) -> None:
        bound = [f"b{number}" for number in range(random.choice((1, 2, 3)))]
        free = [f"f{number}" for number in range(random.choice((0, 1, 2, 2, 3)))]
        self.order, self.bound = [*bound, *free], len(bound)
        keys = KEYS[: random.choice((3, 4, 7))]
        atoms, self.rows = [], {}
        for number, last in enumerate([*free, *([None] if random.random() < 0.4 or not free else [])]):
            names = random.sample(bound, random.randint(int(last is None), len(bound)))
            variables = [*names, *([last] if last else [])]
            random.shuffle(variables)
            name = f"r{number}"
            atoms.append(atom_of(name, len(variables), range(len(variables)), variables))
            n_rows = random.choice((0, 3, 9, 20))
            self.rows[name] = {tuple(random.choice(keys) for _ in variables) for _ in range(n_rows)}
        self.problem = JoinProblem(tuple(atoms), emitted=tuple(self.order), counted=True)
        every = list(itertools.product(sorted(keys), repeat=self.bound))
        self.bindings = sorted(random.sample(every, random.randint(1, min(len(every), 30))))

    def plan(self) -> RegionPlan:
        return compile_regions(self.problem, self.order, 0)

    def indexes(self, plan: RegionPlan) -> list[IndexVersion]:
        versions = {
            atom.relation: RelationVersion(
                relation(atom.relation, len(atom.schema.columns), self.rows[atom.relation])
            )
            for atom in self.problem.atoms
        }
        return [versions[use.relation].index_at(use.key) for use in plan.indexes]

    def expected(self) -> list[tuple[Row, int]]:
        """Rows with the number of their binding, in key order."""
        found = []
        values = sorted({value for rows in self.rows.values() for row in rows for value in row})
        for number, binding in enumerate(self.bindings):
            for more in itertools.product(values, repeat=len(self.order) - self.bound):
                row = dict(zip(self.order, (*binding, *more), strict=True))
                if all(
                    tuple(row[name] for name in atom.variables) in self.rows[atom.relation]
                    for atom in self.problem.atoms
                ):
                    found.append((tuple(row.values()), number))
        return found


def found_by(
    searches: WeightedSearches, indexes: list[IndexVersion], bindings: list[Row]
) -> list[tuple[Row, int]]:
    columns = np.array(bindings, np.int64).T
    rows, weights, _ = searches.run(indexes, np.ascontiguousarray(columns), np.arange(len(bindings)) * 7)
    return list(zip(map(tuple, rows.T.tolist()), weights.tolist(), strict=True))


@given(st.integers(0, 2**32))
def test_rows_are_those_of_brute_force_and_of_the_region_search(seed: int) -> None:
    random = Random(seed)
    case = Listed(random)
    plan = case.plan()
    indexes = case.indexes(plan)
    assert listing_of(plan, case.bound, 1, range(len(case.order))) is not None
    places = tuple(random.sample(range(len(case.order)), len(case.order)))
    for sign in (1, -1):
        search = [WeightedSearch(plan, sign, places)]
        expected = [
            (tuple(row[place] for place in places), sign * 7 * number) for row, number in case.expected()
        ]
        listing, searching = WeightedSearches(search), WeightedSearches(search)
        for bindings in (case.bindings, case.bindings[:1], case.bindings):
            wanted = [row for row in expected if abs(row[1]) < 7 * len(bindings)]
            assert found_by(listing, indexes, bindings) == wanted
            with mock.patch.object(weighted, "listing_of", return_value=None):
                assert found_by(searching, indexes, bindings) == wanted
            if all(case.rows.values()):  # an index that is empty fails nobody's path
                assert listing.operations.failed_regions == searching.operations.failed_regions


def test_a_product_beyond_a_piece_goes_on_in_the_next() -> None:
    n = 300
    atoms = (atom_of("r", 2, (0, 1), ("p", "x")), atom_of("r", 2, (0, 1), ("q", "y")))
    plan = compile_regions(JoinProblem(atoms, counted=True), ("p", "q", "x", "y"), 0)
    rows = {(key, 3 * number) for key in (1, 2) for number in range(n + key)} | {(4, 7)}
    indexes = [RelationVersion(relation("r", 2, rows)).index_at(use.key) for use in plan.indexes]
    bindings = [(1, 1), (1, 3), (1, 4), (2, 1), (4, 4)]
    searches = WeightedSearches([WeightedSearch(plan, 1, (2, 0, 3))])
    pieces = list(searches.pieces(indexes, np.array(bindings).T.copy(), np.array([1, 5, 2, -3, 4])))
    assert max(len(weights) for _, weights in pieces) == LISTED_ROWS and len(pieces) == 3
    below = {key: sorted(value for at, value in rows if at == key) for key in (1, 2, 3, 4)}
    expected = [
        (x, p, y, weight)
        for (p, q), weight in zip(bindings, (1, 5, 2, -3, 4), strict=True)
        for x in below[p]
        for y in below[q]
    ]
    found = [np.vstack([columns, weights]).T for columns, weights in pieces]
    assert np.array_equal(np.concatenate(found), np.array(expected))
    assert searches.operations.failed_regions == 1


def test_what_is_no_listing() -> None:
    """Two atoms share a free variable, one has two, one is negated, something is compared."""
    e = atom_of("e", 2, (0, 1), ("p", "x"))
    for problem in (
        JoinProblem((e, atom_of("e", 2, (0, 1), ("q", "x"))), counted=True),
        JoinProblem((e, atom_of("e", 2, (0, 1), ("x", "q"))), counted=True),
        JoinProblem((atom_of("t", 3, (0, 1, 2), ("p", "x", "y")),), counted=True),
        JoinProblem((e,), (atom_of("n", 1, (0,), ("p",)),), counted=True),
        JoinProblem((e,), conditions=(JoinCondition("x", "<", "p"),), counted=True),
        JoinProblem((e,), conditions=(JoinCondition("p", "<", None, 3),), counted=True),
    ):
        names = dict.fromkeys(name for atom in problem.atoms for name in atom.variables)
        order = sorted(names, key=lambda name: (name not in "pq", name))
        plan = compile_regions(problem, order, 0)
        assert listing_of(plan, sum(name in "pq" for name in order), 1, range(len(order))) is None
    plan = compile_regions(JoinProblem((e,), counted=True), ("p", "x"), 0)
    assert listing_of(plan, 1, 1, (0, 1)) is not None


def test_versions_with_runs_are_searched() -> None:
    e = atom_of("e", 2, (0, 1), ("p", "x"))
    plan = compile_regions(JoinProblem((e,), counted=True), ("p", "x"), 0)
    version = RelationVersion(relation("e", 2, [(number, 1) for number in range(9)]))
    version.index_at(plan.indexes[0].key)
    version = version.advance(columns_of([(3, 4)], 2), np.array([1]))
    index = version.index_at(plan.indexes[0].key)
    assert index.runs
    found = found_by(WeightedSearches([WeightedSearch(plan, 1, (1,))]), [index], [(2,), (3,), (77,)])
    assert found == [((1,), 0), ((1,), 7), ((4,), 7)]
