"""Query results in IPython: rows, where pyarrow shows a table's chunks.

A result is a plain ``pyarrow.Table``, which other libraries take as it is; pyarrow lets nobody make an
instance of a subclass of it.  So what shows it is told otherwise, for all tables of pyarrow's, and only
where the user asks for it: by ``%load_ext lftj``.  A formatter that is there already stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lftj.display.first_rows import first_rows
from lftj.display.grid import Grid


def grid_of(table: pa.Table) -> Grid:
    """The first rows, under the name of the type that the value has."""
    return first_rows("pyarrow.Table", table, table.num_rows)


def as_html(table: pa.Table) -> str:
    return grid_of(table).html()


def as_text(table: pa.Table, printer: Any, cycle: bool) -> None:
    """As IPython's printer asks for it."""
    printer.text(grid_of(table).text())


_FORMATTERS: dict[str, Callable[..., Any]] = {"text/plain": as_text, "text/html": as_html}


def show_rows_of_tables(ipython: Any) -> None:
    """From now on tables show as rows."""
    for mime, formatter in _FORMATTERS.items():
        known = ipython.display_formatter.formatters[mime]
        if pa.Table not in known.type_printers:
            known.for_type(pa.Table, formatter)


def show_tables_as_before(ipython: Any) -> None:
    """Undo it."""
    for mime, formatter in _FORMATTERS.items():
        known = ipython.display_formatter.formatters[mime]
        if known.type_printers.get(pa.Table) is formatter:
            known.pop(pa.Table)
