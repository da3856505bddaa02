"""A process with all that it started: memory and processor time of Spark, which is a JVM and its workers.

Sums count a page once for each process that has it, as forked workers share theirs: the sum
is an upper bound.  Systems without ``/proc`` give nothing, or this process alone.
"""

from __future__ import annotations

import os
import re
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


def kind_of(process: int) -> str:
    """What a process of Spark's is: the driver (this one), its JVM, an executor, or a Python worker.

    >>> kind_of(os.getpid())
    'driver'
    """
    if process == os.getpid():
        return "driver"
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return "gone"
    if b"CoarseGrainedExecutorBackend" in command:
        return "executor"
    return "JVM" if command.partition(b"\0")[0].endswith(b"java") else "Python worker"


def high_water_bytes(process: int) -> int:
    """The most resident memory that a process has had; 0 when it is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def resident_bytes() -> int:
    """Resident memory of this process and all below it."""
    total = 0
    for process in tree():
        fields = _stat(process)
        if fields is not None:
            total += int(fields[21]) * _PAGE
    return total


class PeakMemory:
    """The largest ``resident_bytes`` of samples since it was made, and the most of one of each kind."""

    def __init__(self) -> None:
        self._most = 0
        self._of_one: dict[str, int] = {}
        self._look()
        self._over = threading.Event()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        self._most = max(self._most, resident_bytes())
        for process in tree():
            kind, most = kind_of(process), high_water_bytes(process)
            self._of_one[kind] = max(self._of_one.get(kind, 0), most)

    def of_one(self) -> dict[str, int]:
        """By kind, the most that one process has had, as the kernel counts it, while it was looked at."""
        self._look()
        return {kind: most for kind, most in self._of_one.items() if most}

    def bytes(self) -> int | None:
        """The peak so far, or what the kernel counted of this process alone where that is all there is."""
        return self._most or peak_bytes()

    def stop(self) -> None:
        """Take no more samples."""
        self._over.set()
