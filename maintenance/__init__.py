"""Incremental maintenance of rule heads (docs/design/engine.md sections 4 to 7).

>>> from maintenance import Workspace
>>> ws = Workspace()
>>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
>>> ws.install("back(b, a) <- edge(a, b).")
>>> with ws.transaction() as tx:
...     tx.insert("edge", [(2, 3)])
>>> tx.changes["back"].to_pylist()
[{'b': 3, 'a': 2, 'weight': 1}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lftj

if not hasattr(
    lftj, "__path__"
):  # a module, where a package is meant: none of ours can be imported to say so
    raise ImportError(f"{lftj.__file__} stands in the way of the package 'lftj': rename it", name="lftj")

if TYPE_CHECKING:
    from lftj.values.semigroup import register as aggregate
    from maintenance.changes.delta_feed import DeltaChanges, changes_from_delta
    from maintenance.workspace.batch import Applied
    from maintenance.workspace.follower import HeadChange
    from maintenance.workspace.metrics import WorkspaceStats
    from maintenance.workspace.transaction import Transaction
    from maintenance.workspace.workspace import Snapshot, Workspace

__all__ = [
    "Applied",
    "DeltaChanges",
    "HeadChange",
    "Snapshot",
    "Transaction",
    "Workspace",
    "WorkspaceStats",
    "aggregate",
    "changes_from_delta",
]


if not TYPE_CHECKING:  # where types are checked, the names are those above and no others

    def __getattr__(name: str) -> Any:
        """What is imported when it is asked for: ``lftj --help`` should not wait for the compiler."""
        if name == "aggregate":
            from lftj.values.semigroup import register

            return register
        if name in ("DeltaChanges", "changes_from_delta"):
            from maintenance.changes import delta_feed

            return getattr(delta_feed, name)
        if name in __all__:
            from maintenance.workspace import batch, follower, metrics, transaction, workspace

            modules = {
                "Applied": batch,
                "HeadChange": follower,
                "Transaction": transaction,
                "WorkspaceStats": metrics,
            }
            return getattr(modules.get(name, workspace), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
