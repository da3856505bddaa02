"""``/metrics`` and ``/health`` of a pipeline that runs, by HTTP, for those who watch it.

Invariants

1. Nothing can be changed by a request, and no rows are shown.
2. At most ``_MOST`` connections are open, each for some seconds: more are closed.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lftj.errors import PipelineError

_MOST = 16

_SECONDS = 5.0
"""For which a connection may say nothing."""

Answer = tuple[int, str, str]
"""Status, type and text."""

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class _Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64

    def __init__(self, address: tuple[str, int], answers: Mapping[str, Callable[[], Answer]]) -> None:
        self.answers = answers
        self._seats = threading.Semaphore(_MOST)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._seats.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._seats.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to tell of."""

    def server_bind(self) -> None:
        # As HTTPServer does, but for the look-up of the machine's name, which may take long.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]


class _Handler(BaseHTTPRequestHandler):
    timeout = _SECONDS
    server: _Server

    def do_GET(self) -> None:
        answer = self.server.answers.get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(404, explain="there are /metrics and /health")
            return
        status, kind, text = answer()
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "lftj"

    def log_message(self, format: str, *arguments: object) -> None:
        """Who has looked is not logged."""


@contextmanager
def watched(
    address: tuple[str, int] | None,
    metrics: Callable[[], str],
    health: Callable[[], tuple[bool, dict[str, object]]],
) -> Iterator[str | None]:
    """Answers at an address, where there is one, while the context is open; gives the URL.

    Port 0 is any free one.  Raises PipelineError.
    """
    if address is None:
        yield None
        return

    def health_answer() -> Answer:
        is_up, about = health()
        return 200 if is_up else 503, "application/json", json.dumps(about) + "\n"

    answers = {"/metrics": lambda: (200, OPENMETRICS, metrics()), "/health": health_answer}
    try:
        server = _Server(address, answers)
    except OSError as error:
        shown = f"{address[0]}:{address[1]}"
        raise PipelineError(
            f"{shown} can't be listened on: {error.strerror or error}: say another address, listen in [run]"
        ) from None
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="lftj-watch", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
