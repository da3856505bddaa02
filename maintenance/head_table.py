"""What ``ws["head"]`` gives: a relation as a table that is built when it is looked at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lftj.relation_version import RelationVersion


class HeadTable:
    """One version of a relation.

    Everything that a ``pyarrow.Table`` has works on it (the table is built by the first such access and
    kept), and :attr:`count` works without.  Later commits don't change it.
    """

    def __init__(self, version: RelationVersion) -> None:
        self._version = version
        self._table: pa.Table | None = None

    @property
    def count(self) -> int:
        """Number of tuples, without building the table."""
        return self._version.n_rows

    @property
    def table(self) -> pa.Table:
        """The tuples, in no particular order, in the data's own types."""
        if self._table is None:
            version = self._version
            arrays = [
                column.type.domain.decode_chunked(codes, column.type.arrow)
                for column, codes in zip(version.schema.columns, version.columns(), strict=True)
            ]
            self._table = pa.Table.from_arrays(arrays, [column.name for column in version.schema.columns])
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.table, name)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HeadTable):
            other = other.table
        return bool(self.table == other) if isinstance(other, pa.Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns = ", ".join(f"{c.name}: {c.type.arrow}" for c in self._version.schema.columns)
        return f"<{self._version.name}({columns}), {self.count:,} rows>"
