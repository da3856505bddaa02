"""`Placing`: where a state is made, or opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pyspark.sql import DataFrame

from lftj.errors import FunctionError, RuleError, StateError
from spark_bridge.places.driver_state import DriverState, driver_program, local_path
from spark_bridge.places.executor_state import (
    Beginning,
    ExecutorOptions,
    ExecutorState,
    executor_program,
)
from spark_bridge.places.kept_workspace import delete_at, has_workspace
from spark_bridge.places.moving import Moving, is_moved
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.places.state_place import StatePlace
from spark_bridge.placing.known_sizes import IN_PROCESS, ONE_PROCESS
from spark_bridge.stages.turns import turn_on
from spark_bridge.state.delta_head import DeltaTarget
from spark_bridge.state.store import StateStore

Where = Literal["driver", "executors", "auto"]

DRIVER_BYTES = ONE_PROCESS
"""Of a workspace in the driver, by its own figures; to install the rules takes several times as much."""


def check_where(where: str) -> None:
    """Raise ValueError for what is no place."""
    if where not in get_args(Where):
        raise ValueError(f"where is {where!r}; it can be {', '.join(map(repr, get_args(Where)))}")


@dataclass(frozen=True)
class Placing:
    """A program that is to have a state at a path; ``relations``, ``applied``: of one that is new."""

    program: ReadProgram
    relations: Mapping[str, DataFrame]
    state: str | os.PathLike[str]
    options: ExecutorOptions
    applied: Mapping[str, int]
    deltas: Mapping[str, DeltaTarget]

    def chosen(self, where: Where, driver_bytes: int | None) -> StatePlace:
        """The state, made there if there is none.

        Raises ValueError, StateError for a state of another place, and for options about another place.
        """
        if driver_bytes is not None and (where != "auto" or driver_bytes < 1):
            raise ValueError(f"driver_bytes is {driver_bytes!r}; it is a number of bytes, for where='auto'")
        if where == "auto":
            return self._chosen(DRIVER_BYTES if driver_bytes is None else driver_bytes)
        if where == "driver":
            local_path(self.state)
            if self.options.given:
                raise StateError(
                    f"{self.options.given[0]}= is about partitions, and a state in the driver has none: leave"
                    " it out, or give where='executors'"
                )
        made = self._made()
        if made is not None and made != where:
            raise StateError(
                f"state path {os.fspath(self.state)!r} was made for where={made!r}, not {where!r}: give"
                f" another state path, or where={made!r}"
            )
        return self._in_driver(None) if where == "driver" else self._on_executors()

    def _chosen(self, driver_bytes: int) -> StatePlace:
        """The state where it is, or where it fits."""
        executed, refusal = None, ""
        try:
            executed = executor_program(self.program)
        except (RuleError, FunctionError) as error:
            refusal = str(error).partition("\n")[0]
        movable = executed
        if executed is not None and executed.relations != driver_program(self.program).relations:
            movable = None
            refusal = "rules that the result does not need read other relations: leave them out"
        moving = Moving(driver_bytes, movable, refusal, self.options, self.deltas)
        made = self._made()
        if made == "driver":
            return self._in_driver(moving)
        if made == "executors":
            why = "the state is there"
        elif "://" in os.fspath(self.state):
            why = "the state path is a URI"
        elif executed is not None and (needed := self._needed_bytes(executed)) > driver_bytes:
            why = f"its relations would take some {needed:,} bytes of driver_bytes={driver_bytes:,}"
        else:
            return self._in_driver(moving)
        place = self._on_executors()
        place.why = f"where='auto': on the executors, for {why}"
        return place

    def _needed_bytes(self, program: ReadProgram) -> int:
        """Of the relations in the driver, about; a job for each counts its rows."""
        return sum(
            self.relations[name].count() * len(schema) * IN_PROCESS
            for name, schema in program.relations.items()
        )

    def _made(self) -> Where | None:
        """Where there is a state; what a move to the executors left in the driver goes."""
        local = None if "://" in os.fspath(self.state) else Path(os.path.abspath(self.state))
        if local is None or not has_workspace(local):
            return None if StateStore(self.state).newest() is None else "executors"
        with turn_on(str(local)):
            if not is_moved(local):
                return "driver"
            delete_at(local)
        return "executors"

    def _in_driver(self, moving: Moving | None) -> StatePlace:
        program = driver_program(self.program)
        path = local_path(self.state)
        return DriverState(program, self.relations, path, self.applied, self.deltas, moving).settled()

    def _on_executors(self) -> StatePlace:
        program = executor_program(self.program)
        session = next(iter(self.relations.values())).sparkSession
        beginning = Beginning.new(self.relations, self.applied)
        store = StateStore(self.state)
        return ExecutorState(program, session, store, self.options, self.deltas, beginning)
