"""Plays a process that is killed while it changes a folder: what it said it had committed is there again."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from fuzz.case import Case, Commit
from fuzz.difference import Difference, same
from fuzz.expected import Heads, OutOfReach, Refused, State, after, beginning, expected
from fuzz.kept import a_folder, stage
from fuzz.once import loaded
from maintenance import Workspace
from support.rows import rows_of


def states_of(case: Case) -> list[tuple[State, Heads]]:
    """After each commit, the beginning included.  Raises OutOfReach where one would be refused."""
    states = [beginning(case)]
    for step in case.steps:
        if isinstance(step, Commit):
            states.append(after(case, states[-1], step.staged))
    found = []
    for state in states:
        right = expected(case.program, state, case.heads, set())
        if isinstance(right, Refused):
            raise OutOfReach(right.why)
        found.append((state, right))
    return found


def work(
    case: Case,
    folder: Path,
    say: int,
    close: bool = False,
    then: Callable[[Path], None] | None = None,
) -> None:
    """Do all steps in the folder, and write a byte for each commit and for the installation before.

    ``then`` is called with the folder behind each commit.
    """
    workspace = Workspace.open(folder, durability=case.options["durability"])
    loaded(case, workspace)
    workspace.install(case.rules)
    os.write(say, b".")
    for step in case.steps:
        if isinstance(step, Commit):
            with workspace.transaction() as transaction:
                stage(case, transaction, step.staged, "apply")
            os.write(say, b".")
            if then is not None:
                then(folder)
        else:
            workspace.checkpoint()
    if close:
        workspace.close()


def in_child(
    case: Case,
    folder: Path,
    kill_after: int | None,
    milliseconds: float = 0,
    close: bool = False,
    then: Callable[[Path], None] | None = None,
) -> int:
    """How many commits a process said it had done, which is killed so many milliseconds after one of them."""
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(case, folder, say, close, then)
        finally:
            os._exit(0)
    os.close(say)
    said = 0
    while kill_after is None or said <= kill_after:
        if not select.select([hear], [], [], 240)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Difference("stuck: a process that commits")
        heard = os.read(hear, 1)
        if not heard:
            break
        said += 1
    time.sleep(milliseconds / 1000)
    os.kill(child, signal.SIGKILL)
    while True:
        heard = os.read(hear, 4096)
        if not heard:
            break
        said += len(heard)
    os.close(hear)
    os.waitpid(child, 0)
    return said - 1


def check_one_of(workspace: Workspace, candidates: list[tuple[State, Heads]], what: str) -> int:
    """Which of the states it is in; raises Difference where it is in none."""
    failed: Difference | None = None
    for number, (state, heads) in reversed(list(enumerate(candidates))):
        try:
            for name, rows in heads.items():
                same(what, rows_of(workspace[name].table), rows)
            for name, counts in state.items():
                same(what, list(workspace[name]), counts.elements())
        except Difference as error:
            failed = failed or error
            continue
        return number
    assert failed is not None
    raise failed


def play_kills(case: Case) -> None:
    states = states_of(case)
    with a_folder() as folder:
        said = in_child(case, folder, case.options["after"], case.options["milliseconds"])
        if said < 0:
            return
        for _ in range(2):
            with Workspace.open(folder) as workspace:
                check_one_of(workspace, states[said : said + 2], "head after a kill")
                workspace.verify()
