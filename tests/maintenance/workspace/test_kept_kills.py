"""SIGKILL at any moment under load: what `commit` returned for is there, and nothing half.

The oracle applies the same transactions to a set of rows; it knows them by their numbers alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maintenance import Workspace
from support.kept_lives import Expected
from support.killed_child import transaction
from support.paths import ROOT, TESTS, child_environment

KILLS = 40


def after(rows: set[tuple[int, int]], number: int) -> set[tuple[int, int]]:
    """The rows after a transaction."""
    sums: dict[tuple[int, int], int] = {}
    for a, b, weight in transaction(number):
        sums[a, b] = sums.get((a, b), 0) + weight
    came = {row for row, weight in sums.items() if weight > 0}
    went = {row for row, weight in sums.items() if weight < 0}
    return (rows | came | {(-1, number)}) - went - {(-1, number - 1)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random()
    folder = tmp_path / "ws"
    command = [sys.executable, str(TESTS / "support" / "killed_child.py")]
    rows: set[tuple[int, int]] = {(-1, 0)}
    last = n_in_flight = n_checked = 0
    with subprocess.Popen(
        command, cwd=ROOT, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            for kill in range(KILLS):
                process.stdin.write(f"{folder} {last + 1}\n")
                process.stdin.flush()
                child = int(process.stdout.readline().split()[1])
                time.sleep(chance.random() ** 2 * 0.6)
                os.kill(child, signal.SIGKILL)
                returned = last
                while (line := process.stdout.readline()) != "ended\n":
                    assert line, "the process that forks has ended"
                    returned = int(line)
                with Workspace.open(folder, read_only=True) if kill else Workspace.open(folder) as again:
                    there = next((b for a, b in again["edge"] if a < 0), 0) if "edge" in again else 0
                    assert returned <= there <= returned + 1, (returned, there)
                    n_in_flight += there > returned
                    while last < there:
                        last += 1
                        rows = after(rows, last)
                    if "edge" in again:
                        assert set(again["edge"]) == rows
                        n_checked += 1
                        if again.heads:
                            Expected({"edge": frozenset(rows)}, {"tri": "auto"}).check(again)
        finally:
            process.stdin.close()
    assert n_checked > KILLS // 2
    assert last > KILLS
    with Workspace.open(folder) as again:
        assert set(again["edge"]) == rows
