"""``lftj serve``: what it acknowledged is there after any end, and who has no token gets nothing over TLS."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import maintenance.shell.shell  # noqa: F401  # adds the command
from maintenance import Workspace
from support.flight_servers import make_certificate, serving
from support.shell_runs import fails, in_this_process

pytestmark = pytest.mark.compiled

KILLS = int(os.environ.get("LFTJ_KILLS", "2"))
TOKEN = "a-token-of-one-who-writes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Workspace.open(tmp_path / "graph") as ws:
        ws.load("edge", {"src": [1, 2], "dst": [2, 3]})
        ws.install("two(a, c) <- edge(a, b), edge(b, c).")
    return tmp_path / "graph"


def insert(client: flight.FlightClient, numbers: range) -> int:
    """One row a transaction; the last version that was acknowledged."""
    version = 0
    schema = pa.schema({"src": pa.int64(), "dst": pa.int64()})
    writer, acknowledged = client.do_put(flight.FlightDescriptor.for_path("edge"), schema)
    for number in numbers:
        writer.write_batch(pa.record_batch({"src": [number], "dst": [number + 1]}))
        version = json.loads(acknowledged.read().to_pybytes())["version"]
    writer.done_writing()
    return version


@pytest.mark.in_turns
def test_what_was_acknowledged_outlives_kills(folder: Path) -> None:
    for number in range(KILLS):
        with serving(folder) as (process, address), flight.connect(address) as client:
            insert(client, range(10 * number + 10, 10 * number + 20))
            process.send_signal(signal.SIGKILL)
            process.wait()
    with serving(folder) as (process, address):
        with flight.connect(address) as client:
            table = client.do_get(flight.Ticket(b'{"relation": "edge"}')).read_all()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == "ending\n"
    expected = {(1, 2), (2, 3)} | {(n, n + 1) for n in range(10, 10 * KILLS + 10)}
    assert set(zip(*table.to_pydict().values(), strict=True)) == expected
    with Workspace.open(folder) as ws:
        assert set(ws["edge"]) == expected
        ws.verify()


def test_tokens_over_tls(folder: Path, tmp_path: Path) -> None:
    certificate, key, tokens = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "tokens"
    make_certificate(certificate, key)
    tokens.write_text(f"write {TOKEN}\n")
    options = ("--tokens", str(tokens), "--tls-cert", str(certificate), "--tls-key", str(key))
    with serving(folder, *options) as (_, address):
        assert address.startswith("grpc+tls://")
        ask = flight.Ticket(b'{"relation": "two"}')
        with flight.FlightClient(address, tls_root_certs=certificate.read_bytes()) as client:
            header = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
            assert client.do_get(ask, header).read_all().to_pylist() == [{"a": 1, "c": 3}]
            with pytest.raises(flight.FlightUnauthenticatedError):
                client.do_get(ask).read_all()
        with (
            flight.connect(address.replace("grpc+tls", "grpc")) as client,
            pytest.raises(flight.FlightUnavailableError),
        ):
            client.do_get(ask, header).read_all()


def test_what_it_is_asked_wrong(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lftj, none = in_this_process(capsys), str(tmp_path / "none")
    fails(lftj("serve", none), 1, "No such file")
    fails(lftj("serve", str(folder), "--listen", "0.0.0.0:0"), 1, "give tokens (--tokens FILE)")
    fails(lftj("serve", str(folder), "--tls-cert", __file__), 2, "--tls-cert and --tls-key go together")
    assert not Path(none).exists()
