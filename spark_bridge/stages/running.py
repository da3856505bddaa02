"""A batch as one query: its rows are placed, and go through one stage after the other."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lftj.errors
from lftj.errors import LftjError
from spark_bridge.placing.packets import SPARK_SCHEMA, CellAddress
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.worker_process import in_worker
from spark_bridge.stages.clock_stage import BatchClock
from spark_bridge.stages.placing_changes import placing_changes
from spark_bridge.stages.stages import SparkStage, StageChain
from spark_bridge.stages.worker import RECEIPT, Receipt, StageWorker


def run_stages(
    chain: StageChain,
    frame: DataFrame,
    reader: TagReader,
    worker: Callable[[SparkStage], StageWorker],
    tasks: int,
    clock: BatchClock | None = None,
) -> list[Receipt]:
    """The receipts of all partitions that a batch reaches.

    ``worker``: what steps the partitions of a stage; ``tasks`` share them, each stage anew.  ``clock``: from
    where its streams go on, if it has some.

    Raises an error that a receipt of the earliest stage has.
    """
    packets = frame.mapInArrow(
        in_worker(placing_changes(chain, reader, clock), f"{chain.text.result}: place changes"), SPARK_SCHEMA
    )
    if clock is not None:
        packets = packets.unionAll(_wake(frame.sparkSession, chain.stage_of("clock").number))
    by = F.expr(f"pid % {tasks}")
    for stage in chain.stages:
        step = in_worker(worker(stage).packets, f"{_name(chain, stage)}: {stage.kind}")
        packets = packets.repartitionById(tasks, by).mapInArrow(step, SPARK_SCHEMA)
    rows = packets.collect()
    receipts = [Receipt.of(bytes(row["rows"])) for row in rows if row["read"] == RECEIPT]
    # A later stage has seen a part of the changes only: what it complains of may follow from that.
    errors = sorted((receipt for receipt in receipts if receipt.error), key=_stage_number)
    if errors:
        raise getattr(lftj.errors, errors[0].error, LftjError)(errors[0].message)
    return receipts


def _name(chain: StageChain, stage: SparkStage) -> str:
    """The head that a stage is of, or the result, which all are for."""
    return chain.plans[stage.head].name if stage.head >= 0 else chain.text.result


def _wake(session: SparkSession, stage: int) -> DataFrame:
    """A packet for the stage of the clock that says nothing: it goes on where no row comes, too."""
    grid = CellAddress(0, 0, ()).grid_text()
    values = ("0", "0", f"'{grid}'", "'told'", "''", str(stage))
    return session.range(1, numPartitions=1).selectExpr(
        *(
            f"CAST({value} AS {field.dataType.simpleString()}) AS {field.name}"
            for value, field in zip(values, SPARK_SCHEMA, strict=True)
        )
    )


def _stage_number(receipt: Receipt) -> int:
    """The stage that a receipt is of; -1 for the placing of the inputs."""
    return int(receipt.partition.partition("-")[0] or -1)
