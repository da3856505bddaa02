"""`Cursor`: how far a workspace has come in a source, kept in the workspace itself.

    relation "orders#cursor"      part          position   mark
                                  "orders/0"    41_207     "cluster 4zLc..."
                                  "orders/1"    39_998     "cluster 4zLc..."

A *part* is what is read in order: a log of a server, a partition of a topic, a file.  Its *position* says
up to where all of it is in the workspace, and its *mark* of what it is the part, so that another server's is
noticed.  No rule can name the relation.

Invariants

1. It changes in the transaction that has the rows, from what it was to what it is: after a kill at any
   moment rows and cursor are both there or neither.
2. Nobody else's word counts: what the upstream believes to have been read is not asked.
3. Of two who read one source into one workspace one gets a ConflictError.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from lftj.errors import ChangeError, ConflictError, UnusableNameError
from lftj.storage.relation import Relation
from lftj.storage.relation_table import RelationTable
from lftj.values.names import is_usable
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace

_SCHEMA = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("mark", pa.string(), nullable=False),
    ]
)


WORKSPACE = "workspace"
"""The part whose mark says which workspace it is, of those who write elsewhere."""


class Place(NamedTuple):
    """Up to where a part was read, and of what it is one."""

    position: int
    mark: str


class Cursor:
    """The places of a source by part.

    >>> ws = Workspace()
    >>> cursor = Cursor(ws, "bids")
    >>> with ws.transaction() as tx:
    ...     cursor.stage(tx, {"bids/0": Place(10, "here")})
    >>> cursor.moved({"bids/0": Place(10, "here")})
    >>> Cursor(ws, "bids").places, list(ws)
    ({'bids/0': Place(position=10, mark='here')}, [])
    """

    def __init__(self, workspace: Workspace, source: str) -> None:
        """The cursor as the workspace has it.  Raises UnusableNameError."""
        if not is_usable(source):
            raise UnusableNameError(f"{source!r} cannot be the name of a source: take letters and digits")
        self._source, self._relation = source, f"{source}#cursor"
        if self._relation not in workspace.snapshot().versions:
            empty = _SCHEMA.empty_table()
            workspace.add(Relation.from_table(self._relation, empty, workspace.domains, key=["part"]))
        rows = RelationTable(workspace.base_version(self._relation))
        self.places = {part: Place(position, mark) for part, position, mark in rows}

    def stage(self, transaction: Transaction, places: Mapping[str, Place | None]) -> None:
        """Change it in a transaction; a part that is None goes.

        Raises ConflictError, here or by the commit, where another one has moved it meanwhile.
        """
        before = [(part, *self.places[part]) for part in places if part in self.places]
        after = [(part, *place) for part, place in places.items() if place is not None]
        if before:
            try:
                transaction.erase(self._relation, before, missing="error")
            except ChangeError:
                raise ConflictError(
                    f"the cursor of {self._source!r} was moved by another who pulls it: one at a time does"
                ) from None
        if after:
            transaction.insert(self._relation, after)

    def identifier(self, workspace: Workspace) -> str:
        """What tells the workspace from another in its place; it stays with it, as the part WORKSPACE."""
        if WORKSPACE not in self.places:
            place = Place(0, uuid.uuid4().hex)
            with workspace.transaction() as transaction:
                self.stage(transaction, {WORKSPACE: place})
            self.moved({WORKSPACE: place})
        return self.places[WORKSPACE].mark

    def moved(self, places: Mapping[str, Place | None]) -> None:
        """A transaction in which it was changed is committed."""
        following: dict[str, Place | None] = {**self.places, **places}
        self.places = {part: place for part, place in following.items() if place is not None}
