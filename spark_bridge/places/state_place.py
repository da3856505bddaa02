"""`StatePlace`: what a maintained join asks of the place where its state lives.

    MaintainedJoin  --  changes in order  -->  a place  -->  changes of the head

    ExecutorState   files of many partitions, stepped by tasks of one query (`executor_state`)
    DriverState     a workspace in a folder of the driver (`driver_state`)

Invariants of each

1. A batch is in the state as a whole, with its source and number, or not at all, whoever dies when.
2. A source's batch that is not above the last one applied of that source is not applied.
3. Batches of one process on one state take turns, also those of streams, which have a thread of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lftj.errors import ChangeError, UnknownRelationError
from maintenance.event_time.stream_state import Late
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.stages.batch_stats import BatchStats, DriverStats
from spark_bridge.state.manifest import StateManifest

OWN = ""
"""The source of batches that are given without one."""

MOST_BATCHES = 2**63


class StatePlace(ABC):
    """The state of a program somewhere; it can be pickled."""

    def __init__(self, program: ReadProgram, session: SparkSession) -> None:
        self.program = program
        self.stats: BatchStats | DriverStats | None = None
        self.why = ""
        """Why the state is here, where that was chosen."""
        self._session: SparkSession | None = session

    def settled(self) -> StatePlace:
        """The place to ask from now on: another one, where the state has moved."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None}

    @property
    def session(self) -> SparkSession:
        """That of the relations, or of the last micro-batch; in another process the active one."""
        if self._session is None:
            self._session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return self._session

    @session.setter
    def session(self, session: SparkSession) -> None:
        self._session = session

    @property
    @abstractmethod
    def manifest(self) -> StateManifest:
        """What the newest version says, be it in a file or not."""

    @property
    def version(self) -> int:
        """Number of the newest version: 1 is the first."""
        return self.manifest.version

    def applied(self, source: str) -> int | None:
        """The last batch that was applied of a source."""
        return self.manifest.applied.get(source)

    @abstractmethod
    def table(self, head: str) -> DataFrame:
        """The rows of a result as they are now."""

    @abstractmethod
    def changes(self, head: str, batch_id: int | None, source: str) -> DataFrame:
        """What a batch changed in a result, by default the last one of the source."""

    @abstractmethod
    def explain(self) -> str:
        """How the state is kept."""

    @property
    @abstractmethod
    def now(self) -> Any:
        """The time that has come in all streams."""

    @abstractmethod
    def late(self, stream: str) -> Late:
        """How many rows of a stream came too late so far."""

    @abstractmethod
    def late_rows(self, stream: str, batch_id: int | None, source: str) -> DataFrame:
        """The rows of a stream that came too late with a batch, the last one by default."""

    @abstractmethod
    def once(
        self,
        frame: DataFrame | None,
        reader: TagReader | None,
        batch_id: int | None,
        source: str,
        advance: Any = None,
    ) -> DataFrame:
        """The changes of the first result that a batch makes, or has made.

        ``frame``: changes in order, which ``reader`` takes apart; None: there are none.
        """

    @abstractmethod
    def repartition(self, partitions: int | None, shares: Any) -> None:
        """Build the state anew under other grids."""

    @abstractmethod
    def check(self) -> None:
        """Compute the head anew from the relations that the state has, and compare.

        Raises VerificationError where it is another one.
        """

    @abstractmethod
    def compact(self) -> None:
        """Write the state anew, as small as it can be."""

    @abstractmethod
    def close(self) -> None:
        """Give back what this process holds of the state."""

    @abstractmethod
    def refuse_remote_stream(self) -> None:
        """Raise StateError where the batches of a stream would run where the state is not."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The results, the asked one first."""
        return self.program.text.targets

    def chosen(self, head: str | None) -> str:
        """A result by name, by default the first one.  Raises UnknownRelationError."""
        if head is not None and head not in self.heads:
            raise UnknownRelationError(f"{head!r} is not kept here; results are {', '.join(self.heads)}")
        return self.heads[0] if head is None else head

    def refuse_no_stream(self, name: str) -> None:
        """Raise UnknownRelationError unless a relation is a stream."""
        streams = dict(self.program.text.streams)
        if name not in streams:
            raise UnknownRelationError(f"{name!r} is no stream; streams are {', '.join(streams) or 'none'}")


def checked_batch(number: int) -> int:
    """A batch's number.  Raises ChangeError if it can't be one."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_BATCHES:
        raise ChangeError(f"batch_id is {number!r}; batches are numbered from 0 to below 2**63")
    return number
