"""Every mistake that the checker finds, by its literal message with the caret.

A block below is a whole error message; the program that gives it is its second line.
"""

from __future__ import annotations

import pytest

from lftj import errors
from lftj.language.normal_form import MAX_CONJUNCTIONS
from support.catalog import checked

UNKNOWNRELATION = r"""
unknown relation 'egde'; did you mean 'edge'?
  tri(a, b) <- egde(a, b).
               ^^^^

unknown relation 'Edges'; did you mean 'edge'?
  tri(a, b) <- Edges(a, b).
               ^^^^^

unknown relation 'xyz'; there are 'base', 'c', 'colour', 'd', 'e', 'edge', 'item', 'made' and 4 more
  tri(a) <- edge(a, _), !xyz(a).
                         ^^^

unknown relation 'farr'; did you mean 'far'?
  far(a) <- edge(a, b), (node(b) ; farr(b)).
                                   ^^^^
"""

ARITY = r"""
'edge' has 2 columns (src, dst), not 3
  tri(a, b) <- edge(a, b, c).
               ^^^^^^^^^^^^^

'node' has 1 column (id), not 2
  tri(a) <- !node(a, a), edge(a, _).
            ^^^^^^^^^^^

'base' has 2 columns (item, price): base[...] = v with 2 keys reads 3
  tri(i) <- base[i, i] = _.
            ^^^^^^^^^^^^^^

'base' has 2 columns (item, price): base[...] = v with 0 keys reads 1
  tri(i) <- base[] = i.
            ^^^^^^^^^^

'count' takes no argument: it counts assignments; write count(if a is not null)
  n[a] = count(a) <- node(a).
         ^^^^^^^^

'sum' takes one argument
  n[a] = sum() <- node(a).
         ^^^^^

'max' takes one argument
  n[a] = max(a, a) <- node(a).
         ^^^^^^^^^

'concat' takes a string, a separator and order variables: concat(s, ", ", o)
  n[a] = concat() <- node(a).
         ^^^^^^^^

'p' has 1 column (a) in its first rule, not 2
  p(a) <- node(a). p(a, b) <- edge(a, b).
                   ^^^^^^^

'p' is functional here and a relation in its first rule
  p(a) <- node(a). p[] = a <- node(a).
                   ^^^^^^^

'p' has 2 columns (a, a_2), not 1
  p(a, a) <- node(a). q(a) <- p(a).
                              ^^^^
"""

UNBOUNDVARIABLE = r"""
'c', which head 'tri' needs, is bound by no positive atom or assignment
  tri(a, c) <- edge(a, b).
         ^

'c', which head 'n' needs, is bound by no positive atom or assignment
  n[c] = count() <- edge(a, b).
    ^

'c', which head 'n' needs, is bound by no positive atom or assignment
  n[a] = c <- edge(a, b).
         ^

'c', which head 'n' needs, is bound by no positive atom or assignment
  n[a] = sum(c) <- edge(a, b).
             ^

'o', which head 'n' needs, is bound by no positive atom or assignment
  n[i] = concat(i, ",", o) <- item(i).
                        ^

'c', which the comparison needs, is bound by no positive atom or assignment
  tri(a) <- edge(a, b), c < 3.
                        ^

'c', which the comparison needs, is bound by no positive atom or assignment
  tri(a) <- edge(a, b), c + 1 = b.
                        ^

'v', which the comparison needs, is bound by no positive atom or assignment
  tri(a) <- edge(a, b), v = w, w = v.
                        ^

'v', which the comparison needs, is bound by no positive atom or assignment
  tri(a) <- edge(a, b), v = v + 1.
                        ^

'x', which the comparison needs, is bound by no positive atom or assignment
  a(x) <- x < 5.
          ^

this alternative does not bind 'y', which head 'a' needs
  a(x, y) <- c(x), (d(x, y) ; e(x)).
                              ^^^^

this alternative does not bind 'y', which the comparison needs
  a(x) <- c(x), (d(x, y) ; e(x)), y < 5.
                           ^^^^

this alternative does not bind 'y', which the comparison needs
  a(x), b(y) <- c(x), (d(x, y) ; e(x), (d(y, x) ; c(x), y < 2)).
                                                  ^^^^^^^^^^^

this alternative does not bind 'y', which head 'n' needs
  n[x] = sum(y) <- c(x), (d(x, y), e(x) ; e(x), y = 2 ; e(x), c(x)).
                                                        ^^^^^^^^^^
"""

UNSAFENEGATION = r"""
'y', which the negated atom 'd' tests, is bound by no positive atom or assignment; write _ for any value
  a(x) <- c(x), !d(x, y).
                      ^

'y', which the negated atom 'd' tests, is bound by no positive atom or assignment; write _ for any value
  a(y) <- c(x), !d(x, y).
                      ^

'x', which the negated atom 'c' tests, is bound by no positive atom or assignment; write _ for any value
  a(x) <- !c(x).
             ^

this alternative does not bind 'y', which the negated atom 'e' tests
  a(x) <- c(x), (d(x, y) ; e(x)), !e(y).
                           ^^^^

'v', which the negated atom 'F' tests, is bound by no positive atom or assignment; write _ for any value
  a(x) <- c(x), !F[x] = v, v < 2. F[x] = y <- d(x, y).
                        ^
"""

RULE = r"""
'edge' is loaded data: give the head another name
  edge(a) <- node(a).
  ^^^^
"""

STRATIFICATION = r"""
'p' depends on its own negation: p -> p
  p(a) <- node(a), !p(a).
                    ^

'n' depends on its own aggregate: n -> n
  n[a] = count() <- node(a), n[a] = 3.
                             ^

'p' depends on its own negation: p -> q -> r -> p
  p(a) <- node(a), !q(a). q(a) <- node(a), r(a). r(a) <- p(a).
                    ^
"""

RECURSION = r"""
'p' can't begin: each of its rules reads a relation that needs tuples of 'p' first
  p(a) <- p(a).
  ^

'p' can't begin: each of its rules reads a relation that needs tuples of 'p' or 'q' first
  p(a) <- node(a), q(a). q(a) <- p(a).
  ^
"""

TYPECLASH = r"""
'b' is edge.dst of type int64 and item.item of type string: they can't be joined; call it b2 here, and write b2 = cast(b, "string") beside it
  tri(a) <- edge(a, b), item(b).
                             ^

'b' is edge.dst of type int64 and w.w of type double: they can't be joined, only compared (b = b2)
  tri(a) <- edge(a, b), w(_, b).
                             ^

'd' is made.day of type date32[day] and t.t of type timestamp[us, tz=UTC]: they can't be joined; call it d2 here, and write d = cast(d2, "date") beside it
  tri(a) <- made(a, d), t(_, d).
                             ^

edge.dst is of type int64: it can't be compared with "x"
  tri(a) <- edge(a, "x").
                    ^^^

edge.dst is of type int64: it can't be compared with true
  tri(a) <- edge(a, true).
                    ^^^^

colour.colour is of type string: it can't be compared with 5; a string stands in double quotes: "5"
  tri(i) <- colour(i, 5).
                      ^

base.price is of type decimal128(8, 2): it can't be compared with true
  tri(i) <- base[i] = true.
                      ^^^^

made.day is of type date32[day]: it can't be compared with "2026-01-31"; a date is written without quotes: 2026-01-31
  tri(i) <- made(i, "2026-01-31").
                    ^^^^^^^^^^^^

t.t is of type timestamp[us, tz=UTC]: it can't be compared with 2026-01-31T10:00:00
  tri(x) <- t(x, 2026-01-31T10:00:00).
                 ^^^^^^^^^^^^^^^^^^^

'b' is edge.dst of type int64: it can't be compared with "x"
  tri(a) <- edge(a, b), b < "x".
                            ^^^

'b' is edge.dst of type int64: it can't be compared with "x"
  tri(a) <- edge(a, b), "x" != b.
                        ^^^

't' is t.t of type timestamp[us, tz=UTC]: it can't be compared with 2026-01-31
  tri(t) <- t(_, t), t < 2026-01-31.
                         ^^^^^^^^^^

'b' is edge.dst of type int64 and 'i' is item.item of type string: they can't be compared
  tri(a) <- edge(a, b), item(i), b < i.
                                 ^^^^^

b + 1 is of type int64 and i of type string: they can't be compared
  tri(a) <- edge(a, b), item(i), b + 1 < i.
                                 ^^^^^^^^^

1 is of type int64 and "x" of type string: they can't be compared
  tri(a) <- edge(a, b), 1 < "x".
                        ^^^^^^^

there is no + for types string and int64
  tri(i) <- item(i), v = 2 * (i + 1).
                              ^^^^^

there is no - for type date32[day]
  tri(i) <- made(i, d), v = -d.
                            ^^

'v' is b * 1.5 of type double and edge.dst of type int64: they can't be joined, only compared (v = v2)
  tri(a) <- edge(a, b), v = b * 1.5, !edge(a, v).
                                              ^

'v' is b * 1.5 of type double: it can't be compared with "x"
  tri(a) <- edge(a, b), v = b * 1.5, v < "x".
                                         ^^^

'sum' takes numbers, and 'i' is of type string
  n[a] = sum(i) <- item(i), node(a).
             ^

'avg' takes numbers, and 'd' is of type date32[day]
  n[a] = avg(d) <- made(_, d), node(a).
             ^

'concat' takes strings, and 'a' is of type int32
  n[a] = concat(a) <- node(a).
                ^

p.a is of type int32 in one alternative and string in another: they have no domain in common
  p(a) <- (node(a) ; item(a)).
    ^

p.a is of type int32 in an earlier rule and string here: they have no domain in common
  p(a) <- node(a). p(a) <- item(a).
                     ^

n.i is of type int64 in an earlier rule and string here: they have no domain in common
  n[a] = count() <- node(a). n[a] = i <- node(a), item(i).
                                    ^
"""  # noqa: E501

CASES = [
    (error, block)
    for error, group in (
        (errors.UnknownRelationError, UNKNOWNRELATION),
        (errors.ArityError, ARITY),
        (errors.UnboundVariableError, UNBOUNDVARIABLE),
        (errors.UnsafeNegationError, UNSAFENEGATION),
        (errors.StratificationError, STRATIFICATION),
        (errors.RuleError, RECURSION),
        (errors.TypeClashError, TYPECLASH),
        (errors.RuleError, RULE),
    )
    for block in group.strip("\n").split("\n\n")
]


@pytest.mark.parametrize(("error", "message"), CASES)
def test_mistakes(error: type[errors.RuleError], message: str) -> None:
    program, caret = (line[2:] for line in message.split("\n")[1:])
    with pytest.raises(errors.RuleError) as caught:
        checked(program)
    assert type(caught.value) is error
    assert str(caught.value) == message
    assert caught.value.span == (caret.index("^"), len(caret))


def test_the_line_is_named_in_a_longer_program() -> None:
    with pytest.raises(errors.UnknownRelationError) as caught:
        checked("a(x) <- c(x).\n\nb(x) <- a(x),\n        nodes(x).\n")
    assert str(caught.value) == (
        "unknown relation 'nodes'; did you mean 'node'? (line 4)\n          nodes(x).\n          ^^^^^"
    )


def test_an_empty_program() -> None:
    with pytest.raises(errors.RuleError, match=r"^the program has no rule$"):
        checked("  // nothing\n")


@pytest.mark.parametrize(("repeats", "shown"), [(13, "8,192"), (130, "about 10^39")])
def test_too_many_conjunctions(repeats: int, shown: str) -> None:
    disjunctions = ", ".join(["(c(x) ; e(x))"] * repeats)
    with pytest.raises(errors.RuleError) as caught:
        checked(f"a(x) <- {disjunctions}.")
    message = f"the alternatives multiply to {shown} conjunctions, more than 4096; split the rule"
    assert str(caught.value).split("\n")[0] == message
    assert caught.value.span == (8, 21)


def test_just_enough_conjunctions() -> None:
    program = checked(f"a(x) <- {', '.join(['(c(x) ; e(x))'] * 12)}.")
    assert len(program.strata[0][0].bodies) == MAX_CONJUNCTIONS


def test_a_number_of_too_many_digits() -> None:
    with pytest.raises(errors.TypeClashError, match="a number of 81 digits: decimals have at most 76"):
        checked(f"a(x) <- c(x), x < 1{'0' * 80}.")
