"""``python -m bench.spark.pipeline``: refreshes of TPC-H as daily Parquet files, kept as five views in Delta.

    python -m bench.spark.pipeline                 scale 0.1; bench/results/pipeline/results.md
    python -m bench.spark.pipeline --quick         scale 0.01, few days; only printed

A day is a thousandth of the orders that go, as many that come back, and their items (bench.tpch.tables).
First the pipeline follows some days in a process that is killed (SIGKILL) again and again, when it has made
some commits or while it makes one, and started anew.  Then it follows the others in this process, and Spark
SQL evaluates the same views each day, from Parquet files of the relations as they are then, which somebody
else has written.  After each day DuckDB reads the Delta tables and compares them with its own answers, and
Spark's files, too.

Exit status: 1 where a view is not DuckDB's.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.peers.spark_engine import Spark, stage_bytes, write_parts
from bench.report.machine import as_markdown, describe
from bench.report.markdown import number, table
from bench.report.page import is_quick, show
from bench.report.process_tree import processor_seconds
from bench.spark.pipeline_run import READS, THREADS, Lake, Pipeline
from bench.spark.pipeline_views import VIEWS, View
from bench.tpch.peer import Peer, check
from bench.tpch.tables import Refreshes, tables

ALL = "all five"
ORDERS = 1_500_000
"""At scale 1."""

PAUSE = 2.0
"""Seconds at most, behind the commit for which a kill waits."""


@dataclass(frozen=True)
class Plan:
    """How much is measured: days followed by a process that is killed, and days that are timed."""

    scale: float
    kills: int
    killed_days: int
    warm_days: int
    days: int


WHOLE = Plan(0.1, kills=5, killed_days=8, warm_days=3, days=10)
QUICK = Plan(0.01, kills=1, killed_days=2, warm_days=1, days=2)


@dataclass
class Spent:
    """What days took, one after the other."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


@dataclass
class Side:
    """By view, or of all together, what days took; ``read`` and ``written``: bytes of each, of all views."""

    views: dict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    read: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def note(self, view: str, seconds: float, processor: float) -> None:
        self.views[view].seconds.append(seconds)
        self.views[view].processor.append(processor)


class Days:
    """Days of refreshes, written into a lake and given to DuckDB."""

    def __init__(self, lake: Lake, loaded: Mapping[str, pa.Table]) -> None:
        self._lake, self._peer, self._refreshes = lake, Peer(loaded), Refreshes(loaded, seed=1)
        self._orders = -(-loaded["orders"].num_rows // 1000)
        lake.begin(loaded)

    def drop(self) -> None:
        changes = self._refreshes.batch(self._orders)
        self._lake.drop(self._lake.days() + 1, changes)
        self._peer.apply(changes)

    def relations(self) -> Iterator[tuple[str, pa.Table]]:
        """As they are after the last day."""
        for name in READS:
            yield name, self._peer.answer(f"SELECT * FROM {name}")

    def check(self, view: View, found: pa.Table) -> None:
        """Raises AssertionError where a view is not what DuckDB answers."""
        check(view.name, found, self._peer.answer(view.sql))

    def check_tables(self) -> None:
        """Read all Delta tables by DuckDB.  Raises AssertionError."""
        for view in VIEWS:
            connection = duckdb.connect()
            connection.register("kept", DeltaTable(self._lake.table(view)).to_pyarrow_dataset())
            self.check(view, connection.sql("FROM kept").to_arrow_table())


def run(command: Sequence[str], kill_at: int = 0, pause: float = 0.0) -> list[str]:
    """Run a command; the lines that it said.

    ``kill_at``: how many it has said when it is killed, ``pause`` seconds later; 0: it is not.
    Raises AssertionError for one that fails by itself.
    """
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.strip())
            if len(said) == kill_at:
                time.sleep(pause)
                process.kill()
                break
    if process.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(f"the pipeline ended with status {process.returncode}")
    return said


class Recomputed:
    """The same views, each evaluated whole by Spark SQL and written as Parquet files."""

    def __init__(self, spark: Spark, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def take(self, days: Days) -> None:
        """Write the relations as they are; not timed."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for name, rows in days.relations():
            write_parts(rows, self._folder / name)

    def evaluate(self, view: View) -> Path:
        for name in view.reads:
            self._spark.read(self._folder / name).createOrReplaceTempView(name)
        path = self._folder / "views" / view.name
        self._spark.session.sql(view.spark_sql).write.mode("overwrite").parquet(str(path))
        return path


def measured(plan: Plan, folder: Path, say: Callable[[str], None]) -> str:
    """The page.  Raises AssertionError where a view is wrong."""
    machine = as_markdown(describe())
    lake = Lake(folder / "lake")
    days = Days(lake, {name: rows for name, rows in tables(plan.scale).items() if name in READS})
    for _ in range(plan.killed_days):
        days.drop()
    say(f"{plan.killed_days} days, {plan.kills} kills")
    chance, command = random.Random(1), [sys.executable, "-m", "bench.spark.pipeline_run", str(lake.folder)]
    killed = [
        run(command, kill_at=chance.randint(1, 2), pause=chance.random() * PAUSE)[-1]
        for _ in range(plan.kills)
    ]
    run(command)
    days.check_tables()
    spark = Spark(THREADS)
    say("opened again")
    pipeline, recomputed = Pipeline(spark.session, lake), Recomputed(spark, folder / "recomputed")
    kept, anew = Side(), Side()
    for day in range(plan.warm_days + plan.days):
        if day == plan.warm_days:
            kept, anew = Side(), Side()
        days.drop()
        say(f"day {lake.days()}")
        _follow(pipeline, spark, kept)
        days.check_tables()
        _evaluate(recomputed, days, spark, anew)
    rows = {view.name: pipeline.kept.table(view.name).count() for view in VIEWS}
    changed = {view.name: pipeline.kept.changes(view.name, source="days").count() for view in VIEWS}
    state = sum(_sizes(lake.folder / "state").values())
    pipeline.close()
    spark.stop()
    return page(plan, machine, killed, (kept, anew), (rows, changed), state)


def _follow(pipeline: Pipeline, spark: Spark, side: Side) -> None:
    """A day by the pipeline."""
    folders = [pipeline.lake.folder / name for name in ("state", "tables")]
    sizes = [_sizes(folder) for folder in folders]
    read, started, busy = stage_bytes(spark.session, "inputBytes"), time.perf_counter(), processor_seconds()
    for _ in pipeline.catch_up():
        side.note(ALL, time.perf_counter() - started, processor_seconds() - busy)
        started, busy = time.perf_counter(), processor_seconds()
    side.read.append(stage_bytes(spark.session, "inputBytes") - read)
    side.written.append(
        sum(_grown(before, _sizes(folder)) for before, folder in zip(sizes, folders, strict=True))
    )


def _evaluate(recomputed: Recomputed, days: Days, spark: Spark, side: Side) -> None:
    """The same day by Spark SQL."""
    recomputed.take(days)
    read, written = (stage_bytes(spark.session, name) for name in ("inputBytes", "outputBytes"))
    for view in VIEWS:
        started, busy = time.perf_counter(), processor_seconds()
        path = recomputed.evaluate(view)
        side.note(view.name, time.perf_counter() - started, processor_seconds() - busy)
        days.check(view, pq.read_table(path))
    side.read.append(stage_bytes(spark.session, "inputBytes") - read)
    side.written.append(stage_bytes(spark.session, "outputBytes") - written)


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def _grown(before: dict[Path, int], after: dict[Path, int]) -> int:
    """Bytes of files that are new, and by which others have grown."""
    return sum(max(0, size - before.get(path, 0)) for path, size in after.items())


# -- the page ------------------------------------------------------------------------------------


def page(
    plan: Plan,
    machine: str,
    killed: Sequence[str],
    sides: tuple[Side, Side],
    counts: tuple[dict[str, int], dict[str, int]],
    state: int,
) -> str:
    (rows, changed), (kept, anew) = counts, sides
    lines = []
    for view in VIEWS:
        its = [f"`{view.name}`, {view.kind}", f"{rows[view.name]:,}", f"{changed[view.name]:,}", "", ""]
        lines.append(its + _medians(anew, [view.name]))
    names = [view.name for view in VIEWS]
    lines.append([ALL, "", "", *_medians(kept, [ALL]), *_medians(anew, names)])
    heads = ["view", "rows", "changed by a day", "kept: s a day", "CPU s", "Spark SQL anew: s a day", "CPU s"]
    figures = [
        [what, *(f"{median(getattr(side, which)) / 2**20:,.2f}" for side in sides)]
        for what, which in (("read by Spark's stages", "read"), ("written into files", "written"))
    ]
    return "\n\n".join(
        [
            "# A pipeline in Spark: days of TPC-H, five views",
            machine,
            f"Scale {plan.scale:g}; a day is {round(ORDERS * plan.scale / 1000)} orders that go and as many"
            f" that come, with their items. `local[{THREADS}]`; medians of {plan.days} days after"
            f" {plan.warm_days}. After each day all views are what DuckDB answers; ours it reads from Delta.",
            f"Before, it was killed {len(killed)} times in {plan.killed_days} days and started again"
            f" (it had said last: {', '.join(killed)}). Then the views were what DuckDB answers.",
            table(heads, lines),
            table(["MiB a day, of all views", "kept", "Spark SQL anew"], figures),
            f"The state takes {state / 2**20:,.0f} MiB. Written are files that are there at the end of the"
            " day: journals, changes and Delta tables on our side. What makes the relations of a day for"
            " Spark SQL is not counted. Where the recursion has `UNION`, Spark SQL has `UNION ALL`, and so"
            " follows paths.",
        ]
    )


def _medians(side: Side, names: Sequence[str]) -> list[str]:
    spent = [side.views[name] for name in names]
    of_days = (zip(*(getattr(one, what) for one in spent), strict=True) for what in ("seconds", "processor"))
    return [number(median(map(sum, days))) for days in of_days]


def main() -> int:
    """Run the command."""
    with TemporaryDirectory(prefix="pipeline-") as folder:
        try:
            text = measured(
                QUICK if is_quick() else WHOLE, Path(folder), lambda what: print(what, file=sys.stderr)
            )
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
    show(text, "pipeline/results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
