"""oracle: which commits stand, against Python's integers, and that it is the same whatever the strategy.

A rule fails where an expression does for an assignment that satisfies its body, or the exact sum of a group
does not fit its type; rows that join with nothing fail nothing, nor do assignments that come and go within a
commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lftj
from lftj import errors
from lftj.rewriting import one_off
from maintenance import Workspace
from maintenance.strategies.auto import auto_body, view_choice
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Rows = Mapping[str, set[tuple[int, ...]]]
Head = dict[tuple[int, ...], Any]

SHAPE = {"R": ("a", "b", "e"), "S": ("a", "c"), "T": ("a", "d")}
STRATEGIES = ("recompute", "delta", "trace", "views", "auto")
LARGE = 2**62
ATOMS = "R(a, b, e), S(a, c), T(a, d)"


class Fails(Exception):
    """What a rule computes does not fit."""


def whole(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise Fails
    return number


def digits(number: int) -> int:
    if abs(number) >= 10**38:
        raise Fails
    return number


def quotient(dividend: int, divisor: int) -> int:
    if divisor == 0:
        raise Fails
    return whole(int(Fraction(dividend, divisor)))


@dataclass(frozen=True)
class Case:
    """``value``: of an assignment (b, e, c, d), None where the body has it not; ``of``: a group's."""

    rule: str
    value: Callable[[int, int, int, int], int | None]
    of: Callable[[list[int]], Any] = lambda values: whole(sum(values))
    grouped: bool = False


CASES = [
    Case(f"h[] = sum(v) <- {ATOMS}, v = b * e * c.", lambda b, e, c, d: whole(whole(b * e) * c)),
    Case(
        f"h[a] = sum(v) <- {ATOMS}, v = b * c - d.",
        lambda b, e, c, d: whole(whole(b * c) - d),
        grouped=True,
    ),
    Case(
        f"h[] = sum(v) <- {ATOMS}, v = (b + c) * (d - e).",
        lambda b, e, c, d: whole(whole(b + c) * whole(d - e)),
    ),
    Case(f"h[] = count() <- {ATOMS}, v = b * e.", lambda b, e, c, d: whole(b * e), len),
    Case(f"h[] = sum(b) <- {ATOMS}.", lambda b, e, c, d: b),
    Case(
        f"h[a] = avg(b) <- {ATOMS}, b * e > c.",
        lambda b, e, c, d: b if whole(b * e) > c else None,
        lambda values: float(Fraction(sum(values), len(values))),
        True,
    ),
    Case(f"h[] = max(v) <- {ATOMS}, v = b * c.", lambda b, e, c, d: whole(b * c), max),
    Case(f"h[] = sum(v) <- {ATOMS}, v = div(b, e) * c.", lambda b, e, c, d: whole(quotient(b, e) * c)),
    Case(
        f'h[] = sum(v) <- {ATOMS}, v = cast(b, "decimal(38, 0)") * e * c * d.',
        lambda b, e, c, d: digits(digits(digits(b * e) * c) * d),
        lambda values: digits(sum(values)),
    ),
    Case(
        "h[] = sum(v) <- R(a, b, e), S(_, c), b - e > c, v = b * e.",
        lambda b, e, c, d: whole(b * e) if whole(b - e) > c else None,
    ),
]


def expected(case: Case, rows: Rows) -> Head:
    """The head.  Raises Fails."""
    values: dict[tuple[int, ...], list[int]] = {}
    is_range = "T(" not in case.rule
    for a, b, e in rows["R"]:
        others = [[y for x, y in rows[name] if x == a] for name in "ST"]
        if is_range:
            others = [[y for _, y in rows["S"]], [0]]
        for c, d in product(*others):
            value = case.value(b, e, c, d)
            if value is not None:
                values.setdefault((a,) if case.grouped else (), []).append(value)
    return {key: case.of(some) for key, some in values.items()}


def dense() -> dict[str, set[tuple[int, ...]]]:
    """Rows of which each meets many, so that views gain."""
    rows = {name: {(a, 3 * a + i) for a in range(4) for i in range(1, 10)} for name in "ST"}
    return {"R": {(a, 3 * a + i, i) for a in range(4) for i in range(1, 10)}, **rows}


def changed(random: Random, rows: Rows) -> dict[str, set[tuple[int, ...]]]:
    """The rows after some changes, of which few are harmless: 7 and 8 are keys that may join with nothing."""
    amounts = [LARGE, LARGE - 1, -LARGE, 2**31, -(2**33), 3, 1, 0]
    following = {name: set(rows[name]) for name in SHAPE}
    for _ in range(random.randrange(1, 5)):
        name, key = random.choice("RRST"), random.choice((1, 7, 7, 8))
        row = (key, *(random.choice(amounts[3:] if name != "R" else amounts) for _ in SHAPE[name][1:]))
        following[name] ^= {row}
    if random.random() < 0.5:  # what is large goes again
        gone = {row for row in following["R"] if max(map(abs, row)) >= 2**31}
        following["R"] -= set(random.sample(sorted(gone), len(gone) // 2 + len(gone) % 2))
    return following


def signed(before: Rows, after: Rows) -> dict[str, list[tuple[int, ...]]]:
    return {
        name: [(*row, 1 if row in after[name] else -1) for row in sorted(before[name] ^ after[name])]
        for name in SHAPE
    }


def commit(ws: Workspace, steps: list[Rows]) -> str | None:
    """What refuses transactions from the first rows over the others; None where they stand."""
    changes = [signed(before, after) for before, after in pairwise(steps)]
    try:
        if len(changes) > 1:
            table = {}
            for name in SHAPE:
                rows = [(*row, txn) for txn, change in enumerate(changes) for row in change[name]]
                columns = (*SHAPE[name], "weight", "txn")
                if rows:
                    table[name] = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
            if table:
                ws.apply_many(table)
            return None
        with ws.transaction() as tx:
            for name, some in changes[0].items():
                tx.insert(name, [row[:-1] for row in some if row[-1] > 0])
                tx.erase(name, [row[:-1] for row in some if row[-1] < 0])
    except (errors.RangeError, errors.EvaluationError) as error:
        return str(error)
    return None


def head_of(ws: Workspace) -> Head:
    return {tuple(row[:-1]): row[-1] for row in rows_of(ws["h"].table)}


@pytest.fixture(autouse=True)
def views_are_chosen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (auto_body, view_choice):
        monkeypatch.setattr(module, "LEAST_BUDGET", 500)
    monkeypatch.setattr(view_choice, "STEP_OPERATIONS", 0)
    monkeypatch.setattr(one_off, "LEAST_LISTED", 1.0)


@pytest.mark.in_turns
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.partition("<-")[0] + case.rule[-20:])
def test_oracle_the_same_commits_stand(case: Case, seed: int) -> None:
    random = Random(seed)
    rows: Rows = dense()
    workspaces = {}
    for strategy in STRATEGIES:
        ws = workspaces[strategy] = Workspace()
        for name, columns in SHAPE.items():
            ws.load(name, sorted(rows[name]), columns=list(columns))
        ws.install(case.rule, strategy)
    for weight in (1, -1) * 3:  # so that it goes over to views where it gains
        with workspaces["auto"].transaction() as tx:
            (tx.insert if weight > 0 else tx.erase)("S", [(1, 99)])
    head = expected(case, rows)
    db = lftj.Database()
    for _ in range(3):
        steps = [rows]
        for _ in range(random.choice((1, 1, 2))):
            steps.append(changed(random, steps[-1]))
        try:
            after: Head | None = [expected(case, step) for step in steps[1:]][-1]
        except Fails:
            after = None
        refused = {strategy: commit(ws, steps) for strategy, ws in workspaces.items()}
        if after is not None:
            assert not any(refused.values()), refused
            rows, head = steps[-1], after
        for strategy, ws in workspaces.items():
            error = refused[strategy]
            assert (error is None) == (after is not None), strategy
            assert error is None or "h[" in error
            assert head_of(ws) == head, strategy
            ws.check_invariants()
        for name, columns in SHAPE.items():
            db.load(name, sorted(steps[-1][name]), columns=list(columns))
        try:
            once: Head | None = expected(case, steps[-1])
        except Fails:
            once = None
        try:
            found = {tuple(row[:-1]): row[-1] for row in rows_of(db.query(case.rule))}
        except (errors.RangeError, errors.EvaluationError):
            assert once is None
        else:
            assert found == once
