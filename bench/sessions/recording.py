"""`record`: lines typed on a pseudo-terminal, where bash and ``lftj`` answer, as frames.

A frame is taken when the terminal shows what was typed, and when the next prompt stands there, so frames do
not depend on how long anything takes.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyte

from bench.sessions.doors import Door

COLUMNS, LINES = 68, 40
AT_A_TIME = 4
"""Characters that come with one frame."""

TYPING, READING = 0.16, 1.5
"""Seconds that a frame of typing stands, and one with an answer."""

SECONDS = 120
"""For a command that hangs."""

QUIET = 0.2
"""Seconds without a sign, after which the terminal is taken to be drawn."""

PROMPT = re.compile(r"(\$|>|lftj>|  \.\.\.) ?")


class Span(NamedTuple):
    """Characters of one look: ``colour`` as the terminal calls it."""

    text: str
    colour: str
    is_bold: bool


Line = tuple[Span, ...]


class Frame(NamedTuple):
    """What the terminal shows, from the top to its last line, and for how many seconds."""

    lines: tuple[Line, ...]
    seconds: float


class Terminal:
    """A shell on a pseudo-terminal, and what it shows."""

    def __init__(self, folder: Path, scripts: Path) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "PS1": "$ ",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait(self, is_there: Callable[[str], bool]) -> None:
        """Until the line up to the cursor is what is waited for, and nothing more comes."""
        end = time.monotonic() + SECONDS
        while True:
            ready, _, _ = select.select([self._ours], [], [], QUIET)
            if ready:
                self._stream.feed(os.read(self._ours, 65536))
            elif is_there(self._screen.display[self._screen.cursor.y][: self._screen.cursor.x]):
                return
            if time.monotonic() > end:
                raise TimeoutError("\n".join(self._screen.display))

    def frame(self, seconds: float) -> Frame:
        lines = [self._line(number) for number in range(LINES)]
        while lines and not lines[-1]:
            lines.pop()
        return Frame(tuple(lines), seconds)

    def _line(self, number: int) -> Line:
        length = len(self._screen.display[number].rstrip())
        spans: list[Span] = []
        for place in range(length):
            shown = self._screen.buffer[number][place]
            span = Span(shown.data, shown.fg, shown.bold)
            if spans and (spans[-1][1:] == span[1:] or shown.data == " "):
                span = Span(spans[-1].text + shown.data, *spans.pop()[1:])
            spans.append(span)
        return tuple(spans)

    def end(self) -> None:
        os.close(self._ours)
        self._shell.kill()
        self._shell.wait()


def record(door: Door, scripts: Path) -> list[Frame]:
    """The frames of a session in an empty folder with the door's files.

    ``scripts``: the folder with the ``lftj`` that is run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in door.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        terminal = Terminal(folder, scripts)
        try:
            terminal.wait(lambda line: line.strip() == "$")
            frames = [terminal.frame(READING)]
            for typed in door.typed:
                frames += _typed(terminal, typed)
        finally:
            terminal.end()
    return frames


def _typed(terminal: Terminal, line: str) -> list[Frame]:
    prompt = PROMPT.match(line)
    assert prompt is not None, line
    frames = []
    for end in range(prompt.end(), len(line) + AT_A_TIME, AT_A_TIME):
        piece = line[end : end + AT_A_TIME]
        if piece:
            terminal.type(piece)
            so_far = line[: end + AT_A_TIME].rstrip()
            terminal.wait(lambda shown, so_far=so_far: shown.rstrip() == so_far)  # type: ignore[misc]
            frames.append(terminal.frame(TYPING))
    terminal.type("\r")
    terminal.wait(lambda shown: PROMPT.fullmatch(f"{shown.rstrip()} ") is not None)
    return [*frames, terminal.frame(READING)]
