"""``bench.asof``: ASOF joins behind a history, whose answers it compares with DuckDB's."""

from __future__ import annotations

import pytest

from bench.asof import RULES, measured


@pytest.mark.parametrize("rules", RULES.values(), ids=list(RULES))
def test_what_is_measured_is_right(rules: str) -> None:
    found = measured(rules, 2_000)
    assert found.rate > 0 and found.operations < 50


def test_another_answer_is_noticed() -> None:
    with pytest.raises(AssertionError, match="another answer"):
        measured(RULES["latest(u)"].replace("u <= t", "u < t, p % 2 = 0"), 1_000)
