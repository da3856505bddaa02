"""`keep_views`: the views that files define, brought into a workspace, which may have some of them.

Invariants

1. A view is made behind those that it reads.  One whose SQL and strategy are as they were, and that reads
   none that is made anew, is left alone, with its history and subscribers.
2. After an error the workspace has the views that it had: what was made is taken away, and what was taken
   away is made again.

Cost: what changes, and all that reads it, is evaluated anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lftj.errors import ChangeError, SqlError
from lftj.session.sql_statements import ViewText, by_dependency

if TYPE_CHECKING:
    from maintenance.workspace.workspace import Workspace


def keep_views(workspace: Workspace, views: Sequence[ViewText], strategy: str) -> dict[str, str]:
    """Make and replace views, so that the workspace has all of these; says what became of each.

    Views that the workspace has besides are made anew where they read what is.

    Raises SqlError with the file and the place in it, ChangeError where a name is taken or rules read
    what would be replaced, and what `create_view` raises.
    """
    there = workspace.views
    _refuse_names(workspace, views)
    strategies = {
        **{name: workspace.strategy_of(name) for name in there},
        **{v.name: strategy for v in views},
    }
    before = {name: (sql, workspace.strategy_of(name)) for name, sql in there.items()}
    given = {view.name for view in views}
    others = [ViewText(name, sql, "the workspace", sql) for name, sql in there.items() if name not in given]
    reads = {}
    for view in (*views, *others):
        with view.placed():
            reads[view.name] = {name.lower() for name in workspace.tables_of(view.sql)}
    ordered = by_dependency([*views, *others], reads)
    anew: list[ViewText] = []
    for view in ordered:
        is_same = before.get(view.name) == ("\n".join(view.sql.splitlines()), strategies[view.name])
        if not is_same or reads[view.name] & {one.name.lower() for one in anew}:
            anew.append(view)
    gone = [view.name for view in anew if view.name in before]
    if gone:
        workspace.uninstall(*gone)
    made: list[str] = []
    try:
        for view in anew:
            with view.placed():
                workspace.create_view(view.name, view.sql, strategy=strategies[view.name], progress=True)
            made.append(view.name)
    except BaseException:
        if made:
            workspace.uninstall(*made)
        for name, (sql, kept_by) in before.items():
            if name in gone:
                workspace.create_view(name, sql, strategy=kept_by)
        raise
    said = {name: "made anew" if name in before else "made" for name in made}
    return {view.name: said.get(view.name, "as it was") for view in ordered if view.name in given | {*made}}


def _refuse_names(workspace: Workspace, views: Sequence[ViewText]) -> None:
    for view in views:
        files = [other.file for other in views if other.name.lower() == view.name.lower()]
        if len(files) > 1:
            raise SqlError(f"view {view.name!r} is defined twice: in {' and in '.join(files)}")
        if view.name in workspace and view.name not in workspace.views:
            raise ChangeError(f"{view.file}: {view.name!r} is a relation, or the head of rules, already")
