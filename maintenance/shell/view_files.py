"""`keep_views`: the views that files define, brought into a workspace, which may have some of them.

Invariants

1. A view is made behind those that it reads.  One whose SQL and strategy are as they were, and that reads
   none that is made anew, is left alone, with its history and subscribers.  One that no other reads is
   defined anew in one step, and keeps its subscribers; others are taken away before.
2. After an error the workspace has the views that it had: what was made is taken away, and what was taken
   away is made again.

Cost: what changes, and all that reads it, is evaluated anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lftj.errors import ChangeError, SqlError
from lftj.session.sql_statements import ViewText, by_dependency

if TYPE_CHECKING:
    from maintenance.workspace.workspace import Workspace


class ViewsAnew(NamedTuple):
    """Views by what is to become of them.

    ``ordered``: all of them and the workspace's, each behind those that it reads; ``anew``: those to be made,
    or made anew; ``gone``: names of those among them that are to be taken away before; ``before``: the SQL
    and the strategy of those that are there; ``strategies``: by name.
    """

    ordered: Sequence[ViewText]
    anew: Sequence[ViewText]
    gone: Sequence[str]
    before: Mapping[str, tuple[str, str]]
    strategies: Mapping[str, str]


def views_anew(workspace: Workspace, views: Sequence[ViewText], strategy: str) -> ViewsAnew:
    """What `keep_views` would do; nothing is changed.

    Raises SqlError, and ChangeError where a name is taken.
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
    old_reads = (workspace.tables_of(sql) for sql, _ in before.values())
    read = {name.lower() for names in (*reads.values(), *old_reads) for name in names}
    gone: list[str] = []
    for view in anew:
        is_apart = view.name.lower() not in read and not reads[view.name] & {one.lower() for one in gone}
        if view.name in before and not is_apart:
            gone.append(view.name)
    return ViewsAnew(ordered, anew, gone, before, strategies)


def keep_views(workspace: Workspace, views: Sequence[ViewText], strategy: str) -> dict[str, str]:
    """Make and replace views, so that the workspace has all of these; says what became of each.

    Views that the workspace has besides are made anew where they read what is.

    Raises SqlError with the file and the place in it, ChangeError where a name is taken or rules read
    what would be replaced, and what `create_view` raises.
    """
    ordered, anew, gone, before, strategies = views_anew(workspace, views, strategy)
    if gone:
        workspace.uninstall(*gone)
    made: list[str] = []
    try:
        for view in anew:
            with view.placed():
                workspace.create_view(
                    view.name,
                    view.sql,
                    strategy=strategies[view.name],
                    replace=view.name in before and view.name not in gone,
                    progress=True,
                )
            made.append(view.name)
    except BaseException:
        if new := [name for name in made if name not in before or name in gone]:
            workspace.uninstall(*new)
        for name, (sql, kept_by) in before.items():
            if name in gone or name in made:
                workspace.create_view(name, sql, strategy=kept_by, replace=True)
        raise
    given = {view.name for view in views}
    said = {name: "made anew" if name in before else "made" for name in made}
    return {view.name: said.get(view.name, "as it was") for view in ordered if view.name in given | {*made}}


def _refuse_names(workspace: Workspace, views: Sequence[ViewText]) -> None:
    for view in views:
        files = [other.file for other in views if other.name.lower() == view.name.lower()]
        if len(files) > 1:
            raise SqlError(f"view {view.name!r} is defined twice: in {' and in '.join(files)}")
        if view.name in workspace and view.name not in workspace.views:
            raise ChangeError(f"{view.file}: {view.name!r} is a relation, or the head of rules, already")
