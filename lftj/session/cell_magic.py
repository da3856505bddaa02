"""``%%lftj`` in notebooks: a cell of rules and commands, over a database or workspace of the notebook's.

``%load_ext lftj`` once; then ``%%lftj ws`` runs a cell over the variable ``ws``.  Without a name it is over
a database that the extension makes, the variable ``db``.  The last rule's rows are the cell's value.  Tables
of pyarrow's show as rows from then on (:mod:`lftj.session.result_tables`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lftj.database.database import Database
from lftj.session.result_tables import show_rows_of_tables
from lftj.session.session import Session, StatementError, statements


class CellMagic:
    """The magic of one notebook; sessions stay, and with them what they watch."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._sessions: dict[int, Session] = {}

    def __call__(self, line: str, cell: str) -> object:
        """Run the cell; what its statements answer is printed, but for the last one, which is returned."""
        session = self._session(line.strip())
        shown: object = None
        for statement in statements(cell.splitlines()):
            if shown is not None:
                print(shown)
            shown = session.execute(statement)
        return shown

    def _session(self, name: str) -> Session:
        if not name and "db" not in self.names:
            self.names["db"] = Database()
        holder = self.names.get(name or "db")
        if not isinstance(holder, Database):
            what = "no variable" if holder is None else f"a {type(holder).__name__}"
            raise StatementError(
                f"%%lftj needs a Database or Workspace, and {name or 'db'!r} is {what}: db = lftj.Database()"
            )
        session = self._sessions.get(id(holder))
        if session is None:
            session = self._sessions[id(holder)] = Session(holder, _table)
        return session


def _table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches)


def register(ipython: Any) -> None:
    """What ``%load_ext lftj`` calls."""
    ipython.register_magic_function(CellMagic(ipython.user_ns), "cell", "lftj")
    show_rows_of_tables(ipython)
