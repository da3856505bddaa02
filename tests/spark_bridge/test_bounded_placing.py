"""laws: what a task of the inputs holds does not grow with the number of partitions, nor with its rows.

Without Spark: the functions that run in tasks are called.  What is counted is bytes: of the packets and
batches that come out, of rows that were taken in and are not sent, and of what the process has allocated.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from spark_bridge.cells.signed_tables import with_weight
from spark_bridge.join import placing
from spark_bridge.placing import key_sample, packets, slices
from spark_bridge.placing.grids import given_grids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.key_sample import _counter
from spark_bridge.placing.packets import PacketWriter, cell_inputs, packed
from spark_bridge.placing.placing import Placer
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.worker_process import TaskFunction
from spark_bridge.stages.placing_changes import placing_changes
from spark_bridge.stages.stages import StageChain
from support.cell_pipeline import program_text, reader_of, tagged

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
SHARES = {
    8: {"a": 2, "b": 2, "c": 2},
    1000: {"a": 10, "b": 10, "c": 10},
    10_000: {"a": 25, "b": 20, "c": 20},
}
WAYS = ("join", "maintained")
STRINGS = pa.schema([("a", pa.string()), ("b", pa.string())])
MIB = 1 << 20


def strings(n_rows: int, start: int = 0) -> pa.Table:
    """Pairs of 52 bytes each."""
    random = np.random.default_rng(start)
    columns = [[f"{value:052d}" for value in random.integers(0, 10**9, n_rows)] for _ in STRINGS]
    return pa.table(columns, STRINGS)


def plan_of(text: ProgramText) -> HeadPlan:
    (plan,) = text.plans()
    return plan


def task(way: str, partitions: int) -> tuple[TaskFunction, TagReader]:
    """What a task does with pairs of strings, and how they come."""
    some = strings(1)
    text = program_text(TRIANGLES, {"e": some})
    grids = given_grids(plan_of(text), SHARES[partitions], partitions)
    if way == "join":
        reader = reader_of({"e": some})
        return placing(reader, text, 0, grids, "refuse"), reader
    reader = reader_of({"e": with_weight(some)})
    return placing_changes(StageChain(text, (grids,)), reader), reader


def came(way: str, reader: TagReader, n_batches: int, n_rows: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Batches as Spark gives them, each made when it is asked for."""
    for number in range(n_batches):
        rows = strings(n_rows, number)
        yield from tagged(reader, {"e": rows if way == "join" else with_weight(rows)}).to_batches()


@pytest.mark.parametrize("partitions", [1000, 10_000])
@pytest.mark.parametrize("way", WAYS)
def test_batches_of_packets_are_bounded(way: str, partitions: int) -> None:
    """78 MB of 52-byte keys were one batch at 1,000 partitions, and beyond 2 GB none at all."""
    function, reader = task(way, partitions)
    n_packets = total = 0
    for batch in function(came(way, reader, 2)):
        assert batch.nbytes <= packets.MOST_BYTES
        n_packets += batch.num_rows
        total += batch.nbytes
    assert total > 4 * packets.MOST_BYTES
    assert n_packets > 2 * partitions


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_the_same_for_any_number_of_partitions(way: str) -> None:
    """A slice twice, hashes, and the packets of one batch twice: 16 MiB each at most."""
    most = 6 * 16 * MIB
    for partitions in SHARES:
        function, reader = task(way, partitions)
        taken = list(came(way, reader, 2))
        before = pa.total_allocated_bytes()
        peak = 0
        tracemalloc.start()
        for _ in function(iter(taken)):
            peak = max(peak, pa.total_allocated_bytes() - before)
        peak += tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most, partitions


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_sent_before_all_have_come(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a task has, a slice of them waits."""
    monkeypatch.setattr(slices, "SLICE_BYTES", 64 << 10)
    monkeypatch.setattr(packets, "MOST_BYTES", 64 << 10)
    function, reader = task(way, 1000)
    waiting, most = 0, 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal waiting, most
        for batch in came(way, reader, 30, 200):
            waiting += batch.nbytes
            most = max(most, waiting)
            yield batch

    for _ in function(counted()):
        waiting = 0
    assert most < 3 * (64 << 10)


def test_a_large_batch_is_placed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what comes as one table: a head's changes on their way to the next stage."""
    monkeypatch.setattr(slices, "SLICE_ROWS", 100)
    text = program_text(TRIANGLES, {"e": strings(1)})
    sizes: list[int] = []

    class Watched(Placer):
        def place(self, name: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
            sizes.append(rows.num_rows)
            return super().place(name, rows)

    with mock.patch("spark_bridge.stages.stages.Placer", Watched):
        chain = StageChain(text, (given_grids(plan_of(text), {}, 4),))
        list(chain.placed([("e", with_weight(strings(1000)))]))
    assert sum(sizes) == 1000
    assert max(sizes) <= 100


# -- packets ------------------------------------------------------------------


def test_a_packet_is_bounded_and_rows_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MOST_BYTES", 64 << 10)
    rows = strings(5000)
    pieces = list(packed(rows))
    assert len(pieces) >= 10
    assert max(map(len, pieces)) <= 64 << 10
    writer = PacketWriter()
    batches = [batch for rows_ in pieces for batch in writer.add(0, 0, "[0,[]]", "e", rows_)]
    batches += writer.rest()
    assert all(batch.nbytes <= 64 << 10 for batch in batches)
    (cell,) = cell_inputs(iter(batches))
    assert cell.table("e", STRINGS).equals(rows)


def test_a_row_that_is_too_large_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MOST_BYTES", 64 << 10)
    rows = pa.table([["x", "y" * (100 << 10), "z"], ["1", "2", "3"]], STRINGS)
    pieces = list(packed(rows))
    assert [pa.ipc.read_record_batch(pa.py_buffer(piece), STRINGS).num_rows for piece in pieces] == [1, 1, 1]


def test_no_rows_are_a_packet() -> None:
    (piece,) = packed(STRINGS.empty_table())
    assert pa.ipc.read_record_batch(pa.py_buffer(piece), STRINGS).num_rows == 0


def test_what_a_cell_has_is_packets_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packets of a snapshot, from which the cell is made again."""
    from spark_bridge.cells.search_engine import SearchEngine

    monkeypatch.setattr(packets, "MOST_BYTES", 64 << 10)
    rows = strings(3000)
    text = program_text("h(a, b) <- e(a, b).", {"e": rows})
    chain = StageChain(text, (given_grids(plan_of(text), {}, 1),))
    engine = SearchEngine(text, [0], {"e": STRINGS})
    engine.step(cell_inputs(chain.placed([("e", with_weight(rows))])))
    found = list(engine.snapshot())
    assert len(found) > 3
    assert max(len(packet) for _, _, packet in found) <= 64 << 10
    again = SearchEngine(text, [0], {"e": STRINGS})
    writer = PacketWriter()
    batches = [
        batch
        for address, label, packet in found
        for batch in writer.add(0, address.number, address.grid_text(), label, packet)
    ]
    again.step(cell_inputs(iter([*batches, *writer.rest()])))
    assert again.head().equals(engine.head())
    assert again.rows == engine.rows == 3000


# -- the sample ---------------------------------------------------------------


def test_a_sampling_task_forgets_rare_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many different values as are counted at once, and one in every 20th row."""
    monkeypatch.setattr(key_sample, "COUNTED", 1000)
    often = f"{7:052d}"
    tables = []
    for number in range(10):
        rows = strings(1000, number)
        first = [often if place % 20 == 0 else value for place, value in enumerate(rows["a"].to_pylist())]
        tables.append(pa.table([first, rows["b"].to_pylist()], STRINGS))
    reader = reader_of({"e": tables[0]})
    text = program_text(TRIANGLES, {"e": tables[0]})
    sizes: list[int] = []
    unique = np.unique

    def watched(values: np.ndarray, **options: bool) -> object:
        sizes.append(len(values))
        return unique(values, **options)

    monkeypatch.setattr(key_sample.np, "unique", watched)
    batches = [batch for rows in tables for batch in tagged(reader, {"e": rows}).to_batches()]
    (counts,) = _counter(reader, text, 0)(iter(batches))
    assert max(sizes) <= 2000
    found = counts.to_pylist()
    assert {"tag": 0, "column": -1, "value": 0, "rows": 10_000} in found
    assert next(row["rows"] for row in found if row["column"] == 0) == 500
