"""A driver of its own on a cluster, that applies batches to a state while another one does.

    python racing_driver.py MASTER STATE NUMBER FOLDER RACES

In each race both make a batch of one edge for the same version, from sources of their own.  They wait for
each other just before they commit, by files in FOLDER.  What becomes of each race goes to standard output, a
line each: ``won`` or ``StateError``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from lftj.errors import StateError
from spark_bridge import MaintainedJoin
from spark_bridge.state import store
from support.spark_session import builder

RULE = "two(a, c) <- e(a, b), e(b, c)."
FIRST = [(0, 1)]
SECONDS = 120


def edge(number: int, race: int) -> tuple[int, int]:
    """The edge of a driver in a race: with the first one it makes a pair of its own."""
    return 1, 100 * (number + 1) + race


def meet(folder: Path, name: str, number: int) -> None:
    """Wait until both are here."""
    (folder / f"{name} {number}").touch()
    other = folder / f"{name} {1 - number}"
    for _ in range(SECONDS * 1000):
        if other.exists():
            return
        time.sleep(0.001)
    raise TimeoutError(f"the other one does not come to {name}")


def main(master: str, state: str, number: int, folder: Path, races: int) -> None:
    spark = builder().master(master).config("spark.cores.max", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    edges = {"e": spark.createDataFrame(FIRST, "src bigint, dst bigint")}
    joined = MaintainedJoin(RULE, edges, state=state)
    reached = store.reached
    race = 0

    def at_once(point: str) -> None:
        reached(point)
        if point == "commit: manifest written, not moved":
            meet(folder, f"commit {race}", number)

    store.reached = at_once
    for race in range(races):
        meet(folder, f"begin {race}", number)
        changes = spark.createDataFrame([(*edge(number, race), 1)], "src bigint, dst bigint, weight int")
        try:
            joined.apply({"e": changes}, source=f"driver {number}")
            print("won", flush=True)
        except StateError:
            print("StateError", flush=True)
        meet(folder, f"end {race}", number)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
