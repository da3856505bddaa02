"""Journal entries of small commits: bytes that are written once, into which each commit puts its numbers.

An entry (:mod:`maintenance.durable.entries`) about so many rows of some relations differs from another one
in its numbers alone.  Where they stand is found by writing one whose numbers stand nowhere else.

Invariant: what a form gives is what :func:`~maintenance.durable.entries.entry_bytes` gives of the same rows.

Cost: of a form an entry the general way; of a commit a copy of each column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import table_of_change
from maintenance.durable.entries import Changed, entry_bytes

MOST_FORMS = 256
"""Behind so many all are made anew."""

_WORD = 8
_DRAWN = np.random.default_rng(0)

ChangedRows = tuple[np.ndarray, np.ndarray]
"""A relation's change: its columns, behind each other, each with room for as many rows as the weights."""


class EntryForm:
    """Of relations, with their schemas, their changes, and how many rows these have."""

    def __init__(self, relations: Sequence[tuple[str, Schema, ChangedRows, int]]) -> None:
        changes = {name: _drawn(len(schema.columns), n) for name, schema, _, n in relations}
        tables = {name: table_of_change(schema, changes[name]) for name, schema, _, _ in relations}
        content = entry_bytes(Changed(tables))
        self.entry = Changed({name: table.slice(0, 0) for name, table in tables.items()})
        """Says which relations changed; without rows."""
        self._bytes = bytearray(content)
        self._parts: list[tuple[slice, memoryview]] = []
        for name, _, (columns, weights), n in relations:
            drawn, room = changes[name], len(weights)
            parts = [columns[room * i : room * i + n] for i in range(len(drawn.columns))] + [weights[:n]]
            for part, numbers in zip(parts, [*drawn.columns, drawn.weights], strict=True):
                place = _place(content, numbers.tobytes())
                self._parts.append((slice(place, place + _WORD * n), part.data.cast("B")))

    def filled(self) -> bytearray:
        """The entry of the changes as they are; the next one is written over it."""
        written = self._bytes
        for place, numbers in self._parts:
            written[place] = numbers
        return written


def _drawn(arity: int, n: int) -> Change:
    """Rows whose numbers stand nowhere else in an entry."""
    numbers = _DRAWN.integers(1 << 61, 1 << 62, (arity + 1, n))
    return Change(numbers[:-1], numbers[-1])


def _place(content: bytes, numbers: bytes) -> int:
    """Where these bytes stand, which they do once."""
    assert content.count(numbers) == 1, "an entry has its numbers once, as they are"
    return content.index(numbers)


class EntryForms:
    """Those that were asked for, by the numbers of relations and rows."""

    def __init__(self, relations: Sequence[tuple[str, Schema, ChangedRows]]) -> None:
        """``relations``: by their numbers."""
        self._relations = relations
        self._forms: dict[bytes, EntryForm] = {}

    def form(self, written: memoryview) -> EntryForm:
        """That of a commit; ``written``: int64, numbers of relations, and behind each its changed rows."""
        key = written.tobytes()
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            items = written.tolist()
            pairs = zip(items[::2], items[1::2], strict=True)
            form = EntryForm([(*self._relations[number], n) for number, n in pairs])
            self._forms[key] = form
        return form
