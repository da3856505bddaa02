"""`ENGINES`: how a text is answered over tables: once, or by a view that saw its tables change."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import lftj
from maintenance import Workspace
from sql.logic.play import Engine, Given, duck


def _options(not_null: list[str]) -> dict[str, Any]:
    return {"nulls": "keep", "not_null": not_null, "bag": True}


def once(given: Given, text: str) -> pa.Table:
    """`Database.sql`."""
    database = lftj.Database()
    for name, (table, not_null) in given.items():
        database.load(name, table, **_options(not_null))
    return database.sql(text)


def kept(given: Given, text: str) -> pa.Table:
    """A view over each table's first rows; commits insert the others, erase some, bring these back."""
    ws = Workspace()
    for name, (table, not_null) in given.items():
        ws.load(name, table.slice(0, table.num_rows // 2), **_options(not_null))
    ws.create_view("kept_view", text)
    with ws.transaction() as tx:
        for name, (table, _) in given.items():
            tx.insert(name, table.slice(table.num_rows // 2))
    for turn in (lambda tx: tx.erase, lambda tx: tx.insert):
        with ws.transaction() as tx:
            for name, (table, _) in given.items():
                turn(tx)(name, table.slice(table.num_rows // 3, table.num_rows // 3))
    return ws["kept_view"].to_arrow()


ENGINES: dict[str, Engine] = {"once": once, "kept": kept, "duckdb": duck}
