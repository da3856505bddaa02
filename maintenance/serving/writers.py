"""Which workspace a service serves, and what others have put into it under a version of their own.

    relation "_flight#cursor"     part                    position   mark
                                  "workspace"             0          "5c0f..."
                                  "91ab... n_to_flight"   8812       "revenue"

Invariant: the version of a writer changes in the transaction that has his rows, so that what is put again is
known to be there.
"""

from __future__ import annotations

from lftj.errors import ServiceError
from maintenance.sources.cursor import WORKSPACE, Cursor, Place
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace

_NAME = "_flight"


def identifier_of(workspace: Workspace) -> str:
    """What tells a workspace from another that is served in its place."""
    return Cursor(workspace, _NAME).identifier(workspace)


class Writer:
    """Who puts what a head of his does into a relation.  ``version``: up to which; None: nothing yet."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._name, self._cursor = name, Cursor(workspace, _NAME)
        place = self._cursor.places.get(name)
        self.version = None if place is None else place.position
        self._relation = None if place is None else place.mark

    def refuse(self, relation: str, since: int | None, has_rows: bool) -> None:
        """Raise ServiceError where he is not at ``since``, None: anywhere, or others have a part in it."""
        if self._relation is not None and self._relation != relation:
            raise ServiceError(f"writer {self._name!r} puts into {self._relation!r}, and not {relation!r}")
        others = [
            name
            for name, place in self._cursor.places.items()
            if place.mark == relation and name not in (self._name, WORKSPACE)
        ]
        if others or (has_rows and self.version is None):
            whose = f"what {others[0]!r} has put" if others else "rows that no writer has put"
            raise ServiceError(f"{relation!r} has {whose}: put into another relation, or an empty one")
        if since is not None and since != self.version:
            raise ServiceError(
                f"writer {self._name!r} is at version {self.version}, and changes come since {since}: ask for"
                ' that, action "version", and go on behind it'
            )

    def stage(self, transaction: Transaction, relation: str, version: int) -> None:
        """He is at a version.  Raises ConflictError, here or by the commit, where he puts twice at a time."""
        self._cursor.stage(transaction, {self._name: Place(version, relation)})
