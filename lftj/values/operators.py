"""Comparison operators, as rules write them."""

from __future__ import annotations

NULL_SAFE = {"<=>": "=", "<!=>": "!="}
"""Operators by which NULL equals NULL, and nothing else; beside values they are those of the dictionary."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", **{sign: sign for sign in ("=", "!=", *NULL_SAFE)}}
"""``x OP y`` is ``y FLIPPED[OP] x``."""
