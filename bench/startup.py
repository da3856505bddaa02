"""Whole Python processes: import, first query, and compilation from nothing.

Each run is a process of its own.  The first one checks the answer and warms
the disk cache.  For compilation the package is copied without its compiled
code, so nothing of the installation is touched.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.engine import engine_class
from bench.measurement import Measurement
from bench.patterns import TRIANGLE_COUNT_SQL, TRIANGLE_RULE
from bench.workload import Target, Workload

_ROOT = Path(__file__).resolve().parents[1]
_TELL = "\nprint({'answer': answer, 'seconds': globals().get('seconds')})"
_TELL_MEMORY = "\nfrom bench.memory import peak_bytes\nprint({'peak': peak_bytes()})"


def starting() -> list[Workload]:
    """Start a Python process, import, ask a first small question."""
    load = 'Database()\ndb.load("edge", [(1, 2), (2, 3), (1, 3)], columns=["src", "dst"])\n'
    lftj = f"db = lftj.{load}answer = db.count({TRIANGLE_RULE!r}, threads=1)\n"
    table = '"CREATE TABLE edge AS SELECT * FROM (VALUES (1, 2), (2, 3), (1, 3)) t(src, dst)"'
    duckdb = (
        f"db = duckdb.connect()\ndb.execute({table})\n"
        f"answer = db.execute({TRIANGLE_COUNT_SQL!r}).fetchone()[0]\n"
    )
    timed = "import time\nstarted = time.perf_counter()\n{}seconds = time.perf_counter() - started\n"
    imports = {"lftj": "import lftj\n", "duckdb": "import duckdb\n"}
    asks = {"lftj": lftj, "duckdb": duckdb}
    half_a_second = (Target("seconds", 0.5, None),)
    return [
        Workload(
            "import",
            "import, whole process",
            {},
            {name: code + "answer = 1" for name, code in imports.items()},
            1,
            task="process",
            targets=half_a_second,
        ),
        Workload(
            "first-query",
            "load and first query after import, compiled code on disk",
            {},
            {name: code + timed.format(asks[name]) for name, code in imports.items()},
            1,
            task="inside",
            targets=half_a_second,
        ),
        Workload(
            "import-and-query",
            "import, load and first query, whole process",
            {},
            {name: code + asks[name] for name, code in imports.items()},
            1,
            task="process",
        ),
        Workload(
            "compile",
            "first query with nothing compiled yet, once per installation",
            {},
            {"lftj": imports["lftj"] + timed.format(lftj)},
            1,
            task="compile",
        ),
    ]


def measure(result: Measurement, workload: Workload, runs: int, limit: float) -> None:
    """Fill ``result`` for a workload of task "process", "inside" or "compile".

    Args:
        result: Its workload, engine and version are set; the rest is filled in.
        workload: What to run.
        runs: The number of timed runs; for "compile" the first run is the only one.
        limit: Seconds that a process may take.
    """
    code = workload.queries[result.engine] + _TELL
    with tempfile.TemporaryDirectory(prefix="lftj-bench-") as folder:
        search = _ROOT
        if workload.task == "compile":
            search = Path(folder)
            _copy_package(result.engine, search)
        try:
            whole, told = _run(code, search, limit)
            result.answer = told["answer"]
            result.first_seconds = whole if workload.task == "process" else told["seconds"]
            if result.answer != workload.expected:
                result.status, result.detail = "wrong answer", f"found {result.answer}"
                return
            if workload.task == "compile":
                result.runs = [told["seconds"]]
            while len(result.runs) < runs and workload.task != "compile":
                whole, told = _run(code, search, limit)
                result.runs.append(whole if workload.task == "process" else told["seconds"])
            # Telling the memory takes an import of its own, so it is done in a process that is not timed.
            if workload.task != "compile":
                result.peak_bytes = _run(code + _TELL_MEMORY, search, limit)[1]["peak"]
        except subprocess.TimeoutExpired:
            result.status, result.limit_seconds = "time limit", limit
            result.detail = f"a process took more than {limit:g} s"
            return
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines()
            result.detail = lines[-1] if lines else f"exit status {error.returncode}"
            return
    result.status = "ok"


def _run(code: str, search: Path, limit: float) -> tuple[float, dict[str, Any]]:
    """Run code with ``search`` first on the path: seconds of the whole process, and what it told."""
    path = os.pathsep.join([str(search), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    started = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=limit,
        cwd=search,
        env={**os.environ, "PYTHONPATH": path},
    )
    seconds = time.perf_counter() - started
    told: dict[str, Any] = {}
    for line in finished.stdout.splitlines():
        told.update(ast.literal_eval(line))
    return seconds, told


def _copy_package(engine: str, folder: Path) -> None:
    """Copy an engine's package without its compiled code."""
    specification = importlib.util.find_spec(engine_class(engine).module)
    assert specification is not None and specification.origin is not None
    package = Path(specification.origin).parent
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
