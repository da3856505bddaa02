"""The reference for tables with a key: a dictionary, event by event; it imports nothing of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Key = tuple[Any, ...]


class Event(NamedTuple):
    """``what``: insert, erase, upsert, of a row; erase_keys, of a key."""

    what: str
    row: Row


class TwoRows(Exception):
    """A key has two rows."""


def after(rows: dict[Key, Row], events: Iterable[Event], key_of: Callable[[Row], Key]) -> dict[Key, Row]:
    """The rows by key after all events of a transaction, in their order.  Raises TwoRows."""
    base: dict[Key, set[Row]] = {key: {row} for key, row in rows.items()}
    weights: dict[Key, Counter[Row]] = {}
    for what, row in events:
        key = row if what == "erase_keys" else key_of(row)
        if what in ("upsert", "erase_keys"):
            base[key], weights[key] = set(), Counter()
        if what != "erase_keys":
            weights.setdefault(key, Counter())[row] += -1 if what == "erase" else 1
    found = dict(rows)
    for key, changed in weights.items():
        kept = {row for row in base.get(key, set()) if changed[row] >= 0}
        now = kept | {row for row, weight in changed.items() if weight > 0}
        if len(now) > 1:
            raise TwoRows(key)
        found.pop(key, None)
        for row in now:
            found[key] = row
    return found
