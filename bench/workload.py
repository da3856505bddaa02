"""`Workload` and `Target`: what is measured, and what it must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Task = Literal[
    "count",
    "tables to count",
    "list",
    "load",
    "process",
    "inside",
    "compile",
    "commit",
    "put back",
    "batch",
    "install",
    "bulk load",
    "window",
    "sums",
    "spark count",
    "spark list",
    "spark batches",
    "spark stream",
]
"""What one timed run does.

``count``: count the results; tables are loaded and, after the first run, indexed.
``tables to count``: a new database, loading from Arrow tables in memory, and the count.
``list``: produce every result as Arrow record batches, each dropped when the next one comes.
``load``: a new database, loading from Parquet, and the first index.

The rest are whole Python processes (:mod:`bench.joins.startup`); their "query" is Python code that
leaves the count in ``answer`` and may leave seconds in ``seconds``:

``process``: the whole process is timed.  ``inside``: what the code timed itself.
``compile``: what the code timed itself, with no compiled code kept from before; one run.

The others keep rules' heads up to date (:mod:`bench.maintenance.maintained`):

``commit``: one transaction that changes one tuple, from its beginning to its end.
``put back``: the same, where each edge that is erased is inserted again by the next transaction.
``batch``: many such transactions in one call.
``install``: a rule is installed over relations that are loaded and indexed.
``bulk load``: a new workspace, loading from Arrow tables in memory, and the rule's head.
``window``: one change of a window that slides over a stream of edges (:mod:`bench.maintenance.edge_window`).
``sums``: signed summands to the exact sums of their groups (:mod:`bench.maintenance.signed_sums`).

In a Spark session on one machine, from Parquet files; "lftj" is ``spark_bridge`` there
(:mod:`bench.spark.workloads`):

``spark count``: the results counted.  ``spark list``: every row made, and dropped by Spark's noop sink.
``spark batches``: one batch of changes applied to a maintained join, to its commit.
``spark stream``: one batch of a stream that maintains a join, with all that Spark does around it.
"""

MAINTENANCE: frozenset[Task] = frozenset(
    {"commit", "put back", "batch", "install", "bulk load", "window", "sums"}
)
"""Tasks of rules that are kept up to date."""

IN_SPARK: frozenset[Task] = frozenset({"spark count", "spark list", "spark batches", "spark stream"})
"""Tasks that lftj and Spark run in a Spark session each."""


BATCH_ROWS = 65_536
"""Rows of a record batch, where results are listed."""


Measure = Literal[
    "ratio", "seconds", "rows/s", "bytes/record", "memory ratio", "operations ratio", "summands/s"
]


@dataclass(frozen=True)
class Target:
    """A floor and a goal for lftj's median (docs/design/targets.md).

    ``ratio``: the peer's median over lftj's, at least.  ``seconds``: at most.
    ``rows/s``: at least.  ``bytes/record``: memory of a sensitivity record, at most.
    ``memory ratio``: the peer's peak memory over lftj's, at least.
    ``operations ratio``: counted operations of maintenance by delta rules over lftj's, at least.
    ``summands/s``: signed summands that the exact accumulators take, at least.
    ``changes/s``: changes over the sum of their commits' times, at least.
    ``p99 ms``: the time of all but a hundredth of the commits, at most.
    """

    measure: Literal[
        "ratio",
        "seconds",
        "rows/s",
        "bytes/record",
        "memory ratio",
        "operations ratio",
        "summands/s",
        "changes/s",
        "p99 ms",
    ]
    floor: float | None
    goal: float | None
    peer: str = ""


@dataclass(frozen=True)
class Workload:
    """One question over some tables.

    Attributes:
        name: How ``--only`` calls it.
        title: How the results call it.
        tables: Relation name to the name of a table in :mod:`bench.datasets`.
        queries: Engine, or engine:variant, to the question in its words.
        expected: The count that every engine must find before it is timed.
        checksum: The sum of the results' hashes (:mod:`bench.digest`), which every engine that tells
            one must find too; None where none is asked.
        ends: For graph databases: kinds of node at both ends of each table's rows.
        threads: The number of threads of every engine.
        batch: Changes of one run, where changes come in batches.
        window: Arrivals in the window, where it slides.
        limit: Seconds that one run of a peer may take; None is the harness's default.
        keys: In Spark, by relation columns in which no two of its rows agree.
        note: What a reader of the results has to know.
    """

    name: str
    title: str
    tables: Mapping[str, str]
    queries: Mapping[str, str]
    expected: int
    task: Task = "count"
    targets: tuple[Target, ...] = ()
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    threads: int = 1
    batch: int = 1
    window: int = 0
    limit: float | None = None
    note: str = ""
    checksum: int | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
