"""`Moving`: a state in the driver that has outgrown it goes to the executors.

    workspace, version n  --  relations, clock, account, last batches  -->  manifest, version n + 1

Invariant: the manifest decides.  Until it is in place the state is the workspace; then the workspace counts
for nothing, and is deleted, by whoever opens the state if need be.

Cost: that of making the state, from relations that the driver sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from maintenance import Workspace
from spark_bridge.cells.stream_engine import held
from spark_bridge.places.executor_state import Beginning, ExecutorOptions, ExecutorState
from spark_bridge.places.kept_workspace import KeptWorkspace, delete_at
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.state.delta_head import DeltaTarget
from spark_bridge.state.frames import sent_frame
from spark_bridge.state.store import StateStore


def is_moved(path: Path) -> bool:
    """Whether a state that was made in the driver is on the executors."""
    return StateStore(path).newest() is not None


@dataclass(frozen=True)
class Moving:
    """``driver_bytes``: of a workspace; one that has more moves.

    ``program``: as executors keep it; None where they can't, and ``refusal`` says why.
    """

    driver_bytes: int
    program: ReadProgram | None
    refusal: str
    options: ExecutorOptions
    deltas: Mapping[str, DeltaTarget]

    def has_outgrown(self, workspace: Workspace) -> bool:
        """Whether a workspace has more than is allowed."""
        return sum(workspace.stats.memory_bytes.values()) > self.driver_bytes

    def is_due(self, workspace: Workspace) -> bool:
        """Whether it is to move."""
        return self.program is not None and self.has_outgrown(workspace)

    def moved(self, kept: KeptWorkspace, session: SparkSession) -> ExecutorState:
        """The state on the executors; the caller has its turn.  What it raises leaves it in the driver."""
        assert self.program is not None
        text, workspace = self.program.text, kept.workspace
        schemas = {name: (name, schema) for name, schema in text.relations}
        if text.final is not None:
            plan = text.plans()[-1]
            schemas[held(plan.name)] = text.final.name, plan.arrow_schema
        frames = {
            name: sent_frame(session, workspace[source].table, schema)
            for name, (source, schema) in schemas.items()
        }
        beginning = Beginning(frames, kept.manifest(), kept.told.read_table)
        try:
            return self.opened(kept.path, session, beginning)
        finally:
            if is_moved(kept.path):
                delete_at(kept.path)

    def opened(self, path: Path, session: SparkSession, beginning: Beginning | None = None) -> ExecutorState:
        """The state that is there on the executors, or begins."""
        assert self.program is not None
        return ExecutorState(self.program, session, StateStore(path), self.options, self.deltas, beginning)

    def described(self, workspace: Workspace) -> str:
        """How far it is from moving, in a line."""
        has = f"{sum(workspace.stats.memory_bytes.values()):,} bytes of driver_bytes={self.driver_bytes:,}"
        if self.program is None:
            return f"where='auto': it has {has}, and stays in the driver: {self.refusal}"
        return f"where='auto': it has {has}; with more it moves to the executors"
