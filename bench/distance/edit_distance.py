"""The exact trace edit distance: size of the symmetric difference of two full traces.

Specification: docs/design/engine.md section 1.

A trace is a set of operations; what tells one from another is its depth, the
binding above it, atom and level, the kind of operation, the key it started from
and the key it landed on.  It is the trace of ``Database.trace`` in codes, not
in text, so that millions of operations can be compared.

Rows are compared by a 64-bit hash; rows whose hashes agree are then compared
themselves, so the distance is exact whatever the hash does.

Cost: a sort of the hashes of each trace, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lftj.database.database import Database
from lftj.evaluation.evaluation import Evaluation
from lftj.evaluation.trace import G_CURSOR, trace_codes
from lftj.search.queries.plan import compile_plan

_CHUNK = 1 << 20
"""Rows that are compared together."""


@dataclass(frozen=True, eq=False)
class Trace:
    """``rows``: int64 (operations, fields), all distinct; ``atoms``: by iterator number."""

    rows: np.ndarray
    atoms: tuple[tuple[str, int], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def by_hash(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of the rows, ascending, and the rows they belong to."""
        hashes = _hashes(self.rows)
        order = np.argsort(hashes)
        return hashes[order], order


def full_trace(database: Database, rule: str, order: Sequence[str], limit: int) -> Trace:
    """The full trace of a rule with one body, in a pinned key order.

    Raises LimitError when it has more than ``limit`` operations.

    >>> import lftj
    >>> db = lftj.Database()
    >>> for name, keys in {"a": [1, 3], "b": [3, 9]}.items():
    ...     db.load(name, [(key,) for key in keys], columns=["x"])
    >>> len(full_trace(db, "m(x) <- a(x), b(x).", ["x"], 100)), db.trace("m(x) <- a(x), b(x).").num_rows
    (5, 5)
    """
    evaluation = Evaluation(database.request(rule, order=order))
    evaluation.derive()
    ((checked, head),) = evaluation.program.rules_of(evaluation.request.target)
    run = evaluation.search_of(checked, head)
    lowered, searched = run.planned.lowered, run.planned.plan
    plan = compile_plan(searched.problem, searched.order, write=True, share=False)
    bound = plan.bind(lowered.tables(evaluation.relations))
    rows = trace_codes(bound, limit) if lowered.empty is None else trace_codes(bound, 0)
    cursors = np.array(sorted(plan.layout.names), dtype=np.int64)
    rows[:, G_CURSOR] = np.searchsorted(cursors, rows[:, G_CURSOR])
    return Trace(rows, tuple(plan.layout.names[cursor] for cursor in cursors.tolist()))


def distance(before: Trace, after: Trace) -> int:
    """The number of operations that are in one of the traces and not in the other.

    >>> atoms = (("a(x)", 0),)
    >>> one, two = (Trace(np.array(rows), atoms) for rows in ([[1, 2], [3, 4]], [[3, 4], [5, 6], [7, 8]]))
    >>> distance(one, two)
    3
    """
    if len(before) and len(after) and before.atoms != after.atoms:
        raise ValueError(f"traces of different bodies: {before.atoms} and {after.atoms}")
    if not len(before) or not len(after):
        return len(before) + len(after)
    (hashes, rows), (other_hashes, other_rows) = before.by_hash, after.by_hash
    if _repeats(hashes) or _repeats(other_hashes):
        return distance_by_sorting(before, after)
    places = np.searchsorted(other_hashes, hashes)
    places[places == len(other_hashes)] = 0
    common = np.flatnonzero(other_hashes[places] == hashes)
    for start in range(0, len(common), _CHUNK):
        part = common[start : start + _CHUNK]
        if not np.array_equal(before.rows[rows[part]], after.rows[other_rows[places[part]]]):
            return distance_by_sorting(before, after)
    return len(before) + len(after) - 2 * len(common)


def distance_by_sorting(before: Trace, after: Trace) -> int:
    """The same without hashes: for traces with rows whose hashes collide."""
    _, counts = np.unique(np.concatenate([before.rows, after.rows]), axis=0, return_counts=True)
    return int((counts == 1).sum())


def _repeats(ascending: np.ndarray) -> bool:
    return bool((ascending[1:] == ascending[:-1]).any())


def _hashes(rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each row: the finisher of splitmix64, column after column."""
    found = np.zeros(len(rows), dtype=np.uint64)
    for column in range(rows.shape[1]):
        found ^= rows[:, column].astype(np.uint64)
        found += np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(30)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(27)
        found *= np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found
