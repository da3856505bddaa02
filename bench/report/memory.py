"""Peak resident memory of a process, as the kernel counted it.

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
