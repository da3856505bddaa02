"""Rows that leave a stream when the clock has passed them: a change like any other, of whole buckets of time.

    a transaction        +(t=70) +(t=12) -(t=15)            now: 75, kept from 20
    all that it changes  +(t=70) -(t=13) -(t=15) -(t=17)    before 20 nothing is left

Cost: O(rows that leave), and O(log n) where none does.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.wide_columns import WideColumns
from maintenance.changes.change import Change


def recent_version(name: str, stream: RelationVersion, left: int | None) -> RelationVersion:
    """A relation of a stream's rows, without those before a time.  O(n)."""
    schema = stream.schema
    rows = stream.rows_between(left, None)
    rows, _ = net_rows(rows, np.ones(rows.shape[1], np.int64))
    columns = WideColumns(name, schema, rows[0]) if schema.wide else [*rows]
    return RelationVersion(Relation.from_codes(name, schema, columns))


def with_expiry(
    version: RelationVersion, change: Change | None, left: int | None, bound: int
) -> tuple[Change | None, int]:
    """A change of a stream and what leaves with it, and how many rows these are.

    ``version``: the one before; ``left``, ``bound``: before the one nothing is there, before the other
    nothing stays.
    """
    schema = version.schema
    gone = version.rows_between(left, bound)
    n_left = gone.shape[1]
    parts: list[tuple[Columns, np.ndarray]] = [([*gone], np.full(n_left, -1))]
    if change is not None:
        stays = np.asarray(change.columns[schema.time_number]) >= bound
        n_left += int(change.weights[~stays].sum())
        parts.append(([change.columns[n][stays] for n in schema.identity], change.weights[stays]))
    rows, weights = net_rows(*gathered(parts))
    if not len(weights):
        return None, n_left
    columns = WideColumns(version.name, schema, rows[0]) if schema.wide else rows
    return Change(columns, weights, 0 if change is None else change.no_changes), n_left
