"""``bench.windows`` and ``bench.month``: rules over streams, whose answers are compared with others'."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import month
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


def test_a_month_of_few_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = month.month(30_000, tmp_path / "right")
    assert len(days) > 1 and days[-1].closed > days[0].closed > 0
    monkeypatch.setattr(month, "RULES", month.RULES.replace("tumble(t, 1h)", "tumble(t, 1h), q > 1"))
    with pytest.raises(AssertionError, match="sums of hours"):
        month.month(30_000, tmp_path / "wrong")
