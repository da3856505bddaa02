"""worked examples: the corners of the rule language, each with its answer written out.

Where random rules seldom go: the ends of int64, NaN, arithmetic that fails,
literals of another kind than their column, nested disjunction, aggregates over
nothing, conflicts of functional predicates.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from decimal import Decimal
from operator import eq, ge, gt, le, lt
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors

Columns = dict[str, pa.Array]
TOP, BOTTOM = 2**63 - 1, -(2**63)


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def ask(program: str, head: str | None = None, **relations: Columns) -> list[tuple[Any, ...]]:
    """The query's tuples, sorted."""
    db = lftj.Database()
    for name, columns in relations.items():
        db.load(name, pa.table(columns))
    table = db.query(program, head=head)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


E: Columns = {"x": ints(1, 1, 2, 3), "y": ints(2, 3, 3, 3)}
D: Columns = {"x": ints(1, 1), "y": ints(7, 8)}


# -- aggregates ---------------------------------------------------------------


def test_wildcards_count() -> None:
    assert ask("n[a] = count() <- e(a, _).", e=E) == [(1, 2), (2, 1), (3, 1)]
    assert ask("n[] = count() <- e(_, a), e(a, _).", e=E) == [(4,)]


def test_alternatives_count_over_their_common_variables() -> None:
    assert ask("n[a] = count() <- e(a, _), (d(a, x) ; e(a, y)).", e=E, d=D) == [(1, 2), (2, 1), (3, 1)]
    assert ask("n[a] = count() <- (d(a, x) ; e(a, x)).", e=E, d=D) == [(1, 4), (2, 1), (3, 1)]
    assert ask("n[a] = count() <- (e(a, x), x > 1 ; e(a, x), x > 2).", e=E) == [(1, 2), (2, 1), (3, 1)]


def test_equal_values_of_different_assignments_all_count() -> None:
    price = {"k": ints(1, 2, 3), "v": ints(10, 10, 5)}
    assert ask("s[] = sum(v) <- price[_] = v.", price=price) == [(25,)]
    assert ask("s[] = avg(v) <- price[_] = v.", price=price) == [(25 / 3,)]
    # Without the key there are two assignments only.
    assert ask("p(v) <- price[_] = v. s[] = sum(v) <- p(v).", price=price) == [(15,)]


def test_nothing_aggregates_to_nothing() -> None:
    empty = {"x": ints(), "y": ints()}
    assert ask("n[] = count() <- e(_, _).", e=empty) == []
    assert ask("n[a] = sum(b) <- e(a, b).", e=empty) == []


def test_float_sums_are_exact() -> None:
    values = pa.array([1e16, 1.0, -1e16, 0.1, 0.2, 0.3])
    assert ask("s[] = sum(v) <- f[_] = v.", f={"k": ints(*range(6)), "v": values}) == [
        (math.fsum(values.to_pylist()),)
    ]
    values = pa.array([1.7e308, 1.7e308, -1.7e308])
    assert ask("s[] = sum(v) <- f[_] = v.", f={"k": ints(*range(3)), "v": values}) == [(1.7e308,)]
    assert ask("s[] = avg(v) <- f[_] = v.", f={"k": ints(0, 1), "v": values[:2]}) == [(1.7e308,)]


def test_special_floats_add_up_as_floats_do() -> None:
    f = {
        "g": ints(0, 0, 1, 1, 2, 2),
        "k": ints(*range(6)),
        "v": pa.array([math.nan, 1.0, math.inf, -math.inf, math.inf, 1.0]),
    }
    (_, nan), (_, both), (_, infinite) = ask("s[g] = sum(v) <- f[g, k] = v.", f=f)
    assert math.isnan(nan) and math.isnan(both) and infinite == math.inf


def test_integer_sums_never_wrap() -> None:
    with pytest.raises(errors.RangeError):
        ask("s[] = sum(v) <- f[_] = v.", f={"k": ints(1, 2), "v": ints(TOP, 1)})
    assert ask("s[] = sum(v) <- f[_] = v.", f={"k": ints(1, 2, 3), "v": ints(TOP, 1, -1)}) == [(TOP,)]
    assert ask("s[] = avg(v) <- f[_] = v.", f={"k": ints(1, 2), "v": ints(TOP, TOP)}) == [(float(TOP),)]


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_concat_orders_by_the_value_or_as_told() -> None:
    s = {"k": ints(1, 1, 1), "o": ints(3, 1, 2), "t": pa.array(["a", "c", "b"])}
    assert ask("c[k] = concat(t) <- s(k, o, t).", s=s) == [(1, "a,b,c")]
    assert ask('c[k] = concat(t, "") <- s(k, o, t).', s=s) == [(1, "abc")]
    assert ask('c[k] = concat(t, ", ", o) <- s(k, o, t).', s=s) == [(1, "c, b, a")]
    assert ask("c[] = concat(t) <- s(_, _, t), e(_, _).", s=s, e=D) == [("a,a,b,b,c,c",)]


def test_least_and_greatest_strings_are_by_value() -> None:
    s = {"k": ints(1, 2, 3), "t": pa.array(["b", "a", "é"])}
    assert ask("m[] = min(t) <- s(_, t).", s=s) == [("a",)]
    assert ask("m[] = max(t) <- s(_, t).", s=s) == [("é",)]


# -- values and literals ------------------------------------------------------


def test_comparisons_at_the_ends_of_int64_do_not_wrap() -> None:
    x = {"x": ints(BOTTOM, 0, TOP)}
    assert ask("h(a, b) <- x(a), x(b), a < b.", x=x) == [(BOTTOM, 0), (BOTTOM, TOP), (0, TOP)]
    assert ask(f"h(a) <- x(a), a <= {BOTTOM}.", x=x) == [(BOTTOM,)]
    assert ask(f"h(a) <- x(a), a > {TOP}.", x=x) == []
    assert ask(f"h(a) <- x(a), a >= {TOP}, x({BOTTOM}).", x=x) == [(TOP,)]
    with contextlib.suppress(errors.RangeError):  # refusing is right as well; a wrong answer is not
        assert ask("h(a, b) <- x(a), x(b), a > b + 3.", x=x) == [(0, BOTTOM), (TOP, BOTTOM), (TOP, 0)]


def test_bounds_far_outside_the_keys_find_nothing() -> None:
    """The distance between a bound and a relation's least key need not fit int64."""
    x, f = {"x": ints(BOTTOM)}, {"x": pa.array([-1.7e308])}
    assert ask(f"h(a) <- x(a), x(a), a >= {TOP}.", x=x) == []
    assert ask("h(a) <- f(a), f(a), 0.1 < a.", f=f) == []
    assert ask("h(a) <- x(a), y(a).", x=x, y={"x": ints(TOP)}) == []
    assert ask("h(a) <- x(a), !y(a).", x=x, y={"x": ints(TOP)}) == [(BOTTOM,)]


def test_arithmetic_never_wraps() -> None:
    with pytest.raises(errors.RangeError):
        ask("h(v) <- x(a), v = a + 1.", x={"x": ints(TOP)})


def test_division() -> None:
    assert ask("h(a, v) <- e(a, b), v = a / b.", e=E) == [(1, 1 / 3), (1, 0.5), (2, 2 / 3), (3, 1.0)]
    with pytest.raises(errors.EvaluationError):
        ask("h(v) <- e(a, b), v = a / (b - 3).", e=E)


def test_literals_meet_columns_by_value() -> None:
    i, f = {"x": ints(2, 3)}, {"x": pa.array([0.1, 0.5, -0.0])}
    d = {"x": pa.array([Decimal("1.50")], pa.decimal128(6, 2))}
    assert ask("h(x) <- i(x), i(2.0).", i=i) == [(2,), (3,)]
    assert ask("h(x) <- i(x), i(2.5).", i=i) == []
    assert ask("h(x) <- i(x), x < 2.5.", i=i) == [(2,)]
    assert ask("h(x) <- i(x), x != 2.5.", i=i) == [(2,), (3,)]
    assert ask("h(x) <- f(x), f(0.1), x >= 0.1.", f=f) == [(0.1,), (0.5,)]
    assert ask("h(x) <- f(x), x = 0.", f=f) == [(0.0,)]
    assert ask("h(x) <- d(x), d(1.5), x <= 1.5.", d=d) == [(Decimal("1.50"),)]
    assert ask("h(v) <- i(x), v = x * 1.2.", i=i) == [(2 * 1.2,), (3 * 1.2,)]


def test_strings_compare_by_value_present_or_not() -> None:
    s = {"t": pa.array(["b", "a", "é", ""])}
    assert ask('h(t) <- s(t), t > "aa".', s=s) == [("b",), ("é",)]
    assert ask('h(t) <- s(t), t != "absent".', s=s) == [("",), ("a",), ("b",), ("é",)]
    assert ask('h(t) <- s(t), t = "absent".', s=s) == []
    assert ask("h(t, u) <- s(t), s(u), t < u, u <= t.", s=s) == []
    assert ask('h(t) <- s(t), !s("absent"), t <= "a".', s=s) == [("",), ("a",)]


def test_dates_and_moments() -> None:
    days = [datetime.date(2026, 1, 30), datetime.date(2026, 1, 31)]
    d = {"x": pa.array(days)}
    assert ask("h(x) <- d(x), x < 2026-01-31.", d=d) == [(days[0],)]
    utc = datetime.UTC
    t = {"x": pa.array([datetime.datetime(2026, 1, 31, 10, tzinfo=utc)], pa.timestamp("us", "Europe/Berlin"))}
    assert len(ask("h(x) <- t(x), x = 2026-01-31T11:00:00+01:00.", t=t)) == 1
    assert len(ask("h(x) <- t(x), x > 2026-01-31T10:00:00Z.", t=t)) == 0


def test_string_views_pass_through_late_conditions() -> None:
    v = {"k": ints(0, 1), "t": pa.array(["a", "b"], pa.string_view())}
    assert ask("h(t, u) <- v(_, t), u = t, !v(0, u).", v=v) == [("b", "b")]
    assert ask('h(k, t, u) <- v(k, t), u = k + 1, t < "b", u < 2.', v=v) == [(0, "a", 1)]


def test_widths_of_a_domain_meet() -> None:
    small = {"x": pa.array([1, 2], pa.int8())}
    wide = {"x": pa.array([2, 300], pa.uint64())}
    assert ask("h(x) <- small(x), wide(x).", small=small, wide=wide) == [(2,)]
    assert ask("h(x) <- small(x), !wide(x).", small=small, wide=wide) == [(1,)]
    assert ask("h(x) <- small(x). h(x) <- wide(x).", small=small, wide=wide) == [(1,), (2,), (300,)]
    words = {"x": pa.array(["a", "b"]).dictionary_encode()}
    large = {"x": pa.array(["b"], pa.large_string())}
    assert ask("h(x) <- words(x), large(x).", words=words, large=large) == [("b",)]


def test_unsigned_numbers_of_64_bits_beside_decimals() -> None:
    """Arrow casts them to decimals of 20 digits only, and they have 19 here."""
    n = {"c": pa.array([0, 7], pa.uint64()), "d": pa.array([Decimal("2.5"), Decimal(7)], pa.decimal128(2, 1))}
    assert ask("h(c) <- n(c, _), c not in (2.5, 7.0).", n=n) == [(0,)]
    assert ask("h(x) <- n(c, d), x = c + d * c.", n=n) == [(Decimal(0),), (Decimal(56),)]
    assert ask('h(x) <- n(c, d), x = least(cast(c, "decimal(20, 1)"), d).', n=n) == [
        (Decimal(0),),
        (Decimal(7),),
    ]


def test_nan_is_refused_as_a_key_and_carried_as_a_value() -> None:
    f = {"k": ints(1, 2), "v": pa.array([math.nan, 1.0])}
    with pytest.raises(errors.NanError):
        ask("h(k) <- f(k, v), f(_, v).", f=f)
    (only,) = ask("h[k] = v <- f[k] = v, k = 1.", f=f)
    assert only[0] == 1 and math.isnan(only[1])


# -- bodies -------------------------------------------------------------------


def test_atoms_of_constants_are_conditions() -> None:
    assert ask("h(a) <- e(a, a), e(1, 2).", e=E) == [(3,)]
    assert ask("h(a) <- e(a, a), e(2, 1).", e=E) == []
    assert ask("h(a) <- e(a, a), !e(2, 1).", e=E) == [(3,)]
    assert ask("h(a) <- e(a, a), 1 < 2.", e=E) == [(3,)]


def test_one_literal_twice_in_an_atom() -> None:
    r = {"x": ints(1, 1, 2, 1), "y": ints(1, 2, 1, -1), "z": ints(7, 8, 9, 6)}
    assert ask("h(z) <- r(1, 1, z).", r=r) == [(7,)]
    assert ask("h(z) <- r(_, _, z), !r(1, 1, z).", r=r) == [(6,), (8,), (9,)]


def test_nested_disjunction() -> None:
    a, b, c = {"x": ints(1, 2, 3, 4)}, {"x": ints(2)}, {"x": ints(3)}
    assert ask("h(x) <- a(x), ((b(x) ; c(x)), !b(3) ; x > 3).", a=a, b=b, c=c) == [(2,), (3,), (4,)]


def test_several_heads() -> None:
    rule = "p(a), q(b, a) <- e(a, b), a < b."
    assert ask(rule, head="p", e=E) == [(1,), (2,)]
    assert ask(rule, head="q", e=E) == [(2, 1), (3, 1), (3, 2)]


def test_chains_of_assignments_in_any_order() -> None:
    rule = "h(a, w) <- w = v * 2, v = a + b, e(a, b), w - 1 != 5."
    assert ask(rule, e=E) == [(1, 8), (2, 10), (3, 12)]


def test_comparison_of_a_variable_with_itself() -> None:
    assert ask("h(a) <- e(a, _), a < a.", e=E) == []
    assert ask("h(a) <- e(a, _), a < a + 1, a = a.", e=E) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "="])
@pytest.mark.parametrize(("left", "right"), [(0, -2), (-1, 0), (1, 2), (-2, -1), (3, -1)])
def test_bounds_at_a_distance(operator: str, left: int, right: int) -> None:
    """Of one variable by another, by either side of the comparison; and by a literal on the left."""

    def moved(name: str, by: int) -> str:
        return f"{name} + {by}" if by > 0 else f"{name} - {-by}" if by else name

    values = range(-3, 4)
    holds = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}[operator]
    x: Columns = {"a": ints(*values)}
    found = ask(f"h(a, b) <- x(a), x(b), {moved('a', left)} {operator} {moved('b', right)}.", x=x)
    assert found == [(a, b) for a in values for b in values if holds(a + left, b + right)]
    assert ask(f"h(a) <- x(a), x(a), {right} {operator} a.", x=x) == [(a,) for a in values if holds(right, a)]


def test_variables_that_are_made_equal() -> None:
    assert ask("h(a, b) <- e(a, b), a = b.", e=E) == [(3, 3)]
    assert ask("h(a, c) <- e(a, b), e(c, d), b = c, a < d.", e=E) == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.filterwarnings("error::lftj.errors.CartesianProductWarning")
def test_a_product_warns_and_is_right() -> None:
    with pytest.raises(errors.CartesianProductWarning):
        ask("h(a, b) <- e(a, _), d(_, b).", e=E, d=D)
    # A part that only has to hold is no product.
    assert ask("h(a) <- e(a, _), d(_, _).", e=E, d=D) == [(1,), (2,), (3,)]


def test_a_product_is_right() -> None:
    with pytest.warns(errors.CartesianProductWarning):
        rows = ask("h(a, b) <- e(a, _), d(_, b).", e=E, d=D)
    assert rows == [(a, b) for a in (1, 2, 3) for b in (7, 8)]


# -- key orders ---------------------------------------------------------------


def test_an_order_may_name_every_variable_of_the_rule() -> None:
    """Also those that the search has no need to bind, because they occur once."""
    db = lftj.Database()
    db.load("e", pa.table(E))
    for rule, n_tuples in (
        ("h(a) <- e(a, b).", 3),
        ("h(a, b) <- e(a, a), e(a, b).", 1),
        ("h(b) <- e(a, b).", 2),
    ):
        for order in (["a", "b"], ["b", "a"]):
            assert db.count(rule, order=order) == n_tuples
            assert len(db.query(rule, order=order)) == n_tuples


def test_orders_that_do_not_fit_are_refused() -> None:
    db = lftj.Database()
    db.load("e", pa.table(E))
    for order in (["a"], ["a", "b", "c"], ["a", "a", "b"]):
        with pytest.raises(errors.OrderError):
            db.query("h(a, b) <- e(a, b), e(b, a).", order=order)


# -- functional predicates ----------------------------------------------------


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_functional_conflicts() -> None:
    with pytest.raises(errors.FunctionalConflictError):
        ask("h[a] = b <- e(a, b).", e=E)
    with pytest.raises(errors.FunctionalConflictError):
        ask("h(a) <- e[a] = b.", e=E)
    with pytest.raises(errors.FunctionalConflictError):
        ask("h[a] = b <- e(b, a), e(a, a). h[a] = b <- d(_, b), e(_, a).", e=E, d=D)
    assert ask("h[a, b] = v <- e(a, b), v = a + b.", e=E) == [(1, 2, 3), (1, 3, 4), (2, 3, 5), (3, 3, 6)]


def test_functional_heads_may_be_read_by_position() -> None:
    program = "n[a] = count() <- e(a, _). h(a) <- n(a, 1), !n[a] = 2."
    assert ask(program, e=E) == [(2,), (3,)]


def test_the_database_stays_usable_after_a_failure() -> None:
    db = lftj.Database()
    db.load("e", pa.table(E))
    for rule in ("h(a) <- e(a", "h(a) <- g(a).", "h(v) <- e(a, b), v = a / (b - 3)."):
        with pytest.raises(errors.LftjError):
            db.query(rule)
    assert db.count("h(a) <- e(a, _).") == 3
