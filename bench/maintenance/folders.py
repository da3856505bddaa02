"""What it costs to keep a workspace in a folder: commits beside those in memory, changes a second, opening.

    python -m bench.maintenance.folders
    python -m bench.maintenance.folders --rows 100000 --folder /mnt/disk

The rule lists triangles.  Edges of an RMAT graph go and come again, drawn with equal chance: one in a commit,
or a thousand.  Those in memory and those in the folder take turns, and so
does a file that is only written to and synced, as much as the journal gets.  What is opened are random edges,
10 million unless it is said.  After each part the triangles are compared with those that are evaluated anew.

A line has the median, and the least and the most, of the seconds that passed, and the median of this
process's processor seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from bench.graphs import Edges, oriented, rmat
from lftj import Database
from maintenance import Workspace
from maintenance.store.disk import Disk, DiskFile

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
SCALE = 17
"""Of the RMAT graph that is changed: 971,356 edges."""

SINGLE = 400
"""Commits of one edge."""

TOGETHER, ROUNDS, COMMITS = 1_000, 7, 20
"""Changes of a transaction, and how many such transactions are one of so many rounds."""

OPENINGS = 3

Times = list[tuple[float, float]]
T = TypeVar("T")


def timed(times: Times, act: Callable[[], T]) -> T:
    """What a call returns; its seconds, and processor seconds, are added."""
    busy, started = time.process_time(), time.perf_counter()
    result = act()
    times.append((time.perf_counter() - started, time.process_time() - busy))
    return result


def shown(what: str, times: Times, unit: float = 1e3, name: str = "ms") -> None:
    """A line with the figures of some calls."""
    passed, busy = (np.array(column) * unit for column in zip(*times, strict=True))
    print(
        f"{what:<50} {np.median(passed):8.3f} {name} ({passed.min():.3f} to {passed.max():.3f}),"
        f" processor {np.median(busy):.3f} {name}",
        flush=True,
    )


def table(edges: Edges) -> pa.Table:
    return pa.table(dict(zip(("a", "b"), edges, strict=True)))


def check(workspace: Workspace) -> None:
    """Raise AssertionError unless the triangles are those of the edges."""
    anew = Database()
    anew.load("edge", workspace["edge"].table)
    found = anew.count(TRIANGLES)
    assert workspace["tri"].count == found, f"{workspace['tri'].count:,} triangles, not {found:,}"


def changed(workspace: Workspace, edges: Edges, weight: int) -> None:
    with workspace.transaction() as tx:
        tx.apply("edge", table(edges).append_column("weight", pa.array(np.full(len(edges[0]), weight))))


def gone_and_back(workspace: Workspace, some: list[Edges]) -> None:
    """A transaction for each of some edges that takes them away, and one that brings them again."""
    for edges in some:
        changed(workspace, edges, -1)
        changed(workspace, edges, 1)


def commits(place: Path) -> None:
    """Commits to a folder and in memory, in turns."""
    workspaces = {"in memory": Workspace(), "in a folder": Workspace.open(place / "changed")}
    for workspace in workspaces.values():
        workspace.load("edge", table(rmat(SCALE)))
        workspace.install(TRIANGLES)
    chance = np.random.default_rng(1)
    graph = rmat(SCALE)
    singles: dict[str, Times] = {name: [] for name in (*workspaces, "synced")}
    many: dict[str, Times] = {name: [] for name in workspaces}
    alone = Disk().create(place / "alone")
    for _ in range(20 + SINGLE):  # the first 20 are not counted
        where = chance.integers(len(graph[0]))
        edge = graph[0][where : where + 1], graph[1][where : where + 1]
        for weight in (-1, 1):
            for name, workspace in workspaces.items():
                timed(singles[name], lambda: changed(workspace, edge, weight))  # noqa: B023
            timed(singles["synced"], lambda: written(alone, len(singles["synced"])))
    alone.close()
    for name, times in singles.items():
        said = "600 bytes written and synced" if name == "synced" else f"one edge, {name}"
        shown(said, times[40:])
    for number in range(-1, ROUNDS):
        drawn = [chance.choice(len(graph[0]), TOGETHER, replace=False) for _ in range(COMMITS // 2)]
        some = [(graph[0][rows], graph[1][rows]) for rows in drawn]
        for name, workspace in workspaces.items():
            timed(many[name], lambda: gone_and_back(workspace, some))  # noqa: B023
        if number < 0:
            for times in many.values():
                times.clear()
    n_changes = TOGETHER * COMMITS
    for name, times in many.items():
        shown(f"{n_changes:,} changes, {TOGETHER:,} a transaction, {name}", times, 1.0, "s")
        rates = sorted(n_changes / passed for passed, _ in times)
        print(f"    {rates[len(rates) // 2]:,.0f} changes a second ({rates[0]:,.0f} to {rates[-1]:,.0f})")
    for workspace in workspaces.values():
        check(workspace)
        workspace.close()


def written(file: DiskFile, number: int) -> None:
    """What a journal does for one change, the first being number 0, and nothing else."""
    file.write(bytes(600), 600 * number)
    file.sync()


def openings(place: Path, n_rows: int) -> None:
    """Opening a folder with random edges, with and without its image."""
    folder = place / "opened"
    chance = np.random.default_rng(2)
    drawn = n_rows + n_rows // 500 + 200  # some coincide
    edges = oriented(*chance.integers(0, n_rows // 10, size=(2, drawn)))
    edges = edges[0][:n_rows], edges[1][:n_rows]
    made: dict[str, Times] = {"load": [], "install": []}
    with Workspace.open(folder) as workspace:
        timed(made["load"], lambda: workspace.load("edge", table(edges)))
        timed(made["install"], lambda: workspace.install(TRIANGLES))
        workspace.checkpoint()
        check(workspace)
        n_triangles = workspace["tri"].count
    for what, times in made.items():
        shown(f"{what} {len(edges[0]):,} tuples", times, 1.0, "s")
    for image in ("with its image", "without an image"):
        times = []
        for _ in range(OPENINGS):
            if image == "without an image":
                for path in folder.glob("image-*"):
                    path.unlink()
            again = timed(times, lambda: Workspace.open(folder, read_only=True))
            assert again["tri"].count == n_triangles
            again.close()
            del again
        shown(f"open {len(edges[0]):,} tuples {image}", times, 1.0, "s")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.maintenance.folders", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the folder that is opened")
    parser.add_argument("--folder", help="where folders are made; they go afterwards")
    options = parser.parse_args(arguments)
    if options.rows < 1_000:
        parser.error("--rows: 1,000 or more, so that there are as many edges between a tenth as many nodes")
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        commits(Path(place))
        openings(Path(place), options.rows)


if __name__ == "__main__":
    main()
