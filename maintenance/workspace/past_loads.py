"""The rows of a relation that another process has loaded, also where their file is not there any more.

A checkpoint writes a relation that changed to another file, and deletes the one that it was loaded from.  A
reader that comes to the load only then finds in the journal what changed since:

    rows in the newest manifest  -  changes since the load  ->  rows as they were loaded

Invariant: what is given is what was loaded, or an error is raised.

Cost: one pass over the rows and the changes since; where the file is there, over its rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lftj.errors import CursorError, DamagedFolderError
from maintenance.changes.labels import weight_label
from maintenance.durable.data_files import read_rows
from maintenance.durable.entries import Changed, Loaded, loaded_by
from maintenance.durable.manifest import newest_manifest
from maintenance.durable.reading import read_entries
from maintenance.workspace.past_changes import inverse
from maintenance.workspace.recovery import Recoverable, relation_of

_ATTEMPTS = 20
"""Checkpoints may be completed while the files of one are looked for."""


def loaded_rows(make: Callable[[], Recoverable], folder: Path, number: int, loaded: Loaded) -> pa.Table:
    """The rows of a relation as it was loaded by the change of that number.

    ``make``: gives an empty workspace, to work them out in.  Raises CursorError where they can't be had any
    more, DamagedFolderError, and OSError.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return read_rows(folder, loaded.file)
        except DamagedFolderError:
            later = _replaced_by(folder, loaded, number)
            if later is None:
                raise
        try:
            rows = read_rows(folder, later[0].file)
        except DamagedFolderError:
            if attempt == _ATTEMPTS - 1 or _replaced_by(folder, later[0], later[1]) is None:
                raise
            continue
        return _as_loaded(make(), folder, loaded, number, rows, later[1])
    raise AssertionError


def _replaced_by(folder: Path, loaded: Loaded, number: int) -> tuple[Loaded, int] | None:
    """What a later checkpoint says of a relation, and its change; None if none has put other rows there."""
    newest = newest_manifest(folder, os.listdir(folder))
    if newest is None or newest.number < number:
        return None
    for each in newest.relations:
        if each.relation == loaded.relation and each.file != loaded.file:
            return each, newest.number
    return None


def _as_loaded(
    empty: Recoverable, folder: Path, loaded: Loaded, number: int, rows: pa.Table, upto: int
) -> pa.Table:
    """The rows at a change, less what came since the load."""
    name = loaded.relation
    since = [entry for _, entry in read_entries(folder, number, upto)]
    anew = any(each.relation == name for entry in since for each in loaded_by(entry))
    if anew or loaded.stream is not None:
        why = "it was loaded anew since" if anew else "rows have left the stream since"
        raise CursorError(
            f"{folder}: the rows of {name!r} as it was loaded by version {number} are not kept any more, for"
            f" {why}: open the folder again",
            upto,
        )
    relation = relation_of(loaded, rows, empty.domains)
    empty.add(relation)
    with empty.transaction() as back:
        for entry in since:
            if isinstance(entry, Changed) and name in entry.changes:
                back.apply(name, inverse(entry.changes[name], weight_label(relation.schema)))
    return empty[name].table
