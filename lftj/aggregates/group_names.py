"""Names of an aggregate's groups, as messages spell them: ``total["ann", 2026-01-31] = sum(c)``.

Shared by the aggregation of all assignments (:mod:`lftj.aggregates.whole`) and the
maintained aggregates, so that both refuse a value in the same words.

Cost: nothing until a name is asked for, then one decoding per key variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate, Variable
from lftj.values.schema import ColumnType


def spelled_call(call: Aggregate) -> str:
    """The aggregate as it was written, without separator.

    >>> from lftj.language.syntax import Constant
    >>> spelled_call(Aggregate("quantile", (Variable("c"), Constant(0.5))))
    'quantile(c, 0.5)'
    """
    if call.written is not None:
        return call.written
    terms = [
        term.name if isinstance(term, Variable) else str(term.value)
        for term in call.arguments
        if isinstance(term, Variable) or not isinstance(term.value, str)
    ]
    return f"{call.function}({', '.join(terms)})"


@dataclass(frozen=True)
class GroupNames:
    """The groups of an aggregate head: ``keys`` has an int64 code column per key variable.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("p", integer), Column("c", integer)), functional=True)
    >>> head = CheckedHead("total", ("p",), Aggregate("sum", (Variable("c"),)), schema, (0, 0))
    >>> GroupNames(head, {"p": integer, "c": integer}, [np.array([7, 8])]).name(1)
    'total[8]'
    """

    head: CheckedHead
    types: Mapping[str, ColumnType]  # of every key variable at least
    keys: list[np.ndarray]  # one entry per group

    @property
    def declared(self) -> ColumnType:
        """The type that the values come out as."""
        return self.head.schema.columns[-1].type

    def name(self, group: int) -> str:
        """The group as a rule would write it: ``total["ann", 2026-01-31]``."""
        values = [
            self.types[name].spelled(codes[group])
            for name, codes in zip(self.head.variables, self.keys, strict=True)
        ]
        return f"{shown_name(self.head.relation)}[{', '.join(values)}]"

    def call(self) -> str:
        """The aggregate as it was written."""
        assert isinstance(self.head.value, Aggregate)
        return spelled_call(self.head.value)
