"""Alternatives that differ in tests only: one body is kept for them, and the tuples are those of Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from lftj.language.syntax import Call
from lftj.rewriting.merged_tests import merged_tests
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES

Row = tuple[int, str, Decimal]

ALTERNATIVES: dict[str, Callable[[Row], bool]] = {
    '(n = 1, s in ("a", "b") ; n = 2, s = "c")': lambda r: (
        (r[0] == 1 and r[1] in "ab") or (r[0] == 2 and r[1] == "c")
    ),
    "(n in (1, 3), d < 1.5 ; n in (3, 2), d >= 0.5 ; n = 0)": lambda r: (
        (r[0] in (1, 3) and r[2] < Decimal("1.5")) or (r[0] in (3, 2) and r[2] >= Decimal("0.5")) or r[0] == 0
    ),
    '(s like "a%", n < 2 ; s not like "a%", d = 1)': lambda r: (
        (r[1].startswith("a") and r[0] < 2) or (not r[1].startswith("a") and r[2] == 1)
    ),
    "(n > 1 ; n > 2, d < 1)": lambda r: r[0] > 1,
    '(s != "a", n != 2 ; s != "a")': lambda r: r[1] != "a",
}


def _rows(generator: random.Random, n: int) -> set[Row]:
    return {
        (generator.randrange(5), generator.choice("abc"), Decimal(generator.randrange(4)) / 2)
        for _ in range(n)
    }


def _table(rows: set[Row]) -> pa.Table:
    n, s, d = zip(*rows, strict=True) if rows else ((), (), ())
    types = pa.int64(), pa.string(), pa.decimal128(6, 2)
    return pa.table({k: pa.array(v, t) for k, v, t in zip("nsd", (n, s, d), types, strict=True)})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("alternatives", ALTERNATIVES)
def test_what_is_kept_is_what_any_of_them_gives(alternatives: str, strategy: str) -> None:
    """A set, a sum and a count: a row that two alternatives give counts once."""
    holds = ALTERNATIVES[alternatives]
    generator = random.Random(f"{alternatives} {strategy}")
    workspace = Workspace()
    here = _rows(generator, 20)
    pairs = {(n, m) for n in range(5) for m in range(3) if generator.random() < 0.6}
    workspace.load("t", _table(here))
    workspace.load("p", sorted(pairs), columns=["n", "m"])
    workspace.install(
        f"found(s, m) <- t(n, s, d), p(n, m), {alternatives}."
        f"total(m, amount: sum(d), n: count()) <- t(n, s, d), p(n, m), {alternatives}.",
        strategy,
    )
    for _ in range(6):
        expected = [(r, m) for r in here for n, m in pairs if n == r[0] and holds(r)]
        assert set(zip(*workspace["found"].to_arrow().to_pydict().values(), strict=True)) == {
            (r[1], m) for r, m in expected
        }
        amounts: Counter[int] = Counter()
        for r, m in expected:
            amounts[m] += r[2]  # type: ignore[assignment]
        counts = Counter(m for _, m in expected)
        totals = zip(*workspace["total"].to_arrow().to_pydict().values(), strict=True)
        assert set(totals) == {(m, amounts[m], counts[m]) for m in counts}
        going, coming = set(generator.sample(sorted(here), len(here) // 3)), _rows(generator, 6)
        with workspace.transaction() as tx:
            tx.erase("t", _table(going))
            tx.insert("t", _table(coming))
        here = (here - going) | coming


def _bodies(rule: str, nullable: bool = False):  # type: ignore[no-untyped-def]
    workspace = Workspace()
    table = pa.table({"n": pa.array([1, None] if nullable else [1, 2], pa.int64()), "s": ["a", "b"]})
    workspace.load("t", table, nulls="keep" if nullable else "refuse")
    workspace.install(rule)
    (head,) = workspace._state.heads.values()
    return head.program.as_written.rules_of(head.name)[0][0].bodies


def test_constants_of_all_alternatives_bound_the_search() -> None:
    (body,) = merged_tests(_bodies('h(s) <- t(n, s), (n = 1, s = "a" ; n in (2, 3), s = "b").'))
    calls = [test.left for test in body.comparisons]
    assert all(isinstance(call, Call) for call in calls)
    names = [call.function for call in calls if isinstance(call, Call)]
    assert names == ["in", "in", "or"]


@pytest.mark.parametrize(
    "rule",
    [
        "h(s) <- t(n, s), (n = 1 ; t(1, s)).",  # another atom
        "h(s, v) <- t(n, s), (n = 1, v = 2 ; n = 2, v = 3).",  # another assignment
        "h(s) <- t(n, s), (n != 0, 10 / n > 2.0 ; n = 1).",  # one that may fail
        "h(s) <- t(n, s), (n is null ; n = 1).",
    ],
)
def test_other_alternatives_stay(rule: str) -> None:
    assert len(merged_tests(_bodies(rule, nullable="null" in rule))) == 2
