"""Whole Python processes: import, first query, and compilation from nothing.

Each run is a process of its own.  The first one checks the answer and warms
the disk cache.  For compilation the cache folder is an empty one of the run's own
(``LFTJ_CACHE_DIR``), so nothing of the installation is touched.  There a core that is
shared with others says little by the clock: CPU seconds are what is measured.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.joins.patterns import TRIANGLE_COUNT_SQL, TRIANGLE_RULE
from bench.report.measurement import Measurement
from bench.workload import Target, Workload

_ROOT = Path(__file__).resolve().parents[2]
_TELL = "\nprint({'answer': answer, 'seconds': globals().get('seconds')})"
_TELL_MEMORY = "\nfrom bench.report.memory import peak_bytes\nprint({'peak': peak_bytes()})"


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
    worked = "import time\nstarted = time.process_time()\n{}seconds = time.process_time() - started\n"
    maintained = (
        "from maintenance import Workspace\nws = Workspace()\n"
        'ws.load("edge", [(1, 2), (2, 3), (1, 3), (3, 4)], columns=["src", "dst"])\n'
        f"ws.install({TRIANGLE_RULE!r})\n"
        'with ws.transaction() as tx:\n    tx.insert("edge", [(2, 4)])\n    tx.erase("edge", [(1, 3)])\n'
        'answer = len(ws["tri"])\n'
    )
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
            "first query with nothing compiled yet, once per installation, CPU seconds",
            {},
            {"lftj": imports["lftj"] + worked.format(lftj)},
            1,
            task="compile",
            targets=(Target("seconds", 10, 5),),
        ),
        Workload(
            "compile-workspace",
            "first Workspace script with nothing compiled yet, once per installation, CPU seconds",
            {},
            {"lftj": imports["lftj"] + worked.format(maintained)},
            1,
            task="compile",
            targets=(Target("seconds", 20, 10),),
        ),
        Workload(
            "compile-everything",
            "lftj warm-up with nothing compiled yet, once per installation, CPU seconds",
            {},
            {"lftj": imports["lftj"] + worked.format("lftj.warm_up()\nanswer = 1\n")},
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
        cache = folder if workload.task == "compile" else None
        try:
            whole, told = _run(code, limit, cache)
            result.answer = told["answer"]
            result.first_seconds = whole if workload.task == "process" else told["seconds"]
            if result.answer != workload.expected:
                result.status, result.detail = "wrong answer", f"found {result.answer}"
                return
            if workload.task == "compile":
                result.runs = [told["seconds"]]
            while len(result.runs) < runs and workload.task != "compile":
                whole, told = _run(code, limit)
                result.runs.append(whole if workload.task == "process" else told["seconds"])
            # Telling the memory takes an import of its own, so it is done in a process that is not timed.
            if workload.task != "compile":
                result.peak_bytes = _run(code + _TELL_MEMORY, limit)[1]["peak"]
        except subprocess.TimeoutExpired:
            result.status, result.limit_seconds = "time limit", limit
            result.detail = f"a process took more than {limit:g} s"
            return
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines()
            result.detail = lines[-1] if lines else f"exit status {error.returncode}"
            return
    result.status = "ok"


def _run(code: str, limit: float, cache: str | None = None) -> tuple[float, dict[str, Any]]:
    """Run code, with its compiled kernels in ``cache``: seconds of the whole process, and what it told."""
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    caches = {} if cache is None else {"LFTJ_CACHE_DIR": cache}
    started = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=limit,
        cwd=_ROOT,
        env={**os.environ, **caches, "PYTHONPATH": path},
    )
    seconds = time.perf_counter() - started
    told: dict[str, Any] = {}
    for line in finished.stdout.splitlines():
        told.update(ast.literal_eval(line))
    return seconds, told
