"""``latest`` and ``next`` in the text of rules: what they become, and what is refused."""

from __future__ import annotations

import pytest

import lftj
from lftj import errors
from lftj.language.parser import parse
from maintenance import Workspace

ASOF = "at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u)."


@pytest.fixture
def db() -> lftj.Database:
    db = lftj.Database()
    db.load("trade", [("a", 5, 1), ("b", 2, 2)], columns=["s", "t", "e"])
    db.load("quote", [("a", 4, 10), ("a", 5, 11), ("a", 5, 12), ("a", 6, 13)], columns=["s", "u", "p"])
    return db


def rows(db: lftj.Database, rule: str) -> set[tuple[object, ...]]:
    return set(zip(*db.query(rule).to_pydict().values(), strict=True))


def test_ties_are_all_kept_as_top_keeps_them(db: lftj.Database) -> None:
    assert rows(db, ASOF) == {(1, 11), (1, 12)}
    top = "at(e, p) <- trade(s, t, e), quote(s, u, p), u <= t, top(1, by: u, per: e)."
    assert rows(db, top) == rows(db, ASOF)
    assert rows(db, ASOF.replace("u <= t, latest", "u > t, next")) == {(1, 13)}


def test_without_a_comparison_it_is_the_last_of_all(db: lftj.Database) -> None:
    assert rows(db, "at(e, p) <- trade(s, t, e), quote(s, u, p), latest(u).") == {(1, 13)}
    assert rows(db, "last(p) <- quote(s, u, p), latest(u, per: s).") == {(13,)}
    assert rows(db, "first(p) <- quote(_, u, p), p > 10, next(u).") == {(11,), (12,)}


def test_beside_an_aggregate_in_an_order(db: lftj.Database) -> None:
    rule = "at[e] = list(p, by: p desc) <- trade(s, t, e), quote(s, u, p), u <= t, latest(u)."
    assert db.query(rule).to_pylist() == [{"e": 1, "list": [12, 11]}]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("a(e) <- trade(s, t, e), latest(v).", "takes a variable that one atom of the body binds"),
        ("a(e) <- trade(s, t, e), quote(s, t, p), latest(t).", "takes a variable that one atom"),
        ("a(e) <- trade(s, t, e), v = t + 1, latest(v).", "takes a variable that one atom"),
        (
            "a(e) <- trade(s, t, e), quote(s, u, p), latest(u, by: e).",
            "'latest' takes per:, as in latest(u, per: e)",
        ),
        ("a(e) <- trade(s, t, e), quote(s, u, p), latest(u, per: 5).", "'latest' takes variables"),
        ("a(e) <- trade(s, t, e), !latest(t, per: e).", "can't be negated"),
        ("a(e) <- trade(s, t, e), (latest(t, per: e) ; t > 3).", "is of a whole body"),
        ("a(e) <- trade(s, t, e), quote(s, u, p), latest(u), top(1, by: p, per: e).", "take two rules"),
        ("a(e, r) <- trade(s, t, e), r = rank(by: t), next(t).", "take two rules"),
        ("a(e) <- trade(s, t, e), quote(s, u, p), latest(u), next(p).", "about one atom"),
        (
            "a(e) <- trade(s, t, e), quote(s, u, p), quote(s, v, r), u < t, v < u, latest(u), latest(v).",
            "with what another such literal finds",
        ),
        (
            "a(e) <- trade(s, t, e), quote(s, u, _), quote(s, v, _), v < t, next(u), latest(v, per: e).",
            "with per: beside another such literal",
        ),
    ],
)
def test_what_is_refused(db: lftj.Database, rule: str, message: str) -> None:
    with pytest.raises(errors.RuleSyntaxError, match=message.replace("(", r"\(").replace(")", r"\)")):
        db.query(rule)


def test_relations_of_these_names() -> None:
    """An atom of one term by place is one only where the program derives the relation, or else is refused."""
    db = lftj.Database()
    db.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    assert rows(db, "next(b) <- edge(_, b). after(a, b) <- edge(a, b), next(a).") == {(2, 3)}
    assert rows(db, "next(b) <- edge(_, b). first(a) <- edge(a, _), !next(a).") == {(1,)}
    assert rows(db, "next(b) <- edge(_, b). any(a) <- edge(a, _), (next(a) ; a = 1).") == {(1,), (2,)}
    db.load("latest", [(2,)], columns=["n"])
    with pytest.raises(errors.RuleError, match=r"'latest' is a relation here.*write latest\(n: u\)"):
        db.query("at(a) <- edge(a, _), latest(a).")
    assert rows(db, "at(a) <- edge(a, _), latest(n: a).") == {(2,)}
    db.load("next", [(1, 2)], columns=["a", "b"])
    assert rows(db, "at(a) <- edge(a, b), next(a, b).") == {(1,)}


def test_the_hidden_head_is_replaced_and_uninstalled_with_its_rule() -> None:
    ws = Workspace()
    ws.load("trade", [("a", 5, 1)], columns=["s", "t", "e"])
    ws.load("quote", [("a", 4, 10), ("a", 6, 13)], columns=["s", "u", "p"])
    ws.install(ASOF)
    ws.install(ASOF.replace("u <= t, latest", "u >= t, next"), replace=True)
    assert set(ws["at"]) == {(1, 13)}
    ws.uninstall("at")


def test_names_that_are_taken_get_a_number() -> None:
    program = parse(f"{ASOF} at_latest(x) <- at(x, _).")
    assert [head.relation for rule in program.rules for head in rule.heads] == [
        "at_latest_2",
        "at",
        "at_latest",
    ]
