"""Strata: every relation is complete before another component reads it; cycles through negation are named.

Messages with carets stand in ``test_checker_errors.py``.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import StratificationError
from lftj.language.parser import parse
from lftj.language.strata import atoms_of, stratify


def names_of(text: str) -> list[list[str]]:
    program = parse(text)
    return [
        [program.rules[number].heads[0].relation for number in stratum]
        for stratum in stratify(program).strata
    ]


def test_rules_over_loaded_relations_are_one_stratum() -> None:
    assert names_of("a(x) <- e(x). b(x) <- f(x). a(x) <- f(x).") == [["a", "b", "a"]]


def test_readers_come_after_all_rules_of_what_they_read() -> None:
    assert names_of("d(x) <- c(x). c(x) <- a(x), !b(x). a(x) <- e(x). b(x) <- a(x). a(x) <- f(x).") == [
        ["a", "a"],
        ["b"],
        ["c"],
        ["d"],
    ]


def test_a_rule_with_several_heads_runs_once() -> None:
    program = parse("a(x), b(x) <- e(x). c(x) <- a(x). b(x) <- c(x). d(x) <- b(x).")
    assert stratify(program).strata == [[0], [1], [2], [3]]


def test_disjunctions_are_read() -> None:
    program = parse("a(x) <- e(x), (e(x) ; f(x), (e(x) ; b(x))). b(x) <- e(x).")
    assert [atom.relation for atom in atoms_of(program.rules[0].body)] == ["e", "e", "f", "e", "b"]
    assert stratify(program).strata == [[1], [0]]


def test_no_rules() -> None:
    assert stratify(parse("")).strata == []


@pytest.mark.parametrize(
    ("text", "components", "strata"),
    [
        ("a(x) <- a(x).", (("a",),), [[0]]),
        ("a(x) <- b(x). b(x) <- c(x). c(x) <- a(x).", (("a", "b", "c"),), [[0, 1, 2]]),
        ("z(x) <- a(x). a(x) <- b(x). b(x) <- a(x).", (("a", "b"),), [[1, 2], [0]]),
        # c only reads a: its rule stands in two strata, once for each head.
        ("a(x) <- (e(x) ; b(x)). b(x), c(x) <- a(x).", (("a", "b"),), [[0, 1], [1]]),
        # All rules of a component stand together, those that begin it too; what they read is below.
        ("t(x) <- e(x), !f(x). t(y) <- t(x), g(x, y). g(x, y) <- h(x, y).", (("t",),), [[2], [0, 1]]),
        # Two components, one above the other, and between them a negation.
        (
            "a(x) <- e(x). a(x) <- a(x). b(x) <- e(x), !a(x). b(x) <- b(x).",
            (("a",), ("b",)),
            [[0, 1], [2, 3]],
        ),
    ],
)
def test_relations_that_depend_on_each_other_stand_together(
    text: str, components: tuple[tuple[str, ...], ...], strata: list[list[int]]
) -> None:
    found = stratify(parse(text))
    assert found.components == components
    assert found.strata == strata


@pytest.mark.parametrize(
    ("text", "cycle"),
    [
        ("a(x) <- e(x), !a(x).", "a -> a"),
        ("a(x) <- b(x). b(x) <- e(x), !a(x).", "b -> a -> b"),
        ("a[x] = sum(y) <- b(x, y). b(x, y) <- c(x, y). c(x, y) <- a(x, y).", "a -> b -> c -> a"),
        # The shortest way back, though a longer one is written first.
        (
            "a(x) <- e(x), !b(x). b(x) <- c(x). c(x) <- d(x). d(x) <- a(x). b(x) <- a(x).",
            "a -> b -> a",
        ),
        # A cycle without negation is none to complain about.
        ("a(x) <- a(x). b(x) <- e(x), !b(x).", "b -> b"),
    ],
)
def test_cycles_through_negations_and_aggregates(text: str, cycle: str) -> None:
    with pytest.raises(StratificationError) as caught:
        stratify(parse(text))
    assert f": {cycle}\n" in str(caught.value)


def test_a_long_chain_needs_no_recursion() -> None:
    text = "".join(f"r{i}(x) <- r{i + 1}(x).\n" for i in range(3000)) + "r3000(x) <- e(x)."
    strata = stratify(parse(text)).strata
    assert strata[0] == [3000]
    assert strata[-1] == [0]


@given(st.lists(st.tuples(st.integers(0, 7), st.lists(st.integers(0, 9), max_size=3)), max_size=12))
def test_every_relation_is_complete_before_it_is_read(rules: list[tuple[int, list[int]]]) -> None:
    """Rules of r_i over r_j with j > i: no cycle.  Relations without rules are loaded."""
    rules = [(head, [name for name in body if name > head] or [10]) for head, body in rules]
    text = "".join(f"r{head}(x) <- {', '.join(f'r{name}(x)' for name in body)}.\n" for head, body in rules)
    strata = stratify(parse(text)).strata
    assert sorted(number for stratum in strata for number in stratum) == list(range(len(rules)))
    place = {number: level for level, stratum in enumerate(strata) for number in stratum}
    for number, (_, body) in enumerate(rules):
        needed = [place[other] for other, (head, _) in enumerate(rules) if head in body]
        assert place[number] == 1 + max(needed, default=-1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1, max_size=8))
def test_components_are_those_of_all_paths(reads: list[tuple[int, int, bool]]) -> None:
    text = "".join(f"r{a}(x) <- e(x), {'!' if negated else ''}r{b}(x).\n" for a, b, negated in reads)
    derived = {a for a, _, _ in reads}
    edges = {(a, b) for a, b, _ in reads if b in derived}
    reached = set(edges)
    for _ in derived:
        reached |= {(a, d) for a, b in reached for c, d in edges if b == c}
    strict = any(negated and b in derived and (b == a or (b, a) in reached) for a, b, negated in reads)
    if strict:
        with pytest.raises(StratificationError):
            stratify(parse(text))
        return
    found = stratify(parse(text))
    recursive = {name for component in found.components for name in component}
    assert recursive == {f"r{a}" for a, b in reached if a == b}
    for component in found.components:
        for name in component:
            assert {f"r{b}" for a, b in reached if f"r{a}" == name and (b, a) in reached} == set(component)
