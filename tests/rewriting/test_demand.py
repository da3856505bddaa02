"""Heads that are evaluated for the keys that are read: the rows of brute force, and operations that say so.

Random programs are evaluated with keys wherever there are some, whatever that costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from lftj import Database, errors
from lftj.evaluation.evaluation import Evaluation
from lftj.rewriting import one_off
from maintenance import Workspace
from support.bound_readers import HEADS, data_of, reader, whatever_it_costs
from support.reference import Row, evaluate
from support.rows import rows_of
from support.rules import (
    Rule,
    atom,
    render,
)
from support.sets import load_set

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")


@contextmanager
def as_written() -> Iterator[None]:
    with mock.patch.object(one_off, "with_demand", lambda program, *_, **__: program):
        yield


def operations(db: Database, text: str) -> int:
    """Of all that the last head needs, recursion too."""
    evaluation = Evaluation(db.request(text))
    for _ in evaluation.batches():
        pass
    return evaluation.done.operations.total


# -- random programs -------------------------------------------------------------------------


def loaded(data: dict[str, list[Row]], nulls: bool = False) -> Database:
    db = Database()
    for name, rows in data.items():
        columns = {f"c{at}": pa.array([row[at] for row in rows], pa.int64()) for at in range(len(rows[0]))}
        load_set(db, name, pa.table(columns), nulls="keep" if nulls else "refuse")
    return db


@pytest.mark.in_turns
@pytest.mark.parametrize("form", HEADS)
def test_oracle_random_readers(form: str) -> None:
    arity, rules = HEADS[form]
    with_keys = 0
    for seed in range(16):
        random = Random(f"{form} {seed}")
        nulls = seed % 4 == 3
        data = data_of(random, nulls)
        readers = [reader(random, "h", arity)]
        if random.random() < 0.4:
            readers = [reader(random, "h", arity, "k"), *readers]
            columns = len(readers[0].heads[0].terms)
            names = ("a", *("_" for _ in range(columns - 1)))
            readers[1] = Rule(readers[1].heads, (*readers[1].body, atom("k", *names)))
        program = (*rules, *readers)
        expected = evaluate(program, {name: set(rows) for name, rows in data.items()}, "q")
        text = render(program)
        db = loaded(data, nulls)
        with whatever_it_costs(by_heads=seed % 2 == 0):
            got = rows_of(db.query(text, head="q", threads=1))
            assert sorted(got, key=repr) == sorted(expected, key=repr), text
            assert db.count(text, head="q") == len(expected), text
            with_keys += "#keys" in str(db.explain(text, head="q", analyze=True))
    assert with_keys >= 4


# -- what it spares --------------------------------------------------------------------------

CHAIN = 1000
LEFT = "reach(x, y) <- e(x, y). reach(x, z) <- reach(x, y), e(y, z)."
RIGHT = "reach(x, y) <- e(x, y). reach(x, z) <- e(x, y), reach(y, z)."
NOT_LINEAR = "reach(x, y) <- e(x, y). reach(x, z) <- reach(x, y), reach(y, z)."


def chain() -> Database:
    db = Database()
    load_set(db, "e", [(n, n + 1) for n in range(CHAIN)], columns=["x", "y"])
    return db


@pytest.mark.parametrize("rules", [LEFT, RIGHT])
def test_what_one_node_reaches_costs_what_it_reaches(rules: str) -> None:
    db = chain()
    for n in (10, 400):
        text = f"{rules} q(x) <- reach({CHAIN - n}, x)."
        assert sorted(rows_of(db.query(text))) == [(x,) for x in range(CHAIN - n + 1, CHAIN + 1)]
        assert operations(db, text) < 16 * n + 20
        text = f"{rules} q(x) <- reach(x, {n})."
        assert sorted(rows_of(db.query(text))) == [(x,) for x in range(n)]
        assert operations(db, text) < 16 * n + 20


def test_a_recursion_that_is_not_linear_stays_within_what_is_reached() -> None:
    db = chain()
    text = f"{NOT_LINEAR} q(x) <- reach({CHAIN - 10}, x)."
    assert sorted(rows_of(db.query(text))) == [(x,) for x in range(CHAIN - 9, CHAIN + 1)]
    assert operations(db, text) < 4000


def test_what_ends_a_way_is_read_for_the_ends_only() -> None:
    db = chain()
    load_set(db, "f", [(n, n % 7) for n in range(CHAIN)], columns=["x", "v"])
    load_set(db, "w", [(n % 7, n) for n in range(CHAIN)], columns=["v", "w"])
    rules = "many(x, w) <- f(x, v), w(v, w). h(x, w) <- many(x, w). h(x, w) <- e(x, y), h(y, w). "
    text = f"{rules} q(w) <- h({CHAIN - 3}, w)."
    assert db.count(text) == sum(n % 7 in {(CHAIN - k) % 7 for k in (1, 2, 3)} for n in range(CHAIN))
    assert "many#keys1(x) <- h#keys2(from_x, x)." in str(db.explain(text))
    assert operations(db, text) < 8000


def test_parameters_are_keys() -> None:
    db = chain()
    text = f"{RIGHT} q(x) <- reach($from, x)."
    for n in (5, 20):
        assert db.count(text, params={"from": CHAIN - n}) == n
    evaluation = Evaluation(db.request(text, params={"from": CHAIN - 5}))
    assert evaluation.count() == 5
    assert evaluation.done.operations.seeks < 100


def orders(n_suppliers: int = 50, n_orders: int = 20_000) -> Database:
    random = Random(7)
    lines = sorted(
        {(o, random.randrange(n_suppliers), random.randrange(2)) for o in range(n_orders) for _ in range(6)}
    )
    db = Database()
    load_set(db, "line", lines, columns=["o", "s", "late"])
    load_set(db, "supplier", [(s, s % 25) for s in range(n_suppliers)], columns=["s", "nation"])
    return db


WAITING = """
late(o, s) <- line(o, s, 1).
other(o, s) <- late(o, s), line(o, t, _), t != s.
otherlate(o, s) <- late(o, s), late(o, t), t != s.
q(s, n: count()) <- supplier(s, 3), line(o, s, 1), other(o, s), !otherlate(o, s).
"""


@pytest.mark.compiled
def test_suppliers_that_kept_orders_waiting() -> None:
    """TPC-H's query 21."""
    db = orders()
    with as_written():
        expected, whole = sorted(rows_of(db.query(WAITING))), operations(db, WAITING)
    db = orders()
    assert sorted(rows_of(db.query(WAITING))) == expected
    assert len(expected) == 2
    assert operations(db, WAITING) < whole / 2
    text = str(db.explain(WAITING))
    assert text.count("evaluated for the keys") == 2
    assert "evaluated for the keys (o, s) that q reads only, about" in text


def test_explain_says_why_a_head_is_whole() -> None:
    db = orders()
    rules = "n[o] = count() <- line(o, s, _), supplier(s, _). q(o, c) <- line(o, _, _), n[o] = c."
    assert "#keys" not in str(db.explain(rules))
    assert "evaluated" not in str(db.explain(rules)).splitlines()[4]
    assert "evaluated whole: q reads about 20,000 of 20,000 keys (o), for which" in str(
        db.explain(rules, analyze=True)
    )


@pytest.mark.compiled
def test_a_head_that_anything_reads_whole_is_whole() -> None:
    db = chain()
    rules = f"{LEFT} a(x) <- reach(3, x). b(x) <- reach(x, _). q(x) <- a(x), b(x)."
    with whatever_it_costs():
        (line,) = (one for one in str(db.explain(rules)).splitlines() if one.startswith("  1  reach "))
        assert "#keys" not in line
    assert "evaluated for the keys (x) that a reads only" in str(db.explain(rules, head="a"))
    assert "evaluated" not in str(db.explain(LEFT, head="reach", analyze=True)).replace("evaluated in", "")


# -- semantics -------------------------------------------------------------------------------


def test_conflicts_of_keys_that_are_read_are_errors() -> None:
    db = Database()
    load_set(db, "s", [(1, 5), (1, 6), (2, 7)], columns=["k", "v"])
    load_set(db, "one", [(1,)], columns=["k"])
    load_set(db, "two", [(2,)], columns=["k"])
    rules = "f[k] = v <- s(k, v). "
    with whatever_it_costs():
        assert rows_of(db.query(rules + "q(v) <- two(k), f[k] = v.")) == [(7,)]
        for body in ("one(k), f[k] = v", "f[1] = v", "one(k), f(k, v)", "s(k, v), one(k), f(k, v)"):
            with pytest.raises(errors.FunctionalConflictError):
                db.query(f"{rules}q(v) <- {body}.")


def test_a_relation_that_is_read_as_a_function_is_one_for_the_keys_that_are_read() -> None:
    db = Database()
    load_set(db, "s", [(1, 5), (1, 6), (2, 7)], columns=["k", "v"])
    load_set(db, "t", [(5,), (7,)], columns=["v"])
    with whatever_it_costs():
        assert rows_of(db.query("h(k, v) <- s(k, v). q(v) <- t(v), h[2] = v.")) == [(7,)]
        with pytest.raises(errors.FunctionalConflictError):
            db.query("h(k, v) <- s(k, v). q(k) <- t(v), h[k] = v.")
        with pytest.raises(errors.FunctionalConflictError):
            db.query("h(k, v) <- s(k, v). q(v) <- t(v), h[1] = v.")


def test_errors_of_rows_that_nobody_reads_may_vanish_and_no_others_come() -> None:
    db = Database()
    load_set(db, "s", [(1, 0), (2, 4)], columns=["k", "v"])
    load_set(db, "two", [(2,)], columns=["k"])
    with whatever_it_costs():
        assert rows_of(db.query("f(k, w) <- s(k, v), w = 8 / v. q(w) <- two(k), f(k, w).")) == [(2,)]
        rules = "f(k) <- s(k, _). g(k, v) <- s(k, v), two(k). q(k) <- g(k, v), s(k, v), 8 / v > 1, f(k)."
        assert rows_of(db.query(rules)) == [(2,)]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("null_safe", [False, True])
def test_null_is_a_key_where_it_equals_null(negated: bool, null_safe: bool) -> None:
    db = Database()
    load_set(db, "s", pa.table({"k": [1, 2, None], "v": [1, 2, 3]}), nulls="keep")
    load_set(db, "t", pa.table({"k": [1, None, 5]}), nulls="keep")
    sign, equal = "!" if negated else "", "<=> " if null_safe else ""
    value = "_" if negated else "v"
    rules = f"h(k, v) <- s(k, v). q(k) <- t(k), {sign}h({equal}k, {value})."
    keys = {1, None} if null_safe else {1}
    if negated:
        keys = {1, None, 5} - keys if null_safe else {5}
    with whatever_it_costs():
        assert {k for (k,) in rows_of(db.query(rules))} == keys
        assert "#keys" in str(db.explain(rules))


def test_windows_are_restricted_by_their_partition_only() -> None:
    db = Database()
    load_set(db, "s", [(1, 5), (1, 6), (2, 7), (2, 3)], columns=["k", "v"])
    load_set(db, "t", [(1, 6), (2, 7)], columns=["k", "v"])
    rules = "r(k, v, n) <- s(k, v), n = rank(by: v, per: k). "
    with whatever_it_costs():
        assert sorted(rows_of(db.query(rules + "q(k, v, n) <- t(k, v), r(k, v, n)."))) == [
            (1, 6, 2),
            (2, 7, 2),
        ]
        assert sorted(rows_of(db.query(rules + "q(v, n) <- r(1, v, n)."))) == [(5, 1), (6, 2)]
        assert "r_window  <- s, r#keys1" in str(db.explain(rules + "q(v, n) <- r(1, v, n)."))
        assert "w_window#keys" not in str(db.explain("w(v, n) <- s(_, v), n = rank(by: v). q(n) <- w(5, n)."))


def test_bags_keep_their_copies() -> None:
    db = Database()
    load_set(db, "s", [(1, 5), (1, 6), (2, 7)], columns=["k", "v"])
    rules = "bag h(k) <- s(k, _). bag h(k) <- s(k, 5). q(k, n: count()) <- s(k, 5), h(k)."
    with whatever_it_costs():
        assert rows_of(db.query(rules)) == [(1, 3)]
        assert "#keys" in str(db.explain(rules))


def test_literals_of_other_types_are_no_keys() -> None:
    db = Database()
    load_set(db, "s", pa.table({"k": ["a", "b"], "v": [1, 2]}))
    load_set(db, "w", pa.table({"k": pa.array([1, 2], pa.int8()), "x": [0.5, 1.5]}))
    with whatever_it_costs():
        for rules, keyed, expected in (
            ('h(k, v) <- s(k, v). q(v) <- h("b", v).', True, [(2,)]),
            ('h(k, v) <- s(k, v). q(v) <- h("never seen", v).', True, []),
            ("h(k, x) <- w(k, x). q(x) <- h(2, x).", True, [(1.5,)]),
            ("h(k, x) <- w(k, x). q(x) <- h(2000, x).", True, []),
            ("h(k, x) <- w(k, x). q(x) <- h(2.5, x).", False, []),
            ("h(k, x) <- w(k, x). q(k) <- h(k, 0.5).", False, [(1,)]),
        ):
            assert rows_of(db.query(rules)) == expected
            assert ("#keys" in str(db.explain(rules))) is keyed, rules


@pytest.mark.compiled
def test_a_bound_of_rounds_is_that_of_the_rules_as_written() -> None:
    db = chain()
    text = f"{RIGHT} q(x) <- reach({CHAIN - 5}, x)."
    assert "#keys" not in str(db.explain(text, max_rounds=CHAIN))
    with pytest.raises(errors.RoundLimitError):
        db.query(text, max_rounds=CHAIN - 1)


def test_keys_do_not_make_a_negation_depend_on_itself() -> None:
    """The keys of ``h`` would come from ``g``, which reads ``h``."""
    db = Database()
    load_set(db, "a", [(1, 2), (2, 3), (3, 4)], columns=["x", "y"])
    rules = """
    h(x) <- a(x, y), y > 2.
    g(x, y) <- a(x, y), !h(y).
    q(x) <- g(x, y), !h(x).
    """
    with whatever_it_costs():
        assert sorted(rows_of(db.query(rules))) == []
        assert sorted(rows_of(db.query(rules.replace("!h(x)", "h(x)")))) == [(3,)]


def test_heads_of_one_rule_share_their_search() -> None:
    db = orders()
    rules = "n(o, count(), sum(s)) <- line(o, s, _). q(o, c, t) <- supplier(o, 3), n(o, c, t)."
    with as_written():
        expected = sorted(rows_of(db.query(rules)))
    with whatever_it_costs():
        db = orders()
        assert sorted(rows_of(db.query(rules))) == expected
        text = str(db.explain(rules))
    (shared,) = (line for line in text.splitlines() if "added up as the rows come" in line)
    assert "n#keys1" in text and "n#1[o] = count()" in shared and "n#2[o] = sum(s)" in shared


@pytest.mark.parametrize(
    ("narrow", "wide", "values", "test"),
    [
        (pa.binary(2), pa.large_binary(), (b"ab", b"abcd"), 'v <= x"fffe"'),
        (pa.int8(), pa.int64(), (5, 1000), "v + 1 < 2000"),
        (pa.decimal128(3, 2), pa.decimal128(9, 2), (Decimal("5.00"), Decimal("5000.00")), "v + 1 < 9999.0"),
        (pa.float32(), pa.float64(), (0.5, 1e300), "v < 1e301"),
    ],
)
def test_keys_are_of_the_types_of_what_they_are_read_from(
    narrow: pa.DataType, wide: pa.DataType, values: tuple[Any, Any], test: str
) -> None:
    """The body that asks has the variable from a narrower column, which the keys do not come from."""
    small, large = values
    rules = f"kept(a, v) <- r(a, v), r(a, _). asks(v, a) <- kept(a, v), s(v, a), {test}."
    with whatever_it_costs():
        for loaded in (Database(), Workspace()):
            loaded.load("r", pa.table({"a": [1, 2], "v": pa.array([small, None], narrow)}), nulls="drop")
            loaded.load("s", pa.table({"v": pa.array([large], wide), "a": [2]}))
            if isinstance(loaded, Workspace):
                loaded.install(rules, results=["asks"])
                with loaded.transaction() as transaction:
                    transaction.insert("s", [(small, 1), (large, 1)])
                assert list(loaded["asks"]) == [(small, 1)]
            else:
                assert loaded.query(rules, head="asks").num_rows == 0
