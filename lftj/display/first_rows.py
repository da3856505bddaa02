"""The first rows of a table, as they are shown of relations, heads and results.

Cost: that of the values shown, whatever the number of rows and columns.
"""

from __future__ import annotations

import pyarrow as pa

from lftj.display.grid import Grid, cut
from lftj.values.kinds import kind
from lftj.values.shown_text import counted
from lftj.values.spelling import spelled

SHOWN_ROWS = 10
"""So many rows are shown."""

SHOWN_COLUMNS = 20
"""So many columns of them are shown."""


def first_rows(name: str, first: pa.Table, n_rows: int) -> Grid:
    """The grid of a table called ``name`` of ``n_rows`` rows; ``first``: the first of them, at least.

    >>> print(first_rows("t", pa.table({"n": [1, 20], "who": ["a", None]}), 2000).text())
    t(n: int64, who: string), 2,000 rows
     n  who
     1  "a"
    20  NULL
    ... 1,998 more
    """
    shown = first.slice(0, SHOWN_ROWS).select(range(min(first.num_columns, SHOWN_COLUMNS)))
    columns = [
        [cut(_spelled(column.slice(row, 1).combine_chunks())) for row in range(len(column))]
        for column in shown.columns
    ]
    hidden = n_rows - shown.num_rows
    more = [f"... {hidden:,} more"] if hidden > 0 else []
    if first.num_columns > SHOWN_COLUMNS:
        more.append(f"... {counted(first.num_columns - SHOWN_COLUMNS, 'column')} more")
    return Grid(
        shown.column_names,
        list(zip(*columns, strict=True)),
        [kind(type_) in ("integer", "float", "decimal") for type_ in shown.schema.types],
        f"{signature(name, first.schema)}, {counted(n_rows, 'row')}",
        more,
    )


def _spelled(value: pa.Array) -> str:
    """A value as rules write it; of a type that no relation has, as Python does."""
    try:
        return spelled(value)
    except Exception:  # pyarrow's own types go beyond ours, and looking at a table does not raise
        return " ".join(str(value).split())


def signature(name: str, schema: pa.Schema) -> str:
    """A name with columns and types, of many columns the first.

    >>> signature("edge", pa.schema({"src": pa.int64(), "dst": pa.int64()}))
    'edge(src: int64, dst: int64)'
    """
    columns = [f"{field.name}: {field.type}" for field in list(schema)[:SHOWN_COLUMNS]]
    more = ["..."] if len(schema) > SHOWN_COLUMNS else []
    return f"{name}({', '.join([*columns, *more])})"
