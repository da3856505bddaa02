"""Key orders of delta terms: as few indices as any choice needs, among orders estimated near the best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.planning.term import left_over
from lftj.planning.term_order import (
    NEAR,
    Index,
    TermChoice,
    _tails,
    choose_term_orders,
    read_key,
)
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import Column, Schema
from support.bodies import INTEGER, Case, Contents, cases, first_versions

Terms = list[tuple[JoinAtom, JoinProblem]]

TRIANGLE = ("e ab", "e bc", "e ac")
PATTERNS = {
    "2-path": ("e ab", "e bc"),
    "3-path": ("e ab", "e bc", "e cd"),
    "star": ("e ab", "e ac", "e ad"),
    "triangle": TRIANGLE,
    "three relations": ("r ab", "s bc", "t ac"),
    "4-cycle": ("e ab", "e bc", "e cd", "e da"),
    "4-clique": (*TRIANGLE, "e ad", "e bd", "e cd"),
    "of three columns": ("w abc", "w bcd"),
}


def indices_of(terms: Terms, orders: list[tuple[str, ...]]) -> set[Index]:
    """All indices that terms read in some orders."""
    return {
        (other.relation, read_key(other, order))
        for (_, rest), order in zip(terms, orders, strict=True)
        for other in (*rest.atoms, *rest.negations)
    }


def near_orders(atom: JoinAtom, tails: dict[tuple[str, ...], float]) -> list[tuple[str, ...]]:
    near = [tail for tail, cost in tails.items() if cost <= NEAR * min(tails.values())]
    heads = itertools.permutations(dict.fromkeys(atom.variables))
    return [(*head, *tail) for head, tail in itertools.product(heads, near)]


def pattern(*atoms: str) -> Case:
    """The pattern over a few rows of each relation."""
    made = []
    for text in atoms:
        name, variables = text.split()
        schema = Schema(tuple(Column(f"c{i}", INTEGER) for i in range(len(variables))))
        made.append(JoinAtom(name, schema, tuple(range(len(variables))), tuple(variables)))
    problem = JoinProblem(tuple(made), emitted=tuple(sorted({v for atom in made for v in atom.variables})))
    rows = {atom.relation: frozenset(itertools.product(range(3), repeat=len(atom.columns))) for atom in made}
    contents: Contents = {name: rows[name] for name in sorted(rows)}
    return Case(problem, problem.emitted, (contents,))


def chosen(case: Case) -> tuple[Terms, list[TermChoice], list[dict[tuple[str, ...], float]]]:
    versions = first_versions(case)
    terms = left_over(case.problem)
    tails = [_tails(atom, rest, versions) for atom, rest in terms]
    return terms, choose_term_orders(case.problem, terms, versions), tails


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_need_no_more_indices_than_the_best_of_all_choices(name: str) -> None:
    case = pattern(*PATTERNS[name])
    terms, choices, tails = chosen(case)
    every = [near_orders(atom, costs) for (atom, _), costs in zip(terms, tails, strict=True)]
    sets = [
        list({frozenset(indices_of([term], [order])) for order in orders})
        for term, orders in zip(terms, every, strict=True)
    ]
    assert math.prod(map(len, sets)) < 1_000_000
    there = indices_there(first_versions(case))
    fewest = min(len(frozenset().union(*choice) - there) for choice in itertools.product(*sets))
    assert len(indices_of(terms, [choice.order for choice in choices]) - there) == fewest


@given(cases(most_rows=6))
def test_orders_are_near_the_best_and_begin_with_what_changed(case: Case) -> None:
    terms, choices, tails = chosen(case)
    for (atom, rest), choice, costs in zip(terms, choices, tails, strict=True):
        bound = set(atom.variables)
        assert set(choice.order[: choice.bound]) == bound and choice.bound == len(bound)
        assert set(choice.order) == bound | set(rest.variables)
        assert choice.operations == costs[choice.order[choice.bound :]]
        assert choice.operations <= NEAR * min(costs.values())


@given(cases(most_rows=6))
def test_no_term_can_be_changed_alone_for_fewer_indices(case: Case) -> None:
    terms, choices, tails = chosen(case)
    there = indices_there(first_versions(case))
    orders = [choice.order for choice in choices]
    needed = len(indices_of(terms, orders) - there)
    for place, ((atom, _), costs) in enumerate(zip(terms, tails, strict=True)):
        for other in near_orders(atom, costs):
            changed = [*orders[:place], other, *orders[place + 1 :]]
            assert len(indices_of(terms, changed) - there) >= needed


ATOMS = [
    *(f"e {''.join(names)}" for names in itertools.permutations("abcd", 2)),
    *(f"w {''.join(names)}" for names in itertools.permutations("abcd", 3)),
]


@given(st.lists(st.lists(st.sampled_from(ATOMS), min_size=2, max_size=3), min_size=1, max_size=3))
def test_a_program_needs_at_most_one_index_more_than_the_best_choice_for_all_its_rules(
    rules: list[list[str]],
) -> None:
    cases = [pattern(*rule) for rule in rules]
    versions = {name: version for case in cases for name, version in first_versions(case).items()}
    there = indices_there(versions)
    possible = []
    for case in cases:
        for atom, rest in left_over(case.problem):
            orders = near_orders(atom, _tails(atom, rest, versions))
            possible.append({frozenset(indices_of([(atom, rest)], [order])) for order in orders})
    for case in cases:
        terms = left_over(case.problem)
        orders = [choice.order for choice in choose_term_orders(case.problem, terms, versions)]
        for name, key in indices_of(terms, orders):
            versions[name].index_at(key)
    needed = len(indices_there(versions) - there)
    fewer = {frozenset[Index]()}
    for sets in possible:
        fewer = {taken | (reads - there) for taken in fewer for reads in sets}
        fewer = {taken for taken in fewer if len(taken) < needed - 1}
    assert not fewer


def indices_there(versions: Mapping[str, RelationVersion]) -> frozenset[Index]:
    return frozenset((name, key) for name, version in versions.items() for key in version.index_keys)


def test_bound_variables_are_as_frequent_as_in_the_changed_relation() -> None:
    """Most tuples of p have a y with 200 z and 5 w in c; an average y of c has one z and 9 w."""
    p = [(1_000 + x, 7) for x in range(100)] + [(1_000 + x, 2_000 + x % 9) for x in range(100)]
    frequent = [(7, 5_000 + z, 2_000 + w) for z in range(200) for w in range(5)]
    c = frequent + [(y, 5_000, 2_000 + w) for y in range(8, 308) for w in range(9)]
    case = replace(pattern("c yzw", "p xw", "p xy"), states=({"c": frozenset(c), "p": frozenset(p)},))
    terms, choices, tails = chosen(case)
    changed = next(at for at, (atom, _) in enumerate(terms) if atom.variables == ("x", "y"))
    assert 100 * tails[changed]["w", "z"] < tails[changed]["z", "w"]
    assert choices[changed].order[2:] == ("w", "z")
