"""Files of a journal that were cut, damaged or made up are never taken for good, nor end the process."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj import errors
from maintenance.durable import entries, records
from maintenance.durable.definitions import Definition
from maintenance.durable.entries import (
    Changed,
    DataFile,
    Entry,
    Installed,
    Loaded,
    StrategySet,
    Uninstalled,
    entry_bytes,
    entry_of,
)
from maintenance.durable.manifest import Manifest
from maintenance.durable.records import (
    FILE_HEADER_BYTES,
    FORMAT,
    End,
    FileHeader,
    read_records,
    record_bytes,
)

PATH = Path("journal")
HEADER = FileHeader(first=5, chain=99, salt=12345)


def file_of(contents: list[bytes], synced: bool = True) -> tuple[bytes, list[int]]:
    """A file, and where each record ends; ``synced``: each was on disk when the next was written."""
    data, chain, ends = HEADER.to_bytes(), HEADER.chain, [FILE_HEADER_BYTES]
    for number, content in enumerate(contents, HEADER.first):
        known = len(data) if synced else FILE_HEADER_BYTES
        record, chain = record_bytes(HEADER, number, known, chain, content)
        data += record
        ends.append(len(data))
    return data, ends


CONTENTS = [b"", b"one", bytes(range(256)) * 3, b"\xa7lj\n" * 5, b"last"]


def test_what_is_written_is_read() -> None:
    data, ends = file_of(CONTENTS)
    read = read_records(data, PATH)
    assert read is not None
    assert [bytes(record.content) for record in read.records] == CONTENTS
    assert [record.number for record in read.records] == [5, 6, 7, 8, 9]
    assert (read.end, read.is_torn, read.next) == (ends[-1], False, 10)


@pytest.mark.parametrize("fill", [b"", b"\0", b"\xa7"], ids=["cut", "zeros", "others"])
def test_a_file_that_ends_anywhere_has_the_records_before(fill: bytes) -> None:
    data, ends = file_of(CONTENTS)
    for length in range(len(data)):
        read = (
            read_records(data[:length] + fill * (len(data) - length if fill else 0), PATH)
            if (length >= FILE_HEADER_BYTES or not fill)
            else None
        )
        if length < FILE_HEADER_BYTES:
            assert read is None
            continue
        assert read is not None
        whole = [end for end in ends if end <= length]
        assert len(read.records) >= len(whole) - 1
        assert [bytes(record.content) for record in read.records] == CONTENTS[: len(read.records)]
        assert read.end >= whole[-1]


def test_a_byte_that_changed_before_what_was_known_to_be_on_disk_is_refused_with_its_place() -> None:
    data, ends = file_of(CONTENTS)
    for place in range(FILE_HEADER_BYTES, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        number = max(number for number, end in enumerate(ends) if end <= place)
        if place < ends[-2]:
            with pytest.raises(errors.DamagedFolderError, match=f"damaged at byte {ends[number]}, "):
                read_records(bytes(damaged), PATH)
        else:  # nothing says that the last record was on disk
            read = read_records(bytes(damaged), PATH)
            assert read is not None and read.is_torn
            assert (len(read.records), read.end) == (4, ends[-2])


def test_records_that_were_not_on_disk_may_be_there_in_any_order() -> None:
    data, ends = file_of(CONTENTS, synced=False)
    torn = data[: ends[1]] + bytes(ends[2] - ends[1]) + data[ends[2] :]
    read = read_records(torn, PATH)
    assert read is not None and read.is_torn
    assert (len(read.records), read.end) == (1, ends[1])


def test_a_record_of_another_file_is_none_of_this_one() -> None:
    other = FileHeader(first=5, chain=99, salt=777)
    record, _ = record_bytes(other, 6, 10**6, 99, b"forged")
    own, _ = record_bytes(HEADER, 5, FILE_HEADER_BYTES, HEADER.chain, record)
    read = read_records(HEADER.to_bytes() + own[:-1], PATH)
    assert read is not None and read.is_torn and not read.records
    data = HEADER.to_bytes() + record
    read = read_records(data, PATH)
    assert read is not None and read.is_torn and not read.records


def test_a_record_that_followed_another_one_is_left_out() -> None:
    """A crash lost the first of two and left the second; another was written in the place of the first."""
    before, ends = file_of([b"lost", b"left"], synced=False)
    after, _ = file_of([b"made", b"next"], synced=False)
    read = read_records(after[: ends[1]] + before[ends[1] :], PATH)
    assert read is not None and read.is_torn
    assert ([bytes(record.content) for record in read.records], read.end) == ([b"made"], ends[1])


def test_a_header_that_is_none() -> None:
    data, _ = file_of(CONTENTS)
    for place in range(FILE_HEADER_BYTES):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        with pytest.raises((errors.DamagedFolderError, errors.DurabilityError)):
            read_records(bytes(damaged), PATH)


def test_a_newer_format_is_refused() -> None:
    data = bytearray(HEADER.to_bytes())
    data[8] = FORMAT + 1
    with pytest.raises(errors.DurabilityError, match=f"its format is {FORMAT + 1}, .* up to {FORMAT}:"):
        read_records(bytes(data), PATH)


def test_numbers_stand_in_one_order_on_every_machine() -> None:
    """The least byte first: what is written here is read where processors have the other order."""
    assert {packed.format[0] for packed in (records._FILE_HEADER, records._HEADER, entries._LENGTH)} == {"<"}
    header = FileHeader(first=0x0102, chain=0x0304, salt=0x0506)
    assert header.to_bytes()[:-4] == b"LFTJJRNL" + bytes([FORMAT, 0, 0, 0]) + bytes.fromhex(
        "0201000000000000 04030000 06050000"
    )
    record, chain = record_bytes(header, 0x0708, 0x090A, 0x0B0C, b"content")
    assert record[:32] == b"\xa7lj\n" + bytes.fromhex(
        "0700000000000000 0807000000000000 0a09000000000000 0c0b0000"
    )
    assert record[36:40] == chain.to_bytes(4, "little")
    content = entry_bytes(Uninstalled(("a",)))
    assert content[:8] == (len(content) - 8).to_bytes(8, "little")


def test_what_is_written_has_the_fields_of_its_format() -> None:
    """Whoever adds one raises the format, so that older versions refuse it, and keeps a folder of before."""
    fields = {
        kind.__name__: " ".join(field.name for field in dataclasses.fields(kind))
        for kind in (
            Manifest,
            End,
            Definition,
            Loaded,
            DataFile,
            Changed,
            Installed,
            Uninstalled,
            StrategySet,
        )
    }
    assert FORMAT == 9
    assert fields == {
        "Manifest": "number chain settings relations definitions format end streams",
        "End": "number chain nbytes",
        "Definition": "text strategies sensitivity_bytes order max_rounds since results choices grown",
        "Loaded": "relation file functional dropped_rows duplicate_rows keeps_null bag key stream grown",
        "DataFile": "name rows nbytes checksum",
        "Changed": "changes transactions streams",
        "Installed": "text heads strategy replace sensitivity_bytes order max_rounds results choices keys"
        " streams grown loaded",
        "Uninstalled": "heads",
        "StrategySet": "strategies",
    }
    kept = {path.name for path in Path(__file__).parent.glob("format_*")}
    assert kept == {f"format_{number}" for number in range(1, FORMAT)}


@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_noise_gives_a_beginning_or_an_error(chance: random.Random, n_damages: int) -> None:
    data = bytearray(file_of(CONTENTS, synced=chance.random() < 0.5)[0])
    for _ in range(n_damages):
        kind, place = chance.randrange(4), chance.randrange(len(data) + 1)
        noise = chance.randbytes(chance.randrange(1, 40))
        if kind == 0:
            data[place : place + len(noise)] = noise
        elif kind == 1:
            del data[place : place + len(noise)]
        elif kind == 2:
            data[place:place] = noise
        else:
            data[place:place] = data[chance.randrange(len(data) + 1) :][:200]
    try:
        read = read_records(bytes(data), PATH)
    except errors.DurabilityError:
        return
    assert read is None or [bytes(r.content) for r in read.records] == CONTENTS[: len(read.records)]


# -- entries -------------------------------------------------------------------------------------

TABLE = pa.table({"a": [1, 2], "weight": [1, -1]})
ENTRIES: list[Entry] = [
    Loaded("edge", DataFile("edge-0123456789abcdef.arrow", 3, 100, 77), True, 4, 5),
    Installed(
        "", [], "auto", grown=["g"], loaded=(Loaded("g", DataFile("g.arrow", 0, 9, 7), grown={"a": 1}),)
    ),
    Changed({"edge": TABLE, "näme": TABLE.slice(1)}, 3),
    Changed({}),
    Installed("tri(a) <- e(a).", ["tri"], "trace", True, {"tri": 1000}, {"tri": ["a"]}, 7),
    Installed("tri(a) <- e(a).", ["tri"], {"tri": "delta"}),
    Installed(
        "tri(a) <- e(a).", ["tri"], "auto", results=["tri"], choices={"asked": {"tri/0": [[0], ["e(a)"]]}}
    ),
    Uninstalled(("a", "b")),
    StrategySet({"a": "auto"}),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert entry_of(entry_bytes(entry)) == entry


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
        pa.array([b"x", b""], pa.large_binary()),
        pa.array([1, -1], pa.decimal128(20, 3)),
        pa.array([0, 1], pa.timestamp("ns", "Europe/Zurich")),
        pa.array([0.0, float("inf")], pa.float32()),
        pa.array([True, False]),
    ],
    ids=lambda column: str(column.type),
)
def test_values_keep_their_types(column: pa.Array) -> None:
    table = pa.table({"value": column, "weight": [1] * len(column)})
    (again,) = entry_of(entry_bytes(Changed({"r": table}))).changes.values()  # type: ignore[union-attr]
    assert again.schema == table.schema
    assert again.to_pydict() == table.to_pydict()
