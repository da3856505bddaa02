# What `import lftj` gives, for type checkers: most of it is imported when it is asked for (`__init__.py`).
from typing import Any

import spark_bridge
from lftj import errors as errors
from lftj.database.database import Database as Database
from lftj.database.warming import warm_up as warm_up
from lftj.errors import LftjError as LftjError
from lftj.files.csv_options import CsvOptions as CsvOptions
from lftj.values.own_functions import register as function
from lftj.values.own_functions import register_generator as generator
from maintenance import Applied as Applied
from maintenance import DeltaChanges as DeltaChanges
from maintenance import HeadChange as HeadChange
from maintenance import Snapshot as Snapshot
from maintenance import Transaction as Transaction
from maintenance import Workspace as Workspace
from maintenance import WorkspaceStats as WorkspaceStats
from maintenance import aggregate as aggregate
from maintenance import changes_from_delta as changes_from_delta

spark = spark_bridge
__version__: str
__all__ = [
    "Applied",
    "CsvOptions",
    "Database",
    "DeltaChanges",
    "HeadChange",
    "LftjError",
    "Snapshot",
    "Transaction",
    "Workspace",
    "WorkspaceStats",
    "__version__",
    "aggregate",
    "changes_from_delta",
    "errors",
    "function",
    "generator",
    "warm_up",
]

def load_ipython_extension(ipython: Any) -> None: ...
def unload_ipython_extension(ipython: Any) -> None: ...
