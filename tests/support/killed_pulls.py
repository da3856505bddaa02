"""A process that pulls sources into workspaces and is killed (SIGKILL), again and again.

    python -m support.killed_pulls          lives as JSON lines on its input, how each ended on its output

Each life is a fork of a process that has the modules, for these take longest to load.  It opens the folder,
takes what there is, and pushes to the sinks; it is killed at a point of `maintenance.store.fault_points`, or
after some time, or it ends by itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from maintenance import Workspace
from maintenance.sources.cursor import Cursor
from maintenance.store.fault_points import FOLDER_POINTS, SOURCE_POINTS, VARIABLE
from support.paths import child_environment

_ASKED = os.environ.get("LFTJ_SOURCE_KILLS")
KILLS, SERVER_KILLS = int(_ASKED or "8"), int(_ASKED or "2")
"""Of each source and each sink, at random moments, and of each server; the variable asks for more."""

_MODULES = (
    *("psycopg", "confluent_kafka", "deltalake"),
    *(f"maintenance.sources.{name}" for name in ("delta", "files", "flight", "kafka", "postgres")),
    *(f"maintenance.sinks.{name}" for name in ("delta", "flight", "kafka", "parquet", "postgres", "webhook")),
)

POINTS = (*SOURCE_POINTS, *FOLDER_POINTS[:2])


class Part(NamedTuple):
    """A function of a module of the packages, called with arguments."""

    module: str
    arguments: Sequence[Any] = ()
    options: dict[str, Any] = {}  # noqa: RUF012

    def made(self) -> Any:
        module = importlib.import_module(self.module)
        name = self.module.rpartition(".")[2]
        made = getattr(module, name if hasattr(module, name) else f"to_{name}")
        return made(*self.arguments, **self.options)


class Killer:
    """The process that forks lives."""

    def __init__(self, input: IO[str], output: IO[str]) -> None:
        self._input, self._output = input, output

    def life(
        self, folder: Path, parts: Sequence[Part], point: str | None = None, after: float | None = None
    ) -> int:
        """How a life ended that was killed at a point (``name:n``: at the n-th time), or after seconds."""
        return int(self._say([str(folder), parts, point, after]))

    def _say(self, message: object) -> Any:
        self._input.write(json.dumps(message) + "\n")
        self._input.flush()
        return json.loads(self._output.readline())


@contextmanager
def killer() -> Iterator[Killer]:
    """It runs while the context is open."""
    command = [sys.executable, "-m", "support.killed_pulls"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=child_environment(), **pipes) as process:  # type: ignore[call-overload]
        yield Killer(process.stdin, process.stdout)
        process.stdin.close()


def kill_at_random(
    killer: Killer, folder: Path, parts: Sequence[Part], seed: int, longest: float
) -> Iterator[int]:
    """Lives that are killed after up to so many seconds; how each ended."""
    chosen = random.Random(seed)
    for _ in range(KILLS):
        yield killer.life(folder, parts, after=chosen.uniform(0, longest))


def _live(folder: str, parts: Sequence[Part], point: str | None) -> None:
    if point is not None:
        os.environ[VARIABLE] = point
    with Workspace.open(folder) as workspace:
        made = [part.made() for part in parts]
        for each in made:
            takes = each.pull if hasattr(each, "pull") else each.push
            for _ in takes(workspace, timeout=0):
                pass


def _forked(folder: str, parts: Sequence[Part], point: str | None, after: float | None) -> int:
    child = os.fork()
    if not child:
        code = 1
        try:
            _live(folder, parts, point)
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    ends = None if after is None else time.monotonic() + after
    while True:
        pid, status = os.waitpid(child, 0 if ends is None else os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if ends is not None and time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            ends = None
        time.sleep(0.001)


def _load_kernels() -> None:
    """As lives need them."""
    workspace = Workspace()
    workspace.load("keyed", {"a": [1], "s": ["x"]}, key=["a"])
    workspace.load("bag", {"a": [1], "s": ["x"]}, bag=True)
    workspace.load("wide", {**{f"c{n}": [1] for n in range(8)}, "s": ["x"]})
    workspace.install("n[] = count() <- keyed(a, s).  d(s) <- keyed(_, s).")
    Cursor(workspace, "loads")
    for _ in range(3):
        with workspace.transaction() as tx:
            tx.apply("keyed", {"a": [1, 2], "s": ["y", "z"], "op": ["U", "D"]})
            tx.insert("bag", {"a": [1], "s": ["x"]})
            tx.insert("wide", workspace["wide"].to_arrow())


def main() -> None:
    for module in _MODULES:
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    _load_kernels()
    while line := sys.stdin.readline():
        folder, parts, point, after = json.loads(line)
        print(_forked(folder, [Part(*part) for part in parts], point, after), flush=True)


if __name__ == "__main__":
    main()
