"""differential: `MaintainedJoin` in Spark against recomputation; what is applied once, and refused.

What stages compute is tested without Spark (``test_stages_oracle.py``): here are few cases, each of something
that Spark, the files of the state or the driver has a part in.
"""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from support.openmetrics import openmetrics_samples
from support.rows import rows_of

pytest.importorskip("pyspark")

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin, join
from spark_bridge.cells.signed_tables import signed
from spark_bridge.stages import state_versions
from spark_bridge.state.store import StateStore
from support.followed_join import (
    PLACES,
    Followed,
    Row,
    edges,
    files_of,
    placed,
    random_changes,
    same_rows,
    table_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
ONE_CELL: dict[str, int] = {}
"""As ``shares=``: nothing is cut, and no sample is taken, which is quicker."""


# -- the same as computed anew ------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize("partitions", [1, 4])
def test_differential_triangles_follow(spark: SparkSession, tmp_path: Path, partitions: int) -> None:
    followed = Followed(spark, tmp_path, TRIANGLES, {"e": edges(300, 25)}, {"partitions": partitions})
    followed.check()
    random = Random(partitions)
    for number, size in enumerate((1, 20, 5, 60)):
        changes = {"e": random_changes(followed.relations["e"], 25, size, random)}
        followed.batch(changes, batch_id=number)
        stats = followed.joined.stats
        assert stats is not None and stats.partitions >= 1
        samples = openmetrics_samples(followed.joined.openmetrics())
        assert samples["lftj_batch_partitions", ""] == stats.partitions
        assert samples["lftj_applied_batch", ""] == number and samples["lftj_plan_load", ""] >= 1
        assert followed.joined.version == number + 2
    followed.check()
    now = table_of(followed.schemas["e"], list(followed.relations["e"]))
    joined = join(TRIANGLES, {"e": spark.createDataFrame(now)}, partitions=partitions)
    same_rows(followed.joined.table(), joined.toArrow())


@pytest.mark.in_turns
@PLACES
def test_differential_strata_follow(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """Head upon head, negation, several rules and several aggregates of one head, no key at all."""
    rule = """
        two(a, c) <- e(a, b), e(b, c).
        two(a, a) <- n(a, _).
        open(a, count(), max(c)) <- two(a, c), !e(a, c).
        total[] = sum(m) <- open(a, k, m), n(a, _).
    """
    nodes = pa.table({"id": list(range(6)), "name": [f"n{i}" for i in range(6)]})
    tables = {"e": edges(30, 8), "n": nodes}
    followed = Followed(spark, tmp_path, rule, tables, placed(where, partitions=2, shares={"a": 2, "b": 2}))
    followed.check()
    followed.batch({"e": [((1, 9), 1), ((9, 2), 1)], "n": [((9, "nine"), 1), ((0, "n0"), -1)]})
    followed.batch({"n": [((i, f"n{i}"), -1) for i in range(6)] + [((9, "nine"), -1)]})
    assert rows_of(followed.joined.table().toArrow()) == []
    followed.batch({"n": [((3, "three"), 1)]})
    followed.check()


@PLACES
def test_differential_aggregates_that_are_rules_of_their_own(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    """What several heads find for one: cells hold auxiliary heads, and read them."""
    rule = "h(a, count(if b > 2), median(b), count(distinct b)) <- e(a, b)."
    followed = Followed(
        spark, tmp_path, rule, {"e": edges(12, 5)}, placed(where, partitions=2, shares=ONE_CELL)
    )
    followed.check()
    followed.batch({"e": random_changes(followed.relations["e"], 5, 4, Random(1))})
    followed.batch({"e": [(row, -1) for row in followed.relations["e"] if row[0] < 3]})
    followed.check()


def test_differential_a_value_in_most_rows(spark: SparkSession, tmp_path: Path) -> None:
    """What is heavy at first is placed apart for ever, and follows."""
    tables = {
        "e": pa.table({"k": [0] * 300 + list(range(1, 201)), "v": list(range(500))}),
        "f": pa.table({"k": [0] * 30 + list(range(1, 21)), "w": list(range(50))}),
    }
    rule = "h[w] = count() <- e(k, v), f(k, w)."
    followed = Followed(spark, tmp_path, rule, tables, {"partitions": 6})
    assert any(grid.heavy for head in followed.joined._place.versions.chain.grids for grid in head.grids)
    followed.check()
    followed.batch({"e": [((0, 7), -1), ((0, 800), 1), ((5, 800), 1)], "f": [((0, 3), -1), ((0, 90), 1)]})
    followed.check()


def test_partitions_that_nothing_is_sent_to(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(pa.schema([("a", pa.int64())]), [])
    options = {"partitions": 6, "shares": {"a": 6}}
    followed = Followed(spark, tmp_path, "h(a) <- r(a), s(a).", {"r": table, "s": table}, options)
    followed.check()
    assert followed.batch({"r": [((1,), 1)]}) == []
    assert followed.batch({"s": [((1,), 1), ((2,), 1)]}) == [(1, 1)]
    assert followed.batch({"r": [], "s": []}) == []
    followed.check()
    assert followed.joined.version == 4


@PLACES
def test_values_of_all_sorts(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """String keys, decimals, floats whose sum is right to the last bit; the types of all columns."""
    schema = pa.schema(
        [("k", pa.string()), ("d", pa.decimal128(10, 2)), ("x", pa.float64()), ("i", pa.int32())]
    )
    floats = [1e308, 0.1, -1e308, 0.2, 0.3, 5e-324, 1e16, -1e16]
    rows = [(f"é{n % 3}", Decimal(n).scaleb(-2), x, n) for n, x in enumerate(floats)]
    tables = {"r": table_of(schema, rows), "s": pa.table({"k": ["é0", "é1", "é2", ""]})}
    rule = "h(k, sum(d), sum(x), avg(d), min(i), count()) <- r(k, d, x, i), s(k)."
    followed = Followed(spark, tmp_path, rule, tables, placed(where, partitions=2, shares={"x": 4}))
    followed.check()
    changes = [
        (rows[0], -1),
        (("é0", Decimal("-99999999.99"), 1e-300, -(2**31)), 1),
        (("", Decimal(0), 0.5, 0), 1),
    ]
    followed.batch({"r": changes, "s": [(("é1",), -1)]})
    followed.check()
    found = {row[0]: row[2] for row in rows_of(followed.joined.table().toArrow())}
    wanted = [row[2] for row in followed.relations["r"] if row[0] == "é0"]
    assert found["é0"] == math.fsum(wanted)
    changed = followed.joined.apply(followed.changes({"s": [(("é1",), 1)]})).toArrow()
    assert changed.schema.types == [*followed.expected().schema.types, pa.int64()]
    assert changed.schema.names[-1] == "weight"


@PLACES
def test_narrower_columns_of_changes_are_widened(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(
        spark, tmp_path, "h(b, a) <- e(a, b).", {"e": edges(5, 9)}, placed(where, shares=ONE_CELL)
    )
    changes = spark.createDataFrame([(1, 77, 78)], "weight tinyint, dst smallint, src int")
    assert rows_of(followed.joined.apply({"e": changes}).toArrow()) == [(77, 78, 1)]


@PLACES
def test_names_that_spark_takes_for_one(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """Names that differ in case only, and signs in them; also of the column of weights."""
    table = table_of(
        pa.schema([("a.b", pa.int64()), ("A.b", pa.int64()), ("Weight", pa.int64())]), [(1, 2, 3)]
    )
    followed = Followed(
        spark, tmp_path, "h(x, y, z) <- r(x, y, z).", {"r": table}, placed(where, shares=ONE_CELL)
    )
    followed.check()
    assert followed.batch({"r": [((1, 2, 4), 1)]}) == [(1, 2, 4, 1)]
    followed.check()


@PLACES
def test_nulls_are_left_out_where_asked(spark: SparkSession, tmp_path: Path, where: str) -> None:
    frame = spark.createDataFrame([(1, 2), (None, 3)], "a long, b long")
    joined = MaintainedJoin(
        "h(a, b) <- r(a, b).", {"r": frame}, state=tmp_path, nulls="drop", **placed(where, partitions=2)
    )
    changes = spark.createDataFrame([(4, None, 1), (5, 6, 1)], "a long, b long, weight long")
    assert rows_of(joined.apply({"r": changes}).toArrow()) == [(5, 6, 1)]
    without_weight = spark.createDataFrame([(7, 8, None)], "a long, b long, weight long")
    with pytest.raises(errors.NullError, match="'r', column 'weight': NULL"):
        joined.apply({"r": without_weight})
    assert sorted(rows_of(joined.table().toArrow())) == [(1, 2), (5, 6)]


# -- batches, once each -------------------------------------------------------------


@PLACES
def test_a_batch_is_applied_once(spark: SparkSession, tmp_path: Path, where: str) -> None:
    followed = Followed(
        spark, tmp_path, TRIANGLES, {"e": edges(60, 9)}, placed(where, shares={"a": 2}, partitions=2)
    )
    joined = followed.joined
    assert (joined.version, joined.applied()) == (1, None)
    changes = {"e": [((20, 21), 1), ((21, 22), 1), ((20, 22), 1)]}
    made = followed.batch(changes, batch_id=5)
    assert made == [(20, 21, 22, 1)]
    files = files_of(tmp_path)
    for others in (changes, {"e": [((1, 1), -1)]}):  # the number counts, not what is in it
        assert rows_of(joined.apply(followed.changes(others), batch_id=5).toArrow()) == made
        assert joined.apply(followed.changes(others), batch_id=3).count() == 0
    assert (joined.version, joined.applied(), files_of(tmp_path)) == (2, 5, files)
    followed.check()

    assert followed.batch({"e": [((20, 22), -1)]}) == [(20, 21, 22, -1)]  # with the number after the last
    assert joined.applied() == 6
    again = joined.apply(followed.changes(changes), batch_id=5)
    assert rows_of(again.toArrow()) == made

    assert followed.batch({"e": [((20, 22), 1)]}, batch_id=0, source="other") == [(20, 21, 22, 1)]
    assert (joined.applied(), joined.applied("other"), joined.applied("none"), joined.version) == (
        6,
        0,
        None,
        4,
    )
    assert joined.apply(followed.changes(changes), batch_id=0, source="other").count() == 1
    followed.check()


@PLACES
def test_two_on_one_state_know_of_each_other(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """A second one, opened anew or from a pickle, sees what the first one did, and the other way round."""
    options = placed(where, shares={"a": 2}, partitions=2)
    followed = Followed(spark, tmp_path, TRIANGLES, {"e": edges(60, 9)}, options)
    pickled = pickle.loads(pickle.dumps(followed.joined))
    opened = followed.opened(**placed(where, partitions=None, shares=None))
    assert opened.version == 1
    for number, joined in enumerate((followed.joined, pickled, opened, followed.joined)):
        followed.batch({"e": [((n, n + number), 1) for n in range(8)]}, joined)
        for one in (followed.joined, pickled, opened):
            assert (one.applied(), one.version) == (number, number + 2)
    for one in (followed.joined, pickled, opened):
        followed.check(one)


def test_old_versions_go(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are no more than those of twice as many as are kept; readers of recent ones aren't disturbed."""
    kept = 4
    monkeypatch.setattr(state_versions, "KEPT_BATCHES", kept)
    options = {"shares": ONE_CELL, "partitions": 1}
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)
    counts, versions = [], {}
    tables = {}
    for number in range(3 * kept):
        tables[number] = (followed.joined.table(), rows_of(followed.expected()))
        followed.joined.apply(followed.changes({"e": [((100, number), 1)]}), batch_id=number)
        followed.relations["e"].add((100, number))
        files = files_of(tmp_path)
        counts.append(len(files))
        versions[number] = sum(name.startswith("manifest-") for name in files)
    followed.check()
    assert max(versions.values()) <= 2 * kept
    # A batch is three files at most, its manifest included; a snapshot that was made anew four more.
    assert max(counts) <= 3 * 3 * kept + 8
    for number in range(2 * kept + 1, 3 * kept):
        frame, rows = tables[number]
        assert sorted(rows_of(frame.toArrow())) == sorted(rows)
    for number in (0, 2 * kept - 1, 2 * kept, 3 * kept - 1):
        expected = [(100, number, 1)] if number >= 2 * kept else []
        again = followed.joined.apply(followed.changes({"e": []}), batch_id=number)
        assert rows_of(again.toArrow()) == expected
    assert followed.joined.version == 3 * kept + 1


@PLACES
def test_tables_and_changes_are_lazy_and_stay(spark: SparkSession, tmp_path: Path, where: str) -> None:
    options = placed(where, shares={"a": 2}, partitions=2)
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)
    first, rows = followed.joined.table(), rows_of(followed.expected())
    changes = followed.joined.apply(followed.changes({"e": [((50, 51), 1)]}))
    followed.joined.apply(followed.changes({"e": [((50, 51), -1), ((60, 61), 1)]}))
    assert sorted(rows_of(first.toArrow())) == sorted(set(rows))
    assert rows_of(changes.toArrow()) == [(50, 51, 1)]
    assert first.where("a > 50").count() == 0 and followed.joined.table().where("a > 50").count() == 1


# -- what is left -------------------------------------------------------------------


def test_what_killed_applications_left_goes(spark: SparkSession, tmp_path: Path) -> None:
    """Of the first version when there is one, of a later one when that is made, or the state opened again."""
    store = StateStore(tmp_path)

    def left(version: int) -> str:
        name = store.new_name(store.begin(version), "snapshot", "0-0")
        store.write_table(name, edges(5, 9))
        return name

    left(1)
    options = {"shares": ONE_CELL, "partitions": 1}
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)
    made = files_of(tmp_path)
    assert made == {"manifest-000000000001.json", *followed.joined._place.versions.manifest.files()}
    running = left(2)
    followed.opened()
    assert running in files_of(tmp_path), "another application may be at it"
    followed.batch({"e": [((50, 51), 1)]})
    manifests = {"manifest-000000000001.json", "manifest-000000000002.json"}
    made = manifests | followed.joined._place.versions.manifest.files()
    assert files_of(tmp_path) == made
    left(2)
    followed.opened()
    assert files_of(tmp_path) == made


def test_nothing_is_left_of_a_batch_that_cant_be_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job was done; another application has made the version meanwhile, or Ctrl-C came between."""
    options = {"shares": ONE_CELL, "partitions": 1}
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)
    files = files_of(tmp_path)
    changes = followed.changes({"e": [((50, 51), 1)]})
    for error in (KeyboardInterrupt, errors.StateError):
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(StateStore, "commit", mock.Mock(side_effect=error))
            followed.joined.apply(changes)
        assert files_of(tmp_path) == files
    followed.batch({"e": [((50, 51), 1)]})


def test_nothing_is_left_where_only_sampling_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages, which are run to say in our words what is wrong with the data, find nothing."""
    sampling = mock.Mock(side_effect=PythonException("a lost worker"))
    monkeypatch.setattr("spark_bridge.places.executor_state.sampled_grids", sampling)
    frames = {"e": spark.createDataFrame(edges(5, 9))}
    with pytest.raises(PythonException, match="a lost worker"):
        MaintainedJoin("h(a, b) <- e(a, b).", frames, state=tmp_path, partitions=1)
    assert files_of(tmp_path) == set()


def test_a_batch_stands_whose_tidying_up_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"shares": ONE_CELL, "partitions": 1}
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)
    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "end", mock.Mock(side_effect=errors.StateError("can't be deleted: why")))
        followed.batch({"e": [((50, 51), 1)]})
    assert "the state is whole, but was not tidied up: can't be deleted: why" in caplog.text
    assert any(name.startswith("running-") for name in files_of(tmp_path))
    followed.batch({"e": [((50, 51), -1)]})
    assert not any(name.startswith("running-") for name in files_of(tmp_path))
    followed.check()


# -- refused ------------------------------------------------------------------------


def test_a_state_of_something_else_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(edges(5, 9))
    rule = "h(a, b) <- e(a, b)."

    def made(rule: str = rule, frame: DataFrame = frame, **options: Any) -> MaintainedJoin:
        return MaintainedJoin(rule, {"e": frame}, state=tmp_path, **{"partitions": 2, **options})

    made(shares=ONE_CELL)
    for change, text in (
        (
            {"rule": "h(b, a) <- e(a, b)."},
            r"for rule='h\(a, b\) <- .*, not 'h\(b, a\) <- .*: give another state path",
        ),
        ({"partitions": 3}, "for partitions=2, not 3: give another state path, or partitions=2"),
        (
            {"frame": frame.selectExpr("src", "cast(dst as string) dst")},
            "'int64'.*'string'.*another state path",
        ),
        ({"frame": frame.toDF("src", "to")}, "'dst'.*'to'.*give another state path"),
        ({"nulls": "drop"}, "for nulls='refuse', not 'drop': give another state path, or nulls='refuse'"),
    ):
        with pytest.raises(errors.StateError, match=text) as caught:
            made(**change)
        assert str(tmp_path) in str(caught.value)
    assert made().version == made(partitions=None).version == 1


@PLACES
def test_changes_that_do_not_fit_are_refused(spark: SparkSession, tmp_path: Path, where: str) -> None:
    options = placed(where, shares=ONE_CELL, partitions=2)
    followed = Followed(spark, tmp_path, "h(a, b) <- e(a, b).", {"e": edges(5, 9)}, options)

    def frame(schema: str, *rows: Row) -> dict[str, DataFrame]:
        return {"e": spark.createDataFrame(list(rows), schema)}

    for changes, error, text in (
        ({}, errors.ChangeError, "no changes"),
        (
            frame("src long, dst long", (1, 2)),
            errors.ChangeError,
            "columns src, dst; they have to be src, dst, weight",
        ),
        (frame("src long, weight long", (1, 1)), errors.ChangeError, "have to be src, dst, weight"),
        (
            frame("src long, dst long, x long, weight long", (1, 1, 1, 1)),
            errors.ChangeError,
            "x, weight; they have",
        ),
        (
            frame("src long, dst string, weight long", (1, "a", 1)),
            errors.ChangeError,
            "'dst'.*string.*int64: cast",
        ),
        (
            frame("src long, dst double, weight long", (1, 1.0, 1)),
            errors.ChangeError,
            "'dst'.*double.*int64: cast",
        ),
        (
            frame("src long, dst long, weight double", (1, 1, 1.0)),
            errors.ChangeError,
            "type double, not an integer",
        ),
        (
            {"f": followed.frames["e"]},
            errors.UnknownRelationError,
            "'f', which no rule reads; relations are e",
        ),
        (frame("src long, dst long, weight long", (None, 1, 1)), errors.NullError, "'e', column 'src': NULL"),
        (
            frame("src long, dst long, weight long", (1, 1, None)),
            errors.NullError,
            "'e', column 'weight': NULL",
        ),
    ):
        followed.refused(error, text, changes)
    for batch_id in (-1, True, 1.5, 2**63):
        with pytest.raises(errors.ChangeError, match="batches are numbered from 0"):
            followed.joined.apply(followed.changes({"e": []}), batch_id=batch_id)  # type: ignore[arg-type]
    followed.check()
    followed.batch({"e": [((70, 71), 1)]})
    followed.check()


@PLACES
def test_wrong_data_is_refused_by_our_errors(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """Not by Spark's: the message has the rule, and the batch after it works."""
    rule = """
        first[a] = b <- e(a, b, _).
        total[] = sum(w) <- first[a] = b, e(a, b, w).
    """
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("w", pa.int64())])
    tables = {"e": table_of(schema, [(n, n * n, n) for n in range(9)])}
    followed = Followed(spark, tmp_path, rule, tables, placed(where, shares={"a": 3, "b": 2}, partitions=2))
    for rows, error, text in (
        ([(3, 0, 1)], errors.FunctionalConflictError, r"first\[3\] has two values.*\n.*first\[a\] = b <-"),
        ([(100, 1, 2**63 - 1)], errors.RangeError, r"(?s)int64.*total\[\] = sum\(w\)"),
    ):
        followed.refused(error, text, followed.changes({"e": [(row, 1) for row in rows]}))
        followed.check()
        followed.batch({"e": [((3, 9, 3), -1), ((3, 8, 1), 1)]})
        followed.batch({"e": [((3, 8, 1), -1), ((3, 9, 3), 1)]})
        followed.check()


@pytest.mark.parametrize("shares", [None, {"x": 2}])
def test_nan_is_refused(spark: SparkSession, tmp_path: Path, shares: dict[str, int] | None) -> None:
    """From the start, when nothing is left behind, and in a batch."""
    floats = pa.schema([("x", pa.float64())])
    rule = "h(x) <- r(x), s(x)."
    good = spark.createDataFrame(table_of(floats, [(0.5,), (1.5,)]))
    bad = spark.createDataFrame(table_of(floats, [(float(n),) for n in range(40)] + [(math.nan,)]))
    for relations in ({"r": bad, "s": good}, {"r": good, "s": bad}):
        with pytest.raises(errors.NanError, match=r"relation '[rs]"):
            MaintainedJoin(rule, relations, state=tmp_path, shares=shares, partitions=2)
        assert files_of(tmp_path) == set()
    joined = MaintainedJoin(rule, {"r": good, "s": good}, state=tmp_path, shares=shares, partitions=2)
    files = files_of(tmp_path)
    changes = spark.createDataFrame(table_of(signed(floats), [(math.nan, 1)]))
    with pytest.raises(errors.NanError):
        joined.apply({"r": changes})
    assert files_of(tmp_path) == files
    assert joined.table().count() == 2


def test_wrong_data_of_a_head_below_is_our_error_from_the_start(spark: SparkSession, tmp_path: Path) -> None:
    """The sample of the second head runs the first one, whose conflict Spark would wrap."""
    rule = "f[a] = b <- e(a, b). h(b) <- f[a] = b."
    frame = spark.createDataFrame(table_of(edges(1, 1).schema, [(n % 7, n) for n in range(100)]))
    with pytest.raises(errors.FunctionalConflictError, match="has two values"):
        MaintainedJoin(rule, {"e": frame}, state=tmp_path, partitions=2)
    assert files_of(tmp_path) == set()


def test_what_spark_cannot_hold_is_refused_before_there_is_a_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(table_of(pa.schema([("d", pa.decimal128(38, 10))]), [(Decimal(1),)]))
    with pytest.raises(errors.UnsupportedTypeError, match="38"):
        MaintainedJoin("h(e) <- r(d), e = d * d * d * d.", {"r": frame}, state=tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with pytest.raises(ValueError, match="nulls is 'ignore'"):
        MaintainedJoin("h(d) <- r(d).", {"r": frame}, state=tmp_path / "state", nulls="ignore")  # type: ignore[arg-type]
