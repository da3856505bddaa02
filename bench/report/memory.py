"""Resident memory of a process, now and at its peak, as the kernel counts it.

``VmHWM`` of ``/proc`` starts anew at exec.  ``ru_maxrss`` does not: a child
starts with the peak of the process that forked it, so it is the fallback only,
for systems without ``/proc``.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes(process: int | str = "self") -> int | None:
    """Peak resident set of a process in bytes; None when it is gone or cannot be known.

    >>> peak_bytes() > 1_000_000
    True
    """
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if process != "self":
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident_bytes() -> int:
    """Resident set of this process in bytes, from ``/proc``.  Raises OSError where there is none.

    >>> resident_bytes() > 1_000_000
    True
    """
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
