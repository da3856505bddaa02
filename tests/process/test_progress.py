"""A bar is drawn on a terminal only, one at a time, and is gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lftj.process import progress
from support.terminal import terminal_of


def test_nothing_is_drawn_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar("joining") as advance:
        advance(0.5)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_drawn_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with progress.bar("joining", wanted=False) as advance:
        advance(0.5)
    assert terminal.getvalue() == ""


def test_what_is_over_before_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 1e6)
    with progress.bar("joining") as advance:
        advance(0.5)
    assert terminal.getvalue() == ""


def test_a_program_without_stderr_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.bar("joining") as advance:
        advance(0.5)


def test_a_bar_shows_its_label_the_fraction_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with progress.bar("joining [x]") as advance:
        advance(0.25)
        assert terminal.is_drawn.wait(60)
        advance(0.5)
    drawn = terminal.getvalue().rpartition("joining [x]")[2]
    assert "50%" in drawn and "left" in drawn


def test_a_bar_that_comes_late_stands_where_the_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn while the work says nothing, too."""
    terminal = terminal_of(monkeypatch)
    with progress.bar("joining") as advance:
        advance(0.25, "first")
        assert terminal.is_drawn.wait(60)
    assert "joining, first" in terminal.getvalue() and "25%" in terminal.getvalue()


@pytest.mark.parametrize(("fraction", "shown"), [(None, "joining, round 3 [y]"), (0.25, "25%")])
def test_a_note_says_what_is_done_until_the_next_call(
    fraction: float | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = terminal_of(monkeypatch)
    with progress.bar("joining") as advance:
        advance(None, "round 3 [y]")
        assert terminal.is_drawn.wait(60)
        if fraction is not None:
            advance(fraction)
    drawn = terminal.getvalue().rpartition("joining")[2]
    assert shown.removeprefix("joining") in drawn
    assert ("round 3" in drawn) == (fraction is None)


def test_one_bar_at_a_time_and_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with pytest.raises(KeyboardInterrupt), progress.bar("outer"), progress.bar("inner") as advance:
        advance(1.0)
        assert terminal.is_drawn.wait(60)
        raise KeyboardInterrupt
    assert "outer" in terminal.getvalue() and "inner" not in terminal.getvalue()
    terminal.is_drawn.clear()
    with progress.bar("later"):
        assert terminal.is_drawn.wait(60)
    assert "later" in terminal.getvalue()


def test_rich_is_imported_only_to_draw() -> None:
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from lftj.process import progress
with progress.bar("joining") as advance:
    advance(0.5)
assert not any(name.partition(".")[0] == "rich" for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.PIPE)


def test_what_nobody_asked_for_is_seen_on_a_terminal_by_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not progress.is_seen(None)  # no terminal
    terminal = terminal_of(monkeypatch)
    assert progress.is_seen(None) and not progress.is_seen(False)
    with ThreadPoolExecutor(1) as pool:  # of a service, whose requests nobody waits for here
        assert [pool.submit(progress.is_seen, wanted).result() for wanted in (None, True)] == [False, True]
    with progress.bar("joining", None, lambda: (0.75, "tri")):
        assert terminal.is_drawn.wait(60)
    assert "joining, tri" in terminal.getvalue() and "75%" in terminal.getvalue()


def test_one_thread_looks_at_all_bars_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 1e6)
    monkeypatch.setattr(progress, "IDLE_SECONDS", 0.0)
    begun = set()
    for _ in range(50):
        with progress.bar("joining"):
            begun.add(progress._looking)
    assert len(begun) < 10
    for thread in begun - {None}:
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive()
    assert progress._looking is None
