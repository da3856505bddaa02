"""Rows that have closed as HTTP requests: each at least once, under one key, through kills of any part."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj.errors import SinkError
from maintenance import Workspace
from maintenance.sinks.webhook import WebhookSink, to_webhook
from maintenance.store.fault_points import FOLDER_POINTS, MESSAGE_POINTS, SINK_POINTS
from support.killed_pulls import KILLS, Killer, Part, kill_at_random

MODULE = "maintenance.sinks.webhook"
RULES = """
stream trade(t) late 0s keep 1h.
n[w, i] = count() <- trade(i, t), w = tumble(t, 1m).
final n at w + 1m.
"""


class Receiver:
    """``got``: what was posted, by its key; ``answers``: those of the next requests in place of 204."""

    def __init__(self, port: int = 0) -> None:
        receiver = self
        self.got: dict[str, Any] = {}
        self.times: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = receiver.answers.pop(0) if receiver.answers else 204
                key = self.headers["Idempotency-Key"]
                receiver.headers.append({**self.headers, "path": self.path})
                if answer == 204:
                    assert receiver.got.setdefault(key, value) == value  # the same row under the same key
                    receiver.times[key] += 1
                if not answer:
                    self.close_connection = True
                    return
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?secret=sesame"

    @property
    def rows(self) -> Counter[str]:
        return Counter(json.dumps(value) for value in self.got.values())


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    made = Receiver(port)
    thread = threading.Thread(target=made.server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintenance.sinks.webhook._FIRST_WAIT", 0.0)


def trades(workspace: Workspace) -> Workspace:
    columns = {"i": pa.array([], pa.string()), "t": pa.array([], pa.timestamp("s"))}
    workspace.load("trade", pa.table(columns), bag=True)
    workspace.install(RULES)
    return workspace


class Clock:
    """Trades of a minute after the other, some items each."""

    def __init__(self, seed: int) -> None:
        self._chosen, self._minute = random.Random(seed), 0

    def go_on(self, workspace: Workspace, minutes: int = 2) -> None:
        for _ in range(minutes):
            self._minute += 1
            times = [self._minute * 60 + n for n in range(self._chosen.randrange(1, 6))]
            items = [self._chosen.choice("abc") for _ in times]
            with workspace.transaction() as tx:
                tx.insert("trade", pa.table({"i": items, "t": pa.array(times).cast(pa.timestamp("s"))}))


def closed(workspace: Workspace) -> Counter[str]:
    rows = workspace["n_final"].to_arrow().to_pylist()
    return Counter(json.dumps({**row, "w": row["w"].isoformat()}) for row in rows)


def pushed(workspace: Workspace, sink: WebhookSink) -> int:
    return sum(1 for _ in sink.push(workspace, timeout=0))


def test_each_row_that_closes_is_posted_once(receiver: Receiver) -> None:
    workspace, clock, headers = trades(Workspace()), Clock(1), {"Authorization": "Bearer sesame"}
    sink = to_webhook(receiver.url, "n_final", headers=headers)
    clock.go_on(workspace)
    for _ in range(5):
        assert pushed(workspace, sink) >= 1
        assert receiver.rows == closed(workspace)
        clock.go_on(workspace)
    pushed(workspace, sink)
    assert receiver.rows == closed(workspace) and set(receiver.times.values()) == {1}
    assert pushed(workspace, sink) == 0
    versions = Counter(key.partition(":")[0] for key in receiver.got)
    assert set(receiver.got) == {f"{version}:{n}" for version, many in versions.items() for n in range(many)}
    first = receiver.headers[0]
    assert first["path"] == "/hook?secret=sesame" and first["Authorization"] == "Bearer sesame"
    assert first["Content-Type"] == "application/json" and "sesame" not in repr(sink)


def test_what_is_not_answered_is_tried_again_and_no_more_often_than_said(receiver: Receiver) -> None:
    workspace, clock = trades(Workspace()), Clock(2)
    clock.go_on(workspace, 3)
    sink = to_webhook(receiver.url, "n_final", tries=3)
    receiver.answers = [500, 0, 503, 204]
    with pytest.raises(
        SinkError, match=r"row \d+:0: http://127.0.0.1:\d+ did not take it, tried 3 times, 503 "
    ) as raised:
        pushed(workspace, sink)
    assert receiver.answers == [204] and not receiver.got and "sesame" not in str(raised.value)
    begun = receiver.headers[0]["Idempotency-Key"]
    receiver.answers = [204, 429, 408, 204, 400]
    clock.go_on(workspace, 4)  # what closes between changes no key of what it began with
    with pytest.raises(SinkError, match=r"row \d+:\d+: .* refused it, 400 Bad Request: .*push again"):
        pushed(workspace, sink)
    assert len(receiver.got) == 2 and begun in receiver.got
    pushed(workspace, sink)
    assert receiver.rows == closed(workspace)


@pytest.mark.parametrize("point", [*SINK_POINTS, *MESSAGE_POINTS, *FOLDER_POINTS[:2]])
def test_killed_at_each_point_each_row_has_one_key(
    lives: Killer, receiver: Receiver, tmp_path: Path, point: str
) -> None:
    clock, folder = Clock(4), tmp_path / "ws"
    with Workspace.open(folder) as workspace:
        clock.go_on(trades(workspace), 3)
    part = Part(MODULE, [receiver.url, "n_final"])
    for time in (1, 2, 1, 1):
        assert lives.life(folder, [part], f"{point}:{time}") in (0, -signal.SIGKILL)
        with Workspace.open(folder) as workspace:
            clock.go_on(workspace)
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert receiver.rows == closed(workspace)


def test_killed_at_random_each_row_has_one_key(lives: Killer, receiver: Receiver, tmp_path: Path) -> None:
    clock, folder = Clock(5), tmp_path / "ws"
    with Workspace.open(folder) as workspace:
        clock.go_on(trades(workspace), 40)
    part, codes = Part(MODULE, [receiver.url, "n_final"]), []
    for code in kill_at_random(lives, folder, [part], 6, 0.15):
        codes.append(code)
        with Workspace.open(folder) as workspace:
            clock.go_on(workspace, 5)
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert receiver.rows == closed(workspace)


def test_a_receiver_that_goes_away_and_comes_back() -> None:
    workspace, clock, got = trades(Workspace()), Clock(6), dict[str, Any]()
    with receiving() as first:
        port, sink = first.server.server_port, to_webhook(first.url, "n_final", tries=2)
        clock.go_on(workspace, 4)
        pushed(workspace, sink)
        got |= first.got
    clock.go_on(workspace)
    with pytest.raises(SinkError, match=r"did not take it, tried 2 times, .*: push again"):
        pushed(workspace, sink)
    with receiving(port) as second:
        pushed(workspace, sink)
        assert not got.keys() & second.got.keys()
        got |= second.got
    assert Counter(map(json.dumps, got.values())) == closed(workspace)


def test_a_row_that_goes_stops_the_push_by_name(receiver: Receiver) -> None:
    workspace, clock = trades(Workspace()), Clock(7)
    clock.go_on(workspace, 3)
    sink = to_webhook(receiver.url, "n")
    for moment in (300, 301):  # of one window
        pushed(workspace, sink)
        with workspace.transaction() as tx:
            tx.insert("trade", pa.table({"i": ["a"], "t": pa.array([moment]).cast(pa.timestamp("s"))}))
    sent = len(receiver.headers)
    with pytest.raises(
        SinkError, match=r"a row of 'n' goes, and who was told .*rows that have closed \(final\)"
    ):
        pushed(workspace, sink)
    assert len(receiver.headers) == sent


def test_bad_settings_are_refused() -> None:
    for url in ("ftp://a", "https://", "shop/hook"):
        with pytest.raises(ValueError, match="a webhook's url is"):
            to_webhook(url, "n")
    with pytest.raises(ValueError, match="tries is 0"):
        to_webhook("http://a", "n", tries=0)
