"""Windows kept by change: what a commit costs by how large the partition is that it touches.

    python -m bench.kept_windows [--quick]

writes ``results.md`` into ``bench/results/kept-windows/`` (``--quick``: small partitions, only printed).

One relation ``reading(k, g, t, v)`` of one partition, whose times come in groups of two or three, and a head
for each window, each in a workspace of its own.  Commits put rows behind all others, or anywhere.  DuckDB
makes the window anew, over the same rows in a table of its own.  One thread, processor time, the least of
some commits; the sums of all values are compared at the end.
"""

from __future__ import annotations

import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.page import is_quick, show
from maintenance import Workspace

_OVER = "over (partition by g order by t"
WINDOWS = {
    "row_number(by: (t, k), per: g)": f"row_number() {_OVER}, k)",
    "rank(by: t, per: g)": f"rank() {_OVER})",
    "sum(v, by: t, per: g)": f"sum(v) {_OVER})",
    "max(v, by: t, per: g)": f"max(v) {_OVER})",
    "sum(v, by: t, per: g, range: (-100, 0))": f"sum(v) {_OVER} range 100 preceding)",
    "sum(v, by: t, per: g, groups: (-3, 0))": f"sum(v) {_OVER} groups 3 preceding)",
    "lag(v, by: (t, k), per: g)": f"lag(v) {_OVER}, k)",
    "avg(v, per: g)": "avg(v) over (partition by g)",
}
COMMITS = {"1 behind": 1, "100 behind": 100, "1 anywhere": 1, "100 anywhere": 100}


def readings(random: np.random.Generator, first: int, n: int, times: np.ndarray) -> pa.Table:
    """Rows with numbers from ``first`` on."""
    values = random.integers(0, 1_000_000, n)
    return pa.table({"k": np.arange(first, first + n), "g": np.zeros(n, np.int64), "t": times, "v": values})


def measured(window: str, sql: str, n_rows: int, n_commits: int) -> list[list[str]]:
    """Rows of the table: one for each kind of commit."""
    random = np.random.default_rng(0)
    loaded = readings(random, 0, n_rows, np.sort(random.integers(0, n_rows // 2, n_rows)))
    workspace = Workspace()
    workspace.load("reading", loaded)
    workspace.install(f"h(k, w) <- reading(k, g, t, v), w = {window}.", strategy="delta")
    peer = duckdb.connect(config={"threads": 1})
    peer.register("loaded", loaded)
    peer.execute("create table reading as select * from loaded")
    n, end = n_rows, n_rows // 2
    rows = []
    for commits, size in COMMITS.items():
        took, beside, read, changed = [], [], 0, 0
        for _ in range(n_commits):
            if "behind" in commits:
                times, end = end + 1 + np.arange(size) // 2, end + 1 + size // 2
            else:
                times = random.integers(0, end, size)
            came = readings(random, n, size, times)
            n += size
            started = time.process_time()
            with workspace.transaction() as tx:
                tx.insert("reading", came)
            took.append(time.process_time() - started)
            stats: Any = tx.stats["h"]
            changed = stats.head_changes
            read = tx.stats.rules.get("h_window", stats).window_rows
            peer.register("came", came)
            peer.execute("insert into reading select * from came")
            started = time.process_time()
            peer.sql(f"select k, {sql} as w from reading").to_arrow_table()
            beside.append(time.process_time() - started)
        rows.append(
            [
                f"`{window}`",
                f"{n_rows:,}",
                commits,
                f"{read:,}",
                f"{changed:,}",
                number(1e3 * min(took)),
                number(1e3 * min(beside)),
            ]
        )
    (expected,) = peer.execute(f"select sum(w) from (select {sql} as w from reading)").fetchall()
    found = sum(value for value in workspace["h"].to_arrow()["w"].to_pylist() if value is not None)
    if abs(float(found) - float(expected[0])) > 1e-9 * abs(float(expected[0])):
        raise AssertionError(f"{window}: {found}, DuckDB {expected[0]}")
    return rows


def report(quick: bool) -> str:
    """The table."""
    machine = describe()
    sizes = {100: 3} if quick else {100: 15, 10_000: 9, 1_000_000: 3}
    rows = [
        row
        for window, sql in WINDOWS.items()
        for n_rows, n_commits in sizes.items()
        for row in measured(window, sql, n_rows, n_commits)
    ]
    heads = ["window", "rows", "commit", "rows read", "changes", "ms", f"DuckDB {duckdb.__version__}, ms"]
    return "\n\n".join(
        [
            "# Windows kept by change",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            "Milliseconds of processor time, the least of some commits; rows read and changes of the last."
            " DuckDB makes the window anew and hands on all rows.",
            table(heads, rows),
        ]
    )


def main() -> None:
    show(report(is_quick()), "kept-windows/results.md")


if __name__ == "__main__":
    main()
