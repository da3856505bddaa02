"""A head as a Delta table: what the table holds is the head, whoever else commits to it."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lftj.errors import SinkError
from maintenance import Workspace
from maintenance.sinks.delta import to_delta
from maintenance.sources.delta import delta
from support.followed_edges import change, pushed

RULES = "n[a] = count() <- edge(a, _).  pair(a, c) <- edge(a, b), edge(b, c).  bag ends(b) <- edge(_, b)."


@pytest.fixture
def workspace() -> Workspace:
    made = Workspace()
    made.load("edge", {"a": [1, 2], "b": [2, 3]})
    made.install(RULES)
    return made


def shown(rows: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(repr, row.values())) for row in rows.to_pylist())


def held(path: Path) -> Counter[tuple[str, ...]]:
    return shown(DeltaTable(path).to_pyarrow_table())


@pytest.mark.parametrize("name", ["n", "pair", "ends"])
def test_the_table_is_the_head_and_is_followed(workspace: Workspace, tmp_path: Path, name: str) -> None:
    """By another workspace; somebody compacts the table meanwhile."""
    chosen, path, copy = random.Random(name), tmp_path / name, Workspace()
    sink, back = to_delta(path, name), delta(path, key=["a"] if name == "n" else [])
    assert pushed(workspace, sink) == 1
    for step in range(8):
        for _ in range(chosen.randrange(1, 3)):
            change(workspace, chosen)
        before = DeltaTable(path).version()
        assert pushed(workspace, sink) <= 1
        assert DeltaTable(path).version() - before <= 1  # rows and version in one commit
        assert held(path) == shown(workspace[name].to_arrow())
        if step % 3 == 0:
            DeltaTable(path).optimize.compact()
        for _ in back.pull(copy, timeout=0):
            pass
        assert shown(copy[name].to_arrow()) == held(path)
    assert pushed(workspace, sink) == 0 and "Delta table" in repr(sink)


def test_others_commit_between(workspace: Workspace, tmp_path: Path) -> None:
    chosen, sink = random.Random(1), to_delta(tmp_path / "t", "pair")
    pushed(workspace, sink)
    for _ in range(4):
        change(workspace, chosen)
    for number, _ in enumerate(sink.push(workspace, timeout=0.2)):
        if number < 4:
            DeltaTable(tmp_path / "t").optimize.compact()  # the sink's own table is behind now
            change(workspace, chosen)
    assert held(tmp_path / "t") == shown(workspace["pair"].to_arrow())


def test_rows_of_all_types_and_as_often_as_they_are_there(tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "i": [1, None, 1, 2],
        "u": [2**63 - 1, None, 2**63 - 1, 0],
        "w": [255, None, 255, 0],
        "s": ["", None, "", "q'`\"\n"],
        "f": [0.1, None, 0.1, math.inf],
        "y": [b"\0\xff", None, b"\0\xff", b""],
        "b": [True, None, True, False],
    }
    types = {"i": pa.int16(), "u": pa.uint64(), "w": pa.uint8(), "s": pa.string(), "f": pa.float64()}
    rows = pa.table(values, pa.schema({**types, "y": pa.binary(), "b": pa.bool_()}))
    texts = {"d": pa.decimal128(9, 2), "day": pa.date32(), "t": pa.timestamp("us")}
    texts["z"] = pa.timestamp("ms", "Europe/Berlin")
    given = {"d": "-1.25", "day": "2024-02-29", "t": "1024-02-29 01:02:03.5", "z": "2024-02-29 01:02:03.25Z"}
    for label, type_ in texts.items():
        column = pa.array([given[label], None, given[label], None]).cast(type_)
        rows = rows.append_column(label, column)
    workspace = Workspace()
    workspace.load("r", rows, bag=True, nulls="keep")
    pytest.importorskip("duckdb")
    columns = ", ".join(rows.column_names)
    workspace.create_view("v", f"SELECT {columns} FROM r")
    sink = to_delta(tmp_path / "t", "v")
    pushed(workspace, sink)
    steps = [("erase", rows.slice(1, 2)), ("insert", pa.concat_tables([rows, rows])), ("erase", rows)]
    for op, its in steps:
        with workspace.transaction() as tx:
            getattr(tx, op)("r", its)
        assert pushed(workspace, sink) == 1
        found = DeltaTable(tmp_path / "t").to_pyarrow_table()
        assert shown(found.cast(rows.schema)) == shown(workspace["v"].to_arrow())


def test_a_table_of_others_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    other = Workspace()
    other.load("edge", {"a": [1, 2], "b": [2, 3]})
    other.install(RULES)
    sink = to_delta(tmp_path / "t", "pair")
    pushed(workspace, sink)
    with pytest.raises(SinkError, match=r"holds what another workspace wrote: give another path"):
        pushed(other, sink)
    write_deltalake(tmp_path / "own", pa.table({"a": [1], "c": [1]}))
    with pytest.raises(SinkError, match=r"has rows, and this workspace has not written them"):
        pushed(workspace, to_delta(tmp_path / "own", "pair"))
    write_deltalake(tmp_path / "wide", pa.table({"a": [1], "c": [1], "d": [1]}))
    with pytest.raises(SinkError, match=r"has columns \(a int64, c int64, d int64\), and 'pair' is \(a int6"):
        pushed(workspace, to_delta(tmp_path / "wide", "pair"))
    DeltaTable(tmp_path / "t").delete("a = 1")
    with workspace.transaction() as tx:
        tx.erase("edge", [(1, 2)])
    with pytest.raises(
        SinkError, match=r"was changed by another: 1 rows are to go, and 0 of them were there"
    ):
        pushed(workspace, sink)


def test_of_two_who_write_one_version_one_is_refused(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sink = tmp_path / "t", to_delta(tmp_path / "t", "pair")
    pushed(workspace, sink)
    app = f"lftj {DeltaTable(path).history(1)[0]['lftj.workspace']} pair_to_delta"
    with workspace.transaction() as tx:
        tx.insert("edge", [(0, 1)])
    taken = iter([workspace.version + 5])

    def first(table: Any, rows: pa.Table, **options: Any) -> None:
        """Another writer is quicker."""
        from deltalake import Transaction

        for version in taken:
            properties = CommitProperties(app_transactions=[Transaction(app, version)])
            write_deltalake(path, rows, mode="append", commit_properties=properties)
        write_deltalake(table, rows, **options)

    monkeypatch.setattr("deltalake.write_deltalake", first)
    with pytest.raises(SinkError, match="another process pushes to"):
        pushed(workspace, sink)
    with pytest.raises(
        SinkError, match=r"it holds version \d+, and the workspace is at .* put back from a c"
    ):
        pushed(workspace, sink)


def test_what_can_not_be_written_is_refused_by_name(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="key= names 'x'"):
        pushed(workspace, to_delta(tmp_path / "t", "n", key=["x"]))
    workspace.load("times", pa.table({"t": pa.array([1], pa.time64("us"))}))
    workspace.install("at(t) <- times(t).  all[a] = list(b) <- edge(a, b).")
    with pytest.raises(SinkError, match=r"column 't' of 'at' is of type time64.* leave it out"):
        pushed(workspace, to_delta(tmp_path / "t", "at"))
    assert pushed(workspace, to_delta(tmp_path / "lists", "all")) == 1  # its key tells rows apart
    with pytest.raises(SinkError, match=r"looked for by 'list', which is of type list.*key="):
        pushed(workspace, to_delta(tmp_path / "t", "all", key=workspace["all"].schema.names))
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match=r"can't be written: .*push again"):
        pushed(workspace, to_delta(tmp_path / "file" / "t", "n"))
