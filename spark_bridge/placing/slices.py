"""Slices: rows in pieces of bounded size, so that what a task holds does not grow with its input.

    batches from Spark  -- gathered -->  one table of a relation  -- slices -->  what is worked on at once

Small batches are put together first, for packets are the larger for it.  What a slice becomes is sent before
the next one is looked at, and written once however many cells it is copied to: neither the rows of a task nor
the number of partitions decide what a task holds.

Invariants

1. Slices have all rows, in their order.
2. A slice has at most the rows and the bytes that are asked for, or it is a single row.

Cost: a copy of the rows where several batches are put together; of slices none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

SLICE_ROWS = 1 << 19
SLICE_BYTES = 16 << 20


def gathered(tables: Iterable[tuple[str, pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    """Rows of relations by name, put together until there are SLICE_ROWS or SLICE_BYTES of them in all.

    >>> one = pa.table({"a": [1]})
    >>> [(name, rows.num_rows) for name, rows in gathered([("r", one), ("s", one), ("r", one)])]
    [('r', 2), ('s', 1)]
    """
    waiting: dict[str, list[pa.Table]] = {}
    n_rows = n_bytes = 0
    for name, table in tables:
        waiting.setdefault(name, []).append(table)
        n_rows += table.num_rows
        n_bytes += table.nbytes
        if n_rows >= SLICE_ROWS or n_bytes >= SLICE_BYTES:
            yield from _joined(waiting)
            waiting, n_rows, n_bytes = {}, 0, 0
    yield from _joined(waiting)


def slices(
    table: pa.Table, most_rows: int | None = None, most_bytes: int | None = None
) -> Iterator[pa.Table]:
    """The rows, by halves until these are small enough; by default SLICE_ROWS and SLICE_BYTES.

    >>> [piece.num_rows for piece in slices(pa.table({"a": range(5)}), most_rows=2)]
    [2, 1, 2]
    """
    most_rows = SLICE_ROWS if most_rows is None else most_rows
    most_bytes = SLICE_BYTES if most_bytes is None else most_bytes
    left = [table]
    while left:
        piece = left.pop()
        if piece.num_rows <= 1 or (piece.num_rows <= most_rows and piece.nbytes <= most_bytes):
            yield piece
        else:
            half = piece.num_rows // 2
            left += [piece.slice(half), piece.slice(0, half)]


def _joined(waiting: dict[str, list[pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    while waiting:
        name = next(iter(waiting))
        yield name, pa.concat_tables(waiting.pop(name)).combine_chunks()
