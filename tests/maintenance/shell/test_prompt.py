"""``lftj shell``: statements from a pipe, at a prompt on a terminal, and over a folder."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

import maintenance.shell.shell  # noqa: F401  (adds the command)
from lftj.session.session import Session, statements
from maintenance import Workspace
from maintenance.shell.typed_statements import editing
from support.shell_runs import SECONDS, Done, in_this_process, start

PATIENCE = 120
"""Seconds without a sign: for a prompt that hangs."""

_TERMINAL = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
"""One that can draw, and does not answer where its cursor stands."""

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


def _leave(terminal: int, process: subprocess.Popen[bytes]) -> None:
    os.write(terminal, b"\x04")
    while _is_open(terminal):
        pass
    os.close(terminal)
    assert process.wait(timeout=SECONDS) == 0


def test_a_prompt_with_completion_colours_and_history(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed on a terminal: Tab completes names, rules go over lines, Ctrl-C drops them, Ctrl-D leaves."""
    for name, value in _TERMINAL.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    ours, theirs = pty.openpty()
    process = start("shell", "--load", "edge=edges.csv", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = _shown_until(ours, b"lftj>")
    os.write(ours, b".count seen(a) <-\red\t(a, _).\r")
    shown += _shown_until(ours, rb"\D2\r\n.*lftj>")
    assert shown.count(b"a rule ends with a dot; it goes on") == 1 and b"  ... " in shown
    os.write(ours, b"select b as\rone from ed\t where a = 5 or \x03")  # dropped by Ctrl-C
    _shown_until(ours, rb"edge.*lftj>")
    os.write(ours, b"select 1 as\rone from edge;\r")
    again = _shown_until(ours, b"3 rows.*lftj>")
    assert b"it goes on" not in again  # it was told
    assert re.search(rb"\x1b\[[\d;]*3[1-7][\d;]*m", again)  # colours
    _leave(ours, process)
    history = folder / "state" / "lftj" / "history"
    assert "+edge(a, _).\n" in history.read_text(encoding="utf-8") and history.stat().st_mode & 0o77 == 0


def test_what_is_pasted_is_carried_out_one_after_the_other_and_without_colours_where_none_are_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed by prompt_toolkit's own input, in this process."""
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/none")  # no history can be kept there
    monkeypatch.setenv("NO_COLOR", "1")
    drawn = io.StringIO()
    session = Session(Workspace(), lambda batches: [batch.to_pylist() for batch in batches])
    with create_pipe_input() as typed:
        output = Vt100_Output(drawn, lambda: Size(rows=24, columns=80), term="xterm", enable_cpr=False)
        with create_app_session(input=typed, output=output):
            read = editing(session)
            typed.send_text(f"\x1b[200~.load edge edges.csv\n{RULE}\x1b[201~\r")
            pasted = list(statements(read().splitlines()))
            typed.send_text("from edge\r\r")
            unfinished = read()
            typed.send_text("\x04")
            with pytest.raises(EOFError):
                read()
    assert [session.execute(statement) for statement in pasted] == [
        "edge: 3 rows",
        [[{"a": 1, "b": 2, "c": 3}]],
    ]
    assert unfinished == "from edge\n" and not re.search(r"\x1b\[[\d;]*3[1-7][\d;]*m", drawn.getvalue())
    assert capsys.readouterr().out == "SQL ends with a semicolon; it goes on\n"


@pytest.mark.parametrize("missing", ["terminal", "library"])
def test_lines_are_read_plainly_elsewhere(
    missing: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is said of it: on a dumb terminal, and where prompt_toolkit is not installed."""
    monkeypatch.setenv("TERM", "dumb" if missing == "terminal" else "xterm")
    if missing == "library":
        monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    lines = iter([".load edge edges.csv", "", "from edge", "where a = 1", "", ".count e(a) <- edge(a, _)."])
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        line = next(lines, None)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", typed)
    with monkeypatch.context() as terminal:
        for stream in ("stdin", "stdout"):
            terminal.setattr(f"sys.{stream}.isatty", lambda: True)
        done = in_this_process(capsys)("shell")
    assert done.status == 0 and done.err == ""
    assert "SQL ends with a semicolon; it goes on" in done.out and done.out.endswith("2 rows\n2\n")
    assert asked == ["lftj> "] * 3 + ["  ... "] * 2 + ["lftj> "] * 2
