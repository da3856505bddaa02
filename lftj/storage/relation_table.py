"""What ``db["edge"]``, ``ws["tri"]`` and ``db.relations[...]`` give: a relation or head as a table.

Invariants

1. It shows one version: what is loaded or committed later changes nothing of it.
2. Making one costs O(1).  Looking a row up costs O(log n) per column.  The first rows, iteration and
   :attr:`RelationTable.table` decode values only when they are asked for; the table is built once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from lftj.display.first_rows import SHOWN_ROWS, first_rows, signature
from lftj.display.grid import Grid
from lftj.errors import ArityError
from lftj.process.interrupts import interruptible
from lftj.storage.catalog import Table
from lftj.storage.codes_table import table_of_codes
from lftj.values.domain import without_views
from lftj.values.row_codes import codes_of_row
from lftj.values.shown_text import counted

if TYPE_CHECKING:
    import pandas
    import polars

    from lftj.storage.relation import Relation
    from lftj.values.schema import Schema

DECODED_ROWS = 1 << 14
"""Iteration decodes so many rows at a time."""


class Tuples(Table, Protocol):
    """A set of rows that does not change: a `Relation`, or a version of one."""

    def columns(self) -> Sequence[np.ndarray]:
        """The codes, one array per column."""

    def first(self, n: int) -> Sequence[np.ndarray]:
        """The same of the first ``n`` rows."""

    def holds(self, row: Sequence[int]) -> bool:
        """Whether a row of codes is there."""

    def relation(self) -> Relation:
        """The same rows as the relation that joins read."""


class RelationTable:
    """A relation or head as it was when it was asked for: a set of tuples, and a table.

    ``len`` counts tuples, ``in`` looks one up, iteration gives them as tuples of Python values.  It exports
    Arrow (``__arrow_c_stream__``), and everything else that a ``pyarrow.Table`` has works on it too.

    Examples:
        >>> from lftj import Database
        >>> db = Database()
        >>> db.load("edge", [(1, 2), (1, 3), (2, 3)], columns=["src", "dst"])
        >>> db["edge"]
        edge(src: int64, dst: int64), 3 rows
        src  dst
          1    2
          1    3
          2    3
        >>> (1, 3) in db["edge"], (3, 1) in db["edge"], sorted(db["edge"])
        (True, False, [(1, 2), (1, 3), (2, 3)])
        >>> edge = db["edge"]
        >>> edge["dst"].to_pylist()
        [2, 3, 3]
    """

    def __init__(self, tuples: Tuples) -> None:
        self._tuples = tuples
        self._table: pa.Table | None = None

    @property
    def _shown(self) -> Schema:
        return self._tuples.schema.shown

    def _decoded(self, columns: Sequence[np.ndarray], first: int, last: int) -> pa.Table:
        """Some of the rows with these codes."""
        schema = self._tuples.schema
        return table_of_codes(
            schema, [codes[first:last] for codes in islice(columns, 1 if schema.wide else None)]
        )

    # -- as a set of tuples -----------------------------------------------------------

    @property
    def name(self) -> str:
        """As rules write it."""
        return self._tuples.name

    @property
    def tuples(self) -> Tuples:
        """What rules read."""
        return self._tuples

    @property
    def count(self) -> int:
        """Number of tuples, without building the table."""
        return self._tuples.n_rows

    def __len__(self) -> int:
        return self.count

    def __contains__(self, row: object) -> bool:
        """Whether a tuple is there; False where a value is none of its column's type.

        Raises ArityError for a tuple of another width, and TypeError for what is no tuple (or list).
        """
        columns = self._shown.columns
        if not isinstance(row, tuple | list):
            example = f"({', '.join('...' for _ in columns)}{',' if len(columns) == 1 else ''})"
            raise TypeError(f"{self._signature} holds tuples: look for {example}, not for {row!r}")
        if len(row) != len(columns):
            width = counted(len(columns), "column")
            raise ArityError(f"{self._signature} has {width}, but the tuple {row!r} has {len(row)}")
        codes = codes_of_row(self._tuples.schema, row)
        return codes is not None and self._tuples.holds(codes)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The tuples in no particular order, decoded some thousand at a time."""
        with interruptible():
            columns = self._tuples.columns()
        for start in range(0, self.count, DECODED_ROWS):
            with interruptible():
                table = self._decoded(columns, start, start + DECODED_ROWS)
            yield from zip(*(array.to_pylist() for array in table.columns), strict=True)

    # -- as a table -----------------------------------------------------------------------

    @property
    @interruptible()
    def table(self) -> pa.Table:
        """The tuples, in no particular order, in the data's own types.

        Raises RangeError for a derived value that its type can't hold.
        """
        if self._table is None:
            self._table = table_of_codes(self._tuples.schema, self._tuples.columns())
        return self._table

    def to_arrow(self) -> pa.Table:
        """`table`, by the name that it has in polars and DuckDB."""
        return self.table

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A pandas DataFrame; the options are those of ``pyarrow.Table.to_pandas``.

        Raises ImportError without pandas.
        """
        _required("pandas", "to_pandas()")
        table = self.table
        columns = [without_views(column) for column in table.columns]  # pandas takes no lists of views
        return pa.Table.from_arrays(columns, table.column_names).to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame.  Raises ImportError without polars."""
        return _required("polars", "to_polars()").from_arrow(self.table)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, without building the table."""
        return self._shown.arrow

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self._shown.columns]

    @property
    def num_rows(self) -> int:
        return self.count

    @property
    def num_columns(self) -> int:
        return len(self._shown.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.num_rows, self.num_columns

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __getitem__(self, key: Any) -> pa.ChunkedArray:
        """A column by name or number."""
        return self.table[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.table, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(pa.Table) if not name.startswith("_"))})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RelationTable):
            other = other.table
        return bool(self.table == other) if isinstance(other, pa.Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # -- what the engine reads, and what was left out at load ------------------------------

    @property
    def relation(self) -> Relation:
        """The relation that joins read; of a version after a change it is built by the first call, O(n)."""
        return self._tuples.relation()

    @property
    def dropped_rows(self) -> int:
        """Rows that were left out at load because of a NULL."""
        return self.relation.dropped_rows

    @property
    def duplicate_rows(self) -> int:
        """Rows that were left out at load because an equal one is there."""
        return self.relation.duplicate_rows

    # -- to be looked at -------------------------------------------------------------------

    @property
    def _signature(self) -> str:
        return signature(self.name, self.schema)

    @interruptible()
    def _grid(self) -> Grid:
        first = self._decoded(self._tuples.first(SHOWN_ROWS), 0, SHOWN_ROWS)
        return first_rows(self.name, first, self.count)

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()


def _required(package: str, what: str) -> Any:
    """An optional package.  Raises ImportError, which says what it is for."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{what} needs {package}: pip install {package}", name=package) from error
