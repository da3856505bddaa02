"""A result of 50 million tuples streams in bounded memory.

The result would take 1.2 GB as three int64 columns.  A child process streams
it and reports by how much its peak resident memory (Linux: ``VmHWM``) grew
from after the first batch to the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.paths import ROOT

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"),
]

N_HUBS, N_LEFT, N_RIGHT = 50, 1000, 1000
GROWTH_MB = 150

CHILD = """
    import json
    import sys

    import numpy as np

    import lftj


    def peak_mb():
        for line in open("/proc/self/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024


    n_hubs, n_left, n_right, threads = map(int, sys.argv[1:])
    hub = np.arange(n_hubs)
    db = lftj.Database()
    left, mid = (grid.ravel() for grid in np.meshgrid(np.arange(n_left), hub))
    db.load("left", {"a": left, "b": mid})
    mid, right = (grid.ravel() for grid in np.meshgrid(hub, np.arange(n_right)))
    db.load("right", {"b": mid, "c": right})
    n_rows = n_batches = total = 0
    largest = after_first = 0
    for batch in db.stream("path(a, b, c) <- left(a, b), right(b, c).", threads=threads):
        n_rows += batch.num_rows
        largest = max(largest, batch.num_rows)
        total += sum(int(column.to_numpy(zero_copy_only=False).sum()) for column in batch.columns)
        n_batches += 1
        after_first = after_first or peak_mb()
    print(json.dumps([n_rows, largest, total, n_batches, peak_mb() - after_first]))
"""


@pytest.mark.in_turns
@pytest.mark.parametrize("threads", [1, 2])
def test_fifty_million_tuples_stream_in_bounded_memory(threads: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    command += [str(number) for number in (N_HUBS, N_LEFT, N_RIGHT, threads)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_rows, largest, total, n_batches, growth_mb = json.loads(done.stdout)
    n_expected = N_HUBS * N_LEFT * N_RIGHT
    assert n_rows == n_expected
    assert largest <= 65_536
    assert n_batches < 3 * n_expected / 65_536
    means = (N_HUBS - 1, N_LEFT - 1, N_RIGHT - 1)
    assert total == sum(n_expected * mean // 2 for mean in means)
    assert growth_mb < GROWTH_MB
