"""`describe`: the machine and the versions that a set of results belongs to."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from bench.peers import engine

_BESIDE = ("numpy", "numba", "pyarrow")
"""Distributions whose version matters for lftj's speed."""


def describe() -> dict[str, Any]:
    """Processor, memory, system, load and versions; no names of hosts, users or folders.

    >>> sorted(describe())
    ['cores', 'date', 'load', 'memory_bytes', 'processor', 'python', 'system', 'versions']
    """
    versions = {engine.TITLES[name]: engine.version(name) or "not installed" for name in engine.NAMES}
    versions |= {name: importlib.metadata.version(name) for name in _BESIDE}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": _cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 2),
        "versions": versions,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _cores() -> int:
    """Cores that this process may use, which a container may hold below the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_markdown(description: dict[str, Any]) -> str:
    """The description as a Markdown list."""
    versions = ", ".join(f"{name} {number}" for name, number in description["versions"].items())
    return "\n".join(
        [
            f"- {description['processor']}, {description['cores']} cores, "
            f"{description['memory_bytes'] / 2**30:.1f} GiB of memory",
            f"- {description['system']}, {description['python']}",
            f"- {versions}",
            f"- {description['date']}, load average at the start {description['load']}",
        ]
    )
