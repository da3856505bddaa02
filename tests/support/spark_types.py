"""A scenario's data as Spark would hand it over: it has no unsigned numbers, seconds or dictionaries."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from support.strategies import Scenario


def spark_type(arrow: pa.DataType) -> pa.DataType:
    """The type that a column would have after Spark."""
    types = pa.types
    if types.is_unsigned_integer(arrow):
        return {8: pa.int16(), 16: pa.int32()}.get(arrow.bit_width, pa.int64())
    if types.is_dictionary(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return pa.string()
    if types.is_large_binary(arrow) or types.is_binary_view(arrow) or types.is_fixed_size_binary(arrow):
        return pa.decimal128(20, 3) if types.is_decimal(arrow) else pa.binary()
    if types.is_decimal(arrow):
        return pa.decimal128(arrow.precision, arrow.scale)
    if types.is_date(arrow):
        return pa.date32()
    if types.is_timestamp(arrow):
        return pa.timestamp("us", None if arrow.tz is None else "UTC")
    if types.is_duration(arrow):
        return pa.duration("us")
    return pa.time64("ns") if types.is_time(arrow) else arrow


def in_spark(scenario: Scenario) -> Scenario:
    loaded = tuple(replace(it, types=tuple(map(spark_type, it.types))) for it in scenario.loaded)
    return Scenario(loaded, scenario.program, scenario.by_name)


def spark_tables(scenario: Scenario) -> dict[str, pa.Table]:
    """The relations; those that hold no NULL are declared so."""
    tables = {}
    for it in scenario.loaded:
        table = it.table()
        fields = [field.with_nullable(it.nullable) for field in table.schema]
        tables[it.name] = pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
    return tables
