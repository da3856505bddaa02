"""Incremental maintenance of rule heads (ENGINE.md sections 4 to 7).

>>> from maintenance import Workspace
>>> ws = Workspace()
>>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
>>> ws.install("back(b, a) <- edge(a, b).")
>>> with ws.transaction() as tx:
...     tx.insert("edge", [(2, 3)])
>>> tx.changes["back"].to_pylist()
[{'b': 3, 'a': 2, 'weight': 1}]
"""

from maintenance.transaction import Transaction
from maintenance.workspace import Snapshot, Workspace

__all__ = ["Snapshot", "Transaction", "Workspace"]
