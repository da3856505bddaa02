"""The join of ``spark_bridge`` in one process, without Spark: rows are cut up, placed, searched, combined.

What Spark does in between, and may do in any way, is drawn at random: how rows are spread over tasks and
batches, which of them come twice, and in which order packets arrive.  On the way are checked

1. the packets of a cell go to its partition, agree on what is to be evaluated there, and belong to what is
   read there;
2. a head that does not cross gives every row once over all partitions, and any other after combining.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.language.parser import parse
from lftj.values.domains import Domains
from spark_bridge.cells.cell_search import COMBINED, CellSearch, contributions
from spark_bridge.cells.combining import Combining
from spark_bridge.placing.event_time import TimeSettings, streams_of, time_columns
from spark_bridge.placing.grids import MOST_HEAVY, Grid, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.key_sample import _counter, _planner
from spark_bridge.placing.packets import SCHEMA, CellAddress
from spark_bridge.placing.placing import InputNulls, Placer
from spark_bridge.placing.schemas import with_required, without_null
from spark_bridge.placing.tagged_input import TAG, TagReader
from spark_bridge.placing.value_hash import hashes_of
from support.rows import rows_of

Relations = Mapping[str, pa.Table]
Row = tuple[Any, ...]
Batches = list[pa.RecordBatch]
ChooseGrids = Callable[[ProgramText, int, Relations, int, Random], HeadGrids]

MOST_CELLS = 24


def run(
    text: str,
    relations: Relations,
    partitions: int,
    random: Random,
    choose: ChooseGrids | None = None,
    head: str | None = None,
    nulls: InputNulls = "refuse",
) -> pa.Table:
    """The rows of the asked head.  ``choose``: its grids, by default :func:`planned_grids`."""
    known = dict(relations)
    program = program_text(text, relations, head, nulls)
    plans = program.plans()
    for number, plan in enumerate(plans):
        read = {name: known[name] for name in plan.reads}
        grids = (choose or planned_grids)(program, number, read, partitions, random)
        assert HeadGrids.from_json(grids.to_json()) == grids
        known[plan.name] = head_table(program, number, read, grids, random, nulls)
    return known[plans[-1].name]


def program_text(
    text: str,
    relations: Relations,
    head: str | None = None,
    nulls: InputNulls = "refuse",
    times: TimeSettings | None = None,
) -> ProgramText:
    """``nulls``: with "keep" the tables' fields say which columns may hold NULL; ``times``: of streams."""
    declared = (lambda schema: schema) if nulls == "keep" else without_null
    schemas = {name: declared(table.schema) for name, table in relations.items()}
    if times is None:
        return ProgramText(text, head, tuple(schemas.items()))
    for name, column in time_columns(parse(text), times).items():
        schemas[name] = with_required(schemas[name], column)
    return ProgramText(text, head, tuple(schemas.items()), streams=streams_of(parse(text), schemas, times))


def head_table(
    program: ProgramText, number: int, read: Relations, grids: HeadGrids, random: Random, nulls: InputNulls
) -> pa.Table:
    plan = program.plans()[number]
    schemas = program.schemas(number)
    packets = placed(program, number, read, grids, random, nulls)
    check_cells(plan, grids, packets)
    search = CellSearch(program, number, schemas, grids.partitions)
    if plan.crosses:
        contributed = [
            packet
            for mine in exchanged(packets, grids.partitions, random)
            for packet in search.packets(iter(mine))
        ]
        check_contributions(plan, contributed)
        combining = Combining(program, number)
        found = [
            batch
            for mine in exchanged(contributed, grids.partitions, random)
            for batch in combining.rows(iter(mine))
        ]
    else:
        found = [
            batch
            for mine in exchanged(packets, grids.partitions, random)
            for batch in search.rows(iter(mine))
        ]
    for batch in found:
        assert without_null(batch.schema) == without_null(plan.arrow_schema), (
            batch.schema,
            plan.arrow_schema,
        )
        batch.validate(full=True)
        for field, column in zip(plan.arrow_schema, batch.columns, strict=True):
            assert field.nullable or not column.null_count, f"{plan.name}.{field.name} holds no NULL"
    arrays = pa.Table.from_batches(found, found[0].schema if found else plan.arrow_schema).columns
    table = pa.Table.from_arrays(arrays, schema=plan.arrow_schema)
    twice = [row for row, times in Counter(map(repr, rows_of(table))).items() if times > 1]
    assert not twice, f"{plan.name}: given more than once: {twice}"
    return table


# -- what Spark does ----------------------------------------------------------


def reader_of(read: Relations, schemas: Mapping[str, pa.Schema] | None = None) -> TagReader:
    """Slots as TaggedInput gives them: columns of one type share one, but for those of one relation.

    ``schemas``: that say which columns may hold NULL, by default the tables'.
    """
    types: list[pa.DataType] = []
    slots = []
    for table in read.values():
        taken: list[int] = []
        for field in table.schema:
            free = [n for n, known in enumerate(types) if known == field.type and n not in taken]
            taken.append(free[0] if free else len(types))
            if not free:
                types.append(field.type)
        slots.append(tuple(taken))
    schemas = schemas or {name: table.schema for name, table in read.items()}
    return TagReader(tuple((name, schemas[name]) for name in read), tuple(slots))


def tagged(reader: TagReader, read: Relations) -> pa.Table:
    """The union of the relations, with tags."""
    types = {
        slot: field.type
        for (_, schema), slots in zip(reader.relations, reader.slots, strict=True)
        for slot, field in zip(slots, schema, strict=True)
    }
    schema = pa.schema([(TAG, pa.int32()), *((f"s{n}", types[n]) for n in range(len(types)))])
    parts = []
    for tag, ((name, _), slots) in enumerate(zip(reader.relations, reader.slots, strict=True)):
        table = read[name]
        columns: list[Any] = [pa.array(np.full(len(table), tag, np.int32))]
        columns += [
            table.column(slots.index(n)) if n in slots else pa.nulls(len(table), types[n])
            for n in range(len(types))
        ]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(parts)


def tasks_of(rows: pa.Table, random: Random) -> list[Batches]:
    """The rows in any order, some of them several times, cut into tasks and batches."""
    order = [*range(len(rows)), *(random.randrange(len(rows)) for _ in range(len(rows) // 4))]
    random.shuffle(order)
    tasks = []
    for some in cut(order, random):
        taken = rows.take(pa.array(some, pa.int64())).combine_chunks()
        tasks.append(
            [
                batch
                for piece in cut(range(len(some)), random)
                for batch in taken.slice(piece[0] if len(piece) else 0, len(piece)).to_batches()
            ]
        )
    return tasks


def cut(items: Any, random: Random) -> list[Any]:
    """In up to three pieces, which may be empty."""
    ends = sorted(random.randint(0, len(items)) for _ in range(random.randrange(3)))
    return [items[start:end] for start, end in zip([0, *ends], [*ends, len(items)], strict=True)]


def exchanged(
    packets: Batches, partitions: int, random: Random, tasks: int | None = None
) -> Iterator[Batches]:
    """Packets by partition, as ``repartitionById`` does, in any order and in batches of any size.

    ``tasks``: that share the partitions, by default one for each.
    """
    tasks = tasks or partitions
    table = pa.Table.from_batches(packets, SCHEMA)
    pids = table.column("pid").to_numpy()
    for task in range(tasks):
        rows = np.flatnonzero(pids % tasks == task).tolist()
        random.shuffle(rows)
        mine = table.take(pa.array(rows, pa.int64())).combine_chunks()
        yield mine.to_batches(max_chunksize=random.choice((1, 3, 1000)))


def placed(
    program: ProgramText,
    number: int,
    read: Relations,
    grids: HeadGrids,
    random: Random,
    nulls: InputNulls = "refuse",
) -> Batches:
    """All packets of a head's inputs."""
    reader = reader_of(read, program.schemas(number))
    packets: Batches = []
    for batches in tasks_of(tagged(reader, read), random):
        placer = Placer(program.plans()[number], grids, nulls)
        packets += placer.packets(reader, iter(batches))
    return packets


# -- checks -------------------------------------------------------------------


def check_cells(plan: HeadPlan, grids: HeadGrids, packets: Batches) -> None:
    """Every packet is of a cell of the grids, and goes to its partition."""
    expected = {}
    for grid in grids.grids:
        labels = {placement.label for placement in plan.rules[grid.rule].placements(grid.marks)}
        for cell in range(grid.first, grid.first + grid.n_cells):
            assert cell not in expected
            expected[cell] = (CellAddress(cell, grid.rule, tuple(grid.marks.items())), labels)
    assert len(expected) == grids.n_cells
    for batch in packets:
        assert batch.schema.equals(SCHEMA)
        for pid, cell, grid_text, label in rows_of(batch.select([0, 1, 2, 3])):
            address, labels = expected[cell]
            assert pid == cell % grids.partitions == grids.partition_of(cell)
            assert CellAddress.of(cell, grid_text) == address
            assert label in labels


def check_contributions(plan: HeadPlan, packets: Batches) -> None:
    for batch in packets:
        for _, cell, grid_text, label in rows_of(batch.select([0, 1, 2, 3])):
            assert (cell, grid_text) == (0, COMBINED)
            assert label in contributions(plan)


# -- grids --------------------------------------------------------------------


def planned_grids(
    program: ProgramText, number: int, read: Relations, partitions: int, random: Random
) -> HeadGrids:
    """The grids that the join chooses when its sample has all rows."""
    reader = reader_of(read, program.schemas(number))
    count, plan = _counter(reader, program, number), _planner(reader, program, number, partitions)
    counts = [counted for task in tasks_of(tagged(reader, read), random) for counted in count(iter(task))]
    ((row,),) = [rows_of(batch) for batch in plan(iter(counts))]
    grids = HeadGrids.from_json(row[0].decode())
    for grid in grids.grids:
        assert grid.n_cells <= partitions
    return grids


def random_grids(
    program: ProgramText, number: int, read: Relations, partitions: int, random: Random
) -> HeadGrids:
    """Any shares, and any values of up to MOST_HEAVY axes called heavy."""
    grids: list[Grid] = []
    heavy = []
    for place, rule in enumerate(program.plans()[number].rules):
        values = {axis: hashes for axis in rule.axes if (hashes := _hashes(rule, axis, read))}
        axes = random.sample(sorted(values), min(len(values), random.choice((0, 0, 1, 2, MOST_HEAVY))))
        heavy.append(
            {axis: tuple(random.sample(values[axis], random.randint(1, len(values[axis])))) for axis in axes}
        )
        for mask in range(2 ** len(axes)):
            taken = tuple(axis for n, axis in enumerate(axes) if mask >> n & 1)
            left = tuple(axis for axis in axes if axis not in taken)
            shares, n_cells = [], 1
            for axis in random.sample(rule.axes, len(rule.axes)):
                share = random.choice((1, 2, 2, 3, 5))
                if axis not in taken and n_cells * share <= MOST_CELLS >> len(axes):
                    shares.append((axis, share))
                    n_cells *= share
            grids.append(Grid(place, tuple(share for share in shares if share[1] > 1), taken, left))
    numbered, first = [], 0
    for grid in grids:
        numbered.append(replace(grid, first=first))
        first += grid.n_cells
    return HeadGrids(partitions, tuple(numbered), tuple(heavy), {})


def _hashes(rule: HeadRule, axis: str, read: Relations) -> list[int]:
    """Hashes of the values that an axis has in the data."""
    found: set[int] = set()
    for role in rule.roles:
        for column, name in role.axes:
            if name == axis:
                found.update(hashes_of(read[role.relation].column(column), Domains()).tolist())
    return sorted(found)
