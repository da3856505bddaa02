"""What numba is asked while kernels are compiled: each operator for each combination of types once."""

from __future__ import annotations

import operator
from typing import Any
from unittest import mock

import pytest
from numba import config
from numba.core.typing import Context

from indices.compiled import kernel, part


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_an_operator_is_asked_for_once() -> None:
    asked: list[Any] = []
    resolve = Context.resolve_function_type

    def noted(self: Context, function: Any, arguments: Any, named: Any) -> Any:
        if function in (operator.add, operator.iadd, operator.mul):
            asked.append((function, tuple(arguments)))
        return resolve(self, function, arguments, named)

    @part
    def inner(a, b):  # type: ignore[no-untyped-def]
        return a * b + b * a

    def outer(a, b):  # type: ignore[no-untyped-def]
        total = a + b
        for _ in range(3):
            total += a * b + inner(a, b)
        return total

    with mock.patch.object(Context, "resolve_function_type", noted):
        for _ in range(2):
            assert kernel(outer)(5, 7) == 12 + 3 * (35 + 70)
            assert kernel(outer)(0.5, 2) == 2.5 + 3 * (1 + 2)
    assert len(asked) == len(set(asked))
