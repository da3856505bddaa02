"""What a task of a batch's input does: changes to packets, or a receipt with what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from lftj.errors import LftjError
from spark_bridge.cells.signed_tables import events, signed
from spark_bridge.cells.stream_engine import held
from spark_bridge.placing.packets import CellAddress, PacketWriter
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.worker_process import Batches, TaskFunction
from spark_bridge.stages.checked_changes import ChangeChecks
from spark_bridge.stages.clock_stage import BatchClock, stream_schemas
from spark_bridge.stages.stages import StageChain, late
from spark_bridge.stages.worker import RECEIPT, error_receipt


def placing_changes(chain: StageChain, reader: TagReader, clock: BatchClock | None = None) -> TaskFunction:
    """The function of a task: packets of its rows, then a receipt if there is an error.

    ``clock``: by which rows of streams are judged.
    """

    def place(batches: Batches) -> Batches:
        writer = PacketWriter()
        told: dict[str, list[int | None]] = {}
        try:
            tables = _checks(chain).checked(batches, reader)
            yield from chain.given(tables if clock is None else _judged(tables, clock, told))
            if told:
                number = chain.stage_of("clock").number
                writer.add(0, 0, CellAddress(0, 0, ()).grid_text(), "told", json.dumps(told).encode(), number)
        except LftjError as error:
            writer.add(0, 0, "", RECEIPT, error_receipt("", error).to_bytes(), len(chain.stages))
        yield from writer.rest()

    return place


def _checks(chain: StageChain) -> ChangeChecks:
    schemas = {
        name: events(schema) if name in chain.keys else signed(schema)
        for name, schema in chain.text.relations
    }
    schemas[held(chain.plans[-1].name)] = signed(chain.plans[-1].arrow_schema)
    times = {name: stream.time for name, stream in chain.text.streams}
    return ChangeChecks(schemas, chain.keys, times, chain.nulls)


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
