"""Times as a user says and sees them, and as clocks and waterlines have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import RangeError, StreamError, TypeClashError
from lftj.values.schema import ColumnType


def code_of(type_: ColumnType, moment: Any) -> int:
    """The last time of a stream's column that is not behind a moment: a Python value, or an Arrow scalar.

    Raises StreamError for what is no time of that type.
    """
    value = moment.as_py() if isinstance(moment, pa.Scalar) else moment
    try:
        low, high = type_.domain.interval("<=", value)
    except (TypeClashError, RangeError, TypeError, ValueError):
        low, high = 0, -1
    if high < low or value is None:
        raise StreamError(
            f"advance({value!r}): the clock of the streams is of type {type_.arrow}: give such a time"
        )
    return high


def moment_of(type_: ColumnType, code: int | None) -> Any:
    """The Python value of a code; None for None."""
    return None if code is None else type_.domain.decode(np.array([code], np.int64), type_.arrow)[0].as_py()
