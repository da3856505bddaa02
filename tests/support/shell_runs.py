"""Runs of ``lftj``: in this process, as one of its own, and on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from lftj.shell import shell

MAIN = """
import signal
from maintenance.shell.shell import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background
main()
"""


COMMAND = [sys.executable, "-c", MAIN]

SECONDS = 900
"""For a process that hangs: on a loaded machine one that compiles all kernels takes minutes."""


class Done(NamedTuple):
    status: int
    out: str
    err: str


Lftj = Callable[..., Done]


def fails(done: Done, status: int, *parts: str) -> None:
    """One message that holds ``parts``, nothing on stdout, no traceback."""
    assert done.status == status
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err
    assert "[Errno" not in done.err
    for part in parts:
        assert part in done.err


def start(*arguments: str, command: list[str] = COMMAND, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*command, *arguments], **streams)  # type: ignore[call-overload, no-any-return]


def on_terminal(*arguments: str, command: list[str] = COMMAND) -> str:
    """What one command line shows on a terminal that is its stdout and stderr."""
    ours, theirs = pty.openpty()
    process = start(*arguments, command=command, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux says when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=SECONDS) == 0
    return shown.decode()


def in_this_process(capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Runs one command line after another."""

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        status = shell.run(arguments)
        return Done(status, *capsys.readouterr())

    return run
