"""laws: what who operates a maintained join sees of it in Spark: turns, names of jobs, metrics, errors."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from lftj.errors import StateError, VerificationError
from spark_bridge import JoinStats, MaintainedJoin
from spark_bridge.places import executor_state
from spark_bridge.places.kept_workspace import kept_at
from spark_bridge.placing.job_names import DESCRIPTION
from spark_bridge.stages.streaming import METRICS, check_next
from spark_bridge.stages.turns import turn_on
from spark_bridge.state.store import StateStore
from support.by_cells import join

RULE = "h(a, b) <- e(a, b), f(b)."
EDGES, NODES, CHANGES = "a bigint, b bigint", "b bigint", "a bigint, b bigint, weight bigint"
SECONDS = 600
"""For a thread that hangs."""

IN_BATCH = "batch: job done"


def joined_at(spark: SparkSession, state: Path) -> MaintainedJoin:
    relations = {
        "e": spark.createDataFrame([(1, 2), (2, 3)], EDGES),
        "f": spark.createDataFrame([(2,), (3,), (4,)], NODES),
    }
    return MaintainedJoin(RULE, relations, state=state, partitions=1, shares={})


def change(spark: SparkSession, row: tuple[int, int]) -> dict[str, DataFrame]:
    return {"e": spark.createDataFrame([(*row, 1)], CHANGES)}


def rows(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def files_of(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@contextmanager
def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> Iterator[None]:
    """Something happens in the first batch whose job is done, before it is committed."""
    left = [happens]

    def reached(point: str) -> None:
        if point == IN_BATCH and left:
            left.pop()()

    with monkeypatch.context() as patched:
        patched.setattr(executor_state, "reached", reached)
        yield
    assert not left, "no batch came so far"


def in_thread(does: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=does, daemon=True)
    thread.start()
    return thread


# -- turns --------------------------------------------------------------------------


def test_batches_of_two_states_do_not_wait_for_each_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = joined_at(spark, tmp_path / "one"), joined_at(spark, tmp_path / "other")

    def apply_to_other() -> None:
        thread = in_thread(lambda: other.apply(change(spark, (7, 3))))
        thread.join(SECONDS)
        assert (other.version, one.version) == (2, 1), "it was applied while the first batch was held"

    with meanwhile(monkeypatch, apply_to_other):
        one.apply(change(spark, (8, 3)))
    assert rows(one.table()) == [(1, 2), (2, 3), (8, 3)]
    assert rows(other.table()) == [(1, 2), (2, 3), (7, 3)]


def test_batches_of_one_state_take_turns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of two objects, one of which has the state by another name."""
    (tmp_path / "link").symlink_to(tmp_path)
    one, other = joined_at(spark, tmp_path / "state"), joined_at(spark, tmp_path / "link" / "state")
    second: list[threading.Thread] = []
    taken: list[bool] = []

    def ask() -> None:
        second.append(in_thread(lambda: other.apply(change(spark, (7, 3)))))
        in_thread(
            lambda: taken.append(turn_on(other._place.versions.store.path).acquire(blocking=False))
        ).join()

    with meanwhile(monkeypatch, ask):
        one.apply(change(spark, (8, 3)))
        second[0].join(SECONDS)
    assert taken == [False]
    assert rows(one.table()) == rows(other.table()) == [(1, 2), (2, 3), (7, 3), (8, 3)]
    assert one.version == 3


def test_a_version_follows_the_one_that_its_batch_began_from(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another application commits, and a thread here looks at the state, before the batch is committed."""
    joined, store = joined_at(spark, tmp_path), StateStore(tmp_path)

    def overtake() -> None:
        newest = store.newest()
        assert newest is not None
        store.commit(replace(newest, version=2, applied={"other": 5}))
        assert joined.applied("other") == 5

    with meanwhile(monkeypatch, overtake), pytest.raises(StateError, match="has version 2 already"):
        joined.apply(change(spark, (8, 3)))
    assert (joined.version, joined.applied(), joined.applied("other")) == (2, None, 5)
    joined.apply(change(spark, (9, 3)))
    assert rows(joined.table()) == [(1, 2), (2, 3), (9, 3)]


# -- names --------------------------------------------------------------------------


def descriptions(spark: SparkSession) -> list[str]:
    """Of all jobs that the UI has."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    return [jobs.apply(n).description().toString() for n in range(jobs.size())]


def test_jobs_have_the_names_of_head_and_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it lasts: before and after it the thread's jobs are the caller's."""
    seen: list[set[str]] = []
    spark.sparkContext.setJobDescription("the caller's")
    spark.addTag("the caller's tag")
    try:
        joined = joined_at(spark, tmp_path)
        with meanwhile(monkeypatch, lambda: seen.append(spark.getTags())):
            joined.apply(change(spark, (8, 3)), batch_id=17, source="a, b")
        joined.repartition()
        assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "the caller's"
        assert spark.getTags() == {"the caller's tag"}
    finally:
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
        spark.removeTag("the caller's tag")
    assert {"the caller's tag", "h: batch 17 of a; b"} < seen[0]
    named = descriptions(spark)
    for name in ("h: first version", "h: batch 17 of a, b", "h: grids planned again"):
        assert f"Some({name})" in named


# -- batches that fail --------------------------------------------------------------


def refused(joined: MaintainedJoin, changes: DataFrame, text: str) -> None:
    """The batch fails with this in the error and its own name beside it; the state is what it was."""
    files, session = files_of(Path(joined._place.versions.store.path)), changes.sparkSession
    tags = session.getTags()
    with pytest.raises((PythonException, Py4JJavaError), match=text) as caught:
        joined.apply({"e": changes}, batch_id=3)
    assert caught.value.__notes__ == ["This was: h: batch 3"]
    assert (files_of(Path(joined._place.versions.store.path)), session.getTags()) == (files, tags)
    assert session.sparkContext.getLocalProperty(DESCRIPTION) is None
    assert (joined.version, joined.applied()) == (1, None)


def test_a_batch_whose_task_fails_on_every_try(spark: SparkSession, tmp_path: Path) -> None:
    def failing(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        raise ValueError("the reader of changes is broken")

    joined = joined_at(spark, tmp_path)
    given = change(spark, (8, 3))["e"]
    refused(joined, given.mapInArrow(failing, CHANGES), "the reader of changes is broken")
    assert rows(joined.apply({"e": given}, batch_id=3)) == [(8, 3, 1)]


def test_a_state_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is made in its place."""
    state = tmp_path / "state"
    joined = joined_at(spark, state)
    shutil.rmtree(state)
    for used in (lambda: joined.apply(change(spark, (8, 3))), joined.table, joined.repartition):
        with pytest.raises(StateError, match=f"{state}.*the state is gone; make it anew at another path"):
            used()
    assert not state.exists()


@pytest.mark.in_turns
def test_a_package_that_workers_do_not_have(spark: SparkSession, tmp_path: Path) -> None:
    joined = joined_at(spark, tmp_path / "state")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['numba'] = None\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    poor = spark.newSession()
    poor.conf.set("spark.sql.execution.pyspark.python", str(python))
    refused(joined, change(poor, (8, 3))["e"], "numba")
    assert rows(joined.apply(change(spark, (8, 3)), batch_id=3)) == [(8, 3, 1)]


# -- streams ------------------------------------------------------------------------

STREAM = "stream /checkpoint"


@pytest.mark.parametrize(
    ("number", "last", "text"),
    [
        (0, 3, "gives batch 0, but batch 3 was applied already.*give another checkpoint path"),
        (2, 3, "gives batch 2, but batch 3 was applied already"),
        (5, 3, r"gives batch 5, but batches from 4 on were not.*applied=\{'stream /checkpoint': 4\}"),
        (1, None, r"gives batch 1, but batches from 0 on were not.*applied=\{'stream /checkpoint': 0\}"),
    ],
)
def test_a_batch_that_is_neither_the_last_one_nor_the_next_is_refused(
    number: int, last: int | None, text: str
) -> None:
    with pytest.raises(StateError, match=f"^{STREAM}: Spark {text}"):
        check_next(STREAM, number, last)


def write(folder: Path, number: int, changes: Sequence[tuple[int, ...]], names: str) -> None:
    """A file of changes, which a stream takes by its age."""
    folder.mkdir(exist_ok=True)
    columns = [pa.array(column, pa.int64()) for column in zip(*changes, strict=True)]
    pq.write_table(pa.table(columns, names.split()), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_000_000 + number, 1_000_000 + number))


def test_a_stream_tells_what_each_batch_changed_and_does_not_go_back_in_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    joined = joined_at(spark, tmp_path / "state")
    edges = [[(8, 3, 1), (9, 3, 2), (1, 2, -1)], [(8, 3, -1), (5, 5, 0)]]
    nodes = [[(9, 1)], [(2, -1), (2, -1), (9, 1)]]
    for number in range(2):
        write(tmp_path / "e", number, edges[number], "a b weight")
        write(tmp_path / "f", number, nodes[number], "b weight")

    def run() -> list[dict[str, int]]:
        changes = {
            name: spark.readStream.schema(f"{schema}, weight bigint")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(tmp_path / name))
            for name, schema in (("e", EDGES), ("f", NODES))
        }
        query = joined.stream(
            changes,
            checkpoint=str(tmp_path / "checkpoint"),
            sink=lambda changes, number: None,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        progress = [one for one in query.recentProgress if one["numInputRows"]]
        return [one.observedMetrics[METRICS].asDict() for one in progress]  # type: ignore[attr-defined]

    assert run() == [
        {
            f"{name}_{what}": sum(row[-1] * sign > 0 for row in changes[number])
            for name, changes in (("e", edges), ("f", nodes))
            for what, sign in (("inserted", 1), ("erased", -1))
        }
        for number in range(2)
    ]
    assert rows(joined.table()) == [(2, 3), (9, 3)]
    assert (joined.version, joined.applied(f"stream {tmp_path}/checkpoint")) == (3, 1)

    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="Spark gives batch 0, but batch 1 was applied already"):
        run()
    assert joined.version == 3


# -- checked and compacted ----------------------------------------------------------


def test_a_head_that_its_relations_do_not_give_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    """A file of a partition's part of the head, which was compacted, has another row in place of two."""
    joined, store = joined_at(spark, tmp_path), StateStore(tmp_path)
    joined.apply(change(spark, (8, 3)), 1)
    joined.compact()
    assert [path.name for path in tmp_path.glob("manifest-*")] == ["manifest-000000000003.json"]
    assert rows(joined.apply(change(spark, (8, 3)), 1)) == [(8, 3, 1)], "told again"
    joined.check()
    newest = store.newest()
    assert newest is not None
    (file,) = [state.head for state in newest.partitions.values() if state.head is not None]
    schema = store.read_table(file).schema
    (tmp_path / file).unlink()
    store.write_table(file, pa.table({"a": [1, 5], "b": [2, 6]}).cast(schema))
    with pytest.raises(
        VerificationError, match=r"head 'h' .*: 1 tuples too many and 2 missing; too many, .*5"
    ):
        joined.check()


def test_a_head_in_the_driver_that_its_relations_do_not_give_is_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    edges = spark.createDataFrame([(1, 2), (2, 3)], EDGES)
    joined = MaintainedJoin("two(a, c) <- e(a, b), e(b, c).", {"e": edges}, state=tmp_path, where="driver")
    joined.check()
    workspace = kept_at(tmp_path).workspace
    wrong = workspace._state.versions["two"].advance([np.array([value]) for value in (7, 8)], np.array([1]))
    versions = {**workspace._state.versions, "two": wrong}
    workspace._published.state = replace(workspace._state, versions=versions)
    with pytest.raises(VerificationError, match=r"'two'.* too many, for example: .7, 8"):
        joined.check()
    joined.close()


def test_a_compacted_state_in_the_driver_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    edges = spark.createDataFrame([(1, 2), (2, 3)], EDGES)
    joined = MaintainedJoin("two(a, c) <- e(a, b), e(b, c).", {"e": edges}, state=tmp_path, where="driver")
    joined.apply(change(spark, (3, 4)), 1)
    joined.compact()
    assert rows(joined.apply(change(spark, (3, 4)), 1)) == [(2, 4, 1)], "told again"
    assert rows(joined.apply(change(spark, (4, 5)), 2)) == [(3, 5, 1)]
    assert rows(joined.table()) == [(1, 3), (2, 4), (3, 5)]
    joined.close()


# -- joins ----------------------------------------------------------------------------


def test_a_join_counts_what_it_sends_and_finds(spark: SparkSession) -> None:
    """As its rows pass: the counts are those of the inputs and of the result, and no job is run for them."""
    edges = spark.createDataFrame(
        [(a, b) for a in range(9) for b in range(9) if a != b], "a bigint, b bigint"
    )
    names = spark.createDataFrame([(3, "x"), (4, "y")], "a bigint, name string")
    rule = "two(a, c) <- e(a, b), e(b, c). n[s] = count() <- two(a, _), name(a, s)."
    for options in ({"shares": {}}, {"shares": {"a": 2}}, {}):
        stats = JoinStats()
        found = join(rule, {"e": edges, "name": names}, partitions=2, stats=stats, **options)
        assert rows(found) == [("x", 9), ("y", 9)]
        heads = stats.heads
        assert list(heads) == ["two", "n"]
        assert heads["two"].rows == {"e": edges.count()} and heads["two"].found == 81
        assert heads["n"].rows == {"two": 81, "name": 2} and heads["n"].found == 2
        assert all(
            head.packets > 0 and head.packet_bytes > 8 * sum(head.rows.values()) for head in heads.values()
        )
    assert type(found.where("s = 'x'")) is type(edges), "what is asked behind is asked of these rows"


def test_plans_say_what_python_does(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    edges = spark.createDataFrame([(1, 2)], "a bigint, b bigint")
    join("n[a] = count() <- e(a, b), e(b, _).", {"e": edges}, partitions=20).explain()
    said = capsys.readouterr().out
    for does in ("sample", "plan cells", "place rows", "search cells", "combine"):
        assert f"n: {does}(" in said
