"""A fuzz of the wire: whatever comes, the service lives on, has what it had, and answers in words of its own.

``LFTJ_WIRE_CASES`` asks for more cases of each kind.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from maintenance import Workspace
from maintenance.serving.service import FlightService, Limits
from support import raw_flight
from support.paths import ROOT

pytestmark = pytest.mark.compiled

CASES = int(os.environ.get("LFTJ_WIRE_CASES", "120"))

REQUESTS: list[dict[str, Any]] = [
    {"relation": "tri", "columns": ["a"], "limit": 2},
    {"sql": "select src, count(*) from edge where dst > ? group by src", "params": [1]},
    {"rules": "x(b) <- edge($a, b).", "params": {"a": 1}, "head": "x", "limit": 3},
    {"changes": "tri", "since": 1},
    {"follow": "tri", "since": 1, "seconds": 0},
]
RULES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).  k[n] = count() <- scratch(n, _, _)."
COLUMNS = [["n", "t", "f"], ["n", "t"], ["n", "n", "n"], ["", "t", "f"], ["n", "t", "f", "op"]]
METHODS = ["DoPut"] * 9 + ["DoGet", "Handshake", "DoExchange", "None"]
MODES = ["insert", "erase", "upsert", "apply", "drop"]
JUNK: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1e400,
    "",
    "edge",
    "'; drop",
    "\0",
    [],
    [[]],
    {},
    {"a": []},
    "é",
]


class Wire(NamedTuple):
    workspace: Workspace
    service: FlightService
    client: flight.FlightClient


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with Workspace() as workspace:
        workspace.load("edge", {"src": [1, 2, 1], "dst": [2, 3, 3]})
        workspace.load("scratch", {"n": [0], "t": ["x"], "f": [0.5]})
        workspace.install(RULES)
        limits = Limits(calls=8, followers=4, seconds=20.0, rows=1_000, batch_rows=1_000, batch_bytes=1 << 20)
        with FlightService(workspace, limits=limits) as service, flight.connect(service.address) as client:
            yield Wire(workspace, service, client)


@pytest.fixture(autouse=True)
def nothing_changes(wire: Wire) -> Iterator[None]:
    """Beside the relation that may be written to; and memory is what it was, but for what caches take."""
    before = _resident()
    yield
    assert set(wire.workspace["edge"]) == {(1, 2), (2, 3), (1, 3)}
    assert wire.client.do_get(flight.Ticket(b'{"relation": "tri"}')).read_all().to_pylist() == [
        {"a": 1, "b": 2, "c": 3}
    ]
    wire.workspace.verify()
    assert _resident() - before < 300 << 20


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def refuses(error: flight.FlightError | pa.ArrowException, is_of_schema: bool = False) -> None:
    """An error of the project, and none of its own faults; see `FlightService.get_schema`."""
    text = str(error)
    assert "in the service" not in text and str(ROOT) not in text, text
    if not is_of_schema:
        assert "Traceback" not in text, text
    if isinstance(error, flight.FlightServerError) and error.extra_info:
        assert json.loads(error.extra_info)["error"].endswith("Error")


def changed(chosen: random.Random, request: dict[str, Any]) -> bytes:
    """A request with something wrong, as bytes that may be no text."""
    given = dict(request)
    for _ in range(chosen.randrange(3)):
        given[chosen.choice([*given, *REQUESTS[2], "none"])] = chosen.choice(JUNK)
    if chosen.random() < 0.2:
        del given[next(iter(given))]
    text = json.dumps(given).encode()
    return damaged(chosen, text) if chosen.random() < 0.6 else text


def damaged(chosen: random.Random, data: bytes) -> bytes:
    """Cut, doubled, or with some bytes that are others."""
    found = bytearray(data)
    how = chosen.randrange(4)
    if how == 0:
        del found[chosen.randrange(len(found) + 1) :]
    elif how == 1:
        at = chosen.randrange(len(found) + 1)
        found[at:at] = chosen.randbytes(chosen.randrange(20))
    else:
        for _ in range(chosen.randrange(1, 4)):
            if found:
                at = chosen.randrange(len(found))
                found[at] = chosen.choice([0, 0xFF, 0x7F, 0x80, chosen.randrange(256)])
    return bytes(found)


def test_tickets_commands_and_actions(wire: Wire) -> None:
    client = wire.client
    n_refused = 0
    for case in range(2 * CASES):
        chosen = random.Random(case)
        asked = changed(chosen, chosen.choice(REQUESTS))
        names = [str(chosen.choice(JUNK)) for _ in range(chosen.randrange(3))]
        path = flight.FlightDescriptor.for_path(*names)
        command = flight.FlightDescriptor.for_command(asked)
        how = chosen.randrange(6)
        try:
            if how < 3:
                client.do_get(flight.Ticket(asked)).read_all()
            elif how == 3:
                client.get_flight_info(chosen.choice([path, command]))
            elif how == 4:
                client.get_schema(chosen.choice([path, command]))
            else:
                kind = chosen.choice(["version", "stats", asked.decode(errors="replace")])
                list(client.do_action(flight.Action(kind, asked)))
        except (flight.FlightError, pa.ArrowException) as error:
            refuses(error, how == 4)
            n_refused += 1
    assert n_refused > CASES


def _column(chosen: random.Random, n: int) -> pa.Array:
    """Of any type, often a wrong one."""
    numbers = [chosen.randrange(-5, 5) for _ in range(n)]
    return chosen.choice(
        [
            lambda: pa.array(numbers),
            lambda: pa.array([*map(str, numbers)]),
            lambda: pa.array([*map(str, numbers)]).dictionary_encode(),
            lambda: pa.array([[number] for number in numbers]),
            lambda: pa.array([{"x": number} for number in numbers]),
            lambda: pa.nulls(n),
            lambda: pa.array([float("nan")] * n),
            lambda: pa.array([None] * n, pa.int64()),
            lambda: pa.array([b"\xff\xfe"] * n),
            lambda: pa.array(numbers, pa.timestamp("ns")),
        ]
    )()


def test_schemas_and_descriptors_of_what_is_put(wire: Wire) -> None:
    n_refused = 0
    for case in range(CASES):
        chosen = random.Random(case)
        n = chosen.choice([0, 1, 3, 3, 1_001])
        names = chosen.choice(COLUMNS)
        batch = pa.RecordBatch.from_arrays([_column(chosen, n) for _ in names], names=names)
        request = {
            "relation": chosen.choice(["scratch", "scratch", "tri", "#", ""]),
            "mode": chosen.choice(MODES),
        }
        command = json.dumps(request).encode()
        descriptor = flight.FlightDescriptor.for_command(
            damaged(chosen, command) if chosen.random() < 0.3 else command
        )
        try:
            writer, acknowledged = wire.client.do_put(descriptor, batch.schema)
            writer.write_batch(batch)
            if chosen.random() < 0.3:
                writer.write_metadata(b"no rows")
            if chosen.random() < 0.7:
                writer.done_writing()
                acknowledged.read()
            writer.close()
        except (flight.FlightError, pa.ArrowException) as error:
            refuses(error)
            n_refused += 1
    assert n_refused > CASES // 3


def test_bytes_that_are_no_batches(wire: Wire) -> None:
    batch = pa.record_batch({"n": [1, 2, 3], "t": ["a", "bc", "def"], "f": [1.0, 2.0, 3.0]})
    (schema, _), (rows, body) = raw_flight.of_batch(batch)
    told = 0
    for case in range(CASES):
        chosen = random.Random(case)
        first, second = (schema, b"", "scratch"), (rows, body, None)
        which = chosen.randrange(4)
        if which == 0:
            first = damaged(chosen, schema), b"", "scratch"
        elif which == 1:
            second = damaged(chosen, rows), body, None
        elif which == 2:
            second = rows, damaged(chosen, body), None
        messages = b"".join(raw_flight.message(raw_flight.flight_data(*each)) for each in (first, second))
        if which == 3:  # the protocol buffer, the length before it, or the frames
            messages = damaged(chosen, messages)
        frames = raw_flight.headers(chosen.choice(METHODS))
        frames += raw_flight.data(messages, chosen.choice([1 << 14, 60]))
        if chosen.random() < 0.2:
            frames = damaged(chosen, frames)
        if chosen.random() < 0.2:
            frames = frames[: chosen.randrange(len(frames))]
        came = raw_flight.answered(wire.service.port, frames, 0.05)
        assert b"in the service" not in came, came
        told += b"no whole batch" in came
    assert told
