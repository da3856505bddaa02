"""The relation of one row (:mod:`lftj.language.one_row`), with its row."""

from __future__ import annotations

import numpy as np

from lftj.language.one_row import ONE_ROW
from lftj.storage.relation import Relation
from lftj.values.schema import Schema


def one_row(schema: Schema) -> Relation:
    """The relation.

    >>> from lftj.language.one_row import schema_of_one_row
    >>> from lftj.values.domains import Domains
    >>> one_row(schema_of_one_row(Domains())).n_rows
    1
    """
    return Relation.from_codes(ONE_ROW, schema, [np.ones(1, np.int64)])
