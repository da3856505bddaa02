"""Copies: how often the tuples of a bag's head are there, by the assignments of a body.

    bag h(a, b) <- body.              (a, b) once per assignment
    bag h(a, copies: w) <- body.      (a) as often as w says, per assignment; not where w is NULL or below 1

The rules of a bag add up; what the counts say becomes numbered tuples in :mod:`lftj.storage.bags`.

Cost: linear in the rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lftj.errors import RangeError
from lftj.language.body import CheckedHead

MOST_COPIES = 2**40
"""More come or go at a time in no memory."""


def counted_rows(
    head: CheckedHead, rows: Mapping[str, np.ndarray], weights: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The columns of a bag's head for rows of its body, by variable, and how many copies each gives.

    ``weights``: of the rows, below 0 where they go.  Raises RangeError.

    >>> from lftj.values.schema import Schema
    >>> head = CheckedHead("h", ("a",), None, Schema((), bag=True), (0, 0), copies="w")
    >>> rows = {"a": np.array([5, 7, 5]), "w": np.array([2, -3, 1])}
    >>> columns, counts = counted_rows(head, rows, np.array([1, 1, -2]))
    >>> columns[0].tolist(), counts.tolist()
    ([5, 7, 5], [2, 0, -2])
    """
    each = 1 if head.copies is None else np.maximum(rows[head.copies], 0)
    if np.abs(weights.astype(np.float64) * each).sum() > MOST_COPIES:
        message = (
            f"{head.relation} has more than {MOST_COPIES:,} copies of rows: keep their number as a column"
        )
        raise RangeError(message)
    return [rows[name] for name in head.variables], weights * each
