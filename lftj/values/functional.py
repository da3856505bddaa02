"""Functional relations: one value per key, or an error that names the key and both values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.errors import FunctionalConflictError
from lftj.values.schema import Schema


def conflict(columns: Sequence[np.ndarray]) -> int | None:
    """The first of the sorted distinct rows that has the keys of the next one, and so another value.

    >>> conflict([np.array([1, 2, 2]), np.array([7, 8, 9])])
    1
    """
    n_rows = len(columns[-1])
    if n_rows < 2:
        return None
    same = np.ones(n_rows - 1, dtype=bool)
    for column in columns[:-1]:
        same &= column[1:] == column[:-1]
    return int(same.argmax()) if same.any() else None


def refuse_conflicts(name: str, schema: Schema, columns: Sequence[np.ndarray], text: str) -> None:
    """Raise FunctionalConflictError if sorted distinct rows of a head have two values for a key.

    ``text``: of the rules, for the message.
    """
    first = conflict(columns)
    if first is None:
        return
    *keys, value = [c.type.spelled(codes[first]) for c, codes in zip(schema.columns, columns, strict=True)]
    other = schema.columns[-1].type.spelled(columns[-1][first + 1])
    raise FunctionalConflictError(
        f"{name}[{', '.join(keys)}] has two values, {value} and {other};"
        f" a functional head takes one per key\n  {text}"
    )
