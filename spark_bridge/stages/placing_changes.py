"""What a task of a batch's input does: changes to packets, or a receipt with what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lftj.errors import LftjError
from spark_bridge.cells.signed_tables import refuse_null_weights, signed
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
            yield from chain.placed(_checked(batches, reader, chain))
        except LftjError as error:
            writer = PacketWriter()
            writer.add(0, 0, "", RECEIPT, error_receipt("", error).to_bytes(), len(chain.stages))
            yield from writer.rest()

    return place


def _checked(batches: Batches, reader: TagReader, chain: StageChain) -> Iterator[tuple[str, pa.Table]]:
    """Changes by relation in its types, those with NULL in columns without refused or left out."""
    schemas = {name: signed(schema) for name, schema in chain.text.relations}
    for batch in batches:
        for name, rows in reader.tables(batch):
            refuse_null_weights(name, rows)
            kept = without_nulls(name, rows, schemas[name], chain.nulls)
            yield name, in_types(name, kept, schemas[name])
