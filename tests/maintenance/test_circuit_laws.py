"""laws: the propositions of the DBSP paper (arXiv 2203.16684), by their numbers, sections 2 to 4.

What is expected is worked out here, over lists of values; no circuit is asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance.streams import Circuit, Stream, ZSet

Build = Callable[..., Stream]

IDS = [0, 1, 2, 3, 4]
ZSETS = st.dictionaries(st.integers(0, 3), st.integers(-2, 2), max_size=4).map(ZSet)
STREAMS = st.lists(ZSETS, min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(ZSETS, ZSETS), min_size=1, max_size=6).map(
    lambda pairs: [list(s) for s in zip(*pairs, strict=True)]
)
BAGS = st.dictionaries(st.integers(0, 3), st.integers(1, 2), max_size=4).map(ZSet)

OPERATORS: dict[str, Build] = {
    "delay": lambda s: s.delay(),
    "integrate": lambda s: s.integrate(),
    "differentiate": lambda s: s.differentiate(),
    "negative": lambda s: -s,
    "filter": lambda s: s.filter(lambda x: x > 1),
    "map": lambda s: s.map(lambda x: x // 2),
    "distinct": lambda s: s.distinct(),
    "least": lambda s: s.lift(least),
}
LINEAR = ("delay", "integrate", "differentiate", "negative", "filter", "map")


def least(z: ZSet) -> ZSet:
    return ZSet.of([min(z)]) if z else z


def together(x: int, y: int) -> int | None:
    return 4 * x + y if (x + y) % 2 else None


def circuit_of(build: Build, names: str, zero: Any = ZSet()) -> Circuit:  # noqa: B008
    circuit = Circuit()
    circuit.output("out", build(*(circuit.input(name, zero) for name in names)))
    return circuit


def run(build: Build, *streams: list[Any], zero: Any = ZSet()) -> list[Any]:  # noqa: B008
    names = "abc"[: len(streams)]
    return circuit_of(build, names, zero).start().run(**dict(zip(names, streams, strict=True)))["out"]


def incremental(build: Build, *streams: list[Any]) -> list[Any]:
    names = "abc"[: len(streams)]
    return circuit_of(build, names).incremental().start().run(**dict(zip(names, streams, strict=True)))["out"]


def sums(stream: list[Any]) -> list[Any]:
    return list(accumulate(stream, lambda a, b: a + b))


def differences(stream: list[Any]) -> list[Any]:
    return [b + -a for a, b in zip([type(stream[0])(), *stream], stream, strict=False)]


def later(stream: list[Any]) -> list[Any]:
    return [type(stream[0])(), *stream][: len(stream)]


def added(one: list[Any], other: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(one, other, strict=True)]


# -- section 2 ---------------------------------------------------------------------------


def test_worked_examples_of_section_2() -> None:
    assert run(lambda s: s.lift(lambda x: 2 * x), IDS, zero=0) == [0, 2, 4, 6, 8]  # Definition 2.3
    assert run(lambda s: s.delay(), IDS, zero=0) == [0, 0, 1, 2, 3]  # Definition 2.5
    assert run(lambda s: s.differentiate(), IDS, zero=0) == [0, 1, 1, 1, 1]  # Definition 2.17
    assert run(lambda s: s.integrate(), IDS, zero=0) == [0, 1, 3, 6, 10]  # Proposition 2.20


@given(STREAMS)
def test_proposition_2_4_lifting_distributes(s: list[ZSet]) -> None:
    assert run(lambda a: a.lift(ZSet.distinct).lift(least), s) == run(
        lambda a: a.lift(lambda z: least(z.distinct())), s
    )


@pytest.mark.parametrize("name", OPERATORS)
@given(STREAMS)
def test_definition_2_6_time_invariance(name: str, s: list[ZSet]) -> None:
    operator = OPERATORS[name]
    assert run(lambda a: operator(a.delay()), s) == run(lambda a: operator(a).delay(), s)


@pytest.mark.parametrize("name", OPERATORS)
@given(STREAMS, STREAMS)
def test_definition_2_8_causality(name: str, s: list[ZSet], more: list[ZSet]) -> None:
    assert run(OPERATORS[name], s + more)[: len(s)] == run(OPERATORS[name], s)


@given(STREAMS)
def test_corollary_2_12_feedback_is_well_defined(s: list[ZSet]) -> None:
    """The one solution of o = least(s + z^-1 o)."""

    def build(a: Stream) -> Stream:
        back = a.circuit.feedback()
        out = (a + back).lift(least)
        back.connect(out)
        return out

    expected, before = [], ZSet()
    for value in s:
        before = least(value + before)
        expected.append(before)
    assert run(build, s) == expected


@given(PAIRS)
def test_proposition_2_13_streams_are_a_group(pair: list[list[ZSet]]) -> None:
    a, b = pair
    assert run(lambda x, y: x + y, a, b) == run(lambda x, y: y + x, a, b) == added(a, b)
    assert not any(run(lambda x: x + -x, a))


def loop(a: Stream) -> Stream:
    """Fix alpha. S(s + z^-1 alpha) of a linear S."""
    back = a.circuit.feedback()
    out = (a + back).map(lambda x: x // 2)
    back.connect(out)
    return out


@given(PAIRS)
def test_proposition_2_16_the_loop_of_a_linear_operator_is_lti(pair: list[list[ZSet]]) -> None:
    a, b = pair
    assert run(loop, added(a, b)) == added(run(loop, a), run(loop, b))
    assert run(loop, later(a)) == later(run(loop, a))


@pytest.mark.parametrize("name", LINEAR)
@given(PAIRS)
def test_propositions_2_18_and_2_21_linearity(name: str, pair: list[list[ZSet]]) -> None:
    a, b = pair
    assert run(OPERATORS[name], added(a, b)) == added(run(OPERATORS[name], a), run(OPERATORS[name], b))


@given(STREAMS)
def test_definitions_2_17_and_2_19(s: list[ZSet]) -> None:
    def integral(a: Stream) -> Stream:
        back = a.circuit.feedback()
        out = a + back
        back.connect(out)
        return out

    assert run(lambda a: a.integrate(), s) == run(integral, s) == sums(s)
    assert run(lambda a: a.differentiate(), s) == run(lambda a: a + -a.delay(), s) == differences(s)


@given(STREAMS)
def test_theorem_2_22_inversion(s: list[ZSet]) -> None:
    assert run(lambda a: a.differentiate(), run(lambda a: a.integrate(), s)) == s
    assert run(lambda a: a.integrate(), run(lambda a: a.differentiate(), s)) == s


def test_theorem_2_22_is_used_in_building() -> None:
    circuit = Circuit()
    a = circuit.input("a")
    assert a.integrate().differentiate() is a and a.differentiate().integrate() is a
    assert a.integrate() is a.integrate()


# -- section 3 ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
@given(STREAMS)
def test_definition_3_1(name: str, s: list[ZSet]) -> None:
    assert incremental(OPERATORS[name], s) == differences(run(OPERATORS[name], sums(s)))


@pytest.mark.parametrize("name", OPERATORS)
@given(STREAMS)
def test_proposition_3_2_inversion_and_push_pull(name: str, s: list[ZSet]) -> None:
    operator = OPERATORS[name]
    assert sums(incremental(operator, differences(s))) == run(operator, s)
    assert run(operator, sums(s)) == sums(incremental(operator, s))
    assert differences(run(operator, s)) == incremental(operator, differences(s))


@given(PAIRS)
def test_proposition_3_2_invariance(pair: list[list[ZSet]]) -> None:
    a, b = pair
    assert incremental(lambda x, y: x + y, a, b) == added(a, b)
    for name in ("delay", "negative", "integrate", "differentiate"):
        assert incremental(OPERATORS[name], a) == run(OPERATORS[name], a)


@given(st.sampled_from([*OPERATORS]), st.sampled_from([*OPERATORS]), STREAMS)
def test_proposition_3_2_chain_and_add(first: str, second: str, s: list[ZSet]) -> None:
    inner, outer = OPERATORS[first], OPERATORS[second]
    assert incremental(lambda a: outer(inner(a)), s) == incremental(outer, incremental(inner, s))
    assert incremental(lambda a: outer(a) + inner(a), s) == added(
        incremental(outer, s), incremental(inner, s)
    )


@pytest.mark.parametrize("name", OPERATORS)
@given(STREAMS)
def test_proposition_3_2_cycle(name: str, s: list[ZSet]) -> None:
    def build(a: Stream) -> Stream:
        back = a.circuit.feedback()
        out = OPERATORS[name](a + back.filter(lambda x: x != 2))
        back.connect(out)
        return out

    assert incremental(build, s) == differences(run(build, sums(s)))


def test_theorem_3_3_linear_operators_stay() -> None:
    circuit = circuit_of(lambda a: -a.map(lambda x: x // 2).filter(bool).delay() + a, "a")
    made = circuit.incremental()
    assert sorted(n.name + n.kind for n in made.nodes) == sorted(n.name + n.kind for n in circuit.nodes)


@given(PAIRS)
def test_theorem_3_4_bilinear(pair: list[list[ZSet]]) -> None:
    a, b = pair

    def product(x: ZSet, y: ZSet) -> ZSet:
        rows = [(together(r, q), v * w) for r, v in x.items() for q, w in y.items()]
        return ZSet(row for row in rows if row[0] is not None)

    three = [
        product(x, y) + product(i, y) + product(x, j)
        for x, y, i, j in zip(a, b, later(sums(a)), later(sums(b)), strict=True)
    ]
    whole = [product(x, y) for x, y in zip(sums(a), sums(b), strict=True)]
    assert incremental(lambda x, y: x.join(y, together), a, b) == three == differences(whole)


# -- section 4 ---------------------------------------------------------------------------


def test_worked_example_of_section_4_1() -> None:
    r = ZSet({"joe": 1, "anne": -1})
    assert (r["joe"], r["anne"], r["bo"], "bo" in r) == (1, -1, 0, False)
    assert r.distinct() == ZSet({"joe": 1})  # Definition 4.3


@given(ZSETS, ZSETS, ZSETS)
def test_z_sets_are_a_commutative_group(a: ZSet, b: ZSet, c: ZSet) -> None:
    kept = ZSet(a), ZSet(b)
    assert (a + b) + c == a + (b + c) and a + b == b + a and a + ZSet() == a and a - a == ZSet()
    assert (a, b) == kept and 0 not in (a + b).values()
    assert all((a + b)[x] == a[x] + b[x] for x in range(4))


POSITIVE: dict[str, Build] = {
    "filter": lambda s: s.filter(lambda x: x > 1),
    "join": lambda s: s.join(s, together),
    "product": lambda s: s.join(s, lambda x, y: (x, y)),
    "projection": lambda s: s.map(lambda x: x // 2),
    "sum": lambda s: s + s.map(lambda x: x + 1),
}


@pytest.mark.parametrize("name", ["filter", "join", "product"])
@given(st.lists(BAGS, min_size=1))
def test_proposition_4_5_distinct_goes_behind(name: str, s: list[ZSet]) -> None:
    q = POSITIVE[name]
    assert run(lambda a: q(a.distinct()), s) == run(lambda a: q(a).distinct(), s)


@pytest.mark.parametrize("name", POSITIVE)
@given(st.lists(BAGS, min_size=1))
def test_proposition_4_6_one_distinct_is_enough(name: str, s: list[ZSet]) -> None:
    q = POSITIVE[name]
    assert run(lambda a: q(a.distinct()).distinct(), s) == run(lambda a: q(a).distinct(), s)


@given(STREAMS)
def test_proposition_4_7_the_change_of_distinct(s: list[ZSet]) -> None:
    expected = differences([ZSet.of(x for x in range(4) if z[x] > 0) for z in sums(s)])
    assert incremental(lambda a: a.distinct(), s) == expected
    made = circuit_of(lambda a: a.distinct(), "a").incremental()
    assert [n.kind for n in made.nodes if n.kind != "lift"] == ["input", "integrate", "delay"]


SETS = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2)))
TABLE_1: dict[str, tuple[Build, Callable[..., set[Any]]]] = {
    "union": (lambda a, b: (a + b).distinct(), lambda a, b: a | b),
    "projection": (lambda a, b: a.map(lambda r: r[0]).distinct(), lambda a, b: {r[0] for r in a}),
    "filtering": (
        lambda a, b: a.filter(lambda r: r[0] > 0).distinct(),
        lambda a, b: {r for r in a if r[0] > 0},
    ),
    "product": (lambda a, b: a.join(b, lambda x, y: (x, y)), lambda a, b: {(x, y) for x in a for y in b}),
    "equi-join": (
        lambda a, b: a.join(b, lambda x, y: (x, y) if x[1] == y[0] else None),
        lambda a, b: {(x, y) for x in a for y in b if x[1] == y[0]},
    ),
    "intersection": (lambda a, b: a.join(b, lambda x, y: x if x == y else None), lambda a, b: a & b),
    "difference": (lambda a, b: (a + -b).distinct(), lambda a, b: a - b),
}


@pytest.mark.parametrize("name", TABLE_1)
@given(st.lists(st.tuples(SETS, SETS), min_size=1, max_size=4))
def test_table_1_relational_operators(name: str, pairs: list[tuple[set[Any], set[Any]]]) -> None:
    build, on_sets = TABLE_1[name]
    a, b = ([ZSet.of(each) for each in sets] for sets in zip(*pairs, strict=True))
    expected = [ZSet.of(on_sets(*pair)) for pair in pairs]
    assert run(build, a, b) == expected
    assert sums(incremental(build, differences(a), differences(b))) == expected
