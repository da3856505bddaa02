"""The planner's choice against the best of all key orders, in the kernel's own operations.

Every shape of :mod:`query_shapes` is planned over uniform, power-law and RMAT-like
data.  The cost of an order is what evaluating it counts: opens, nexts and seeks, and
``DISTINCT_COST`` for each row that has to be made distinct.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from lftj import errors
from lftj.database.database import Database
from lftj.evaluation.wanted import wanted_variables
from lftj.language.syntax import Aggregate
from lftj.planning.cost_model import DISTINCT_COST, CostModel, OrderPath
from lftj.planning.lowering import lower
from lftj.planning.planner import candidates, choose_order, complete_order
from lftj.process import debug
from lftj.search.problem import JoinProblem
from lftj.search.queries.plan import compile_plan
from lftj.search.queries.search import Search
from lftj.storage.catalog import Catalog
from lftj.values.schema import Schema
from support.query_shapes import KINDS, SHAPES, Kind, Shape
from support.sets import load_set

ALL_ORDERS_UP_TO = 720
DRAWN_ORDERS = 60
UNBOUNDED = 1 << 60


Case = tuple[JoinProblem, Catalog]


def schemas_of(catalog: Catalog) -> dict[str, Schema]:
    return {name: table.schema for name, table in catalog.items()}


def case_of(shape: Shape, kind: Kind) -> Case:
    database = shape.database(kind)
    rule = database.check(shape.rule).strata[-1][-1]
    counted = isinstance(rule.heads[0].value, Aggregate)
    catalog: Catalog = {name: table.tuples for name, table in database.relations.items()}
    lowered = lower(rule.bodies[0], schemas_of(catalog), wanted_variables(rule.heads[0]), counted)
    return lowered.problem, lowered.tables(catalog)


def measured(case: Case, order: tuple[str, ...], budget: int = UNBOUNDED) -> float:
    """Operations of a whole evaluation; infinite when there are more than ``budget``."""
    problem, catalog = case
    plan = compile_plan(problem, order, write=False)
    search = Search(plan.bind(catalog))
    if not search.done:
        search.count_only(budget)
    if not search.done:
        return math.inf
    rows = DISTINCT_COST * search.total if plan.needs_distinct else 0.0
    return float(search.counters.sum()) + rows


def orders_of(case: Case, every: bool) -> Iterator[tuple[str, ...]]:
    """All orders, or some drawn at random and all that the planner compared; all of few only if ``every``."""
    problem, catalog = case
    free = [name for name in problem.variables if name not in problem.labels]
    drawn: Iterator[tuple[str, ...]] = itertools.permutations(free)
    if math.factorial(len(free)) > (ALL_ORDERS_UP_TO if every else DRAWN_ORDERS):
        generator = np.random.default_rng(1)
        drawn = (tuple(generator.permutation(free).tolist()) for _ in range(DRAWN_ORDERS))
    for order in drawn:
        try:
            yield complete_order(problem, catalog, order)
        except errors.OrderError:
            continue  # a variable before the one that an equality takes it from
    yield from candidates(CostModel(problem, catalog))


def ratio(shape: Shape, kind: Kind, every: bool) -> float:
    """Operations of the chosen order over those of the best one."""
    case = case_of(shape, kind)
    chosen = best = measured(case, choose_order(*case).order)
    for order in dict.fromkeys(orders_of(case, every)):
        best = min(best, measured(case, order, int(best)))
    return chosen / max(best, 1.0)


@pytest.mark.in_turns
@pytest.mark.compiled
def test_the_chosen_order_is_near_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue's bounds: at most 2x the best on 90% of the cases and at most 5x on all.

    Of each shape all orders are tried over one kind of data, and some of them over the others.  The plans of
    these thousands of orders are not checked here: those of random orders over random bodies are, elsewhere.
    """
    monkeypatch.setattr(debug, "enabled", False)
    ratios = {
        (shape.name, kind): ratio(shape, kind, number % len(KINDS) == place)
        for number, shape in enumerate(SHAPES)
        for place, kind in enumerate(KINDS)
    }
    assert len({name for name, _ in ratios}) >= 15
    worst = sorted(ratios.items(), key=lambda item: -item[1])[:12]
    assert worst[0][1] <= 5.0, worst
    assert sum(value <= 2.0 for value in ratios.values()) >= 0.9 * len(ratios), worst


@pytest.mark.compiled
def test_one_problem_gives_one_order() -> None:
    shape = next(shape for shape in SHAPES if shape.name == "bowtie")
    first, second = (choose_order(*case_of(shape, "rmat")) for _ in range(2))
    assert (first.order, first.piloted) == (second.order, second.piloted)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many beginnings of orders were extended by a variable."""
    counted = [0]
    extend = CostModel.extend

    def counting(model: CostModel, path: OrderPath, name: str) -> OrderPath:
        counted[0] += 1
        return extend(model, path, name)

    monkeypatch.setattr(CostModel, "extend", counting)
    return counted


def test_wide_tables_are_planned_in_few_steps(steps: list[int]) -> None:
    """What only one atom has stands behind, the fewest keys first, and is not searched for an order."""
    database = Database()
    names = [f"c{i}" for i in range(18)]
    database.load("wide", {name: np.arange(40) % (i + 1) for i, name in enumerate(names)})
    database.load("key", {"k": np.arange(9)})
    rule = f"n[c3] = count() <- wide({', '.join(names)}), key(c7), c5 < c6."
    body = database.check(rule).strata[0][0].bodies[0]
    catalog: Catalog = {name: table.tuples for name, table in database.relations.items()}
    problem = lower(body, schemas_of(catalog), ["c3"], counted=False, every=True).problem
    order = choose_order(problem, catalog).order
    assert steps[0] < 1_000
    assert set(order[:3]) == {"c5", "c6", "c7"}
    others = tuple(name for name in order[3:] if name != "_1")  # which is the row's code
    assert others == tuple(f"c{i}" for i in range(18) if i not in (5, 6, 7))


@pytest.mark.parametrize("wanted", ["x0", "x25"])
def test_long_bodies_are_planned_in_few_steps(steps: list[int], wanted: str) -> None:
    """A path of 50 atoms was searched in five million steps, which took 20 seconds."""
    database = Database()
    drawn = np.random.default_rng(1).integers(0, 1000, (50, 2, 1000))
    for number, (sources, targets) in enumerate(drawn):
        load_set(database, f"r{number}", {"a": sources, "b": targets})
    atoms = ", ".join(f"r{number}(x{number}, x{number + 1})" for number in range(50))
    body = database.check(f"h({wanted}) <- {atoms}.").strata[0][0].bodies[0]
    catalog: Catalog = {name: table.tuples for name, table in database.relations.items()}
    problem = lower(body, schemas_of(catalog), [wanted], counted=False).problem
    order = choose_order(problem, catalog).order
    assert steps[0] < 600_000
    model = CostModel(problem, catalog)
    assert model.cost(order) <= model.cost(sorted(order, key=lambda name: int(name[1:])))


def test_sums_of_many_groups_are_searched_group_by_group() -> None:
    """Fewer values than groups: beginning with these would take a few operations less, and a sort."""
    database = Database()
    drawn = np.random.default_rng(1)
    load_set(database, "sales", {"k": drawn.integers(0, 2000, 9000), "v": drawn.integers(0, 100, 9000)})
    body = database.check("h[k] = sum(v) <- sales(k, v).").strata[0][0].bodies[0]
    catalog: Catalog = {name: table.tuples for name, table in database.relations.items()}
    problem = lower(body, schemas_of(catalog), ["k", "v"], counted=True).problem
    assert choose_order(problem, catalog, sorts=True).order == ("k", "v")


NEGATIONS = [
    "h[] = count() <- r(a, t), e(a, b), r(b, u), t != u, !r(b, t).",  # LSQB's q8
    "h(a, b, c) <- e(a, b), f(b, c), a < 200, !n(c).",
    "h(a, b, c) <- e(a, b), f(b, c), !n(c).",
    "h(a, b, c) <- f(a, b), e(b, c), !n(a).",
]


@pytest.mark.compiled
@pytest.mark.parametrize("rule", NEGATIONS)
def test_negated_atoms_do_not_mislead(rule: str) -> None:
    """A fiftieth of the keys of ``n``'s variable is left; tags are skewed."""
    drawn = np.random.default_rng(1)
    database = Database()
    tags = np.array([drawn.integers(0, 200, 2_000), drawn.zipf(1.3, 2_000).clip(max=2_000)])
    pairs = {n_rows: drawn.integers(0, 2_000, (2, n_rows)) for n_rows in (20_000, 60_000)}
    for name, rows in {"e": pairs[20_000], "f": pairs[60_000], "r": tags}.items():
        database.load(name, dict(zip("xy", np.unique(rows, axis=1), strict=True)))
    database.load("n", {"x": np.arange(1_960)})
    body = database.check(rule).strata[-1][-1]
    counted = isinstance(body.heads[0].value, Aggregate)
    catalog: Catalog = {name: table.tuples for name, table in database.relations.items()}
    lowered = lower(body.bodies[0], schemas_of(catalog), wanted_variables(body.heads[0]), counted)
    case = lowered.problem, lowered.tables(catalog)
    tied = [{*atom.variables} for atom in lowered.problem.atoms]
    orders = [
        order
        for order in itertools.permutations(lowered.problem.variables)
        if all(
            any(name in atom and atom & {*order[:at]} for atom in tied) for at, name in enumerate(order) if at
        )
    ]
    best = min(measured(case, order) for order in orders)
    assert measured(case, choose_order(*case).order) <= 1.5 * best
