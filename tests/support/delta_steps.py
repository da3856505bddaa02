"""What may happen to a Delta table, step by step, each a version or more; and its rows at any version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
SCHEMA = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
Row = tuple[int, int]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([[row[0] for row in rows], [row[1] for row in rows]], schema=SCHEMA)


def made(path: Path, rows: list[Row]) -> str:
    """A new table with a change data feed."""
    write_deltalake(path, table_of(rows), configuration=FEED)
    return str(path)


def append(path: str, rows: list[Row]) -> None:
    write_deltalake(path, table_of(rows), mode="append")


def rows_at(path: str, version: int | None = None, columns: list[str] | None = None) -> list[Row]:
    """All rows, equal ones as often as they are there, sorted."""
    table = DeltaTable(path, version=version).to_pyarrow_table(columns=columns or SCHEMA.names)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def random_rows(random: Random, n: int) -> list[Row]:
    """Of few different ones: equal rows are frequent."""
    return [(random.randrange(4), random.randrange(4)) for _ in range(n)]


def _append(path: str, random: Random) -> None:
    append(path, random_rows(random, random.randint(1, 6)))


def _overwrite(path: str, random: Random) -> None:
    write_deltalake(path, table_of(random_rows(random, 8)), mode="overwrite")


def _replace_where(path: str, random: Random) -> None:
    source = random.randrange(4)
    rows = [(source, row[1]) for row in random_rows(random, 2)]
    write_deltalake(path, table_of(rows), mode="overwrite", predicate=f"src = {source}")


def _delete(path: str, random: Random) -> None:
    DeltaTable(path).delete(f"dst = {random.randrange(4)}")


def _update(path: str, random: Random) -> None:
    DeltaTable(path).update({"dst": "dst + 1"}, predicate=f"src = {random.randrange(4)}")


def _merge(path: str, random: Random) -> None:
    """Rows of which some go and others come; of equal rows in the table all go."""
    rows = sorted(set(random_rows(random, 4)))
    source = table_of(rows).append_column("weight", pa.array([random.choice((-1, 1)) for _ in rows]))
    (
        DeltaTable(path)
        .merge(source, "t.src = s.src and t.dst = s.dst", source_alias="s", target_alias="t")
        .when_matched_delete("s.weight < 0")
        .when_not_matched_insert({"src": "s.src", "dst": "s.dst"}, "s.weight > 0")
        .execute()
    )


def _compact(path: str, random: Random) -> None:
    DeltaTable(path).optimize.compact()


def _restore(path: str, random: Random) -> None:
    table = DeltaTable(path)
    if table.version():
        table.restore(random.randrange(table.version()))


STEPS: tuple[Callable[[str, Random], None], ...] = (
    _append,
    _overwrite,
    _replace_where,
    _delete,
    _update,
    _merge,
    _compact,
    _restore,
)
