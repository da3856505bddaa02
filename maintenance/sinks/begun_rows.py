"""What a sink of messages begins with: the rows of a head at one version, though it is told them later.

A sink that is ended while it begins has told some rows under keys of the version at which it was begun; what
it tells when it goes on has to have the same keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from lftj.errors import CursorError, SinkError
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

Text = TypeVar("Text", bytes, tuple[bool, bytes, bytes])


def texts_at(
    workspace: Workspace,
    version: int,
    all_rows: HeadChange,
    text_of: Callable[[Mapping[str, Any]], Text],
    way_out: str,
) -> list[Text]:
    """The texts of a head's rows as they were at a version, sorted, each as often as its row was there.

    ``all_rows``: as they are at a later one, or the same.  Raises SinkError, with the way out, where what
    happened between is not kept.
    """
    counts: Counter[Text] = Counter()
    _count(counts, all_rows.table, 1, text_of)
    try:
        for change in workspace.follow(all_rows.head, since=version, timeout=0):
            if change.version > all_rows.version:
                break
            _count(counts, change.table, -1, text_of)
    except CursorError:
        raise SinkError(
            f"what was begun with, the rows of version {version} of {all_rows.head!r}, is not kept any more:"
            f" {way_out}"
        ) from None
    return sorted(counts.elements())


def _count(
    counts: Counter[Text], change: pa.Table, sign: int, text_of: Callable[[Mapping[str, Any]], Text]
) -> None:
    weight = change.column_names[-1]
    for row in change.to_pylist():
        n = row.pop(weight)
        counts[text_of(row)] += sign * n
