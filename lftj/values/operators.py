"""Comparison operators, as rules write them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

NULL_SAFE = {"<=>": "=", "<!=>": "!="}
"""Operators by which NULL equals NULL, and nothing else; beside values they are those of the dictionary."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", **{sign: sign for sign in ("=", "!=", *NULL_SAFE)}}
"""``x OP y`` is ``y FLIPPED[OP] x``."""

NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "<=>": "<!=>", "<!=>": "<=>"}
"""``!(x OP y)`` is ``x NEGATED[OP] y``, but for NULL and NaN."""

ON_VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The operators on values of Python's, or what stands for columns."""

ON_ARRAYS: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
"""The operators on arrays of codes or numbers."""
