"""Recursive heads that are not kept and functions of a user are refused at once, with what to do instead."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lftj
from lftj.errors import FunctionError, RecursionNotSupportedError, RuleError
from spark_bridge.places.executor_state import executor_program
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.read_columns import ReadColumns

EDGE = (("edge", pa.schema([("a", pa.int64()), ("b", pa.int64())])),)
HALVES = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), path(b, c)."


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (HALVES, None),
        (f"{HALVES} far(a) <- path(a, _), !edge(a, _).", "far"),
        (
            "odd(a, b) <- edge(a, b). even(a, c) <- odd(a, b), edge(b, c). odd(a, c) <- even(c, a).",
            "odd",
        ),
    ],
)
def test_what_depends_on_a_recursive_head_without_a_column_that_stays_is_not_kept(
    text: str, head: str | None
) -> None:
    program = ProgramText(text, head, EDGE)
    with pytest.raises(RecursionNotSupportedError) as caught:
        executor_program(ReadProgram(program, ReadColumns({}), "refuse", {}))
    assert "depends on itself, and no column of it stays the same in each rule" in str(caught.value)
    assert "Keep it with where='driver', or compute it anew by join" in str(caught.value)


def test_what_does_not_need_it_is_not() -> None:
    (plan,) = ProgramText(f"{HALVES} two(a, c) <- edge(a, b), edge(b, c).", "two", EDGE).plans()
    assert plan.name == "two"


def test_windows_are_refused_with_what_to_do_instead() -> None:
    program = ProgramText("best(a, r) <- edge(a, b), r = rank(by: b, per: a).", None, EDGE)
    with pytest.raises(
        RuleError, match="'rank' reads rows beside each, which cells don't have: use Spark's own"
    ):
        program.plans()


def test_bags_are_refused_with_what_to_do_instead() -> None:
    program = ProgramText("bag starts(a) <- edge(a, _). n[a] = count() <- starts(a).", "n", EDGE)
    with pytest.raises(RuleError, match="'starts' is a bag, and what Spark keeps are sets: derive its count"):
        program.plans()


def test_functions_of_a_user_are_not_there() -> None:
    lftj.function("refused_in_spark", lambda a: a, ["int64"], "int64")
    program = ProgramText("near(m) <- edge(a, b), m = 1 + refused_in_spark(abs(a)).", None, EDGE)
    with pytest.raises(FunctionError) as caught:
        program.plans()
    assert "'refused_in_spark' is a function of your own, which Spark's executors don't have" in str(
        caught.value
    )


def test_a_row_over_nothing_is_not_there() -> None:
    program = ProgramText("n[] = count() default 0 <- edge(a, a).", None, EDGE)
    with pytest.raises(
        RuleError, match="in Spark a head over nothing has no row: leave the default out"
    ) as caught:
        program.plans()
    assert "#" not in str(caught.value)


def test_a_body_without_atoms_is_not_there() -> None:
    program = ProgramText("h(v) <- (v = 1 ; edge(v, _)).", None, EDGE)
    with pytest.raises(RuleError, match="in Spark a body needs at least one positive atom") as caught:
        program.plans()
    assert "#" not in str(caught.value)
