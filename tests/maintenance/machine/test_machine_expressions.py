"""differential: random expressions and conditions on the rows of the commit machine, beside the general way.

Of integers, decimals, doubles, texts, dates and booleans, with NULL among them: branches that are taken and
passed over, conditions that are true, false or NULL, divisions by zero, numbers that do not fit.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lftj
from lftj import errors
from lftj.values import collector
from maintenance import Workspace
from maintenance.machine import answers, machine
from support.machine_workspace import of
from support.rows import rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.EqualRowsWarning"),
    pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning"),  # without a compiler
]

COLUMNS = {
    "k": pa.int64(),
    "i": pa.int64(),
    "j": pa.int32(),
    "m": pa.decimal128(9, 2),
    "x": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "b": pa.bool_(),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "k": (0, 1, 2),
    "i": (None, 0, 1, 2, -3, 7, 7, 2**62),
    "j": (None, 0, 1, 5, -2, 3),
    "m": (None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("9999999.99")),
    "x": (None, 0.0, -0.0, 0.5, 1.5, -2.25, 1e300, 7.0),
    "s": (None, "", "a", "b", "aa"),
    "d": (None, datetime.date(2024, 2, 29), datetime.date(2026, 1, 1)),
    "b": (None, True, False),
}
NUMBERS = ("i", "j", "m", "x", "k")
OTHERS = {"s": ('"a"', '"b"', '"new"'), "d": ("2024-02-29", "2026-01-01"), "b": ("true", "false")}


class Draw:
    """Random expressions, as the rule language writes them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def number(self, depth: int = 2) -> str:
        draw = self.random
        if depth == 0 or draw.random() < 0.25:
            return draw.choice((*NUMBERS, *NUMBERS, "2", "3", "-1", "1.5", "0.25"))
        one, other = self.number(depth - 1), self.number(depth - 1)
        return draw.choice(
            (
                f"({one} {draw.choice('+-*')} {other})",
                f"({one} {draw.choice('+-*/%')} {other})",
                f"abs({one})",
                f"(-{one})",
                f"if({self.condition(depth - 1)}, {one}, {other})",
                f"coalesce({one}, {other})",
                f"nullif({one}, {other})",
                f"round({one}, 1)",
                f"sqrt(abs({one}))",
                f"({one} + length(s))",
                "year(d)",
            )
        )

    def condition(self, depth: int = 2) -> str:
        draw = self.random
        if depth and draw.random() < 0.4:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return draw.choice((f"({one}, {other})", f"({one} ; {other})"))
        name = draw.choice([*OTHERS])
        return draw.choice(
            (
                f"{self.number(depth)} {self.sign()} {self.number(depth)}",
                f"{self.number(0)} {self.sign()} {self.number(depth)}",
                f"{name} {draw.choice(('=', '!='))} {draw.choice(OTHERS[name])}",
                f"{draw.choice([*NUMBERS, *OTHERS])} is {draw.choice(('', 'not '))}null",
                f"{draw.choice(('i', 'j'))} in (1, 2, 7)",
                f"{draw.choice(('i', 'j'))} not in (1, 5)",
                f'{draw.choice(("", "!"))}contains(s, "a")',
                'upper(s) = "A"',
            )
        )

    def sign(self) -> str:
        return self.random.choice(("<", "<=", ">", ">=", "=", "!="))

    def other(self) -> str:
        name = self.random.choice([*OTHERS])
        one, other = self.random.choice((name, *OTHERS[name])), self.random.choice((name, *OTHERS[name]))
        return self.random.choice(
            (
                f"if({self.condition(1)}, {one}, {other})",
                f"coalesce({name}, {one})",
                name,
                "upper(s)",
                f'if({self.condition(1)}, s || "!", upper(s))',
            )
        )

    def rule(self) -> str:
        draw, columns = self.random, ", ".join(COLUMNS)
        value = self.number() if draw.random() < 0.7 else self.other()
        tests = ", ".join(["", *(self.condition() for _ in range(draw.choice((0, 0, 1, 2))))])
        head = draw.choice(
            (
                "h(k, v)",
                "h(k, v)",
                "h[k] = sum(v)",
                "h[k] = avg(v)",
                "h[v] = count()",
                "h[k] = max(v)",
                "h[k] = count(distinct v)",
            )
        )
        return f"{head} <- t({columns}), v = {value}{tests}."


def workspaces(rule: str, strategy: str) -> list[Workspace] | None:
    """One with the machine, which checks itself, and one without; None for a rule that is none."""
    both = [Workspace(single_changes="machine"), Workspace(single_changes="general")]
    for ws in both:
        ws.load("t", pa.schema(COLUMNS).empty_table(), nulls="keep")
        try:
            ws.install(rule, strategy)
        except (errors.TypeClashError, errors.RuleError):
            return None
    its = of(both[0])
    its._wait, its.checks = 1, True
    return both


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def outcome(ws: Workspace, change: str, rows: list[tuple[Any, ...]]) -> Any:
    try:
        with ws.transaction() as tx:
            getattr(tx, change)("t", rows)
    except errors.LftjError as error:
        return f"{type(error).__name__}: {error}", 0
    return sorted(map(repr, rows_of(tx.changes["h"]))), tx.stats.fast


@pytest.mark.in_turns
@pytest.mark.parametrize("part", range(2))
def test_random_expressions(part: int) -> None:
    programs, taken, fast = 0, 0, 0
    for seed in range(40):
        draw = Draw(1000 * part + seed)
        rule = draw.rule()
        both = workspaces(rule, draw.random.choice(("delta", "auto")))
        if both is None:
            continue
        programs += 1
        taken += "go by the machine" in str(both[0].explain_maintenance("h"))
        there: list[tuple[Any, ...]] = []
        for _ in range(25):
            change, rows = (
                "insert",
                [
                    tuple(map(draw.random.choice, VALUES.values()))
                    for _ in "12"[: draw.random.choice((1, 1, 2))]
                ],
            )
            if there and draw.random.random() < 0.35:
                change, rows = "erase", [draw.random.choice(there)]
            (one, by_machine), (other, _) = (outcome(ws, change, rows) for ws in both)
            assert one == other, (rule, change, rows)
            fast += by_machine
            if not isinstance(one, str):
                there = [row for row in there if row not in rows] + (rows if change == "insert" else [])
        both[0].verify()
    assert programs > 15 and taken > programs / 2 and fast > 6 * taken, (programs, taken, fast)


# -- what Python computes --------------------------------------------------------------------------------


CALLS: list[Any] = []
"""Values that the rules' function ``told`` was called with."""


def told(numbers: pa.Array) -> pa.Array:
    CALLS.extend(numbers.to_pylist())
    if 13 in numbers.to_pylist():
        raise ZeroDivisionError("thirteen")
    return pc.add(numbers, 100)


@pytest.fixture(scope="module")
def calls() -> list[Any]:
    lftj.function("told", told, ["int64"], "int64")
    return CALLS


def of_texts(rule: str) -> Workspace:
    ws = Workspace(single_changes="machine")
    ws.load("t", pa.schema({"a": pa.int64(), "s": pa.string()}).empty_table())
    ws.install(rule, "delta")
    its = of(ws)
    its._wait, its.checks = 1, False
    for number in range(4):
        insert(ws, (number, "first"))
    return ws


def insert(ws: Workspace, *rows: tuple[int, str]) -> int:
    with ws.transaction() as tx:
        tx.insert("t", list(rows))
    return tx.stats.fast


def test_python_computes_each_value_once(calls: list[Any]) -> None:
    ws = of_texts("x(s, v) <- t(a, s), v = told(a).")
    said = "single changes go by the machine; once for each value Python computes told(a)"
    assert said in str(ws.explain_maintenance("x"))
    calls.clear()
    n_calls = 0
    for number in range(50):
        assert insert(ws, (20 + number % 7, f"text {number}"))
        n_calls = len(calls) if number == 6 else n_calls
    assert len(calls) == n_calls and set(calls) == set(range(20, 27))
    assert ws["x"].count == 54
    for number in range(10):  # a reader came between
        assert insert(ws, (20 + number % 7, f"another {number}"))
    assert len(calls) == n_calls
    ws.verify()


def test_a_value_that_python_refuses_is_told_as_the_general_way_does(calls: list[Any]) -> None:
    ws = of_texts("x(a, v) <- t(a, _), v = told(a).")
    before = sorted(ws["t"])
    with pytest.raises(errors.EvaluationError, match="thirteen"):
        insert(ws, (50, "a"), (13, "a"))
    assert sorted(ws["t"]) == before
    assert insert(ws, (51, "a")) or insert(ws, (52, "a"))
    ws.verify()


def test_many_values_of_one_transaction_go_the_general_way(calls: list[Any]) -> None:
    ws = of_texts("x(a, v) <- t(a, _), v = told(a).")
    assert not insert(ws, *((number, "a") for number in range(100, 150)))
    ws.verify()


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    monkeypatch.setattr(answers, "MOST_KNOWN", 64)
    ws = of_texts("x(a, v) <- t(a, _), v = told(a).")
    for number in range(20, 320):
        insert(ws, (number, "a"))
    program = of(ws)._program
    assert program is not None
    (known,) = program._dictionaries.answers
    assert known._record.mask < 128 and known._n_known <= 64
    assert ws["x"].count == 304
    ws.verify()


def test_codes_that_were_given_back_are_in_no_answer() -> None:
    """Texts that nobody has any more are forgotten, and their codes mean others, while answers are kept."""
    ws = of_texts("x(a, v) <- t(a, s), v = upper(s).")
    with mock.patch.multiple(collector, LEAST_ADDED=1, LEAST=1 << 10, WALKED_PER_ADDED=1000):
        for number in range(200):
            row = (7, f"text {number}")
            insert(ws, row)
            with ws.transaction() as tx:
                tx.erase("t", [row])
            if number % 10 == 0:
                assert not [value for _, value in ws["x"] if value.startswith("TEXT")]
                ws.domains.collector.sweep()
        insert(ws, (8, "another"), (9, "text 3"))
    assert sorted(ws["x"])[-2:] == [(8, "ANOTHER"), (9, "TEXT 3")]
    ws.verify()
