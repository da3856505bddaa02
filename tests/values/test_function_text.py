"""laws: digests tell functions apart by what they say, in every process."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numba
import pytest

from lftj.values.function_text import digest_of
from support.paths import ROOT, child_environment

OFFSET = 3


def helped(x: int) -> int:
    return helper(x) + OFFSET


def helper(x: int) -> int:
    return 0 if x in {"a", "b", "c"} else x


def nested(x: int) -> list[int]:
    return [helper(y) for y in range(x)]


def again(x: int) -> int:
    return again(x - 1) if x else 0


def with_offset(offset: int) -> Callable[[int], int]:
    return lambda x: x + offset


def with_default(offset: int) -> Callable[[int], int]:
    def function(x: int, by: int = offset) -> int:
        return x + by

    return function


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x + 1, lambda x: x - 1),
        (lambda x: x in {1, 2}, lambda x: x in {1, 3}),
        (lambda x: x.real, lambda x: x.imag),
        (lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x]),
        (with_offset(1), with_offset(2)),
        (with_default(1), with_default(2)),
        (numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)),
    ],
)
def test_another_text_is_another_function(first: Any, second: Any) -> None:
    assert digest_of(first) != digest_of(second)
    assert digest_of(first) == digest_of(first)


def test_the_same_text_is_the_same() -> None:
    assert digest_of(with_offset(1)) == digest_of(with_offset(1)) != digest_of(with_offset(1), "int64")
    assert digest_of(again) == digest_of(again)
    assert digest_of(functools.partial(helped, 1)) == digest_of(
        functools.partial(helped, 2)
    )  # not looked into


def test_what_a_function_uses_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of(helped)
    monkeypatch.setitem(globals(), "OFFSET", 4)
    assert digest_of(helped) != before
    monkeypatch.setitem(globals(), "OFFSET", 3)
    assert digest_of(helped) == before
    within = digest_of(nested)
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert digest_of(helped) != before
    assert digest_of(nested) != within


def test_other_processes_say_the_same() -> None:
    code = (
        "from lftj.values.function_text import digest_of\n"
        "def helper(x): return x in {'a', 'b', 'c'}\n"
        "def helped(x): return helper(x)\n"
        "print(digest_of(helped))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True, cwd=ROOT, env=child_environment(PYTHONHASHSEED=seed), capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
