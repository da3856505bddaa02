"""What the batches of a stream have beside those that are applied by hand: an order, metrics, a folder.

Spark counts a stream's batches from 0 in its checkpoint, and gives one again only if it does not know
yet that it was done: the last one.  The state has its own account of what was applied.  Where the two do
not follow from each other, the checkpoint or the state is not what it was, and to go on would leave
batches out, or take what is in them now for what was applied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lftj.errors import StateError
from spark_bridge.placing.tagged_input import TAG, TaggedInput

METRICS = "lftj changes"
"""The name of what a stream observes, in ``StreamingQueryProgress.observedMetrics``."""


def stream_source(checkpoint: str) -> str:
    """The source that a stream's batches belong to."""
    return f"stream {checkpoint}"


def check_next(source: str, number: int, last: int | None) -> None:
    """Raise StateError for a batch of a stream that is neither the one applied last nor the next one.

    >>> check_next("stream /c", 0, None), check_next("stream /c", 7, 7), check_next("stream /c", 8, 7)
    (None, None, None)
    """
    if last is not None and number < last:
        raise StateError(
            f"{source}: Spark gives batch {number}, but batch {last} was applied already. The checkpoint was"
            " made anew or put back, and its batches may have other rows now: put back the one that has batch"
            f" {last}, or give another checkpoint path and read the source from where batch {last} ended"
        )
    if number > (first := 0 if last is None else last + 1):
        raise StateError(
            f"{source}: Spark gives batch {number}, but batches from {first} on were not applied to this"
            " state, which is older than the checkpoint, or another one. Put back the state that has them, or"
            f" make one from relations that have them and say applied={{{source!r}: {number - 1}}}"
        )


def observed(changes: TaggedInput, keys: Collection[str] = ()) -> DataFrame:
    """The rows of changes; how many insert and erase is counted by relation, as they pass.

    ``keys``: the relations that have one, whose changes are events.
    """
    counts = []
    for tag, (name, _) in enumerate(changes.relations):
        weight = F.col(f"s{changes.slots[tag][-1]}")  # it stands behind the relation's own columns
        erases = weight < 0
        if name in keys:
            erases |= F.col(f"s{changes.slots[tag][-2]}") & (weight == 0)
        for what, does in (("inserted", weight > 0), ("erased", erases)):
            counts.append(F.count_if((F.col(TAG) == tag) & does).alias(f"{name}_{what}"))
    return changes.frame.observe(METRICS, *counts)


def to_folder(path: str) -> Callable[[DataFrame, int], object]:
    """A sink: each batch a folder of Parquet files, written as a whole."""

    def deliver(changes: DataFrame, number: int) -> None:
        changes.write.mode("overwrite").parquet(f"{path.rstrip('/')}/batch={number}")

    return deliver
