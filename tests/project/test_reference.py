"""The reference against DuckDB's SQL and against answers worked out by hand.

The engine takes no part here: this is what makes the reference worth
comparing with.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest

from support.functions import DivisionByZero, Overflow
from support.reference import (
    FunctionalConflict,
    Relations,
    average,
    evaluate,
    exact_sum,
)
from support.rules import (
    Constant,
    Either,
    Head,
    Literal,
    Minus,
    Program,
    Rule,
    Variable,
    aggregate,
    arith,
    atom,
    compare,
    head,
    lookup,
    no,
)

TRIANGLE = (atom("e", "a", "b"), atom("e", "b", "c"), atom("e", "a", "c"))
SQL_TRIANGLE = "e p, e q, e r where p.x = r.x and p.y = q.x and q.y = r.y"

# name: (program, the relation asked for, the same in SQL over e(x, y), f(x, y), s(x, t), one row per tuple)
AGAINST_SQL: dict[str, tuple[Program, str]] = {
    "triangle": (
        (Rule((head("h", "a", "b", "c"),), TRIANGLE),),
        f"select distinct p.x, p.y, q.y from {SQL_TRIANGLE}",
    ),
    "projected triangle": (
        (Rule((head("h", "c"),), TRIANGLE),),
        f"select distinct q.y from {SQL_TRIANGLE}",
    ),
    "repeated variable and constant": (
        (Rule((head("h", "a", "b"),), (atom("e", "a", "a"), atom("f", "b", 2))),),
        "select distinct e.x, f.x from e, f where e.x = e.y and f.y = 2",
    ),
    "negation with a wildcard": (
        (Rule((head("h", "a"),), (atom("e", "_", "a"), no("f", "a", "_"))),),
        "select distinct y from e where not exists (select 1 from f where f.x = e.y)",
    ),
    "negation of a self-join with a comparison": (
        (
            Rule(
                (head("h", "a", "c"),),
                (atom("e", "a", "b"), atom("e", "b", "c"), no("e", "c", "a"), compare("a", "<", "c")),
            ),
        ),
        "select distinct p.x, q.y from e p, e q where p.y = q.x and p.x < q.y"
        " and not exists (select 1 from e r where r.x = q.y and r.y = p.x)",
    ),
    "affine comparisons": (
        (
            Rule(
                (head("h", "a", "b", "c"),),
                (
                    atom("e", "a", "b"),
                    atom("f", "c", "_"),
                    compare("a", "<", arith("b", "+", 1)),
                    compare(arith(arith("a", "*", 2), "-", "c"), "<=", 3),
                    compare("b", "!=", "c"),
                ),
            ),
        ),
        "select distinct e.x, e.y, f.x from e, f where e.x < e.y + 1 and e.x * 2 - f.x <= 3 and e.y <> f.x",
    ),
    "assignment": (
        (
            Rule(
                (head("h", "a", "v"),),
                (
                    compare("w", "=", arith("a", "*", "b")),
                    atom("e", "a", "b"),
                    compare(arith("w", "+", Minus(Variable("a"))), "=", "v"),
                    no("f", "a", "v"),
                ),
            ),
        ),
        "select distinct x, x * y - x from e where not exists"
        " (select 1 from f where f.x = e.x and f.y = e.x * e.y - e.x)",
    ),
    "disjunction": (
        (
            Rule(
                (head("h", "a"),),
                (
                    atom("e", "a", "b"),
                    Either(
                        (
                            (atom("f", "b", "c"), compare("c", ">", 2)),
                            (no("f", "a", "_"),),
                            (compare("a", "=", "b"),),
                        )
                    ),
                ),
            ),
        ),
        "select distinct e.x from e where exists (select 1 from f where f.x = e.y and f.y > 2)"
        " or not exists (select 1 from f where f.x = e.x) or e.x = e.y",
    ),
    "two strata": (
        (
            Rule((head("reach", "a", "c"),), (atom("e", "a", "b"), atom("f", "b", "c"))),
            Rule((head("reach", "a", "b"),), (atom("e", "a", "b"),)),
            Rule((head("h", "a", "c"),), (atom("reach", "a", "c"), no("reach", "c", "a"))),
        ),
        "with reach(a, c) as (select e.x, f.y from e, f where e.y = f.x union select x, y from e)"
        " select distinct a, c from reach where (c, a) not in (select a, c from reach)",
    ),
    "out-degree": (
        (Rule((head("h", "a", value=aggregate("count")),), (atom("e", "a", "_"),)),),
        "select x, count(*) from e group by x",
    ),
    "count over a join with a wildcard": (
        (Rule((head("h", value=aggregate("count")),), (atom("e", "a", "b"), atom("f", "b", "_"))),),
        "select count(*) from e, f where e.y = f.x having count(*) > 0",
    ),
    "sum, a multiset": (
        (Rule((head("h", "b", value=aggregate("sum", "a")),), (atom("e", "a", "b"), atom("f", "a", "c"))),),
        "select e.y, sum(e.x)::bigint from e, f where e.x = f.x group by e.y",
    ),
    "average": (
        (Rule((head("h", "b", value=aggregate("avg", "a")),), (atom("e", "a", "b"),)),),
        "select y, avg(x) from e group by y",
    ),
    "min of max": (
        (
            Rule((head("m", "b", value=aggregate("max", "a")),), (atom("e", "a", "b"),)),
            Rule((head("h", value=aggregate("min", "v")),), (lookup("m", "_", "v"),)),
        ),
        "select min(v) from (select max(x) v from e group by y) having count(*) > 0",
    ),
    "concat": (
        (
            Rule(
                (head("h", "a", value=aggregate("concat", "t", Constant("-"), "b")),),
                (atom("e", "a", "b"), atom("s", "b", "t")),
            ),
        ),
        "select e.x, string_agg(t, '-' order by e.y, t) from e, s where e.y = s.x group by e.x",
    ),
    "closure": (
        (
            Rule((head("h", "a", "b"),), (atom("e", "a", "b"),)),
            Rule((head("h", "a", "c"),), (atom("h", "a", "b"), atom("h", "b", "c"))),
        ),
        "with recursive h(a, c) as"
        " (select x, y from e union select h.a, e.y from h, e where h.c = e.x) select * from h",
    ),
    "same generation, mutual": (
        (
            Rule((head("h", "a", "b"),), (atom("e", "p", "a"), atom("e", "p", "b"))),
            Rule((head("g", "q", "a"),), (atom("e", "p", "a"), atom("h", "p", "q"))),
            Rule((head("h", "a", "b"),), (atom("g", "q", "a"), atom("e", "q", "b"), no("f", "a", "b"))),
        ),
        "with recursive h(a, b) as (select p.y, q.y from e p, e q where p.x = q.x union"
        " select p.y, q.y from e p, h, e q where p.x = h.a and h.b = q.x"
        " and not exists (select 1 from f where f.x = p.y and f.y = q.y)) select * from h",
    ),
    "strings": (
        (
            Rule(
                (head("h", "a", "t"),),
                (
                    atom("s", "a", "t"),
                    atom("s", "b", "t"),
                    compare("t", ">", Constant("b")),
                    compare("a", "<", "b"),
                ),
            ),
        ),
        "select distinct p.x, p.t from s p, s q where p.t = q.t and p.t > 'b' and p.x < q.x",
    ),
}


@pytest.mark.parametrize("case", AGAINST_SQL)
@pytest.mark.parametrize("seed", range(4))
def test_reference_agrees_with_sql(case: str, seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    generator = random.Random(seed)
    size = (0, 6, 15, 25)[seed]

    def pairs(second: Any) -> set[tuple[Any, Any]]:
        return {(generator.randrange(6), generator.choice(second)) for _ in range(size)}

    relations: Relations = {"e": pairs(range(6)), "f": pairs(range(6)), "s": pairs(["a", "b", "c", "é"])}
    connection = duckdb.connect()
    connection.execute("create table e(x bigint, y bigint); create table f(x bigint, y bigint)")
    connection.execute("create table s(x bigint, t varchar)")
    for name, rows in relations.items():
        if rows:
            connection.executemany(f"insert into {name} values (?, ?)", sorted(rows))
    program, sql = AGAINST_SQL[case]
    expected = [tuple(row) for row in connection.execute(sql).fetchall()]
    got = evaluate(program, relations, "h")
    assert got == set(expected)
    assert len(got) == len(expected)


def one(body: tuple[Any, ...], made: Head, relations: Relations) -> set[tuple[Any, ...]]:
    return evaluate((Rule((made,), body),), relations, made.relation)


def test_alternatives_count_once_over_their_common_variables() -> None:
    relations: Relations = {"e": {(1, 2), (1, 3)}, "d": {(1, 7), (1, 8)}}
    body: tuple[Literal, ...] = (
        atom("e", "a", "_"),
        Either(((atom("d", "a", "x"),), (atom("e", "a", "y"),))),
    )
    # x and y are bound by one alternative each: only a and e's wildcard are counted.
    assert one(body, head("n", "a", value=aggregate("count")), relations) == {(1, 2)}
    body = (Either(((atom("d", "a", "x"),), (atom("e", "a", "x"),))),)
    assert one(body, head("n", "a", value=aggregate("count")), relations) == {(1, 4)}


def test_nested_disjunction_and_constants_only() -> None:
    relations: Relations = {"a": {(1,), (2,), (3,)}, "b": {(2,)}, "c": {(3,)}, "flag": {(0,)}}
    inner = Either(((atom("b", "x"),), (atom("c", "x"),)))
    body = (atom("a", "x"), Either(((inner, atom("flag", 0)), (atom("flag", 1),))))
    assert one(body, head("h", "x"), relations) == {(2,), (3,)}


def test_functional_conflicts_are_refused_wherever_they_arise() -> None:
    relations: Relations = {"e": {(1, 2), (1, 3)}}
    with pytest.raises(FunctionalConflict):
        one((atom("e", "a", "b"),), head("h", "a", value="b"), relations)
    with pytest.raises(FunctionalConflict):
        one((lookup("e", "a", "b"),), head("h", "a"), relations)
    assert one((atom("e", "a", "b"),), head("h", "b", value="a"), relations) == {(2, 1), (3, 1)}


def test_sums_are_rounded_once() -> None:
    assert exact_sum([1e16, 1.0, -1e16]) == 1.0
    assert exact_sum([1.7e308, 1.7e308, -1.7e308]) == 1.7e308
    assert exact_sum([1.7e308, 1.7e308]) == math.inf
    assert math.isnan(exact_sum([math.inf, -math.inf, 1.0]))
    assert exact_sum([math.inf, 1.0]) == math.inf
    assert exact_sum([Decimal("0.10"), Decimal("0.2")]) == Decimal("0.3")
    assert average([1, 2]) == 1.5
    assert average([1.7e308, 1.7e308]) == 1.7e308
    assert average([Decimal("0.1"), Decimal("0.2")]) == 0.15
    with pytest.raises(Overflow):
        exact_sum([2**63 - 1, 1])


def test_literals_meet_columns_by_value() -> None:
    relations: Relations = {"f": {(0.1,), (0.5,)}, "i": {(2,), (3,)}, "d": {(Decimal("1.50"),)}}
    assert (
        one((atom("f", Constant(Decimal("0.1"))), atom("f", "x")), head("h", "x"), relations)
        == relations["f"]
    )
    assert one((atom("i", "x"), compare("x", "<", Decimal("2.5"))), head("h", "x"), relations) == {(2,)}
    assert (
        one((atom("d", "x"), compare("x", "=", Decimal("1.5"))), head("h", "x"), relations) == relations["d"]
    )
    body = (atom("i", "x"), compare("v", "=", arith("x", "*", Decimal("1.2"))))
    assert one(body, head("h", "v"), relations) == {(2 * 1.2,), (3 * 1.2,)}
    with pytest.raises(DivisionByZero):
        one((atom("i", "x"), compare("v", "=", arith(1, "/", arith("x", "-", 2)))), head("h", "v"), relations)
