"""Rows of wide relations as numbers: the row's code, and those of the columns that the program reads.

Invariants

1. A row's code is that of its bytes, packed as :mod:`lftj.values.rows` has them.
2. Columns that the program does not read are 0: whoever wants them reads them off the row.
3. NULL is taken where the relation keeps it alone: what may hold NULL as long as nobody reads it goes the
   general way.

Cost: of a row its values; one look-up in the dictionary of rows for all that are staged by one call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lftj.storage.signed_rows import Columns
from lftj.storage.wide_columns import WideColumns
from lftj.values.kinds import plain_type
from lftj.values.schema import ColumnType, Schema
from maintenance.changes.change import Change
from maintenance.machine.interned_values import Written, written_by
from maintenance.machine.staged_values import Staging, number_staging, staging_of

_LENGTH_BYTES = 4
_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
"""The letters of whole numbers by their width, those of unsigned ones in upper case."""

_BEFORE = 2
"""Items of a staged row before its columns."""


def change_of(name: str, schema: Schema, rows: Columns, weights: np.ndarray) -> Change:
    """The change of a relation, of a wide one by the codes of its rows: int64 (columns, n)."""
    return Change(WideColumns(name, schema, rows[0]) if schema.wide else rows, weights)


class WideRows:
    """How rows of a wide relation are staged."""

    def __init__(self, schema: Schema, read: Collection[int]) -> None:
        """``read``: columns whose codes are wanted, by number."""
        self._rows = schema.rows
        self._read: list[tuple[int, Staging]] = []
        columns = schema.shown.columns
        in_block = zip(columns, self._rows.in_block, strict=True)
        self._columns = [_Packed.of(its.type, width) for its, (_, width) in in_block]
        nulls = self._rows.block_bytes - sum(width or _LENGTH_BYTES for _, width in self._rows.in_block)
        self._block = struct.Struct(f"<{nulls}s" + "".join(its.format for its in self._columns))
        self._no_nulls = bytes(nulls)
        for number in sorted(set(read) - {0}):
            staging = staging_of(schema.columns[number].type)
            assert staging is not None
            self._read.append((number, staging))
        self._n_codes = len(schema.columns)

    def staged(self, relation: int, weight: int, rows: Sequence[tuple[Any, ...]]) -> list[int] | None:
        """The items of rows that are staged; None where a value is not taken.

        ``relation``: its number; ``weight``: of each of them.
        """
        packed, ends = [], [0]
        for row in rows:
            one = self._packed(row)
            if one is None:
                return None
            packed.append(one)
            ends.append(ends[-1] + len(one))
        found: list[int] = []
        for row, code in zip(rows, self._rows.codes_of_bytes(b"".join(packed), ends), strict=True):
            items = [relation, weight, code, *[0] * (self._n_codes - 1)]
            for number, staging in self._read:
                read = staging(row[number - 1])
                if read is None:
                    return None
                items[_BEFORE + number] = read
            found += items
        return found

    def _packed(self, row: tuple[Any, ...]) -> bytes | None:
        block: list[Any] = [self._no_nulls]
        behind, nulls = [], 0
        for number, (value, its) in enumerate(zip(row, self._columns, strict=True)):
            if value is None and its.is_nullable:
                nulls |= 1 << number
                block.append(its.nothing)
                continue
            written = its.written(value)
            if written is None:
                return None
            if its.varies:
                behind.append(written)
                written = len(written)
            block.append(written)
        if nulls:
            block[0] = nulls.to_bytes(len(self._no_nulls), "little")
        return b"".join((self._block.pack(*block), *behind))


class _Packed(NamedTuple):
    """How values of a column are packed.

    ``format``: of the block's field, as :mod:`struct` has it; ``written``: of a value what is packed, None
    where it is not taken, where it ``varies`` what stands behind the block; ``nothing``: packed for NULL.
    """

    format: str
    written: Callable[[Any], Any]
    varies: bool
    is_nullable: bool
    nothing: int | float | bytes

    @classmethod
    def of(cls, type_: ColumnType, width: int) -> _Packed:
        """``width``: in the block, 0 where the length stands there."""
        plain = plain_type(type_.arrow)
        found = written_by(plain, getattr(plain, "scale", 0), width)
        if found is not None:
            of, write = found
            format_ = f"{width}s" if width else "I"
            return cls(format_, partial(_of_kind, of, write), not width, type_.nullable, b"" if width else 0)
        staging = number_staging(type_.arrow)
        assert staging is not None
        if pa.types.is_float64(type_.arrow):
            return cls("d", partial(_double, staging), False, type_.nullable, 0.0)
        is_unsigned = pa.types.is_unsigned_integer(plain) or pa.types.is_boolean(plain)
        format_ = _INTEGERS[width].upper() if is_unsigned else _INTEGERS[width]
        return cls(format_, staging, False, type_.nullable, 0)


def _of_kind(of: type, write: Written, value: Any) -> bytes | None:
    return write(value) if type(value) is of else None


def _double(staging: Staging, value: Any) -> float | None:
    return None if staging(value) is None else value + 0.0  # -0.0 + 0.0 is 0.0


def stagings(schema: Schema, read: Collection[int]) -> Sequence[Staging] | WideRows | None:
    """How values of each column are staged, or rows of a wide relation of which columns are read; None: all
    are int64."""
    if schema.wide:
        return WideRows(schema, read)
    schema = schema.shown
    found = [staging for column in schema.columns if (staging := staging_of(column.type)) is not None]
    return None if schema.is_whole and not schema.keeps_null else found


def key_stagings(schema: Schema) -> list[tuple[int, Staging]]:
    """The columns of a relation's key, and how values of each are staged."""
    types = [(number, schema.columns[number].type) for number in schema.key_numbers]
    return [(number, staging) for number, type_ in types if (staging := staging_of(type_)) is not None]
