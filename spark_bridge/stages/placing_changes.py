"""What a task of a batch's input does: changes to packets, or a receipt with what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError, LftjError, NullError
from maintenance.changes.operations import OPERATIONS
from spark_bridge.cells.signed_tables import events, refuse_null_weights, signed
from spark_bridge.cells.stream_engine import held
from spark_bridge.placing.packets import CellAddress, PacketWriter
from spark_bridge.placing.placing import without_nulls
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.worker_process import Batches, TaskFunction
from spark_bridge.stages.clock_stage import BatchClock, stream_schemas
from spark_bridge.stages.stages import StageChain, late
from spark_bridge.stages.typed_changes import in_types
from spark_bridge.stages.worker import RECEIPT, error_receipt


def placing_changes(chain: StageChain, reader: TagReader, clock: BatchClock | None = None) -> TaskFunction:
    """The function of a task: packets of its rows, then a receipt if there is an error.

    ``clock``: by which rows of streams are judged.
    """

    def place(batches: Batches) -> Batches:
        writer = PacketWriter()
        told: dict[str, list[int | None]] = {}
        try:
            tables = _checked(batches, reader, chain)
            yield from chain.given(tables if clock is None else _judged(tables, clock, told))
            if told:
                number = chain.stage_of("clock").number
                writer.add(0, 0, CellAddress(0, 0, ()).grid_text(), "told", json.dumps(told).encode(), number)
        except LftjError as error:
            writer.add(0, 0, "", RECEIPT, error_receipt("", error).to_bytes(), len(chain.stages))
        yield from writer.rest()

    return place


def _checked(batches: Batches, reader: TagReader, chain: StageChain) -> Iterator[tuple[str, pa.Table]]:
    """Changes by relation in its types, those with NULL in columns without refused or left out."""
    schemas = {
        name: events(schema) if name in chain.keys else signed(schema)
        for name, schema in chain.text.relations
    }
    schemas[held(chain.plans[-1].name)] = signed(chain.plans[-1].arrow_schema)
    times = {name: stream.time for name, stream in chain.text.streams}
    for batch in batches:
        for name, rows in reader.tables(batch):
            if name in chain.keys:
                kept = _checked_keys(name, rows, schemas[name], chain)
            else:
                refuse_null_weights(name, rows)
                if chain.nulls != "drop" and name in times and rows.column(times[name]).null_count:
                    why = 'every row of a stream has a time; pass nulls="drop" to leave such rows out'
                    raise NullError(f"relation {name!r}, column {times[name]!r}: NULL, and {why}")
                kept = without_nulls(name, rows, schemas[name], chain.nulls)
            yield name, in_types(name, kept, schemas[name])


def _judged(
    tables: Iterator[tuple[str, pa.Table]], clock: BatchClock, told: dict[str, list[int | None]]
) -> Iterator[tuple[str, pa.Table]]:
    """The tables, late rows of streams apart from the others; ``told`` gets what the clock is to know."""
    schemas = stream_schemas(clock.text)
    for name, rows in tables:
        if name not in schemas:
            yield name, rows
            continue
        is_taken, (latest, *n_late) = clock.taken(name, schemas[name], rows)
        before, *more = told.get(name, [None, 0, 0])
        known = [each for each in (before, latest) if each is not None]
        told[name] = [max(known, default=None), *map(sum, zip(more, n_late, strict=True))]  # type: ignore[arg-type]
        yield name, rows.filter(pa.array(is_taken))
        if not is_taken.all():
            yield late(name), rows.filter(pa.array(~is_taken))


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
