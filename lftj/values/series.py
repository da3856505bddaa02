"""Series of equal steps: the lists that ``range`` gives, of integers and of times, as DuckDB's does.

Cost: whole-array operations over the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.arithmetic import Refused
from lftj.values.binding import Argument, Bound
from lftj.values.kinds import finer_unit, kind, plain_type

_MOST = 2**31 - 1


def bind_range(arguments: Sequence[Argument]) -> Bound:
    """``range(end)``, ``range(start, end)``, ``range(start, end, step)``; of times by a duration."""
    given = [plain_type(argument.type) for argument in arguments]
    kinds = [kind(type_) for type_ in given]
    if set(kinds) == {"integer"}:
        types: tuple[pa.DataType, ...] = (pa.int64(),) * len(given)
    elif kinds == ["timestamp", "timestamp", "duration"] and given[0].tz == given[1].tz:
        unit = reduce(finer_unit, (type_.unit for type_ in given))
        types = (*[pa.timestamp(unit, given[0].tz)] * 2, pa.duration(unit))
    else:
        shown = ", ".join(map(str, given))
        way = "it takes integers, or two timestamps and a duration"
        raise TypeClashError(f"there is no range for types {shown}: {way}")
    return Bound(tuple(range(len(given))), types, pa.list_(types[0]), series)


def series(*bounds: pa.Array) -> pa.Array:
    """From each start, or 0, on by each step, or 1, before each end.

    Raises :class:`Refused` for steps of 0, and beyond what a list holds.

    >>> series(pa.array([0, 5, 5]), pa.array([3, 1, 1]), pa.array([2, -2, 2])).to_pylist()
    [[0, 2], [5, 3], []]
    """
    type_ = bounds[0].type
    given = [part.cast(pa.int64()).to_numpy() for part in bounds]
    first, end = given[:2] if len(given) > 1 else (np.zeros_like(given[0]), given[0])
    step = given[2] if len(given) > 2 else np.ones_like(end)
    if (step == 0).any():
        raise Refused("a range by steps of 0")
    # What is left of the way, as unsigned numbers, in which no difference overflows.
    up = step > 0
    low, high = np.where(up, first, end).view(np.uint64), np.where(up, end, first).view(np.uint64)
    size = np.where(up, step, -step).view(np.uint64)
    way = np.where(np.where(up, end > first, end < first), high - low, np.uint64(0))
    n_steps = (way // size) + (way % size != 0)
    ends = np.cumsum(np.minimum(n_steps, _MOST + 1).astype(np.int64))
    if len(ends) and (n_steps.max() > _MOST or ends[-1] > _MOST):
        raise Refused("more values than a list holds")
    counts = n_steps.astype(np.int64)
    number = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    values = np.repeat(first, counts) + number * np.repeat(step, counts)
    return pa.ListArray.from_arrays(
        pa.array(np.append(0, ends), pa.int32()), pc.cast(pa.array(values), type_)
    )
