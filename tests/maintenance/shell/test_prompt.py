"""``lftj shell``: statements from a pipe, at a prompt on a terminal, and over a folder."""

from __future__ import annotations

import io
import os
import pty
import re
import select
from pathlib import Path

import pytest

import maintenance.shell.shell  # noqa: F401  (adds the command)
from support.shell_runs import SECONDS, Done, in_this_process, start

PATIENCE = 120
"""Seconds without a sign: for a prompt that hangs."""

RULE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("a,b\n1,2\n2,3\n1,3\n")
    return tmp_path


def piped(
    text: str, *arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Done:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return in_this_process(capsys)("shell", *arguments)


def test_statements_from_a_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f".install {RULE}\n.watch tri\n.erase edge (1, 3)\n.quit\n.relations\n"
    done = piped(text, "--load", "edge=edges.csv", monkeypatch=monkeypatch, capsys=capsys)
    assert done == (0, "tri: 1 row\n- tri(1, 2, 3)\n0 inserted, 1 erased\n", "")


def test_an_error_is_said_and_the_rest_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "p(a) <- egde(a, _).\np(a) <- edge(a, _).\n"
    done = piped(text, "--load", "edge=edges.csv", monkeypatch=monkeypatch, capsys=capsys)
    assert done.status == 1
    assert sorted(line.strip() for line in done.out.splitlines()[2:]) == ["1", "2", "2 rows"]
    assert done.err.startswith("error: unknown relation 'egde'") and done.err.endswith("^^^^\n")


def test_a_folder_keeps_what_was_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f".load edge edges.csv\n.install {RULE}\n.insert edge (2, 4), (3, 4)\n"
    assert piped(text, "kept", monkeypatch=monkeypatch, capsys=capsys).status == 0
    done = piped(".count t(a) <- tri(_, _, a).\n", "kept", monkeypatch=monkeypatch, capsys=capsys)
    assert done == (0, "2\n", "")


def _shown_until(terminal: int, end: bytes) -> bytes:
    """What is shown, up to what is waited for, a regular expression."""
    shown = b""
    while not re.search(end, shown, re.DOTALL):
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, shown
        shown += os.read(terminal, 65536)
    return shown


def _is_open(terminal: int) -> bool:
    """Whether a process has the other end; what it shows is dropped."""
    try:
        return bool(os.read(terminal, 65536))
    except OSError:
        return False


def test_a_prompt_with_completion_and_history(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed on a terminal: Tab completes a relation, rules go over lines, Ctrl-D leaves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    ours, theirs = pty.openpty()
    process = start("shell", "--load", "edge=edges.csv", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = _shown_until(ours, b"lftj> ")
    os.write(ours, b".count seen(a) <-\ned\t(a, _).\n")
    shown += _shown_until(ours, b"\n2\r\n.*lftj> ")
    assert shown.count(b"a rule ends with a dot; it goes on") == 1
    os.write(ours, b".count seen(a) <-\nedge(a, _).\nselect 1 as one\nfrom edge;\n")
    shown += _shown_until(ours, b"3 rows.*lftj> ")
    assert b"it goes on" not in shown.partition(b"\n2\r\n")[2]  # it was told
    os.write(ours, b"\x04")
    while _is_open(ours):
        pass
    os.close(ours)
    assert process.wait(timeout=SECONDS) == 0
    assert b"  ... " in shown
    assert "edge(a, _)." in (folder / "state" / "lftj" / "history").read_text(encoding="utf-8")
