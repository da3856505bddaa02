"""Comparison operators, as rules write them."""

from __future__ import annotations

import numpy as np

NULL_SAFE = {"<=>": "=", "<!=>": "!="}
"""Operators by which NULL equals NULL, and nothing else; beside values they are those of the dictionary."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", **{sign: sign for sign in ("=", "!=", *NULL_SAFE)}}
"""``x OP y`` is ``y FLIPPED[OP] x``."""

ON_ARRAYS: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
"""The operators on arrays of codes or numbers."""
