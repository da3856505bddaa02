"""``lftj`` without a new interpreter for each command: a server that has the engine loaded forks.

What tests start in its place is :attr:`Server.command`: it imports next to nothing, hands arguments, streams,
folder and variables to the server, passes SIGINT and SIGTERM on, and ends with the fork's status.  The fork
has no other open files of who starts it (so no ``<(command)``), and variables that are read while the
packages are imported are the server's.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

EDGES = "a,b\n1,2\n2,3\n1,3\n"
CHANGES = "txn,a,b,weight\n1,3,4,1\n2,1,4,1\n"
LOAD = ("-e", "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).", "--load", "edge=edges.csv")


class Server:
    """Runs until it is closed, or this process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        here, address = str(Path(__file__).resolve()), f"{self._folder.name}/socket"
        self.command = [sys.executable, "-I", "-S", here, "ask", address]
        """A process of this, with a command line's arguments behind it, is one of ``lftj``."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", here, "serve", address],
            env={**os.environ, "PYTHONPATH": str(Path(here).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


# -- the server's process ---------------------------------------------------


def serve(address: str) -> None:
    _load()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while listener in select.select([listener, sys.stdin], [], [])[0]:  # stdin is closed in the end
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()


def _load() -> None:
    """Import what commands import, and read the kernels that they call, by one of each kind."""
    import maintenance.shell.shell  # noqa: F401  # its commands join those of:
    from lftj.shell.shell import run

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        Path("edges.csv").write_text(EDGES, encoding="utf-8")
        Path("changes.csv").write_text(CHANGES, encoding="utf-8")
        for line in (
            ["query", *LOAD, "--order-by", "a", "--out", "tri.parquet"],
            ["maintain", *LOAD, "--changes", "edge=changes.csv", "--out-changes", "tri=out.csv"],
            ["open", "kept", "install", *LOAD],
        ):
            assert run(line) == 0, said.getvalue()


def _answer(connection: socket.socket) -> None:
    """Have one command line carried out by a child, and tell its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    ended, alive = os.pipe()
    child = os.fork()
    if child == 0:
        connection.close()
        os.close(ended)
        _carry_out(streams, **json.loads(asked))
    for descriptor in (alive, *streams):
        os.close(descriptor)
    while ended not in select.select([ended, connection], [], [])[0]:
        number = connection.recv(1)
        os.kill(child, number[0] if number else signal.SIGKILL)  # who asked is no more
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.send(str(status).encode())
    os._exit(0)


def _carry_out(streams: list[int], arguments: list[str], folder: str, variables: dict[str, str]) -> None:
    from maintenance.shell.shell import main

    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(place, mode) for place, mode in enumerate("rww"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["lftj", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


# -- the process in place of lftj -------------------------------------------


def ask(address: str, *arguments: str) -> None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    for passed_on in (signal.SIGINT, signal.SIGTERM):
        signal.signal(passed_on, lambda number, _: connection.send(bytes([number])))
    asked = {"arguments": arguments, "folder": os.getcwd(), "variables": dict(os.environ)}
    socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
    for stream in (0, 1, 2):
        os.close(stream)  # the fork's alone: a reader sees the end when that closes them
    status = int(connection.recv(10))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
