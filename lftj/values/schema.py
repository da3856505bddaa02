"""What a relation's columns hold: names, domains and Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from lftj.values.domain import Domain
from lftj.values.spelling import spelled


@dataclass(frozen=True)
class ColumnType:
    """The domain a column's or variable's values live in, and the Arrow type they come out as."""

    domain: Domain
    arrow: pa.DataType

    def spelled(self, code: int) -> str:
        """The value of a code, as a rule's text would have it (:mod:`lftj.values.spelling`)."""
        return spelled(self.domain.decode(np.array([code], dtype=np.int64), self.arrow))


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType


@dataclass(frozen=True)
class Schema:
    """Columns of a relation.  ``functional``: the last column is the value of the others."""

    columns: tuple[Column, ...]
    functional: bool = False

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns' names and Arrow types."""
        return pa.schema([(column.name, column.type.arrow) for column in self.columns])
