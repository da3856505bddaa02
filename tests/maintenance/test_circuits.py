"""differential: circuits of all kinds against their definition; claims, pictures, refusals; rules.

A random circuit is made incremental and compared with itself between an integration and a derivative.  Heads
that workspaces keep are compared with loops over Python's sets, by every strategy.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import CircuitError, ConflictError, LftjError
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from maintenance.streams import Circuit, Rules, Stream, ZSet, check

CHANGES = st.lists(st.dictionaries(st.integers(0, 3), st.integers(-1, 1), max_size=3).map(ZSet), min_size=1)


def sums(stream: list[ZSet]) -> list[ZSet]:
    return list(accumulate(stream, lambda a, b: a + b))


def differences(stream: list[ZSet]) -> list[ZSet]:
    return [b - a for a, b in zip([ZSet(), *stream], stream, strict=False)]


def run(circuit: Circuit, **streams: list[Any]) -> list[Any]:
    return circuit.start().run(**streams)["out"]


# -- random circuits ---------------------------------------------------------------------


def largest(z: ZSet) -> ZSet:
    return ZSet.of([max(z)]) if z else z


def grown(seed: int) -> Circuit:
    """What grows from a set by a step, to its fixpoint: a body for `fix`."""
    step, body = random.Random(seed).randrange(1, 4), Circuit()
    a, back = body.input("a"), body.feedback()
    found = (a + back.map(lambda x: (x + step) % 8)).distinct()
    back.connect(found)
    body.output("found", found)
    return body.incremental()


def random_circuit(seed: int, size: int) -> Circuit:
    """Of two inputs; every operator, cycles and nested circuits."""
    rng, circuit = random.Random(seed), Circuit()
    streams = [circuit.input("a"), circuit.input("b")]
    for _ in range(size):
        x, y, k = rng.choice(streams), rng.choice(streams), rng.randrange(4)
        kinds: list[Callable[[], Stream]] = [
            lambda x=x, k=k: x.map(lambda v: (v + k) % 4),
            lambda x=x, k=k: x.filter(lambda v: v != k),
            lambda x=x, y=y: x + y,
            lambda x=x: -x,
            lambda x=x, y=y, k=k: x.join(y, lambda v, w: v & w if (v + w) % 4 != k else None),
            lambda x=x: x.distinct(),
            lambda x=x: x.delay(),
            lambda x=x: x.integrate(),
            lambda x=x: x.differentiate(),
            lambda x=x: x.lift(largest),
            lambda x=x, k=k: circuit.fix(grown(k), x.distinct()),
            lambda x=x, k=k: cycle(x, k),
        ]
        streams.append(rng.choice(kinds)())
    circuit.output("out", streams[-1])
    circuit.output("other", rng.choice(streams))
    return circuit


def cycle(x: Stream, k: int) -> Stream:
    back = x.circuit.feedback()
    found = (x + back.filter(lambda v: v != k)).distinct()
    back.connect(found)
    return found


@given(st.integers(0, 2**20), st.integers(1, 10), CHANGES, CHANGES)
def test_a_random_circuit_made_incremental(seed: int, size: int, a: list[ZSet], b: list[ZSet]) -> None:
    circuit, ticks = random_circuit(seed, size), max(len(a), len(b))
    a, b = ([*s, *[ZSet()] * (ticks - len(s))] for s in (a, b))
    whole = circuit.start().run(a=sums(a), b=sums(b))
    found = circuit.incremental().start().run(a=a, b=b)
    assert found == {name: differences(stream) for name, stream in whole.items()}
    twice = circuit.incremental().incremental().start().run(a=differences(a), b=differences(b))
    assert twice == {name: differences(stream) for name, stream in found.items()}
    check(circuit.incremental(), a=a, b=b)


# -- claims ------------------------------------------------------------------------------


def claiming(fn: Callable[..., Any], *, two: bool = False, **claim: bool) -> Circuit:
    circuit = Circuit()
    a, b = circuit.input("a"), circuit.input("b")
    circuit.output("out", a.lift(fn, *([b] if two else []), name="f", **claim))
    return circuit


@pytest.mark.parametrize(
    ("circuit", "says"),
    [
        (claiming(ZSet.distinct, linear=True), "'f' is said to be linear, but f(a + b) = {"),
        (claiming(lambda a, b: (a + b).distinct(), two=True, linear=True), "is said to be linear"),
        (claiming(lambda a, b: a + b, two=True, bilinear=True), "is said to be bilinear"),
        (claiming(lambda a, b: a if b else b, two=True, bilinear=True), "is said to be bilinear"),
    ],
)
def test_a_wrong_claim_is_refused_with_a_counterexample(circuit: Circuit, says: str) -> None:
    rows = [ZSet.of([1]), ZSet({1: 1, 2: 3})]
    with pytest.raises(CircuitError, match=r"for a = \(\{.*and b = \(\{") as raised:
        check(circuit, a=rows, b=rows)
    assert says in str(raised.value)


def test_the_counterexample_is_short() -> None:
    with pytest.raises(CircuitError) as raised:
        check(claiming(ZSet.distinct, linear=True), a=[ZSet.of(range(9)), ZSet.of([7])])
    assert str(raised.value).endswith("for a = ({7: 1},) and b = ({7: 1},)")


def test_ticks_at_which_nothing_comes_do_not_hide_a_wrong_claim() -> None:
    with pytest.raises(CircuitError, match="'f' is said to be linear"):
        check(claiming(ZSet.distinct, linear=True), a=[*[ZSet()] * 20, ZSet.of([1])])


def test_claims_within_a_nested_circuit_are_tested() -> None:
    circuit = Circuit()
    circuit.output("out", circuit.fix(claiming(largest, linear=True), circuit.input("a"), circuit.input("b")))
    with pytest.raises(CircuitError, match="'f' is said to be linear"):
        check(circuit, a=[ZSet.of([1]), ZSet.of([2])])


def test_right_claims_pass() -> None:
    circuit = Circuit()
    a = circuit.input("a")
    circuit.output("out", (a.join(a.map(lambda x: x + 1), lambda x, y: x * y) + -a).filter(bool).distinct())
    check(circuit, a=[ZSet.of([1, 2]), ZSet({1: -1, 3: 2})])


# -- refusals and pictures ------------------------------------------------------------------


def two_circuits() -> None:
    Circuit().input("a") + Circuit().input("a")


def closed_twice() -> None:
    back = Circuit().feedback()
    back.connect(back)
    back.connect(back)


def open_feedback() -> None:
    circuit = Circuit()
    circuit.output("out", circuit.feedback() + circuit.input("a"))
    circuit.start()


def clock_that_is_not_around() -> None:
    circuit = Circuit()
    circuit.output("out", circuit.input("a").integrate(level=1))
    circuit.start()


def missing_input() -> None:
    circuit = Circuit()
    circuit.fix(grown(1))


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (two_circuits, "streams of two circuits can't meet"),
        (closed_twice, "only a feedback that is open"),
        (open_feedback, r"a feedback is open: .*connect\(\)"),
        (clock_that_is_not_around, r"integrate\(level=1\) has 0 circuits around"),
        (missing_input, "given 0 streams: its body needs as many"),
        (
            lambda: Circuit().input("a").lift(lambda z: ZSet.of([1]), name="one"),
            "'one' gives .* where all is 0",
        ),
        (lambda: Circuit().input("a").lift(lambda z: z, bilinear=True), "bilinear in two"),
        (lambda: Circuit().start().step(a=ZSet()), "there is no input 'a'"),
    ],
)
def test_what_is_no_circuit_is_refused(act: Callable[[], object], says: str) -> None:
    with pytest.raises(CircuitError, match=says):
        act()


def test_a_tick_that_raises_did_not_happen() -> None:
    def strict(z: ZSet) -> ZSet:
        if 13 in z:
            raise ValueError(13)
        return z

    circuit = Circuit()
    circuit.output("out", circuit.input("a").integrate().lift(strict).integrate())
    running = circuit.start()
    running.step(a=ZSet.of([1]))
    with pytest.raises(ValueError, match="13"):
        running.step(a=ZSet.of([13]))
    assert running.step(a=ZSet.of([2]))["out"] == ZSet({1: 2, 2: 1})


def test_one_circuit_runs_several_times_over() -> None:
    circuit = Circuit()
    circuit.output("out", circuit.input("a").integrate())
    one, other = circuit.start(), circuit.start()
    one.step(a=ZSet.of([1]))
    assert other.step(a=ZSet.of([2]))["out"] == ZSet.of([2])


def test_the_picture() -> None:
    circuit = Circuit()
    a = circuit.input("a")
    circuit.output("out", circuit.fix(grown(1), (a + a.delay()).distinct()))
    assert circuit.mermaid().splitlines() == [
        "flowchart LR",
        '  n0["a"]',
        '  n1["z⁻¹"]',
        "  n0 --> n1",
        '  n2["+"]',
        "  n0 --> n2",
        "  n1 --> n2",
        '  n3["distinct"]',
        "  n2 --> n3",
        "  subgraph n4 [fix]",
        '    n4_0["z⁻¹"]',
        "    n4_6 --> n4_0",
        '    n4_1["a"]',
        '    n4_2["map"]',
        "    n4_0 --> n4_2",
        '    n4_3["+"]',
        "    n4_1 --> n4_3",
        "    n4_2 --> n4_3",
        '    n4_4["∫"]',
        "    n4_3 --> n4_4",
        '    n4_5["z⁻¹"]',
        "    n4_4 --> n4_5",
        '    n4_6["H"]',
        "    n4_5 --> n4_6",
        "    n4_3 --> n4_6",
        '    n4_6 --> n4__found(["found"])',
        "  end",
        "  n3 --> n4",
        '  n4 --> n_out(["out"])',
    ]
    assert "∫↑" in circuit.incremental().mermaid()


# -- rules -------------------------------------------------------------------------------

EDGE = {"edge": pa.schema({"a": pa.int64(), "b": pa.int64()})}
Set = set[tuple[int, int]]


def closure(edges: Set) -> set[Any]:
    found = set(edges)
    while more := {(x, y) for x, z in edges for z2, y in found if z == z2} - found:
        found |= more
    return found


PROGRAMS: dict[str, tuple[str, Callable[[Set], set[Any]]]] = {
    "tri": (
        "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).",
        lambda e: {(x, y, z) for x, y in e for y2, z in e if y2 == y and (x, z) in e},
    ),
    "n": ("n[a] = count() <- edge(a, _).", lambda e: {(x, sum(y[0] == x for y in e)) for x, _ in e}),
    "alone": (
        "alone(a) <- edge(a, _), !edge(_, a).",
        lambda e: {(x,) for x, _ in e if x not in {y for _, y in e}},
    ),
    "reach": ("reach(a, b) <- edge(a, b).\nreach(a, c) <- reach(a, b), edge(b, c).", closure),
}
KEPT = [
    (head, strategy)
    for head in PROGRAMS
    for strategy in (COMPONENT_STRATEGIES if head == "reach" else STRATEGIES)
]


@pytest.mark.kernel
@pytest.mark.parametrize(("head", "strategy"), KEPT)
def test_every_strategy_is_the_lifted_program_made_incremental(head: str, strategy: str) -> None:
    rng, there, changes = random.Random(7), set[Any](), []
    program, on_sets = PROGRAMS[head]
    expected = []
    for _ in range(20):
        toggled = {(rng.randrange(5), rng.randrange(5)) for _ in range(rng.randrange(4))}
        changes.append(ZSet((edge, -1 if edge in there else 1) for edge in toggled))
        there ^= toggled
        expected.append(ZSet.of(on_sets(there)))
    circuit = Circuit()
    circuit.output("out", Rules(program, head, EDGE, strategy)(edge=circuit.input("edge")))
    assert run(circuit, edge=sums(changes)) == expected
    assert run(circuit.incremental(), edge=changes) == differences(expected)


@pytest.mark.kernel
def test_rules_between_operators_and_in_a_nested_circuit() -> None:
    """Equal rows and negative ones count as DBSP says; by rounds, a join kept by rules is a closure."""
    hops = Rules(
        "two(a, c) <- edge(a, b), far(b, c).", "two", {"edge": EDGE["edge"], "far": EDGE["edge"]}, "delta"
    )
    body = Circuit()
    edge, back = body.input("edge").integrate(), body.feedback()
    found = (edge + hops(edge=edge, far=back)).distinct()
    back.connect(found)
    body.output("found", found.differentiate())
    circuit = Circuit()
    starts = circuit.fix(body, circuit.input("edge")).map(lambda r: (r[0], 0))
    circuit.output("out", Rules("n[b] = count() <- edge(_, b).", "n", EDGE)(edge=starts))
    relations = [ZSet.of([(1, 2), (2, 3)]), ZSet.of([(1, 2), (2, 3), (3, 4)]), ZSet.of([(3, 4)]), ZSet()]
    expected = [ZSet.of([(0, 2)]), ZSet.of([(0, 3)]), ZSet.of([(0, 1)]), ZSet()]
    assert run(circuit, edge=relations) == expected
    assert run(circuit.incremental(), edge=differences(relations)) == differences(expected)


@pytest.mark.kernel
def test_incremental_rules_are_the_workspace_alone() -> None:
    circuit = Circuit()
    circuit.output("out", Rules(PROGRAMS["n"][0], "n", EDGE)(edge=circuit.input("edge")))
    names = [node.name or node.kind for node in circuit.incremental().nodes]
    assert names == ["edge", "integrate", "delay", "H", "n"]


@pytest.mark.kernel
def test_rules_refuse() -> None:
    circuit = Circuit()
    rules = Rules(PROGRAMS["n"][0], "n", EDGE)
    with pytest.raises(CircuitError, match="'n' is a head over edge"):
        rules(node=circuit.input("edge"))

    def late(z: ZSet) -> ZSet:
        if (1, 2) in z:
            raise ConflictError("late")
        return z

    circuit.output("out", rules(edge=circuit.input("edge")).lift(late))
    running = circuit.incremental().start()
    running.step(edge=ZSet.of([(1, 1)]))
    with pytest.raises(LftjError, match="late"):
        running.step(edge=ZSet.of([(1, 2)]))
    with pytest.raises(CircuitError, match="start the circuit anew"):
        running.step(edge=ZSet())
