"""`Log`: what a pipeline says on stderr, as lines of text or of JSON.

Invariant: no value of a variable of the environment that the pipeline's file names stands in a line.
"""

from __future__ import annotations

import datetime
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


class Log:
    """``hidden``: a text without what is not to be shown; ``write``: puts a line where lines go."""

    def __init__(self, as_json: bool, hidden: Callable[[str], str]) -> None:
        self.as_json, self._hidden = as_json, hidden
        self.write: Callable[[str], None] = lambda line: click.echo(line, err=True)
        self._writing = threading.Lock()

    def say(self, message: str, part: str | None = None, level: str = "info", **figures: object) -> None:
        """A line; ``figures`` are in JSON alone.

        >>> import sys
        >>> log = Log(True, lambda text: text.replace("sesame", "${SECRET}"))
        >>> log.write = lambda line: print(line.partition('"level"')[2])
        >>> log.say("sesame is wrong", "bids", "warning", restarts=1)
        : "warning", "part": "bids", "message": "${SECRET} is wrong", "restarts": 1}
        """
        message = self._hidden(message)
        if self.as_json:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            about = {} if part is None else {"part": part}
            line = json.dumps({"time": now, "level": level, **about, "message": message, **figures})
        else:
            line = message if part is None else f"{part}: {message}"
            line = line if level == "info" else f"{level}: {line}"
        with self._writing:
            self.write(line)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Warnings of Python are lines, too."""

        def show(message: Warning | str, *place: object, **more: object) -> None:
            self.say(str(message), level="warning")

        with warnings.catch_warnings():
            warnings.showwarning = show
            yield
