"""What is measured: for each workload its tables, its question in every engine's words, and the targets.

The question is asked of all engines over the same tables.  A key of
``queries`` is an engine's name, or ``engine:variant`` for a second wording of
the same question; an engine without a key has no such query and the results
say so.  GraphBLAS has no query language: its "queries" name the functions of
:mod:`bench.peers.graphblas_engine`.

Every ``expected`` count was found by at least two engines, or is published.
"""

from __future__ import annotations

from bench.joins.grouped_sums import grouped_sums
from bench.joins.lsqb import lsqb
from bench.joins.patterns import RMAT_COUNTS, adversarial, cliques, paths, triangles
from bench.joins.recursion import closure, components, document, ontology, same_generation
from bench.joins.star_joins import star_joins
from bench.joins.startup import starting
from bench.joins.throughput import listing, loading, product
from bench.maintenance.existence import existence
from bench.maintenance.signed_sums import signed_sums
from bench.maintenance.workloads import (
    BULK_TARGETS,
    batches,
    bulk_loads,
    closure_churn,
    commits,
    view_building,
)
from bench.spark import workloads as spark_workloads
from bench.workload import Target, Workload


def full() -> list[Workload]:
    """All of docs/design/targets.md "Joins", what is run in Spark, and what of "Maintenance" there is."""
    return [
        triangles(
            "email-enron",
            727_044,
            "email-enron",
            (Target("ratio", 4, 10, "duckdb"), Target("ratio", 4, 10, "ladybug")),
        ),
        cliques("email-enron", 2_341_639, "email-enron", (Target("ratio", 20, 50, "duckdb"),)),
        triangles(
            "rmat-17",
            RMAT_COUNTS[17],
            "RMAT 17/8",
            (
                Target("ratio", 10, None, "duckdb"),
                Target("ratio", 3, None, "ladybug"),
                Target("ratio", None, 1, "graphblas"),
            ),
        ),
        *lsqb(),
        adversarial(500_000, targets=(Target("seconds", 2, 1),), limit=60),
        paths("email-enron", 187_059_171, "email-enron", (Target("ratio", 1 / 1.5, 1, "duckdb"),)),
        *star_joins(),
        *grouped_sums(),
        closure(
            "upward-3000-4436",
            (896_071, 9160312164684357510),
            "3,000 nodes, 4,436 edges upward",
            (Target("seconds", 0.4, 0.1),),
        ),
        closure("directed/ego-facebook", (2_508_102, 5022209624500952569), "ego-facebook, directed"),
        closure(
            "directed/wiki-vote",
            (11_947_132, 3894971817793372970),
            "wiki-vote, directed",
            (Target("seconds", 25, 8),),
            in_duckdb=False,
        ),
        same_generation(2_999, (4_230_706, 18033413635581705783), (Target("seconds", 1, 0.3),)),
        components("email-enron", 1_065, "email-enron"),
        ontology(),
        document(),
        loading(10_000_000, 28, 10_000_000, (Target("seconds", 4, None),)),
        loading(10_000_000, 62, 10_000_000, (Target("seconds", 4, None),)),
        listing("rmat-17", RMAT_COUNTS[17], "RMAT 17/8", (Target("rows/s", 20e6, None),)),
        product(4_000),
        *starting(),
        commits(17),
        closure_churn("upward-3000-4436", 896_071, "3,000 nodes", (Target("changes/s", 2 * 62, 10 * 62),)),
        closure_churn(
            "directed/wiki-vote",
            11_947_132,
            "wiki-vote",
            (Target("seconds", 0.003, 0.0006), Target("p99 ms", 100, 30)),
        ),
        batches(14),
        view_building(17),
        bulk_loads("bulk-load-pathway", 14, BULK_TARGETS),
        existence("mathoverflow"),
        signed_sums(10_000_000, (Target("summands/s", 5e6, None), Target("ratio", None, None, "duckdb"))),
        *spark_workloads.full(),
    ]


def quick() -> list[Workload]:
    """A small workload of every kind, over generated data only: some seconds in all."""
    return [
        triangles("rmat-10", RMAT_COUNTS[10], "RMAT 10/8"),
        cliques("rmat-10", 75_913, "RMAT 10/8"),
        adversarial(1_000),
        paths("rmat-10", 1_116_850, "RMAT 10/8"),
        closure("upward-300-440", (10_550, 10905179214541620170), "300 nodes, 440 edges upward"),
        same_generation(300, (39_421, 780156976480342700)),
        components("upward-300-200", 39, "300 nodes, 200 edges"),
        loading(100_000, 28, 100_000),
        listing("rmat-10", RMAT_COUNTS[10], "RMAT 10/8"),
        *starting()[:3],
        commits(9),
        closure_churn("upward-300-440", 10_550, "300 nodes"),
        batches(9),
        view_building(9),
        bulk_loads("bulk-load-rmat-9", 9),
        existence("random-8"),
        signed_sums(100_000),
    ]


def sweep_triangles(scales: range) -> list[tuple[int, Workload]]:
    """Triangles of RMAT graphs of growing scale, with the number of edges drawn."""
    return [
        (8 << scale, triangles(f"rmat-{scale}", RMAT_COUNTS[scale], f"RMAT {scale}/8")) for scale in scales
    ]


def sweep_adversarial(doublings: range) -> list[tuple[int, Workload]]:
    """The adversarial triangle of growing size, with the number of edges."""
    sizes = [1_000 << doubling for doubling in doublings]
    return [(2 * spokes - 1, adversarial(spokes, "count", limit=20)) for spokes in sizes]


def sweep_commits(scales: range) -> list[tuple[int, Workload]]:
    """Commits of one edge over RMAT graphs of growing scale, with the number of edges drawn."""
    return [(8 << scale, commits(scale)) for scale in scales]


def named(name: str) -> Workload:
    """The workload called ``name``, full, quick or of a sweep.

    >>> named("triangles-rmat-10").expected
    24305
    """
    steps = sweep_triangles(range(8, 18)) + sweep_adversarial(range(10)) + sweep_commits(range(8, 18))
    sweeps = [workload for _, workload in steps]
    for workload in [*full(), *quick(), *spark_workloads.quick(), *sweeps]:
        if workload.name == name:
            return workload
    raise KeyError(f"no workload is called {name!r}")
