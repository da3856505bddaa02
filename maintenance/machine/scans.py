"""GROUP's values that an order tells, least and greatest ones and quantiles, by rank among weighed rows.

The general way has scan trees (:mod:`maintenance.groups.scan`); here the least value is the one at rank 0 of
a group's rows, the greatest the one at the last.

Invariant: rows are those that have support; what they weigh is their support, or that times the weight of a
quantile.

Cost: see :mod:`maintenance.machine.weighed`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from indices.compiled import part
from lftj.language.syntax import Aggregate, share_of
from lftj.memory import address
from lftj.values.names import QUANTILES
from maintenance.groups.grouped import _MOST_ASSIGNMENTS as MOST
from maintenance.groups.scan import GroupScan
from maintenance.machine.collecting import take
from maintenance.machine.layers import memory_of, step_index
from maintenance.machine.records import DONE, LEFT, Scan, layered_at, relation_at
from maintenance.machine.structures import Layers
from maintenance.machine.weighed import Weighed, key_at, weight_below

FUNCTIONS = ("min", "max", *QUANTILES)


@part(makes_arrays=True)
def scanned(its, keys, after, rows, weights, values):
    """Write the values of groups to ``values``; a status.

    its: a Scan; keys: int64 (keys, groups); after: int64 (groups,), assignments; rows, weights: what came
    and went, net.
    """
    supports = relation_at(its.supports)
    status = take(supports, rows, weights)
    if status == DONE:
        status = step_index(supports.primary)
    if status != DONE:
        return status
    counted = layered_at(supports.primary)
    counts = memory_of(counted, counted.next_is_b)
    amounts = counts
    if its.amounts != 0:
        status = weigh(its, rows, weights)
        if status != DONE:
            return status
        weighed = layered_at(relation_at(its.amounts).primary)
        amounts = memory_of(weighed, weighed.next_is_b)
    n_keys = keys.shape[0]
    for group in range(len(after)):
        if after[group] == 0:
            continue
        total = weight_below(amounts, keys, group, n_keys)
        if total <= 0:  # of no weight: the first in the order
            held = weight_below(counts, keys, group, n_keys)
            values[group] = key_at(
                counts, keys, group, n_keys, held - 1 if its.is_from_above else np.int64(0)
            )
            continue
        if float(total) * float(its.numerator) >= MOST:
            return LEFT
        reached = -(-its.numerator * total // its.denominator)
        rank = total - max(np.int64(1), reached) if its.is_from_above else max(np.int64(0), reached - 1)
        values[group] = key_at(amounts, keys, group, n_keys, rank)
    return DONE


@part(makes_arrays=True)
def weigh(its, rows, weights):
    """Step what the rows of a quantile weigh, each by its last column; a status."""
    amounts = relation_at(its.amounts)
    columns, n = rows.shape[0] - 1, len(weights)
    total = float(its.total)
    for row in range(n):
        if rows[columns, row] < 0:
            return LEFT
        total += abs(float(rows[columns, row]) * float(weights[row]))
    if total >= MOST:
        return LEFT
    found, kept = np.empty(n, np.int64), 0
    keys = np.empty((columns, n), np.int64)
    for row in range(n):
        amount = rows[columns, row] * weights[row]
        if amount != 0:
            for column in range(columns):
                keys[column, kept] = rows[column, row]
            found[kept] = amount
            kept += 1
            its.staged_total += amount
    status = take(amounts, keys, found[:kept])
    return step_index(amounts.primary) if status == DONE else status


class Scans:
    """Of a head whose values an order tells: the record, and the rows with weights."""

    def __init__(self, scan: GroupScan, call: Aggregate, add: Callable[[int], tuple[int, Layers]]) -> None:
        """``add``: makes a relation of so many columns, and its layers."""
        self._scan = scan
        self.words = np.zeros(Scan.LENGTH, np.int64)
        its = self.record = Scan(self.words)
        n_keys = scan._n_groups
        its.supports, self._layers = add(scan._support.kept.arity)
        self._amounts: Weighed | None = None
        self._support = scan._support.kept  # as it was bound
        if len(scan._arguments) > 1:
            its.amounts, layers = add(n_keys + 1)
            self._amounts = Weighed(layers, its.amounts)
        its.is_from_above = call.function in ("max", "upper_quantile")
        its.numerator, its.denominator = 0, 1  # the least share there is
        if call.function in QUANTILES:
            share = share_of(call)
            its.numerator, its.denominator = share.numerator, share.denominator

    @property
    def address(self) -> int:
        return address(self.words)

    def bind(self) -> int:
        """Begin anew over what the head has; how many runs that takes."""
        support, amounts = self._scan._support.kept, self._amounts
        self._support = support
        self._layers.bind(support._memory, support)
        if amounts is None:
            return len(support.runs)
        if not amounts.has_rows_of(support):
            rows, supports = support.tuples()
            amounts.take(support, rows[:-1], supports * rows[-1])
            self.record.total = int((supports * rows[-1]).sum())
        return max(len(support.runs), amounts.bind())

    def fold(self) -> None:
        """Let the head know what came since; any number of times."""
        scan, layers = self._scan, self._layers
        added = layers.added()
        if added is None and scan._support.kept is self._support:
            return
        support = self._support if added is None else self._support.added(*added)[0]
        scan._support.kept, scan._tree, scan._undo = support, None, []
        if self._amounts is not None:
            self._amounts.fold(support)
