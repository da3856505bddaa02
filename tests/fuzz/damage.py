"""Plays damage to a folder: it opens with all that was committed, or says that something is missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from fuzz.case import Case
from fuzz.difference import Difference
from fuzz.kept import a_folder
from fuzz.kills import check_one_of, in_child, states_of
from lftj import errors
from maintenance import Workspace

Chosen = TypeVar("Chosen")

QUIET = ("lock",)
"""Files in which nothing is kept."""


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size and p.name not in QUIET)


def _note_sizes(folder: Path) -> None:
    """Write down, beside the folder, how long its files are: there a whole record ends."""
    with _sizes(folder).open("a", encoding="utf-8") as file:
        file.writelines(f"{path.stat().st_size} {path}\n" for path in _files(folder))


def _sizes(folder: Path) -> Path:
    return folder.with_name(folder.name + ".sizes")


def _ends(folder: Path) -> list[tuple[Path, int]]:
    """Where a file that is there now ended behind an earlier commit and doesn't end now."""
    lines = (line.split(" ", 1) for line in _sizes(folder).read_text(encoding="utf-8").splitlines())
    ends = sorted({(Path(name), int(size)) for size, name in lines})
    return [(path, size) for path, size in ends if path.is_file() and size < path.stat().st_size]


def _chosen(choices: Sequence[Chosen], share: float) -> Chosen:
    return choices[min(int(share * len(choices)), len(choices) - 1)]


def _hurt(case: Case, folder: Path) -> str:
    """Damage one file; which, and how."""
    what = case.options["what"]
    path = _chosen(_files(folder), case.options["file"])
    data = bytearray(path.read_bytes())
    place = int(case.options["at"] * len(data))
    if what == "end" and (ends := _ends(folder)):
        path, place = _chosen(ends, case.options["file"])
        data = bytearray(path.read_bytes())
    if what == "delete":
        path.unlink()
    elif what in ("cut", "end"):
        path.write_bytes(data[:place])
    else:
        data[place] ^= 1 << case.options["bit"]
        path.write_bytes(data)
    return f"{what} {path.name.split('-')[0].split('.')[0]}"


def play_damage(case: Case) -> None:
    states = states_of(case)
    with a_folder() as folder:
        in_child(case, folder, None, close=case.options["closed"], then=_note_sizes)
        what = _hurt(case, folder)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                workspace = Workspace.open(folder)
            except errors.LftjError:
                return
            with workspace:
                whole = all(name in workspace for name in (*states[0][0], *case.heads))
                # At -1 not all is loaded and installed yet.
                at = check_one_of(workspace, states, f"after damage ({what})") if whole else -1
                workspace.verify()
        if at >= 0 and states[at] == states[-1]:
            return
        told = [one for one in said if isinstance(one.message, Warning) and "version" in str(one.message)]
        # Without a close nothing tells the end of what was written from an end between two records.
        may_be_a_crash = not case.options["closed"] and case.options["what"] != "flip"
        if case.options["closed"] or (not told and not may_be_a_crash):
            raise Difference(
                f"damage ({what}): opened at commit {at} of {len(states) - 1}, {len(told)} warnings"
            )
