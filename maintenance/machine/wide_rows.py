"""Rows of wide relations as numbers: the row's code, and those of the columns that the program reads.

Invariants

1. A row's code is that of its bytes, packed as :mod:`lftj.values.rows` has them.
2. Columns that the program does not read are 0: whoever wants them reads them off the row.
3. NULL is taken where the relation keeps it alone: what may hold NULL as long as nobody reads it goes the
   general way.

Cost: of a row its values and one look-up in the dictionary of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.storage.signed_rows import Columns
from lftj.storage.wide_columns import WideColumns
from lftj.values.kinds import plain_type
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.machine.interned_values import Written, written_by
from maintenance.machine.staged_values import Staging, number_staging, staging_of

_LENGTH, _DOUBLE = struct.Struct("<I"), struct.Struct("<d")


def change_of(name: str, schema: Schema, rows: Columns, weights: np.ndarray) -> Change:
    """The change of a relation, of a wide one by the codes of its rows: int64 (columns, n)."""
    return Change(WideColumns(name, schema, rows[0]) if schema.wide else rows, weights)


class WideRow:
    """How rows of a wide relation are staged."""

    def __init__(self, schema: Schema, read: Collection[int]) -> None:
        """``read``: columns whose codes are wanted, by number."""
        self._rows = schema.rows
        self._read: list[tuple[int, Staging]] = []
        types = [column.type.arrow for column in schema.shown.columns]
        sizes = [width for _, width in self._rows.in_block]
        self._writers = [_writer(*each) for each in zip(types, sizes, strict=True)]
        self._nullable = [column.type.nullable for column in schema.shown.columns]
        for number in sorted(set(read) - {0}):
            staging = staging_of(schema.columns[number].type)
            assert staging is not None
            self._read.append((number, staging))
        self._n_codes = len(schema.columns)

    def __call__(self, row: tuple[Any, ...]) -> list[int] | None:
        """The numbers of a row's columns; None where a value is not taken."""
        packed = self._packed(row)
        if packed is None:
            return None
        codes = [0] * self._n_codes
        for number, staging in self._read:
            code = staging(row[number - 1])
            if code is None:
                return None
            codes[number] = code
        codes[0] = self._rows.code_of_bytes(packed)
        return codes

    def _packed(self, row: tuple[Any, ...]) -> bytes | None:
        block, behind = bytearray(self._rows.block_bytes), []
        columns = zip(row, self._rows.in_block, self._writers, self._nullable, strict=True)
        for number, (value, (place, width), write, nullable) in enumerate(columns):
            if value is None and nullable:
                block[number >> 3] |= 1 << (number & 7)
                continue
            written = write(value)
            if written is None:
                return None
            if width:
                block[place : place + width] = written
            else:
                _LENGTH.pack_into(block, place, len(written))
                behind.append(written)
        return b"".join((block, *behind))


def _writer(arrow: pa.DataType, width: int) -> Written:
    """What gives the bytes of a column's values, None of what is not taken."""
    plain = plain_type(arrow)
    found = written_by(plain, getattr(plain, "scale", 0), width)
    if found is not None:
        return partial(_of_kind, *found)
    staging = number_staging(arrow)
    assert staging is not None
    return partial(_double if pa.types.is_float64(arrow) else _number, staging, width)


def _of_kind(of: type, write: Written, value: Any) -> bytes | None:
    return write(value) if type(value) is of else None


def _number(staging: Staging, width: int, value: Any) -> bytes | None:
    code = staging(value)
    return None if code is None else (code & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _double(staging: Staging, _: int, value: Any) -> bytes | None:
    return None if staging(value) is None else _DOUBLE.pack(value + 0.0)  # -0.0 + 0.0 is 0.0


def stagings(schema: Schema, read: Collection[int]) -> Sequence[Staging] | WideRow | None:
    """How values of each column are staged, or rows of a wide relation of which columns are read; None: all
    are int64."""
    if schema.wide:
        return WideRow(schema, read)
    schema = schema.shown
    found = [staging for column in schema.columns if (staging := staging_of(column.type)) is not None]
    return None if schema.is_whole and not schema.keeps_null else found


def key_stagings(schema: Schema) -> list[tuple[int, Staging]]:
    """The columns of a relation's key, and how values of each are staged."""
    types = [(number, schema.columns[number].type) for number in schema.key_numbers]
    return [(number, staging) for number, type_ in types if (staging := staging_of(type_)) is not None]
