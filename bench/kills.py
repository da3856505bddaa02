"""``python -m bench.kills``: a process that changes a workspace in a folder is killed, again and again.

    make kills                                     1,000 kills, 10 million changes
    python -m bench.kills --kills 20 --seed 7      fewer, from another seed

A child opens the folder and commits transactions of some 1,000 changes until it is killed (SIGKILL): half of
the times while it opens the folder, else when it has committed some.  Checkpoints are made meanwhile, by
themselves and now and then on purpose.  Each time the folder is opened again and compared with an oracle, a
set of plain numbers that had the same transactions as far as the child said by a pipe that they were
committed, and one more at most: the one that was going on.  So are a head that counts, and, now and then, the
triangles, by what :meth:`maintenance.Workspace.changes_since` says of them since the time before.  Before the
last kill the child commits what is left of the changes that were asked for.  The folder must not grow.

A transaction is known by its number: the oracle and the child make it each for itself.

Exit status: 0; 1 when something was wrong, with the seed and what it was; the folder is left then.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from lftj.errors import LftjError
from maintenance import Workspace

KILLS = 1_000
CHANGES = 10_000_000
AT_ONCE = 1_000
"""Changes of a transaction, half of them rows that come."""

NODES = 4_000
KEPT = 24
"""So many transactions later the rows of one go: the relation stays as large as it is."""

CHECKPOINT_BYTES = 2 << 20
FEED_BYTES = 64 << 20
"""More than is committed from one comparison of all triangles to the next."""
FOLDER_BYTES = FEED_BYTES + 16 * CHECKPOINT_BYTES
"""At most: what is kept of the journal, what is not in a checkpoint yet, data, images, what was left half."""

OPENING_SECONDS = 0.4
"""Kills amid opening come within this time."""

TRIANGLES_EVERY = 20
"""Kills from one comparison of all triangles to the next."""

RULES = (
    "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), a < b, b < c."
    " out[a] = count() <- edge(a, _). last(n) <- edge(a, n), a < 0."
)

_console = Console(stderr=True, soft_wrap=True)


# -- transactions: a row (a, b) is the number a * NODES + b ---------------------------------------


def _rows(number: int) -> np.ndarray:
    """The rows that come by a transaction."""
    if number <= 0:
        return np.empty(0, np.int64)
    generator = np.random.default_rng(number)
    return np.unique(generator.integers(NODES * NODES, size=AT_ONCE // 2))


def transaction(number: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that come and those that go; none is in both."""
    came, went = _rows(number), _rows(number - KEPT)
    return np.setdiff1d(came, went), np.setdiff1d(went, came)


def _commit(workspace: Workspace, number: int) -> None:
    came, went = transaction(number)
    rows = np.concatenate([came, went])
    a, b = np.append(rows // NODES, [-1, -1]), np.append(rows % NODES, [number, number - 1])
    weights = np.ones(len(a), np.int64)
    weights[len(came) : -2] = weights[-1] = -1
    with workspace.transaction() as tx:
        tx.apply("edge", {"a": a, "b": b, "weight": weights})


# -- the process that forks those that are killed ----------------------------------------------------


def _work(folder: str, start: int) -> None:
    workspace = Workspace.open(folder, checkpoint_bytes=CHECKPOINT_BYTES, feed_bytes=FEED_BYTES)
    if "edge" not in workspace:
        workspace.load("edge", [(-1, 0)], columns=["a", "b"])
    if not workspace.heads:
        workspace.install(RULES)
    os.write(1, b"0\n")
    for number in range(start, start + 1_000_000):
        _commit(workspace, number)
        os.write(1, f"{number}\n".encode())
        if number % 50 == 0:
            workspace.checkpoint()


def _serve() -> None:
    """Fork a child for each line on stdin, which says a folder and the number to begin with."""
    warm = Workspace()
    warm.load("edge", [(-1, 0)], columns=["a", "b"])
    warm.install(RULES)
    for number in range(1, 30):
        _commit(warm, number)
    for line in sys.stdin:
        folder, start = line.rsplit(maxsplit=1)
        child = os.fork()
        if not child:
            try:
                _work(folder, int(start))
            finally:
                os._exit(1)
        os.write(1, f"child {child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


# -- the oracle ------------------------------------------------------------------------------------


@dataclass
class Oracle:
    """The rows after a transaction, as numbers; and what was seen so far."""

    rows: set[int] = field(default_factory=set)
    number: int = 0
    changes: int = 0
    in_flight: int = 0
    triangles: set[tuple[int, int, int]] = field(default_factory=set)
    version: int = -1
    """Of the workspace, when the triangles were compared."""

    def follow(self, number: int) -> None:
        """Go on to a transaction."""
        while self.number < number:
            self.number += 1
            came, went = transaction(self.number)
            self.rows.update(came.tolist())
            self.rows.difference_update(went.tolist())
            self.changes += len(came) + len(went) + 2

    def number_behind(self, changes: int) -> int:
        """The transaction by which so many changes more are made."""
        number = self.number
        while changes > 0:
            number += 1
            changes -= sum(map(len, transaction(number))) + 2
        return number

    def compare(self, workspace: Workspace, returned: int) -> None:
        """Raise AssertionError if a workspace is not what it was after ``returned``, or one more."""
        edges = workspace["edge"].table
        a, b = (edges.column(name).to_numpy() for name in ("a", "b"))
        last = int(b[a < 0].max(initial=0))
        assert returned <= last <= returned + 1, f"transaction {returned} returned, {last} is there"
        self.in_flight += last > returned
        self.follow(last)
        there = np.sort(a[a >= 0] * NODES + b[a >= 0])
        assert np.array_equal(there, np.sort(np.fromiter(self.rows, np.int64))), "edge"
        if workspace.heads:
            counts = workspace["out"].table
            nodes, numbers = np.unique(a, return_counts=True)
            out = dict(zip(counts["a"].to_pylist(), counts["count"].to_pylist(), strict=True))
            assert out == dict(zip(nodes.tolist(), numbers.tolist(), strict=True)), "out"
            assert set(workspace["last"]) == {(last,)}, "last"

    def compare_triangles(self, workspace: Workspace) -> None:
        """The same of the triangles, and of what is said that changed of them since the last time."""
        after: dict[int, set[int]] = {}
        for row in self.rows:
            a, b = divmod(row, NODES)
            if a < b:
                after.setdefault(a, set()).add(b)
        none: set[int] = set()
        triangles = {(a, b, c) for a, some in after.items() for b in some for c in after.get(b, none) & some}
        assert set(workspace["tri"]) == triangles, "tri"
        if self.version >= 0:
            change = workspace.changes_since(self.version, "tri").table
            *columns, weights = (column.to_pylist() for column in change.columns)
            changed = dict(zip(zip(*columns, strict=True), weights, strict=True))
            came = {row for row, weight in changed.items() if weight > 0}
            assert came == triangles - self.triangles, "what came of tri"
            assert changed.keys() - came == self.triangles - triangles, "what went of tri"
        self.triangles, self.version = triangles, workspace.version


def run(folder: Path, kills: int, changes: int, seconds: float, chance: random.Random) -> tuple[int, Oracle]:
    """Kill a child so many times, less if ``seconds`` are over; returns the kills and the oracle.

    Raises AssertionError.
    """
    oracle = Oracle()
    end = time.monotonic() + seconds
    command = [sys.executable, "-m", "bench.kills", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            for kill in range(kills):
                if time.monotonic() > end:
                    return kill, oracle
                server.stdin.write(f"{folder} {oracle.number + 1}\n")
                server.stdin.flush()
                child = int(server.stdout.readline().split()[1])
                left = changes - oracle.changes
                if kill < kills - 1:
                    mean = 2 * max(left, 0) / (kills - kill) / AT_ONCE
                    upto = oracle.number + round(chance.random() * 2 * mean)
                    while_opening = chance.random() < 0.5
                else:
                    upto, while_opening = oracle.number_behind(left), False
                returned = _killed(
                    server.stdout, child, chance, oracle.number, None if while_opening else upto
                )
                with (
                    Workspace.open(folder, read_only=True)
                    if (folder / "lock").exists()
                    else Workspace.open(folder) as again
                ):
                    if "edge" in again:
                        oracle.compare(again, returned)
                        nbytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                        assert nbytes <= FOLDER_BYTES, f"the folder has grown to {nbytes:,} bytes"
                        if again.heads and (kill % TRIANGLES_EVERY == 0 or kill == kills - 1):
                            oracle.compare_triangles(again)
                            again.verify()
                if kill % 50 == 49:
                    _console.print(
                        f"{kill + 1:,} kills, {oracle.changes:,} changes, {len(oracle.rows):,} rows"
                    )
        finally:
            server.stdin.close()
    assert oracle.changes >= changes, f"{oracle.changes:,} changes were made, fewer than {changes:,}"
    return kills, oracle


def _killed(output: object, child: int, chance: random.Random, number: int, upto: int | None) -> int:
    """Kill a child; the last transaction that it said it committed.

    ``number``: the last one before it; ``upto``: the one that is waited for, None where it is killed while it
    opens.
    """
    returned, lines = number, iter(output.readline, "")  # type: ignore[attr-defined]
    if upto is None:
        time.sleep(chance.random() * OPENING_SECONDS)
    else:
        for line in lines:
            if line == "ended\n" or (returned := max(returned, int(line))) >= upto:
                break
        time.sleep(chance.random() * 0.04)
    os.kill(child, signal.SIGKILL)
    for line in lines:
        if line == "ended\n":
            return returned
        returned = max(returned, int(line))
    raise AssertionError("the process that forks has ended")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--changes", type=int, default=CHANGES, help="at least so many in all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        _serve()
        return 0
    pa.set_cpu_count(1)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="lftj-kills-"))
    started = time.monotonic()
    try:
        kills, oracle = run(
            folder / "ws", options.kills, options.changes, options.seconds, random.Random(seed)
        )
    except (AssertionError, LftjError) as error:
        _console.print(f"wrong, with seed {seed}: {error}; the folder is {folder}")
        return 1
    shutil.rmtree(folder)
    print(
        f"{kills:,} kills survived, {oracle.number:,} transactions with {oracle.changes:,} changes; the one"
        f" that was going on was there after {oracle.in_flight:,} kills;"
        f" {time.monotonic() - started:,.0f} seconds, seed {seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
