"""A bar is drawn on a terminal only, one at a time, and is gone afterwards."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from lftj.process import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar("joining") as advance:
        advance(0.5)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_drawn_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.bar("joining", enabled=False) as advance:
        advance(0.5)
    assert terminal.getvalue() == ""


def test_a_program_without_stderr_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.bar("joining") as advance:
        advance(0.5)


def test_a_bar_shows_its_label_and_the_fraction(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.bar("joining [x]") as advance:
        advance(0.25)
    assert "joining [x]" in terminal.getvalue()
    assert "25%" in terminal.getvalue()


@pytest.mark.parametrize(("fraction", "shown"), [(None, "joining, round 3 [y]"), (0.25, "25%")])
def test_a_note_says_what_is_done_until_the_next_call(
    fraction: float | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.bar("joining") as advance:
        advance(None, "round 3 [y]")
        if fraction is not None:
            advance(fraction)
    drawn = terminal.getvalue().rpartition("joining")[2]
    assert shown.removeprefix("joining") in drawn
    assert ("round 3" in drawn) == (fraction is None)


def test_one_bar_at_a_time_and_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt), progress.bar("outer"), progress.bar("inner") as advance:
        advance(1.0)
        raise KeyboardInterrupt
    with progress.bar("later"):
        pass
    text = terminal.getvalue()
    assert "outer" in text
    assert "inner" not in text
    assert "later" in text


def test_rich_is_imported_only_to_draw() -> None:
    code = """
import sys
from lftj.process import progress
with progress.bar("joining") as advance:
    advance(0.5)
assert not any(name.partition(".")[0] == "rich" for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.PIPE)
