"""`Change`: how one relation differs between two versions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lftj.storage.signed_rows import Columns


@dataclass(frozen=True, eq=False)
class Change:
    """A change of one relation: sorted distinct tuples, +1 (was absent) or -1 (was present).

    ``no_changes``: staged tuples that left the relation as it was.  Two changes are never equal.
    """

    columns: Columns
    weights: np.ndarray
    no_changes: int = 0

    def __len__(self) -> int:
        return len(self.weights)
