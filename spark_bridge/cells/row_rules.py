"""Rules of one relation, which no shuffle has to bring together: what its rows give, batch by batch.

Windows read the rows of a partition beside each, which Spark has put into one task: its rows are taken
together then (``whole``).

Cost: a slice of rows in memory, or all of a task.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lftj.database.database import Database
from lftj.storage.relation import Relation
from spark_bridge.cells.search_engine import in_types
from spark_bridge.placing.schemas import declared_schema
from spark_bridge.placing.slices import gathered
from spark_bridge.placing.worker_process import Batches


@dataclass(frozen=True)
class RowRules:
    """``text``: the rules of a head over ``relation``, a bag of rows of this schema, by place."""

    text: str
    head: str
    relation: str
    schema: pa.Schema
    whole: bool = False

    def result(self) -> pa.Schema:
        """The schema of what they give.  Raises RuleError."""
        checked = self._database(self.schema.empty_table()).check(self.text)
        return declared_schema(checked.derived[self.head].shown)

    def rows(self, batches: Batches) -> Batches:
        """What rows give; of a head that is no bag once for each slice that has it."""
        schema = self.result()
        came = ((self.relation, self._typed(batch)) for batch in batches if batch.num_rows)
        if self.whole:
            parts = [table for _, table in came]
            slices = [pa.concat_tables(parts)] if parts else []
        else:
            slices = (table for _, table in gathered(came))  # type: ignore[assignment]
        for table in slices:
            found = self._database(table).query(self.text, head=self.head, threads=1)
            yield from in_types(found, schema).to_batches()

    def _typed(self, batch: pa.RecordBatch) -> pa.Table:
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _database(self, table: pa.Table) -> Database:
        database = Database()
        database.add(Relation.from_table(self.relation, table, database.domains, "keep", bag=True))
        return database
