"""Rules installed, or a folder with rules opened, then a wide mix of work, in one process, for tests.

    python work_after_install.py install | open FOLDER

Prints ``before NAME`` for each kernel or part that was compiled before that returned, ``after NAME`` for each
that was compiled behind it, and then ``seconds N``: how many commits say that they took longer than they did.
Compiling is announced however little time it takes: on a quick machine that is less than is worth a line.
"""

from __future__ import annotations

import sys
import time

from numba.core import event

from indices import announcement
from maintenance import Workspace

RULES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
MORE = """
    alone(a, b) <- edge(a, b), !edge(b, a).
    n[a] = count() <- edge(a, b), edge(b, c). best(a, min(c), max(c), sum(b)) <- edge(a, b), edge(b, c).
    path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c).
    near[b] = min(i) <- edge(1, b), i = 1. near[c] = min(j) <- near[b] = i, edge(b, c), j = i + 1.
    far[a] = sum(c) <- edge(a, b), edge(b, c), a < c.
"""
EDGES = [(n % 7, n % 11) for n in range(60)]


class Compilations(event.Listener):
    def __init__(self) -> None:
        self.when = "before"

    def on_start(self, happened: event.Event) -> None:
        function = happened.data["dispatcher"].py_func
        if function.__module__.split(".")[0] in ("indices", "lftj", "maintenance"):
            print(self.when, f"{function.__module__}.{function.__qualname__}")

    def on_end(self, happened: event.Event) -> None: ...


def installed(workspace: Workspace) -> Workspace:
    workspace.load("edge", EDGES[:30], columns=["a", "b"])
    workspace.install(RULES)
    return workspace


def commits(workspace: Workspace) -> int:
    """How many say that they took longer than they did."""
    wrong = 0
    for rows in (EDGES[30:32], EDGES[32:], [(100, n) for n in range(200)]):
        for change in ("insert", "erase"):
            started = time.perf_counter()
            with workspace.transaction() as transaction:
                getattr(transaction, change)("edge", rows)
            wrong += not 0 <= transaction.stats.seconds <= time.perf_counter() - started
    return wrong


def work(workspace: Workspace) -> int:
    wrong = commits(workspace)
    workspace.query("pair(a, b) <- edge(a, b), edge(b, a).")
    for strategy in ("trace", "delta", "recompute", "auto"):
        workspace.set_strategy("tri", strategy)
        wrong += commits(workspace)
    workspace.install(MORE)
    wrong += commits(workspace)
    workspace.set_strategy("far", "views")
    workspace.set_strategy("path", "stages")
    wrong += commits(workspace)
    rows = {"a": [1, 5, 1, 5], "b": [5, 6, 6, 6], "weight": [1, 1, 1, -1], "txn": [1, 1, 2, 3]}
    workspace.apply_many({"edge": rows})
    workspace.verify()
    return wrong


def main(how: str, folder: str = "") -> None:
    announcement.NOTICEABLE = 0.0
    compilations = Compilations()
    event.register("numba:compile", compilations)
    workspace = installed(Workspace()) if how == "install" else Workspace.open(folder)
    compilations.when = "after"
    print("seconds", work(workspace))


if __name__ == "__main__":
    main(*sys.argv[1:])
