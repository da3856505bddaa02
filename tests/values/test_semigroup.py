"""oracle: a user's aggregates in rules against ``functools.reduce``; what is refused, and how they fail."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lftj
import maintenance
from lftj.errors import AggregateError, ArityError, EvaluationError, RuleSyntaxError, TypeClashError
from lftj.values.semigroup import Semigroup, register, registered_names
from support.sets import load_set

pytestmark = pytest.mark.kernel


@numba.njit
def gcd(left, right):  # type: ignore[no-untyped-def]
    while right:
        left, right = right, left % right
    return abs(left)


@numba.njit
def product(left, right):  # type: ignore[no-untyped-def]
    return left * right


@numba.njit
def last(left, right):  # type: ignore[no-untyped-def]
    return right


@numba.njit
def picky(left, right):  # type: ignore[no-untyped-def]
    if left == 13 or right == 13:
        raise ValueError("that number again")
    return max(left, right)


def plain(function: Any) -> Callable[[Any, Any], Any]:
    return getattr(function, "py_func", function)


@pytest.fixture(scope="module")
def compiled_once() -> dict[str, Semigroup]:
    return {}


@pytest.fixture
def db(compiled_once: dict[str, Semigroup], monkeypatch: pytest.MonkeyPatch) -> lftj.Database:
    monkeypatch.setattr("lftj.values.semigroup._registered", compiled_once)
    for name, function in {"gcd": gcd, "product": product, "last": last, "picky": picky}.items():
        maintenance.aggregate(name, function)
    monkeypatch.setattr("lftj.values.semigroup._registered", dict(compiled_once))
    made = lftj.Database()
    made.load(
        "e",
        [("a", 12, "x", 0.5), ("a", 18, "b", 2.0), ("b", 5, "q", 4.0), ("b", 13, "a", -1.0)],
        columns=["k", "v", "t", "f"],
    )
    return made


def rows(db: lftj.Database, rule: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*db.query(rule).to_pydict().values(), strict=True))


# -- what comes out -----------------------------------------------------------


def test_integers_and_floats(db: lftj.Database) -> None:
    assert rows(db, "g[k] = gcd(v) <- e(k, v, _, _).") == [("a", 6), ("b", 1)]
    assert rows(db, "g[] = product(v) <- e(_, v, _, _).") == [(12 * 18 * 5 * 13,)]
    assert rows(db, 'g[k] = product(f) <- e(k, _, _, f), k = "a".') == [("a", 1.0)]
    assert db.query("g[k] = gcd(v) <- e(k, v, _, _).").schema.field("gcd").type == pa.int64()
    assert db.query("g[k] = last(f) <- e(k, _, _, f).").schema.field("last").type == pa.float64()


def test_order_variables_decide_and_then_the_value(db: lftj.Database) -> None:
    assert rows(db, "l[k] = last(v, t) <- e(k, v, t, _).") == [("a", 12), ("b", 5)]
    assert rows(db, "l[k] = last(v) <- e(k, v, _, _).") == [("a", 18), ("b", 13)]
    assert rows(db, "l[] = last(v, k, t) <- e(k, v, t, _).") == [(5,)]


def test_nan_is_passed_on_as_the_greatest_float(db: lftj.Database) -> None:
    db.load("m", [(1, 4.0), (2, math.nan), (3, -1.0), (4, math.inf)], columns=["n", "f"])
    for name in ("last", "product"):
        ((value,),) = rows(db, f"l[] = {name}(f) <- m[n] = f.")
        assert math.isnan(value)
    assert rows(db, "l[] = last(f, n) <- m[n] = f.") == [(math.inf,)]


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_an_assignment_counts_as_often_as_it_occurs(db: lftj.Database) -> None:
    db.load("n", [(1,), (2,), (3,)], columns=["n"])
    assert rows(db, 'p[] = product(v) <- e("a", v, _, _), n(_).') == [((12 * 18) ** 3,)]
    assert rows(db, "none[] = product(v) <- e(_, v, _, _), v > 99.") == []


@given(data=st.data())
@settings(max_examples=30)
def test_oracle_folds_in_order(data: st.DataObject) -> None:
    compose = plain(compose_maps)
    register("compose", compose_maps)
    maps = st.tuples(st.integers(1, 250), st.integers(0, 250)).map(lambda pair: 256 * pair[0] + pair[1])
    order_type, orders = data.draw(
        st.sampled_from(
            [
                (pa.string(), st.text("abé", max_size=2)),
                (
                    pa.timestamp("us"),
                    st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(1970, 1, 2)),
                ),
                (pa.int8(), st.integers(-3, 3)),
            ]
        )
    )
    table = data.draw(st.lists(st.tuples(st.integers(0, 2), maps, orders, st.integers(0, 3)), max_size=25))
    database = lftj.Database()
    columns = list(zip(*table, strict=True)) or [[], [], [], []]
    types = [pa.int64(), pa.int32(), order_type, pa.int64()]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    load_set(database, "e", pa.table(arrays, names=["k", "v", "o", "n"]))
    database.load("many", [(n, m) for n in range(4) for m in range(n)], columns=["n", "m"])
    wanted = {}
    distinct = sorted({(k, o.encode() if isinstance(o, str) else o, v, n) for k, v, o, n in table if n})
    for key, group in itertools.groupby(distinct, key=lambda row: row[0]):
        wanted[key] = functools.reduce(compose, [v for _, _, v, n in group for _ in range(n)])
    assert dict(rows(database, "c[k] = compose(v, o) <- e(k, v, o, n), many(n, _).")) == wanted


@numba.njit
def compose_maps(left, right):  # type: ignore[no-untyped-def]
    """First ``x -> a*x + b`` of ``left``, then that of ``right``, modulo 251; a map is ``256*a + b``."""
    slope = (left // 256) * (right // 256) % 251
    return slope * 256 + ((right // 256) * (left % 256) + right % 256) % 251


# -- rules that are refused ------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (
            "g[k] = gcd(t) <- e(k, _, t, _).",
            TypeClashError,
            "'gcd' takes integers or floats, and 't' is of type string\n"
            "  g[k] = gcd(t) <- e(k, _, t, _).\n"
            "             ^",
        ),
        (
            "g[k] = gcd() <- e(k, _, _, _).",
            ArityError,
            "'gcd' takes a value and order variables: gcd(v, o)\n"
            "  g[k] = gcd() <- e(k, _, _, _).\n"
            "         ^^^^^",
        ),
        (
            "g[k] = gdc(v) <- e(k, v, _, _).",
            RuleSyntaxError,
            "unknown aggregate 'gdc'; did you mean 'gcd'?\n  g[k] = gdc(v) <- e(k, v, _, _).\n         ^^^",
        ),
    ],
)
def test_rules_that_are_refused(db: lftj.Database, rule: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        db.query(rule)
    assert str(caught.value) == message


@pytest.mark.compiled
def test_functions_that_do_not_fit_the_type(db: lftj.Database) -> None:
    register("half", numba.njit(lambda left, right: (left + right) / 2))
    with pytest.raises(TypeClashError) as caught:
        db.query("h[k] = half(v) <- e(k, v, _, _).")
    assert str(caught.value) == (
        "aggregate 'half' returns float64 for two values of int64: it has to return the type that it takes\n"
        "  h[k] = half(v) <- e(k, v, _, _).\n"
        "              ^"
    )
    assert rows(db, 'h[k] = half(f) <- e(k, _, _, f), k = "a".') == [("a", 1.25)]
    register("upper", numba.njit(lambda left, right: left.upper()))
    with pytest.raises(
        TypeClashError, match=r"'upper' can't be compiled over int64: Unknown attribute 'upper'"
    ):
        db.query("h[k] = upper(v) <- e(k, v, _, _).")
    register("nothing", numba.njit(lambda left, right: None))
    with pytest.raises(TypeClashError, match="returns none for two values of float64"):
        db.query("h[k] = nothing(f) <- e(k, _, _, f).")


# -- functions that raise ----------------------------------------------------------


def test_a_function_that_raises(db: lftj.Database) -> None:
    with pytest.raises(AggregateError) as caught:
        db.query("p[k] = picky(v) <- e(k, v, _, _).")
    assert isinstance(caught.value, EvaluationError)
    assert str(caught.value) == (
        'p["b"] = picky(v): picky(5, 13) raised ValueError: that number again\n'
        "  p[k] = picky(v) <- e(k, v, _, _)."
    )
    assert rows(db, "p[k] = picky(v) <- e(k, v, _, _), v < 13.") == [("a", 12), ("b", 5)]


@pytest.mark.compiled
def test_operands_that_are_floats_are_told_exactly() -> None:
    divide = Semigroup("divide", numba.njit(lambda left, right: left / right))
    for left, right in ((0.1, 0.0), (-math.inf, 0.0), (5e-324, -0.0)):
        with pytest.raises(AggregateError) as caught:
            divide.operation(np.float64).fold(
                np.array([left, right]), np.array([1, 1]), np.array([0, 2]), lambda group: f"group {group}"
            )
        assert str(caught.value) == (
            f"group 0: divide({left}, {right}) raised ZeroDivisionError: division by zero"
        )


@pytest.mark.compiled
def test_threads_do_not_see_one_anothers_failures() -> None:
    operation = Semigroup("picky", picky).operation(np.int64)
    failures: list[str] = []

    def work(value: int) -> None:
        values = np.full(2_000, value)
        for _ in range(50):
            try:
                operation.fold(values, np.ones(2_000, np.int64), np.array([0, 2_000]), str)
                raised = False
            except AggregateError:
                raised = True
            if raised != (value == 13):
                failures.append(f"{value}: {raised}")

    threads = [threading.Thread(target=work, args=(value,)) for value in (12, 13, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- the registry ----------------------------------------------------------------


def test_names() -> None:
    register("gcd", gcd)
    register("gcd", gcd)
    assert registered_names() == ["gcd"]
    with pytest.raises(AggregateError, match="'gcd' of another function already: choose another name"):
        register("gcd", last)
    with pytest.raises(AggregateError, match="'sum' is an aggregate of the language"):
        register("sum", gcd)
    for name in ("", "2x", "a b", "é", "true", "_", "a-b", None):
        with pytest.raises(AggregateError, match="can't name an aggregate"):
            register(name, gcd)  # type: ignore[arg-type]
    with pytest.raises(AggregateError, match="needs a function, not int"):
        register("mine", 3)  # type: ignore[arg-type]
    assert registered_names() == ["gcd"]


@pytest.mark.compiled
def test_a_plain_function_is_no_aggregate() -> None:
    with pytest.raises(
        AggregateError, match=r"<lambda> is a plain Python function.*decorate it with numba\.njit"
    ):
        register("mine", lambda left, right: left)


def test_the_same_text_again_is_the_same_function() -> None:
    def made(text: str, outer: int) -> Any:
        names: dict[str, Any] = {"numba": numba, "outer": outer}
        exec(f"@numba.njit\ndef mine(left, right):\n    return {text}", names)
        return names["mine"]

    register("mine", made("left + right + outer", 1))
    register("mine", made("left + right + outer", 1))
    for other in (made("left + right + outer", 2), made("left - right + outer", 1), made("left + right", 1)):
        with pytest.raises(AggregateError, match="of another function"):
            register("mine", other)
