"""``make fuzz`` itself: cases are the same everywhere, scripts give them back, and what is wrong is found."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import lftj
from fuzz import draw_program, once
from fuzz.case import Case, Commit, Table, text
from fuzz.difference import Difference
from fuzz.draw import draw
from fuzz.expected import SecondRow, after, beginning, whole_rows
from fuzz.minimise import minimise
from fuzz.outcome import outcome
from fuzz.play import play
from fuzz.scripts import read, script
from support.kinds import EXTREME
from support.reference import Row
from support.rules import Rule, atom, head

EDGES: tuple[Row, ...] = tuple((a, b) for a in range(6) for b in range(6) if a != b)
CASE = Case(
    "once",
    (Table("e", ("int64", "int64"), EDGES), Table("f", ("int64",), ((1,),))),
    (Rule((head("h", "a", "c"),), (atom("e", "a", "b"), atom("e", "b", "c"), atom("f", "b"))),),
)


@pytest.mark.parametrize("number", range(30))
def test_a_case_is_its_number_and_its_script_gives_it_back(number: int, tmp_path: Path) -> None:
    case = draw(7, number)
    assert text(draw(7, number)) == text(case)
    path = tmp_path / "case.py"
    path.write_text(script(case, 'what was found, with """ and \\'), encoding="utf-8")
    assert text(read(path)) == text(case)


def test_what_is_computed_from_extreme_floats_may_be_nan() -> None:
    """So no later rule reads it: a column that one joins has no NaN (NanError)."""
    body = draw_program.Body(scope={"x": EXTREME})
    drawn = [draw_program.aggregate(random.Random(seed), body) for seed in range(200)]
    assert {call.function for call, kind in drawn if kind is not EXTREME} == {"count"}
    assert {"avg", "sum"} <= {call.function for call, _ in drawn}


def test_changes_of_a_set_and_of_a_bag() -> None:
    tables = (Table("s", ("int64",), ((1,),)), Table("b", ("int64",), ((1,), (1,)), bag=True))
    case = Case("kept", tables, ())
    staged = (("s", (1,), -1), ("s", (1,), 1), ("s", (2,), 3), ("b", (1,), -3), ("b", (2,), 2))
    result = after(case, beginning(case), staged)
    assert result == {"s": {(1,): 1, (2,): 1}, "b": {(2,): 2}}


def test_an_upsert_is_a_row_that_goes_and_one_that_comes() -> None:
    case = Case("kept", (Table("k", ("int64", "int64"), ((1, 7), (2, 8)), key=(1,)),), ())
    before = beginning(case)
    staged = (
        ("k", (5, 7), "upsert"),
        ("k", (0, 8), "erase_keys"),
        ("k", (3, 9), 2),
        ("k", (4, 6), "erase_keys"),
    )
    now = after(case, before, staged)
    assert now == {"k": {(5, 7): 1, (3, 9): 1}}
    assert after(case, before, whole_rows(before, now)) == now
    with pytest.raises(SecondRow):
        after(case, now, (("k", (6, 7), 1),))


def test_rows_that_the_engine_loses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(CASE)
    monkeypatch.setattr(lftj.Database, "count", lambda *_, **__: 0)
    with pytest.raises(Difference, match="count: 0, not 25"):
        play(CASE)


def test_an_error_that_is_none_of_ours_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise IndexError("from inside")

    monkeypatch.setattr(lftj.Database, "trace", fails)
    found = outcome(CASE)
    assert found is not None and "IndexError" in found.sign


def test_the_end_of_the_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import signal

    monkeypatch.setattr(once, "loaded", lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
    found = outcome(CASE)
    assert found is not None and found.sign == "once: SIGSEGV"


def test_a_case_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setattr(once, "loaded", lambda *_: time.sleep(1000))
    found = outcome(CASE, seconds=0.2)
    assert found is not None and found.sign == "once: stuck"


def test_a_find_is_made_smaller() -> None:
    """Of 30 edges, three atoms and two transactions what the find needs is left."""
    steps = (Commit((("e", (1, 1), 1), ("e", (2, 2), 1))), Commit((("f", (2,), 1),)))

    def finds(case: Case) -> bool:
        return any((1, 2) in table.rows for table in case.tables if isinstance(table, Table)) and any(
            ("e", (2, 2), 1) in step.staged for step in case.steps if isinstance(step, Commit)
        )

    smaller = minimise(replace(CASE, steps=steps), finds, seconds=20)
    assert smaller.steps == (Commit((("e", (2, 2), 1),)),)
    assert [table.rows for table in smaller.tables if isinstance(table, Table)] == [((1, 2),)]
    assert len(smaller.program[0].body) == 1
