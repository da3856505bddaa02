"""A process with all that it started: memory and processor time of Spark, which is a JVM and its workers.

Sums count a page once for each process that has it, as forked workers share theirs: the sum
is an upper bound.  Systems without ``/proc`` give nothing, or this process alone.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from bench.report.memory import peak_bytes

SAMPLE_SECONDS = 0.2

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(process: int) -> list[str] | None:
    """The fields of ``/proc/<process>/stat`` after the command's name; None when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def tree(root: int | None = None) -> list[int]:
    """A process, by default this one, and all below it.

    >>> os.getpid() in tree()
    True
    """
    root = os.getpid() if root is None else root
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def processor_seconds() -> float:
    """Processor time of this process and all below it, those that have ended and were waited for too."""
    ticks = 0
    for process in tree():
        fields = _stat(process)
        if fields is not None:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICK if ticks else time.process_time()


def resident_bytes() -> int:
    """Resident memory of this process and all below it."""
    total = 0
    for process in tree():
        fields = _stat(process)
        if fields is not None:
            total += int(fields[21]) * _PAGE
    return total


class PeakMemory:
    """The largest ``resident_bytes`` of samples since it was made."""

    def __init__(self) -> None:
        self._most = resident_bytes()
        self._over = threading.Event()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._most = max(self._most, resident_bytes())

    def bytes(self) -> int | None:
        """The peak so far, or what the kernel counted of this process alone where that is all there is."""
        return self._most or peak_bytes()

    def stop(self) -> None:
        """Take no more samples."""
        self._over.set()
