"""JSON objects, one a text, as rows: a table's, or Debezium's changes of a table.

Both come out as a table with a last column ``op`` (:mod:`maintenance.changes.operations`), NULL where a text
says none.  A text that is no such object is a fault of that text alone.

Cost: one pass of pyarrow's parser over all texts; where something is wrong, one more by Python's.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maintenance.sources.typed_text import typed

OP = "op"
"""What the last column is called here; no other column need be called otherwise."""

_BEFORE, _AFTER, _PAYLOAD = "before", "after", "payload"
_COMES, _GOES = ("c", "r", "u"), ("d",)

_NAMES = {str: "a text", bool: "true or false", int: "a number", float: "a number", Decimal: "a number"}
_NAMES |= {list: "an array", dict: "an object", type(None): "null"}


@dataclass
class Rows:
    """``columns``: values by column, without ``ops``; ``numbers``: int64 (n,), of which text each row is.

    ``faults``: by the number of a text what is wrong with it; it has no row.
    """

    columns: list[pa.Array]
    ops: pa.Array
    numbers: np.ndarray
    faults: dict[int, str] = field(default_factory=dict)

    def taken(self, rows: np.ndarray) -> Rows:
        """Some of the rows, in an order of their own."""
        places = pa.array(rows)
        columns = [column.take(places) for column in self.columns]
        return Rows(columns, self.ops.take(places), self.numbers[rows], self.faults)


def plain_rows(texts: Sequence[bytes], columns: pa.Schema) -> Rows:
    """Objects with the columns, and perhaps ``op``; what else they have is left aside.

    >>> rows = plain_rows([b'{"a": 1}', b'{"a": "x"}', b'[]'], pa.schema({"a": pa.int64()}))
    >>> rows.columns[0].to_pylist(), rows.numbers.tolist()
    ([1], [0])
    >>> rows.faults
    {1: "column 'a' is a text, not int64", 2: 'it is an array, not an object'}
    """
    has_op = OP in columns.names
    parsed = _parsed(texts, columns if has_op else columns.append(pa.field(OP, pa.string())))
    if parsed is not None:
        values = [_combined(column) for column in parsed.columns]
        ops = pa.nulls(len(texts), pa.string()) if has_op else values.pop()
        return _finished(values, columns, ops, np.arange(len(texts)), {})
    return _one_by_one(texts, columns, lambda value: plain_changes(value, has_op))


def debezium_rows(texts: Sequence[bytes], columns: pa.Schema, has_key: bool) -> Rows:
    """Debezium's envelopes, by themselves or as the ``payload`` beside their schema.

    Of a table with a key what comes is an upsert, for connectors repeat themselves; of another an update is
    the row that goes and the one that comes.

    >>> update = b'{"payload": {"op": "u", "before": {"a": 1}, "after": {"a": 2}}}'
    >>> rows = debezium_rows([update], pa.schema({"a": pa.int64()}), has_key=False)
    >>> rows.columns[0].to_pylist(), rows.ops.to_pylist()
    ([1, 2], ['D', 'I'])
    """
    row = pa.struct([pa.field(each.name, _json_type(each.type)) for each in columns])
    envelope = [pa.field(OP, pa.string()), pa.field(_BEFORE, row), pa.field(_AFTER, row)]
    parsed = _parsed(texts, pa.schema([*envelope, pa.field(_PAYLOAD, pa.struct(envelope))]))
    if parsed is not None:
        ops, before, after, payload = map(_combined, parsed.columns)
        if not payload.null_count:
            ops, before, after = payload.flatten()
        if payload.null_count in (0, len(texts)):
            found = _images(ops, before, after, columns, has_key)
            if found is not None:
                return found
    return _one_by_one(texts, columns, lambda value: envelope_changes(value, has_key))


def _images(
    ops: pa.Array, before: pa.Array, after: pa.Array, columns: pa.Schema, has_key: bool
) -> Rows | None:
    """The rows of envelopes; None where one is not whole."""
    comes = pc.is_in(ops, value_set=pa.array(_COMES)).to_numpy(zero_copy_only=False)
    goes = pc.is_in(ops, value_set=pa.array(_GOES)).to_numpy(zero_copy_only=False)
    if not (comes | goes).all():
        return None
    if not has_key:
        goes = goes | pc.equal(ops, "u").to_numpy(zero_copy_only=False)
    old, new = np.flatnonzero(goes), np.flatnonzero(comes)
    before, after = before.take(pa.array(old)), after.take(pa.array(new))
    if before.null_count or after.null_count:
        return None
    numbers = np.concatenate([old, new])
    order = np.argsort(np.concatenate([2 * old, 2 * new + 1]), kind="stable")
    words = pa.array(["D"] * len(old) + ["U" if has_key else "I"] * len(new), pa.string())
    values = [pa.concat_arrays(both) for both in zip(before.flatten(), after.flatten(), strict=True)]
    rows = Rows(values, words, numbers).taken(order)
    return _finished(rows.columns, columns, rows.ops, rows.numbers, {})


def _parsed(texts: Sequence[bytes], columns: pa.Schema) -> pa.Table | None:
    """A row for each text; None where some text is not as it should be."""
    import pyarrow.json as arrow_json

    fields = pa.schema([pa.field(each.name, _json_type(each.type)) for each in columns])
    if not texts:
        return fields.empty_table()
    lines = b"\n".join(texts)
    # Each line has an object at least where it begins with one, so as many rows as lines are one in each.
    if lines.count(b"\n") != len(texts) - 1 or not all(text[:1] == b"{" for text in texts):
        return None
    read = arrow_json.ReadOptions(block_size=max(1 << 20, max(map(len, texts)) + 1))
    parse = arrow_json.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore")
    try:
        table = arrow_json.read_json(io.BytesIO(lines), read, parse)
        table.validate(full=True)  # pyarrow takes any bytes for text
    except (pa.ArrowInvalid, ValueError):
        return None
    return table if table.num_rows == len(texts) else None


def _json_type(wanted: pa.DataType) -> pa.DataType:
    """What pyarrow's parser is to read for a type: texts of what it has no texts for."""
    if pa.types.is_struct(wanted):
        return wanted
    of_json = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return wanted if any(is_one(wanted) for is_one in of_json) else pa.string()


def _finished(
    values: Sequence[pa.Array], columns: pa.Schema, ops: pa.Array, numbers: np.ndarray, faults: dict[int, str]
) -> Rows:
    """Values in their columns' types; a row with a text that is no value of its type is a fault."""
    done, wrong = [], np.zeros(len(numbers), bool)
    for each, column in zip(values, columns, strict=True):
        if each.type != column.type:
            texts = each
            each, rows = typed(texts, column.type)
            for row in rows:
                wrong[row] = True
                faults.setdefault(
                    int(numbers[row]), f"column {column.name!r}: {texts[row].as_py()!r} is not {column.type}"
                )
        done.append(each)
    found = Rows(done, ops, numbers, faults)
    if not wrong.any():
        return found
    return found.taken(np.flatnonzero(~np.isin(numbers, numbers[wrong])))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


# -- text by text -------------------------------------------------------------------------------

Change = tuple[str | None, Mapping[str, Any]]
"""What happens to a row, and its values by column."""


def _one_by_one(texts: Sequence[bytes], columns: pa.Schema, changes: Callable[[Any], list[Change]]) -> Rows:
    """The same where something is wrong, and to say what it is."""
    faults: dict[int, str] = {}
    rows: list[tuple[str | None, ...]] = []
    ops: list[str | None] = []
    numbers: list[int] = []
    for number, text in enumerate(texts):
        try:
            value = json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
            if not isinstance(value, dict):
                raise ValueError(f"it is {_NAMES[type(value)]}, not an object")
            found = changes(value)
            its = [tuple(_text_of(row.get(column.name), column) for column in columns) for _, row in found]
        except (ValueError, RecursionError) as error:
            faults[number] = str(error) or "it is nested too deep"
            continue
        rows += its
        ops += [op for op, _ in found]
        numbers += [number] * len(its)
    of_column = zip(*rows, strict=True) if rows else ((),) * len(columns)
    values = [pa.array(each, pa.large_string()) for each in of_column]
    return _finished(values, columns, pa.array(ops, pa.string()), np.array(numbers, np.int64), faults)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _text_of(value: Any, column: pa.Field) -> str | None:
    """A JSON value as the text that is read as its type.  Raises ValueError for one of another kind."""
    if value is None:
        return None
    wanted = column.type
    if isinstance(value, bool):
        fits = pa.types.is_boolean(wanted)
    elif isinstance(value, int):
        fits = any(
            is_one(wanted) for is_one in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        )
    elif isinstance(value, Decimal):
        fits = pa.types.is_floating(wanted) or pa.types.is_decimal(wanted)
    elif isinstance(value, str):
        fits = _json_type(wanted) == pa.string() or pa.types.is_decimal(wanted)
    else:
        fits = False
    if not fits:
        raise ValueError(f"column {column.name!r} is {_NAMES[type(value)]}, not {wanted}")
    return json.dumps(value) if isinstance(value, bool) else str(value)


def plain_changes(value: Any, has_op: bool) -> list[Change]:
    """What an object says that is a row.  ``has_op``: whether the rows have a column of that name."""
    return [(None if has_op else value.get(OP), value)]


def envelope_changes(value: Any, has_key: bool) -> list[Change]:
    """What an envelope says.  Raises ValueError."""
    if OP not in value and isinstance(value.get(_PAYLOAD), dict):
        value = value[_PAYLOAD]
    op = value.get(OP)
    if op not in (*_COMES, *_GOES):
        raise ValueError(f"its op is {op!r}: there are {', '.join((*_COMES, *_GOES))}")
    found: list[Change] = []
    if op in _GOES or (op == "u" and not has_key):
        found.append(("D", _image(value, _BEFORE, op)))
    if op in _COMES:
        found.append(("U" if has_key else "I", _image(value, _AFTER, op)))
    return found


def _image(value: Mapping[str, Any], side: str, op: str) -> Mapping[str, Any]:
    row = value.get(side)
    if not isinstance(row, dict):
        raise ValueError(f"it has no row {side!r}, which op {op!r} needs")
    return row
