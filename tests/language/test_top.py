"""``top`` and ``bottom`` in bodies are short for rules that could be written out."""

from __future__ import annotations

import pytest

import lftj
from lftj.errors import RuleError
from lftj.language.parser import parse

SALES = [("x", "a", 9), ("x", "b", 7), ("x", "c", 7), ("x", "d", 1), ("y", "a", 2)]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "best(a, b) <- sale(a, b, v), top(3, by: v, per: a).",
            "best_bar[a] = kth_largest(v, 3) <- sale(a, b, v)."
            "best(a, b) <- sale(a, b, v), best_bar[a] = bar, v >= bar.",
        ),
        (
            "low(b) <- bottom(1, by: w), sale(_, b, v), w = v * 2.",
            "low_bar[] = kth_smallest(w, 1) <- sale(_, b, v), w = v * 2."
            "low(b) <- sale(_, b, v), w = v * 2, low_bar[] = bar, w <= bar.",
        ),
        # Names that are taken: of relations within alternatives, of variables in heads and bodies.
        (
            "best(a, bar) <- (best_bar(a, bar_2, v) ; sale(a, bar, v)), top(2, per: bar, by: v, per: a).",
            "best_bar_2[bar, a] = kth_largest(v, 2) <- (best_bar(a, bar_2, v) ; sale(a, bar, v))."
            "best(a, bar) <- (best_bar(a, bar_2, v) ; sale(a, bar, v)),"
            " best_bar_2[bar, a] = bar_3, v >= bar_3.",
        ),
        (
            "best(a) <- sale(a, _, v), top(1, by: v). best(a) <- sale(_, a, v), top(1, by: v).",
            "best_bar[] = kth_largest(v, 1) <- sale(a, _, v)."
            "best(a) <- sale(a, _, v), best_bar[] = bar, v >= bar."
            "best_bar_2[] = kth_largest(v, 1) <- sale(_, a, v)."
            "best(a) <- sale(_, a, v), best_bar_2[] = bar, v >= bar.",
        ),
        # An atom: all by place, all by name.
        ("a(x) <- top(3, x).", "a(x) <- top(3, x)."),
    ],
)
def test_what_it_is_short_for(short: str, long: str) -> None:
    program = parse(short)
    assert program == parse(long)
    assert len({rule.span for rule in program.rules}) == len(program.rules)


def test_relations_may_be_called_top() -> None:
    assert parse("top(x) <- top(3, x), top(by: x).").rules[0].body[0].relation == "top"  # type: ignore[union-attr]


def test_results_and_sums_of_the_best() -> None:
    db = lftj.Database()
    db.load("sale", SALES, columns=["shop", "item", "price"])
    best = db.query("best(s, i) <- sale(s, i, v), top(2, by: v, per: s).", order_by=["s", "i"])
    assert best.to_pydict() == {"s": ["x", "x", "x", "y"], "i": ["a", "b", "c", "a"]}
    assert db.query("t[s] = sum(v) <- sale(s, _, v), top(2, by: v, per: s).", order_by="s")[
        "sum"
    ].to_pylist() == [23, 2]
    assert db.query("least(i) <- sale(_, i, v), bottom(1, by: v).")["i"].to_pylist() == ["d"]


MISTAKES = r"""
'top' takes a whole number from 1 first: top(3, by: v)
  a(x) <- b(x, v), top(0, by: v).
                       ^

'top' takes a whole number from 1 first: top(3, by: v)
  a(x) <- b(x, v), top($k, by: v).
                       ^^

'bottom' takes by: and per:, as in bottom(3, by: v, per: a)
  a(x) <- b(x, v), bottom(3, by: v, of: x).
                                    ^^

'top' needs an order: top(..., by: v)
  a(x) <- b(x, v), top(3, per: x).
                   ^^^^^^^^^^^^^^

'top' goes by one order: by: (a, b)
  a(x) <- b(x, v), top(3, by: x, by: v).
                                 ^^

'top' takes variables: write v here and v = v * 2 in the body
  a(x) <- b(x, v), top(3, by: v * 2).
                              ^^^^^

'top' can't be negated: derive the rows in a rule of their own, and negate its head
  a(x) <- b(x, v), !top(3, by: v).
                   ^^^^^^^^^^^^^^

'top' is of a whole body: write it outside of the parentheses, or a rule for each alternative
  a(x) <- (b(x, v), top(3, by: v) ; b(v, x)).
                    ^^^^^^^^^^^^^

a rule has one 'bottom': derive the rows of the first in a rule of their own
  a(x) <- b(x, v), top(3, by: v), bottom(1, by: x).
                                  ^^^^^^^^^^^^^^^^

'w', which head 'a_bar' needs, is bound by no positive atom or assignment
  a(x) <- b(x, v), top(3, by: w).
                              ^
"""


@pytest.mark.parametrize("message", MISTAKES.strip("\n").split("\n\n"))
def test_mistakes(message: str) -> None:
    db = lftj.Database()
    db.load("b", [(1, 2)], columns=["x", "v"])
    with pytest.raises(RuleError) as caught:
        db.query(message.split("\n")[1][2:])
    assert str(caught.value) == message


def test_a_bar_that_is_loaded_data() -> None:
    db = lftj.Database()
    db.load("sale", SALES, columns=["shop", "item", "price"])
    db.load("best_bar", [(1,)], columns=["n"])
    with pytest.raises(RuleError, match="'best_bar' is loaded data"):
        db.query("best(s) <- sale(s, _, v), top(2, by: v).")
