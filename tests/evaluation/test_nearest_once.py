"""``latest`` and ``next`` asked once: no pairs are listed, and the answer is that of pairs listed by hand."""

from __future__ import annotations

from random import Random

import pytest

import lftj
from support.bound_readers import whatever_it_costs

ASOF = "at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u)."


def loaded(n: int, n_symbols: int) -> lftj.Database:
    random, db = Random(n), lftj.Database()
    db.load(
        "trade",
        [(random.randrange(n_symbols), random.randrange(n), e) for e in range(n)],
        columns=["s", "t", "e"],
    )
    db.load(
        "quote",
        [(random.randrange(n_symbols), random.randrange(n), p) for p in range(n)],
        columns=["s", "u", "p"],
    )
    return db


def operations(db: lftj.Database, rule: str) -> int:
    return sum(body.operations or 0 for body in db.explain(rule, analyze=True).bodies)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_pairs_that_are_nearest(threads: int) -> None:
    db = loaded(300, 7)
    trades, quotes = (
        list(zip(*db.query(q).to_pydict().values(), strict=True))
        for q in ("t(s, t, e) <- trade(s, t, e).", "q(s, u, p) <- quote(s, u, p).")
    )
    expected = set()
    for s, t, e in trades:
        best = max((u for z, u, _ in quotes if z == s and u <= t), default=None)
        expected |= {(e, p) for z, u, p in quotes if z == s and u == best}
    found = db.query(ASOF, threads=threads)
    assert set(zip(*found.to_pydict().values(), strict=True)) == expected
    assert db.count(ASOF) == len(expected)
    head = "best[e, s] = max(u) <- trade(s, t, e), quote(s, u, _), u <= t."
    assert db.count(head) == len({e for e, _ in expected})


def test_operations_grow_as_the_rows_do() -> None:
    """Pairs would be sixteen times as many for four times the rows."""
    few, more = operations(loaded(1_000, 1), ASOF), operations(loaded(4_000, 1), ASOF)
    assert more < 6 * few
    by_hand = "best[e] = max(u) <- trade(s, t, e), quote(s, u, _), u <= t."
    assert operations(loaded(4_000, 1), by_hand) < 40_000


def test_explain_says_how_it_is_found_and_why_not() -> None:
    db = loaded(100, 3)
    text = str(db.explain(ASOF))
    assert "nearest askers: the greatest u where u <= t: one search for each (s, t)" in text
    assert "nearest answers" in text
    text = str(db.explain(ASOF.replace("u <= t", "u <= t, p > e")))
    assert "nearest: no search for it: p > e compares both sides in another way than u with a key" in text
    assert "nearest" not in str(db.explain("best[e] = max(u) <- trade(s, t, e), quote(s, u, _)."))


def test_a_bound_that_comes_with_each_call_is_no_search_but_right() -> None:
    db = loaded(200, 5)
    rule = "at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, u >= t - {}, latest(u)."
    for age in (0, 3, 50):
        asked = db.query(rule.format("$age"), params={"age": age}, order_by=["e", "p"])
        assert asked.equals(db.query(rule.format(age), order_by=["e", "p"]))


def test_a_key_order_that_is_given_is_searched_by() -> None:
    db = loaded(50, 2)
    head = "best[e] = max(u) <- trade(s, t, e), quote(s, u, _), u <= t."
    given = db.query(head, order=["s", "t", "u", "e"], order_by="e")
    assert given.equals(db.query(head, order_by="e"))


def test_a_program_asked_whole_and_then_by_keys_searches_each_time_what_it_reads() -> None:
    """A head that is wanted for other keys has another body, of which the searches are others."""
    rules = "below(b, a) <- a >= b, next(a), r(a), r(b). it(a) <- r(a), below(5, a)."
    with whatever_it_costs():
        db = lftj.Database()
        db.load("r", {"t": [5, 2, 4]})
        for _ in range(2):
            assert db.query(rules, head="below").num_rows == 3
            assert db.query(rules, head="it").to_pydict() == {"a": [5]}


def test_heads_of_one_rule_asked_whole_and_then_by_keys_are_fed_by_what_they_read() -> None:
    rules = """
        lo[b] = sum(a), hi[b] = max(c) <- r(b), t(b, a), t(a, c).
        both(b, s) <- lo[b] = s, hi[b] = c, r(s).
        from_five(a) <- r(a), both(5, a).
        of_five(a, c) <- lo[5] = a, hi[5] = c.
    """
    with whatever_it_costs():
        db = lftj.Database()
        db.load("r", {"t": [5, 2, 4]})
        db.load("t", {"x": [5, 2, 4, 5], "y": [2, 4, 5, 4]})
        assert db.query(rules, head="lo").num_rows == 3
        assert db.query(rules, head="both").to_pydict() == {"b": [2], "s": [4]}
        assert db.query(rules, head="from_five").num_rows == 0
        assert db.query(rules, head="of_five").to_pydict() == {"a": [6], "c": [5]}
