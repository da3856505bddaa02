"""Sums of queries by views that are made for one evaluation: when, and what they spare."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lftj import Database, errors
from lftj.rewriting import one_off
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

STAR = "h[] = sum(v) <- R(a, b), S(a, c), T(a, d), v = b * c * d."
RELATIONS = {"R": ("a", "b"), "S": ("a", "c"), "T": ("a", "d")}


def many(n_keys: int = 3, each: int = 200) -> Database:
    """Each key joins ``each ** 3`` assignments."""
    random = Random(1)
    db = Database()
    for name, columns in RELATIONS.items():
        rows = {(a, random.randrange(1_000)) for a in range(n_keys) for _ in range(each)}
        db.load(name, sorted(rows), columns=list(columns))
    return db


def by_hand(db: Database) -> int:
    sums = [dict.fromkeys(range(3), 0) for _ in RELATIONS]
    for found, name in zip(sums, RELATIONS, strict=True):
        for a, amount in rows_of(db[name]):
            found[a] += amount
    return sum(sums[0][a] * sums[1][a] * sums[2][a] for a in range(3))


def operations(db: Database, rule: str) -> int:
    return sum(body.operations for body in db.explain(rule, analyze=True).bodies)


def test_a_star_of_many_to_many_is_summed_branch_by_branch() -> None:
    db = many()
    ((total,),) = rows_of(db.query(STAR, threads=1))
    assert total == by_hand(db)
    text = str(db.explain(STAR, analyze=True))
    assert "h#view1[a] = sum(" in text
    (piece,) = db.stream(STAR)
    assert piece.to_pydict() == {"sum": [total]} and db.count(STAR) == 1


@pytest.mark.parametrize(
    "options", [{"order": ["a", "b", "c", "d"]}, {"threads": 1, "order": ["d", "a", "b", "c"]}]
)
def test_a_key_order_is_that_of_the_rule_as_it_was_written(options: dict[str, object]) -> None:
    db = many(each=20)
    assert "#view" not in str(db.explain(STAR, **options))  # type: ignore[arg-type]


CHAIN = "h[] = count() <- R(a, b), S(b, c), T(c, d), U(d, e)."


def chain(hub: int) -> tuple[Database, int]:
    """Three rows a key, and one key of ``hub`` rows in S and T, with the number of assignments."""
    drawn = np.random.default_rng(1)
    db = Database()
    before: dict[int, int] = dict.fromkeys(range(20_000), 1)
    for name, columns in {"R": "ab", "S": "bc", "T": "cd", "U": "de"}.items():
        rows = drawn.integers(0, 20_000, (60_000, 2))
        if name in "ST":
            rows[:hub, columns.index("c")] = 0
        rows = np.unique(rows, axis=0)
        db.load(name, pa.table(dict(zip(columns, rows.T, strict=True))))
        ends: Counter[int] = Counter()
        for begin, end in rows.tolist():
            ends[end] += before.get(begin, 0)
        before = ends
    return db, sum(before.values())


@pytest.mark.compiled
@pytest.mark.parametrize(("hub", "has_views"), [(5_000, True), (0, False)])
def test_a_sum_whose_gain_is_in_doubt_is_tried_as_written(hub: int, has_views: bool) -> None:
    db, expected = chain(hub)
    assert rows_of(db.query(CHAIN, threads=1)) == [(expected,)]
    assert ("#view" in str(db.explain(CHAIN))) is has_views
    if has_views:
        assert operations(db, CHAIN) < 2_000_000 < hub**2 // 4


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.parametrize(("head", "is_apart"), [("h[]", True), ("h[a]", True), ("h[a, b, d]", False)])
def test_circles_that_meet_in_one_variable_are_counted_apart(head: str, is_apart: bool) -> None:
    """Each of 40 hubs has 599 triangles, and so 599 ** 2 pairs of them."""
    n_hubs, n_rim = 40, 600
    hubs = np.repeat(np.arange(n_hubs), n_rim)
    rim = n_hubs + np.arange(n_hubs * n_rim)
    same = hubs[:-1] == hubs[1:]
    begins, ends = np.concatenate([hubs, rim[:-1][same]]), np.concatenate([rim, rim[1:][same]])
    db = Database()
    db.load("e", pa.table({"x": begins, "y": ends}))
    rule = f"{head} = count() <- e(a, b), e(b, c), e(a, c), e(a, d), e(d, f), e(a, f)."
    assert pc.sum(db.query(rule, threads=1)[-1]).as_py() == n_hubs * (n_rim - 1) ** 2
    assert ("#view" in str(db.explain(rule))) is is_apart
    if is_apart:
        assert operations(db, rule) < 1_000_000 < n_hubs * (n_rim - 1) ** 2 // 10


def test_little_is_listed() -> None:
    assert "#view" not in str(many(each=20).explain(STAR))


def test_relations_that_grow_have_it_looked_at_again() -> None:
    db = many(each=20)
    rule = db.prepare(STAR)
    assert rule().num_rows == 1 and "#view" not in str(rule.explain())
    for name, columns in RELATIONS.items():
        db.load(name, [(a, b) for a in range(3) for b in range(1_500)], columns=list(columns))
    ((total,),) = rows_of(rule())
    assert "#view" in str(rule.explain()) and total == by_hand(db)


@pytest.mark.parametrize("few", [True, False])
def test_a_partial_sum_that_does_not_fit(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views have 128 bits then; what itself does not fit is an error."""
    monkeypatch.setattr(one_off, "LEAST_LISTED", 0.0)
    db = many(each=20)
    rows = [(a, b) for a, b in rows_of(db["R"])]
    key = 9 if few else 1  # 9 joins with nothing
    db.load("R", [*rows, (key, 2**62), (key, 2**62 - 1), (key, 5)], columns=["a", "b"])
    rule = "h[] = sum(b) <- R(a, b), S(a, c), T(a, d), c != d."
    assert "#view" in str(db.explain(rule))
    if few:
        expected = sum(
            b
            for a, b in rows
            for a2, c in rows_of(db["S"])
            for a3, d in rows_of(db["T"])
            if a == a2 == a3 and c != d
        )
        assert rows_of(db.query(rule)) == [(expected,)]
    else:
        with pytest.raises(errors.RangeError, match=r"h\[\] = sum\(b\)"):
            db.query(rule)


def test_a_chain_of_fifty_is_counted() -> None:
    """10**50 assignments would not be listed; few of them meet."""
    db = Database()
    db.load("e", [(i, j) for i in range(3) for j in range(3)], columns=["x", "y"])
    db.load("last", [(1, 1)], columns=["x", "y"])
    body = ", ".join(f"e(x{i}, x{i + 1})" for i in range(30))
    assert rows_of(db.query(f"h[] = count() <- {body}, last(x30, _).")) == [(3**30,)]
