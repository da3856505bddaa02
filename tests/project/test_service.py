"""The service of docs/service.md with many who listen: called as a server calls it, within one event loop."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from support.paths import ROOT

PAGE = ROOT / "docs/service.md"
SECONDS = 300
"""For a request that hangs."""

Names = dict[str, Any]


class Request:
    """A request to an application, which runs as a task."""

    def __init__(
        self, app: Any, method: str, path: str, query: str = "", body: object = None, **headers: str
    ):
        self.status, self.text = 0, ""
        self.may_send = asyncio.Event()
        self.may_send.set()
        self._left = asyncio.Event()
        self._body = b"" if body is None else json.dumps(body).encode()
        self._is_sent = False
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "client": ("here", 1),
            "server": ("there", 2),
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        await self.may_send.wait()
        self.text += message.get("body", b"").decode()

    def leave(self) -> None:
        self._left.set()

    @property
    def events(self) -> list[tuple[int, int]]:
        """The versions of the events that came, and how many rows each has."""
        found = [event.split("\ndata: ") for event in self.text.split("\n\n")[:-1]]
        return [(int(number.removeprefix("id: ")), len(json.loads(rows))) for number, rows in found]


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.005)


def served(
    folder: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Names], Coroutine[Any, Any, None]]
) -> None:
    """Do something while the page's service runs in a folder."""
    monkeypatch.chdir(folder)
    names: Names = {"__name__": "service"}
    program = re.search(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert program is not None
    exec(compile(program[1], str(PAGE), "exec"), names)

    async def run() -> None:
        app = names["app"]
        async with asyncio.timeout(SECONDS), app.router.lifespan_context(app):
            await work(names)

    asyncio.run(run())
    assert not [thread for thread in threading.enumerate() if thread.name == "listeners"]


async def triangle(app: Any, number: int) -> int:
    """Insert three edges that make a triangle; the version that led to."""
    a, b, c = 3 * number, 3 * number + 1, 3 * number + 2
    posted = Request(
        app, "POST", "/edges", body={"insert": [(a, b), (b, c), (a, c)]}, content_type="application/json"
    )
    await posted.task
    assert (posted.status, len(json.loads(posted.text))) == (200, 1)
    return app.state.ws.version  # type: ignore[no-any-return]


def test_fifty_listen_and_others_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(names: Names) -> None:
        app = names["app"]
        listeners = app.state.listeners
        start = await triangle(app, 0)
        listening = [
            Request(app, "GET", "/triangles/changes", f"since={start}&wait={SECONDS}") for _ in range(50)
        ]
        await until(
            lambda: len(listeners.queues) == 50 and all(request.status == 200 for request in listening)
        )
        await until(
            lambda: to_thread.current_default_thread_limiter().borrowed_tokens == 0
        )  # nobody holds one
        assert [thread.name for thread in threading.enumerate()].count("listeners") == 1
        asked = Request(app, "GET", "/triangles", "limit=1")
        await asked.task
        assert json.loads(asked.text)["version"] == start
        assert [request.events for request in listening] == [[]] * 50

        versions = [await triangle(app, number) for number in (1, 2)]
        wanted = [(version, 1) for version in versions]
        await until(lambda: all(len(request.events) == 2 for request in listening))
        assert [request.events for request in listening] == [wanted] * 50

        for request in listening[:20]:
            request.leave()
        await asyncio.gather(*(request.task for request in listening[:20]))
        await until(lambda: len(listeners.queues) == 30)
        wanted.append((await triangle(app, 3), 1))
        await until(lambda: all(len(request.events) == 3 for request in listening[20:]))
        late = Request(app, "GET", "/triangles/changes", "since=0&wait=0", last_event_id=str(versions[0]))
        await late.task
        assert late.events == wanted[1:]
        for request in listening[20:]:
            request.leave()
        await asyncio.gather(*(request.task for request in listening[20:]))
        assert listening[-1].events == wanted
        assert not listeners.queues

    served(tmp_path, monkeypatch, work)


def test_one_who_is_slow_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(names: Names) -> None:
        names["MOST_EVENTS"] = 3
        app = names["app"]
        listeners = app.state.listeners
        start = await triangle(app, 0)
        slow, quick = (
            Request(app, "GET", "/triangles/changes", f"since={start}&wait={SECONDS}") for _ in range(2)
        )
        await until(lambda: len(listeners.queues) == 2)
        slow.may_send.clear()
        wanted = []
        for number in range(1, 9):
            wanted.append((await triangle(app, number), 1))
            await until(lambda: len(quick.events) == len(wanted))
        assert quick.events == wanted
        assert len(listeners.queues) == 1
        slow.may_send.set()
        await slow.task  # it has got what waited, and ends
        assert slow.events == wanted[:4]  # one on its way, and three
        again = Request(app, "GET", "/triangles/changes", "since=0&wait=0", last_event_id=str(wanted[3][0]))
        await again.task
        assert again.events == wanted[4:]
        quick.leave()
        await quick.task

    served(tmp_path, monkeypatch, work)


def test_what_comes_while_one_catches_up_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the queue, and may be among what was there already."""

    async def work(names: Names) -> None:
        app = names["app"]
        start = await triangle(app, 0)
        wanted = [(await triangle(app, number), 1) for number in range(1, 5)]
        ready = names["iterate_in_threadpool"]

        async def slowly(changes: Any) -> Any:
            wanted.append((await triangle(app, 5), 1))
            number = 6
            async for change in ready(changes):
                if number < 9:
                    wanted.append((await triangle(app, number), 1))
                    number += 1
                yield change
            wanted.append((await triangle(app, number), 1))

        names["iterate_in_threadpool"] = slowly
        request = Request(app, "GET", "/triangles/changes", f"since={start}&wait={SECONDS}")
        await until(lambda: len(wanted) == 9 and len(request.events) >= 9)
        wanted.append((await triangle(app, 100), 1))
        await until(lambda: len(request.events) >= 10)
        assert request.events == wanted
        request.leave()
        await request.task

    served(tmp_path, monkeypatch, work)
