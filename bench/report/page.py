"""`show`: what a module that makes one page of Markdown does with it."""

from __future__ import annotations

import sys

from bench.report.options import HOME


def is_quick() -> bool:
    """Whether the command line says ``--quick``: small data, and the page is only printed."""
    return "--quick" in sys.argv[1:]


def show(text: str, name: str, heading: str = "") -> None:
    """Print a page, and where it is not a quick one write it to ``bench/results/name``, below a heading."""
    print(text)
    if not is_quick():
        path = HOME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{heading}{text}\n", encoding="utf-8")
