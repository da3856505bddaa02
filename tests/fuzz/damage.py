"""Plays damage to a folder: it opens with all that was committed, or says that something is missing."""

from __future__ import annotations

import warnings
from pathlib import Path

from fuzz.case import Case
from fuzz.difference import Difference
from fuzz.kept import a_folder
from fuzz.kills import check_one_of, in_child, states_of
from lftj import errors
from maintenance import Workspace

QUIET = ("lock",)
"""Files in which nothing is kept."""


def _hurt(case: Case, folder: Path) -> str:
    """Damage one file; which, and how."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size and p.name not in QUIET)
    path = files[min(int(case.options["file"] * len(files)), len(files) - 1)]
    data = bytearray(path.read_bytes())
    place = int(case.options["at"] * len(data))
    what = case.options["what"]
    if what == "delete":
        path.unlink()
    elif what == "cut":
        path.write_bytes(data[:place])
    else:
        data[place] ^= 1 << case.options["bit"]
        path.write_bytes(data)
    return f"{what} {path.name.split('-')[0].split('.')[0]}"


def play_damage(case: Case) -> None:
    states = states_of(case)
    with a_folder() as folder:
        in_child(case, folder, None, close=case.options["closed"])
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
        told = [one for one in said if isinstance(one.message, Warning) and "version" in str(one.message)]
        # Without a close nothing tells the end of what was written from an end between two records.
        may_be_a_crash = not case.options["closed"] and case.options["what"] != "flip"
        if not told and not may_be_a_crash and (at < 0 or states[at] != states[-1]):
            raise Difference(f"damage ({what}): opened in silence at commit {at} of {len(states) - 1}")
