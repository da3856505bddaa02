"""Witnesses of an extremum: of each asker the nearest answer (:mod:`lftj.rewriting.nearest_join`).

Askers and answers are kept sorted (:class:`~lftj.storage.support.SupportVersion`), by what both know and then
by the compared key; of a ``min`` by its complement, so that what is sought is always the greatest at or below
a place.

Invariants

1. Rows that match nothing are not kept: with NULL in a key or in what both know.  Keys hold no NaN: it is
   refused where a search gives it.
2. ``reached`` by answers that come are all askers of which one of them is now the witness, by answers that go
   all of which one was it, limits aside; no asker twice.

Cost: O(log n) per run for each asker whose witness is sought, and for each answer that changes; O(log n + k)
per run for k askers that are reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.rewriting.nearest_join import NearestJoin
from lftj.storage.runs import IndexRun
from lftj.storage.signed_rows import Columns
from lftj.storage.support import SupportVersion, ranges_between
from lftj.storage.zset import Distinct
from lftj.values.domain import NULL_CODE, Domain

Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""Columns by variable, and weights."""
Table = np.ndarray
"""int64 (columns, n), C-contiguous."""


class Nearest:
    """The searches of one join; it holds no data.

    Rows of ``askers`` and of ``answers`` have the columns of their sides' names.
    """

    def __init__(self, join: NearestJoin) -> None:
        self.join = join
        self._n_shared = join.n_shared
        turned = join.function == "min"
        self._turned = turned
        least, most = join.span
        self._least, self._most = (_negative(most), _negative(least)) if turned else (least, most)
        names = join.askers.names
        self._limits = [(names.index(name), -limit if turned else limit) for name, limit in join.limits]
        self._compared = [self._n_shared, *(place for place, _ in self._limits)]
        types = join.askers.body.types
        self._domains = [[types[name].domain for name in names], []]
        types = join.answers.body.types
        self._domains[1] = [types[name].domain for name in join.answers.names]

    def askers(self, columns: Columns, weights: np.ndarray) -> tuple[Table, np.ndarray]:
        """Rows of askers as they are kept."""
        return self._stored(columns, weights, self._domains[0], self._compared)

    def answers(self, columns: Columns, weights: np.ndarray) -> tuple[Table, np.ndarray]:
        """Rows of answers as they are kept."""
        return self._stored(columns, weights, self._domains[1], [self._n_shared])

    def _stored(
        self, columns: Columns, weights: np.ndarray, domains: Sequence[Domain], compared: Sequence[int]
    ) -> tuple[Table, np.ndarray]:
        rows = np.array(columns, np.int64).reshape(len(domains), len(weights))
        matches = np.ones(len(weights), bool)
        for place in {*range(self._n_shared), *compared}:
            if domains[place].keeps_null:
                matches &= rows[place] != NULL_CODE
        if not matches.all():
            rows, weights = np.ascontiguousarray(rows[:, matches]), weights[matches]
        if self._turned:
            rows[compared] = ~rows[compared]
        return rows, weights

    def all_found(self, askers: Iterable[Rows], answers: Iterable[Rows]) -> dict[str, np.ndarray]:
        """The variables of all askers that have a witness, and its own, each once."""
        held = []
        for side, some, stored in (
            (self.join.askers, askers, self.askers),
            (self.join.answers, answers, self.answers),
        ):
            collected = Distinct(len(side.names))
            for rows, weights in some:
                columns, weights = stored([rows[name] for name in side.names], weights)
                collected.add(list(columns), weights)
            held.append(collected.finish()[0])
        nothing = SupportVersion(len(held[1]))
        version = nothing.added(held[1], np.ones(len(held[1][0]), np.int64))[0]
        return self.found(np.array(held[0], np.int64), version)[0]

    def found(self, askers: Table, answers: SupportVersion) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The variables of askers that have a witness, and its own, by name; and which those are."""
        n_shared = self._n_shared
        places, beyond = _moved(askers[: n_shared + 1], self._most)
        nearest = answers.neighbours(places, np.ones(len(beyond), bool), n_shared, (1, True), True)
        values = nearest[n_shared]
        has = values != places[n_shared]
        if not has.all():
            unsure = np.flatnonzero(~has)
            has[unsure] = answers.totals(list(places[:, unsure]), len(unsure)) > 0
        has &= beyond >= 0
        limits = [*self._limits, *([] if self._least is None else [(n_shared, self._least)])]
        for place, limit in limits:
            bar, beyond = _moved(askers[place : place + 1], limit)
            has &= (values >= bar[0]) & (beyond <= 0)
        rows = askers if has.all() else askers[:, has]
        columns = {name: rows[place] for place, name in enumerate(self.join.askers.names)}
        value = values[has]
        if self._turned:
            for place in self._compared:
                columns[self.join.askers.names[place]] = ~rows[place]
            value = ~value
        columns[self.join.value] = value
        return columns, has

    def reached(self, changed: Table, answers: SupportVersion, askers: SupportVersion) -> Table:
        """The askers of which an answer that changes may be the witness.

        ``changed``: rows that came, with the answers after that, or rows that went, with those before.
        """
        n_shared = self._n_shared
        following = answers.neighbours(changed, np.ones(changed.shape[1], bool), n_shared, (1, True), False)
        is_last = following[n_shared] == changed[n_shared]
        back = _negative(self._most)
        begins, too_late = _moved(changed, back)
        ends, beyond = _moved(following, back)
        whole = is_last | (beyond > 0)
        ends[n_shared, whole] = KEY_MAX
        if self._least is not None:  # from there on an answer is too old
            old, beyond = _moved(changed, -self._least)
            is_first = (old[n_shared] < ends[n_shared]) & (beyond <= 0)
            # behind the last asker for which it is not
            ends[n_shared, is_first] = old[n_shared, is_first]
            whole |= is_first
        there = too_late <= 0
        if not there.all():
            begins, ends, whole = begins[:, there], ends[:, there], whole[there]
        begins, ends = np.ascontiguousarray(begins), np.ascontiguousarray(ends)
        _, columns, weights = askers.within(_ranges(askers, begins, ends, whole))
        return np.array(columns, np.int64).reshape(askers.arity, len(weights))


def _ranges(
    version: SupportVersion, begins: Table, ends: Table, whole: np.ndarray
) -> Iterator[tuple[IndexRun, np.ndarray, np.ndarray]]:
    """Per run, what stands from the first rows that begin so to before the ends, where whole behind them."""
    for run in version.runs:
        yield run, *ranges_between(run, begins, ends, whole)


def _negative(number: int | None) -> int | None:
    return None if number is None else -number


def _moved(rows: Table, by: int | None) -> tuple[Table, np.ndarray]:
    """Rows with the last column moved, and where that leaves 64 bits, 1 or -1 for the way.

    None: beyond all keys.
    """
    moved = rows.copy()
    keys = moved[-1]
    beyond = np.zeros(len(keys), np.int64)
    if by is None:
        keys[:] = KEY_MAX
    elif by > 0:
        beyond[keys > KEY_MAX - by] = 1
        keys[:] = np.where(beyond, KEY_MAX, keys + by)
    elif by < 0:
        beyond[keys < KEY_MIN - by] = -1
        keys[:] = np.where(beyond, KEY_MIN, keys + by)
    return moved, beyond
