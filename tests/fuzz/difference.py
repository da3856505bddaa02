"""What a case finds, and how rows are compared."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from typing import Any

from lftj.errors import LftjError
from support.reference import Row
from support.rows import hashable

MARK = "NaN"
"""Stands for NaN, which equals nothing, in rows that are compared."""


class Difference(Exception):
    """The engine says something else than the oracle."""


def comparable(rows: Iterable[Row]) -> Counter[Any]:
    """Rows with how often each is there; NaN equals NaN."""
    return Counter(tuple(MARK if value != value else hashable(value) for value in row) for row in rows)


def same(what: str, got: Iterable[Row], expected: Iterable[Row]) -> None:
    """Raise Difference where the rows are others, or one is there more often."""
    ours, right = comparable(got), comparable(expected)
    if ours != right:
        more, missing = (sorted((a - b).elements(), key=repr)[:5] for a, b in ((ours, right), (right, ours)))
        raise Difference(f"{what}: too many {more}, missing {missing}, of {sum(right.values())}")


def signature(error: BaseException) -> str:
    """What two finds have in common where they are the same fault, as far as can be said."""
    if isinstance(error, Difference):
        return f"Difference {str(error).split(':')[0]}"
    if isinstance(error, LftjError):
        return type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/tests/" not in frame.filename] or list(frames)
    return f"{type(error).__name__} in {inside[-1].name}" if inside else type(error).__name__
