"""Exact sums of floats under inserts and erasures, by group: the workloads `signed-sums`.

Summands come with a weight, +1 or -1; a sixth of the rows takes back a row before.
Their exponents are spread over a wide range, so sums in floating point lose digits.

lftj: one run is one stage of a maintained ``sum``, from the signed rows in any
order to the rounded sums of all groups (:mod:`maintenance.groups.grouped`).  The figure
``summands/s`` is that of the accumulators alone, the rows being sorted by group
already (:mod:`maintenance.groups.sums`).  DuckDB: ``fsum``, Kahan's compensated
sum, computed anew.  The sums of lftj are compared bit by bit with ``math.fsum``;
how many of DuckDB's differ is told.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from bench.workload import Target, Workload

GROUPS = 10_000
SPREAD = 40
"""Exponents of the summands go from -SPREAD to SPREAD."""


def signed_sums(rows: int, targets: tuple[Target, ...] = ()) -> Workload:
    """So many signed summands in :data:`GROUPS` groups."""
    return Workload(
        f"signed-sums-{rows}",
        f"exact sums of {rows:,} signed summands in {GROUPS:,} groups",
        {"summands": f"summands-{rows}"},
        {"lftj": "sum(v)", "duckdb": "SELECT g, fsum(v * w) AS v FROM summands GROUP BY g"},
        GROUPS,
        task="sums",
        targets=targets,
        note="one run of lftj is a whole stage of the maintained aggregate; summands/s is the rate of the "
        "exact accumulators alone. DuckDB: fsum, compensated and not exact.",
    )


def random_summands(rows: int) -> pa.Table:
    """Signed rows (g, v, w): each erasure takes back an insertion before it; every group keeps some."""
    generator = np.random.default_rng(rows)
    taken = rows // 6
    group = generator.integers(0, GROUPS, rows - taken)
    group[:GROUPS] = np.arange(GROUPS)
    value = generator.standard_normal(rows - taken) * 2.0 ** generator.integers(-SPREAD, SPREAD, rows - taken)
    back = GROUPS + generator.permutation(rows - taken - GROUPS)[:taken]
    columns = (np.append(group, group[back]), np.append(value, value[back]))
    weight = np.repeat(np.array([1, -1]), [rows - taken, taken])
    return pa.table({"g": columns[0], "v": columns[1], "w": weight})


def exact_sums(summands: pa.Table) -> np.ndarray:
    """``math.fsum`` of each group's signed values."""
    order = np.argsort(summands["g"].to_numpy(), kind="stable")
    values = (summands["v"].to_numpy() * summands["w"].to_numpy())[order]
    ends = np.cumsum(np.bincount(summands["g"].to_numpy(), minlength=GROUPS))
    return np.array([math.fsum(part) for part in np.split(values, ends[:-1])])
