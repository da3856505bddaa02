"""A task that ends when it has given as many rows as are asked for."""

from __future__ import annotations

from spark_bridge.placing.worker_process import Batches, TaskFunction


def at_most(most: int | None, function: TaskFunction) -> TaskFunction:
    """A task that gives no more than ``most`` of the rows of another one, of None all."""
    if most is None:
        return function
    wanted = most

    def first_rows(batches: Batches) -> Batches:
        left = wanted
        for batch in function(batches):
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    return first_rows
