"""Cursors of the base machine: the keys below a bound prefix, and seeks among them."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.search.base.records import cursor_at
from lftj.storage.patch import patch_places_at, table_row
from lftj.storage.seek import gallop, ranked


@part
def find(cursor, keys, start, end, key):
    """Like :func:`gallop` on a cursor's keys; one look-up where its level has a rank table."""
    if cursor.ranks:
        return ranked(cursor.ranks, cursor.first_key, cursor.spread, start, end, key)
    return gallop(keys, start, end, key)


@part(forceinline=True)
def child_range(cursor):
    """Half-open range of a cursor's keys below its parent's bound key, in the list at ``keys``."""
    if cursor.parent == 0:
        return np.int64(0), cursor.length
    above = cursor_at(cursor.parent)
    bound = above.at
    if bound < 0:  # a negation whose branch is not there
        return np.int64(0), np.int64(0)
    if above.patch:
        return patched_range(cursor, above, bound)
    children = view(above.children, bound + 2)
    return children[bound], children[bound + 1]


@part
def patched_range(cursor, above, bound):
    """:func:`child_range` where the index has a patch: the keys may be such as the patch lists."""
    changed = patch_places_at(above.patch)
    row, bound = table_row(changed, above.in_patch, bound)
    if row >= 0:
        listed = view(changed.child, row + 1)[row]
        if listed >= 0:
            own = patch_places_at(cursor.patch)
            starts = view(own.starts, listed + 2)
            cursor.keys = own.keys
            cursor.in_patch = 1
            return starts[listed], starts[listed + 1]
    cursor.keys = cursor.base
    cursor.in_patch = 0
    children = view(above.children, bound + 2)
    return children[bound], children[bound + 1]
