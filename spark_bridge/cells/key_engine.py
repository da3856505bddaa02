"""Relations with a key, by key: what a batch says of keys becomes rows that go and come.

    (7, "open") upserted   =   -(7, "paid") +(7, "open")      whole rows, with weights, for the stages behind

A batch has no order, for Spark's rows have none: of a key it has one upsert or erasure, or whole rows, which
add up.

Invariant: no key has two rows, and what all steps gave adds up to the rows that are there.

Cost: of a step O(log n) for each of its keys; in memory are the rows of the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lftj.errors import ChangeError
from lftj.storage.codes_table import table_of_codes
from lftj.storage.keyed import rows_of_keys
from lftj.storage.sorting import first_rows_of_equal
from lftj.values.spelling import spelled
from maintenance.changes.changes import encode_keys
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace
from spark_bridge.cells.signed_tables import as_events, events, signed, with_weight
from spark_bridge.placing.packets import CellAddress, CellInput, packed

ADDRESS = CellAddress(0, 0, ())

Keys = Mapping[str, tuple[str, ...]]
"""By relation, the columns of its key."""


class _Rows(NamedTuple):
    """Of different keys: ``there`` says which have a row, ``codes`` which, and ``table`` holds those."""

    there: np.ndarray
    codes: np.ndarray
    table: pa.Table


class KeyEngine:
    """One partition of all relations with a key."""

    def __init__(self, schemas: Mapping[str, pa.Schema], keys: Keys) -> None:
        """``schemas``: of these relations, without weights."""
        self._schemas = {name: schemas[name] for name in keys}
        self._keys = keys
        self._workspace = Workspace()
        for name, schema in self._schemas.items():
            fields = [
                field.with_nullable(field.nullable and field.name not in keys[name]) for field in schema
            ]
            self._workspace.load(name, pa.schema(fields).empty_table(), key=keys[name], nulls="keep")
        self.taken = 0

    def step(self, inputs: Sequence[CellInput]) -> dict[str, pa.Table]:
        """Apply changes; returns by relation the rows that go and come, with weights.

        Afterwards ``taken`` is the number of the changes.

        Raises KeyConflictError, ChangeError and the engine's other errors; then it is of no more use.
        """
        given = {
            name: pa.concat_tables([cell.table(name, events(schema)) for cell in inputs])
            for name, schema in self._schemas.items()
        }
        given = {name: table for name, table in given.items() if table.num_rows}
        self.taken = sum(table.num_rows for table in given.values())
        keys = {
            name: _codes_of_keys(self._workspace, name, table, self._keys[name])
            for name, table in given.items()
        }
        each = {name: np.ascontiguousarray(np.unique(codes, axis=1)) for name, codes in keys.items()}
        before = {name: self._rows(name, codes) for name, codes in each.items()}
        with self._workspace.transaction() as transaction:
            for name, table in given.items():
                _stage(transaction, name, table, self._keys[name], keys[name])
        return {name: self._difference(name, before[name], codes) for name, codes in each.items()}

    def snapshot(self) -> Iterator[tuple[CellAddress, str, bytes]]:
        """The rows of all relations, as packets from which :meth:`step` makes them again."""
        for name in self._keys:
            for packet in packed(as_events(self._workspace[name].table)):
                yield ADDRESS, name, packet

    @property
    def rows(self) -> int:
        return sum(self._workspace[name].count for name in self._keys)

    def _rows(self, name: str, keys: np.ndarray) -> _Rows:
        version = self._workspace.base_version(name)
        there, codes = rows_of_keys(version, keys)
        return _Rows(there, codes, table_of_codes(version.schema, list(codes[:, there])))

    def _difference(self, name: str, before: _Rows, keys: np.ndarray) -> pa.Table:
        now = self._rows(name, keys)
        changed = (before.there != now.there) | (before.codes != now.codes).any(axis=0)
        signed_rows = [
            with_weight(rows.table.filter(pa.array(changed[rows.there])), weight)
            for rows, weight in ((before, -1), (now, 1))
        ]
        return pa.concat_tables(signed_rows).cast(signed(self._schemas[name]))


def stage_events(
    workspace: Workspace, transaction: Transaction, name: str, table: pa.Table, key: Sequence[str]
) -> None:
    """Stage events (:func:`~spark_bridge.cells.signed_tables.events`) of a workspace's relation with a key.

    Raises ChangeError where there are several of one key that say different things.
    """
    _stage(transaction, name, table, key, _codes_of_keys(workspace, name, table, key))


def _codes_of_keys(workspace: Workspace, name: str, table: pa.Table, key: Sequence[str]) -> np.ndarray:
    """int64 (columns of the key, rows)."""
    schema = workspace.base_version(name).schema
    codes = encode_keys(name, schema, table.select(list(key)), workspace.domains).keys
    assert codes is not None
    return codes


def _stage(
    transaction: Transaction, name: str, table: pa.Table, key: Sequence[str], keys: np.ndarray
) -> None:
    resets, weights = (table.column(table.num_columns - place).to_numpy() for place in (2, 1))
    counted = _counted(name, table, key, keys, resets)
    rows = table.drop_columns(table.column_names[-2:])
    plain = table.drop_columns([table.column_names[-2]]).filter(pa.array(~resets))
    transaction.apply(name, plain)
    transaction.upsert(name, rows.filter(pa.array(counted & resets & (weights > 0))))
    erased = rows.filter(pa.array(counted & resets & (weights == 0)))
    transaction.erase_keys(name, erased.select(list(key)))


def _counted(
    name: str, table: pa.Table, key: Sequence[str], keys: np.ndarray, resets: np.ndarray
) -> np.ndarray:
    """Which changes count: of equal upserts or erasures of a key the first, and all whole rows.

    Raises ChangeError where there is another change of the key.
    """
    order = np.lexsort(keys[::-1])
    starts = first_rows_of_equal(list(keys[:, order]), len(order))
    ends = np.append(starts[1:], len(order))
    counted = np.ones(len(order), bool)
    several = (ends - starts > 1) & np.logical_or.reduceat(resets[order], starts)
    for start, end in zip(starts[several], ends[several], strict=True):
        rows = table.take(pa.array(order[start:end]))
        if any(row != rows.slice(0, 1).to_pylist()[0] for row in rows.to_pylist()):
            shown = ", ".join(
                f"{column}={spelled(rows.column(column).slice(0, 1).combine_chunks())}" for column in key
            )
            raise ChangeError(
                f"changes of {name!r}: several of key {shown} are in a batch, whose rows have no order:"
                " leave the last one of each key, as by row_number() over a window"
            )
        counted[order[start + 1 : end]] = False
    return counted
