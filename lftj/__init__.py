"""lftj: worst-case optimal joins over Arrow data.

>>> import lftj
>>> db = lftj.Database()
>>> db.load("edge", [(1, 2), (2, 3), (1, 3)], columns=["src", "dst"])
>>> db.count("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
1
"""

# Ahead of all that imports the package that is looked at.
from lftj.process.siblings import check_siblings

check_siblings("indices")

from typing import TYPE_CHECKING, Any  # noqa: E402

from lftj import errors  # noqa: E402
from lftj.database.database import Database  # noqa: E402
from lftj.errors import LftjError  # noqa: E402
from lftj.files.csv_options import CsvOptions  # noqa: E402

if TYPE_CHECKING:
    from lftj.database.warming import warm_up
    from lftj.values.own_functions import register as function

__version__ = "0.1.0"

__all__ = ["CsvOptions", "Database", "LftjError", "__version__", "errors", "function", "warm_up"]


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext lftj`` in a notebook: cells of rules, by ``%%lftj``."""
    from lftj.session.cell_magic import register

    register(ipython)


if not TYPE_CHECKING:  # where types are checked, the names are those above and no others

    def __getattr__(name: str) -> Any:
        """What is imported when it is asked for: ``warm_up`` brings the compiler with it."""
        if name == "warm_up":
            from lftj.database.warming import warm_up

            return warm_up
        if name == "function":
            from lftj.values.own_functions import register

            return register
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
