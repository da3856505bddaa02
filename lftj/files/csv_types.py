"""Values of CSV fields in the Arrow type that was asked for.

pyarrow's reader does not convert to every type.  What it lacks is read as the
nearest type that it has, and taken to the wanted one afterwards: binary values
are hexadecimal digits and durations the number of their units, as
:mod:`lftj.files.sink` writes them.
"""

from __future__ import annotations

import pyarrow as pa


def read_as(wanted: pa.DataType) -> pa.DataType:
    """The type that pyarrow's CSV reader converts to, where it does not know ``wanted``."""
    if pa.types.is_dictionary(wanted):
        return read_as(wanted.value_type)
    if _is_binary(wanted) or pa.types.is_string_view(wanted):
        return pa.string()
    if pa.types.is_float16(wanted):
        return pa.float32()
    if pa.types.is_duration(wanted):
        return pa.int64()
    if pa.types.is_decimal32(wanted) or pa.types.is_decimal64(wanted):
        return pa.decimal128(wanted.precision, wanted.scale)
    return wanted


def converted(values: pa.Array, field: pa.Field) -> pa.Array:
    """Values read as :func:`read_as` says, in the field's type.  Raises ValueError."""
    wanted = field.type
    plain = wanted.value_type if pa.types.is_dictionary(wanted) else wanted
    if _is_binary(plain):
        decoded = []
        for digits in values.to_pylist():
            try:
                decoded.append(None if digits is None else bytes.fromhex(digits))
            except ValueError:
                raise ValueError(
                    f"column {field.name!r}: {digits[:40]!r} is not pairs of hexadecimal digits,"
                    " as which binary values are written"
                ) from None
        values = pa.array(decoded, plain)
    return values if values.type == wanted else values.cast(wanted)


def _is_binary(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
