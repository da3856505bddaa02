"""Rows that a search gives, as record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lftj.values.schema import Schema


def record_batch(schema: Schema, columns: Sequence[np.ndarray]) -> pa.RecordBatch:
    """Code columns as values."""
    arrays = [
        column.type.domain.decode(codes, column.type.arrow)
        for column, codes in zip(schema.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def pieces(columns: Sequence[np.ndarray], most_rows: int) -> Iterator[Sequence[np.ndarray]]:
    """The same rows in pieces: one Arrow array holds 2 GiB of text at most."""
    for start in range(0, len(columns[0]), most_rows):
        yield [column[start : start + most_rows] for column in columns]


def rebatched(
    schema: Schema, batches: Iterable[list[np.ndarray]], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of exactly ``batch_rows`` rows but for the last; one empty batch when there are no rows."""
    waiting: list[list[np.ndarray]] = []
    n_waiting = 0
    yielded = False

    def gathered() -> list[np.ndarray]:
        if len(waiting) == 1:
            return waiting[0]
        return [np.concatenate(parts) for parts in zip(*waiting, strict=True)]

    for batch in batches:
        start, n_rows = 0, len(batch[0])
        while start < n_rows:
            taken = min(batch_rows - n_waiting, n_rows - start)
            waiting.append([column[start : start + taken] for column in batch])
            n_waiting += taken
            start += taken
            if n_waiting == batch_rows:
                yield record_batch(schema, gathered())
                yielded = True
                waiting, n_waiting = [], 0
    if waiting:
        yield record_batch(schema, gathered())
    elif not yielded:
        yield record_batch(schema, [np.empty(0, dtype=np.int64) for _ in schema.columns])
