"""`HeadSource`: Spark's data source ``lftj``.

    spark.dataSource.register(HeadSource)
    spark.read.format("lftj").load(path)                          a head as it is
    spark.read.format("lftj").option("since", 17).load(path)      what changed behind version 17
    spark.readStream.format("lftj").option("since", 17).load(path)
    frame.writeStream.format("lftj").option("relation", "edge").start(folder)

``path``: of a state of a ``MaintainedJoin``, in either place, or the folder of a workspace
(:mod:`spark_bridge.data_source.kept_heads`), which all workers reach.  Of a workspace ``head`` says which.

Invariant: a stream's offset is a version, and its batch what changed from one to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lftj.errors import SourceError
from spark_bridge.cells.signed_tables import signed
from spark_bridge.data_source.changes_sink import ChangesSink
from spark_bridge.data_source.kept_heads import kept_head
from spark_bridge.placing.schemas import spark_schema

VERSION = "version"


class HeadSource(DataSource):
    """The data source ``lftj``: register it in a session, and read heads that others keep.

    Options of reading:
        path: Of a state of a ``MaintainedJoin``, or the folder of a workspace.
        head: Which head, of a workspace, or of a state that has several, by default the first.
        since: A version, of the state or of the workspace: read what changed behind it, with ``weight``, in
            place of the rows.  A stream needs it.
    Options of a stream that is written:
        path: The folder of a workspace, which no other process has open meanwhile.
        relation: Which relation the rows are changes of, with ``weight``.
        source: Who counts the batches, where several streams write into a workspace.

    Raises StateError, SourceError, CursorError and what opening a workspace raises, as Spark's own errors
    with their text.
    """

    @classmethod
    def name(cls) -> str:
        return "lftj"

    def schema(self) -> StructType:
        since = self._since
        rows = kept_head(self._option("path"), self.options.get("head")).schema
        return spark_schema(rows if since is None else signed(rows))

    def reader(self, schema: StructType) -> DataSourceReader:
        return HeadReader(self._option("path"), self.options.get("head"), self._since, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._since is None:
            raise SourceError("a stream of changes begins behind a version: give it by the option since")
        return ChangesReader(self._option("path"), self.options.get("head"), self._since, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if overwrite:
            raise SourceError("changes are added to what there is: outputMode is 'append'")
        return ChangesSink(self._option("path"), self._option("relation"), self.options.get("source", ""))

    @property
    def _since(self) -> int | None:
        given = self.options.get("since")
        if given is not None and not given.isdecimal():
            raise SourceError(f"since is {given!r}; it is the number of a version")
        return None if given is None else int(given)

    def _option(self, name: str) -> str:
        if name not in self.options:
            raise SourceError(f"the data source 'lftj' needs the option {name}")
        return self.options[name]


class _Reading:
    """What both readers have; it can be pickled."""

    def __init__(self, path: str, head: str | None, since: int | None, schema: StructType) -> None:
        self._path, self._head, self._since = path, head, since
        self._arrow = to_arrow_schema(schema, timezone="UTC")

    def _read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark asks so where there are no parts
            return
        head = kept_head(self._path, self._head)
        found = head.rows if self._since is None else head.changed_rows
        for batch in found(partition.value):
            yield batch.rename_columns(self._arrow.names).cast(self._arrow)


class HeadReader(_Reading, DataSourceReader):
    """Of a head as it is when the query begins, or what changed until then."""

    def partitions(self) -> Sequence[InputPartition]:
        head = kept_head(self._path, self._head)
        parts = head.whole() if self._since is None else head.changes(self._since, head.look())
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)


class ChangesReader(_Reading, DataSourceStreamReader):
    """Of what changes behind a version."""

    _kept: Any = None

    def initialOffset(self) -> dict[str, Any]:
        return {VERSION: self._since}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        if self._kept is None:
            self._kept = kept_head(self._path, self._head)
        return {VERSION: self._kept.look()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        head = kept_head(self._path, self._head)
        return [InputPartition(part) for part in head.changes(start[VERSION], end[VERSION])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)
