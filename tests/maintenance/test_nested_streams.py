"""laws: recursion, nested streams and what section 7 of the DBSP paper (arXiv 2203.16684) builds of circuits.

Fixpoints are compared with loops over Python's sets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import CircuitError, RoundLimitError
from maintenance.streams import Circuit, Stream, ZSet

Edge = tuple[int, int]
EDGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)
"""A stream of edges that come, or go where they are there."""


def toggles(edges: Iterable[Edge]) -> list[ZSet]:
    there: set[Edge] = set()
    changes = []
    for edge in edges:
        changes.append(ZSet({edge: -1 if edge in there else 1}))
        there ^= {edge}
    return changes


def hop(x: Edge, y: Edge) -> Edge | None:
    return (x[0], y[1]) if x[1] == y[0] else None


def sums(stream: list[ZSet]) -> list[ZSet]:
    return list(accumulate(stream, lambda a, b: a + b))


def differences(stream: list[ZSet]) -> list[ZSet]:
    return [b - a for a, b in zip([ZSet(), *stream], stream, strict=False)]


def reach(edges: Iterable[Edge]) -> ZSet:
    """Section 6.1: R(x, x) at both ends of an edge, R(x, y) <- E(x, y), R(x, y) <- E(x, z), R(z, y)."""
    edges = set(edges)
    found = edges | {(x, x) for edge in edges for x in edge}
    while more := {(x, y) for x, z in edges for z2, y in found if z == z2} - found:
        found |= more
    return ZSet.of(found)


def reach_body() -> Circuit:
    """R over streams of relations, its output connected to its input."""
    body = Circuit()
    edge, back = body.input("edge"), body.feedback()
    ends = edge.map(lambda e: (e[0], e[0])) + edge.map(lambda e: (e[1], e[1]))
    found = (edge + ends + edge.join(back, hop)).distinct()
    back.connect(found)
    body.output("reach", found)
    return body


def naive_body() -> Circuit:
    """The same with an integral before it and a derivative behind it, as the algorithm of 5.1 has it."""
    body = Circuit()
    edge, back = body.input("edge").integrate(), body.feedback()
    ends = edge.map(lambda e: (e[0], e[0])) + edge.map(lambda e: (e[1], e[1]))
    found = (edge + ends + edge.join(back, hop)).distinct()
    back.connect(found)
    body.output("reach", found.differentiate())
    return body


def fixed(body: Circuit, limit: int = 1_000) -> Circuit:
    circuit = Circuit()
    circuit.output("out", circuit.fix(body, *(circuit.input(name) for name in body.inputs), limit=limit))
    return circuit


def run(circuit: Circuit, **streams: list[Any]) -> list[Any]:
    return circuit.start().run(**streams)["out"]


# -- section 5 ---------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(-2, 2)).map(ZSet), min_size=1))
def test_proposition_5_2_the_sum_of_delta_0_is_the_identity(s: list[ZSet]) -> None:
    body = Circuit()
    body.output("same", body.input("a"))
    assert run(fixed(body), a=s) == s == run(fixed(body).incremental(), a=s)


def test_proposition_5_3_a_nested_circuit_takes_0_to_0() -> None:
    assert run(fixed(naive_body()), edge=[ZSet()] * 3) == [ZSet()] * 3


@given(EDGES)
def test_theorem_5_4_recursion_and_5_1_semi_naive(edges: list[Edge]) -> None:
    relations = sums(toggles(edges))
    expected = [reach(relation) for relation in relations]
    assert run(fixed(naive_body()), edge=relations) == expected
    assert run(fixed(reach_body().incremental()), edge=relations) == expected


def test_semi_naive_rounds_see_each_fact_once() -> None:
    """What goes through the join's changing side is each tuple of the closure, once."""
    path, seen = ZSet.of((i, i + 1) for i in range(6)), []

    def observed(z: ZSet) -> ZSet:
        seen.extend(z.items())
        return z

    body = Circuit()
    edge, back = body.input("edge"), body.feedback()
    found = (edge + edge.join(back.lift(observed, linear=True), hop)).distinct()
    back.connect(found)
    body.output("reach", found)
    (closure,) = run(fixed(body.incremental()), edge=[path])
    assert sorted(seen) == sorted(closure.items()) and len(closure) == 21


# -- section 6 ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [naive_body, lambda: reach_body().incremental()])
@given(EDGES)
def test_section_6_1_reachability_follows_changes(body: Callable[[], Circuit], edges: list[Edge]) -> None:
    changes = toggles(edges)
    expected = differences([reach(relation) for relation in sums(changes)])
    assert run(fixed(body()).incremental(), edge=changes) == expected


def test_figure_2_four_joins_and_one_distinct_left() -> None:
    circuit = fixed(reach_body().incremental()).incremental()
    (fix,) = (node for node in circuit.nodes if node.kind == "fix")
    names = [node.name for node in fix.body.nodes]
    assert (names.count("⋈"), names.count("H"), names.count("distinct")) == (4, 1, 0)
    assert {node.level for node in fix.body.nodes} == {0, 1}


def test_what_a_commit_costs_follows_what_changes() -> None:
    """An edge at the end of a path: what comes into the joins is little, however long the path is."""
    rows = []
    for length in (8, 16):
        joined = []

        def counting(left: ZSet, right: ZSet, joined: list[int] = joined) -> ZSet:
            joined.append(min(len(left), len(right)))
            pairs = ((hop(x, y), v * w) for x, v in left.items() for y, w in right.items())
            return ZSet(pair for pair in pairs if pair[0] is not None)

        body = Circuit()
        edge, back = body.input("edge"), body.feedback()
        found = (edge + edge.lift(counting, back, bilinear=True)).distinct()
        back.connect(found)
        body.output("reach", found)
        running = fixed(body.incremental()).incremental().start()
        running.step(edge=ZSet.of((i, i + 1) for i in range(length)))
        before = sum(joined)
        assert len(running.step(edge=ZSet.of([(length, length + 1)]))["out"]) == length + 1
        rows.append(sum(joined) - before)
    assert rows[1] < 3 * rows[0]


def least_and_reach(levels: int, seed: int) -> Circuit:
    """Fixpoints within fixpoints, each of a monotone body over eight values."""
    rng = random.Random(seed)
    steps = [rng.randrange(1, 8) for _ in range(2)]
    body = Circuit()
    a, back = body.input("a"), body.feedback()
    grown = (back.map(lambda x: (x + steps[0]) % 8)).filter(lambda x: x != steps[1])
    if rng.random() < 0.3:
        grown = grown.delay()
    if levels:
        grown = body.fix(least_and_reach(levels - 1, seed + 1), (grown + a).distinct())
    found = (a + grown + grown.join(a.distinct(), lambda x, y: x & y)).distinct()
    back.connect(found)
    body.output("found", found)
    return body.incremental()


@pytest.mark.in_turns
@pytest.mark.parametrize("levels", [0, 1, 2])
@given(
    st.integers(0, 99), st.lists(st.dictionaries(st.integers(0, 7), st.sampled_from([-1, 1, 2]), max_size=3))
)
def test_nested_levels(levels: int, seed: int, weights: list[dict[int, int]]) -> None:
    changes = [ZSet({1: 1}), *map(ZSet, weights)]
    circuit = fixed(least_and_reach(levels, seed))
    assert run(circuit.incremental(), a=changes) == differences(run(circuit, a=sums(changes)))


def test_proposition_6_2_a_lifted_cycle_is_the_cycle_of_lifted_operators() -> None:
    """Integration inside, written as a cycle, in each run of its own; and of the clock around."""
    s = [ZSet.of([1]), ZSet.of([2, 3]), ZSet()]
    body = Circuit()
    a, back, around = body.input("a"), body.feedback(), body.feedback(level=1)
    back.connect(a + back)
    around.connect(a + around)
    body.output("out", (a + back).differentiate() + around)
    assert run(fixed(body), a=s) == [x + y for x, y in zip(s, [ZSet(), *sums(s)], strict=False)]


def test_a_run_has_the_rounds_of_the_one_before_it_though_its_own_stand_still() -> None:
    """Nothing comes at the second tick, and what is there of the first one is in the fourth round."""
    body = Circuit()
    body.output("late", body.input("a").delay().delay().delay().integrate(level=1))
    assert run(fixed(body), a=[ZSet.of([1]), ZSet(), ZSet()]) == [ZSet.of([1])] * 3


# -- section 7 ---------------------------------------------------------------------------


R = ZSet({"joe": 1, "anne": -1})


def test_section_7_2_aggregation() -> None:
    """SUM and COUNT are linear, what makes a set of them is not; MIN is none of both."""
    circuit = Circuit()
    v = circuit.input("v")
    pair = v.lift(lambda z: Pair(sum(x * w for x, w in z.items()), sum(z.values())), linear=True)
    circuit.output("avg", pair.lift(lambda p: ZSet.of([p[0] / p[1]]) if p[1] else ZSet()))
    circuit.output("min", v.lift(lambda z: ZSet.of([min(z)]) if z else ZSet()))
    found = circuit.incremental().start().run(v=[ZSet.of([2, 4]), ZSet({2: -1}), ZSet({4: -1})])
    assert found["avg"] == [ZSet.of([3]), ZSet({3: -1, 4: 1}), ZSet({4: -1})]
    assert found["min"] == [ZSet.of([2]), ZSet({2: -1, 4: 1}), ZSet({4: -1})]
    assert [n.kind for n in circuit.incremental().nodes].count("integrate") == 2


class Pair(tuple[int, int]):
    """The group of pairs of integers."""

    def __new__(cls, a: int, b: int) -> Pair:
        return super().__new__(cls, (a, b))

    def __add__(self, other: Any) -> Pair:
        return Pair(self[0] + other[0], self[1] + other[1])

    def __neg__(self) -> Pair:
        return Pair(-self[0], -self[1])

    def __sub__(self, other: Pair) -> Pair:
        return self + -other


def test_sections_7_3_and_7_4_grouping() -> None:
    """Each grouping of R by first letters, counted."""

    def counted(z: ZSet) -> ZSet:
        counts = ZSet((name[0], weight) for name, weight in z.items())
        return ZSet.of(counts.items())

    circuit = Circuit()
    circuit.output("out", circuit.input("r").lift(counted))
    assert run(circuit, r=[R]) == [ZSet.of([("j", 1), ("a", -1)])]
    assert run(circuit.incremental(), r=[R, ZSet({"jim": 1})])[1] == ZSet({("j", 1): -1, ("j", 2): 1})


@given(EDGES, EDGES)
def test_section_7_5_antijoin(left: list[Edge], right: list[Edge]) -> None:
    circuit = Circuit()
    a, b = circuit.input("a"), circuit.input("b")
    common = a.join(b.map(lambda e: e[0]).distinct(), lambda x, v: x if x[0] == v else None)
    circuit.output("out", (a + -common).distinct())
    one, other = toggles(left), toggles(right)
    ticks = max(len(one), len(other))
    wholes = zip(*(sums([*s, *[ZSet()] * (ticks - len(s))]) for s in (one, other)), strict=True)
    expected = [ZSet.of(x for x in i if x[0] not in {y[0] for y in j}) for i, j in wholes]
    assert sums(run(circuit.incremental(), a=one, b=other)) == expected


def test_section_7_6_streaming_join() -> None:
    """The rate of the moment is joined to what comes, and what was joined is never taken back."""
    circuit = Circuit()
    rate, trade = circuit.input("rate"), circuit.input("trade")
    circuit.output("out", rate.integrate().join(trade, lambda r, t: (t, r)))
    rates, trades = [ZSet({2: 1}), ZSet({2: -1, 3: 1})], [ZSet.of(["a"]), ZSet.of(["b"]), ZSet()]
    assert run(circuit, rate=rates, trade=trades) == [ZSet.of([("a", 2)]), ZSet.of([("b", 3)]), ZSet()]


def test_section_7_6_1_windows() -> None:
    """The sum of the last four; and a window by time, before or behind the integration."""
    circuit = Circuit()
    s = circuit.input("s", 0)
    circuit.output("out", s + s.delay() + s.delay().delay() + s.delay().delay().delay())
    assert run(circuit, s=[1, 2, 3, 4, 5]) == [1, 3, 6, 10, 14]

    def window(z: ZSet, now: int) -> ZSet:
        return ZSet((t, w) for t, w in z.items() if t >= now - 2)

    whole, bounded = Circuit(), Circuit()
    s, now = whole.input("s"), whole.input("now", 0)
    whole.output("out", s.integrate().lift(window, now))
    s, now, back = bounded.input("s"), bounded.input("now", 0), bounded.feedback()
    kept = (s + back).lift(window, now)
    back.connect(kept)
    bounded.output("out", kept)
    times, rows = [1, 2, 4, 7], [ZSet.of([1]), ZSet.of([2, 2]), ZSet.of([3]), ZSet.of([6, 7])]
    assert run(whole, s=rows, now=times) == run(bounded, s=rows, now=times)
    assert run(whole, s=rows, now=times)[-1] == ZSet.of([6, 7])


def while_query(q: Callable[[Stream], Stream]) -> Circuit:
    """Section 7.7: x := i; while x changes: x := Q(x)."""
    body = Circuit()
    i, back = body.input("i"), body.feedback()
    x = i + q(back)
    back.connect(x)
    body.output("x", x.differentiate())
    return body


def halved(x: Stream) -> Stream:
    """Not monotone: what is odd goes, what is even is halved."""
    return x.map(lambda v: v // 2 if v % 2 == 0 and v else v).filter(lambda v: v != 3).distinct()


@given(
    st.lists(st.dictionaries(st.integers(0, 12), st.just(1), max_size=3).map(ZSet), min_size=1, max_size=5)
)
def test_section_7_7_while_queries(s: list[ZSet]) -> None:
    def loop(z: ZSet) -> ZSet:
        x: set[int] = set(z)
        while (y := {v // 2 if v % 2 == 0 and v else v for v in x} - {3}) != x:
            x = y
        return ZSet.of(x)

    circuit = fixed(while_query(halved))
    assert run(circuit, i=s) == [loop(z) for z in s]
    assert run(circuit.incremental(), i=differences(s)) == differences([loop(z) for z in s])


def test_a_while_query_without_an_end_is_refused_and_the_tick_did_not_happen() -> None:
    """Odd and even in turn, for ever, if 1 is there."""
    circuit = fixed(while_query(lambda x: x.map(lambda v: 1 - v if v < 2 else v)), limit=20)
    for version in (circuit, circuit.incremental()):
        running = version.start()
        assert running.step(i=ZSet.of([5]))["out"] == ZSet.of([5])
        with pytest.raises(RoundLimitError, match=r"no fixpoint after 20 rounds.*limit="):
            running.step(i=ZSet.of([1]))
        assert running.step(i=ZSet.of([6]))["out"] == ZSet.of([6])


def test_a_nested_circuit_whose_output_never_becomes_0_is_refused() -> None:
    body = Circuit()
    body.output("all", body.input("a").integrate())
    with pytest.raises(CircuitError, match=r"for ever: differentiate\(\)"):
        run(fixed(body), a=[ZSet.of([1])])
