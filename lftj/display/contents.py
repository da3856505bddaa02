"""What a database or workspace holds, as `repr` and notebooks show it: relations with sizes and columns.

Nothing is read but names, sizes and schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lftj.display.grid import Grid, cut
from lftj.values.shown_text import counted

SHOWN_RELATIONS = 30
"""So many relations are shown of a database."""

WIDEST_COLUMNS = 80
"""Columns of a relation are cut there."""


@dataclass(frozen=True)
class Entry:
    """A relation, or a head, of which ``kept_by`` says how it is kept; ``dropped_rows``: for a NULL."""

    name: str
    n_rows: int
    schema: pa.Schema
    kept_by: str = ""
    dropped_rows: int = 0

    @property
    def columns(self) -> str:
        dropped = f"  ({self.dropped_rows:,} with NULL dropped)" if self.dropped_rows else ""
        return ", ".join(f"{field.name}: {field.type}" for field in self.schema) + dropped


def relations_table(entries: Sequence[Entry]) -> str:
    """All of them, with all columns."""
    if not entries:
        return "no relations"
    rows = [[entry.name, f"{entry.n_rows:,}", entry.columns] for entry in entries]
    return Grid(["relation", "rows", "columns"], rows, [False, True, False]).text()


def contents(title: str, entries: Sequence[Entry], more: str = "") -> Grid:
    """What is shown of a holder of relations, cut to what a screen holds; ``more``: said behind it.

    >>> edge = Entry("edge", 3, pa.schema({"a": pa.int64(), "b": pa.int64()}))
    >>> print(contents("Workspace", [edge, Entry("n", 2, pa.schema({"a": pa.int64()}), "auto")]).text())
    Workspace: 1 relation, 1 head
    relation  rows  kept by  columns
    edge         3           a: int64, b: int64
    n            2  auto     a: int64
    """
    n_heads = sum(bool(entry.kept_by) for entry in entries)
    what = counted(len(entries) - n_heads, "relation") + (f", {counted(n_heads, 'head')}" if n_heads else "")
    hidden = len(entries) - SHOWN_RELATIONS
    rest = [f"... {hidden:,} more"] if hidden > 0 else []
    rows = [
        [entry.name, f"{entry.n_rows:,}", entry.kept_by, cut(entry.columns, WIDEST_COLUMNS)]
        for entry in entries[:SHOWN_RELATIONS]
    ]
    names, right = ["relation", "rows", "kept by", "columns"], [False, True, False, False]
    if not n_heads:
        rows = [[name, n_rows, columns] for name, n_rows, _, columns in rows]
        del names[2], right[2]
    return Grid(names, rows, right, f"{title}: {what}", [*rest, *([more] if more else [])])
