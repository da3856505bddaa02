"""The Flight service: out comes what the workspace has, what goes in is a transaction, errors are told."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from lftj.errors import LimitError, ServiceError
from lftj.process.allowance import allowed
from maintenance import Workspace
from maintenance.serving.access import Role, Tokens
from maintenance.serving.service import FlightService, Limits
from maintenance.sources.flight_client import VERSION

pytestmark = pytest.mark.compiled

READER, WRITER = "a token that only reads".replace(" ", "-"), "a token that also writes".replace(" ", "-")
TOKENS = Tokens({READER: Role.READ, WRITER: Role.WRITE})
RULES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c). degree[a] = count() <- edge(a, _)."


@pytest.fixture
def ws() -> Iterator[Workspace]:
    with Workspace() as workspace:
        workspace.load("edge", {"src": [1, 2, 1], "dst": [2, 3, 3]})
        workspace.install(RULES)
        yield workspace


@pytest.fixture
def service(ws: Workspace) -> Iterator[FlightService]:
    with FlightService(ws) as service:
        yield service


@pytest.fixture
def client(service: FlightService) -> Iterator[flight.FlightClient]:
    with flight.connect(service.address) as client:
        yield client


def asked(
    client: flight.FlightClient, options: flight.FlightCallOptions | None = None, **request: Any
) -> pa.Table:
    return client.do_get(flight.Ticket(json.dumps(request).encode()), options).read_all()


def put(
    client: flight.FlightClient,
    batches: list[pa.RecordBatch],
    options: flight.FlightCallOptions | None = None,
    **request: Any,
) -> list[int]:
    """The versions by which they were acknowledged."""
    descriptor = flight.FlightDescriptor.for_command(json.dumps(request).encode())
    writer, acknowledged = client.do_put(descriptor, batches[0].schema, options)
    versions = []
    with writer:
        for batch in batches:
            writer.write_batch(batch)
            said = acknowledged.read()
            if said is None:  # the error comes from closing
                break
            versions.append(json.loads(said.to_pybytes())["version"])
        writer.done_writing()
    return versions


def edges(*rows: tuple[int, int]) -> pa.RecordBatch:
    return pa.record_batch({"src": [a for a, _ in rows], "dst": [b for _, b in rows]})


def as_header(token: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def test_what_is_read_is_what_the_workspace_has(ws: Workspace, client: flight.FlightClient) -> None:
    assert asked(client, relation="tri").to_pylist() == [{"a": 1, "b": 2, "c": 3}]
    assert asked(client, relation="edge", columns=["dst"], limit=2).num_rows == 2
    assert asked(client, sql="select dst from edge where src = ? order by dst", params=[1]).to_pydict() == {
        "dst": [2, 3]
    }
    assert asked(client, rules="x(b) <- edge($a, b).", params={"a": 2}).to_pydict() == {"b": [3]}
    table = asked(client, relation="degree")
    assert table.to_pylist() == ws["degree"].table.to_pylist()
    assert table.schema.metadata[VERSION] == str(ws.version).encode()


def test_flights_are_relations_and_heads(client: flight.FlightClient) -> None:
    flights = {info.descriptor.path[0].decode(): info for info in client.list_flights()}
    assert {name: info.total_records for name, info in flights.items()} == {"edge": 3, "tri": 1, "degree": 2}
    for info in flights.values():
        assert client.do_get(info.endpoints[0].ticket).read_all().schema.names == info.schema.names
    info = client.get_flight_info(
        flight.FlightDescriptor.for_command(b'{"sql": "select 1 as one from edge"}')
    )
    assert info.schema.names == ["one"]
    assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 3
    assert client.get_schema(flight.FlightDescriptor.for_path("tri")).schema.names == ["a", "b", "c"]
    names = [action.type for action in client.list_actions()]
    (version,), (stats,) = (list(client.do_action(name)) for name in names)
    assert json.loads(version.body.to_pybytes())["version"] > 0
    assert b"# EOF" in stats.body.to_pybytes()


def test_each_batch_is_a_transaction(ws: Workspace, client: flight.FlightClient) -> None:
    before = ws.version
    versions = put(client, [edges((3, 4)), edges((2, 4), (1, 4))], relation="edge")
    assert versions == [before + 1, before + 2]
    assert asked(client, changes="tri", since=before).to_pylist() == [
        {"a": 1, "b": 2, "c": 4, "weight": 1},
        {"a": 1, "b": 3, "c": 4, "weight": 1},
        {"a": 2, "b": 3, "c": 4, "weight": 1},
    ]
    put(client, [edges((3, 4))], relation="edge", mode="erase")
    signed = pa.record_batch({"src": [9, 1], "dst": [9, 4], "weight": [1, -1]})
    put(client, [signed], relation="edge", mode="apply")
    assert set(ws["edge"]) == {(1, 2), (2, 3), (1, 3), (2, 4), (9, 9)}


def test_differential_followers_have_what_the_workspace_has(ws: Workspace, service: FlightService) -> None:
    """Several follow while others put: the sum of what each was given is the head."""
    since, heads = ws.version, ("tri", "degree")
    found: dict[tuple[int, str], Counter[tuple[int, ...]]] = {}
    begun = threading.Barrier(5)

    def follow(number: int, head: str) -> None:
        rows = Counter(ws_rows[head])
        with flight.connect(service.address) as client:
            request = json.dumps({"follow": head, "since": since, "seconds": 1.5})
            begun.wait()
            last = since
            for chunk in client.do_get(flight.Ticket(request.encode())):
                version = json.loads(chunk.app_metadata.to_pybytes())["version"]
                assert version > last
                last = version
                for row in chunk.data.to_pylist():
                    *values, weight = row.values()
                    rows[tuple(values)] += weight
        found[number, head] = +rows

    ws_rows = {head: list(ws[head]) for head in heads}
    followers = [threading.Thread(target=follow, args=(n, head)) for n in range(2) for head in heads]
    for thread in followers:
        thread.start()
    begun.wait()
    random = Random(7)
    with flight.connect(service.address) as client:
        for _ in range(40):
            rows = [(random.randrange(8), random.randrange(8)) for _ in range(3)]
            put(client, [edges(*rows)], relation="edge", mode=random.choice(("insert", "erase")))
    for thread in followers:
        thread.join()
    assert len(found) == 4
    for (_, head), rows in found.items():
        assert rows == Counter(ws[head])


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (b"", "a request is a JSON object"),
        (b"[1]", "not a list"),
        (b'{"relation": "nowhere"}', "nowhere"),
        (b'{"relation": "tri", "columns": ["z"]}', "has no column 'z': it has a, b, c"),
        (b'{"relation": "tri", "columns": [1]}', "list of strings"),
        (b'{"relation": "tri", "limit": "1"}', '"limit" is a str'),
        (b'{"relation": "tri", "limits": 1}', '"limits" is unknown'),
        (b'{"what": 1}', 'this one has "what"'),
        (b'{"sql": "drop table edge"}', "DROP"),
        (b'{"sql": "select * from read_csv(\'/etc/passwd\')"}', "is not taken"),
        (b'{"rules": "x(a) <- edge(a, b"}', "x(a) <- edge(a, b"),
        (b'{"changes": "tri"}', "lacks"),
        (b'{"changes": "tri", "since": 1000000}', "1000000"),
        (b'{"follow": "edges"}', "edge"),
        (b'{"relation": "tri", "limit": true}', '"limit" is a bool'),
        (b'{"relation": "tri", "limit": -1}', "it can be 0 to 9,223,372,036,854,775,807"),
        (b'{"relation": "tri", "limit": 1180591620717411303424}', "it can be 0 to"),
        (b'{"follow": "tri", "seconds": Infinity}', "Infinity is no number of JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_what_is_no_request_is_refused_with_a_word(
    request_: bytes, why: str, ws: Workspace, client: flight.FlightClient
) -> None:
    with pytest.raises(flight.FlightServerError) as raised:
        client.do_get(flight.Ticket(request_)).read_all()
    assert why in str(raised.value)
    assert json.loads(raised.value.extra_info)["error"].endswith("Error")
    assert "Traceback" not in str(raised.value)
    assert asked(client, relation="tri").num_rows == 1


@pytest.mark.parametrize(
    ("batch", "request_", "why"),
    [
        (edges((5, 6)), {"relation": "tri"}, "tri"),
        (edges((5, 6)), {"relation": "none"}, "none"),
        (edges((5, 6)), {"relation": "edge", "mode": "drop"}, "'drop'"),
        (edges((5, 6)), {}, '"relation" at least'),
        (pa.record_batch({"src": ["a"], "dst": [1]}), {"relation": "edge"}, "src"),
        (pa.record_batch({"src": [1]}), {"relation": "edge"}, "dst"),
        (edges(*[(n, n) for n in range(11)]), {"relation": "edge"}, "put smaller ones"),
    ],
)
def test_what_can_not_be_put_changes_nothing(
    batch: pa.RecordBatch, request_: dict[str, Any], why: str, ws: Workspace
) -> None:
    before = set(ws["edge"])
    with (
        FlightService(ws, limits=Limits(batch_rows=10)) as service,
        flight.connect(service.address) as client,
    ):
        with pytest.raises(flight.FlightServerError) as raised:
            put(client, [batch], **request_)
        assert why in str(raised.value)
        assert set(ws["edge"]) == before
        assert put(client, [edges((7, 8))], relation="edge") == [ws.version]


def test_tokens_say_who_reads_and_who_writes(ws: Workspace) -> None:
    with FlightService(ws, tokens=TOKENS) as service, flight.connect(service.address) as client:
        assert asked(client, as_header(READER), relation="tri").num_rows == 1
        assert put(client, [edges((3, 4))], as_header(WRITER), relation="edge")
        with pytest.raises(flight.FlightUnauthorizedError, match="may read, and not write"):
            put(client, [edges((4, 5))], as_header(READER), relation="edge")
        for header in (None, as_header("a-token-that-nobody-made"), as_header(READER[:-1])):
            with pytest.raises(flight.FlightUnauthenticatedError, match="no token that is known"):
                asked(client, header, relation="tri")
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(client.list_flights(options=header))
    assert (4, 5) not in set(ws["edge"])
    assert READER not in repr(TOKENS)


def test_one_for_reading_takes_no_rows(ws: Workspace) -> None:
    with (
        FlightService(ws, read_only=True) as service,
        flight.connect(service.address) as client,
        pytest.raises(flight.FlightUnauthorizedError, match="for reading"),
    ):
        put(client, [edges((4, 5))], relation="edge")


def test_an_open_door_is_refused(ws: Workspace, tmp_path: Path) -> None:
    for location, tokens, why in (
        ("grpc://0.0.0.0:0", None, "--tokens FILE"),
        ("grpc://0.0.0.0:0", TOKENS, "--tls-cert"),
        ("http://127.0.0.1:0", None, "is no address"),
        ("grpc://nothing", None, "is no address"),
        ("grpc://127.0.0.1:port", None, "is no address"),
        ("grpc+tls://127.0.0.1:0", None, "a certificate and its key"),
    ):
        with pytest.raises(ServiceError, match=why):
            FlightService(ws, location, tokens=tokens)
    with pytest.raises(ServiceError, match="can't be listened on"):
        FlightService(ws, tls=(tmp_path / "no.pem", tmp_path / "no.key"))
    with FlightService(ws) as service, pytest.raises(ServiceError, match="can't be listened on"):
        FlightService(ws, service.address)


def test_a_file_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# who\nread {READER}\n\nwrite {WRITER}\n")
    assert Tokens.read(path) == TOKENS
    for text, why in (
        (f"read {READER}\nadmin {WRITER}\n", "line 2: a line is"),
        ("read short\n", "16 printable"),
        ("", "has no tokens"),
    ):
        path.write_text(text)
        with pytest.raises(ServiceError, match=why) as raised:
            Tokens.read(path)
        assert WRITER not in str(raised.value)
    with pytest.raises(ServiceError, match="can't be read"):
        Tokens.read(tmp_path / "none")


def test_limits_of_rows_and_of_calls(ws: Workspace) -> None:
    limits = Limits(followers=1, rows=2)
    with FlightService(ws, limits=limits) as service, flight.connect(service.address) as client:
        with pytest.raises(flight.FlightServerError, match="3 rows, and 2 are the most"):
            asked(client, relation="edge")
        follow = flight.Ticket(json.dumps({"follow": "tri", "since": ws.version}).encode())
        with ws.transaction() as tx:
            tx.erase("edge", [(1, 2)])
        first = client.do_get(follow)
        first.read_chunk()  # it has its seat
        with pytest.raises(flight.FlightUnavailableError, match="followers"):
            client.do_get(follow).read_all()
        first.cancel()


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(seconds=0.0), "the answer takes longer than 0 s: ask for less"),
        (Limits(search_bytes=20), "the answer takes more than 20 bytes of rows on its way"),
    ],
)
def test_an_answer_takes_no_more_than_it_may(ws: Workspace, limits: Limits, why: str) -> None:
    with FlightService(ws, limits=limits) as service, flight.connect(service.address) as client:
        for request in (
            {"sql": "select x.src from edge x, edge y, edge z"},
            {"rules": "p(a, b, c, d) <- edge(a, b), edge(c, d)."},
            {"rules": "p(a, b) <- edge(a, b). p(a, c) <- p(a, b), edge(b, c). q(a) <- p(a, b), p(b, a)."},
        ):
            with pytest.raises(flight.FlightServerError, match=why) as raised:
                asked(client, **request)
            assert json.loads(raised.value.extra_info) == {"error": "LimitError"}
            command = flight.FlightDescriptor.for_command(json.dumps(request).encode())
            with pytest.raises(pa.ArrowException, match=why):
                client.get_schema(command)
        assert asked(client, relation="tri").num_rows == 1
        assert put(client, [edges((3, 4))], relation="edge") == [ws.version]
    assert ws.sql("select count(*) as n from edge x, edge y")["n"].to_pylist() == [16]
    ws.verify()


def test_threads_that_search_are_stopped_with_the_answer(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(a, b) for a in range(40) for b in range(40)])
    with pytest.raises(LimitError, match="0 s"), allowed(seconds=0.0):
        ws.query("p(a, b, c) <- edge(a, b), edge(b, c).", threads=2)
    with allowed(n_bytes=1 << 30):
        assert ws.query("p(a, b, c) <- edge(a, b), edge(b, c).", threads=2).num_rows == 64_000


def test_bytes_that_are_no_calls_end_nothing(
    ws: Workspace, client: flight.FlightClient, service: FlightService
) -> None:
    """Cut off, oversized or random: the next caller is served."""
    import socket

    random = Random(3)
    for length in (0, 1, 9, 100, 5_000):
        with socket.create_connection(("127.0.0.1", service.port)) as raw:
            raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" * (length % 2) + random.randbytes(length))
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("edge"), edges((1, 1)).schema)
    writer.write_batch(edges((70, 71)))
    writer.write_metadata(b"not rows")
    writer.close()
    assert asked(client, relation="tri").num_rows == 1
