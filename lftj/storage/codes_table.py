"""Rows of codes as the table that a user sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lftj.values.schema import Schema

if TYPE_CHECKING:
    from lftj.storage.signed_rows import Columns


def table_of_codes(schema: Schema, columns: Sequence[np.ndarray]) -> pa.Table:
    """Rows of codes under a schema as users see them; of a wide relation the rows' codes are enough.

    Raises :class:`~lftj.errors.RangeError` for a derived value that its type can't hold.
    """
    return pa.Table.from_arrays(shown_values(schema, columns), schema=schema.shown.arrow)


def shown_values(schema: Schema, columns: Columns) -> list[pa.ChunkedArray]:
    """The same, column by column."""
    if schema.wide:
        return schema.rows.columns(columns[0])
    shown = schema.shown.columns
    return [
        column.type.domain.decode_chunked(codes, column.type.arrow)
        for column, codes in zip(shown, columns[: len(shown)], strict=True)
    ]
