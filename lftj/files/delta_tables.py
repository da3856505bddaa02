"""Delta tables, opened by the package deltalake, which is asked for only here.

What is wrong with a table is a SourceError that names it.  Where the package is not installed everything but
Delta tables works.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.whole_files import reason

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

FEED = "delta.enableChangeDataFeed"
"""The property of a table that has its writers keep a change data feed."""


def deltalake_package() -> Any:
    """The package.  Raises ImportError, which says how to get it."""
    try:
        import deltalake
    except ImportError as error:
        raise ImportError(
            "a Delta table needs deltalake: pip install 'lftj[delta]'", name="deltalake"
        ) from error
    return deltalake


def opened(
    table: str | os.PathLike[str] | DeltaTable,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable:
    """The table at a version, by default the newest; of a DeltaTable, its own version.

    ``storage_options``: keys, regions and so on, as deltalake takes them; a DeltaTable has its own.

    Raises SourceError where there is no such table or version, and ImportError without the package.
    """
    deltalake = deltalake_package()
    if isinstance(table, deltalake.DeltaTable):
        if version is None or version == table.version():
            return table
        storage_options, table = table._storage_options, table.table_uri
    if not isinstance(table, str | os.PathLike):
        raise SourceError(
            f"a Delta table is given by its path, URI or DeltaTable, not a {type(table).__name__}"
        )
    options = dict(storage_options) if storage_options is not None else None
    try:
        return deltalake.DeltaTable(os.fspath(table), version=version, storage_options=options)
    except Exception as error:  # deltalake raises whatever the store below raises
        which = "" if version is None else f", version {version}"
        raise SourceError(
            f"Delta table {os.fspath(table)!r}{which}: can't be read: {reason(error)}"
        ) from None


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The table's columns in Arrow's types, view types as plain ones."""
    fields = [pa.field(field.name, _plain(field.type)) for field in pa.schema(table.schema())]
    return pa.schema(fields)


def replace_rows(
    table: DeltaTable, gone: pa.Table, come: pa.Table, on: Sequence[str], properties: CommitProperties
) -> tuple[int, int]:
    """Delete rows and insert others, in one commit; how many were inserted and deleted.

    ``gone``: of rows that agree in the columns ``on`` one, with which all of the table's go that agree with
    it; NULL agrees with NULL.  ``come``: of the same schema, each as often as it is there.

    Cost: deltalake writes the files anew that have such rows.
    """
    weight = "weight"
    while weight in come.column_names:
        weight += "_"
    parts = [
        rows.append_column(weight, pa.array([sign] * rows.num_rows, pa.int8()))
        for rows, sign in ((gone, -1), (come, 1))
    ]
    conditions = [f"s.`{weight}` < 0"]
    for name in on:
        source, target = f"s.`{name}`", f"t.`{name}`"
        both = f" or ({target} is null and {source} is null)" if gone[name].null_count else ""
        conditions.append(f"({target} = {source}{both})")
    merger = table.merge(
        pa.concat_tables(parts),
        " and ".join(conditions),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
    )
    inserts = {f"`{name}`": f"s.`{name}`" for name in come.column_names}
    merger = merger.when_matched_delete().when_not_matched_insert(inserts, f"s.`{weight}` > 0")
    done = merger.execute()
    return done["num_target_rows_inserted"], done["num_target_rows_deleted"]


def _plain(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(arrow_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(arrow_type) else arrow_type
