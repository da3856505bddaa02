"""The relation of one row, which is always there: what gives a value where nothing else does.

A body without positive atoms reads it, and so does the row of an aggregate over nothing.  No program can
name it.  A checked program that reads it has it among its derived relations, with no rule; who evaluates or
keeps the program provides it (:mod:`lftj.evaluation.one_row`).
"""

from __future__ import annotations

import pyarrow as pa

from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

ONE_ROW = "#one"


def schema_of_one_row(domains: Domains) -> Schema:
    """Its schema, of these domains."""
    return Schema((Column("n", ColumnType(domains.of(pa.int64()), pa.int64())),))
