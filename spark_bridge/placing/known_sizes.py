"""Inputs that Spark's optimizer knows to be small: they are not worth a sample.

A sample is two stages with a Python pass each, about a third of the time of a join that is small otherwise.
What it would find out, values that are frequent, moves work from one of a few cells to others, and there is
little of it.

The optimizer's estimate takes no job.  It is too large for what it knows nothing of, so such inputs are
sampled; those of a plan that multiplies rows can be larger than it says, which costs balance, not
correctness.  Over Spark Connect it can't be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_bridge.placing.grids import HeadGrids, InputSample, plan_grids
from spark_bridge.placing.head_plan import HeadPlan

SMALL_BYTES = 4 << 20
"""All inputs of a head together; compressed, where they are files."""

FEW_PARTITIONS = 8
"""More cells are worth a sample whatever the inputs' size: the work of a frequent value stays in one."""

ONE_PROCESS = 256 << 20
"""Bytes of relations that one process keeps with ease, a driver among them."""

IN_PROCESS = 16
"""Bytes of a value of a relation there, an index or two among them, about."""

_BYTES_PER_VALUE = 8
_MOST_BYTES = 1 << 40  # of an estimate: those of joins are products


def small_grids(relations: Mapping[str, DataFrame], plan: HeadPlan, partitions: int) -> HeadGrids | None:
    """The grids of a head whose inputs are small relations, by their sizes alone; None where they may not be.

    ``relations``: those that the caller gave; of another head's rows the optimizer knows nothing.
    """
    if partitions > FEW_PARTITIONS or any(name not in relations for name in plan.reads):
        return None
    sizes = {name: _estimated_bytes(relations[name]) for name in plan.reads}
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(known) < len(sizes) or sum(known.values()) > SMALL_BYTES:
        return None
    rows = {name: size / (_BYTES_PER_VALUE * len(relations[name].columns)) for name, size in known.items()}
    return plan_grids(plan, InputSample(rows, {}), partitions)


def counted_grids(
    rows: Mapping[str, int], schemas: Mapping[str, pa.Schema], plan: HeadPlan, partitions: int
) -> HeadGrids | None:
    """The grids of a head whose inputs have been counted; None where they are not small, or cells are many.

    ``schemas``: of what it reads.
    """
    n_bytes = sum(rows[name] * len(schema) * _BYTES_PER_VALUE for name, schema in schemas.items())
    if partitions > FEW_PARTITIONS or n_bytes > SMALL_BYTES:
        return None
    return plan_grids(plan, InputSample({name: float(rows[name]) for name in schemas}, {}), partitions)


def unsampled_grids(relations: Mapping[str, DataFrame], plan: HeadPlan, partitions: int) -> HeadGrids:
    """The grids of a head by the optimizer's estimates alone, whatever the inputs' sizes.

    A sample reads its inputs a second time: over inputs that are heads themselves, head by head, the query
    would double each time.
    """
    rows = {}
    for name in plan.reads:
        size = _estimated_bytes(relations[name]) or SMALL_BYTES
        rows[name] = min(size, _MOST_BYTES) / (_BYTES_PER_VALUE * len(relations[name].columns))
    return plan_grids(plan, InputSample(rows, {}), partitions)


def _estimated_bytes(frame: DataFrame) -> int | None:
    """The optimizer's estimate of a DataFrame's size; None where it can't be had."""
    classic = getattr(frame, "_jdf", None)  # Connect's frames say that they have none
    if classic is None:
        return None
    try:
        return int(classic.queryExecution().optimizedPlan().stats().sizeInBytes())
    except PySparkException:  # what is wrong with the query is said when it runs
        return None
