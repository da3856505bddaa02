"""`measure`: one engine on one workload in a fresh process.

The first run is apart: it checks the answer, builds indexes and loads compiled
code, and so warms everything up.  The runs after it are timed: at least five,
or one when it took ten seconds or more.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import datasets
from bench.child import Assignment
from bench.joins import startup
from bench.peers.engine import extra as engine_extra
from bench.peers.engine import version
from bench.report.measurement import Measurement
from bench.report.memory import peak_bytes
from bench.workload import IN_SPARK, Workload

START_LIMIT_SECONDS = 300.0
"""For importing an engine, which may have to compile."""


def measure(
    workload: Workload,
    engine: str,
    folder: Path,
    runs: int = 5,
    spend: float = 1.0,
    limit: float = 120.0,
    progress: Callable[[str], None] = lambda stage: None,
) -> Measurement:
    """Measure one engine (or engine:variant) on one workload.

    Args:
        workload: What to ask.
        engine: Whom to ask.
        folder: Where the tables are, or are put, as Parquet files.
        runs: The least number of timed runs.
        spend: Quick runs are repeated until they took this many seconds.
        limit: Seconds that loading or one run may take; the workload's own limit comes first.
        progress: Called with what is going on.

    Returns:
        The measurement.  Whatever goes wrong is in its status and detail.

    Raises:
        KeyboardInterrupt: The process that measured is gone.
    """
    result = Measurement(workload.name, engine, workload.threads)
    name = engine.partition(":")[0]
    result.version = version(name)
    if engine not in workload.queries:
        result.status = "no query"
        return result
    if result.version is None:
        result.status, result.detail = "not installed", f"install {engine_extra(name)}"
        return result
    limit = workload.limit or limit
    if workload.task in ("process", "inside", "compile"):
        progress("processes")
        startup.measure(result, workload, runs, limit)
        return result
    try:
        progress("tables")
        files = {relation: str(datasets.file(table, folder)) for relation, table in workload.tables.items()}
    except datasets.DataMissing as missing:
        result.status, result.detail = "no data", str(missing)
        return result
    assignment = Assignment(workload.name, engine, files, runs, spend)
    loads_first = workload.task in IN_SPARK or workload.task in (
        "count",
        "list",
        "commit",
        "put back",
        "batch",
        "install",
        "window",
        "sums",
    )
    _Child(assignment, loads_first, limit, progress).follow(result)
    return result


class _Child:
    """The process that measures, and the patience for it."""

    def __init__(
        self, assignment: Assignment, loads_first: bool, limit: float, progress: Callable[[str], None]
    ) -> None:
        self._loads_first = loads_first
        self._limit = limit
        self._progress = progress
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - the child writes to it while this function goes on
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the harness; it ends the child
        )
        self._events: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(assignment)).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put(line)
        self._events.put(None)

    def follow(self, result: Measurement) -> None:
        """Fill ``result`` with the child's events until it is done, gone or out of time."""
        stage, patience = "opening", START_LIMIT_SECONDS
        try:
            while True:
                self._progress(stage)
                try:
                    line = self._events.get(timeout=patience)
                except queue.Empty:
                    result.peak_bytes = peak_bytes(self._process.pid)
                    result.status, result.detail = "time limit", f"{stage} took more than {patience:g} s"
                    result.limit_seconds = patience if "run" in stage else None
                    return
                if line is None:
                    result.detail = f"{stage}: the process ended: {self._last_words()}"
                    return
                event = json.loads(line)
                if not take(event, result):
                    return
                loads_first = event["event"] == "ready" and self._loads_first
                stage = "loading" if loads_first else f"run {len(result.runs) + 1}"
                if result.first_seconds is None and not loads_first:
                    stage = "first run"
                patience = self._limit
        except KeyboardInterrupt:
            result.status, result.detail = "interrupted", f"Ctrl-C in {stage}"
            raise
        finally:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._complaints):
                if stream is not None:
                    stream.close()

    def _last_words(self) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._process.wait()}"


def take(event: dict[str, Any], result: Measurement) -> bool:
    """Note one event; False when it is the last."""
    kind, seconds = event["event"], event.get("seconds")
    if kind == "ready":
        result.open_seconds, result.base_bytes = seconds, event["bytes"]
    elif kind == "loaded":
        result.load_seconds = seconds
    elif kind == "answer":
        result.first_seconds, result.answer = seconds, event["count"]
    elif kind == "checksum":
        result.checksum = event["checksum"]
    elif kind == "run":
        result.runs.append(event["seconds"])
        result.processor_seconds.append(event["processor"])
    elif kind == "figures":
        result.figures = event["figures"]
    elif kind == "failed":
        result.detail = event["message"]
        result.runs, result.processor_seconds = [], []  # times of what turned out wrong
        return False
    elif kind == "done":
        result.peak_bytes = event["bytes"]
        if result.runs:
            result.status = "ok"
        else:
            checksum = "" if result.checksum is None else f", checksum {result.checksum}"
            result.status, result.detail = "wrong answer", f"found {result.answer:,}{checksum}"
        return False
    return True
