"""differential: doubles that the commit machine computes, compares and adds up, beside the general way.

Sums are exact, so they are the same whatever came and went: those here are of doubles of all sizes.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.records import ROOM
from maintenance.machine.structures import Sizes
from support.machine_workspace import of
from support.rows import rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.EqualRowsWarning"),
    pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning"),  # without a compiler
]

RELATIONS = {
    "q": {"k": pa.int64(), "x": pa.float64()},
    "p": {"k": pa.int64(), "y": pa.float64()},
    "d": {"k": pa.int64(), "m": pa.decimal128(9, 2)},
}
EVERYDAY = (0.25, 0.1, 0.2, -1.5, 3.0, 0.0, -0.0, 1e6, 0.3)
OF_ALL_SIZES = (1e308, -1e308, 5e-324, 2.0**53, 1.0, 2.0**-1022, -(2.0**60), 1e-17, 0.1, 2.0**700)
SPECIAL = (math.nan, math.inf, -math.inf, 1.0, 0.0)

COMPUTED = (
    "x(k, v) <- q(k, x), p(k, y), v = x * y + 0.5.",
    "x(k, v) <- q(k, x), v = (x - 1) * k / 4.",
    "x(k, v) <- q(k, x), p(k, y), v = x / y.",
    "x(k, v) <- q(k, _), p(k, _), v = k / 3.",
    "x(k, v) <- d(k, m), q(k, x), v = m * x - m.",
    "x(k, v) <- d(k, m), v = m / 4.",
    "x(k) <- q(k, x), p(k, y), x < y.",
    "x(k) <- q(k, x), p(k, y), v = x * y, v >= 0.3, abs(x - y) > 1.",
    "x(k, x) <- q(k, x), p(k, y), w = -y, x > w, x != 0.3.",
    'x(k, v) <- q(k, x), w = cast(k, "float64"), v = w * 0.1 + abs(x), abs(x) < w.',
    "x[k] = min(v) <- q(k, x), p(k, y), v = x * y. y[k] = count() <- q(k, x), x * 2 = 3.",
    "y(k, v) <- q(k, x), v = x * 2. x(k) <- y(k, v), p(k, w), v > w.",
)
ADDED_UP = (
    "x[k] = sum(x) <- q(k, x).",
    "x[] = sum(x) <- q(_, x). y[k] = avg(x) <- q(k, x).",
    "x[k] = sum(v) <- q(k, x), p(k, y), v = x * y.",
    "x(k, sum(v), count(), avg(x), max(v)) <- q(k, x), v = x * k - 1.",
    "x(avg(v), sum(x)) <- q(k, x), p(k, y), v = x - y.",
    "x[k] = sum(x) <- q(k, x). y[] = sum(s) <- x[_] = s. z[] = max(s) <- x[_] = s.",
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def both_of(rules: str, strategy: str = "delta", sizes: Sizes | None = None) -> list[Workspace]:
    """A workspace with the machine, which checks itself, and one without."""
    both = [Workspace(single_changes="machine"), Workspace(single_changes="general")]
    for ws in both:
        for name, columns in RELATIONS.items():
            ws.load(name, pa.schema(columns).empty_table())
        ws.install(rules, strategy)
    its = of(both[0])
    its._wait, its.checks, its.sizes = 1, True, sizes or its.sizes
    return both


def outcome(ws: Workspace, change: str, name: str, rows: list[tuple[Any, ...]]) -> Any:
    """What becomes of a transaction: changes of heads, or an error; and whether it went by the machine."""
    try:
        with ws.transaction() as tx:
            getattr(tx, change)(name, rows)
    except errors.LftjError as error:
        return f"{type(error).__name__}: {error}", 0
    return {head: sorted(map(repr, rows_of(tx.changes[head]))) for head in ws.heads}, tx.stats.fast


def in_step(both: list[Workspace], values: tuple[float, ...], seed: int, n: int = 120) -> int:
    """So many random transactions of both; how many of them went by the machine."""
    draw, fast = Random(seed), 0
    for _ in range(n):
        name = draw.choice(list(RELATIONS) if len(values) > 5 else ["q", "p"])
        rows = []
        for _ in range(draw.choice((1, 1, 1, 4))):
            value: Any = draw.choice(values)
            if name == "d":
                value = Decimal(draw.randrange(-300, 300)) / 100
            rows.append((draw.randrange(3), value))
        change = draw.choice(("insert", "insert", "erase"))
        (one, by_machine), (other, _) = (outcome(ws, change, name, rows) for ws in both)
        assert one == other, (change, name, rows)
        fast += by_machine
    both[0].verify()
    both[0].check_invariants()
    return fast


@pytest.mark.in_turns
@pytest.mark.parametrize("sizes", [None, Sizes(rows=200, few=3, many=9, spilled=2)])
@pytest.mark.parametrize("rules", [*COMPUTED, *ADDED_UP])
def test_doubles_are_as_the_general_way_has_them(rules: str, sizes: Sizes | None) -> None:
    both = both_of(rules, sizes=sizes)
    assert in_step(both, EVERYDAY, seed=len(rules)) > (60 if sizes else 110)
    how = "".join(str(both[0].explain_maintenance(head)) for head in both[0].heads)
    assert how.count("single changes go by the machine") == len(list(both[0].heads)), how


def test_whole_numbers_that_are_no_doubles_go_the_general_way() -> None:
    """Their quotient is rounded once; beside a float each is rounded first."""
    both = both_of("x(k, v) <- q(k, x), v = k / 3. y(k) <- q(k, x), k < x.")
    for number, key in enumerate((1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63), 5)):
        (one, fast), (other, _) = (outcome(ws, "insert", "q", [(key, 2.0**62)]) for ws in both)
        assert one == other and (bool(fast) == (abs(key) <= 2**53) or number == 0)


@pytest.mark.in_turns
@pytest.mark.parametrize("rules", [*COMPUTED[::2], *ADDED_UP])
@pytest.mark.parametrize("values", [OF_ALL_SIZES, SPECIAL])
def test_doubles_of_all_sizes_and_none(rules: str, values: tuple[float, ...]) -> None:
    """What is no number, or too large for one, goes the general way; nothing is lost by those that do."""
    in_step(both_of(rules, strategy="auto"), values, seed=7)


def test_sums_are_exact_and_rounded_once() -> None:
    ws, _ = both_of("x[k] = sum(x) <- q(k, x). y[k] = avg(x) <- q(k, x).")
    draw, there, fast = Random(3), set[float](), 0
    for _ in range(300):
        value = draw.choice(OF_ALL_SIZES[2:]) * draw.uniform(-2, 2)
        erased = draw.choice(sorted(there)) if there and draw.random() < 0.4 else None
        with ws.transaction() as tx:
            if erased is None:
                tx.insert("q", [(1, value)])
                there.add(value)
            else:
                tx.erase("q", [(1, erased)])
                there.remove(erased)
        exact = sum(map(Fraction, there), Fraction(0))
        came = {head: [row for row in rows_of(tx.changes[head]) if row[-1] > 0] for head in "xy"}
        for head, expected in (("x", exact), ("y", exact / max(len(there), 1))):
            for _, found, _ in came[head]:
                assert found == float(expected)
        fast += tx.stats.fast
    assert fast > 290
    ws.verify()


def test_sums_that_take_all_digits_are_moved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 66 limbs, comes and goes: where the room is used up versions are folded."""
    ws, _ = both_of("x[k] = sum(x) <- q(k, x).")
    of(ws).checks = False
    seen, run = Counter[int](), machine.Machine._run

    def noted(*given: Any) -> int:
        status = run(*given)
        seen[status] += 1
        return status

    monkeypatch.setattr(machine.Machine, "_run", noted)
    fast = 0
    for change in ("insert", "erase", "insert"):
        for key in range(0, 240, 2):
            with ws.transaction() as tx:
                rows = [(number, value) for number in (key, key + 1) for value in (1.5e308, 5e-324)]
                getattr(tx, change)("q", rows)
            fast += tx.stats.fast
    assert fast > 350 and seen[ROOM] > 0
    assert {value for _, value in ws["x"]} == {1.5e308} and ws["x"].count == 240
    ws.verify()
    ws.check_invariants()


def test_a_sum_that_is_no_number_compares_as_none() -> None:
    """What joins it goes by the machine, but for the rows that read it."""
    both = both_of("x[k] = sum(x) <- q(k, x). y(k, v) <- x[k] = s, p(k, v), w = v * 2, w < s.")
    for value in (math.inf, -math.inf):
        outcomes = [outcome(ws, "insert", "q", [(1, value), (2, 9.0)])[0] for ws in both]
        assert outcomes[0] == outcomes[1]
    for number in range(12):
        (one, fast), (other, _) = (outcome(ws, "insert", "p", [(number % 3, number / 4)]) for ws in both)
        assert one == other
    assert fast
    both[0].verify()


def test_a_group_keeps_one_that_is_no_number() -> None:
    """All of the head goes the general way then, and by the machine again when that has gone."""
    both = both_of("x[k] = sum(x) <- q(k, x).")
    for change, row in (
        ("insert", (1, 2.5)),
        ("insert", (1, math.inf)),
        ("insert", (1, 1.0)),
        ("insert", (2, 4.0)),
        ("erase", (1, math.inf)),
        ("insert", (1, 0.25)),
        ("insert", (1, 0.5)),
    ):
        one, other = (outcome(ws, change, "q", [row])[0] for ws in both)
        assert one == other
    for number in range(8):
        (one, fast), (other, _) = (outcome(ws, "insert", "q", [(1, number / 8)]) for ws in both)
        assert one == other
    assert fast == 1
    both[0].verify()
