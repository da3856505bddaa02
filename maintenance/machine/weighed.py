"""Rows with weights that stand in no relation, in layered runs alone: what sums and places are found in.

A run has the sums of the weights before each row (:mod:`lftj.storage.runs`), so those of a range of rows are
two look-ups in each run.

Invariant: of rows that begin alike the weights of each are 0 or more together, where a rank is looked for.

Cost: O(log n) for a sum, of each run; a rank takes as many look-ups as there are halvings of all runs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.storage.runs import IndexRun, RunList
from lftj.storage.seek import lower_bound, upper_bound
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.support import _narrowed, _over_nothing
from lftj.storage.version_memory import RUN, first_run, index_at, run_at
from maintenance.machine.structures import Layers


@part(makes_arrays=True)
def flat_at(memory, number):
    """A run's flat array, and how many rows it has.  memory: address of an Index."""
    run = run_at(first_run(memory) + number * RUN)
    return view(run.rows, (index_at(memory).levels + 1) * run.length + 1), run.length


@part(makes_arrays=True)
def weight_below(memory, prefixes, row, n_prefix):
    """What all rows weigh that begin with ``prefixes[:n_prefix, row]``."""
    total, levels = np.int64(0), index_at(memory).levels
    for number in range(index_at(memory).runs):
        flat, length = flat_at(memory, number)
        start, end = _narrowed(flat, length, prefixes, row, 0, n_prefix, 0, length)
        total += flat[levels * length + end] - flat[levels * length + start]
    return total


@part(makes_arrays=True)
def weight_between(memory, prefixes, row, n_prefix, low, high):
    """The same of those among them whose next key is in the closed interval."""
    total, levels = np.int64(0), index_at(memory).levels
    if low > high:
        return total
    for number in range(index_at(memory).runs):
        flat, length = flat_at(memory, number)
        start, end = _narrowed(flat, length, prefixes, row, 0, n_prefix, 0, length)
        column = flat[n_prefix * length : (n_prefix + 1) * length]
        start = lower_bound(column, start, end, low)
        end = upper_bound(column, start, end, high)
        total += flat[levels * length + end] - flat[levels * length + start]
    return total


@part(makes_arrays=True)
def key_at(memory, prefixes, row, n_prefix, rank):
    """The least next key of rows that begin with ``prefixes[:n_prefix, row]`` up to which they weigh more
    than ``rank``, which is less than all of them do.
    """
    runs, levels = index_at(memory).runs, index_at(memory).levels
    places = np.empty((3, runs), np.int64)  # by run: where the prefix begins, and between which it may be
    for number in range(runs):
        flat, length = flat_at(memory, number)
        start, end = _narrowed(flat, length, prefixes, row, 0, n_prefix, 0, length)
        places[0, number], places[1, number], places[2, number] = start, start, end
    found = np.int64(0)
    while True:
        widest, width = np.int64(0), np.int64(0)
        for number in range(runs):
            if places[2, number] - places[1, number] > width:
                widest, width = np.int64(number), places[2, number] - places[1, number]
        if width == 0:
            return found
        flat, length = flat_at(memory, widest)
        key = flat[n_prefix * length + (places[1, widest] + places[2, widest]) // 2]
        weight = np.int64(0)
        for number in range(runs):
            flat, length = flat_at(memory, number)
            column = flat[n_prefix * length : (n_prefix + 1) * length]
            end = upper_bound(column, places[1, number], places[2, number], key)
            weight += flat[levels * length + end] - flat[levels * length + places[0, number]]
        is_behind = weight <= rank
        if not is_behind:
            found = key
        for number in range(runs):
            flat, length = flat_at(memory, number)
            column = flat[n_prefix * length : (n_prefix + 1) * length]
            if is_behind:
                places[1, number] = upper_bound(column, places[1, number], places[2, number], key)
            else:
                places[2, number] = lower_bound(column, places[1, number], places[2, number], key)


class Weighed:
    """Rows with weights: their layers, and the runs behind these.

    ``relation``: address of the Relation that has their changes.
    """

    def __init__(self, layers: Layers, relation: int) -> None:
        self.layers, self.relation = layers, relation
        self._of: object = None  # whose rows the runs have, and will have when versions are folded
        self._runs = _over_nothing(layers.levels, ())
        self._following: tuple[object, RunList] = None, self._runs

    def has_rows_of(self, version: object) -> bool:
        """Whether those of a version are there, for what came since was folded into it."""
        if self._following[0] is version:
            self._of, self._runs = self._following
        return self._of is version

    def take(self, version: object, columns: Columns, weights: np.ndarray) -> None:
        """Let these be its rows, which are those of a version."""
        rows, weights = net_rows(columns, weights)
        run = np.concatenate([rows.reshape(-1), [0], np.cumsum(weights)])
        runs = (IndexRun(run, len(weights)),) if len(weights) else ()
        self._of, self._runs = version, _over_nothing(self.layers.levels, runs)

    def bind(self) -> int:
        """Begin anew over the rows that are there; how many runs that takes."""
        self.layers.bind(self._runs.memory, self._runs)
        return len(self._runs.runs)

    def fold(self, version: object) -> None:
        """A version has what came since; it may be published, or not."""
        added = self.layers.added()
        self._following = version, self._runs if added is None else self._runs.with_run(*added)
