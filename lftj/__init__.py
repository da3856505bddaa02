"""lftj: worst-case optimal joins over Arrow data, and results that stay up to date.

>>> import lftj
>>> db = lftj.Database()
>>> db.load("edge", [(1, 2), (2, 3), (1, 3)], columns=["src", "dst"])
>>> db.count("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
1

``lftj.Workspace`` keeps heads up to date, ``lftj.spark`` joins in PySpark pipelines; ``dir(lftj)`` lists what
there is.  The types of what is imported when it is asked for stand in ``__init__.pyi``.
"""

# Ahead of all that imports the package that is looked at.
from lftj.process.siblings import check_siblings

check_siblings("indices")

from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402

from lftj import errors  # noqa: E402
from lftj.database.database import Database  # noqa: E402
from lftj.errors import LftjError  # noqa: E402
from lftj.files.csv_options import CsvOptions  # noqa: E402

__version__ = "0.1.0"

_MAINTENANCE = (
    "Applied", "DeltaChanges", "HeadChange", "Snapshot", "Transaction", "Workspace", "WorkspaceStats",
    "aggregate", "changes_from_delta",
)  # fmt: skip

_WHEN_ASKED_FOR = {
    "function": "lftj.values.own_functions:register",
    "generator": "lftj.values.own_functions:register_generator",
    "spark": "spark_bridge",
    "warm_up": "lftj.database.warming:warm_up",
} | {name: f"maintenance:{name}" for name in _MAINTENANCE}
"""Where things are that bring the compiler, or Spark, with them: module, and name in it."""

__all__ = ["CsvOptions", "Database", "LftjError", "__version__", "errors", *_WHEN_ASKED_FOR]
__all__.remove("spark")  # which ``from lftj import *`` would import where there is no PySpark


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, within = _WHEN_ASKED_FOR[name].partition(":")
    check_siblings(module.partition(".")[0])
    imported = import_module(module)
    return getattr(imported, within) if within else imported


def __dir__() -> list[str]:
    return sorted([*__all__, "load_ipython_extension", "spark", "unload_ipython_extension"])


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext lftj`` in a notebook: cells of rules, by ``%%lftj``, and results that show their rows."""
    from lftj.session.cell_magic import register

    register(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext lftj``: tables show as pyarrow has it again."""
    from lftj.session.result_tables import show_tables_as_before

    show_tables_as_before(ipython)
