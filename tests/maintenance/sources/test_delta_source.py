"""Delta tables that are followed: against their own versions, through kills, and what can't be followed."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lftj.errors import RejectedRowError, SourceError
from maintenance import Workspace
from maintenance.sources.cursor import Cursor
from maintenance.sources.delta import DeltaSource, delta
from support.delta_steps import FEED, STEPS, append, made, random_rows, rows_at
from support.followed_edges import kept
from support.killed_pulls import KILLS, POINTS, Killer, Part, kill_at_random

MODULE = "maintenance.sources.delta"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return made(tmp_path / "edges", random_rows(random.Random(0), 6))


def pulled(workspace: Workspace, source: DeltaSource) -> int:
    return sum(1 for _ in source.pull(workspace, timeout=0))


@pytest.mark.parametrize("batch_rows", [1, 10_000])
def test_a_relation_is_the_table_after_each_version(path: str, batch_rows: int) -> None:
    chosen, workspace, source = random.Random(batch_rows), Workspace(), delta(path, batch_rows=batch_rows)
    assert pulled(workspace, source) == 1
    workspace.install("n[a] = count() <- edges(a, _).")
    for _ in range(8):
        for _ in range(chosen.randrange(1, 4)):
            chosen.choice(STEPS)(path, chosen)
        before, version = Cursor(workspace, "edges").places["version"].position, DeltaTable(path).version()
        most = version - before if batch_rows == 1 else 1
        assert pulled(workspace, source) <= most  # what waits is one commit, if it is not too much
        assert Cursor(workspace, "edges").places["version"].position == version
        assert kept(workspace, "edges") == Counter(rows_at(path))
    assert pulled(workspace, source) == 0
    workspace.verify()


def test_of_a_table_with_a_key_rows_replace_one_another(tmp_path: Path) -> None:
    """Updates, merges and deletes; the relation has the table's columns that are asked for, by a key."""
    path, chosen, workspace = str(tmp_path / "t"), random.Random(2), Workspace()
    ids = list(range(20))
    rows = {"id": ids, "name": [f"n{n}" for n in ids], "price": [n / 4 for n in ids], "more": [None] * 20}
    schema = pa.schema({"id": pa.int64(), "name": pa.string(), "price": pa.float64(), "more": pa.int32()})
    write_deltalake(path, pa.table(rows, schema), configuration=FEED)
    source = delta(path, "item", key=["id"], columns=["id", "price", "name"])
    for step in range(6):
        table = DeltaTable(path)
        if step % 3 == 0:
            table.update({"price": "price + 1"}, predicate=f"id % 5 = {step % 5}")
        elif step % 3 == 1:
            table.delete(f"id = {chosen.randrange(20)}")
            write_deltalake(path, pa.table({k: [v[0]] for k, v in rows.items()}, schema), mode="append")
            DeltaTable(path).delete("id = 0")
        else:
            changes = pa.table({"id": [step, 40 + step], "name": ["x", "y"], "price": [0.5, 1.5]})
            merge = table.merge(changes, "t.id = s.id", source_alias="s", target_alias="t")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        assert pulled(workspace, source) == 1
        found = DeltaTable(path).to_pyarrow_table(columns=["id", "price", "name"])
        assert kept(workspace, "item") == Counter(tuple(row.values()) for row in found.to_pylist())
    assert workspace.base_version("item").schema.key == ("id",)


def test_a_version_is_never_split_though_it_is_read_in_pieces(path: str) -> None:
    workspace, source = Workspace(), delta(path, batch_rows=100)
    append(path, [(n, n) for n in range(20_000)])
    assert pulled(workspace, source) == 1
    append(path, [(1, 2)])
    append(path, [(n, n) for n in range(30_000)])
    DeltaTable(path).delete("src > 5")
    sizes = [tx.stats.inserted["edges"] for tx in source.pull(workspace, timeout=0)]
    assert sizes == [30_001, 0]
    assert kept(workspace, "edges") == Counter(rows_at(path))


def test_an_update_whose_feed_lacks_equal_rows_is_read_from_the_table(path: str) -> None:
    """deltalake leaves out of both images the rows that both have, however often."""
    workspace, source = Workspace(), delta(path)
    write_deltalake(path, pa.table({"src": [3, 3, 3, 4, 5], "dst": [2, 3, 3, 7, 7]}), mode="overwrite")
    pulled(workspace, source)
    DeltaTable(path).update({"dst": "dst + 1"}, predicate="src = 3")
    assert pulled(workspace, source) == 1
    assert kept(workspace, "edges") == {(3, 3): 1, (3, 4): 2, (4, 7): 1, (5, 7): 1}


@pytest.mark.in_turns
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_nothing_is_lost_or_doubled(
    lives: Killer, path: str, tmp_path: Path, point: str
) -> None:
    chosen, folder = random.Random(point), tmp_path / "ws"
    part = Part(MODULE, [path], {"batch_rows": 1})
    for time in (1, 2, 2):
        assert lives.life(folder, [part], f"{point}:{time}") in (0, -signal.SIGKILL)
        for _ in range(4):
            chosen.choice(STEPS)(path, chosen)
    assert lives.life(folder, [part], f"{point}:2") == -signal.SIGKILL
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(workspace, "edges") == Counter(rows_at(path))
        assert pulled(workspace, delta(path)) == 0


def test_killed_at_random_while_versions_come(lives: Killer, path: str, tmp_path: Path) -> None:
    chosen, folder = random.Random(4), tmp_path / "ws"
    part = Part(MODULE, [path], {"batch_rows": 3})
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        workspace.install("n[a] = count() <- edges(a, _).")
    codes = []
    for code in kill_at_random(lives, folder, [part], 5, 0.15):
        codes.append(code)
        for _ in range(4):
            chosen.choice(STEPS)(path, chosen)
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(workspace, "edges") == Counter(rows_at(path))
        workspace.verify()


def test_rows_that_can_not_be_taken_stop_or_are_set_aside(tmp_path: Path) -> None:
    path, workspace = str(tmp_path / "t"), Workspace()
    schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    write_deltalake(path, pa.table({"a": [1, None], "b": [1, 2]}, schema), configuration=FEED)
    with pytest.raises(
        RejectedRowError, match=r"row 1 at 0 of .* can't be taken: column 'a' is missing, or NULL"
    ):
        pulled(workspace, delta(path))
    assert workspace["t"].count == 0 and not Cursor(workspace, "t").places
    patient = delta(path, on_error="set aside")
    assert pulled(workspace, patient) == 1 and set(workspace["t"]) == {(1, 1)}
    DeltaTable(path).update({"a": "7"}, predicate="b = 2")  # what goes was never here
    assert pulled(workspace, patient) == 1 and set(workspace["t"]) == {(1, 1), (7, 2)}
    assert [row["position"] for row in workspace["t_aside"].to_pylist()] == [0, 1]
    kept_nulls = Workspace()
    assert pulled(kept_nulls, delta(path, nulls="keep")) == 1
    narrow = Workspace()
    narrow.load("t", pa.table({"a": pa.array([], pa.int8()), "b": pa.array([], pa.string())}), bag=True)
    with pytest.raises(SourceError, match=r"source 't': column 'b' is of type int64, and was string"):
        pulled(narrow, delta(path))


def refused(workspace: Workspace, source: DeltaSource, match: str) -> None:
    """It stops by name, twice, and restart() is the way out."""
    for _ in range(2):
        with pytest.raises(SourceError, match=match):
            pulled(workspace, source)


def test_what_can_not_be_followed_stops_the_pull_by_name(path: str, tmp_path: Path) -> None:
    workspace, source = Workspace(), delta(path)
    pulled(workspace, source)
    other = made(tmp_path / "other", [(1, 2)])
    append(other, [(3, 4)])
    refused(workspace, delta(other, "edges"), r"source 'edges': .* is another table .* restart\(\)")
    shutil.rmtree(path)
    made(Path(path), [(5, 6)])
    refused(workspace, source, r"is another table than the one that was read before")
    source.restart(workspace)
    assert pulled(workspace, source) == 1 and kept(workspace, "edges") == {(5, 6): 1}
    append(path, [(7, 8)])
    write_deltalake(path, pa.table({"src": [1], "dst": [2]}), mode="overwrite")
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refused(workspace, source, r"files of versions 1 to 1 were cleaned away \(VACUUM\): restart\(\) begins")
    source.restart(workspace)
    assert pulled(workspace, source) == 1 and kept(workspace, "edges") == {(1, 2): 1}
    more = pa.table({"src": [3], "dst": [4], "since": [5]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    refused(workspace, source, r"has a column 'since', which relation 'edges' has not.*columns=")
    some = delta(path, columns=["src", "dst"])
    assert pulled(workspace, some) == 1 and kept(workspace, "edges") == {(1, 2): 1, (3, 4): 1}
    write_deltalake(path, pa.table({"src": [3], "dst": ["x"]}), mode="overwrite", schema_mode="overwrite")
    refused(workspace, source, r"columns have changed: 'dst' is of type string at version \d+, and was of")
    write_deltalake(path, pa.table({"src": [3]}), mode="overwrite", schema_mode="overwrite")
    refused(workspace, source, r"has no column 'dst', which relation 'edges' has; it has 'src': load")
    workspace.load("edges", {"src": [0]}, bag=True)
    source.restart(workspace)
    assert pulled(workspace, source) == 1 and kept(workspace, "edges") == {(3,): 1}
    with pytest.raises(SourceError, match=r"source 'none': Delta table '.*none': can't be read"):
        pulled(workspace, delta(tmp_path / "none"))


def test_a_table_without_a_feed_is_read_once(tmp_path: Path) -> None:
    path, workspace = str(tmp_path / "t"), Workspace()
    write_deltalake(path, pa.table({"a": [1, 1]}))
    source = delta(path)
    assert pulled(workspace, source) == 1 and kept(workspace, "t") == {(1,): 2}
    write_deltalake(path, pa.table({"a": [2]}), mode="append")
    refused(workspace, source, r"at version 1, the cursor at 0, and its change data feed is off: set the pro")
    DeltaTable(path).alter.set_table_properties(FEED)
    source.restart(workspace)
    assert pulled(workspace, source) == 1
    write_deltalake(path, pa.table({"a": [3]}), mode="append")
    assert pulled(workspace, source) == 1 and kept(workspace, "t") == {(1,): 2, (2,): 1, (3,): 1}


def test_a_relation_that_does_not_fit_is_refused(path: str) -> None:
    workspace = Workspace()
    workspace.load("edges", {"src": [1], "dst": [2]})
    with pytest.raises(SourceError, match="holds each once: load it with a key, or with bag=True"):
        pulled(workspace, delta(path))
    workspace.load("edges", {"src": [1], "dst": [2]}, bag=True)
    with pytest.raises(SourceError, match="has rows already, and no cursor says where they are from"):
        pulled(workspace, delta(path))
    keyed = Workspace()
    write_deltalake(path, pa.table({"src": [1, 1], "dst": [2, 3]}), mode="overwrite")
    with pytest.raises(RejectedRowError, match=r"row 1 at 1 of .*two rows of key src=1") as raised:
        pulled(keyed, delta(path, key=["src"]))
    assert raised.value.row == 1 and not keyed["edges"].count
    aside = delta(path, key=["src"], on_error="set aside")
    assert pulled(keyed, aside) == 1 and list(keyed["edges"]) == [(1, 2)]
    assert [row[2] for row in keyed["edges_aside"]] == [1]


def test_a_loop_waits_for_what_comes(path: str) -> None:
    workspace = Workspace()
    for seen, _ in enumerate(delta(path).pull(workspace, timeout=30)):
        if seen == 2:
            break
        append(path, [(seen, seen)])
    assert kept(workspace, "edges") == Counter(rows_at(path))
