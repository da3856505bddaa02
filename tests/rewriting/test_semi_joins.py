"""Existence and projection by semi-joins: the rows of brute force, and operations that grow with the input.

Operations are counted, and what a search as written would take is not waited for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

import pyarrow as pa
import pytest

from lftj import Database
from lftj.evaluation.trial import Trial
from lftj.rewriting import elimination, one_off, semi_joins
from lftj.rewriting.elimination import Elimination, Graph, Names
from support.rows import rows_of
from support.sets import load_set

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
]

ARITIES = {"r": 2, "s": 3, "t": 2, "u": 1}

Atom = tuple[str, tuple[object, ...]]
"""A relation, and terms: names of variables and constants."""


@contextmanager
def whatever_it_costs(seed: int) -> Iterator[None]:
    """Semi-joins wherever there are some, of variables that are eliminated in a random order."""
    random = Random(seed)

    def chosen(graph: Graph) -> Elimination:
        place = elimination._begin(graph)
        units, gone = elimination._units(graph), frozenset[Names]()
        while True:
            choices = list(elimination._choices(units, gone, graph.filters))
            random.shuffle(choices)
            found = ((choice, elimination._view(place, frozenset().union(*choice), {})) for choice in choices)
            following = next(((choice, view) for choice, view in found if view is not None), None)
            if following is None:
                return Elimination(place.order, 0.0, 1.0)
            gone, place = gone | following[0], elimination._with_view(place, following[1])

    with (
        mock.patch.object(semi_joins, "choose_elimination", chosen),
        mock.patch.object(one_off, "LEAST_LISTED", 0.0),
        mock.patch.object(one_off, "SURE", 0.0),
        mock.patch.object(Trial, "takes_more", return_value=True),
    ):
        yield


def acyclic(random: Random) -> tuple[list[Atom], Atom | None, tuple[str, str, str] | None]:
    """Atoms of a join tree, a negated atom that one of them covers, and a comparison within one."""
    names = (f"x{number}" for number in itertools.count())
    atoms: list[Atom] = []
    for _ in range(random.randint(2, 6)):
        relation = random.choice(list(ARITIES))
        old = [term for term in random.choice(atoms)[1] if isinstance(term, str)] if atoms else []
        shared = random.sample(old, min(len(old), random.randint(1, ARITIES[relation])))
        new = [next(names) for _ in range(ARITIES[relation] - len(shared))]
        terms: list[object] = shared + [random.randrange(4) if random.random() < 0.1 else n for n in new]
        random.shuffle(terms)
        atoms.append((relation, tuple(terms)))
    covering = [term for term in random.choice(atoms)[1] if isinstance(term, str)]
    negated, compared = None, None
    if covering and random.random() < 0.5:
        negated = "n", (random.choice(covering), random.choice([*covering, 2]))
    if len(covering) > 1 and random.random() < 0.5:
        compared = covering[0], random.choice(("<", "<=", "!=")), covering[1]
    return atoms, negated, compared


def by_hand(
    atoms: list[Atom],
    negated: Atom | None,
    compared: tuple[str, str, str] | None,
    data: dict[str, list[tuple[int, ...]]],
) -> list[dict[str, int]]:
    """All assignments, atom by atom."""
    found: list[dict[str, int]] = [{}]
    for relation, terms in atoms:
        longer = []
        for known, row in itertools.product(found, data[relation]):
            new = dict(known)
            if all(
                (new.setdefault(term, key) if isinstance(term, str) else term) == key
                for term, key in zip(terms, row, strict=True)
            ):
                longer.append(new)
        found = longer
    if negated is not None:
        gone = set(data["n"])
        keys = [tuple(one[t] if isinstance(t, str) else t for t in negated[1]) for one in found]
        found = [one for one, key in zip(found, keys, strict=True) if key not in gone]
    if compared is not None:
        left, operator, right = compared
        holds = {"<": int.__lt__, "<=": int.__le__, "!=": int.__ne__}[operator]
        found = [one for one in found if holds(one[left], one[right])]
    return found


def text_of(atom: Atom) -> str:
    return f"{atom[0]}({', '.join(map(str, atom[1]))})"


def test_oracle_random_acyclic_bodies() -> None:
    with_views = sum(is_that_by_hand(Random(seed), seed) for seed in range(28))
    assert with_views >= 17


def is_that_by_hand(random: Random, seed: int) -> bool:
    """Check a body's existence and a projection; whether they had views."""
    data = {
        name: sorted({tuple(random.randrange(4) for _ in range(arity)) for _ in range(9)})
        for name, arity in {**ARITIES, "n": 2}.items()
    }
    db = Database()
    for name, rows in data.items():
        db.load(name, rows, columns=[f"c{place}" for place in range(len(rows[0]))])
    atoms, negated, compared = acyclic(random)
    found = by_hand(atoms, negated, compared, data)
    variables = list(dict.fromkeys(t for _, terms in atoms for t in terms if isinstance(t, str)))
    body = ", ".join(
        [*map(text_of, atoms)]
        + ([f"!{text_of(negated)}"] if negated else [])
        + ([" ".join(compared)] if compared else [])
    )
    has_views = False
    with whatever_it_costs(seed):
        for wanted in ([], random.sample(variables, min(len(variables), 2))):
            expected = {tuple(one[name] for name in wanted) for one in found}
            rule = f"h({', '.join([*wanted, 'one'])}) <- {body}, one = 1."
            found_rows = rows_of(db.query(rule, threads=1))
            assert sorted(found_rows) == sorted((*row, 1) for row in expected), rule
            assert db.count(rule) == len(expected), rule
            has_views |= "#view" in str(db.explain(rule))
    return has_views


def layers(n_layers: int, width: int) -> Database:
    """Each node has an edge to every one of the next layer."""
    db = Database()
    rows = [
        (width * layer + a, width * (layer + 1) + b)
        for layer in range(n_layers)
        for a in range(width)
        for b in range(width)
    ]
    load_set(db, "e", rows, columns=["x", "y"])
    return db


def path(length: int, head: str = "h(one)") -> str:
    return f"{head} <- {', '.join(f'e(x{i}, x{i + 1})' for i in range(length))}, one = 1."


def operations(db: Database, rule: str) -> int:
    return sum(body.operations for body in db.explain(rule, analyze=True).bodies)


def test_a_path_of_fifty_that_does_not_exist() -> None:
    """7**40 beginnings of paths are not listed: each of 49 views reads the edges, about 2,000, once."""
    db = layers(40, 7)
    assert db.count(path(50)) == 0
    assert "h#view1(" in str(db.explain(path(50)))
    n_rows = db["e"].count
    assert operations(db, path(50)) < 50 * 8 * n_rows


def test_operations_are_linear_in_the_input() -> None:
    small, large = (operations(layers(12, width), path(14, "h(x0)")) for width in (20, 40))
    assert large < 5 * small  # of four times as many edges
    assert large < 14 * 8 * 12 * 40 * 40


def test_projections_list_what_is_asked_for() -> None:
    db = layers(9, 30)
    ends = {x for (x,) in rows_of(db.query(path(9, "h(x0)"), threads=1))}
    assert ends == set(range(30))
    middle = {x for (x,) in rows_of(db.query(path(9, "h(x4)"), threads=1))}
    assert middle == set(range(4 * 30, 5 * 30))


def test_what_is_found_soon_is_searched_as_it_was_written() -> None:
    db = layers(40, 7)
    assert db.count(path(39)) == 1
    assert "#view" not in str(db.explain(path(39)))


def test_what_is_computed_is_computed_of_what_stays() -> None:
    db = layers(12, 20)
    rule = f"{path(13, 'h(y)')[:-1]}, y = 10 * x0 + x1, y > x1 + 5.".replace(", one = 1", "")
    assert db.count(rule) == 0
    assert "#view" in str(db.explain(rule))
    rule = rule.replace(", e(x12, x13)", "")
    assert {y for (y,) in rows_of(db.query(rule, threads=1))} == {
        10 * x + y for x in range(20) for y in range(20, 40) if x
    }


def test_two_heads_of_a_rule() -> None:
    db = layers(12, 20)
    rule = path(13, "a(x0), b(x0, x1)")
    assert db.count(rule, head="a") == 0 and db.count(rule, head="b") == 0
    assert "#view" in str(db.explain(rule, head="a"))


def test_alternatives_have_views_where_they_need_them() -> None:
    db = layers(12, 20)
    body = ", ".join(f"e(x{i}, x{i + 1})" for i in range(13))
    rule = f"h(x0) <- ({body} ; e(x0, 27))."
    assert sorted(rows_of(db.query(rule, threads=1))) == [(x,) for x in range(20)]
    assert "#view" in str(db.explain(rule))


def test_heads_below_and_recursion_stay_as_they_are() -> None:
    db = layers(12, 20)
    rule = "near(x, y) <- e(x, y). far(x, y) <- e(x, y). far(x, z) <- far(x, y), e(y, z)."
    assert db.count(rule, head="far") == sum(400 * (12 - gap) for gap in range(12))
    assert "#view" not in str(db.explain(rule, head="far"))


@pytest.mark.parametrize("last", ["", ", x8 is null", ", x8 is not null"])
@pytest.mark.parametrize("seed", range(3))
def test_nulls_join_nothing_in_views_either(last: str, seed: int) -> None:
    random = Random(seed)
    some = [*range(12), None]
    rows = [(random.choice(some), random.choice(some)) for _ in range(30)]
    starts = {a for a, b in rows if last == "" or (b is None) is (last == ", x8 is null")}
    for _ in range(7):
        starts = {a for a, b in rows if b is not None and b in starts}
    database = Database()
    load_set(database, "r", pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}), nulls="keep")
    rule = "h(x0) <- " + ", ".join(f"r(x{at}, x{at + 1})" for at in range(8)) + last + "."
    with whatever_it_costs(seed):
        assert "#view" in str(database.explain(rule))
        assert set(rows_of(database.query(rule))) == {(start,) for start in starts}
