"""``bench.windows``: rules over streams, whose answers it compares with DuckDB's."""

from __future__ import annotations

import pytest

from bench.windows import RULES, measured, report


def test_a_few_events() -> None:
    assert report(quick=True).count("events/s") == 2


def test_another_answer_is_noticed() -> None:
    rules, sql = RULES["a sum for each of 100"]
    with pytest.raises(AssertionError, match="another answer"):
        measured(rules, sql.replace("sum(q)", "sum(q + 1)"), 20_000)


def test_other_windows_are_noticed() -> None:
    rules, sql = RULES["sums of windows of 1 s, each told once when it closes"]
    with pytest.raises(AssertionError, match="windows closed"):
        measured(rules, sql.replace("sum(q)", "sum(q + 1)"), 20_000)
