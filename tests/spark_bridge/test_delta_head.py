"""The head as a Delta table, without Spark: against the state's files, whoever dies or commits in between."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from lftj.errors import StateError
from maintenance import changes_from_delta
from spark_bridge.cells.signed_tables import signed
from spark_bridge.placing.grids import given_grids
from spark_bridge.state.delta_head import MOST_TRIES, DeltaHead
from spark_bridge.state.frames import head_rows
from support.rows import rows_of
from support.stage_pipeline import KEPT_BATCHES, StagePipeline, signed_table
from support.strategies import any_row

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
DEGREES = "n[a] = count() <- e(a, _)."
SHARED = "two(a, b) <- e(a, c), e(b, <=> c)."
EDGES = pa.table({"a": [0, 1, 0], "b": [1, 2, 2]})


class Followed:
    """A pipeline whose head is to be at ``table``; ``at``: the head at versions of the state."""

    def __init__(self, folder: Path, rule: str = TRIANGLES, seed: int = 0, edges: pa.Table = EDGES) -> None:
        self.random = Random(seed)
        self.pipeline = StagePipeline(
            rule,
            {"e": edges},
            folder / "state",
            3,
            lambda program, number, *_: given_grids(program.plans()[number], {}, 3),
            self.random,
            nulls="keep",
        )
        self.table = folder / "head"
        self.head = self.made()
        self.at = {1: set(rows_of(self.pipeline.table()))}

    def made(self) -> DeltaHead:
        return DeltaHead(self.table, signed(self.pipeline.schema), self.pipeline.store)

    def batch(self, *edges: tuple[int | None, int | None, int]) -> None:
        """Edges with weights; by default random ones."""
        random = self.random
        ends = (None, *range(4))
        rows = edges or [(random.choice(ends), random.choice(ends), random.choice((1, -1))) for _ in range(6)]
        table = pa.table({"a": [row[0] for row in rows], "b": [row[1] for row in rows]})
        self.pipeline.apply({"e": signed_table(table, [row[2] for row in rows])})
        self.at[self.version] = set(rows_of(self.pipeline.table()))

    def repartitioned(self) -> None:
        """A version without a batch: where rows are has changed, and not which."""
        was = self.pipeline.manifest
        self.pipeline.manifest = replace(was, version=was.version + 1)
        self.pipeline.store.commit(self.pipeline.manifest)
        self.at[self.version] = self.at[was.version]

    @property
    def version(self) -> int:
        return self.pipeline.manifest.version

    def follow(self, head: DeltaHead | None = None) -> None:
        pipeline = self.pipeline
        states = pipeline.head_states()
        (head or self.head).follow(
            pipeline.manifest, lambda schema: head_rows(pipeline.store, schema, states)
        )

    def check(self) -> None:
        """The table has the state's rows, each once, and says so."""
        table = DeltaTable(self.table)
        rows = rows_of(table.to_pyarrow_table())
        assert len(rows) == len(set(rows))
        assert set(rows) == self.at[self.version]
        assert table.transaction_version("lftj state") == self.version

    def commits(self) -> list[int]:
        """The versions of the state that the table's commits have made, in their order."""
        history = reversed(DeltaTable(self.table).history())
        return [int(entry["lftj.version"]) for entry in history if "lftj.version" in entry]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


# -- differential: the state ----------------------------------------------------------


@pytest.mark.parametrize("rule", [TRIANGLES, DEGREES, SHARED])
def test_each_batch_is_a_commit(tmp_path: Path, rule: str) -> None:
    followed = Followed(tmp_path, rule, seed=3)
    for _ in range(6):
        followed.follow(pickle.loads(pickle.dumps(followed.head)))
        followed.check()
        followed.follow()  # again: nothing
        followed.batch()
    followed.follow()
    followed.check()
    assert followed.commits() == list(range(1, 8))
    last = DeltaTable(followed.table).version()
    for version, rows in followed.at.items():  # the first commit made the table, empty
        then = DeltaTable(followed.table, version=version).to_pyarrow_table()
        assert set(rows_of(then)) == rows
        changes = rows_of(changes_from_delta(followed.table, version, unique=True, nulls="keep").table)
        assert {row[:-1] for row in changes if row[-1] > 0} == followed.at[last] - rows
        assert {row[:-1] for row in changes if row[-1] < 0} == rows - followed.at[last]


def test_batches_and_versions_are_transactions(followed: Followed) -> None:
    for _ in range(3):
        followed.batch()
    batch = followed.pipeline.manifest.batches[-1]
    followed.pipeline.manifest = replace(
        followed.pipeline.manifest, batches=(replace(batch, source="clicks", batch_id=17),), applied={"x": 5}
    )
    followed.follow()
    table = DeltaTable(followed.table)
    found = [table.transaction_version(name) for name in ("lftj state", "lftj state x", "lftj state clicks")]
    assert found == [4, 5, None]
    followed.batch()
    batch = replace(followed.pipeline.manifest.batches[-1], source="clicks", batch_id=18)
    followed.pipeline.manifest = replace(followed.pipeline.manifest, batches=(batch,))
    followed.follow()
    table = DeltaTable(followed.table)
    assert [table.transaction_version(f"lftj state{name}") for name in ("", " x", " clicks")] == [5, 5, 18]


def test_others_read_it(followed: Followed) -> None:
    followed.follow()
    followed.batch((0, 1, -1), (1, 5, 1), (0, 5, 1), (0, 1, 1))
    followed.follow()
    rows = followed.at[2]
    assert rows and set(pl.read_delta(str(followed.table)).rows()) == rows
    with duckdb.connect() as connection:
        connection.register("head", DeltaTable(followed.table).to_pyarrow_dataset())
        assert connection.sql("select count(*), min(a) from head").fetchall() == [(len(rows), 0)]
    assert set(pl.read_delta(str(followed.table), version=1).rows()) == followed.at[1]


def test_inserts_are_appended_and_erases_merged(followed: Followed) -> None:
    followed.follow()
    for batch in (((1, 5, 1), (0, 5, 1)), ((0, 5, -1),), ((9, 9, -1),)):
        followed.batch(*batch)
        followed.follow()
        followed.check()
    operations = [entry["operation"] for entry in reversed(DeltaTable(followed.table).history())]
    assert operations == ["CREATE TABLE", "WRITE", "WRITE", "MERGE", "WRITE"]


def test_rows_of_any_kind_are_found_again(tmp_path: Path) -> None:
    """What a merge has to meet: zeros, infinity, empty text, quotes, bytes, names with capitals."""
    values = pa.table(
        {
            "Real": [-1e300, -0.0, math.inf, 1.5],
            "text": ["", "ä", "`q`", "x"],
            "raw": [b"", b"\0", b"a", b"b"],
            "exact": pa.array(["1.50", "0.00", "-2.25", "3.00"]).cast(pa.decimal128(10, 2)),
            "day": pa.array([0, 1, 2, 3], pa.int32()).cast(pa.date32()),
            "at": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
            "flag": [True, False, True, False],
        }
    )
    rule = "same(Real, text, raw, exact, day, at, flag) <- e(Real, text, raw, exact, day, at, flag)."
    followed = Followed(tmp_path, rule, edges=values)
    followed.follow()
    for weights in ([-1, -1, -1, 0], [1, -1, 1, -1]):
        followed.pipeline.apply({"e": signed_table(values, weights)})
        followed.follow()
        found = rows_of(DeltaTable(followed.table).to_pyarrow_table())
        expected = rows_of(followed.pipeline.table())
        assert any_row(set(found)) == any_row(set(expected))
        assert len(found) == len(expected)
    assert sorted(row[1] for row in found) == ["", "`q`"]


# -- drivers that die, and others ---------------------------------------------------------


@pytest.mark.parametrize("missed", [1, KEPT_BATCHES, KEPT_BATCHES + 1])
def test_what_is_missing_is_made_up_for(followed: Followed, missed: int) -> None:
    """Batch by batch where the state remembers them all; else the table is written anew."""
    followed.follow()
    for _ in range(missed):
        followed.batch()
    followed.follow()
    followed.check()
    remembered = missed <= KEPT_BATCHES
    assert followed.commits() == [1, *(range(2, 2 + missed) if remembered else [missed + 1])]


@pytest.mark.in_turns
@pytest.mark.parametrize("missed", ["", "r", "b", "rr", "br", "rb", "brb", "rbr"])
@pytest.mark.parametrize("before", ["", "r", "bbbb", "bbbbr"])
def test_versions_without_a_batch_write_no_rows(followed: Followed, before: str, missed: str) -> None:
    """``r``: the state is partitioned anew, ``b``: a batch; the table misses some."""
    steps = {"r": followed.repartitioned, "b": followed.batch}
    for step in before:
        followed.follow()
        steps[step]()
    followed.follow()
    for step in missed:
        steps[step]()
    followed.follow()
    followed.check()
    last = len(before) + len(missed) + 1
    if "b" not in before and missed in ("rb", "rbr"):  # for all it knows a batch was forgotten
        assert followed.commits() == [*range(1, len(before) + 2), last]
        return
    assert followed.commits() == list(range(1, last + 1))
    for version, step in enumerate(before + missed, 2):
        if step == "r":
            feed = changes_from_delta(followed.table, version - 1, until=version, nulls="keep")
            assert feed.table.num_rows == 0
            assert DeltaTable(followed.table, version=version).file_uris() == (
                DeltaTable(followed.table, version=version - 1).file_uris()
            )


def test_a_driver_that_died_when_the_table_was_made(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(DeltaHead, "_commit", interrupted)
        followed.follow()
    assert DeltaTable(followed.table).version() == 0
    followed.follow()
    followed.check()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_of_two_drivers_one_makes_the_commit(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is told by the log, and finds that it is made."""
    commit = DeltaHead._commit
    refused = []
    turn = threading.Lock()

    def second(self: DeltaHead, *arguments: object) -> None:
        if turn.acquire(blocking=False):
            followed.follow(followed.made())  # between the other one's look and its commit
            turn.release()
        try:
            commit(self, *arguments)  # type: ignore[arg-type]
        except CommitFailedError:
            refused.append(1)
            raise

    for weights in ((1, 1), (-1, 1), (1, -1)):
        with monkeypatch.context() as patched:
            patched.setattr(DeltaHead, "_commit", second)
            followed.follow()
        followed.check()
        followed.batch((0, 1, weights[0]), (0, 7, weights[1]))
    assert followed.commits() == [1, 2, 3]
    assert len(refused) == 3


def test_many_at_once_make_each_commit_once(followed: Followed) -> None:
    for _ in range(3):
        followed.follow()
        followed.batch()
        followed.batch()
        errors: list[BaseException] = []

        def run(errors: list[BaseException] = errors) -> None:
            try:
                followed.follow(followed.made())
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        followed.check()
    assert followed.commits() == list(range(1, 8))


def test_a_table_that_is_always_busy(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def busy(*_: object) -> None:
        calls.append(1)
        raise CommitFailedError("a concurrent transaction")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaHead, "_commit", busy)
        with pytest.raises(
            StateError, match=r"can't be written: a concurrent.* the state is at version 1, and"
        ):
            followed.follow()
    assert len(calls) == MOST_TRIES
    followed.follow()
    followed.check()


def test_cleaning_of_the_table_by_others_does_no_harm(followed: Followed) -> None:
    for _ in range(3):
        followed.follow()
        followed.batch()
        table = DeltaTable(followed.table)
        table.optimize.compact()
        table.create_checkpoint()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    followed.follow()
    followed.check()


# -- what is refused ------------------------------------------------------------------------


def refused(followed: Followed, text: str) -> None:
    """And nothing is written."""
    version = DeltaTable(followed.table).version()
    with pytest.raises(StateError, match=rf"Delta table '.*head'.*{text}"):
        followed.follow()
    assert DeltaTable(followed.table).version() == version


def test_a_table_of_something_else(followed: Followed) -> None:
    write_deltalake(followed.table, pa.table({"a": [1], "b": [2], "c": [3]}))
    refused(followed, r" has rows, and they are not of the state at .*: give the path of a new table")


def test_an_empty_table_may_be_of_the_users_own_making(followed: Followed) -> None:
    DeltaTable.create(followed.table, followed.pipeline.schema, partition_by=["a"])
    for _ in range(3):
        followed.follow()
        followed.check()
        followed.batch()
    assert DeltaTable(followed.table).metadata().partition_columns == ["a"]


def test_a_table_of_another_state(followed: Followed) -> None:
    followed.follow()
    followed.pipeline.manifest = replace(followed.pipeline.manifest, state_id="another")
    refused(followed, " has rows, and they are not of the state")


@pytest.mark.parametrize(
    "alter",
    [
        lambda path: write_deltalake(path, pa.table({"a": [1]}), mode="overwrite", schema_mode="overwrite"),
        lambda path: write_deltalake(
            path,
            pa.table({"a": ["x"], "b": ["y"], "c": ["z"]}),
            mode="overwrite",
            schema_mode="overwrite",
        ),
    ],
)
def test_a_table_that_was_altered(followed: Followed, alter: Callable[[Path], None]) -> None:
    followed.follow()
    alter(followed.table)
    refused(
        followed, " has the columns a .*, and the head has a int64, b int64, c int64: was the table alter"
    )


def test_a_state_that_was_put_back_from_a_copy(followed: Followed) -> None:
    first = followed.pipeline.manifest
    shutil.copytree(followed.pipeline.store.path, f"{followed.pipeline.store.path}.copy")
    followed.batch()
    followed.follow()
    newer = followed.pipeline.manifest
    followed.head.follow(first, followed.pipeline.head_states())  # another driver has gone on: no matter
    followed.check()
    shutil.rmtree(followed.pipeline.store.path)
    shutil.move(f"{followed.pipeline.store.path}.copy", followed.pipeline.store.path)
    followed.pipeline.manifest = first
    refused(followed, " has version 2 of the state at .*, which is at version 1: it was put back from a copy")
    assert newer.state_id == first.state_id
    shutil.rmtree(followed.table)
    followed.follow()
    followed.check()


def test_rows_that_others_wrote_are_noticed(followed: Followed) -> None:
    followed.follow()
    DeltaTable(followed.table).delete("a = 0")
    followed.batch((0, 1, -1))
    with pytest.raises(
        StateError, match="was not as the state had it: of 0 rows to insert and 1 to erase 0 "
    ):
        followed.follow()


def test_a_type_that_delta_does_not_have(tmp_path: Path, followed: Followed) -> None:
    schema = signed(pa.schema([("a", pa.int64()), ("t", pa.duration("us"))]))
    with pytest.raises(StateError, match=r"column 't' is of type duration\[us\], which Delta does not have"):
        DeltaHead(tmp_path / "x", schema, followed.pipeline.store)


def test_a_damaged_log(followed: Followed) -> None:
    followed.follow()
    for file in Path(followed.table, "_delta_log").iterdir():
        if file.is_file():
            file.write_text(json.dumps({"nothing": 1}))
    followed.batch()
    with pytest.raises(StateError, match=r"Delta table '.*head': can't be "):
        followed.follow()
