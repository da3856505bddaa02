"""Journal entries of small commits: bytes that are written once, into which each commit puts its numbers.

An entry (:mod:`maintenance.durable.entries`) about so many rows of some relations differs from another one
in its numbers alone; where there are texts or NULL, or a stream moves, it is written anew.

Invariant: what a form gives is what :func:`~maintenance.durable.entries.entry_bytes` gives of the same rows.

Cost: of a form an entry the general way; of a commit a copy of each column, or an entry the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import table_of_change
from maintenance.durable.entries import Changed, entry_bytes, places_of
from maintenance.machine.staged_values import bytes_of, has_fixed_width
from maintenance.machine.wide_rows import change_of

MOST_FORMS = 256
"""Behind so many all are made anew."""

_WORD = 8

Moved = Mapping[str, Sequence[int | None]]
"""What transactions change of streams (:attr:`~maintenance.event_time.stream_state.StreamState.moving`)."""

ChangedRows = tuple[np.ndarray, np.ndarray]
"""A relation's change: its columns, behind each other, each with room for as many rows as the weights."""


class EntryForm(Protocol):
    """Of relations, with their schemas, their changes, and how many rows these have."""

    entry: Changed
    """Says which relations changed; without rows."""

    def filled(self) -> bytes | bytearray:
        """The entry of the changes as they are; the next one may be written over it."""


class VaryingForm:
    """Of relations whose values have different lengths, or of streams that move."""

    def __init__(
        self, relations: Sequence[tuple[str, Schema, ChangedRows, int]], streams: Moved | None = None
    ) -> None:
        self._relations, self._streams = relations, streams or {}
        self.entry = _without_rows(self._changed())

    def _changed(self) -> Changed:
        tables = {}
        for name, schema, (columns, weights), n in self._relations:
            rows = columns.reshape(len(schema.columns), -1)[:, :n]
            tables[name] = table_of_change(schema, change_of(name, schema, rows, weights[:n]))
        return Changed(tables, streams=self._streams)

    def filled(self) -> bytes:
        return entry_bytes(self._changed())


def _without_rows(changed: Changed) -> Changed:
    tables = {name: table.slice(0, 0) for name, table in changed.changes.items()}
    return Changed(tables, streams=changed.streams)


class FixedForm:
    """Of relations, with their schemas, their changes, and how many rows these have."""

    def __init__(self, relations: Sequence[tuple[str, Schema, ChangedRows, int]]) -> None:
        tables = {}
        for name, schema, _, n in relations:
            rows = np.zeros((len(schema.columns), n), np.int64)
            tables[name] = table_of_change(schema, Change(rows, np.ones(n, np.int64)))
        content = entry_bytes(Changed(tables))
        self.entry = _without_rows(Changed(tables))
        self._bytes = bytearray(content)
        self._parts: list[tuple[slice, memoryview]] = []
        self._written: list[
            tuple[slice, Callable[[np.ndarray], bytes], np.ndarray]
        ] = []  # otherwise than codes
        places = places_of(content)
        for name, schema, (columns, weights), n in relations:
            room = len(weights)
            codes = [columns[room * i : room * i + n] for i in range(len(schema.columns))]
            *own, last = places[name]
            for column, part, place in zip(schema.columns, codes, own, strict=True):
                write = bytes_of(column.type)
                if write is None:
                    self._parts.append((slice(place, place + part.nbytes), part.data.cast("B")))
                else:
                    nbytes = len(write(part))
                    self._written.append((slice(place, place + nbytes), write, part))
            self._parts.append((slice(last, last + _WORD * n), weights[:n].data.cast("B")))

    def filled(self) -> bytearray:
        written = self._bytes
        for place, numbers in self._parts:
            written[place] = numbers
        for place, write, codes in self._written:
            written[place] = write(codes)
        return written


class EntryForms:
    """Those that were asked for, by the numbers of relations and rows."""

    def __init__(self, relations: Sequence[tuple[str, Schema, ChangedRows]]) -> None:
        """``relations``: by their numbers."""
        self._relations = relations
        self._forms: dict[bytes, EntryForm] = {}

    def form(self, written: memoryview, streams: Moved | None = None) -> EntryForm:
        """That of a commit; ``written``: int64, numbers of relations, and behind each its changed rows;
        ``streams``: those that move."""
        key = written.tobytes()
        form = None if streams else self._forms.get(key)
        if form is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            items = written.tolist()
            pairs = zip(items[::2], items[1::2], strict=True)
            relations = [(*self._relations[number], n) for number, n in pairs]
            if streams:
                return VaryingForm(relations, streams)
            are_fixed = all(has_fixed_width(schema) for _, schema, _, _ in relations)
            form = FixedForm(relations) if are_fixed else VaryingForm(relations)
            self._forms[key] = form
        return form
