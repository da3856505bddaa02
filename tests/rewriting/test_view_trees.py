"""oracle: rules rewritten by any elimination give what brute force finds, and follow any transaction.

The choice by costs is taken away: whatever may be eliminated is, in a random order.  Then sizes are small and
rules short, and still every kind of view comes about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from lftj import Database, errors
from lftj.rewriting import elimination, one_off, view_tree
from lftj.rewriting.elimination import Edge, Elimination, Graph, Names, choose_elimination
from lftj.rewriting.shared_views import is_view
from maintenance import Workspace
from maintenance.strategies.auto.view_choice import ViewChoice
from support.kinds import DECIMAL, INTEGER, SIGNED
from support.maintained_scenarios import commit, expected_heads, installed
from support.rows import rows_of
from support.rules import Aggregate, Arithmetic, Comparison, Expression, Head, Rule, Variable
from support.sets import load_set
from support.strategies import Scenario, Signature, any_row, draw_body, draw_variables, loaded_relations
from support.transactions import after, transactions

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]


@contextmanager
def any_order(seed: int, cuts: bool) -> Iterator[None]:
    """Eliminations at random, as many as possible, or where ``cuts`` only some of them."""
    random = Random(seed)

    def chosen(graph: Graph) -> Elimination:
        units = elimination._units(graph)
        place = elimination._begin(graph)
        gone = frozenset[Names]()
        while not (cuts and random.random() < 0.2):
            choices = list(elimination._choices(units, gone, graph.filters))
            random.shuffle(choices)
            if random.random() < 0.3:  # as circles do that meet the others in one variable
                choices = [one | other for one, other in itertools.pairwise(choices)]
            for choice in choices:
                view = elimination._view(place, frozenset().union(*choice), {})
                if view is not None:
                    place, gone = elimination._with_view(place, view), gone | choice
                    break
            else:
                break
        return Elimination(place.order, 0.0, 1.0, place.by_ranges)

    with mock.patch.object(view_tree, "choose_elimination", chosen):
        yield


@st.composite
def summing(draw: DrawFn) -> Scenario:
    """Two or three relations, and a program of rules that count, sum or average."""
    palette = [draw(st.sampled_from((INTEGER, SIGNED, SIGNED, DECIMAL)))]
    loaded = []
    for number in range(draw(st.integers(2, 3))):
        kinds = tuple(draw(st.sampled_from(palette)) for _ in range(draw(st.sampled_from((2, 2, 1, 3)))))
        loaded.append(draw(loaded_relations(f"r{number}", kinds, 12)))
    catalog = [Signature(one.name, one.kinds, one.functional) for one in loaded]
    rules = []
    for number in range(draw(st.integers(1, 2))):
        body, scope = draw_body(draw, catalog, 4, plain=draw(st.booleans()))
        names = [name for name in scope if scope[name].number]
        summed: Expression = Variable(draw(st.sampled_from(names)))
        for _ in range(draw(st.integers(0, 2))):
            operator = draw(st.sampled_from("***+-"))
            summed = Arithmetic(operator, summed, Variable(draw(st.sampled_from(names))))
        body = (*body, Comparison("=", Variable("summed"), summed))
        function = draw(st.sampled_from(("sum", "sum", "count", "avg")))
        call = Aggregate(function, () if function == "count" else (Variable("summed"),))
        keys = list(dict.fromkeys(draw_variables(draw, scope, least=0)))[: draw(st.integers(0, 2))]
        if draw(st.booleans()):
            rules.append(Rule((Head(f"h{number}", tuple(map(Variable, keys)), call),), body))
        else:
            terms = (*map(Variable, keys), call, Aggregate("count", ()))
            rules.append(Rule((Head(f"h{number}", terms),), body))
    return Scenario(tuple(loaded), tuple(rules))


@contextmanager
def going_over(seed: int) -> Iterator[None]:
    """`auto` goes over to views and back at random, whatever it costs."""
    random = Random(seed)
    wants = property(lambda self: random.random() < 0.5)
    with (
        mock.patch.object(ViewChoice, "wants_change", wants),
        mock.patch.object(ViewChoice, "pays", return_value=True),
    ):
        yield


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), scenario=summing(), seed=st.integers(0, 99), cuts=st.booleans())
def test_oracle_sums_by_any_views_follow(
    data: st.DataObject, scenario: Scenario, seed: int, cuts: bool
) -> None:
    with any_order(seed, cuts):
        follow(data, scenario, "views")


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), scenario=summing(), seed=st.integers(0, 99))
def test_oracle_sums_follow_while_auto_goes_over_and_back(
    data: st.DataObject, scenario: Scenario, seed: int
) -> None:
    with any_order(seed, cuts=False), going_over(seed):
        follow(data, scenario, "auto")


@settings(suppress_health_check=list(HealthCheck))
@given(scenario=summing(), seed=st.integers(0, 99), cuts=st.booleans())
def test_oracle_sums_of_queries_by_any_views(scenario: Scenario, seed: int, cuts: bool) -> None:
    heads = expected_heads(scenario, scenario.relations)
    assume(heads is not None)
    assert heads is not None
    db = Database()
    for loaded in scenario.loaded:
        load_set(db, loaded.name, loaded.table())
    with any_order(seed, cuts), whatever_it_costs():
        for name, rows in heads.items():
            assert any_row(set(rows_of(db.query(scenario.text, head=name, threads=1)))) == any_row(rows)


@contextmanager
def whatever_it_costs() -> Iterator[None]:
    """Queries have views where there are some."""
    with mock.patch.object(one_off, "LEAST_LISTED", 0.0), mock.patch.object(one_off, "SURE", 0.0):
        yield


def follow(data: st.DataObject, scenario: Scenario, strategy: str) -> None:
    """Install the scenario and commit to it, beside the reference."""
    relations = scenario.relations
    heads = expected_heads(scenario, relations)
    assume(heads is not None)
    assert heads is not None
    workspace = installed(scenario, strategy)
    event(f"{min(n_views(workspace), 6)} views at once")
    for name, rows in heads.items():
        assert any_row(set(rows_of(workspace[name].table))) == any_row(rows)
    for staged in data.draw(st.lists(transactions(scenario), min_size=1, max_size=4)):
        relations = after(relations, staged)
        following = expected_heads(scenario, relations)
        try:
            commit(workspace, scenario, staged)
        except errors.LftjError:
            assert following is None or "[" in scenario.text
            return
        assert following is not None
        for name, rows in following.items():
            assert any_row(set(rows_of(workspace[name].table))) == any_row(rows)
        workspace.check_invariants()
        event(f"{min(n_views(workspace), 6)} views")
    workspace.verify()


def n_views(workspace: Workspace) -> int:
    return sum(map(is_view, workspace._heads))


# -- the choice by costs -----------------------------------------------------------------------


def edge(names: str, rows: float, **distinct: float) -> Edge:
    return Edge(frozenset(names), frozenset(names) - distinct.keys(), rows, distinct)


def order(*edges: Edge, head: str = "", filters: tuple[str, ...] = ()) -> list[str]:
    graph = Graph(edges, tuple(map(frozenset, filters)), frozenset(head))
    return ["".join(sorted(names)) for names in choose_elimination(graph).order]


def test_many_to_many_is_eliminated_and_keys_are_not() -> None:
    many = [edge("a" + leaf, 1000, a=50, **{leaf: 100}) for leaf in "bc"]
    assert order(*many, head="a") == ["b", "c"]
    keys = [edge("a" + leaf, 1000, a=1000, **{leaf: 100}) for leaf in "bc"]
    assert order(*keys, head="a") == []


def test_a_triangle_stays_and_what_hangs_on_it_goes() -> None:
    """docs/design/strategies.md section 3.2: a cyclic core is cheaper by delta."""
    core = [edge(names, 250, **dict.fromkeys(names, 40)) for names in ("ab", "bc", "ac")]
    assert order(*core) == []
    tail = edge("cd", 4000, c=40, d=400)
    assert "d" in order(*core, tail)


def test_a_filter_keeps_its_variables_together() -> None:
    branches = [edge("a" + leaf, 1000, a=50, **{leaf: 100}) for leaf in "bcd"]
    assert sorted(order(*branches, filters=("bc",))) == ["bc", "d"]


def test_more_variables_than_are_looked_at_in_every_order() -> None:
    names = "abcdefghijklmnopqrst"
    chain = [
        edge(first + second, 1000, **{first: 100, second: 100}) for first, second in itertools.pairwise(names)
    ]
    found = choose_elimination(Graph(tuple(chain), (), frozenset()))
    assert found.order and found.cost < found.plain / 1000
