"""A PostgreSQL that is thrown away: a cluster in a temporary folder, under a user that the server takes."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

USER = "lftj"
SOCKET = ".s.PGSQL.5432"

_ALWAYS = ("fsync=off", "listen_addresses=", "max_connections=40", "jit=off", "TimeZone=UTC")


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``."""
    here = shutil.which("initdb")
    places = [Path(here).resolve().parent] if here else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    fitting = [place for place in places if (place / "initdb").exists() and (place / "postgres").exists()]
    return fitting[-1] if fitting else None


def _user() -> str | None:
    """Whose processes they are: the server refuses to run as root."""
    if os.geteuid():
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """It runs on a socket in ``folder``, with more settings than those that are always."""

    def __init__(self, folder: str, settings: Sequence[str] = ()) -> None:
        where = programs()
        assert where is not None
        self.folder, self._programs, self._settings = folder, where, (*_ALWAYS, *settings)
        user = _user()
        if user is not None:
            shutil.chown(folder, user)
        self._quiet = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "user": user,
            "cwd": folder,
        }
        init = [str(where / "initdb"), "-D", self._data, "-A", "trust", "-U", USER, "--no-sync"]
        subprocess.run([*init, "--locale=C", "-E", "UTF8"], check=True, **self._quiet)  # type: ignore[call-overload]
        self.start()

    @property
    def _data(self) -> str:
        return f"{self.folder}/data"

    @property
    def dsn(self) -> str:
        return f"host={self.folder} user={USER} dbname=postgres"

    def start(self, seconds: float = 20.0) -> None:
        """Start it, or again after it has ended; it takes connections when this returns."""
        told = [word for one in self._settings for word in ("-c", one)]
        command = [str(self._programs / "postgres"), "-D", self._data, "-k", self.folder, *told]
        self._process = subprocess.Popen(command, **self._quiet)  # type: ignore[call-overload]
        ends = time.monotonic() + seconds
        ready = [str(self._programs / "pg_isready"), "-h", self.folder, "-q"]
        while subprocess.run(ready, check=False, **self._quiet).returncode:  # type: ignore[call-overload]
            if time.monotonic() > ends:
                raise TimeoutError("the server does not come up")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash does, with all of its processes."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(*settings: str) -> Iterator[Server]:
    """A server while the context is open.  Raises FileNotFoundError where none is installed."""
    if programs() is None:
        raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="lftj-postgres-", ignore_cleanup_errors=True) as folder:
        server = Server(folder, settings)
        try:
            yield server
        finally:
            server.stop()
