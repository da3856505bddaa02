"""What a batch took; on executors also how well the grids fit what there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maintenance.stats import TransactionStats
from maintenance.workspace.metrics import Metrics, figure_lines
from spark_bridge.placing.plan_fit import PlanFit
from spark_bridge.stages.worker import Receipt


@dataclass(frozen=True)
class BatchStats:
    """What the last batch took on executors.

    Attributes:
        seconds: From the call to the commit.
        partitions: Partitions of all stages that were stepped.
        engines: How many of them had their engine from where: ``kept`` in the worker, ``caught up`` from an
            earlier state there, ``image``, ``evaluated`` anew, ``new`` for a partition's first rows.
        head_changes: Rows of changes of the result.
        cells: How many cells had changes; of all heads, as all figures but ``head_changes``.
        anew: How many of them were joined anew, since that costs less than to maintain them, or was asked
            for; cells that are new are not counted.
        changed: Rows of changes that cells got, copies counted.
        late: By stream, rows that came too late; of those that had some.
        expired: By stream whose rows a rule reads, rows that left it.
        plan: How far rows and skew have left what the grids were planned for
            (:class:`~spark_bridge.placing.plan_fit.PlanFit`).
    """

    seconds: float
    partitions: int
    engines: Mapping[str, int]
    head_changes: int
    cells: int
    anew: int
    changed: int
    late: Mapping[str, int]
    expired: Mapping[str, int]
    plan: PlanFit

    @classmethod
    def of(cls, receipts: Sequence[Receipt], seconds: float, plan: PlanFit) -> BatchStats:
        late: Counter[str] = Counter()
        expired: Counter[str] = Counter()
        for receipt in receipts:
            late.update(receipt.n_late)
            expired.update(receipt.expired)
        receipts = [receipt for receipt in receipts if not receipt.moving]
        return cls(
            seconds=seconds,
            partitions=len(receipts),
            engines=dict(Counter(receipt.source for receipt in receipts)),
            head_changes=sum(receipt.head_rows for receipt in receipts),
            cells=sum(receipt.cells for receipt in receipts),
            anew=sum(receipt.anew for receipt in receipts),
            changed=sum(receipt.changed for receipt in receipts),
            late=dict(late),
            expired=dict(expired),
            plan=plan,
        )


@dataclass(frozen=True)
class DriverStats:
    """What the last batch took in the driver.

    Attributes:
        seconds: From the call to the commit.
        arrival: Seconds of these, until the batch's rows were in the driver.
        head_changes: Rows of changes of the result.
        changed: Rows of changes that came.
        late: By stream, rows that came too late; of those that had some.
        expired: By stream, rows that left it.
        heads: What each head took; None of the making of a state.
    """

    seconds: float
    arrival: float
    head_changes: int
    changed: int
    late: Mapping[str, int]
    expired: Mapping[str, int]
    heads: TransactionStats | None


_METRICS: Metrics = {
    "state_version": ("gauge", "", "The number of the newest version."),
    "applied_batch": ("gauge", "source", "The last batch that was applied of each source."),
    "batch_seconds": ("gauge", "", "What the last batch took here, from the call to the commit."),
    "batch_arrival_seconds": ("gauge", "", "Of these, until its rows were in the driver."),
    "batch_changes": ("gauge", "", "Rows of changes that came with it; on executors copies are counted."),
    "batch_head_changes": ("gauge", "", "Rows of changes of the result."),
    "batch_late": ("gauge", "stream", "Rows of it that came too late."),
    "batch_expired": ("gauge", "stream", "Rows that left with it."),
    "batch_partitions": ("gauge", "", "Partitions of all stages that it stepped."),
    "batch_cells": ("gauge", "", "Cells that it changed."),
    "batch_cells_anew": ("gauge", "", "Of these, those that were joined anew."),
    "plan_grown": ("gauge", "", "Rows of all relations, by those that the grids were planned for."),
    "plan_load": ("gauge", "", "Rows of a cell, by those under the best shares of now."),
    "plan_skew": ("gauge", "", "Rows of the largest partition, by those of one on average."),
}


def state_metrics(version: int, applied: Mapping[str, int], stats: BatchStats | DriverStats | None) -> str:
    """A state and the last batch, as OpenMetrics text.

    >>> print(state_metrics(2, {"": 7}, None))
    # TYPE lftj_state_version gauge
    # HELP lftj_state_version The number of the newest version.
    lftj_state_version 2
    # TYPE lftj_applied_batch gauge
    # HELP lftj_applied_batch The last batch that was applied of each source.
    lftj_applied_batch{source=""} 7
    # EOF
    <BLANKLINE>
    """
    figures: dict[str, object] = {"state_version": version, "applied_batch": applied or None}
    if stats is not None:
        figures |= {
            "batch_seconds": stats.seconds,
            "batch_changes": stats.changed,
            "batch_head_changes": stats.head_changes,
            "batch_late": stats.late or None,
            "batch_expired": stats.expired or None,
        }
    if isinstance(stats, DriverStats):
        figures["batch_arrival_seconds"] = stats.arrival
    if isinstance(stats, BatchStats):
        figures |= {
            "batch_partitions": stats.partitions,
            "batch_cells": stats.cells,
            "batch_cells_anew": stats.anew,
            "plan_grown": stats.plan.grown,
            "plan_load": stats.plan.load,
            "plan_skew": stats.plan.skew,
        }
    return "\n".join([*figure_lines(_METRICS, figures), "# EOF", ""])
