"""A head as a relation of another workspace: equal to it, each version once, through kills of both sides."""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as arrow_flight
import pytest

from lftj.errors import SinkError
from maintenance import Workspace
from maintenance.serving.access import Role, Tokens
from maintenance.serving.service import FlightService, Limits
from maintenance.sinks.flight import to_flight
from maintenance.store.fault_points import FOLDER_POINTS, SINK_POINTS
from support.flight_servers import serving
from support.followed_edges import change, kept, pushed
from support.killed_pulls import KILLS, SERVER_KILLS, Killer, Part, kill_at_random

pytestmark = pytest.mark.compiled

MODULE = "maintenance.sinks.flight"


def edges(workspace: Workspace) -> Workspace:
    workspace.load("edge", {"a": [1, 2], "b": [2, 3]})
    workspace.install("n[a] = count() <- edge(a, _).  bag ends(b) <- edge(_, b).")
    return workspace


def taker(folder: Path | None = None) -> Workspace:
    """Relations that are empty; a view tells whether something comes twice."""
    workspace = Workspace() if folder is None else Workspace.open(folder)
    workspace.load("n", pa.table({"a": pa.array([], pa.int64()), "count": pa.array([], pa.int64())}))
    workspace.load("ends", pa.table({"b": pa.array([], pa.int64())}), bag=True)
    workspace.install("many[] = count() <- ends(_).")
    return workspace


@pytest.fixture
def service() -> Iterator[FlightService]:
    with taker() as workspace, FlightService(workspace, limits=Limits(rows=1_000)) as service:
        yield service


def of(service: FlightService) -> Workspace:
    return service._workspace


@pytest.mark.parametrize("name", ["n", "ends"])
def test_the_relation_is_the_head(service: FlightService, name: str) -> None:
    chosen, workspace, sink = random.Random(name), edges(Workspace()), to_flight(service.address, name)
    assert pushed(workspace, sink) == 1
    for _ in range(8):
        for _ in range(3):
            change(workspace, chosen)
        before = of(service).version
        assert pushed(workspace, sink) <= 1 and of(service).version - before <= 1
        assert kept(of(service), name) == kept(workspace, name)
    of(service).verify()
    workspace.install("n[a] = count() <- edge(a, _), a > 1.  bag ends(b) <- edge(b, _).", replace=True)
    assert pushed(workspace, sink) == 1  # changes are not kept any more: all rows take the place of others
    assert kept(of(service), name) == kept(workspace, name)


def test_what_is_put_again_is_passed_over(service: FlightService) -> None:
    with arrow_flight.connect(service.address) as client:

        def put(values: list[int], **asked: Any) -> None:
            asked = {"relation": "ends", "writer": "w", "rows": len(values), **asked}
            command = json.dumps(asked).encode()
            batch = pa.record_batch({"b": pa.array(values, pa.int64())})
            writer, told = client.do_put(arrow_flight.FlightDescriptor.for_command(command), batch.schema)
            with writer:
                for number in range(len(values)):
                    writer.write_batch(batch.slice(number, 1))
                writer.done_writing()
                assert told.read() is not None

        before = of(service).version
        for _ in range(2):
            put([1, 1, 2], version=7)
        assert kept(of(service), "ends") == {(1,): 2, (2,): 1} and of(service).version == before + 1
        put([], version=9, since=7)
        with pytest.raises(arrow_flight.FlightServerError, match=r"'w' is at version 9, .* come since 7"):
            put([3], version=10, since=7)
        with pytest.raises(arrow_flight.FlightServerError, match="'w' puts into 'ends', and not 'n'"):
            put([3], version=10, since=9, relation="n")
        with pytest.raises(arrow_flight.FlightServerError, match="'ends' has what 'w' has put: put into"):
            put([3], version=10, writer="x")
        with pytest.raises(arrow_flight.FlightServerError, match="a put of more than 1,000 rows"):
            put([3] * 1_001, version=10, since=9)
        for cut in [], [4]:  # the process was killed amid them: the stream ends as any other
            with pytest.raises(
                arrow_flight.FlightServerError, match=rf"{len(cut)} of 2 rows came, and nothing"
            ):
                put(cut, version=10, since=9, rows=2)
        for wrong in (
            *({"version": None}, {"writer": None}, {"rows": None}),
            {"since": 3, "version": None, "writer": None, "rows": None},
        ):
            with pytest.raises(arrow_flight.FlightServerError, match="go together"):
                put([3], **{"version": 10, **wrong})
        put([5], version=10)
        assert kept(of(service), "ends") == {(5,): 1}
        with of(service).transaction() as tx:
            tx.insert("n", [(1, 1)])
        with pytest.raises(arrow_flight.FlightServerError, match="'n' has rows that no writer has put"):
            put([3], version=10, writer="x", relation="n")


@pytest.mark.in_turns
@pytest.mark.parametrize("point", [*SINK_POINTS, *FOLDER_POINTS[:2]])
def test_killed_at_each_point_the_relation_is_the_head(
    lives: Killer, service: FlightService, tmp_path: Path, point: str
) -> None:
    chosen, folder = random.Random(point), tmp_path / "ws"
    edges(Workspace.open(folder)).close()
    part = Part(MODULE, [service.address, "ends"])
    for _ in range(4):
        assert lives.life(folder, [part], point) in (0, -signal.SIGKILL)
        with Workspace.open(folder) as workspace:
            change(workspace, chosen)
            change(workspace, chosen)
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(of(service), "ends") == kept(workspace, "ends")


def test_killed_at_random_each_version_is_put_once(
    lives: Killer, service: FlightService, tmp_path: Path
) -> None:
    chosen, folder = random.Random(3), tmp_path / "ws"
    edges(Workspace.open(folder)).close()
    part, codes = Part(MODULE, [service.address, "ends"]), []
    for code in kill_at_random(lives, folder, [part], 5, 0.2):
        codes.append(code)
        with Workspace.open(folder) as workspace:
            change(workspace, chosen)
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(of(service), "ends") == kept(workspace, "ends")


@pytest.mark.in_turns
@pytest.mark.parametrize("point", ["", FOLDER_POINTS[1]])
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path, point: str) -> None:
    """At random, or where it has the change and has not acknowledged it."""
    chosen, workspace = random.Random(8), edges(Workspace())
    taker(tmp_path / "down").close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sink, numbers = to_flight(f"grpc://127.0.0.1:{port}", "ends"), iter(range(100, 10**9))
    for _ in range(1 if point else SERVER_KILLS):
        fault = {"LFTJ_FAULT": f"{point}:3"} if point else {}
        with serving(tmp_path / "down", port=port, **fault) as (process, _):
            if not point:
                threading.Timer(chosen.uniform(0.05, 0.3), process.kill).start()
            with pytest.raises(SinkError, match=r"is not there: .*push again, it goes on behind what is"):
                for _ in sink.push(workspace, timeout=30):
                    with workspace.transaction() as tx:
                        tx.insert("edge", [(next(numbers), chosen.choice([1, 2]))])
        with pytest.raises(SinkError, match="is not there"):
            pushed(workspace, sink)
        with workspace.transaction() as tx:  # so that the next push has something to put
            tx.insert("edge", [(next(numbers), 1)])
    with serving(tmp_path / "down", port=port):
        pushed(workspace, sink)
    with Workspace.open(tmp_path / "down") as there:
        assert kept(there, "ends") == kept(workspace, "ends")
        there.verify()


def test_what_can_not_be_put_is_refused_by_name(service: FlightService) -> None:
    workspace = edges(Workspace())
    with pytest.raises(SinkError, match=r"sink 'n_to_flight': grpc.* says: .*'none'"):
        pushed(workspace, to_flight(service.address, "n", "none"))
    with pytest.raises(SinkError, match=r"says: .*'ends'"):
        pushed(workspace, to_flight(service.address, "n", "ends"))
    assert of(service)["ends"].count == 0
    pushed(workspace, to_flight(service.address, "ends"))
    with pytest.raises(
        SinkError, match=r"'ends' has what '\w+ ends_to_flight' has put: put into another rel"
    ):
        pushed(edges(Workspace()), to_flight(service.address, "ends"))
    tokens = Tokens({"a-token-of-a-reader": Role.READ})
    with taker() as closed, FlightService(closed, tokens=tokens) as guarded:
        with pytest.raises(SinkError, match="this token may read, and not write"):
            pushed(workspace, to_flight(guarded.address, "n", token="a-token-of-a-reader"))
        with pytest.raises(SinkError, match="knows no such token"):
            pushed(workspace, to_flight(guarded.address, "n"))
