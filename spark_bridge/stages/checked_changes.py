"""`ChangeChecks`: changes as they come, in the relations' types, and what is refused or left out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError, NullError
from maintenance.changes.operations import OPERATIONS
from spark_bridge.cells.key_engine import Keys
from spark_bridge.cells.signed_tables import refuse_null_weights
from spark_bridge.placing.placing import InputNulls, without_nulls
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.stages.typed_changes import in_types


@dataclass(frozen=True)
class ChangeChecks:
    """``schemas``: of changes by relation, weights and events included; ``times``: by stream, its column."""

    schemas: Mapping[str, pa.Schema]
    keys: Keys
    times: Mapping[str, str]
    nulls: InputNulls

    def checked(self, batches: Iterable[pa.RecordBatch], reader: TagReader) -> Iterator[tuple[str, pa.Table]]:
        """Changes by relation in its types, those with NULL in columns without refused or left out.

        Raises NullError and ChangeError.
        """
        for batch in batches:
            for name, rows in reader.tables(batch):
                if name in self.keys:
                    kept = self._checked_keys(name, rows)
                else:
                    refuse_null_weights(name, rows)
                    if self.nulls != "drop" and name in self.times:
                        self._refuse_timeless(name, rows)
                    kept = without_nulls(name, rows, self.schemas[name], self.nulls)
                yield name, in_types(name, kept, self.schemas[name])

    def _refuse_timeless(self, name: str, rows: pa.Table) -> None:
        if rows.column(self.times[name]).null_count:
            why = 'every row of a stream has a time; pass nulls="drop" to leave such rows out'
            raise NullError(f"relation {name!r}, column {self.times[name]!r}: NULL, and {why}")

    def _checked_keys(self, name: str, rows: pa.Table) -> pa.Table:
        """Events of a relation with a key: NULL is nowhere in the key, nor elsewhere where there is a row."""
        if rows.column(rows.num_columns - 2).null_count:
            raise ChangeError(f"changes of {name!r}: an op is NULL or none of {', '.join(OPERATIONS)}")
        refuse_null_weights(name, rows)
        key = self.keys[name]
        if self.nulls == "drop":
            rows = rows.filter(reduce(pc.and_, (rows.column(label).is_valid() for label in key)))
        for label in key:
            if rows.column(label).null_count:
                raise NullError(
                    f"relation {name!r}, column {label!r}: NULL, and the column is one of the key"
                )
        erased = pc.and_(rows.column(rows.num_columns - 2), pc.equal(rows.column(rows.num_columns - 1), 0))
        whole = without_nulls(name, rows.filter(pc.invert(erased)), self.schemas[name], self.nulls)
        return pa.concat_tables([whole, rows.filter(erased)])
