"""What a join has sent and found, counted as its rows pass, in Spark's observed metrics.

    stats = JoinStats()
    join(rule, {"edge": edges}, stats=stats).count()
    stats.heads["tri"].packets

There is no job for it: three operators of the plan count, and Spark tells what they have with the action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from spark_bridge.placing.tagged_input import TAG, TaggedInput

METRICS = "lftj join"
"""With what the names of a join's observed metrics begin; a head, and what is counted, stand behind."""


@dataclass(frozen=True)
class HeadStats:
    """Of a head that cells found: ``rows`` of each relation or head that it read, before they were copied;
    ``packets`` that were sent, and their ``packet_bytes``; ``found``: its own rows.
    """

    rows: Mapping[str, int]
    packets: int
    packet_bytes: int
    found: int


class JoinStats:
    """What a join did, head by head, to be given to one as ``stats=``; of several joins, the last one's.

    Heads that are Spark's own joins are not there: Spark's own metrics tell of these.
    """

    def __init__(self) -> None:
        self._observed: dict[str, dict[str, Observation]] = {}

    @property
    def heads(self) -> Mapping[str, HeadStats]:
        """By head what the first action on the DataFrame has counted; waits for it, where there was none."""
        return {
            head: HeadStats(
                {name: int(often) for name, often in of["rows"].get.items()},
                int(of["packets"].get["packets"]),
                int(of["packets"].get["packet_bytes"] or 0),
                int(of["found"].get["found"]),
            )
            for head, of in self._observed.items()
        }

    def begin(self) -> None:
        """Forget what was counted."""
        self._observed = {}

    def inputs(self, head: str, tagged: TaggedInput) -> TaggedInput:
        """The rows of a head's relations, counted."""
        counts = [F.count_if(F.col(TAG) == tag).alias(name) for tag, (name, _) in enumerate(tagged.relations)]
        return replace(tagged, frame=self._counted(head, "rows", tagged.frame, *counts))

    def packets(self, head: str, frame: DataFrame) -> DataFrame:
        """The packets that go to its cells, counted."""
        n_bytes = F.sum(F.octet_length("rows")).alias("packet_bytes")
        return self._counted(head, "packets", frame, F.count("*").alias("packets"), n_bytes)

    def found(self, head: str, frame: DataFrame) -> DataFrame:
        """Its rows, counted."""
        return self._counted(head, "found", frame, F.count("*").alias("found"))

    def _counted(self, head: str, what: str, frame: DataFrame, *counts: Column) -> DataFrame:
        observation = Observation(f"{METRICS} {head} {what}")
        self._observed.setdefault(head, {})[what] = observation
        return frame.observe(observation, *counts)
