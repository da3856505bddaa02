"""differential: JSON read at once and text by text, and against Python's own reading."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from maintenance.sources.json_rows import Rows, debezium_rows, plain_rows

COLUMNS = pa.schema(
    {
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.decimal128(9, 2),
        "day": pa.date32(),
        "t": pa.timestamp("ms"),
        "z": pa.timestamp("us", "UTC"),
        "clock": pa.time64("us"),
        "y": pa.binary(),
    }
)
GOOD: dict[str, list[Any]] = {
    "i": [0, -(2**31), 2**31 - 1],
    "f": [1, -2.5, 1e300],
    "s": ["", 'é\n\t"', "2024-01-01"],
    "b": [True, False],
    "d": ["1.25", 3, 2.5],
    "day": ["2024-02-29", "0001-01-01"],
    "t": ["2024-02-29 12:30:00.125", "2024-02-29T12:30:00"],
    "z": ["2024-02-29T12:30:00+01:00", "2024-02-29 12:30:00Z"],
    "clock": ["10:11:12.5", "00:00:00"],
    "y": ["AP8=", ""],
}
WRONG: dict[str, list[Any]] = {
    "i": [2**31, 1.5, "1", True, [1]],
    "f": ["1", True, {}],
    "s": [1, False, ["x"]],
    "b": [1, "true"],
    "d": ["1.255", "x", True, 12345678.5],
    "day": ["2024-02-30", 1],
    "t": ["2024-02-29T12:30:00Z", "noon"],
    "z": ["2024-02-29T12:30:00", 7],
    "clock": ["25:00:00", 3],
    "y": ["A", "not base64!"],
}


def drawn(chosen: random.Random) -> dict[str, Any]:
    row = {name: chosen.choice([*values, None]) for name, values in GOOD.items()}
    return {name: value for name, value in row.items() if chosen.random() < 0.9}


def shown(rows: Rows) -> list[Any]:
    return [rows.numbers.tolist(), rows.ops.to_pylist(), *(each.to_pylist() for each in rows.columns)]


@pytest.mark.parametrize("form", ["plain", "debezium", "wrapped"])
def test_both_ways_read_the_same(form: str) -> None:
    chosen = random.Random(form)
    for _ in range(20):
        values: list[dict[str, Any]] = []
        for _ in range(chosen.randrange(1, 30)):
            op = chosen.choice("crud")
            envelope = {"op": op, "before": drawn(chosen), "after": drawn(chosen)}
            if form == "plain":
                values.append(drawn(chosen) | ({"op": "D"} if op == "d" else {}))
            else:
                values.append(envelope if form == "debezium" else {"schema": 1, "payload": envelope})
        texts = [json.dumps(value, ensure_ascii=chosen.random() < 0.5).encode() for value in values]
        for has_key in (False, True):

            def read(texts: list[bytes], has_key: bool = has_key) -> Rows:
                return (
                    plain_rows(texts, COLUMNS) if form == "plain" else debezium_rows(texts, COLUMNS, has_key)
                )

            at_once, one_by_one = read(texts), read([*texts, b"wrong"])
            assert not at_once.faults and list(one_by_one.faults) == [len(texts)]
            assert shown(at_once) == shown(one_by_one)
            assert [each.type for each in at_once.columns] == COLUMNS.types


@pytest.mark.parametrize("name", COLUMNS.names)
def test_a_value_of_another_kind_is_a_fault_of_its_text_alone(name: str) -> None:
    column = pa.schema([COLUMNS.field(name)])
    for wrong in WRONG[name]:
        for good in GOOD[name]:
            texts = [json.dumps({name: value}).encode() for value in (good, wrong, good)]
            rows = plain_rows(texts, column)
            assert rows.numbers.tolist() == [0, 2], (good, wrong)
            assert list(rows.faults) == [1] and name in rows.faults[1]
            envelopes = [b'{"op": "c", "after": ' + text + b"}" for text in texts]
            assert list(debezium_rows(envelopes, column, has_key=True).faults) == [1]


def test_texts_that_are_no_objects() -> None:
    column = pa.schema({"a": pa.int64()})
    texts = [
        b'{"a": 1}{"a": 2}',
        b"",
        b"null",
        b'{"a": 1',
        b'{"a": NaN}',
        b'{"a": 3}',
        b'{"a":\n4}',
        b"[" * 100_000,
    ]
    rows = plain_rows(texts, column)
    assert rows.columns[0].to_pylist() == [3, 4] and rows.numbers.tolist() == [5, 6]
    assert sorted(rows.faults) == [0, 1, 2, 3, 4, 7]
    assert plain_rows([], column).columns[0].to_pylist() == []
    exact = plain_rows([b'{"a": 0.1}', b'{"a": 1e-2}'], pa.schema({"a": pa.decimal128(38, 20)}))
    assert exact.columns[0].to_pylist() == [Decimal("0.1"), Decimal("0.01")]
