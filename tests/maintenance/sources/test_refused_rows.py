"""laws: of changes that are refused together exactly so much is left out that the others are accepted."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from lftj.errors import ConflictError, KeyConflictError, LftjError
from maintenance.sources.refused_rows import of_units, refused_units


def drawn(chosen: random.Random) -> tuple[dict[str, pa.Table], dict[str, np.ndarray]]:
    """Rows of two relations, up to three of a message."""
    changes, numbers = {}, {}
    for name in ("a", "b"):
        its = sorted(chosen.choices(range(40), k=chosen.randrange(40)))
        changes[name] = pa.table({"v": [chosen.randrange(30) for _ in its]})
        numbers[name] = np.array(its, np.int64)
    return changes, numbers


def test_against_one_by_one() -> None:
    for seed in range(60):
        chosen = random.Random(seed)
        changes, numbers = drawn(chosen)
        bad, tries = set(chosen.sample(range(30), chosen.choice([0, 1, 1, 4, 30]))), 0

        def attempt(some: Mapping[str, pa.Table], bad: set[int] = bad) -> LftjError | None:
            """Some values are bad, and none may be there three times: the last is one too many."""
            nonlocal tries
            tries += 1
            values = [value for rows in some.values() for value in rows["v"].to_pylist()]
            is_bad = bad & set(values) or any(values.count(value) > 2 for value in values)
            return KeyConflictError("no") if is_bad else None

        taken: list[tuple[str, int]] = []
        expected: list[tuple[str, int]] = []
        units = sorted({(int(n), name) for name in changes for n in numbers[name]})
        for number, name in units:
            refused = attempt(of_units(changes, numbers, [*taken, (name, number)])) is not None
            (expected if refused else taken).append((name, number))
        tries = 0
        found = [unit for unit, _ in refused_units(changes, numbers, attempt)]
        assert found == expected
        assert tries <= 1 + 2 * len(found) * (1 + math.ceil(math.log2(max(2, len(units)))))


def test_of_errors_that_are_of_no_row_the_first_is_raised() -> None:
    changes, numbers = {"a": pa.table({"v": [1, 2]})}, {"a": np.arange(2)}
    with pytest.raises(ConflictError):
        list(refused_units(changes, numbers, lambda some: ConflictError("another")))
