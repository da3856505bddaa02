"""``make mutants``: which deliberate faults do the tests notice?

    python tests/mutants [WORD ...]
    python tests/mutants --fuzz [WORD ...]      which of FUZZED does `make fuzz` find, in ten minutes each?

Each fault (``faults.py``) is put into a copy of the tree, in a folder of its own that goes afterwards, and
the test files that it names are run there, up to the first failure.  Words choose the faults whose
descriptions hold one of them.

Kernels run as plain Python (``NUMBA_DISABLE_JIT``), since a change of any source would compile all of them
anew; for ``make fuzz`` they are compiled.  The same test files run without a fault first: a test that fails
anyway notices nothing.

Exit status: 0 if every fault was noticed, else 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import FAULTS, FUZZED, Fault

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("indices", "lftj", "maintenance", "spark_bridge", "tests", "pyproject.toml")
SECONDS = 600
"""For the test files of one fault.  One that hangs was noticed, too."""

PASSED, FAILED = 0, 1
"""What pytest exits with; anything else says that there was nothing to run."""


def copied(folder: str) -> Path:
    """A copy of the tree in the folder."""
    tree = Path(folder)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def outcome_of(tests: tuple[str, ...], fault: Fault | None = None) -> tuple[int, str]:
    """Pytest's exit status with the fault, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="lftj-mutant-") as folder:
        tree = copied(folder)
        if fault is not None:
            path = tree / fault.path
            path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header"]
        environment = {
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "HYPOTHESIS_PROFILE": "unshrunk",
            "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}",
        }
        try:
            done = subprocess.run(
                [*command, *(f"tests/{test}" for test in tests)],
                cwd=tree,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return FAILED, f"hung for {SECONDS} s"
        return done.returncode, done.stdout


def found_by_fuzz(fault: Fault) -> bool:
    """Whether ``make fuzz`` finds the fault, by a seed that nobody has looked at."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="lftj-mutant-") as folder:
        tree = copied(folder)
        path = tree / fault.path
        path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        kernels = shutil.copytree(ROOT / "indices" / "__pycache__", tree / "indices" / "__pycache__")
        environment = {
            **os.environ,
            "LFTJ_CACHE_DIR": str(kernels),
            "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}",
        }
        command = [sys.executable, "-m", "fuzz", "--first", "--without-corpus", "--seconds", str(SECONDS)]
        command += [] if fault.kind is None else ["--only", fault.kind]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    said = "found" if done.returncode else "NOT FOUND"
    print(f"{said:9}  {time.perf_counter() - started:5.0f} s  {fault.path}: {fault.what}", flush=True)
    for line in done.stderr.splitlines():
        if line.startswith("case"):
            print(f"    {line[:160]}", flush=True)
    return done.returncode != 0


def soundness(tests: tuple[str, ...]) -> bool:
    """Whether the test files pass without a fault."""
    status, output = outcome_of(tests)
    if status != PASSED:
        print(f"without a fault, {' '.join(tests)}:\n{output}", flush=True)
    return status == PASSED


def notice(fault: Fault) -> bool:
    """Whether the tests notice the fault; what became of it is printed."""
    started = time.perf_counter()
    status, output = outcome_of(fault.tests, fault)
    said = {PASSED: "SURVIVED", FAILED: "noticed"}.get(status, "NOT RUN")
    print(f"{said:8}  {time.perf_counter() - started:5.0f} s  {fault.path}: {fault.what}", flush=True)
    if status not in (PASSED, FAILED):
        print(output, flush=True)
    return status == FAILED


def main() -> int:
    fuzz = "--fuzz" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--fuzz"]
    faults = FUZZED if fuzz else FAULTS
    chosen = [fault for fault in faults if not words or any(word in fault.what for word in words)]
    if fuzz:
        found = [found_by_fuzz(fault) for fault in chosen]
        print(f"{sum(found)} of {len(chosen)} faults found by make fuzz")
        return 0 if chosen and all(found) else 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sound = list(pool.map(soundness, dict.fromkeys(fault.tests for fault in chosen)))
        noticed = list(pool.map(notice, chosen))
    print(f"{sum(noticed)} of {len(chosen)} faults noticed")
    return 0 if chosen and all(sound) and all(noticed) else 1


if __name__ == "__main__":
    sys.exit(main())
