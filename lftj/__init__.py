"""lftj: worst-case optimal joins over Arrow data.

>>> import lftj
>>> db = lftj.Database()
>>> db.load("edge", [(1, 2), (2, 3), (1, 3)], columns=["src", "dst"])
>>> db.count("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
1
"""

from lftj import errors
from lftj.csv_options import CsvOptions
from lftj.database import Database
from lftj.errors import LftjError

__version__ = "0.1.0"

__all__ = ["CsvOptions", "Database", "LftjError", "__version__", "errors"]
