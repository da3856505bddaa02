"""Heads with aggregates among their terms: mistakes, columns, key orders, warnings, names in messages.

Random ones are compared with the reference in the oracle tests.  A block below is a whole error message; the
program that gives it is its second line.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.storage.relation import Relation
from lftj.values.semigroup import register
from support.catalog import checked, types_of

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]

MISTAKES = {
    errors.RuleSyntaxError: r"""
unknown aggregate 'cuont'; did you mean 'count'?
  n(x, cuont()) <- b(x).
       ^^^^^

an aggregate is no key: a head with aggregates among its terms has round brackets, n(x, count(), sum(y))
  n[x, count()] = sum(y) <- b(x, y).
       ^^^^^^^

an aggregate is no key: a head with aggregates among its terms has round brackets, n(max(y), x)
  n[max(y)] = x <- b(x, y).
    ^^^^^^

expected ',', '.' or '<-', not '='; a functional head is written F[k] = v
  n(x) = count() <- b(x).
       ^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  n(x, count() + 1) <- b(x).
       ^^^^^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  n(x, 1 + count()) <- b(x).
           ^^^^^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  n(x, sum(count())) <- b(x).
           ^^^^^

expected a variable or a constant, not '*'; assignments are counted by count()
  n(x, count(*)) <- b(x).
             ^

expected ',' or ')', not 'y'
  n(x, sum y) <- b(x, y).
           ^

expected ',' or ')', not '<-'
  n(x, count() <- b(x).
               ^^

'sum' takes variables: write v here and v = y * 2 in the body
  n(sum(y * 2), x) <- b(x, y).
        ^^^^^

a head takes variables only: write v here and v = 1 in the body
  n(count(), 1) <- b(x, y).
             ^

a rule needs a body; to state facts, load data: db.load('n', [...], columns=[...])
  n(x, count()).
  ^^^^^^^^^^^^^

'count' is an aggregate: it stands alone in a head, as in n[a] = count(); compute with it in another rule
  n(x) <- b(x, count()).
               ^^^^^
""",
    errors.UnknownRelationError: r"""
unknown relation 'stat'; did you mean 'stats'?
  stats(a, count(), max(a)) <- node(a). far(a) <- stat(a, _, _).
                                                  ^^^^
""",
    errors.ArityError: r"""
'quantile' takes a value, a share and perhaps a weight: quantile(v, 0.5, w)
  n(x, quantile(y)) <- b(x, y).
       ^^^^^^^^^^^

'kth_largest' takes a value and a rank: kth_largest(v, 3)
  n(x, kth_largest(y)) <- b(x, y).
       ^^^^^^^^^^^^^^

'max' takes one argument
  n(a, count(), max()) <- node(a).
                ^^^^^

'p' has 2 columns (a, count) in its first rule, not 3
  p(a, count()) <- node(a). p(a, count(), max(a)) <- node(a).
                            ^^^^^^^^^^^^^^^^^^^^^

'p' is functional here and a relation in its first rule
  p(a, count()) <- node(a). p[a] = count() <- node(a).
                            ^^^^^^^^^^^^^^

'p' has 3 columns (count, a, count_2), not 2
  p(count(), a, count()) <- node(a). q(a) <- p(_, a).
                                             ^^^^^^^
""",
    errors.UnboundVariableError: r"""
'c', which head 'n' needs, is bound by no positive atom or assignment
  n(a, count(), sum(c)) <- edge(a, b).
                    ^

'c', which head 'n' needs, is bound by no positive atom or assignment
  n(count(), c) <- edge(a, b).
             ^

this alternative does not bind 'y', which head 'n' needs
  n(count(), max(y)) <- c(x), (d(x, y) ; e(x)).
                                         ^^^^
""",
    errors.StratificationError: r"""
'n' depends on its own aggregate: n -> n
  n(a, count(), max(a)) <- node(a), n(a, _, _).
                                    ^

'n' depends on its own aggregate: n -> m -> n
  n(a, count()) <- m(a). m(a) <- n(a, _), node(a).
                   ^
""",
    errors.TypeClashError: r"""
'sum' takes numbers, and 'i' is of type string
  n(count(), sum(i), a) <- item(i), node(a).
                 ^

n.min_2 is of type int32 in one alternative and string in another: they have no domain in common
  n(count(), min(b), min(a)) <- node(b), (node(a) ; item(a)).
                     ^^^^^^

n.i is of type int64 in an earlier rule and string here: they have no domain in common
  n(a, count()) <- node(a). n(a, i) <- node(a), item(i).
                                 ^
""",
}

CASES = [(error, block) for error, group in MISTAKES.items() for block in group.strip("\n").split("\n\n")]


@pytest.fixture
def db() -> lftj.Database:
    made = lftj.Database()
    made.load("edge", EDGES, columns=["a", "b"])
    made.load("sale", [("a#2", 2**62), ("b", 2**62), ("b", 2**62 + 1)], columns=["s", "n"])
    made.load("f", pa.table({"k": [1, 1, 2], "v": [math.nan, 1.0, 2.0]}))
    return made


def rows(db: lftj.Database, rule: str, **options: Any) -> list[tuple[Any, ...]]:
    table = db.query(rule, **options)
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert db.count(rule, **options) == len(found)
    return sorted(found)


@pytest.mark.parametrize(("error", "message"), CASES)
def test_mistakes(error: type[errors.RuleError], message: str) -> None:
    program, caret = (line[2:] for line in message.split("\n")[1:])
    with pytest.raises(errors.RuleError) as caught:
        checked(program)
    assert type(caught.value) is error
    assert str(caught.value) == message
    assert caught.value.span == (caret.index("^"), len(caret))


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        (
            "p(x, count(), max(y), sum(y)) <- d(x, y).",
            [("x", "int64"), ("count", "int64"), ("max", "int64"), ("sum", "int64")],
        ),
        ("p(count()) <- d(x, y).", [("count", "int64")]),
        ("p(sum(x), y, sum(y)) <- d(x, y).", [("sum", "int64"), ("y", "int64"), ("sum_2", "int64")]),
        ("p(count(), count) <- c(count).", [("count", "int64"), ("count_2", "int64")]),
        (
            "p(sum_2, sum(sum_2), sum, sum(sum)) <- d(sum, sum_2).",
            [("sum_2", "int64"), ("sum", "int64"), ("sum_3", "int64"), ("sum_4", "int64")],
        ),
        ("p(x, count(), x) <- c(x).", [("x", "int64"), ("count", "int64"), ("x_2", "int64")]),
        (
            "p(sum(v), avg(v), min(v), concat(i)) <- base[i] = v.",
            [
                ("sum", "decimal128(38, 2)"),
                ("avg", "double"),
                ("min", "decimal128(8, 2)"),
                ("concat", "string"),
            ],
        ),
        ("p(a, min(a)) <- node(a). p(x, max(y)) <- d(x, y).", [("a", "int64"), ("min", "int64")]),
    ],
)
def test_columns(rule: str, columns: list[tuple[str, str]]) -> None:
    program = checked(rule)
    assert types_of(program, "p") == columns
    assert not program.derived["p"].functional


def test_the_last_rules_heads_are_those_written() -> None:
    program = checked("p(x, count(), sum(y)), q(y) <- d(x, y).")
    assert program.result == ("p", "q")
    assert {name: shown_name(name) for name in program.derived if is_auxiliary(name)} == {
        "p#1": "p",
        "p#2": "p",
    }


def test_equal_aggregates_are_one() -> None:
    program = checked("p(count(), x, sum(y), count()), p(y, x, x, x) <- d(x, y). p(x, x, x, max(x)) <- c(x).")
    assert [name for name in program.derived if is_auxiliary(name)] == ["p#1", "p#2", "p#3"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h(a, count(), sum(b), max(b)) <- edge(a, b).", [(1, 2, 5, 3), (2, 1, 3, 3), (3, 1, 4, 4)]),
        ("h(count(), a, count(), a) <- edge(a, _).", [(1, 2, 1, 2), (1, 3, 1, 3), (2, 1, 2, 1)]),
        ("h(count(), sum(b)) <- edge(_, b).", [(4, 12)]),
        ("h(count(), sum(b)) <- edge(b, b).", []),
        ("h(a, count(), max(b)) <- (edge(a, b) ; edge(b, a)).", [(1, 2, 3), (2, 2, 3), (3, 3, 4), (4, 1, 3)]),
        (
            "h(a, count()) <- edge(a, _). h(a, sum(b)) <- edge(a, b), a < 3.",
            [(1, 2), (1, 5), (2, 1), (2, 3), (3, 1)],
        ),
        ("h(a, count()), h(b, count()) <- edge(a, b), b < 4.", [(1, 2), (2, 1), (3, 2)]),
        ("t(min(b), max(b)) <- edge(_, b). s(a, n) <- edge(a, n), t(n, _).", [(1, 2)]),
    ],
)
def test_rows(db: lftj.Database, rule: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(db, rule) == expected


def test_rules_of_one_head_may_stand_in_several_strata(db: lftj.Database) -> None:
    program = "h(a, a) <- edge(a, _). {} h(a, n) <- s(a, n). g(a, n) <- h(a, n), a < 2."
    assert rows(db, program.format("s(a, b) <- edge(a, b).")) == [(1, 1), (1, 2), (1, 3)]
    assert rows(db, program.format("s(a, count()) <- edge(a, _).")) == [(1, 1), (1, 2)]


def test_a_value_may_be_nan(db: lftj.Database) -> None:
    db.load("g", pa.table({"k": [1, 2, 3], "v": [math.nan, 1.0, 2.0]}))
    ((least, greatest, total),) = rows(db, "h(min(v), max(v), sum(v)) <- g[_] = v.")
    assert least == 1.0 and math.isnan(greatest) and math.isnan(total)


def test_aggregates_of_users(db: lftj.Database) -> None:
    register("least_but_one", numba.njit(lambda left, right: min(left, right)))
    assert rows(db, "h(a, least_but_one(b), count()) <- edge(a, b).") == [(1, 2, 2), (2, 3, 1), (3, 4, 1)]


@pytest.mark.filterwarnings("error::lftj.errors.CartesianProductWarning")
def test_the_global_group_is_no_product_of_its_aggregates(db: lftj.Database) -> None:
    rule = "h(count(), sum(b), max(a)) <- edge(a, b)."
    assert rows(db, rule) == [(4, 12, 3)]
    assert "cartesian" not in str(db.explain(rule))


def test_a_product_in_the_body_is_warned_about_once(db: lftj.Database) -> None:
    with pytest.warns(errors.CartesianProductWarning) as caught:
        db.query("h(a, count(), count(), max(x)) <- edge(a, _), edge(x, _).")
    assert len({str(warning.message) for warning in caught}) == len(caught)


def test_a_key_order_is_the_bodys(db: lftj.Database) -> None:
    rule = "h(a, c, count(), sum(b)) <- edge(a, b), edge(b, c)."
    for order in (["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]):
        assert rows(db, rule, order=order) == [(1, 3, 1, 2), (1, 4, 1, 3), (2, 4, 1, 3)]
        first, second, join = db.explain(rule, order=order).bodies
        assert first.order == second.order == tuple(order)
        assert join.reason != first.reason == "given by the caller"
    with pytest.raises(errors.OrderError, match="order= names 'count', which is no key variable"):
        db.query(rule, order=["count", "a", "b", "c"])


def test_a_key_order_is_for_one_head(db: lftj.Database) -> None:
    program = "h(n, count()) <- s(_, n). s(a, count()) <- edge(a, _)."
    assert rows(db, program, head="h", order=["n"]) == [(1, 2), (2, 1)]


def test_a_sum_beyond_64_bits_names_the_head(db: lftj.Database) -> None:
    rule = "stats(s, count(), sum(n)) <- sale(s, n)."
    with pytest.raises(errors.RangeError) as caught:
        db.query(rule)
    assert str(caught.value).startswith('stats["b"] = sum(n) is 9223372036854775809')
    assert str(caught.value).endswith(f"\n  {rule}")
    assert "#" not in str(caught.value)


@pytest.mark.parametrize("name", ["h#1", "g"])
def test_auxiliary_heads_cant_be_asked_for(db: lftj.Database, name: str) -> None:
    with pytest.raises(errors.UnknownRelationError, match=f"no rule has the head '{name}'; heads are h, x$"):
        db.query("h(a, count()), x(a) <- edge(a, _).", head=name)


def test_a_relation_that_was_added_may_have_any_name(db: lftj.Database) -> None:
    db.add(Relation.from_table("h#1", pa.table({"a": [7]}), db.domains))
    for _ in range(2):
        assert rows(db, "h(count()) <- edge(_, _).") == [(4,)]


def test_a_trace_is_of_one_aggregate(db: lftj.Database) -> None:
    with pytest.raises(errors.RuleError, match=r"^h has aggregates among its terms; a trace is of one"):
        db.trace("h(a, count()) <- edge(a, _).")


def test_explain_shows_the_auxiliary_heads(db: lftj.Database) -> None:
    rule = "h(a, count(), sum(b)) <- edge(a, b)."
    explanation = db.explain(rule)
    assert [body.head for body in explanation.bodies] == ["h#1", "h#2", "h"]
    assert {body.rule for body in explanation.bodies} == {rule}
    assert "h#1[a] = count" in str(explanation)


# -- one search -------------------------------------------------------------


@pytest.fixture
def paths() -> lftj.Database:
    """Edges whose 2-paths through a node are many more than its edges."""
    made = lftj.Database()
    made.load("edge", [(a, b) for a in range(40) for b in range(40) if (a * b) % 5 < 2], columns=["a", "b"])
    return made


def operations(db: lftj.Database, rule: str, **options: Any) -> list[int]:
    """Of every body that was searched for the rule, but for those that join auxiliary heads."""
    bodies = db.explain(rule, analyze=True, **options).bodies
    return [body.operations for body in bodies if not any("its columns are" in note for note in body.notes)]


BODY = "edge(a, b), edge(b, c)"


@pytest.mark.parametrize(
    ("head", "union"),
    [
        ("a, count(), sum(c), max(c), avg(c)", "a, c"),
        ("a, count(), sum(c), max(a), min(c)", "a, c"),
        ("count(), sum(c), max(c), avg(c)", "c"),
        ("a, b, count(), sum(c), max(b), min(c)", "a, b, c"),
    ],
)
def test_the_aggregates_of_a_head_are_searched_for_once(paths: lftj.Database, head: str, union: str) -> None:
    first, *rest = operations(paths, f"h({head}) <- {BODY}.")
    assert first <= operations(paths, f"h[{union}] = count() <- {BODY}.")[0]
    assert rest == [0] * 3


@pytest.mark.parametrize("body", [f"{BODY}, c < a", f"({BODY} ; edge(c, b), edge(a, c)), d = a + b"])
def test_a_shared_search_gives_what_each_aggregate_gives_alone(paths: lftj.Database, body: str) -> None:
    calls = ["count()", "sum(c)", "max(b)", "avg(c)", "min(b)"]
    found = rows(paths, f"h(a, {', '.join(calls)}) <- {body}.")
    alone = [dict(rows(paths, f"h[a] = {call} <- {body}.")) for call in calls]
    assert found == sorted((a, *(values[a] for values in alone)) for a in alone[0])


def test_heads_of_one_rule_share_a_search(paths: lftj.Database) -> None:
    rule = f"n[a] = count(), total[a] = sum(c), other[c] = max(a) <- {BODY}."
    program = f"{rule} h(a, n, t) <- n[a] = n, total[a] = t."
    explanation = paths.explain(program, analyze=True)
    n, total, _ = explanation.bodies
    assert (n.head, total.head) == ("n", "total")
    assert n.operations == operations(paths, f"h[a] = sum(c) <- {BODY}.")[0]
    assert total.operations == 0 and total.rows == n.rows
    assert "note: this search also feeds total[a] = sum(c)" in str(explanation)
    assert "total[a] = sum(c): no search of its own, its rows are those of n[a] = count()" in str(explanation)
    assert "other" not in "".join(note for body in explanation.bodies for note in body.notes)


def test_heads_of_different_groups_share_a_search_where_that_is_less_work(paths: lftj.Database) -> None:
    read = "h(x) <- n[x] = _, m[x] = _."
    together = f"n[a] = count(), m[c] = sum(a) <- {BODY}. {read}"
    apart = f"n[a] = count() <- {BODY}. m[c] = sum(a) <- {BODY}. {read}"
    assert rows(paths, together) == rows(paths, apart)


def test_rows_that_only_several_aggregates_together_need_are_not_searched_for(paths: lftj.Database) -> None:
    """Arms of a star: each aggregate needs one, and all arms together are a product."""
    body = "edge(a, b), edge(b, c), edge(b, d)"
    together = operations(paths, f"h(b, sum(a), max(c), min(d)) <- {body}.")
    alone = [operations(paths, f"h[b] = {call} <- {body}.") for call in ("sum(a)", "max(c)", "min(d)")]
    assert together == [count for counts in alone for count in counts]
    assert together[0] * 10 < operations(paths, f"h[b, a, c, d] = count() <- {body}.")[0]


def test_an_error_of_a_shared_search_names_the_aggregate_that_it_is_about(db: lftj.Database) -> None:
    rule = 'stats(count(), max(n), sum(n)) <- sale(s, n), s != "c".'
    with pytest.raises(errors.RangeError, match=r"^stats\[\] = sum\(n\) is "):
        db.query(rule)
