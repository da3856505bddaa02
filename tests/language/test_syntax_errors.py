"""Every mistake in a rule's text by its literal message.

A block below is a whole error message; the program that gives it is its second line.
"""

from __future__ import annotations

import pytest

from lftj.errors import RuleSyntaxError
from lftj.language.parser import MAX_NESTING, parse

MISSING_DOT = r"""
the rule does not end with a dot
  a(x) <- b(x)
              ^
"""

UNFINISHED = r"""
expected ',' or ')', not the end
  a(x
     ^

expected a variable or a constant, not the end
  a(x) <-
         ^

expected a variable or a constant, not the end
  a(x) <- b(x),
               ^

expected ')' or ';', not '.'
  a(x) <- (b(x).
               ^
"""

MARKS = r"""
expected ',' or '.', not 'c'
  a(x) <- b(x) c(x).
               ^

an arrow is written <-
  a(x) :- b(x).
       ^^

expected '(' or '[', not '<-'
  a <- b(x).
    ^^

expected '=', not '<-'; a functional predicate is written F[k] = v
  a[x] <- b(x).
       ^^

expected the name of a relation, not '<-'
  a(x), <- b(x).
        ^^

expected the name of a relation, not '5'
  5(x) <- b(x).
  ^

expected ',' or '.', not '<-'
  a(x) <- b(x) <- c(x).
               ^^

expected a variable or a constant, not '.'
  a(x) <- .
          ^

expected a comparison, not '.'
  a(x) <- b(x), x.
                 ^

literals are separated by commas
  a(x) <- b(x), x & 3.
                  ^

alternatives are separated by ';', in parentheses
  a(x) <- b(x) | c(x).
               ^

comments start with //
  a(x) <- b(x). % remark
                ^

comments start with //
  a(x) <- b(x). # remark
                ^

unexpected character '?'
  a(x) <- b(x), x ? 3.
                  ^
"""

HINTS = r"""
expected '.', not ';'; put alternatives in parentheses: (a(x) ; b(x))
  a(x) <- b(x); c(x).
              ^

expected ',' or '.', not '['; a functional atom stands alone: F[k] = v
  a(x) <- b(x), v = F[x].
                     ^

expected '=', not '<'; a functional predicate is written F[k] = v
  a(x) <- b(x), F[x] < 5.
                     ^

expected ',' or '.', not '<'; comparisons don't chain: write a < b, b < c
  a(x) <- b(x), 1 < x < 3.
                      ^

expected a variable or a constant, not '='; the comparisons are < <= > >= = != <=>
  a(x) <- b(x), x == 3.
                   ^

expected a variable or a constant, not '>'; the comparisons are < <= > >= = != <=>
  a(x) <- b(x), x <> 3.
                   ^

expected a variable or a constant, not '>'; the comparisons are < <= > >= = != <=>
  a(x) <- b(x), x => 3.
                   ^

unknown function 'lowr'; did you mean 'lower'?
  a(x) <- b(x), x = lowr(x).
                    ^^^^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  a(x) <- b(x), x = count().
                    ^^^^^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  a(count() + 1) <- b(x).
    ^^^^^

'_' has no value to compute with: name the variable
  a(x) <- b(x), x = abs(_).
                        ^

'_' has no value to compare: name the variable
  a(x) <- b(x), _ in (1, 2).
                ^

'abs' is a function: its arguments stand by place
  a(x) <- b(x), x = abs(y: x).
                        ^

'sum' is an aggregate: its arguments stand by place
  n[x] = sum(y: x) <- b(x).
             ^

expected a variable or a constant, not ')'
  a(x) <- b(x), x in ().
                      ^

expected a comparison, not 'inn'
  a(x) <- b(x), x inn (1).
                  ^^^

expected ',' or '.', not '<'
  a(x) <- b(x), (abs(x)) < 3.
                         ^

expected a comparison, not 'c'; negation is written !
  a(x) <- b(x), not c(x).
                    ^

expected the name of a relation, not '('; only atoms can be negated
  a(x) <- b(x), !(c(x), d(x)).
                 ^

expected ',' or ')', not 'T10'; a timestamp is written 2026-01-31T10:00:00
  a(x) <- b(x, 2026-01-31T10:00).
                         ^^^
"""

HEADS = r"""
a rule needs a body; to state facts, load data: db.load('edge', [...], columns=[...])
  edge(1, 2).
  ^^^^^^^^^^

a rule needs a body; to state facts, load data: db.load('n', [...], columns=[...])
  n[a] = b.
  ^^^^^^^^

a rule needs a body; to state facts, load data: db.load('a', [...], columns=[...])
  a(x), b(x).
  ^^^^^^^^^^

a head takes variables only: write v here and v = 1 in the body
  a(x, 1) <- b(x).
       ^

a head takes variables only: write v here and v = lower(y) in the body
  a(x, lower(y)) <- b(x, y).
       ^^^^^^^^

a head takes variables only: write v here and v = y + 1 in the body
  a(x, y + 1) <- b(x, y).
       ^^^^^

a head takes variables: '_' has no value to put there
  a(_) <- b(_).
    ^

head 'a' needs at least one variable
  a() <- b(x).
  ^^^

a head takes variables only: write v here and v = 1 in the body
  n[1] = x <- b(x).
    ^

a head's value is a variable or an aggregate: write v here and v = ... in the body
  n[x] = y + 1 <- b(x, y).
           ^

a head's value is a variable or an aggregate: write v here and v = ... in the body
  n[x] = 5 <- b(x).
         ^

a head takes variables: '_' has no value to put there
  n[x] = _ <- b(x).
         ^

a head takes variables only: write v here and v = true in the body
  n[x] = true <- b(x).
         ^^^^

a head's value is a variable or an aggregate: write v here and v = ... in the body
  n[x] = <- b(x).
         ^^

'true' can't name a relation
  true(x) <- b(x).
  ^^^^
"""

AGGREGATE_CALLS = r"""
unknown aggregate 'cuont'; did you mean 'count'?
  n[x] = cuont() <- b(x).
         ^^^^^

a head's value is a variable or an aggregate: write v here and v = ... in the body
  n[x] = count() + 1 <- b(x).
                 ^

'sum' takes variables: write v here and v = y * 2 in the body
  n[x] = sum(y * 2) <- b(x, y).
             ^^^^^

'sum' takes variables: write v here and v = 5 in the body
  n[x] = sum(5) <- b(x).
             ^

'sum' takes variables: '_' has no value to aggregate
  n[x] = sum(_) <- b(x, _).
             ^

the rank of 'kth_largest' is a whole number from 1: kth_largest(v, 3)
  n[x] = kth_largest(y, 0) <- b(x, y).
                        ^

the rank of 'kth_smallest' is a whole number from 1: kth_smallest(v, 3)
  n[x] = kth_smallest(y, x) <- b(x, y).
                         ^

the rank of 'kth_largest' is a whole number from 1: kth_largest(v, 3)
  n[x] = kth_largest(y, $k) <- b(x, y).
                        ^^

the share of 'quantile' is a number above 0 and up to 1: quantile(v, 0.5)
  n[x] = quantile(y, 0) <- b(x, y).
                     ^

the share of 'upper_quantile' is a number above 0 and up to 1: upper_quantile(v, 0.5)
  n[x] = upper_quantile(y, 1.5) <- b(x, y).
                           ^^^

the share of 'quantile' is a number above 0 and up to 1: quantile(v, 0.5)
  n[x] = quantile(y, x) <- b(x, y).
                     ^

the separator of 'concat' is a string
  n[x] = concat(x, 5) <- b(x).
                   ^
"""

ATOMS = r"""
atom 'b' needs at least one term
  a(x) <- b().
          ^^^

an atom takes variables and constants: write v here and v = x + 1 beside the atom
  a(x) <- b(x + 1).
            ^^^^^

an atom takes variables and constants: write v here and v = y * 2 beside the atom
  a(x) <- F[x] = y * 2.
                 ^^^^^

'_' has no value to compare: name the variable
  a(x) <- b(x), _ < 5.
                ^

'_' has no value to compute with: name the variable
  a(x) <- b(x), x = _ + 1.
                    ^

'_' has no value to compute with: name the variable
  a(x) <- b(x), x = -_.
                     ^

expected a comparison, not '('
  a(x) <- b(x), _(x).
                 ^

'false' can't name a relation
  a(x) <- b(x), !false(x).
                 ^^^^^
"""

LITERALS = r"""
strings stand in double quotes
  a(x) <- b(x, 'red').
               ^^^^^^^

unknown escape in a string; there are \" \\ \n \t and \uXXXX
  a(x) <- b(x, "r\qd").
                 ^^

half of a \u surrogate pair is no character
  a(x) <- b("\ud800").
            ^^^^^^^^

unknown escape in a string; there are \" \\ \n \t and \uXXXX
  a(x) <- b("\u12").
             ^^

a binary constant is pairs of hexadecimal digits: x"00ff"
  a(x) <- b(x, x"0").
               ^^^^

a binary constant is pairs of hexadecimal digits: x"00ff"
  a(x) <- b(x, x"0g").
               ^^^^^

no such date: day is out of range for month
  a(x) <- b(x, 2026-02-30).
               ^^^^^^^^^^

no such timestamp: hour must be in 0..23
  a(x) <- b(x, 2026-01-31T25:00:00).
               ^^^^^^^^^^^^^^^^^^^

no such timestamp: hour must be in 0..23
  a(x) <- b(x, 2026-01-31T24:00:00).
               ^^^^^^^^^^^^^^^^^^^

a timestamp constant has at most 6 digits behind the seconds
  a(x) <- b(x, 2026-01-31T10:00:00.1234567).
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^

a number beyond the range of 64-bit floats
  a(x) <- b(x), x < 1e999.
                    ^^^^^
"""

BLOCKS = [
    block
    for group in (
        MISSING_DOT,
        UNFINISHED,
        MARKS,
        HINTS,
        HEADS,
        AGGREGATE_CALLS,
        ATOMS,
        LITERALS,
    )
    for block in group.strip("\n").split("\n\n")
]


@pytest.mark.parametrize("message", BLOCKS)
def test_mistakes(message: str) -> None:
    program = message.split("\n")[1][2:]
    with pytest.raises(RuleSyntaxError) as caught:
        parse(program)
    assert str(caught.value) == message
    caret = message.split("\n")[2][2:]
    start = len(caret) - len(caret.lstrip())
    assert caught.value.span is not None
    assert caught.value.span[0] == start
    assert max(caught.value.span[1] - start, 1) == len(caret.strip())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "a(x) <- b(x)\nc(x) <- d(x).\n",
            "the rule does not end with a dot (line 1)\n  a(x) <- b(x)\n              ^",
        ),
        (
            "b(x) <- c(x).\nn[x]\n",
            "expected '=', not the end (line 2)\n  n[x]\n      ^",
        ),
        (
            'a(x) <- b(x, "red).\nc(x) <- d(x).',
            'the string is not closed on its line (line 1)\n  a(x) <- b(x, "red).\n               ^^^^^^',
        ),
        (
            "a(x) <-\n\tb(x),\r\n\tx == 3.",
            "expected a variable or a constant, not '='; the comparisons are < <= > >= = != <=> (line 3)\n"
            "  \tx == 3.\n"
            "  \t   ^",
        ),
        (
            'a(x) <- b("日本", é), c(x).',
            "unexpected character 'é'\n  a(x) <- b(\"日本\", é), c(x).\n                    ^",
        ),
        (
            "a(x) <- b(x)  // dot forgotten\n\n",
            "the rule does not end with a dot\n  a(x) <- b(x)  // dot forgotten\n              ^",
        ),
    ],
)
def test_mistakes_in_several_lines(program: str, message: str) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse(program)
    assert str(caught.value) == message


def test_a_long_line_is_cut_around_the_place() -> None:
    literals = ", ".join(f"edge(v{i}, v{i + 1})" for i in range(100))
    with pytest.raises(RuleSyntaxError) as caught:
        parse(f"a(v0) <- {literals}, v0 == v1, {literals}.")
    _, line, caret = str(caught.value).split("\n")
    assert line.startswith("  ...")
    assert line.endswith("...")
    assert len(line) <= 110
    assert line[caret.index("^") - 1 : caret.index("^") + 1] == "=="


@pytest.mark.parametrize("expression", ["-" * 300 + "x", "+".join("x" * 300), "(-" * 300 + "x" + ")" * 300])
def test_deep_expressions_are_refused(expression: str) -> None:
    with pytest.raises(RuleSyntaxError, match="nested deeper than 100 levels"):
        parse(f"a(x) <- b(x), x = {expression}.")


def test_deep_disjunctions_are_refused() -> None:
    with pytest.raises(RuleSyntaxError, match="nested deeper than 100 levels"):
        parse("a(x) <- " + "(" * 2000 + "b(x)" + ")" * 2000 + ".")


def test_parentheses_alone_are_no_nesting() -> None:
    expression = "(" * 2000 + "x" + ")" * 2000
    assert parse(f"a(x) <- b(x), x = {expression}.") == parse("a(x) <- b(x), x = x.")


def test_a_sum_of_many_terms_is_within_the_limit() -> None:
    parse("a(x) <- b(x), x = " + " + ".join("x" * MAX_NESTING) + ".")


def test_a_program_is_text() -> None:
    with pytest.raises(TypeError, match="a program is a str, not bytes"):
        parse(b"a(x) <- b(x).")  # type: ignore[arg-type]
