"""Python values as the codes that a relation would hold them by, for looking a row up.

A value finds what the same constant in a rule would find: ``1`` is ``1.0`` in a column of floats, and no
text is a number.  Beyond the constants of rules it may be whatever a column's values come out as: a time,
a duration, a timestamp with nanoseconds, a numpy or Arrow scalar, and NaN and NULL (None), which a row may
hold.

Nothing is added to a dictionary, but what a row of a wide relation is looked up with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import RangeError, TypeClashError
from lftj.values.domain import NAN_CODE, NULL_CODE, Domain
from lftj.values.schema import Schema

LITERALS = frozenset(("integer", "float", "string", "binary", "decimal"))
"""Domains all of whose values a rule can write down."""


def codes_of_row(schema: Schema, row: Sequence[Any]) -> list[int] | None:
    """The code of each value, of a bag that of its first copy, of a wide relation that of the row.

    None where one of them is no value of its column, or no row has them.  ``row``: as many values as the
    schema shows columns.

    >>> from lftj.values.domains import Domains
    >>> from lftj.storage.relation import Relation
    >>> edge = Relation.from_table("edge", pa.table({"a": [1, 2], "w": [0.5, 1.5]}), Domains())
    >>> codes_of_row(edge.schema, (1, 0.5)) == [column.item(0) for column in edge.codes]
    True
    >>> codes_of_row(edge.schema, (1, "0.5"))
    """
    if schema.wide:
        return _code_of_wide_row(schema, row)
    codes = []
    for column, value in zip(schema.shown.columns, row, strict=True):
        if _is_null(value):
            code = NULL_CODE if column.type.nullable else None
        else:
            code = _code(value, column.type.domain, column.type.arrow)
        if code is None:
            return None
        codes.append(code)
    return [*codes, 0] if schema.bag else codes


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, pa.Scalar) and not value.is_valid)


def _code_of_wide_row(schema: Schema, row: Sequence[Any]) -> list[int] | None:
    """The code of the row as a whole."""
    lease = schema.rows.collector.lease()  # of a text that is new: it is in the dictionary for this look
    columns = []
    for column, value in zip(schema.shown.columns, row, strict=True):
        domain, arrow = column.type.domain, column.type.arrow
        if _is_null(value):
            columns.append(pa.nulls(1, arrow))
            continue
        code = _code(value, domain, arrow, adds=True)
        try:
            columns.append(None if code is None else domain.decode(np.array([code]), arrow))
        except RangeError:
            return None  # no value of the column's type
        if columns[-1] is None:
            return None
    code = schema.rows.find(columns)
    del lease
    return None if code is None else [code]


def _code(value: Any, domain: Domain, arrow: pa.DataType, adds: bool = False) -> int | None:
    """``adds``: a value that no dictionary has gets a code, too."""
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    if isinstance(value, pa.Scalar) and domain.name in LITERALS:
        value = value.as_py()
    if isinstance(value, np.generic) and value.dtype.kind in "iufb":
        value = value.item()
    if pa.types.is_dictionary(arrow):
        return _code(value, domain, arrow.value_type, adds)
    try:
        if isinstance(arrow, pa.Bool8Type) and isinstance(value, bool):
            value = int(value)  # what pyarrow asks for, though it gives a bool
        if isinstance(arrow, pa.BaseExtensionType):
            return _code(pa.scalar(value, arrow).value, domain, arrow.storage_type, adds)
        if domain.name.startswith("list"):
            return _code_of_list(value, domain, arrow, adds)
        if domain.name in LITERALS:
            if isinstance(value, float) and value != value:
                return NAN_CODE if domain.name == "float" else None
            return domain.code_of_constant(value, lasting=False) if adds else domain.encode_constant(value)
        return _code_in_type(value, domain, arrow)
    except (TypeClashError, RangeError, pa.ArrowException, TypeError, ValueError, OverflowError):
        return None  # Arrow says in all these ways that the type has no such value


def _code_of_list(value: Any, domain: Domain, arrow: pa.DataType, adds: bool) -> int | None:
    from lftj.values.lists import ListDomain

    assert isinstance(domain, ListDomain)
    found = value.cast(arrow) if isinstance(value, pa.Scalar) else pa.scalar(value, arrow)
    if not isinstance(value, pa.Scalar) and not _same(found.as_py(), value):
        return None
    lists = pa.array([found], arrow)
    return int(domain.encode(lists)[0]) if adds else domain.find(lists)


def _same(found: Any, value: Any) -> bool:
    """Whether pyarrow has read a list, or what is in it, as what it is."""
    if isinstance(found, list):
        return len(found) == len(value) and all(map(_same, found, value))
    return found == value or (found != found and value != value)


def _code_in_type(value: Any, domain: Domain, arrow: pa.DataType) -> int | None:
    """Of a truth value, date, time, timestamp or duration: pyarrow reads it, perhaps as another value."""
    if isinstance(value, pa.Scalar | np.datetime64 | np.timedelta64):
        found = (value if isinstance(value, pa.Scalar) else pa.scalar(value)).cast(arrow)
    else:
        found = pa.scalar(value, arrow)
        if found.as_py() != value:
            return None
    return int(domain.encode(pa.array([found], arrow))[0])
