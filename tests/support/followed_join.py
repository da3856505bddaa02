"""A maintained join over relations that a test knows as sets, beside the engine on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lftj
from lftj.storage.relation import Relation
from spark_bridge import MaintainedJoin
from spark_bridge.cells.signed_tables import signed
from support.rows import rows_of
from support.strategies import any_row
from support.transactions import after

PLACES = pytest.mark.parametrize("where", ["executors", "driver"])
"""Tests of what is the same wherever the state lives."""


def placed(where: str, **of_executors: Any) -> dict[str, Any]:
    """Options of a maintained join: ``of_executors`` say how partitions are made."""
    return {"where": where, **(of_executors if where == "executors" else {})}


Row = tuple[Any, ...]
Changes = Mapping[str, Sequence[tuple[Row, int]]]


def files_of(path: Path) -> set[str]:
    """All files of a state."""
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@dataclass
class Followed:
    """A maintained join, and its relations as sets of rows."""

    spark: SparkSession
    path: Path
    rule: str
    tables: Mapping[str, pa.Table]
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schemas = {name: table.schema for name, table in self.tables.items()}
        self.relations = {name: set(rows_of(table)) for name, table in self.tables.items()}
        self.frames = {name: self.spark.createDataFrame(table) for name, table in self.tables.items()}
        self.joined = self.opened()

    def opened(self, **options: Any) -> MaintainedJoin:
        return MaintainedJoin(self.rule, self.frames, state=self.path, **{**self.options, **options})

    def expected(self) -> pa.Table:
        database = lftj.Database()
        for name, schema in self.schemas.items():
            table = table_of(schema, list(self.relations[name]))
            database.add(Relation.from_table(name, table, database.domains))
        return database.query(self.rule, threads=1)

    def changes(self, changes: Changes) -> dict[str, DataFrame]:
        return {
            name: self.spark.createDataFrame(
                table_of(signed(self.schemas[name]), [(*row, weight) for row, weight in rows])
            )
            for name, rows in changes.items()
        }

    def batch(self, changes: Changes, joined: MaintainedJoin | None = None, **options: Any) -> list[Row]:
        """Apply a batch: its changes are the difference of what is computed anew before and after."""
        before = any_row(set(rows_of(self.expected())))
        found = (joined or self.joined).apply(self.changes(changes), **options).toArrow()
        staged = [(name, row, weight) for name, rows in changes.items() for row, weight in rows]
        self.relations = after(self.relations, staged)
        now = any_row(set(rows_of(self.expected())))
        rows = rows_of(found)
        assert any_row({row[:-1] for row in rows if row[-1] == 1}) == now - before
        assert any_row({row[:-1] for row in rows if row[-1] == -1}) == before - now
        assert len(rows) == len(now - before) + len(before - now)
        assert found.schema.names[:-1] == self.expected().schema.names
        return rows

    def check(self, joined: MaintainedJoin | None = None) -> None:
        """The table is what is computed anew."""
        same_rows((joined or self.joined).table(), self.expected())

    def refused(self, error: type[Exception], text: str, changes: Mapping[str, DataFrame]) -> None:
        """A batch that is refused changes nothing, and leaves no file."""
        files, version = files_of(self.path), self.joined.version
        with pytest.raises(error, match=text) as caught:
            self.joined.apply(changes)
        assert type(caught.value) is error
        assert (files_of(self.path), self.joined.version) == (files, version)


def table_of(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def same_rows(found: DataFrame, expected: pa.Table) -> None:
    """The same rows, each once, under the same names, of the same types."""
    table = found.toArrow()
    assert (table.schema.names, table.schema.types) == (expected.schema.names, expected.schema.types)
    assert any_row(set(rows_of(table))) == any_row(set(rows_of(expected)))
    assert len(table) == len(expected)


def edges(n_edges: int, n_nodes: int, seed: int = 0) -> pa.Table:
    random = Random(seed)
    pairs = [(random.randrange(n_nodes), random.randrange(n_nodes)) for _ in range(n_edges)]
    return pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})


def random_changes(edges: set[Row], n_nodes: int, size: int, random: Random) -> list[tuple[Row, int]]:
    """Erased are edges that are there and others, inserted too; some rows repeat."""
    rows = [(random.randrange(n_nodes), random.randrange(n_nodes)) for _ in range(size)]
    rows += random.sample(sorted(edges), min(len(edges), size))
    rows += rows[: size // 4]
    return [(row, random.choice((1, -1, -1, 2))) for row in rows]
