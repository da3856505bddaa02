"""`ReadProgram`: a program with the relations that it reads, and changes of these in its order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from lftj.errors import ChangeError, UnknownRelationError
from spark_bridge.cells.key_engine import Keys
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.read_columns import ReadColumns
from spark_bridge.placing.tagged_input import TaggedInput
from spark_bridge.stages.typed_changes import changes_in_order


@dataclass(frozen=True)
class ReadProgram:
    """``text``: with the schemas of the relations; ``keys``: of those that have one, its columns."""

    text: ProgramText
    columns: ReadColumns
    nulls: InputNulls
    keys: Keys

    @property
    def relations(self) -> dict[str, pa.Schema]:
        """The relations by name, without weights."""
        return dict(self.text.relations)

    def reading(self, names: Collection[str]) -> ReadProgram:
        """The same over these relations alone, and the streams."""
        read = {*names, *(name for name, _ in self.text.streams)}
        relations = tuple((name, schema) for name, schema in self.text.relations if name in read)
        keys = {name: columns for name, columns in self.keys.items() if name in read}
        return replace(self, text=replace(self.text, relations=relations), keys=keys)

    def changes(self, changes: Mapping[str, DataFrame]) -> TaggedInput:
        """Changes, columns in the relations' order.  Raises ChangeError and UnknownRelationError."""
        frames, schemas, relations = {}, [], self.relations
        if not changes:
            raise ChangeError(f"there are no changes; relations are {', '.join(relations)}")
        for name, frame in changes.items():
            schema = relations.get(name)
            if schema is None:
                known = ", ".join(relations)
                raise UnknownRelationError(f"changes of {name!r}, which no rule reads; relations are {known}")
            frames[name], given = changes_in_order(
                frame, self.columns.relations[name], schema, self.keys.get(name, ())
            )
            schemas.append((name, given))
        return TaggedInput.of(frames, schemas)
