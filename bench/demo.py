"""``python -m bench.demo``: a cyclic join over a large generated graph, DuckDB beside it.

Everything happens in this one process, on generated data: no server, no
download, no data folder.  Both engines answer the same question over the same
Arrow table with the same number of threads, and both answers must be equal.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from bench import datasets, workloads
from bench.peers.engine import Engine, engine_class, version
from bench.peers.lftj_engine import Lftj
from bench.report import machine
from bench.report.markdown import number
from bench.workload import Workload
from lftj.database import warming

_OWN_RULE = """\
import lftj

db = lftj.Database()
db.load("edge", "edges.parquet")   # or CSV, Arrow; or a table
db.query("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")"""

_OWN_RULE_IN_SHELL = "lftj query triangles.rules --load edge=edges.parquet --out triangles.parquet"

_RUNS = 3
"""Timed runs of lftj and of a quick peer; a peer's run of over a second is not repeated."""


@dataclass
class Answer:
    """One engine's count and seconds; ``first`` is the run that builds indexes."""

    count: int
    first: float
    seconds: float
    runs: int


def _ask(name: str, workload: Workload, tables: dict[str, pa.Table]) -> tuple[Engine, Answer]:
    engine = engine_class(name)(workload.threads)
    engine.load(tables, workload.ends)
    query = workload.queries[name]
    count, first = _timed(lambda: engine.count(query))
    if first > 1 and name != "lftj":  # nothing is left to warm up that would matter
        return engine, Answer(count, first, first, 1)
    runs = [_timed(lambda: engine.count(query))[1] for _ in range(_RUNS)]
    return engine, Answer(count, first, statistics.median(runs), len(runs))


def _timed(run: Callable[[], int]) -> tuple[int, float]:
    started = time.perf_counter()
    result = run()
    return result, time.perf_counter() - started


def _first(engine: Engine, rule: str, rows: int) -> str:
    """The first rows of a result, as text."""
    assert isinstance(engine, Lftj)
    some = engine.some(rule, rows)
    names = ", ".join(some.schema.names)
    listed = "  ".join(str(tuple(row.values())) for row in some.to_pylist())
    return f"({names}) = {listed} ..."


def _workloads(scale: int) -> list[tuple[str, Workload]]:
    small = max(scale - 4, 8)
    spokes = 16_000 if scale >= 15 else 1_000
    return [
        ("triangles", workloads.triangles(f"rmat-{scale}", 0, f"RMAT {scale}/8")),
        ("4-cliques", workloads.cliques(f"rmat-{small}", 0, f"RMAT {small}/8")),
        ("hub triangles", workloads.adversarial(spokes, "count")),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns 0, or 1 when two answers differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--scale", type=int, default=17, metavar="N", help="2**N vertices, 8 to 20 (default 17)"
    )
    chosen = parser.parse_args(arguments)
    if not 8 <= chosen.scale <= 20:
        parser.error("--scale must be 8 to 20")
    console = Console()
    description = machine.describe()
    console.print(
        f"[bold]lftj beside DuckDB[/bold], one thread each, {description['processor']}\n", highlight=False
    )
    peer = version("duckdb")
    if peer is None:
        console.print("DuckDB is not installed, so lftj runs alone; install lftj\\[bench] to compare.\n")
    summary = Table(title="\nseconds to count all results")
    for head in ("question", "edges", "results", "lftj", "DuckDB", "DuckDB / lftj", "counts"):
        summary.add_column(head, justify="left" if head in ("question", "counts") else "right")
    _compile(console)
    equal = True
    for position, (name, workload) in enumerate(_workloads(chosen.scale)):
        with _working(console, f"making the graph for: {workload.title}"):
            made = {table: datasets.table(table) for table in set(workload.tables.values())}
            tables = {relation: made[table] for relation, table in workload.tables.items()}
        edges = next(iter(tables.values())).num_rows
        each = " in each of R, S, T" if len(tables) > 1 else ""
        console.print(f"[bold]{workload.title}[/bold]: {edges:,} edges{each}", highlight=False)
        console.print(f"  {workload.queries['lftj']}", highlight=False, markup=False)
        with _working(console, "lftj counts"):
            engine, ours = _ask("lftj", workload, tables)
        console.print(
            f"  lftj    {ours.count:,} results in {number(ours.seconds)} s, "
            f"the first time, with indexing, {number(ours.first)} s",
            highlight=False,
        )
        cells = ["", "", "not compared"]
        if peer is not None:
            with _working(console, "DuckDB counts"):
                _, theirs = _ask("duckdb", workload, tables)
            same = ours.count == theirs.count
            equal = equal and same
            console.print(
                f"  DuckDB  {theirs.count:,} results in {number(theirs.seconds)} s", highlight=False
            )
            cells = [
                number(theirs.seconds),
                f"[bold]{number(theirs.seconds / ours.seconds)}[/bold]",
                "equal" if same else f"[red]DIFFER: {theirs.count:,}[/red]",
            ]
        if position == 0:
            console.print(f"  {_first(engine, workload.queries['lftj'], 5)}", highlight=False)
        summary.add_row(name, f"{edges:,}", f"{ours.count:,}", number(ours.seconds), *cells)
        console.print()
    console.print(summary)
    console.print("\nYour own rule, from Python:\n")
    console.print(Syntax(_OWN_RULE, "python", background_color="default"))
    console.print(f"\nand from the shell:\n\n{_OWN_RULE_IN_SHELL}", highlight=False)
    return 0 if equal else 1


def _compile(console: Console) -> None:
    """Compile what the demo needs, and load it: what is timed afterwards is the work."""
    with _working(console, "compiling the kernels, once per installation"):
        for step in warming.steps():
            step()


@contextmanager
def _working(console: Console, what: str) -> Iterator[None]:
    """A spinner while something runs, where someone is there to see it."""
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


if __name__ == "__main__":
    sys.exit(main())
