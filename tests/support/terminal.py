"""A terminal that a test looks at, in place of stderr."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from lftj.process import progress


class Terminal(io.StringIO):
    """One that someone looks at; it says when something was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.is_drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if text.strip():
            self.is_drawn.set()
        return written


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """stderr from now on; what takes any time at all is drawn there."""
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.0)
    return made
