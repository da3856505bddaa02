"""`read`: the records of a file of sqllogictest, as SQLite, DuckDB and sqllogictest-rs write it.

Loops (``loop``, ``foreach``) are unrolled.  Conditions (``skipif``, ``onlyif``) are those of an engine named
``duckdb``.  What a file says to its own runner (``require``, ``mode``, ``load``, ``restart``, ...) is left
out, and a file that needs what is not here goes on without it: its records then fail in DuckDB, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME = "duckdb"
_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")


@dataclass(frozen=True)
class Do:
    """A statement.  ``fails``: it has to."""

    line: int
    text: str
    fails: bool


@dataclass(frozen=True)
class Ask:
    """A query and its published answer.

    Attributes:
        types: A letter for each column: T, I, R and others.
        sort: ``nosort``, ``rowsort`` or ``valuesort``.
        lines: Of the answer; None where it is a hash.
        hashed: How many values, and the MD5 digest of their lines.
    """

    line: int
    text: str
    types: str
    sort: str
    lines: tuple[str, ...] | None
    hashed: tuple[int, str] | None


def read(text: str) -> Iterator[Do | Ask]:
    """The records in their order."""
    for block in _unrolled(_blocks(text)):
        yield from _record(*block)


Block = tuple[int, list[str]]
"""The first line's number, and the lines between empty ones, without comments."""


def _blocks(text: str) -> Iterator[Block]:
    start, results = 0, False
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("#") and not results and not lines:
            continue
        if line.strip():
            start = start if lines else number
            lines.append(line)
            results = results or line == "----"
        elif lines:
            yield start, lines
            lines, results = [], False


def _unrolled(blocks: Iterator[Block], ending: str | None = None) -> Iterator[Block]:
    """Each turn of a loop's blocks with the loop's variable replaced."""
    for start, lines in blocks:
        words = lines[0].split()
        if words[0] == ending:
            return
        if words[0] not in ("loop", "foreach"):
            yield start, lines
            continue
        inner = list(_unrolled(blocks, "endloop"))
        for value in map(str, range(int(words[2]), int(words[3]))) if words[0] == "loop" else words[2:]:
            for line, block in inner:
                yield line, [part.replace("${" + words[1] + "}", value) for part in block]


def _record(start: int, lines: list[str]) -> Iterator[Do | Ask]:
    while lines and (words := lines[0].split())[0] in ("skipif", "onlyif"):
        if (words[0] == "skipif") == (words[1] == NAME):
            return
        start, lines = start + 1, lines[1:]
    if not lines:
        return
    words = lines[0].split()
    end = lines.index("----") if "----" in lines else len(lines)
    text = "\n".join(line for line in lines[1:end] if not line.startswith("#"))
    if words[0] == "statement":
        yield Do(start, text, words[1] == "error")
    elif words[0] == "query" and len(words) > 1 and words[1] == "error":
        yield Do(start, text, True)
    elif words[0] == "query":
        answer = tuple(lines[end + 1 :])
        sort = words[2] if len(words) > 2 and words[2] in ("rowsort", "valuesort") else "nosort"
        hashed = _HASHED.fullmatch(answer[0].strip()) if len(answer) == 1 else None
        yield Ask(
            start,
            text,
            words[1] if len(words) > 1 else "",
            sort,
            None if hashed else answer,
            (int(hashed[1]), hashed[2]) if hashed else None,
        )
