"""Places at which a test can stop a process for good, to see what a crash there leaves behind.

Tests set the environment variable ``LFTJ_FAULT`` to stop an application between any two steps of a commit, to
a state in Spark or to a workspace's folder, from a source, or to a sink:
to the name of a point, or to ``name:n`` for the n-th time that this process reaches it.  The process is then
killed with SIGKILL, so that no ``finally`` and no ``atexit`` tidies up.  Worker processes are replaced, and
would be killed over and over: with ``LFTJ_FAULT_ONCE`` the first one makes a file of that name, and later
ones go on.  Without the variable a point costs one look into the environment.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "LFTJ_FAULT"
MARKER = "LFTJ_FAULT_ONCE"

POINTS = (
    "batch: before the job",
    "worker: before writing",
    "worker: written, not reported",
    "batch: job done",
    "commit: before the manifest is written",
    "commit: manifest written, not moved",
    "commit: manifest moved",
    "batch: committed, not cleaned",
    "clean: manifests deleted, data not",
)
"""Those of a state, in the order in which a batch reaches them."""

FOLDER_POINTS = (
    "folder: change written, not on disk",
    "folder: change on disk, not told",
    "folder: journal begun anew, no checkpoint",
    "folder: data written, no manifest",
    "folder: manifest in place, the rest not gone",
)
"""Those of a workspace's folder, in the order in which a commit, and then a checkpoint, reaches them."""

DRIVER_POINTS = ("driver: changes told, not committed",)
"""Those of a batch of a state in the driver of Spark, before the points of its folder."""

SOURCE_POINTS = (
    "source: rows read, not committed",
    "source: committed, not acknowledged",
    "source: acknowledged",
)
"""Those of a batch of a source, with the points of the folder behind the first of them."""

SINK_POINTS = ("sink: rows read, not written", "sink: written, not told")
"""Those of a change on its way to a sink."""

MESSAGE_POINTS = ("sink: messages sent, not kept",)
"""Those of a change as messages, which is kept in the workspace, between the points of a sink."""

_ALL = (*POINTS, *FOLDER_POINTS, *DRIVER_POINTS, *SOURCE_POINTS, *SINK_POINTS, *MESSAGE_POINTS)

_times: dict[str, int] = {}


def reached(point: str) -> None:
    """Kill this process if ``LFTJ_FAULT`` says so.

    Raises ValueError if the variable is set and it, or the caller, names no known point.

    >>> reached("commit: manifest moved")
    """
    fault = os.environ.get(VARIABLE)
    if not fault:
        return
    name, _, count = (fault, "", "1") if fault in _ALL else fault.rpartition(":")
    for named in (name, point):
        if named not in _ALL:
            raise ValueError(f"{VARIABLE}={fault!r}: {named!r} is no point; there are: {'; '.join(_ALL)}")
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(f"{VARIABLE}={fault!r}: behind the last colon goes a number from 1 on")
    if point == name:
        _times[point] = _times.get(point, 0) + 1
        if _times[point] == int(count) and _is_first():
            os.kill(os.getpid(), signal.SIGKILL)


def _is_first() -> bool:
    marker = os.environ.get(MARKER)
    if not marker:
        return True
    try:
        with open(marker, "x"):
            return True
    except FileExistsError:
        return False
