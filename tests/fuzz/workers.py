"""The processes that play cases: started, listened to, ended where one hangs, and started again."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

SILENT = 300.0
"""Seconds without a line: the case hangs.  Kernels may be compiled meanwhile."""


@dataclass(frozen=True)
class Line:
    """What a worker says; ``died``: how it ended instead."""

    worker: Worker
    said: dict[str, Any]
    died: str | None = None


class Worker:
    """One process, its place among ``by``, and the case that it is at."""

    def __init__(
        self, seed: int, place: int, by: int, end: float, only: str | None, lines: queue.Queue[Line]
    ) -> None:
        self._seed, self._by, self._end, self._only, self._lines = seed, by, end, only, lines
        self.at = place - by
        self.heard = time.monotonic()
        self._hung = False
        self._start(place)

    def _start(self, first: int) -> None:
        command = [
            sys.executable,
            "-m",
            "fuzz.worker",
            str(self._seed),
            str(first),
            str(self._by),
            str(self._end),
        ]
        command += ["--only", self._only] if self._only else []
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.heard = time.monotonic()
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for text in process.stdout:
            self.heard = time.monotonic()
            try:
                said = json.loads(text)
            except json.JSONDecodeError:  # the end of a process that died amid a line, or somebody prints
                continue
            self.at = said.get("begin", self.at)
            self._lines.put(Line(self, said))
        status = process.wait()
        died = (
            "stuck" if self._hung else signal.Signals(-status).name if status < 0 else f"exit status {status}"
        )
        self._lines.put(Line(self, {}, died if status else ""))

    def go_on(self) -> None:
        """Start again behind the case that ended it."""
        self._hung = False
        self._start(self.at + self._by)

    def end_if_it_hangs(self) -> None:
        if time.monotonic() - self.heard > SILENT:
            self._hung = True
            self.end()

    def end(self) -> None:
        """End it, with the processes that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
