"""What is said on stderr when kernels have to be compiled: one line, with the seconds that it will take.

Who compiles beforehand says which part of that it is (:func:`part_of`), and each part is one line, too.

Invariants

1. A process that finds what it needs says nothing, nor does one that compiles for less than
   ``NOTICEABLE`` seconds.
2. Compiling that goes on for longer than was said, or for what was not yet imported then, is said again,
   and so is what a later call compiles, ``PAUSE`` seconds behind: nobody waits in silence.
3. A part is said once, however long it takes: the next one says what it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOTICEABLE = 0.5

PAUSE = 5.0
"""Seconds without compiling: who waits then waits for something else than what was said."""

_SECONDS = {"lftj.search.machine.search.search_regions": 8.0}
_OTHERS_SECONDS = 0.2
"""What kernels take on one core of its own of an ordinary machine, and the many small ones each."""

kernels: list[str] = []
"""Names of the kernels of all modules that are imported so far."""

_spent = 0.0  # seconds of compiling so far
_said = 0.0  # up to here somebody knows
_since: float | None = None  # when a compilation began that no other event has followed
_ended = 0.0  # when the last compilation was done
_folder: Path | None = None
_quiet = False
_part = ""  # that is being compiled, as it is shown
_part_is_said = False


def begins(folder: Path) -> None:
    """A kernel is missing in the folder, and is compiled from now on."""
    global _folder
    _folder = folder
    goes_on()


def goes_on() -> None:
    """A part of a kernel is compiled from now on."""
    global _since, _said, _part_is_said
    ended()
    _since = time.monotonic()
    if _since > _ended + PAUSE:
        _said = _spent
    if _spent > _said + NOTICEABLE and not _is_still() and _folder is not None:
        seconds = max(5, round(_missing_seconds(_folder) / 5) * 5)
        _said = _spent + seconds
        _part_is_said = True
        print(f"compiling the kernels, once per installation (about {seconds} s{_part})", file=sys.stderr)


def ended() -> None:
    """What began last is compiled; another that needed it may go on being compiled."""
    global _spent, _since, _ended
    if _since is not None:
        _ended = time.monotonic()
        _spent += _ended - _since
    _since = None


@contextmanager
def silence() -> Iterator[None]:
    """Nothing is said within: whoever compiles shows it in a way of their own."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


@contextmanager
def part_of(name: str) -> Iterator[None]:
    """What is compiled within is a part of what there is to compile: ``2 of 3: commits``.

    Within a part there is no other: the work that compiles one may itself have some.
    """
    global _part, _part_is_said, _said
    if _part:
        yield
        return
    before = _part, _part_is_said, _said
    _part, _part_is_said, _said = f", {name}", False, _spent
    try:
        yield
    finally:
        _part, _part_is_said, _said = before


def _is_still() -> bool:
    return _quiet or sys.stderr is None or (bool(_part) and _part_is_said)


def _missing_seconds(folder: Path) -> float:
    there = {path.name.rsplit("-", 2)[0] for path in folder.iterdir()} if folder.is_dir() else set()
    return sum(_SECONDS.get(name, _OTHERS_SECONDS) for name in kernels if name not in there)
