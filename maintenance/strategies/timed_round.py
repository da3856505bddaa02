"""`TimedRound`: many transactions as one round, for what is worked out for all of their times at once.

Let U be a relation's tuples before the batch and all that come in it, T those that come or go in it. Whatever
is in U and not in T is there all the time.  So the assignments of a body that are there at some time, and not
at all times, are those over U less those over U without T: a delta rule's change, whose old side is U and
whose new side is U without T (docs/design/strategies.md section 1).  When each of them comes and goes is in
the *histories* of the tuples of T that it is made of.

Of an atom that is read down to some level only, the tuples are branches: one is there while a tuple is
below it, and is touched if all that are below it in U are.

Invariants

1. A relation's changes are entered before anything that reads it is looked at.
2. Nothing is staged, and nothing of the versions changes.

Cost: of a relation that is read, an advance of its indices by T, twice.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel, part
from lftj.storage.catalog import IndexKey
from lftj.storage.net_weights import multiply_weights
from lftj.storage.signed_rows import table_of
from maintenance.changes.change import Change
from maintenance.changes.timed_change import TimedChange, running, timed
from maintenance.strategies.strategy import Round, Shared
from maintenance.strategies.surgery import surgeries_in


@dataclass(frozen=True, eq=False)
class Histories:
    """Touched branches of one level of an index, and when they come and go.

    ``paths``: int64 (levels, branches), sorted.  The changes of branch i are ``[offsets[i], offsets[i + 1])``
    of ``times`` and ``signs``.  ``were_there``: before all of them.
    """

    paths: np.ndarray
    offsets: np.ndarray
    times: np.ndarray
    signs: np.ndarray
    were_there: np.ndarray


class TimedRound:
    """A batch: what changes at which time, as far as it is known."""

    def __init__(self, total: Round, n_times: int) -> None:
        """``total``: the round of all transactions together; ``n_times``: how many they are."""
        self.total = total
        self.n_times = n_times
        self.changes: dict[str, TimedChange] = {}
        self.shared = Shared()
        self._universe = Round({}, {}, {})
        self._histories: dict[tuple[str, IndexKey, int], Histories] = {}

    def enter(self, name: str, change: TimedChange) -> None:
        """Enter a relation's changes, of which there are some, and what they come to into the total round."""
        self.changes[name] = change
        net = change.net
        if len(net):
            self.total.enter(name, net)

    def universe_of(self, relations: Iterable[str]) -> Round:
        """The round from U to U without T of these relations, beside those that were asked for before."""
        universe = self._universe
        for name in relations:
            if name in universe.new:
                continue
            version = self.total.old[name]
            change = self.changes.get(name)
            if change is not None:
                come = np.ascontiguousarray(change.touched[:, ~change.were_there])
                version = version.advance(come, np.ones(come.shape[1], np.int64))
            universe.old = {**universe.old, name: version}
            universe.new[name] = version
            if change is not None:
                gone = np.full(change.touched.shape[1], -1, np.int64)
                universe.enter(name, Change(change.touched, gone))
        return universe

    def histories(self, relation: str, key: IndexKey, level: int) -> Histories | None:
        """Of the touched branches of a level of an index; None where there is none."""
        place = relation, key, level
        if relation not in self.changes:
            return None
        if place not in self._histories:
            self._histories[place] = self._histories_of(relation, key, level)
        found = self._histories[place]
        return found if found.paths.shape[1] else None

    def _histories_of(self, relation: str, key: IndexKey, level: int) -> Histories:
        change = self.changes[relation]
        order, equal = key
        surgeries = surgeries_in(self.universe_of([relation]), relation, key)
        if surgeries is None:
            none = np.empty(0, np.int64)
            return Histories(np.empty((level + 1, 0), np.int64), np.zeros(1, np.int64), none, none, none > 0)
        paths, _ = surgeries.at_level(level)
        agree = np.ones(len(change), bool)
        for first, second in equal:
            agree &= change.columns[first] == change.columns[second]
        columns = [change.columns[column][agree] for column in order[: level + 1]]
        rows, times, weights = timed(columns, change.times[agree], change.signs[agree])
        places = np.empty(len(weights), np.int64)
        find_rows(paths, rows, places)
        touched = places >= 0
        places, times, weights = places[touched], times[touched], weights[touched]
        numbers = np.arange(paths.shape[1] + 1)
        offsets = np.searchsorted(places, numbers)
        if level + 1 == len(order):
            before = (weights[offsets[:-1]] < 0).astype(np.int64)
        else:
            before = np.ones(paths.shape[1], np.int64)
            fits = multiply_weights(self.total.old[relation].index_at(key).memory, paths, before)
            assert fits, "there are fewer tuples"
        earlier, later = running(offsets, before, weights)
        crosses = (earlier > 0) != (later > 0)
        signs = np.where(later > 0, 1, -1)[crosses]
        return Histories(paths, np.searchsorted(places[crosses], numbers), times[crosses], signs, before > 0)


@part
def _is_before(table, place, rows, row):
    """Whether ``table[:, place]`` comes before ``rows[:, row]``."""
    for column in range(table.shape[0]):
        if table[column, place] != rows[column, row]:
            return table[column, place] < rows[column, row]
    return False


@kernel
def find_rows(table, rows, places):
    """Write the place of each row among the sorted, distinct rows of a table, -1 where it is not there.

    Each is sought from the place of the one before on: rows of a search are mostly near it, and ascend.
    table: int64 (columns, m); rows: int64 (columns, n); places: int64 (n,), written.
    """
    columns, m = table.shape
    place = 0  # of the first that is not before the row
    for row in range(rows.shape[1]):
        low, high = place, place
        if place < m and _is_before(table, place, rows, row):
            step = 1
            while high < m and _is_before(table, high, rows, row):
                low = high + 1
                high += step
                step *= 2
            high = min(high, m)
        elif place > 0 and not _is_before(table, place - 1, rows, row):
            low, high = 0, place - 1
        while low < high:
            middle = (low + high) // 2
            if _is_before(table, middle, rows, row):
                low = middle + 1
            else:
                high = middle
        place = low
        alike = place < m
        for column in range(columns):
            alike = alike and table[column, place] == rows[column, row]
        places[row] = place if alike else -1


def places_in(paths: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The place of each row among sorted, distinct ones, -1 where it is not there."""
    places = np.empty(rows.shape[1], np.int64)
    find_rows(paths, table_of(rows, rows.shape[1]), places)
    return places
