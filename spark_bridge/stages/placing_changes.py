"""What a task of a batch's input does: changes to packets, or a receipt with what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError, LftjError, NullError
from maintenance.changes.operations import OPERATIONS
from spark_bridge.cells.signed_tables import events, refuse_null_weights, signed
from spark_bridge.placing.packets import PacketWriter
from spark_bridge.placing.placing import without_nulls
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.worker_process import Batches, TaskFunction
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.typed_changes import in_types
from spark_bridge.stages.worker import RECEIPT, error_receipt


def placing_changes(chain: StageChain, reader: TagReader) -> TaskFunction:
    """The function of a task: packets of its rows, then a receipt if there is an error."""

    def place(batches: Batches) -> Batches:
        try:
            yield from chain.given(_checked(batches, reader, chain))
        except LftjError as error:
            writer = PacketWriter()
            writer.add(0, 0, "", RECEIPT, error_receipt("", error).to_bytes(), len(chain.stages))
            yield from writer.rest()

    return place


def _checked(batches: Batches, reader: TagReader, chain: StageChain) -> Iterator[tuple[str, pa.Table]]:
    """Changes by relation in its types, those with NULL in columns without refused or left out."""
    schemas = {
        name: events(schema) if name in chain.keys else signed(schema)
        for name, schema in chain.text.relations
    }
    for batch in batches:
        for name, rows in reader.tables(batch):
            if name in chain.keys:
                kept = _checked_keys(name, rows, schemas[name], chain)
            else:
                refuse_null_weights(name, rows)
                kept = without_nulls(name, rows, schemas[name], chain.nulls)
            yield name, in_types(name, kept, schemas[name])


def _checked_keys(name: str, rows: pa.Table, schema: pa.Schema, chain: StageChain) -> pa.Table:
    """Events of a relation with a key: NULL is nowhere in the key, and elsewhere where there is no row."""
    if rows.column(rows.num_columns - 2).null_count:
        raise ChangeError(f"changes of {name!r}: an op is NULL or none of {', '.join(OPERATIONS)}")
    refuse_null_weights(name, rows)
    key = chain.keys[name]
    if chain.nulls == "drop":
        rows = rows.filter(reduce(pc.and_, (rows.column(label).is_valid() for label in key)))
    for label in key:
        if rows.column(label).null_count:
            raise NullError(f"relation {name!r}, column {label!r}: NULL, and the column is one of the key")
    erased = pc.and_(rows.column(rows.num_columns - 2), pc.equal(rows.column(rows.num_columns - 1), 0))
    whole = without_nulls(name, rows.filter(pc.invert(erased)), schema, chain.nulls)
    return pa.concat_tables([whole, rows.filter(erased)])
