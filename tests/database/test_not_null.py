"""Columns that are declared NOT NULL: what is refused when, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset, ipc

import lftj
from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image

NARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("age", pa.int64())])
TEXTS = [pa.field(f"t{number}", pa.string()) for number in range(4)]
WIDE = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("age", pa.int64()), *TEXTS])
GOOD = [(1, 41), (2, None), (3, 7)]
BAD = [(4, 1), (None, 2), (None, None)]

declared = pytest.mark.parametrize("schema", [NARROW, WIDE], ids=["narrow", "wide"])


def table(schema: pa.Schema, rows: list[tuple[int | None, int | None]]) -> pa.Table:
    columns: list[Any] = [pa.array([row[place] for row in rows], pa.int64()) for place in (0, 1)]
    columns += [pa.array(["x"] * len(rows), pa.string()) for _ in schema.names[2:]]
    return pa.Table.from_arrays(columns, schema=schema)


def first_two(relation: Any) -> set[tuple[Any, ...]]:
    return {row[:2] for row in relation}


def as_parquet(of: pa.Table, folder: Path) -> Any:
    pq.write_table(of, folder / "r.parquet")
    return folder / "r.parquet"


def as_ipc(of: pa.Table, folder: Path) -> Any:
    with ipc.new_file(folder / "r.arrow", of.schema) as writer:
        writer.write_table(of)
    return folder / "r.arrow"


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "table": lambda of, folder: of,
    "reader": lambda of, folder: pa.RecordBatchReader.from_batches(of.schema, of.to_batches()),
    "dataset": lambda of, folder: dataset.dataset(of),
    "ipc": as_ipc,
}


@declared
@pytest.mark.parametrize("source", [*SOURCES, "parquet"])
def test_a_source_that_declares_it(source: str, schema: pa.Schema, tmp_path: Path) -> None:
    of = {**SOURCES, "parquet": as_parquet}[source]
    workspace = Workspace()
    workspace.load("r", of(table(schema, GOOD), tmp_path), nulls="keep")
    assert first_two(workspace["r"]) == set(GOOD)
    with workspace.transaction() as tx:
        tx.insert("r", table(schema, [(5, None)]).to_pydict())
    message = r"'r', column 'id': NULL in row 0 .* declared NOT NULL"
    with pytest.raises(errors.ChangeError, match=message), workspace.transaction() as tx:
        tx.insert("r", table(schema, [(6, 6)]).to_pydict())
        tx.insert("r", table(schema, [(None, 1)]).to_pydict())
    assert first_two(workspace["r"]) == {*GOOD, (5, None)}


@declared
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("nulls", ["refuse", "keep"])
def test_a_load_is_refused(nulls: Any, source: str, schema: pa.Schema, tmp_path: Path) -> None:
    """Also of a wide relation, of which nothing is read yet; what was there stays."""
    db = lftj.Database()
    db.load("r", [(9, 9)], columns=["id", "age"])
    message = (
        r"'r', column 'id': NULL in row 1 \(counting from 0\) and in 1 more, .* declared NOT NULL .* nulls="
    )
    with pytest.raises(errors.NullError, match=message):
        db.load("r", SOURCES[source](table(schema, BAD), tmp_path), nulls=nulls)
    assert set(db["r"]) == {(9, 9)}
    db.load("r", SOURCES[source](table(schema, BAD), tmp_path), nulls="drop")
    assert first_two(db["r"]) == {(4, 1)}


def test_sources_without_a_schema_are_told(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id,age\n1,\n,2\n")
    db = lftj.Database()
    with pytest.raises(errors.NullError, match=r"'r', column 'id': NULL in row 1 .* declared NOT NULL"):
        db.load("r", tmp_path / "r.csv", nulls="keep", not_null=["id"])
    assert "r" not in db
    with pytest.raises(errors.NullError, match=r"'r', column 'b': NULL in row 0"):
        db.load("r", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep", not_null=["b"])
    db.load("r", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep", not_null=["a"])
    assert set(db["r"]) == {(1, None), (1, 2)}
    with pytest.raises(errors.SourceError, match=r"not_null= names 'aa'.* did you mean 'a'"):
        db.load("r", [(1, None)], columns=["a", "b"], not_null=["aa"])
    with pytest.raises(ValueError, match=r"it can be a list of columns, as \['a'\]"):
        db.load("r", [(1, None)], columns=["a", "b"], not_null="a")


def test_rules_know_it() -> None:
    """A column without NULL needs no test; asking whether it is NULL is allowed, and holds nowhere."""
    db = lftj.Database()
    db.load("r", table(NARROW, GOOD), nulls="keep")
    assert "not null" not in str(db.explain("h(i, j) <- r(i, _), r(j, _), i < j."))
    assert "not null" in str(db.explain("h(i, j) <- r(i, a), r(j, b), a < b."))
    assert db.query("h(i) <- r(i, _), i is null.").num_rows == 0


@declared
def test_folders_copies_and_images_declare_it(schema: pa.Schema, tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "kept") as workspace:
        workspace.load("r", table(schema, GOOD), nulls="keep")
        workspace.install("h(i, a) <- r(id: i, age: a).")
        workspace.save(tmp_path / "copied")
        write_image(workspace, tmp_path / "image")
        from_journal = Workspace.load_from(tmp_path / "kept")
    opened = [
        lambda: from_journal,
        lambda: Workspace.open(tmp_path / "kept"),
        lambda: Workspace.load_from(tmp_path / "copied"),
    ]
    opened += [lambda: Workspace.open(tmp_path / "kept"), lambda: read_image(tmp_path / "image")]
    for number, again in enumerate(opened):
        workspace = again()
        with pytest.raises(errors.ChangeError, match=r"column 'id': NULL in row 0 .* declared NOT NULL"):
            workspace.apply_many({"r": {**table(schema, [(None, 1)]).to_pydict(), "weight": [1]}})
        with workspace.transaction() as tx:
            tx.insert("r", table(schema, [(10 + number, None)]).to_pydict())
        assert (10 + number, None) in set(workspace["h"])
        if workspace.folder is not None:
            workspace.checkpoint()
        workspace.close()


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
@declared
def test_nothing_is_half_applied(schema: pa.Schema, strategy: str) -> None:
    workspace = Workspace()
    workspace.load("r", table(schema, GOOD), nulls="keep")
    workspace.load("s", [(1,), (3,)], columns=["id"])
    workspace.install("h(i, a) <- r(id: i, age: a), !s(i).", strategy)
    before = set(workspace["h"])
    zset = {**table(schema, [(8, 8), (None, 1)]).to_pydict(), "weight": [1, 1]}
    with pytest.raises(errors.ChangeError, match="NULL in row 1 "), workspace.transaction() as tx:
        tx.erase("s", [(1,)])
        tx.apply("r", zset)
    assert set(workspace["h"]) == before and len(workspace["s"]) == 2
    with workspace.transaction() as tx:
        with pytest.raises(errors.ChangeError):
            tx.apply("r", zset)
        tx.erase("s", [(1,)])
    assert set(workspace["h"]) == before | {(1, 41)}
    workspace.verify()


@declared
@pytest.mark.parametrize("is_read", [False, True], ids=["read by no rule", "read"])
def test_a_table_of_the_relations_own_types_is_looked_at(schema: pa.Schema, is_read: bool) -> None:
    """Which takes a quick way, to insert and to erase; its fields say nothing of NULL."""
    workspace = Workspace()
    workspace.load("r", table(schema, GOOD), nulls="keep")
    if is_read:
        workspace.install("h(i) <- r(id: i).")
    plain = pa.schema([pa.field(one.name, one.type) for one in schema])
    with workspace.transaction() as tx:
        for stage in (tx.insert, tx.erase):
            with pytest.raises(errors.ChangeError, match=r"column 'id': NULL in row 1 .* declared NOT NULL"):
                stage("r", table(plain, [(8, 8), (None, 1)]))
        tx.insert("r", table(plain, [(9, None)]))
    assert first_two(workspace["r"]) == {*GOOD, (9, None)}
