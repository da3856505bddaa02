"""Which process gets which tests where several share them: a file's tests one, and all that need Java one.

What a module's fixture makes is made once so, and Java is started once.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

_JAVA = (
    "tests/spark_bridge/test_delta_pipeline.py",
    "tests/spark_bridge/test_frames.py",
    "tests/spark_bridge/test_maintained_join.py",
    "tests/spark_bridge/test_spark_",
    "tests/bench/test_bench_spark.py",
    "tests/project/test_readme.py::test_examples_do_what_they_show[index.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[spark.md]",
    "tests/project/test_readme.py::test_examples_do_what_they_show[delta.md]",
)
"""How the names of tests begin that need Java."""

_LONG = ("tests/bench/",)


def needs_java(test: str) -> bool:
    return test.startswith(_JAVA)


def turn(test: str) -> int:
    """What is long comes first: not at the end, when the other processes have nothing left."""
    return 0 if needs_java(test) else 1 if test.startswith(_LONG) else 2


class Sharing(LoadScopeScheduling):
    """Of ``pytest --dist loadfile``, files in the order of their turns."""

    def _split_scope(self, nodeid: str) -> str:
        return "Java" if needs_java(nodeid) else nodeid.split("::", 1)[0]
