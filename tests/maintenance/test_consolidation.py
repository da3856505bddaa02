"""laws: circuits with fewer `distinct` give what they gave; the worked example of DBSP's section 4.4."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from maintenance.consolidation import consolidated
from maintenance.streams import Circuit, Stream, ZSet

BAGS = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=3).map(ZSet), min_size=1)
OUTPUTS = ("first", "second", "third")


def largest(z: ZSet) -> ZSet:
    return ZSet.of([max(z)]) if z else z


def cycle(circuit: Circuit, x: Stream, k: int) -> Stream:
    """What grows from a stream by a step, a tick at a time."""
    back = circuit.feedback()
    found = (x + back.map(lambda v: (v + k) % 4)).distinct()
    back.connect(found)
    return found


def random_circuit(seed: int, size: int) -> Circuit:
    """Of two inputs; every operator, those that may give negative weights too."""
    rng, circuit = random.Random(seed), Circuit()
    streams = [circuit.input("a"), circuit.input("b")]
    for _ in range(size):
        x, y, k = rng.choice(streams[-4:]), rng.choice(streams), rng.randrange(4)
        kinds: list[Callable[[], Stream]] = [
            *[lambda x=x: x.distinct()] * 4,
            lambda x=x, k=k: x.map(lambda v: v & k),
            lambda x=x, k=k: x.filter(lambda v: v != k),
            lambda x=x, y=y: x + y,
            lambda x=x, y=y, k=k: x.join(y, lambda v, w: v & w if (v + w) % 4 != k else None),
            lambda x=x: -x,
            lambda x=x: x.delay(),
            lambda x=x: x.integrate(),
            lambda x=x: x.differentiate(),
            lambda x=x: x.lift(largest),
            lambda x=x, k=k: cycle(circuit, x, k),
        ]
        streams.append(rng.choice(kinds)())
    for name, stream in zip(OUTPUTS, [streams[-1], streams[-2], rng.choice(streams)], strict=True):
        circuit.output(name, stream)
    return circuit


def distincts(circuit: Circuit) -> int:
    return sum(node.body is ZSet.distinct for node in circuit.nodes)


def read(circuit: Circuit) -> Circuit:
    """Less what no output is made of."""
    found = [*circuit.inputs.values(), *circuit.outputs.values()]
    for node in found:
        found += [each for each in node.inputs if each not in found]
    return Circuit([node for node in circuit.nodes if node in found], circuit.inputs, circuit.outputs)


@given(st.integers(0, 10**6), st.integers(2, 14), BAGS, BAGS)
def test_a_random_circuit_consolidated(seed: int, size: int, a: list[ZSet], b: list[ZSet]) -> None:
    circuit = read(random_circuit(seed, size))
    fewer = consolidated(circuit)
    assert fewer.start().run(a=a, b=b) == circuit.start().run(a=a, b=b)
    assert distincts(fewer) <= distincts(circuit)
    event(f"distincts less: {distincts(circuit) - distincts(fewer)}")
    assert distincts(consolidated(fewer)) == distincts(fewer), "until it stays as it is"


@given(st.integers(0, 10**6), st.integers(2, 10), BAGS)
def test_algorithm_4_8_in_its_order(seed: int, size: int, a: list[ZSet]) -> None:
    """Consolidated, then made incremental: changes in, changes out."""
    circuit = random_circuit(seed, size)
    changes = [now - before for before, now in zip([ZSet(), *a], a, strict=False)]
    found = consolidated(circuit).incremental().start().run(a=changes, b=changes)
    whole = circuit.start().run(a=a, b=a)
    for name in OUTPUTS:
        assert list(accumulate(found[name], lambda x, y: x + y)) == whole[name]


def view(t1: Stream, t2: Stream) -> Stream:
    """The query of section 4.4 by Table 1: t is (a, x, id), r is (s, id, y)."""
    left = t1.filter(lambda t: t[0] > 2).distinct().map(lambda t: (t[1], t[2])).distinct()
    right = t2.filter(lambda r: r[0] > 5).distinct().map(lambda r: (r[2], r[1])).distinct()
    pairs = left.join(right, lambda t, r: (*t, *r) if t[1] == r[1] else None)
    return pairs.map(lambda row: (row[0], row[2])).distinct()


def test_worked_example_of_section_4_4() -> None:
    circuit = Circuit()
    circuit.output("v", view(circuit.input("t"), circuit.input("r")))
    fewer = consolidated(circuit)
    assert distincts(circuit) == 5
    names = [node.name for node in fewer.nodes]
    assert names == ["t", "r", "filter", "map", "filter", "map", "⋈", "map", "distinct"]
    kept = fewer.incremental()
    kinds = [node.kind for node in kept.nodes]
    assert kinds.count("integrate") == 3, "two from the join, and one from the distinct: Figure 1"
    assert kinds.count("bilinear") == 2
    rng, running = random.Random(4), kept.start()
    rows: dict[str, ZSet] = {"t": ZSet(), "r": ZSet()}
    result = ZSet()
    for _ in range(40):
        step = {}
        for name, now in rows.items():
            row = (rng.randrange(8), rng.randrange(3), rng.randrange(3))
            step[name] = ZSet({row: -1 if now[row] else 1})
            rows[name] = now + step[name]
        result += running.step(**step)["v"]
        assert result == ZSet.of(
            {(x, y) for a, x, i in rows["t"] for s, j, y in rows["r"] if a > 2 and s > 5 and i == j}
        )


def one(build: Callable[[Stream], Stream]) -> Circuit:
    circuit = Circuit()
    circuit.output("out", build(circuit.input("a")))
    return circuit


def negative(x: Stream) -> Stream:
    return (x.distinct() + -x.map(lambda v: v + 1)).distinct()


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda x: x.distinct().distinct().distinct(), 1),
        (lambda x: x.distinct().filter(bool).distinct(), 1),
        (lambda x: x.distinct().map(abs), 1),
        (negative, 2),
        (lambda x: x.differentiate().distinct().filter(bool).distinct(), 2),
        (lambda x: x.distinct().lift(largest).distinct(), 2),
        (lambda x: x.distinct().lift(lambda z: z, linear=True, name="mine").distinct(), 2),
        (lambda x: x.distinct().delay().distinct(), 2),
    ],
)
def test_what_is_left(build: Callable[[Stream], Stream], left: int) -> None:
    assert distincts(consolidated(one(build))) == left


def test_an_operator_of_ones_own_that_is_positive() -> None:
    def mine(x: Stream) -> Stream:
        return x.distinct().lift(lambda z: z + z, linear=True, name="mine").distinct()

    fewer = consolidated(one(mine), positive=["mine"])
    assert distincts(fewer) == 1
    assert fewer.start().run(a=[ZSet({5: 3})])["out"] == [ZSet({5: 1})]


def test_what_is_read_with_its_weights_too_keeps_them() -> None:
    circuit = Circuit()
    a: Any = circuit.input("a")
    two = a.distinct().join(a.distinct(), lambda x, y: (x + y) % 4)
    circuit.output("weights", two)
    circuit.output("rows", two.distinct())
    fewer = consolidated(circuit)
    bags = [ZSet({1: 2, 3: 1}), ZSet({0: 5})]
    assert fewer.start().run(a=bags) == circuit.start().run(a=bags)
    assert distincts(fewer) <= distincts(circuit)
