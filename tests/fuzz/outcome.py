"""Plays a case in a process of its own, and says what became of it, whatever ends the process."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.case import Case
from fuzz.difference import signature
from fuzz.play import play

SECONDS = 120.0
"""A case that takes longer is stuck."""


@dataclass(frozen=True)
class Found:
    """What is wrong: ``sign`` is the same for finds of one fault, ``what`` says it in full."""

    sign: str
    what: str


def found_by(case: Case, error: BaseException) -> Found:
    return Found(f"{case.kind}: {signature(error)}", f"{type(error).__name__}: {error}")


def judged(case: Case) -> Found | None:
    """Play the case in this process; None where nothing is wrong."""
    try:
        play(case)
    except Exception as error:
        return found_by(case, error)
    return None


def outcome(case: Case, seconds: float = SECONDS) -> Found | None:
    """Play the case in a process of its own."""
    return in_a_process(lambda: judged(case), case.kind, seconds)


def in_a_process(does: Callable[[], Found | None], kind: str, seconds: float) -> Found | None:
    """What a function returns, called in a process of its own; or how that ended."""
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.close(hear)
        try:
            found = does()
            if found is not None:
                os.write(say, f"{found.sign}\0{found.what}".encode(errors="replace")[:60_000])
        finally:
            os._exit(0)
    os.close(say)
    heard, end = b"", time.monotonic() + seconds
    while select.select([hear], [], [], max(0.0, end - time.monotonic()))[0]:
        piece = os.read(hear, 65536)
        if not piece:
            break
        heard += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(hear)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGKILL:
        return Found(f"{kind}: stuck", f"takes more than {seconds:.0f} s")
    if status < 0:
        return Found(f"{kind}: {signal.Signals(-status).name}", "the process dies")
    return Found(*heard.decode().split("\0", 1)) if heard else None
