"""What `repr` and notebooks show of a workspace: relations, and heads with how they are kept.

It is looked at from debuggers and other threads, so it waits for no commit: while one goes on, it shows what
there was before, and says so.
"""

from __future__ import annotations

from pathlib import Path

from lftj.display.contents import contents
from lftj.display.grid import Grid
from maintenance.workspace.published import Published
from maintenance.workspace.snapshot import VersionedRelations


def shown_contents(published: Published, folder: Path | None) -> Grid:
    """``folder``: where the workspace is kept."""
    state, is_last = published.shown_at_once()
    heads, grown = state.heads, state.strata.grown

    def kept_by(name: str) -> str:
        if name in grown:
            return "only grows"
        return heads[name].strategy if name in heads else ""

    relations = VersionedRelations(state.versions, state.hidden)
    place = f" in {folder}" if folder is not None else ""
    return contents(
        f"Workspace{place}, version {state.number:,}",
        relations.entries(kept_by),
        "" if is_last else "another thread is changing it: this is what there was before",
    )
