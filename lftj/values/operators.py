"""Comparison operators, as rules write them."""

from __future__ import annotations

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""``x OP y`` is ``y FLIPPED[OP] x``."""
