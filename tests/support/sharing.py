"""Which process gets which tests where several share them: a file's tests one, and all that need Java one.

What a module's fixture makes is made once so, and Java is started once.  All have to collect all tests, which
takes four times as long where no file is compiled yet: each begins elsewhere, and finds the others' compiled.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

_JAVA = (
    "tests/spark_bridge/test_delta_pipeline.py",
    "tests/spark_bridge/test_frames.py",
    "tests/spark_bridge/test_maintained_join.py",
    "tests/spark_bridge/test_spark_",
    "tests/bench/test_bench_spark",
    "tests/project/test_readme.py::test_examples_do_what_they_show[index.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[spark.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[delta.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[graphframes.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[pipeline.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[spark-sources.md]",
)
"""How the names of tests begin that need Java."""

_LONG = (
    "tests/bench/",
    "tests/database/test_warming.py",
    "tests/evaluation/test_aggregate_forms.py",
    "tests/evaluation/test_list_aggregates.py",
    "tests/maintenance/heads/test_nearest_body.py",
    "tests/spark_bridge/test_stages_oracle.py",
    "tests/sql/test_changes.py",
    "tests/sql/test_kept.py",
    "tests/sql/test_thresholds.py",
)
"""How the names of files begin that take 20 seconds of processor time or more."""


def needs_java(test: str) -> bool:
    return test.startswith(_JAVA)


def turn(test: str) -> int:
    """What is long comes first: not at the end, when the other processes have nothing left."""
    return 0 if needs_java(test) else 1 if test.startswith(_LONG) else 2


def place(test: str) -> tuple[int, str]:
    """Orders tests, but for those of one file, in whichever order files are collected."""
    return turn(test), test.partition("::")[0]


def from_elsewhere(paths: list[str], worker: int, n_workers: int) -> list[str]:
    """Files and folders to collect, the tests' rooms each by itself, from this worker's share on.

    >>> from_elsewhere(["a.py", "b.py", "c.py", "d.py"], 1, 2)
    ['c.py', 'd.py', 'a.py', 'b.py']
    """
    parts = [part for path in paths for part in (_rooms() if path == "tests" else [path])]
    ends = list(itertools.accumulate(len(list(Path(part).rglob("test_*.py"))) or 1 for part in parts))
    first = sum(end <= ends[-1] * worker // n_workers for end in ends)
    return parts[first:] + parts[:first]


def _rooms() -> list[str]:
    return sorted(
        str(room) for room in Path("tests").iterdir() if room.is_dir() and room.name != "__pycache__"
    )


class Sharing(LoadScopeScheduling):
    """Of ``pytest --dist loadfile``, files in the order of their turns."""

    def _split_scope(self, nodeid: str) -> str:
        return "Java" if needs_java(nodeid) else nodeid.split("::", 1)[0]
