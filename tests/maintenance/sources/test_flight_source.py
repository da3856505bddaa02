"""A head of another workspace behind Arrow Flight: equal to it after each look, through kills of both."""

from __future__ import annotations

import random
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lftj.errors import SourceError
from maintenance import Workspace
from maintenance.serving.access import Role, Tokens
from maintenance.serving.service import FlightService
from maintenance.sources.cursor import Cursor
from maintenance.sources.flight import FlightSource, flight
from support.flight_servers import make_certificate, serving
from support.followed_edges import change, kept
from support.killed_pulls import KILLS, POINTS, SERVER_KILLS, Killer, Part, kill_at_random

pytestmark = pytest.mark.compiled

MODULE = "maintenance.sources.flight"
RULES = "n[a] = count() <- edge(a, _).  bag ends(b) <- edge(_, b).  loop(a) <- edge(a, a)."
RULES += "pair(a, b) <- edge(a, b)."


def upstream(folder: Path | None = None) -> Workspace:
    workspace = Workspace() if folder is None else Workspace.open(folder)
    workspace.load("edge", {"a": [1, 2], "b": [2, 3]})
    workspace.install(RULES)
    return workspace


@pytest.fixture
def service() -> Iterator[FlightService]:
    with upstream() as workspace, FlightService(workspace) as service:
        yield service


def of(service: FlightService) -> Workspace:
    return service._workspace


def pulled(workspace: Workspace, source: FlightSource) -> int:
    return sum(1 for _ in source.pull(workspace, timeout=0))


@pytest.mark.parametrize(("name", "key"), [("n", ["a"]), ("ends", []), ("pair", [])])
def test_a_relation_is_the_head_after_each_look(service: FlightService, name: str, key: list[str]) -> None:
    chosen, workspace = random.Random(name), Workspace()
    source = flight(service.address, name, "copy", key=key)
    assert pulled(workspace, source) == 1
    for _ in range(6):
        for _ in range(3):
            change(of(service), chosen)
        assert pulled(workspace, source) <= 1  # what waits is one commit
        assert kept(workspace, "copy") == kept(of(service), name)
    assert pulled(workspace, source) == 0
    assert bool(workspace.base_version("copy").schema.key) == bool(key)


def test_the_cursor_goes_on_where_the_head_does_not_change(service: FlightService) -> None:
    """Behind an old version changes might not be kept any more."""
    workspace, source = Workspace(), flight(service.address, "loop")
    pulled(workspace, source)
    for number in range(5):
        with of(service).transaction() as tx:
            tx.insert("edge", [(100 + number, 0)])
    assert pulled(workspace, source) == 0
    assert Cursor(workspace, "loop").places["loop"].position == of(service).version


def test_commits_are_never_split_and_some_that_wait_are_one(service: FlightService) -> None:
    workspace, source = Workspace(), flight(service.address, "pair", batch_rows=10)
    pulled(workspace, source)
    for number in range(6):
        with of(service).transaction() as tx:
            tx.insert("edge", [(number, 100 + n) for n in range(7)])
    with of(service).transaction() as tx:
        tx.insert("edge", {"a": list(range(50_000)), "b": [7] * 50_000})
    sizes = [tx.stats.inserted["pair"] for tx in source.pull(workspace, timeout=0)]
    assert sum(sizes) == 50_042 and all(size >= 14 and size % 7 == 0 for size in sizes[:-1])
    assert kept(workspace, "pair") == kept(of(service), "edge")


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_nothing_is_lost_or_doubled(
    lives: Killer, service: FlightService, tmp_path: Path, point: str
) -> None:
    chosen, folder = random.Random(point), tmp_path / "ws"
    part = Part(MODULE, [service.address, "ends"], {"batch_rows": 1})
    for time in (1, 2, 2):
        assert lives.life(folder, [part], f"{point}:{time}") in (0, -signal.SIGKILL)
        for _ in range(4):
            change(of(service), chosen)
    assert lives.life(folder, [part], f"{point}:2") == -signal.SIGKILL
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(workspace, "ends") == kept(of(service), "ends")


def test_killed_at_random_while_the_other_goes_on(
    lives: Killer, service: FlightService, tmp_path: Path
) -> None:
    folder, stop = tmp_path / "ws", threading.Event()
    part = Part(MODULE, [service.address, "ends"], {"batch_rows": 4})
    assert lives.life(folder, [part]) == 0

    def write() -> None:
        chosen = random.Random(5)
        while not stop.wait(0.01):
            change(of(service), chosen)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        codes = list(kill_at_random(lives, folder, [part], 3, 0.25))
    finally:
        stop.set()
        writer.join()
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert kept(workspace, "ends") == kept(of(service), "ends")


@pytest.mark.in_turns
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    chosen, workspace = random.Random(8), Workspace()
    upstream(tmp_path / "up").close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = flight(f"grpc://127.0.0.1:{port}", "ends")
    for _ in range(SERVER_KILLS):
        with serving(tmp_path / "up", port=port) as (process, _):
            pulled(workspace, source)
            threading.Timer(chosen.uniform(0, 0.2), process.kill).start()
            with pytest.raises(SourceError, match=r"source 'ends': grpc.* (is not there|says).*"):
                for _ in source.pull(workspace, timeout=30):
                    pass
        with pytest.raises(SourceError, match=r"is not there: .*pull again, it goes on behind the cursor"):
            pulled(workspace, source)
        with Workspace.open(tmp_path / "up") as there:
            change(there, chosen)
            rows = kept(there, "ends")
    with serving(tmp_path / "up", port=port):
        pulled(workspace, source)
    assert kept(workspace, "ends") == rows


def test_a_server_that_was_replaced_is_told_by_name(service: FlightService) -> None:
    chosen, workspace = random.Random(1), Workspace()
    source = flight(service.address, "n", key=["a"])
    pulled(workspace, source)
    with upstream() as other, FlightService(other) as another:
        change(other, chosen)
        away = flight(another.address, "n", key=["a"])
        for _ in range(2):
            with pytest.raises(SourceError, match=r"another workspace than .* \(it is \w+, not \w+\)"):
                pulled(workspace, away)
        away.restart(workspace)
        assert pulled(workspace, away) == 1 and kept(workspace, "n") == kept(other, "n")
        other.install("n[a] = count() <- edge(a, _), a > 1.", replace=True)
        with pytest.raises(
            SourceError, match=r"'n' was installed, as it is, by version .*restart\(\) begins"
        ):
            pulled(workspace, away)
        away.restart(workspace)
        assert pulled(workspace, away) == 1 and kept(workspace, "n") == kept(other, "n")
        other.install("n[a] = max(b) <- edge(a, b).", replace=True)
        away.restart(workspace)
        with pytest.raises(SourceError, match=r"has columns \(a: int64, max: int64\), and relation 'n' has"):
            pulled(workspace, away)


def test_a_workspace_that_was_put_back_is_told(service: FlightService) -> None:
    workspace, source = Workspace(), flight(service.address, "n")
    pulled(workspace, source)
    cursor = Cursor(workspace, "n")
    place = cursor.places["n"]._replace(position=1000)
    with workspace.transaction() as tx:
        cursor.stage(tx, {"n": place})
    with pytest.raises(SourceError, match="and the cursor at 1000 already: its workspace was put back"):
        pulled(workspace, source)


def test_a_token_over_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    tokens = Tokens({"a-token-of-a-reader": Role.READ})
    with upstream() as up, FlightService(up, tokens=tokens, tls=(certificate, key)) as service:
        workspace = Workspace()
        good = flight(service.address, "n", token="a-token-of-a-reader", tls_roots=certificate)
        assert pulled(workspace, good) == 1 and kept(workspace, "n") == kept(up, "n")
        assert "token" not in repr(good)
        with pytest.raises(SourceError, match="knows no such token: give one, with token=") as raised:
            pulled(workspace, flight(service.address, "n", token="another-token", tls_roots=certificate))
        assert "another-token" not in str(raised.value)
        with pytest.raises(SourceError, match="is not there"):
            pulled(workspace, flight(service.address, "n", token="another-token"))
        with pytest.raises(SourceError, match=r"none\.pem: No such file"):
            pulled(workspace, flight(service.address, "n", tls_roots=tmp_path / "none.pem"))


def test_what_does_not_fit_is_refused_by_name(service: FlightService) -> None:
    workspace = Workspace()
    for name in ("no", "edge"):
        with pytest.raises(SourceError, match=rf"says: unknown head '{name}'; .*[?']$"):
            pulled(workspace, flight(service.address, name))
        assert name not in workspace
    workspace.load("n", pa.table({"a": [1], "count": [1]}))
    with pytest.raises(SourceError, match="has rows already, and no cursor says where they are from"):
        pulled(workspace, flight(service.address, "n"))


def test_a_loop_waits_for_what_comes_and_ends_from_another_thread(service: FlightService) -> None:
    workspace, source, seen = Workspace(), flight(service.address, "ends"), 0
    for _ in source.pull(workspace):
        seen += 1
        if seen < 4:
            with of(service).transaction() as tx:
                tx.insert("edge", [(seen, 50)])
        else:
            threading.Timer(0.1, source.stop).start()
    assert seen == 4 and kept(workspace, "ends") == kept(of(service), "ends")
