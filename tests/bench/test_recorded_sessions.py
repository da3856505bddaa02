"""worked examples: the recorded sessions show what their commands print now."""

from __future__ import annotations

import html
import io
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import maintenance.shell.shell  # noqa: F401  (adds commands)
from bench.sessions.doors import DOORS, Door
from support.paths import ROOT
from support.shell_runs import Lftj, in_this_process

FOLDER = ROOT / "docs" / "sessions"
TEXT = re.compile(r'<text y="(\d+)"(?: class="([\w ]+)")?>(.*)</text>')
COLUMNS = 68
NOTES = ("rules end with a dot;", "a rule ends with a dot;", "SQL ends with a semicolon;")
"""What a terminal is told and a pipe is not."""


def last_screen(film: str) -> list[str]:
    """The lines that are there at the end."""
    lines = [
        (int(y), html.unescape(re.sub(r"<[^>]*>", "", text)))
        for y, look, text in TEXT.findall(film)
        if "o" not in look.split()
    ]
    return [text.rstrip() for _, text in sorted(lines)]


def answers(door: Door, lftj: Lftj, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the commands of a session print, one behind the other."""
    typed = list(door.typed)
    while typed:
        command = typed.pop(0).removeprefix("$ ")
        while command.endswith("\\"):
            command = command[:-1] + typed.pop(0).removeprefix("> ")
        program, *arguments = shlex.split(re.sub(r"2> \S+$", "", command))
        if program == "cat":
            yield from Path(arguments[0]).read_text(encoding="utf-8").splitlines()
            continue
        assert program == "lftj"
        statements = list(takewhile(lambda line: not line.startswith("$ "), typed))
        typed = typed[len(statements) :]
        text = "".join(f"{line[6:]}\n" for line in statements)
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        done = lftj(*arguments)
        assert done.status == 0, done.err
        yield from done.out.splitlines()


@pytest.mark.parametrize("name", DOORS)
def test_a_session_shows_what_its_commands_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    door = DOORS[name]
    monkeypatch.chdir(tmp_path)
    for file, text in door.files.items():
        Path(file).write_text(text, encoding="utf-8")
    printed = [line.rstrip() for line in answers(door, in_this_process(capsys), monkeypatch)]
    wrapped = [line[at : at + COLUMNS] for line in printed for at in range(0, max(len(line), 1), COLUMNS)]
    shown = [line for line in last_screen((FOLDER / name).read_text(encoding="utf-8")) if line]
    typed = [line.rstrip() for line in door.typed]
    assert [line for line in shown if line in typed] == typed
    others = [line for line in shown if line not in typed and line != "lftj>" and line != "$"]
    found = [line for line in others if not line.startswith(NOTES)]
    assert found == [line.rstrip() for line in wrapped if line], "record it anew: python -m bench.sessions"


def test_the_films_are_small_said_in_words_and_shown() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(DOORS)
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md")]
    for name, door in DOORS.items():
        film = FOLDER / name
        root = ElementTree.parse(film).getroot()
        assert root[0].text == door.title and film.stat().st_size < 60_000
        assert all(f"sessions/{name})" in page for page in pages)
