"""laws and worked examples: AGCA as the papers have it, and the engine's sums beside it."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from maintenance import Workspace
from support.agca import (
    ZERO,
    Atom,
    Compare,
    Data,
    Expr,
    Lift,
    Plus,
    Program,
    Rows,
    Sum,
    Times,
    Value,
    all_variables,
    degree,
    delta,
    evaluated,
    minus,
    renamed,
    scalar,
    simplified,
    transition_program,
)
from support.rows import rows_of

NAMES = "abcd"
SCHEMA = {"R": 2, "S": 2, "T": 1}


def drawn(random: Random, depth: int, known: str) -> Expr:
    """Read variables are bound on the left, and both sides of a sum bind the same ones: none."""
    choice = random.random()
    if depth == 0 or choice < 0.35:
        relation = random.choice("RST")
        return Atom(relation, tuple(random.choice((*NAMES, *NAMES, 1)) for _ in range(SCHEMA[relation])))
    if choice < 0.75:
        left = drawn(random, depth - 1, known)
        bound = known + "".join(sorted(names_of(left)))
        return Times((left, *drawn_value(random, bound), drawn(random, depth - 1, bound)))
    nested = drawn_nested(random, depth - 1, known)
    if choice < 0.85:
        return Times((Lift("n", nested), *drawn_value(random, known + "n")))
    if choice < 0.95:
        return Plus((nested, minus(drawn_nested(random, depth - 1, known))))
    return Compare(random.choice("<>="), nested, Value(random.randrange(3)))


def drawn_nested(random: Random, depth: int, known: str) -> Expr:
    """A sum whose own variables stand nowhere else."""
    part = drawn(random, depth, known)
    fresh = random.randrange(10**9)
    return Sum((), renamed(part, {name: f"{name}{fresh}" for name in all_variables(part) - set(known)}))


def drawn_value(random: Random, bound: str) -> list[Expr]:
    if not bound or random.random() < 0.4:
        return []
    first, second = random.choice(bound), random.choice(bound)
    return [random.choice([Value(first), Value(3), Compare("<", Value(first), Value(second))])]


def names_of(expr: Expr) -> set[str]:
    match expr:
        case Atom(_, terms):
            return {term for term in terms if isinstance(term, str)}
        case Times(parts):
            return set[str]().union(*map(names_of, parts))
        case Lift(variable, _):
            return {variable}
    return set()


def drawn_data(random: Random) -> dict[str, Counter[tuple[int, ...]]]:
    return {
        name: Counter(
            {tuple(random.randrange(3) for _ in range(arity)): random.choice((1, 1, 2)) for _ in range(4)}
        )
        for name, arity in SCHEMA.items()
    }


def changed(
    data: Data, relation: str, row: tuple[int, ...], sign: int
) -> dict[str, Counter[tuple[int, ...]]]:
    after = {name: Counter(rows) for name, rows in data.items()}
    after[relation][row] += sign
    return after


def difference(new: Rows, old: Rows) -> Rows:
    found = {row: new.get(row, 0) - old.get(row, 0) for row in new.keys() | old.keys()}
    return {row: number for row, number in found.items() if number}


def drawn_sum(random: Random) -> Expr:
    part = drawn(random, 3, "")
    return Sum(tuple(name for name in sorted(names_of(part)) if random.random() < 0.4), part)


@pytest.mark.parametrize("seed", range(120))
def test_a_delta_is_the_new_value_less_the_old_one(seed: int) -> None:
    random = Random(seed)
    expr, data = drawn_sum(random), drawn_data(random)
    relation, sign = random.choice("RST"), random.choice((1, -1))
    row = tuple(random.randrange(3) for _ in range(SCHEMA[relation]))
    change = delta(expr, relation, row, sign)
    wanted = difference(evaluated(expr, changed(data, relation, row, sign), {}), evaluated(expr, data, {}))
    assert evaluated(change, data, {}) == wanted
    assert evaluated(simplified(change), data, {}) == wanted
    assert evaluated(simplified(expr), data, {}) == evaluated(expr, data, {})


@pytest.mark.parametrize("seed", range(60))
def test_sums_and_deltas_commute_and_names_do_not_matter(seed: int) -> None:
    random = Random(seed)
    part, data = drawn(random, 2, ""), drawn_data(random)
    row = (1, 2)
    inside, outside = Sum(("a",), delta(part, "R", row)), delta(Sum(("a",), part), "R", row)
    assert evaluated(inside, data, {}) == evaluated(outside, data, {})
    other = renamed(Sum(("a",), part), {"a": "x", "b": "y", "c": "a"})
    found = evaluated(Sum(("a",), part), data, {})
    assert evaluated(other, data, {}) == {
        tuple(("x", value) for _, value in row): n for row, n in found.items()
    }


def test_deltas_lose_a_relation_each_until_they_are_constant() -> None:
    """The k-th delta of a product of k relations reads none, and the next one is 0."""
    expr: Expr = Sum((), Times((Atom("R", ("a", "b")), Atom("S", ("b", "c")), Atom("T", ("c",)), Value("a"))))
    for order, relation in enumerate("RST"):
        assert degree(expr) == 3 - order
        expr = simplified(
            delta(expr, relation, tuple(f"@{relation}{place}" for place in range(SCHEMA[relation])))
        )
    assert degree(expr) == 0
    assert all(simplified(delta(expr, relation, (1, 1)[: SCHEMA[relation]])) == ZERO for relation in "RST")


def test_multiplication_distributes() -> None:
    data = drawn_data(Random(1))
    r, s, t = Atom("R", ("a", "b")), Sum((), Atom("S", ("c", "d"))), Sum((), Atom("T", ("c",)))
    left, right = Times((r, Plus((s, t)))), Plus((Times((r, s)), Times((r, t))))
    assert evaluated(left, data, {}) == evaluated(right, data, {}) == evaluated(simplified(left), data, {})


# -- worked examples --------------------------------------------------------------------------


def run(program: Program, events: list[tuple[str, tuple[int, ...]]]) -> dict[str, Counter[tuple[int, ...]]]:
    """The maps after the events, by the statements alone; each reads the maps before its event."""
    maps: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in program.maps}
    for relation, row in events:
        bound = {f"@{place}": value for place, value in enumerate(row)}
        added = []
        for name, change in program.statements.get(relation, []):
            keys, _ = program.maps[name]
            for found, number in evaluated(change, maps, bound).items():
                binding = {**bound, **dict(found)}
                added.append((name, tuple(binding[key] for key in keys), number))
        for name, key, number in added:
            maps[name][key] += number
    return {name: Counter({key: n for key, n in values.items() if n}) for name, values in maps.items()}


def defined(program: Program, data: Data) -> dict[str, Counter[tuple[int, ...]]]:
    """The maps by their definitions."""
    return {
        name: Counter(
            {
                tuple(dict(row)[key] for key in keys): number
                for row, number in evaluated(Sum(keys, expr), data, {}).items()
            }
        )
        for name, (keys, expr) in program.maps.items()
    }


def test_the_example_of_the_viewlet_notes() -> None:
    """``AggSum([], R(A,B) * S(B,C) * A)``: 5 before S(2,1) comes, 8 afterwards; its delta is 3."""
    q = Sum((), Times((Atom("R", ("A", "B")), Atom("S", ("B", "C")), Value("A"))))
    data: Data = {"R": Counter({(1, 1): 1, (1, 2): 1, (2, 2): 1}), "S": Counter({(1, 1): 2, (2, 2): 1})}
    assert scalar(q, data, {}) == 5
    change = simplified(delta(q, "S", ("@Y", "@Z")))
    assert change == Sum((), Times((Atom("R", ("A", "@Y")), Value("A"))))
    assert scalar(change, data, {"@Y": 2, "@Z": 1}) == 3
    assert scalar(q, changed(data, "S", (2, 1), 1), {}) == 8
    program = transition_program((), q.part, {"R": 2, "S": 2})
    assert len(program.maps) == 3  # Q, M_S[Y] and how many S there are for each B
    events = [("R", (1, 1)), ("R", (1, 2)), ("R", (2, 2)), ("S", (1, 1)), ("S", (1, 1)), ("S", (2, 2))]
    assert run(program, events)["m0"] == Counter({(): 5})
    assert run(program, [*events, ("S", (2, 1))])["m0"] == Counter({(): 8})


def test_the_example_like_q3_of_the_draft() -> None:
    """q, q', q'', q''' of DBToaster's draft, and the statements that it prints.

    Of its six maps there are five: m_c[ck, ok, sp] is m_cl[ck, ok, sp] * m_co[ok], which share no variable
    that is summed away (docs/design/strategies.md section 3.1).
    """
    c, o = Atom("C", ("ck",)), Atom("O", ("ck", "ok", "sp"))
    lines = (Atom("L", ("ok", "ep")), Value("ep"))
    program = transition_program(("ok", "sp"), Times((c, o, *lines)), {"C": 1, "O": 3, "L": 2})
    m, m_cl, m_co, m_l, m_o = program.maps
    assert [program.maps[name][1] for name in (m, m_l)] == [Times((c, o, *lines)), Times((c, o))]
    assert program.maps[m_co] == (("ok",), Times(lines))
    assert [len(program.maps[name][0]) for name in (m_cl, m_o)] == [3, 1]

    def lookups(change: Expr) -> list[str]:
        parts = change.parts if isinstance(change, Times) else (change,)
        return [part.relation for part in parts if isinstance(part, Atom)]

    read = {
        relation: [(name, lookups(change)) for name, change in some]
        for relation, some in program.statements.items()
    }
    assert {relation: sorted(some) for relation, some in read.items()} == {
        "C": sorted([(m, [m_cl, m_co]), (m_l, [m_cl]), (m_o, [])]),
        "L": sorted([(m, [m_l]), (m_co, [])]),
        "O": sorted([(m, [m_o, m_co]), (m_l, [m_o]), (m_cl, [])]),
    }
    random = Random(2)
    arities = {"C": 1, "O": 3, "L": 2}
    events = [
        (relation, tuple(random.randrange(3) for _ in range(arities[relation])))
        for relation in random.choices("COL", k=60)
    ]
    data = {name: Counter(row for relation, row in events if relation == name) for name in arities}
    assert run(program, events) == defined(program, data)


def test_the_transition_program_of_vwap() -> None:
    """Its statements as the draft prints them, beside the sums by hand and the engine's rules."""
    random = Random(4)
    ws = Workspace()
    ws.load("bids", [(0, 1, 0)], columns=["id", "price", "volume"])
    ws.install("""
        bar[] = upper_quantile(p, 0.25, v) <- bids(_, p, v).
        vwap[] = sum(x) <- bids(_, p, v), bar[] = b, p >= b, x = p * v.
    """)
    q, q1 = 0, 0
    q2: Counter[int] = Counter()  # the volume above each price
    q3: Counter[int] = Counter()  # what is sold at it
    bids: list[tuple[int, int]] = []
    for number in range(1, 80):
        p, v = random.randrange(1, 12), random.randrange(1, 9)
        above = sum(volume for price, volume in bids if price > p)
        q2[p] = q2.get(p, above)

        def passes(price: int, more: int, total: int) -> bool:
            return total > 4 * (q2[price] + more)

        for d in q3:
            before, after = passes(d, 0, q1), passes(d, v * (d < p), q1 + v)
            q += q3[d] * (after - before)
        q += p * v * passes(p, 0, q1 + v)
        q1 += v
        for d in q2:
            q2[d] += v * (p > d)
        q3[p] += p * v
        bids.append((p, v))
        wanted = sum(
            price * volume
            for price, volume in bids
            if sum(w for _, w in bids) > 4 * sum(w for other, w in bids if other > price)
        )
        with ws.transaction() as tx:
            tx.insert("bids", [(number, p, v)])
        assert q == wanted == rows_of(ws["vwap"].table)[0][0]


# -- the engine beside the calculus -------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["delta", "views"])
@pytest.mark.parametrize("seed", range(6))
def test_the_engine_keeps_what_transition_programs_keep(seed: int, strategy: str) -> None:
    """A random product of relations, summed by hand, by its transition program and by the engine."""
    random = Random(seed)
    arities = {"R": 2, "S": 2, "T": 2}
    names = random.sample("abcd", 4)
    atoms = [Atom(name, (names[place], names[place + 1])) for place, name in enumerate("RST")]
    factors = random.sample(names, 2)
    keys = tuple(name for name in names if name not in factors and random.random() < 0.4)
    program = transition_program(keys, Times((*atoms, *map(Value, factors))), arities)
    events = [
        (random.choice("RST"), (number, random.randrange(3), random.randrange(3))) for number in range(45)
    ]
    ws = Workspace()
    for name in arities:
        ws.load(name, [(-1, 9, 9)], columns=["n", "x", "y"])
        with ws.transaction() as tx:
            tx.erase(name, [(-1, 9, 9)])
    body = ", ".join(f"{atom.relation}(_, {', '.join(map(str, atom.terms))})" for atom in atoms)
    ws.install(f"h[{', '.join(keys)}] = sum(v) <- {body}, v = {' * '.join(factors)}.", strategy=strategy)
    for number, (name, row) in enumerate(events, 1):
        with ws.transaction() as tx:
            tx.insert(name, [row])
        if number % 15 == 0:
            kept = run(program, [(relation, values[1:]) for relation, values in events[:number]])["m0"]
            found = {tuple(key): int(value) for *key, value in rows_of(ws["h"].table) if value}
            assert found == dict(kept)
