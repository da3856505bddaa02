"""The benchmarks of the Spark bridge, tiny: equal results on all sides, whole rows.  No time is asserted."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.paths import ROOT

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import lftj
from bench import datasets, workloads
from bench.joins.patterns import TRIANGLE_RULE
from bench.maintenance.edge_batches import EdgeBatches
from bench.peers import engine
from bench.peers.spark_engine import Spark, counted_rows, parts_of
from bench.report import process_tree
from bench.report.measurement import Measurement
from bench.report.repetition import repeated
from bench.report.results import Results
from bench.spark import components, executors
from bench.spark import workloads as spark_workloads
from bench.spark.batches import Batches, restart
from bench.spark.run import OneQuery, SparkSubject
from bench.spark.subject import spark_subject
from bench.workload import IN_SPARK, Workload

FILES = 3
"""Of a table: each is a task, in Java and in Python, of every query."""

QUICK = {workload.task: workload for workload in reversed(spark_workloads.quick())}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tables")
    return {"edge": str(datasets.file("rmat-9", folder))}


@pytest.fixture(autouse=True)
def _tests_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The benchmarks run in the tests' session, which they must not end."""
    monkeypatch.setattr(Spark, "stop", lambda self: None)
    monkeypatch.setattr("bench.peers.spark_engine.FILES", FILES)
    monkeypatch.setattr("bench.spark.batches.LEAST_BATCHES", 2)
    monkeypatch.setattr("bench.spark.state.LEAST_BATCHES", 2)
    monkeypatch.setattr("bench.spark.state.WARM_UP", 1)
    monkeypatch.setattr("bench.spark.run.SHUFFLE_PARTITIONS", (2, 3))
    monkeypatch.setattr(
        Batches,
        "restarted",
        lambda self, file: restart(str(self._folder / "state"), str(file), self.query, 2, self._place),
    )
    assert str(ROOT) in os.environ["PYTHONPATH"].split(os.pathsep) or Path.cwd() == ROOT
    yield
    assert spark.range(1).count() == 1
    assert not [thread for thread in threading.enumerate() if "(_sample)" in thread.name], "a subject is open"


def measured(workload: Workload, key: str, files: dict[str, str]) -> Measurement:
    """What the harness makes of a subject, without a process of its own."""
    subject: SparkSubject = spark_subject(workload, key, files)
    row = Measurement(workload.name, key, workload.threads)
    subject.load()
    started = time.perf_counter()
    row.answer = subject.first()
    row.first_seconds = time.perf_counter() - started
    assert row.answer == workload.expected
    for times in subject.times(2, 0.0):
        if times is not None:
            row.runs.append(times[0])
            row.processor_seconds.append(times[1])
    row.figures = subject.figures()
    row.peak_bytes = subject.bytes()
    subject.close()
    row.status = "ok"
    return row


def answer(workload: Workload, key: str, files: dict[str, str]) -> int:
    """What a subject finds, which is closed then: each has a thread that looks at all processes."""
    with closing(spark_subject(workload, key, files)) as subject:
        return subject.first()


# -- workloads ---------------------------------------------------------------


def test_every_workload_is_against_spark_and_its_names_are_its_own() -> None:
    found = [*spark_workloads.full(), *spark_workloads.quick()]
    names = [workload.name for workload in [*workloads.full(), *spark_workloads.quick()]]
    assert len(names) == len(set(names))
    for workload in found:
        assert workload.task in IN_SPARK
        assert workloads.named(workload.name).expected == workload.expected
        assert {key.partition(":")[0] for key in workload.queries} <= set(engine.NAMES)
        assert {target.peer for target in workload.targets} <= set(workload.queries)


def test_oracle_batches_change_what_they_say() -> None:
    batches = EdgeBatches(datasets.table("rmat-8"), seed=1)
    before = set(zip(*batches.table().to_pydict().values(), strict=True))
    for _ in range(5):
        source, destination, weight = batches.draw(20).to_pydict().values()
        changes = list(zip(source, destination, strict=True))
        assert len(set(changes)) == 20 and sum(weight) == 0
        for edge, sign in zip(changes, weight, strict=True):
            assert (edge in before) == (sign < 0)
        before ^= set(changes)
        assert before == set(zip(*batches.table().to_pydict().values(), strict=True))


def test_a_power_law_graph_is_the_one_that_the_note_describes() -> None:
    edge = datasets.table("power-law-50000-200000")
    ends = pa.chunked_array([edge["src"], edge["dst"]]).value_counts()
    assert edge.num_rows == 200_000
    assert max(ends.field("counts").to_pylist()) == 1_208
    database = lftj.Database()
    database.load("edge", edge)
    assert database.count(TRIANGLE_RULE) == 63_785


# -- in Spark ----------------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize("key", ["lftj", *spark_workloads.PEERS])
def test_differential_joins_and_sql_find_the_same(key: str, files: dict[str, str]) -> None:
    row = measured(QUICK["spark count"], key, files)
    assert len(row.runs) == len(row.processor_seconds) == 2
    assert row.figures["shuffled MiB"] > 0
    assert row.peak_bytes is not None
    if key == "spark:sort-merge":
        assert row.figures["shuffle partitions"] in (2, 3)


@pytest.mark.in_turns
@pytest.mark.parametrize("key", ["lftj", "spark"])
def test_differential_cliques_and_listing(key: str, files: dict[str, str]) -> None:
    for workload in spark_workloads.quick()[1:3]:
        assert answer(workload, key, files) == workload.expected


@pytest.mark.in_turns
def test_differential_social_queries_on_a_small_part_of_the_data(tmp_path: Path) -> None:
    knows = {(a, b) for a in range(12) for b in range(12) if a != b and (a * b) % 3 != 1}
    tables = {
        "knows": pa.table({"src": [a for a, _ in knows], "dst": [b for _, b in knows]}),
        "interest": pa.table({"person": [a for a in range(12) for _ in range(2)], "tag": [*range(24)]}),
        "located_in": pa.table({"person": [*range(12)], "city": [100 + a % 4 for a in range(12)]}),
        "part_of": pa.table({"city": [100, 101, 102, 103], "country": [7, 7, 8, 8]}),
    }
    given = {}
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        given[name] = str(tmp_path / f"{name}.parquet")
    for workload in spark_workloads.social():
        own = {name: given[name] for name in workload.tables}
        found = {key: answer(workload, key, own) for key in ("lftj", "spark")}
        assert found["lftj"] == found["spark"] > 0, workload.name


def test_differential_foreign_keys_are_grouped_alike(tmp_path: Path) -> None:
    workload = spark_workloads.quick()[-1]
    given = {name: str(datasets.file(table, tmp_path)) for name, table in workload.tables.items()}
    found = {}
    for key in ("lftj", "lftj:sql", "spark"):
        with closing(spark_subject(workload, key, given)) as subject:
            assert isinstance(subject, OneQuery)
            subject.load()
            assert subject.first() == workload.expected
            found[key] = sorted(map(tuple, subject.frame().collect()))
    assert found["lftj"] == found["lftj:sql"] == found["spark"]


def test_a_state_in_the_driver_is_measured_to_its_commit(files: dict[str, str]) -> None:
    row = measured(QUICK["spark batches"], "lftj:driver", files)
    assert {"state MiB", "commit behind the rows, median s", "restart: first batch s"} <= set(row.figures)


def test_a_maintained_join_goes_on_after_its_batches_and_in_a_new_process(files: dict[str, str]) -> None:
    workload = QUICK["spark batches"]
    row = measured(workload, "lftj", files)
    assert len(row.runs) == 2
    assert {"build s", "state MiB", "shuffled MiB per batch, median", "restart: first batch s"} <= set(
        row.figures
    )
    assert sum(value for name, value in row.figures.items() if name.startswith("engines ")) == pytest.approx(
        100
    )
    results = Results(
        {
            "versions": {},
            "processor": "",
            "cores": 2,
            "memory_bytes": 0,
            "system": "",
            "python": "",
            "date": "",
            "load": 0,
        }
    )
    results.add(workload, row)
    assert workload.title in results.as_markdown() and not results.wrong()
    assert answer(workload, "lftj:whole, listed", files) == workload.expected


@pytest.mark.in_turns
@pytest.mark.parametrize("key", ["lftj", "lftj:transformWithState"])
def test_differential_a_stream_keeps_the_head_with_either_state(key: str, files: dict[str, str]) -> None:
    row = measured(QUICK["spark stream"], key, files)
    assert len(row.runs) == 2
    assert row.figures["written MiB per batch"] > 0


# -- what they are made of ---------------------------------------------------


def test_a_table_is_cut_into_files_that_have_all_its_rows(files: dict[str, str]) -> None:
    folder = parts_of(Path(files["edge"]))
    spark = Spark(2)
    assert len(list(folder.iterdir())) == FILES
    assert counted_rows(spark.read(folder)) == pq.read_metadata(files["edge"]).num_rows


def test_processes_are_counted_with_those_they_started() -> None:
    assert len(process_tree.tree()) > 1
    assert process_tree.resident_bytes() > 10 << 20
    assert process_tree.processor_seconds() > 0


def test_the_most_memory_of_one_process_is_told_by_kind() -> None:
    memory = process_tree.PeakMemory()
    found = memory.of_one()
    memory.stop()
    assert found.keys() >= {"driver", "JVM"}
    assert found["driver"] >= psutil.Process().memory_info().rss - (1 << 20) > 0
    assert found["JVM"] > 50 << 20


def test_counts_by_number_of_partitions(spark: SparkSession, files: dict[str, str]) -> None:
    """What `python -m bench.spark.executors` does with executors of its own."""
    graph, expected = parts_of(Path(files["edge"])), QUICK["spark count"].expected
    figures = executors.counted(spark, graph, expected, 3)
    assert figures.keys() == {"s", "CPU s", "shuffled MiB"} and min(figures.values()) > 0
    with pytest.raises(ValueError, match="3 partitions: 9,524 triangles, GraphBLAS counts 1"):
        executors.counted(spark, graph, 1, 3)


def test_long_runs_are_repeated_as_often_as_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.report.repetition.LONG_RUN_SECONDS", 0.0)
    assert len(list(repeated(lambda: None, least=5, spend=0.0))) == 1
    assert len(list(repeated(lambda: None, least=5, spend=0.0, least_long=3))) == 3


@pytest.mark.in_turns
def test_components_of_all_sides(spark: SparkSession) -> None:
    """GraphFrames' algorithm, rounds and one task find the labels; a path takes the first few rounds."""
    edges = [(n, n + 1) for n in range(40) if n % 9 != 8] + [(3, 3), (50, 7), (7, 50)]
    lines = components.measure(
        spark, "small", pa.table({"src": [a for a, _ in edges], "dst": [b for _, b in edges]}), 1
    )
    assert [line.split(": ")[1] for line in lines] == ["two-phase", "join, by rounds", "join, one task"]
    rounds = [int(line.rpartition(", ")[2].split()[0]) for line in lines[:2]]
    assert rounds[0] < rounds[1] == 9
    found, _ = components.two_phase(
        spark.createDataFrame(edges, "src bigint, dst bigint"), Path(tempfile.mkdtemp())
    )
    labels = {row["id"]: row["component"] for row in found.collect()}
    assert labels == {n: 0 if n == 50 else n // 9 * 9 for n in {end for edge in edges for end in edge}}
    found.unpersist()
