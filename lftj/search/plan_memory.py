"""The memory of a plan while it is written: records and lists, one after the other.

Everything is known by the item at which it begins.  Where one record names another, its field holds the
other's distance from the beginning of the memory in bytes; the address of that is added for each search.
"""

from __future__ import annotations

import numpy as np

from indices.records import WORD, Record
from lftj.search.records import NAMING


class PlanMemory:
    """``addresses``: the items that name others."""

    def __init__(self) -> None:
        self.length = 0
        self.addresses: list[int] = []
        self._items: dict[int, int] = {}
        """Those that are not 0: most are."""

    def room(self, length: int) -> int:
        """So many items, 0."""
        self.length += length
        return self.length - length

    def listed(self, values: list[int]) -> int:
        """A list of values."""
        at = self.room(len(values))
        self._items.update(enumerate(values, at))
        return at

    def put(self, at: int, kind: type[Record], **values: int) -> None:
        """Write fields of a record: for one that names another the item at which this begins, or 0."""
        for field, value in values.items():
            place = at + kind.place(field)
            if field in NAMING[kind] and value:
                self._items[place] = value * WORD
                self.addresses.append(place)
            else:
                self._items[place] = int(value)

    def template(self) -> np.ndarray:
        """All items, int64."""
        template = np.zeros(self.length, np.int64)
        template[list(self._items)] = list(self._items.values())
        return template
