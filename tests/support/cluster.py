"""A standalone cluster of Spark on loopback: a master, and workers that start executors of their own.

All of it are processes that die with this one, whatever ends it: Linux kills master and workers, an executor
ends when its worker is gone, and its Python when the executor is.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark

from support.paths import child_environment

SECONDS = 120
"""For a process that does not come up."""

_HOME = Path(pyspark.__file__).parent
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_DEPLOY = "org.apache.spark.deploy"


def _die_with_the_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Cluster:
    """Processes of a master and workers, which write below ``folder``."""

    def __init__(self, folder: Path, n_workers: int, cores: int, memory: str) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            self._start("master", f"{_DEPLOY}.master.Master", "--port", "0", "--webui-port", "0")
            self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
            for number in range(n_workers):
                room = ["--cores", str(cores), "--memory", memory, "--webui-port", "0"]
                room += ["--work-dir", str(folder / f"worker-{number}"), self.url]
                self.workers.append(self._start(f"worker {number}", f"{_DEPLOY}.worker.Worker", *room))
            for number in range(n_workers):
                self._said(f"worker {number}", r"(Successfully registered with master)")
        except BaseException:
            self.close()
            raise

    def _start(self, name: str, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        own = child_environment(
            SPARK_HOME=str(_HOME),
            SPARK_SCALA_VERSION="2.13",
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_DAEMON_MEMORY="256m",
            SPARK_DAEMON_JAVA_OPTS="-Dspark.master.rest.enabled=false -XX:+UseSerialGC",
        )
        command = [str(_HOME / "bin" / "spark-class"), what, "--host", "127.0.0.1", *arguments]
        with open(self._log(name), "wb") as log:
            process = subprocess.Popen(
                command,
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_the_parent,
            )
        self._processes.append(process)
        return process

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _said(self, name: str, pattern: str) -> str:
        """What a process writes to its log before long."""
        for _ in range(SECONDS * 10):
            found = re.search(pattern, self._log(name).read_text())
            if found:
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{name} does not come up: {self._log(name).read_text()[-3000:]}")

    def close(self) -> None:
        """End all processes, and those that they started."""
        started = [child for process in self._processes for child in _below(process.pid)]
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        _, alive = psutil.wait_procs(started, timeout=10)
        for child in alive:
            child.kill()


def _below(process: int) -> list[psutil.Process]:
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def executor_of(python_worker: int) -> psutil.Process:
    """The executor that a Python worker belongs to."""
    for parent in psutil.Process(python_worker).parents():
        if "CoarseGrainedExecutorBackend" in " ".join(parent.cmdline()):
            return parent
    raise AssertionError(f"process {python_worker} belongs to no executor")


def killed(process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGKILL)


class Killing:
    """Tasks of a batch that wait, in their executors, until something was killed; later ones go on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._begun, self._done = folder / "begun", folder / "done"

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = self._begun.with_name(f"{os.getpid()}.part")
        part.write_text(str(os.getpid()))
        part.replace(self._begun)
        while not self._done.exists():
            time.sleep(0.02)
        yield from given

    def during(self, kill: Callable[[psutil.Process], None], run: Callable[[], object]) -> psutil.Process:
        """Kill when a task of ``run`` waits, by its executor; returns that."""
        executors: list[psutil.Process] = []

        def killer() -> None:
            until = time.monotonic() + SECONDS
            while not self._begun.exists() and time.monotonic() < until:
                time.sleep(0.02)
            try:
                executors.append(executor_of(int(self._begun.read_text())))
                kill(executors[0])
            finally:
                self._done.touch()

        thread = threading.Thread(target=killer)
        thread.start()
        run()
        thread.join()
        assert executors, "nothing was killed"
        psutil.wait_procs(executors, timeout=30)
        assert not executors[0].is_running()
        return executors[0]


@contextmanager
def cluster(folder: Path, n_workers: int, cores: int, memory: str) -> Iterator[Cluster]:
    running = Cluster(folder, n_workers, cores, memory)
    try:
        yield running
    finally:
        running.close()
