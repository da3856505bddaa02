"""Sums of queries by views that are made for one evaluation: sums of products, instead of products listed.

The rewriting is that of maintained heads; the estimate of its cost is another one
(:mod:`lftj.rewriting.elimination`), and views have to gain much: estimates are wrong, and a listing is fast.

Invariants

1. What is chosen gives the tuples of the program as it was written.  Where a partial sum does not fit 64 bits
   evaluating it raises RangeError; then :meth:`OneOffViews.wider` does, whose sums have 128.
2. A choice holds as long as the relations are about as large.

Cost: of a choice that holds, one look at the number of rows of each relation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lftj.language.body import CheckedProgram
from lftj.language.syntax import Aggregate
from lftj.planning.kept_orders import ALIKE, FEW_ROWS
from lftj.rewriting import view_tree
from lftj.rewriting.programs import with_views
from lftj.rewriting.relation_sizes import UNKNOWN_ROWS
from lftj.rewriting.view_tree import SUMMED
from lftj.storage.catalog import Table
from lftj.values.domains import Domains


class OneOffViews:
    """A program, and what is evaluated in its place.  Safe to use from several threads."""

    def __init__(self, program: CheckedProgram) -> None:
        self._program = program
        summing = [
            (head.relation, rule.bodies[0])
            for stratum in program.strata
            for rule in stratum
            for head in rule.heads
            if isinstance(head.value, Aggregate) and head.value.function in SUMMED
            if len(rule.bodies) == 1 and len(rule.bodies[0].atoms) > 1
        ]
        self._heads = frozenset(name for name, _ in summing)
        self._joined = [[atom.relation for atom in body.atoms] for _, body in summing]
        self._kept: tuple[dict[str, int], CheckedProgram] | None = None

    def over(self, tables: Mapping[str, Table], domains: Domains) -> CheckedProgram:
        """The program to evaluate over relations.  ``domains``: those of their codes."""
        if not self._heads:
            return self._program
        rows = {name: table.n_rows for name, table in tables.items()}
        kept = self._kept
        if kept is None or not _alike(kept[0], rows):
            chosen = self._program
            most = max(math.prod(rows.get(name, UNKNOWN_ROWS) for name in names) for names in self._joined)
            if most >= view_tree.LEAST_LISTED:
                chosen = with_views(chosen, self._heads, tables, domains, tables, once=True)
            kept = self._kept = rows, chosen if chosen.written is not None else self._program
        return kept[1]

    def wider(self, tables: Mapping[str, Table], domains: Domains, narrow: CheckedProgram) -> CheckedProgram:
        """The same with views of 128 bits, which are called otherwise than those of ``narrow``."""
        taken = {*tables, *narrow.derived}
        return with_views(self._program, self._heads, tables, domains, taken, wide=True, once=True)


def _alike(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    sizes = ((max(FEW_ROWS, before[name]), max(FEW_ROWS, n_rows)) for name, n_rows in now.items())
    return all(larger <= ALIKE * smaller for smaller, larger in map(sorted, sizes))
