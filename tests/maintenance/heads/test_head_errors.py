"""Heads whose rules fail on a change: the error says where and why, and nothing is half-applied.

Each case: a program that stands, a transaction that breaks one of its heads,
what the error has to say, and a transaction that is fine.  After the refusal
relations, heads and structures are as before, a later head of the program has
not moved either, and the fine transaction works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numba
import pyarrow as pa
import pytest

from lftj import errors
from lftj.values import semigroup
from lftj.values.semigroup import Semigroup
from maintenance import Transaction, Workspace
from maintenance.heads.strategies import STRATEGIES

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Change = Callable[[Transaction], None]


@numba.njit
def root(left, right):  # type: ignore[no-untyped-def]
    if left < 0 or right < 0:
        raise ValueError("a negative number has no root")
    return max(left, right)


ROOT = Semigroup("root", root)
"""One for all tests, which do not compile it anew."""


@pytest.fixture(autouse=True)
def root_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(semigroup._registered, "root", ROOT)


def tables() -> dict[str, pa.Table]:
    money = pa.decimal128(38, 2)
    return {
        "sale": pa.table({"id": [1, 2, 3], "shop": ["a", "a", "b"], "n": [10, 20, 30]}),
        "price": pa.table({"id": [1, 2, 3], "v": [2.0, 4.0, 8.0]}),
        "owner": pa.table({"shop": ["a", "b"], "name": ["ann", "bob"]}),
        "bill": pa.table({"id": [1], "v": pa.array([Decimal("1.00")], money)}),
    }


def rows_of(name: str, *rows: tuple[Any, ...]) -> pa.Table:
    schema = tables()[name].schema
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def inserting(name: str, *rows: tuple[Any, ...]) -> Change:
    return lambda tx: tx.insert(name, rows_of(name, *rows))


def erasing(name: str, *rows: tuple[Any, ...]) -> Change:
    return lambda tx: tx.erase(name, rows_of(name, *rows))


def together(*changes: Change) -> Change:
    def make(tx: Transaction) -> None:
        for change in changes:
            change(tx)

    return make


@dataclass(frozen=True)
class Refused:
    program: str
    breaking: Change
    error: type[errors.LftjError]
    says: tuple[str, ...]
    fine: Change


MOST = 2**63 - 1
HUGE = Decimal("9" * 35 + ".00")

CASES = {
    "division by zero": Refused(
        "share(i, v) <- sale(i, s, n), v = 100 / (n - 77).",
        inserting("sale", (9, "a", 77)),
        errors.EvaluationError,
        ("division by zero in 100 / (n - 77)", "n = 77", "share(i, v) <- "),
        inserting("sale", (9, "a", 78)),
    ),
    "a value beyond 64 bits": Refused(
        "twice[i] = v <- sale(i, _, n), v = n * 2.",
        inserting("sale", (9, "a", MOST)),
        errors.RangeError,
        ("n * 2", str(MOST), "twice[i] = v"),
        inserting("sale", (9, "a", 5)),
    ),
    "a sum beyond 64 bits": Refused(
        "total[s] = sum(n) <- sale(_, s, n).",
        inserting("sale", (9, "b", MOST)),
        errors.RangeError,
        ('total["b"] = sum(n)', str(MOST + 30), "int64", "total[s] = sum(n) <- "),
        together(inserting("sale", (9, "b", MOST)), erasing("sale", (3, "b", 30))),
    ),
    "a sum of decimals beyond 38 digits": Refused(
        "due[] = sum(v) <- bill(_, v).",
        inserting("bill", *((i, HUGE) for i in range(2, 13))),
        errors.RangeError,
        ("due[] = sum(v)", "does not fit decimal128(38, 2)"),
        inserting("bill", (2, HUGE)),
    ),
    "two values for a key of a head": Refused(
        "first[s] = n <- sale(_, s, n), n < 15.",
        inserting("sale", (4, "a", 11)),
        errors.FunctionalConflictError,
        ('first["a"] has two values, 10 and 11', "first[s] = n <- "),
        together(inserting("sale", (4, "a", 11)), erasing("sale", (1, "a", 10))),
    ),
    "two values from two rules": Refused(
        "v[i] = n <- sale(i, _, n), n > 15.  v[i] = n <- sale(i, _, m), n = m - 1, m < 15.",
        inserting("sale", (2, "b", 5)),
        errors.FunctionalConflictError,
        ("v[2] has two values, 4 and 20",),
        inserting("sale", (4, "b", 5)),
    ),
    "an aggregate and another rule": Refused(
        'n[s] = count() <- sale(_, s, _).  n[s] = k <- owner(s, "bob"), k = 1.',
        inserting("sale", (4, "b", 1)),
        errors.FunctionalConflictError,
        ('n["b"] has two values, 1 and 2',),
        inserting("sale", (4, "a", 1)),
    ),
    "two values in a relation that is read as a function": Refused(
        "worth(i, n) <- sale(i, s, n), owner[s] = o.",
        inserting("owner", ("a", "amy")),
        errors.FunctionalConflictError,
        ("'owner'", 'shop="a"', '"amy"', '"ann"'),
        together(inserting("owner", ("a", "amy")), erasing("owner", ("a", "ann"))),
    ),
    "a user's function that raises": Refused(
        "top[s] = root(n) <- sale(_, s, n).",
        inserting("sale", (9, "a", -4)),
        errors.AggregateError,
        ("root", 'top["a"]', "a negative number has no root"),
        inserting("sale", (9, "a", 4)),
    ),
    "NaN in a join": Refused(
        "same(i, j) <- price(i, v), price(j, v), i < j.",
        inserting("price", (4, float("nan"))),
        errors.NanError,
        ("'price'", "'v'", "NaN"),
        inserting("price", (4, 2.0)),
    ),
}


def everything(ws: Workspace) -> dict[str, list[dict[str, Any]]]:
    names = [*tables(), *ws.heads]
    return {name: sorted(ws[name].to_pylist(), key=repr) for name in names}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", list(CASES))
def test_a_refused_change_leaves_all_as_it_was(name: str, strategy: str) -> None:
    case = CASES[name]
    ws = Workspace()
    for relation, table in tables().items():
        ws.load(relation, table)
    ws.install("shops(s) <- sale(_, s, _).", strategy)
    ws.install(case.program, strategy)
    ws.install("late[] = count() <- sale(_, _, _), owner(_, _), price(_, _), bill(_, _).", strategy)
    seen: list[pa.Table] = []
    ws.subscribe("shops", seen.append)
    before, snapshot = everything(ws), ws.snapshot()
    for _ in range(2):  # and once more: the first refusal has left nothing behind
        with pytest.raises(case.error) as raised, ws.transaction() as tx:
            tx.insert("sale", rows_of("sale", (100, "new", 1)))
            case.breaking(tx)
        for part in case.says:
            assert part in str(raised.value)
        assert everything(ws) == before and not seen
        ws.verify()
        ws.check_invariants()
    with ws.transaction() as tx:
        case.fine(tx)
    ws.verify()
    ws.check_invariants()
    assert everything(ws) != before
    assert sorted(snapshot["shops"]["s"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize(
    ("program", "error", "says"),
    [
        ("t[i] = sum(s) <- sale(i, s, _).", errors.TypeClashError, "'sum' takes numbers, and 's' is of type"),
        (
            "t[i] = min(v) <- (sale(i, v, _) ; sale(i, _, v)).",
            errors.TypeClashError,
            "t.min is of type string in one",
        ),
        ("t[i] = max(w) <- sale(i, _, _).", errors.RuleError, "'w'"),
        ("t[i] = sum(n) <- sale(i, _, n), !price(n, _), !price(i, w), m = w.", errors.RuleError, "'w'"),
        ("t[i] = root(s) <- sale(i, s, _).", errors.TypeClashError, "'s'"),
        ("t(a) <- u(a).  u(a) <- t(a), !sale(a, _, _), !t(a).", errors.StratificationError, "u -> t -> u"),
        ("t[a] = count() <- u(a).  u(a) <- t[a] = _.", errors.StratificationError, "t -> u -> t"),
        ("t(a) <- sale(a, _, _), !t(a).", errors.StratificationError, "t -> t"),
    ],
)
def test_what_can_t_be_installed(program: str, error: type[errors.LftjError], says: str) -> None:
    ws = Workspace()
    for relation, table in tables().items():
        ws.load(relation, table)
    with pytest.raises(error) as raised:
        ws.install(program)
    assert says in str(raised.value) and "^" in str(raised.value)
    assert ws.heads == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", list(CASES))
def test_rules_that_fail_at_once_are_not_installed(name: str, strategy: str) -> None:
    case = CASES[name]
    ws = Workspace()
    for relation, table in tables().items():
        ws.load(relation, table)
    with ws.transaction() as tx:
        case.breaking(tx)
    with pytest.raises(case.error) as raised:
        ws.install("shops(s) <- sale(_, s, _).\n" + case.program, strategy)
    for part in case.says[:1]:
        assert part in str(raised.value)
    assert ws.heads == ()
