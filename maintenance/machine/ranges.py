"""Range joins by the machine: as :mod:`maintenance.strategies.range_sums` has them, without scan trees.

    d(L join R) = dL join R_old + L_new join dR

Each side has two sets of rows with weights (:mod:`maintenance.machine.weighed`), by groups and what is
compared: 1 for each key, and the key's value.  How many keys a range has and what their values add up to are
look-ups in these, before a commit or after it.

Invariant: rows and weights are those of the general way.  ``magnitude`` is the sum of the absolute values of
a side; as long as it fits 62 bits no sum of a range wraps.

Cost: O(log n) for each changed key, run and group of the other side's own.  Where versions are folded the
scan trees of the general way go: it builds them from a version when it needs them.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import address, view
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import first_rows
from lftj.storage.support import _narrowed
from lftj.storage.version_memory import index_at
from maintenance.machine.collecting import collect, take
from maintenance.machine.layers import memory_of, step_index
from maintenance.machine.records import DONE, LEFT, SIDE, Side, layered_at, relation_at, rows_at, side_at
from maintenance.machine.structures import Layers
from maintenance.machine.weighed import Weighed, flat_at, weight_below, weight_between
from maintenance.strategies.range_sums import RangeSums, _by_key, _Side, range_at_key

MOST = 2.0**62
"""What a side's values may come to."""


@part(makes_arrays=True)
def step_side(side):
    """SIDE: the keys that change with a view, and the rows with weights behind that; a status."""
    relation = relation_at(side.relation)
    n, room, columns = relation.changed, relation.room, side.n_columns
    if n == 0:
        return DONE
    order, given = view(side.order, columns + 1), view(relation.rows, relation.arity * room)
    rows, values, weights = np.empty((columns, n), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    signs = view(relation.weights, n)
    for row in range(n):
        for column in range(columns):
            rows[column, row] = given[order[column] * room + row]
        values[row], weights[row] = given[order[columns] * room + row], signs[row]
        if abs(float(values[row])) >= MOST:
            return LEFT
    keys, befores, afters, supports = _by_key(rows, values, weights)
    n_keys = len(keys)
    kept_keys, kept_befores = view(side.keys, columns * side.room), view(side.befores, side.room)
    kept_afters, kept_supports = view(side.afters, side.room), view(side.supports, side.room)
    counted, summed = np.empty((columns, n_keys), np.int64), np.empty((columns, n_keys), np.int64)
    n_counted, n_summed = 0, 0
    counts, sums = np.empty(n_keys, np.int64), np.empty(n_keys, np.int64)
    magnitude = float(side.staged_magnitude)
    for key in range(n_keys):
        for column in range(columns):
            kept_keys[column * side.room + key] = keys[key, column]
        kept_befores[key], kept_afters[key], kept_supports[key] = befores[key], afters[key], supports[key]
        magnitude += abs(float(afters[key]))
        side.staged_magnitude += abs(afters[key]) - abs(befores[key])
        if magnitude >= MOST:
            return LEFT
        if supports[key] != 0:
            for column in range(columns):
                counted[column, n_counted] = keys[key, column]
            counts[n_counted] = supports[key]
            n_counted += 1
        if afters[key] != befores[key]:
            for column in range(columns):
                summed[column, n_summed] = keys[key, column]
            sums[n_summed] = afters[key] - befores[key]
            n_summed += 1
    side.changed = n_keys
    status = take(relation_at(side.counts), counted, counts[:n_counted])
    if status == DONE:
        status = take(relation_at(side.sums), summed, sums[:n_summed])
    if status == DONE:
        status = step_index(relation_at(side.counts).primary)
    if status == DONE:
        status = step_index(relation_at(side.sums).primary)
    return status


@part
def memory_of_relation(relation, is_after):
    """The address of the memory of its layers, before a commit or after it."""
    index = layered_at(relation_at(relation).primary)
    return memory_of(index, index.next_is_b if is_after else index.is_b)


@part(makes_arrays=True)
def join_range(program, op):
    """RANGE: collect two rows at most for each changed key, and each group of the other side's own."""
    side, other, head = side_at(op.side), side_at(op.other), relation_at(op.head)
    if side.changed == 0:
        return DONE
    head.touched = 1
    head.surgeries += side.changed
    counts, sums = memory_of_relation(other.counts, op.is_after), memory_of_relation(other.sums, op.is_after)
    n, n_both, n_own, n_others = side.changed, op.n_both, op.n_own, op.n_others
    keys = view(side.keys, side.n_columns * side.room).reshape((side.n_columns, side.room))
    of, asked = np.empty(0, np.int64), np.empty((n_both + n_others, 0), np.int64)
    if n_others > 0:
        of, asked = members(counts, keys, n, n_both, n_others, program.room)
        if len(of) > 0 and of[0] < 0:
            return LEFT
        n = np.int64(len(of))
    befores, afters = view(side.befores, side.room), view(side.afters, side.room)
    supports, spans = view(side.supports, side.room), view(op.spans, 4 * op.n_spans)
    width = n_both + n_own + n_others + 2
    found, weights, kept = np.empty((width, 2 * n), np.int64), np.empty(2 * n, np.int64), 0
    for row in range(n):
        key = of[row] if n_others > 0 else np.int64(row)
        count, total = np.int64(0), np.int64(0)
        for span in range(op.n_spans):
            low, high, fits = range_at_key(
                keys[side.n_columns - 1, key],
                spans[4 * span] != 0,
                spans[4 * span + 1],
                spans[4 * span + 2] != 0,
                spans[4 * span + 3],
                op.times,
                op.other_times,
            )
            if not fits:
                return LEFT
            if n_others > 0:
                count += weight_between(counts, asked, row, n_both + n_others, low, high)
                total += weight_between(sums, asked, row, n_both + n_others, low, high)
            else:
                count += weight_between(counts, keys, key, n_both, low, high)
                total += weight_between(sums, keys, key, n_both, low, high)
            head.seeks += 2
        if count == 0:
            continue
        more = supports[key] * count - 1
        for turn in range(1 if more == 0 else 2):
            for column in range(n_both):
                found[column, kept] = keys[column, key]
            first = n_both if op.is_left else n_both + n_others
            for column in range(n_own):
                found[first + column, kept] = keys[n_both + column, key]
            first = n_both + n_own if op.is_left else n_both
            for column in range(n_others):
                found[first + column, kept] = asked[n_both + column, row]
            change = afters[key] - befores[key]
            found[width - 2, kept] = 0 if turn else change if op.is_left else total
            found[width - 1, kept] = 0 if turn else total if op.is_left else change
            weights[kept] = more if turn else 1
            kept += 1
    return collect(program, found, weights[:kept], rows_at(op.rows))


@part(makes_arrays=True)
def members(memory, keys, n, n_both, n_others, room):
    """The groups of a side's own within those of each key: the key's number, and groups of both and its own.

    Numbers: int64 (m,), a negative one where there are more than ``room``; groups: int64 (n_both + n_others,
    m).  memory: of the side's counts; keys: int64 (columns, n), groups of both first.
    """
    levels = n_both + n_others
    of, found, kept = np.empty(room, np.int64), np.empty((levels, room), np.int64), 0
    runs = index_at(memory).runs
    places = np.empty((2, runs), np.int64)
    for key in range(n):
        for number in range(runs):
            flat, length = flat_at(memory, number)
            places[0, number], places[1, number] = _narrowed(flat, length, keys, key, 0, n_both, 0, length)
        while True:
            if kept == room:
                of[0] = -1
                return of, found
            nearest = nearest_member(memory, places, n_both, levels, found, kept)
            if not nearest:
                break
            for column in range(n_both):
                found[column, kept] = keys[column, key]
            for number in range(runs):
                flat, length = flat_at(memory, number)
                start, end = places[0, number], places[1, number]
                places[0, number] = _narrowed(flat, length, found, kept, n_both, levels, start, end)[1]
            if weight_below(memory, found, kept, levels) > 0:
                of[kept] = key
                kept += 1
    return of[:kept], first_rows(found, kept)


@part(makes_arrays=True)
def nearest_member(memory, places, first, last, found, at):
    """Write the least of the columns ``[first, last)`` where runs are to ``found[:, at]``; False: no run is.

    places: int64 (2, runs), where each is, and its end.
    """
    has_one = False
    for number in range(places.shape[1]):
        if places[0, number] == places[1, number]:
            continue
        flat, length = flat_at(memory, number)
        order = np.int64(0 if has_one else -1)
        for column in range(first, last):
            if order == 0:
                key = flat[column * length + places[0, number]]
                order = np.int64(key > found[column, at]) - np.int64(key < found[column, at])
        if order < 0:
            has_one = True
            for column in range(first, last):
                found[column, at] = flat[column * length + places[0, number]]
    return has_one


class SideSums:
    """One side of range joins: the op, and its rows with weights."""

    def __init__(self, side: _Side, relation: int, made: Sequence[tuple[int, Layers]], room: int) -> None:
        """``relation``: the address of the view's Relation, 0 where it never changes; ``made``: Relations of
        counts and of sums, and their layers."""
        self._sides = [side]
        self._counts, self._sums = (Weighed(layers, its) for its, layers in made)
        view_ = side.view
        order = np.array([*view_.groups, *view_.own, view_.key, len(view_.groups) + len(view_.own) + 1])
        n_columns = len(order) - 1
        self.words = np.zeros(Side.LENGTH, np.int64)
        its = self.record = Side(self.words)
        its.code, its.relation, its.n_columns, its.room = SIDE, relation, n_columns, room
        its.counts, its.sums = self._counts.relation, self._sums.relation
        keys, figures = np.zeros(n_columns * room, np.int64), np.zeros((3, room), np.int64)
        its.order, its.keys = address(order), address(keys)
        its.befores, its.afters, its.supports = map(address, figures)
        self._kept = [order, keys, figures]

    @property
    def address(self) -> int:
        return address(self.words)

    def bind(self, version: RelationVersion) -> int:
        """Begin anew over a version of the view; how many runs that takes."""
        are_there = [its.has_rows_of(version) for its in (self._counts, self._sums)]
        if not all(are_there):
            rows = self._sides[0].inserted(version)
            self._counts.take(version, list(rows.keys.T), rows.supports)
            self._sums.take(version, list(rows.keys.T), rows.after)
            self.record.magnitude = sum(map(abs, rows.after.tolist()))
        return max(self._counts.bind(), self._sums.bind())

    def add(self, side: _Side) -> None:
        """Another join has the same side."""
        self._sides.append(side)

    def fold(self, version: RelationVersion) -> None:
        """A version of the view has what came since; it may be published, or not."""
        self._counts.fold(version)
        self._sums.fold(version)

    def settle(self) -> None:
        """Let the general way build its trees anew, for what came since is not there."""
        if self._counts.layers.added() is not None or self._sums.layers.added() is not None:
            for side in self._sides:
                side._trees, side._undo = None, []


def spans_of(side: _Side) -> list[int]:
    """As RANGE reads them; of a change of this side."""
    items = []
    for least, most in side.spans:
        items += [least is not None, least or 0, most is not None, most or 0]
    return items


def refusal_of_ranges(search: RangeSums) -> str | None:
    """Why the machine can't sum the ranges of a join, if so."""
    ends = [end for span in search.join.inequality.spans for end in span if end is not None]
    return "ends of ranges beyond 64 bits" if any(abs(end) > KEY_MAX for end in ends) else None
