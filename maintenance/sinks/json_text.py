"""Rows as JSON, as `maintenance.sources.kafka.kafka` and `maintenance.sources.files.files` read it."""

from __future__ import annotations

import base64
import datetime
import decimal
import json


def json_text(value: object) -> bytes:
    """What JSON has no word for as a text: base64, ISO 8601, decimals.

    >>> json_text({"at": datetime.date(2024, 2, 29), "y": b"xy", "n": decimal.Decimal("1.50")})
    b'{"at": "2024-02-29", "y": "eHk=", "n": "1.50"}'
    """
    return json.dumps(value, default=_plain, ensure_ascii=False).encode()


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is none of JSON's values")
