"""The process that Spark forks its Python workers from, with the engine loaded.

    spark.python.daemon.module    spark_bridge.worker_daemon

Spark's own daemon has imported next to nothing: each worker imports pyarrow, numba and the engine, and reads
the compiled kernels, which is two to three seconds of a processor for each of them.  Forked from here a
worker has all of that, in memory that it shares with the others.  The setting is one of the application's,
given before its session is made.

Invariants

1. Nothing but the daemon's own answers goes to standard output, which Spark reads.
2. No thread of Python's runs when a worker is forked.  Arrow's pools are made anew in what is forked.
3. What was loaded here is set aside from garbage collection, as :mod:`spark_bridge.placing.worker_process`
   does in workers.

Cost: some 3 s of a processor once per application, executor and environment of workers.  What plans queries
of data sources and commits for them is forked from daemons of its own, which do without the kernels.
"""

from __future__ import annotations

import gc
import sys

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import spark_bridge.join
import spark_bridge.maintained_join  # noqa: F401
from lftj.database.database import Database
from maintenance import Workspace

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
RULES = """
tri(a, b, c) <- e(a, b), e(b, c), e(a, c).
n[c] = count(), s[c] = sum(a) <- e(a, b), e(b, c), !e(a, c).
"""


def load() -> None:
    """Read the kernels that nearly all cells use; one that is not compiled yet is compiled."""
    database = Database()
    database.load("e", EDGES, columns=["a", "b"])
    database.query("h(a, b, c) <- e(a, b), e(b, c), e(a, c).", threads=1)
    workspace = Workspace()
    workspace.load("e", EDGES, columns=["a", "b"])
    workspace.install(RULES)
    with workspace.transaction() as transaction:
        transaction.insert("e", [(2, 4)])
        transaction.erase("e", [(1, 3)])
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["pyspark.worker"]):
        load()
    manager()
