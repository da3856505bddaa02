"""Opens a workspace in a folder and changes it until it is killed; says on stdout what returned.

    killed_child.py FOLDER ROUND DURABILITY

The process starts once and forks a child for each line on stdin, which names a folder and a number to start
from; the child prints a line for each transaction that is about to be committed, and when it returned.
"""

from __future__ import annotations

import os
import random
import sys

from maintenance import Workspace
from support.kept_lives import TRIANGLES

NODES = 12


def transaction(number: int) -> list[tuple[int, int, int]]:
    """The changes of a transaction: rows and weights.  Any process finds them of the number alone."""
    chance = random.Random(number)
    return [
        (chance.randrange(NODES), chance.randrange(NODES), chance.choice((1, 1, -1)))
        for _ in range(chance.randrange(1, 6))
    ]


def commit(workspace: Workspace, number: int) -> None:
    # Row (-1, number) says which transactions there were.
    rows = transaction(number)
    with workspace.transaction() as tx:
        tx.erase("edge", [(-1, number - 1)])
        tx.insert("edge", [(-1, number)])
        for a, b, weight in rows:
            tx.apply("edge", {"x": [a], "y": [b], "weight": [weight]})


def work(folder: str, start: int) -> None:
    workspace = Workspace.open(folder, checkpoint_bytes=20_000)
    if "edge" not in workspace:
        workspace.load("edge", [(-1, 0)], columns=["x", "y"])
    if not workspace.heads:
        workspace.install(TRIANGLES)
    for number in range(start, start + 100_000):
        commit(workspace, number)
        os.write(1, f"{number}\n".encode())
        if number % 50 == 0:
            workspace.checkpoint()


def main() -> None:
    warm = Workspace()
    warm.load("edge", [(-1, 0)], columns=["x", "y"])
    warm.install(TRIANGLES)
    for number in range(1, 30):
        commit(warm, number)
    for line in sys.stdin:
        folder, start = line.split()
        child = os.fork()
        if not child:
            try:
                work(folder, int(start))
            finally:
                os._exit(1)
        os.write(1, f"child {child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
