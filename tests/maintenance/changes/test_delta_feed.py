"""A Delta table's feed as changes: against the table's own versions, and what is refused, by its name."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lftj.errors import NullError, SourceError, UnsupportedTypeError
from maintenance import Workspace, changes_from_delta
from support.delta_steps import FEED, STEPS, append, made, random_rows, rows_at
from support.sets import load_set

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


def _after(there: set, table: pa.Table) -> set:
    """A set with changes, the last column of which is the weight; each must be one."""
    listed = [(tuple(row.values())[:-1], row["weight"]) for row in table.to_pylist()]
    assert len({row for row, _ in listed}) == len(listed)
    gone = {row for row, weight in listed if weight == -1}
    assert gone <= there
    assert {weight for _, weight in listed} <= {1, -1}
    return (there - gone) | {row for row, weight in listed if weight == 1}


# -- oracle: the table's versions -------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_changes_lead_from_version_to_version(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = made(tmp_path / "edges", random_rows(random, 6))
    for _ in range(12):
        random.choice(STEPS)(path, random)
    last = DeltaTable(path).version()
    sets = [set(rows_at(path, version)) for version in range(last + 1)]
    for since in {-1, 0, last // 2, last - 1, last}:
        changes = changes_from_delta(path, since)
        start = sets[since] if since >= 0 else set()
        assert (changes.since, changes.version) == (since, last)
        assert _after(start, changes.table) == sets[last]
        for version in range(since + 1, last + 1):
            at = changes.by_version.filter(pa.compute.equal(changes.by_version["txn"], version))
            start = _after(start, at.drop_columns(["txn"]))
            assert start == sets[version]
    middle = changes_from_delta(path, 1, until=last - 1)
    assert _after(sets[1], middle.table) == sets[last - 1]


@pytest.mark.parametrize("seed", range(3))
def test_some_columns_are_a_bag_too(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = made(tmp_path / "edges", random_rows(random, 6))
    for _ in range(8):
        random.choice(STEPS)(path, random)
    changes = changes_from_delta(path, 0, columns=["dst"])
    assert changes.table.column_names == ["dst", "weight"]
    was, now = (set(rows_at(path, version, ["dst"])) for version in (0, None))
    assert _after(was, changes.table) == now


# -- worked examples ----------------------------------------------------------------------


def test_one_of_two_equal_rows_may_go(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2), (1, 2), (3, 4)])
    half = pa.table({"src": [1, 3], "dst": [2, 4]})
    write_deltalake(path, half, mode="overwrite")
    DeltaTable(path).delete("src = 3")
    assert changes_from_delta(path, 0).table.to_pylist() == [{"src": 3, "dst": 4, "weight": -1}]


def test_rows_that_the_feed_of_an_update_lacks_are_read(tmp_path: Path) -> None:
    """What both images have is in no feed: one row of (1, 1) became two, which versions behind count on."""
    path = made(tmp_path / "edges", [(1, 2)])
    append(path, [(1, 1)])
    DeltaTable(path).update({"dst": "1"}, predicate="src = 1")
    assert rows_at(path) == [(1, 1), (1, 1)]
    DeltaTable(path).delete("dst = 1")
    append(path, [(1, 1), (5, 6)])
    changes = changes_from_delta(path, 0)
    assert _after({(1, 2)}, changes.table) == {(1, 1), (5, 6)}
    there = {(1, 2)}
    for version in range(1, 5):
        at = changes.by_version.filter(pa.compute.equal(changes.by_version["txn"], version))
        there = _after(there, at.drop_columns(["txn"]))
        assert there == set(rows_at(path, version))


def test_unique_rows_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "edges", [(1, 2), (3, 4)])
    DeltaTable(path).delete("src = 3")
    append(path, [(5, 6)])
    scans = []
    scan = DeltaTable.scan
    monkeypatch.setattr(DeltaTable, "scan", lambda *args, **named: scans.append(1) or scan(*args, **named))
    expected = [{"src": 3, "dst": 4, "weight": -1}, {"src": 5, "dst": 6, "weight": 1}]
    assert changes_from_delta(path, 0, unique=True).table.to_pylist() == expected
    assert changes_from_delta(path, 1).table.to_pylist() == expected[1:]
    assert scans == []  # nor where nothing was deleted
    assert changes_from_delta(path, 0).table.to_pylist() == expected
    assert scans == [1]


def test_types_come_back_as_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "part": ["x", "y"],
            "text": ["ä", ""],
            "bytes": [b"\0", b"b"],
            "real": [1.5, float("inf")],
            "small": pa.array([1, -1], pa.int8()),
            "flag": [True, False],
            "exact": pa.array(["1.50", "-2.00"]).cast(pa.decimal128(10, 2)),
            "day": pa.array([0, 20_000], pa.int32()).cast(pa.date32()),
            "at": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "local": pa.array([0, 1], pa.timestamp("us")),
            "weight": [5, 6],
        }
    )
    write_deltalake(tmp_path, table, partition_by=["part"], configuration=FEED)
    changes = changes_from_delta(tmp_path, -1)
    assert changes.table.schema == table.schema.append(pa.field("weight_", pa.int64()))
    got = changes.table.drop_columns(["weight_"]).sort_by("part")
    assert got.equals(table)
    DeltaTable(tmp_path).delete("part = 'x'")
    erased = changes_from_delta(tmp_path, 0).table
    assert (erased["text"].to_pylist(), erased["weight_"].to_pylist()) == (["ä"], [-1])


def test_nothing_happened(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    changes = changes_from_delta(path, 0)
    assert (len(changes), changes.version, changes.by_version.num_rows) == (0, 0, 0)
    assert changes.table.schema == pa.schema([(name, pa.int64()) for name in ("src", "dst", "weight")])
    assert repr(changes) == "<DeltaChanges of versions 1 to 0, 0 rows>"


def test_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, None], "b": [1, 2]}), configuration=FEED)
    with pytest.raises(NullError, match=r"Delta table '.*', column 'a': NULL: .* nulls=\"drop\""):
        changes_from_delta(tmp_path, -1)
    assert changes_from_delta(tmp_path, -1, nulls="drop").table.to_pylist() == [{"a": 1, "b": 1, "weight": 1}]
    assert len(changes_from_delta(tmp_path, -1, columns=["b"])) == 2
    write_deltalake(tmp_path, pa.table({"a": pa.array([None], pa.int64()), "b": [2]}), mode="append")
    DeltaTable(tmp_path).delete("b = 1")
    workspace = Workspace()
    workspace.load("r", pa.table({"a": [1, None], "b": [1, 2]}), nulls="keep")
    with workspace.transaction() as tx:
        tx.apply("r", changes_from_delta(tmp_path, 0, nulls="keep").table)
    assert set(workspace["r"]) == {(None, 2)}


# -- in a workspace -----------------------------------------------------------------------


def test_a_workspace_follows_a_table(tmp_path: Path) -> None:
    random = Random(5)
    path = made(tmp_path / "edges", random_rows(random, 6))
    ws, each = Workspace(), Workspace()
    for workspace in (ws, each):
        load_set(workspace, "edge", DeltaTable(path, version=0).to_pyarrow_table())
        workspace.install(TRIANGLES)
    seen = 0
    for _ in range(4):
        for _ in range(3):
            random.choice(STEPS)(path, random)
        changes = changes_from_delta(path, seen)
        with ws.transaction() as tx:
            tx.apply("edge", changes)
        if changes.by_version.num_rows:
            applied = each.apply_many({"edge": changes.by_version})
            assert set(applied.transactions) <= set(range(seen + 1, changes.version + 1))
        seen = changes.version
        for workspace in (ws, each):
            assert set(workspace["edge"]) == set(rows_at(path))
            workspace.verify()


def test_others_take_changes_too(tmp_path: Path) -> None:
    changes = changes_from_delta(made(tmp_path / "edges", [(1, 2)]), -1)
    assert pl.DataFrame(changes).rows() == [(1, 2, 1)]


# -- what is refused ----------------------------------------------------------------------


def test_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"Delta table '.*nothing': can't be read"):
        changes_from_delta(tmp_path / "nothing", 0)
    with pytest.raises(SourceError, match="by its path, URI or DeltaTable, not a int"):
        changes_from_delta(7, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("since", [-2, "0", 1.0, True, None])
def test_versions_are_numbers(tmp_path: Path, since: object) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    with pytest.raises(SourceError, match=r"since is .*; versions are numbers from -1 on"):
        changes_from_delta(path, since)  # type: ignore[arg-type]


def test_a_table_that_went_back_in_time(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    with pytest.raises(SourceError, match=r"is at version 0, .* since version 3: .* load the table anew"):
        changes_from_delta(path, 3)


def test_a_table_that_was_made_anew(tmp_path: Path) -> None:
    first = changes_from_delta(made(tmp_path / "a", [(1, 2)]), -1)
    path = made(tmp_path / "b", [(1, 2)])
    append(path, [(3, 4)])
    assert len(changes_from_delta(path, 0)) == 1
    with pytest.raises(SourceError, match=r"another table than the one that was read before.*made anew"):
        changes_from_delta(path, 0, table_id=first.table_id)


def test_columns_that_changed(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    write_deltalake(path, pa.table({"src": [3], "dst": ["x"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SourceError, match=r"'dst' is of type string at version 1, .* int64 at version 0"):
        changes_from_delta(path, 0)
    assert len(changes_from_delta(path, 0, columns=["src"])) == 2
    with pytest.raises(SourceError, match="no column 'weigth'"):
        changes_from_delta(path, 0, columns=["weigth"])


def test_columns_that_changed_and_changed_back(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    write_deltalake(path, pa.table({"src": [3]}), mode="overwrite", schema_mode="overwrite")
    write_deltalake(path, pa.table({"src": [3], "dst": [4]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SourceError, match="'dst' is of type int64 at version 2, and there was none at versi"):
        changes_from_delta(path, 0)


def test_a_column_that_is_new(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    more = pa.table({"src": [3], "dst": [4], "since": [5]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    with pytest.raises(SourceError, match="'since' is of type int64 at version 1, and there was none"):
        changes_from_delta(path, 0)
    assert len(changes_from_delta(path, 0, columns=["src", "dst"])) == 1


def test_a_column_that_is_no_key(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "b": [{"c": 1}]}), configuration=FEED)
    with pytest.raises(UnsupportedTypeError, match=r"Delta table .*, column 'b': type struct.* columns="):
        changes_from_delta(tmp_path, -1)
    assert len(changes_from_delta(tmp_path, -1, columns=["a"])) == 1


def test_a_feed_that_was_off(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    DeltaTable(tmp_path).delete("a = 1")
    with pytest.raises(SourceError, match=r"was off in some of versions 0 to 1: set the property delta.ena"):
        changes_from_delta(tmp_path, -1)
    DeltaTable(tmp_path).alter.set_table_properties(FEED)
    write_deltalake(tmp_path, pa.table({"a": [7]}), mode="append")
    assert changes_from_delta(tmp_path, 2).table.to_pylist() == [{"a": 7, "weight": 1}]


def test_files_that_were_cleaned_away(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    append(path, [(3, 4)])
    write_deltalake(path, pa.table({"src": [5], "dst": [6]}), mode="overwrite")
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(SourceError, match=r"files of versions 1 to \d were cleaned away \(VACUUM\): load"):
        changes_from_delta(path, 0)
    assert len(changes_from_delta(path, 2)) == 0


def test_a_log_that_was_cleaned_away(tmp_path: Path) -> None:
    path = made(tmp_path / "edges", [(1, 2)])
    for row in range(3):
        append(path, [(row, row)])
    table = DeltaTable(path)
    table.create_checkpoint()
    for old in sorted(Path(path, "_delta_log").glob("0*.json"))[:3]:
        old.unlink()
    with pytest.raises(SourceError, match=r"the log of version 1 was cleaned away, .* since version 1: load"):
        changes_from_delta(path, 1)
    append(path, [(9, 9)])
    assert len(changes_from_delta(path, 3)) == 1


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ImportError, match=r"a Delta table needs deltalake: pip install 'lftj\[delta\]'"):
        changes_from_delta(tmp_path, 0)
