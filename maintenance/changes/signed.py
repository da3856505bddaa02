"""`Signed`: rows of changes by code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lftj.storage.signed_rows import Columns


class Signed(NamedTuple):
    """``columns``: int64, one per shown column, of a wide relation the rows' codes; ``weights``: int64 (n,).

    Of a relation with a key also ``resets``: bool (n,), whether the row of the key goes first, None: no; and
    ``keys``: int64 (columns of the key, n), None: those of the rows.
    """

    columns: Columns
    weights: np.ndarray
    resets: np.ndarray | None = None
    keys: np.ndarray | None = None
