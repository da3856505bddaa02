"""Where a state is made, or opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pyspark.sql import DataFrame

from lftj.errors import StateError
from spark_bridge.places.driver_state import DriverState, driver_program, local_path
from spark_bridge.places.executor_state import ExecutorOptions, ExecutorState, executor_program
from spark_bridge.places.kept_workspace import has_workspace
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.places.state_place import StatePlace
from spark_bridge.state.delta_head import DeltaTarget
from spark_bridge.state.store import StateStore

Where = Literal["driver", "executors"]


def check_where(where: str) -> None:
    """Raise ValueError for what is no place."""
    if where not in get_args(Where):
        raise ValueError(f"where is {where!r}; it can be {' or '.join(map(repr, get_args(Where)))}")


def placed(
    where: Where,
    program: ReadProgram,
    relations: Mapping[str, DataFrame],
    state: str | os.PathLike[str],
    options: ExecutorOptions,
    applied: Mapping[str, int],
    delta: DeltaTarget | None,
) -> StatePlace:
    """The state of a program at a path, made there if there is none.

    Raises StateError for a state of another place, and for options that are about another place.
    """
    if where == "executors":
        text = os.fspath(state)
        if "://" not in text and has_workspace(Path(text)):
            raise _elsewhere(text, "driver", where)
        executed = executor_program(program)
        return ExecutorState(executed, relations, StateStore(state), options, applied, delta)
    if options.given:
        raise StateError(
            f"{options.given[0]}= is about partitions, and a state in the driver has none: leave it out, or"
            " give where='executors'"
        )
    path = local_path(state)
    kept = driver_program(program)
    if StateStore(path).newest() is not None:
        raise _elsewhere(str(path), "executors", where)
    return DriverState(kept, relations, path, applied, delta)


def _elsewhere(path: str, made: Where, asked: Where) -> StateError:
    return StateError(
        f"state path {path!r} was made for where={made!r}, not {asked!r}: give another state path, or"
        f" where={made!r}"
    )
