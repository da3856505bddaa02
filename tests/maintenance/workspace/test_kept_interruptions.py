"""Ctrl-C at each line that leads to the disk: what the folder says and what the workspace shows stay one."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import maintenance
from maintenance import Workspace
from support.kept_lives import EDGES, insert, with_edges, without_image

HOME = Path(maintenance.__file__).parent
FILES = {
    *map(str, (HOME / "durable").glob("*.py")),
    *(str(HOME / "workspace" / name) for name in ("published.py", "checkpoints.py", "entries.py")),
}
WITHOUT_SIGNALS = ("with ", "try:", "finally:")
"""Lines in which no signal comes: locks are entered and left in one step, and the others do nothing."""


class Injected(KeyboardInterrupt):
    pass


def interrupted(act: Callable[[], object], number: int) -> bool:
    """Whether there was a line of that number, at which it was interrupted."""
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in FILES:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and not text.startswith(WITHOUT_SIGNALS):
            seen += 1
            if seen == number:
                raise Injected
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Injected:
        return True
    finally:
        sys.settrace(before)
    return False


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.in_turns
@pytest.mark.parametrize("act", ["commit", "install"])
def test_an_interruption_leaves_folder_and_workspace_alike(tmp_path: Path, act: str) -> None:
    """What the folder says is read again where the interrupted act has written to it."""
    folder = tmp_path / "ws"
    workspace = with_edges(folder)
    rows = set(EDGES)
    number = 0
    while True:
        number += 1
        row = (100 + number, 200)
        acts: dict[str, Callable[[], object]] = {
            "commit": lambda row=row: insert(workspace, row),  # type: ignore[misc]
            "install": lambda: workspace.install("back(b, a) <- edge(a, b).", "delta", replace=True),
        }
        files, heads = files_of(folder), workspace.heads
        came = interrupted(acts[act], number)
        shown = set(workspace["edge"])
        if files_of(folder) == files:
            assert (shown, workspace.heads) == (rows, heads)
        else:
            assert shown - {row} == rows
            with Workspace.open(folder, read_only=True) as again:
                assert set(again["edge"]) == shown
                assert again.heads == workspace.heads
        rows = shown
        if act == "install" and "back" in workspace.heads:
            workspace.uninstall("back")
        insert(workspace, (number, 300))
        rows.add((number, 300))
        assert set(workspace["edge"]) == rows
        if number % 8 == 0:  # a folder with few changes behind its image is opened quickly
            workspace.checkpoint()
        if not came:
            break
    assert number > 30
    workspace.verify()
    workspace.close()
    without_image(folder)
    with Workspace.open(folder) as again:
        assert set(again["edge"]) == rows
