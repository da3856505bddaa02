"""What every task does around our functions in a Python worker process.

pyspark/daemon.py collects garbage after each task, before the process takes the next one.  With the kernels
and their compiler loaded that is a walk over a million objects, some 80 ms, on the way of every stage.  They
stay as long as the process does, so they are set aside from collections (``gc.freeze``) when a function has
run for the first time and has loaded what it needs.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator

import pyarrow as pa

from lftj.errors import CartesianProductWarning

Batches = Iterator[pa.RecordBatch]
TaskFunction = Callable[[Batches], Batches]

_settled: set[str] = set()


def in_worker(function: TaskFunction, does: str) -> TaskFunction:
    """The function, as ``mapInArrow`` shall run it; ``does``: what Spark's plans call it."""
    name = f"{function.__module__}.{function.__qualname__}"

    def run(batches: Batches) -> Batches:
        quiet()
        yield from function(batches)
        settle(name)

    run.__name__ = does
    return run


def quiet() -> None:
    """Cells do not repeat what the driver has warned about."""
    warnings.simplefilter("ignore", CartesianProductWarning)


def settle(name: str) -> None:
    """Set aside from garbage collection what is loaded, once per name."""
    if name not in _settled:
        _settled.add(name)
        gc.collect()
        gc.freeze()
