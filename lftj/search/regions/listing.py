"""Searches in which nothing is sought: below each binding the branches of some indices are listed.

    path(a, c) <- path(a, b), edge(b, c).               below (a, b): the c of edge[b]
    same(x, y) <- same(p, q), edge(p, x), edge(q, y).   below (p, q): the x of edge[p] times the y of edge[q]

Where each variable behind the bound ones stands in one atom, as its last, and all else of that atom is bound,
there is no intersection: the rows are products of ranges of keys.  They are written column by column.

Invariants

1. Rows are those of the search, in the same order, with the weight of their binding.
2. Every index is a base alone: versions with runs are for the search.
3. A path's range at level l + 1 are the keys below the binding's key at level l, and none below a key that
   is not there.  It stays as long as bindings agree in what leads to it.  A path is not looked up where one
   before it lacks a key: it is compared with the binding for which it was looked up last.

Cost: a look-up per level at which the binding differs from the one before, and O(columns) per row.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from indices.compiled import kernel, part
from indices.records import WORD, Record, record_at
from lftj.memory import address, view
from lftj.search.machine.plan import Participant, RegionPlan
from lftj.search.regions.evaluation import Operations
from lftj.search.shares import SLICE
from lftj.storage.index_version import IndexVersion
from lftj.storage.seek import gallop, lower_bound, ranked
from lftj.storage.signed_rows import first_rows
from lftj.storage.version_memory import INDEX, LEVEL, index_at, level_at

LISTED_ROWS = 1 << 16
"""Rows of a piece, at most; a power of 2."""


class ListedRows(Record):
    """A listing, and how far it came."""

    paths: int  # first ListedPath, and how many
    n_paths: int
    first_listed: int  # number of the first of those that list
    sizes: int  # list of the lengths of the ranges that are listed
    sign: int
    binding: int  # number of the binding
    offset: int  # rows of it that were listed
    opens: int  # operations, as the search counts them
    nexts: int
    seeks: int
    failed: int  # bindings of which an index lacks a key


class ListedPath(Record):
    """An atom and the depths of its variables."""

    number: int  # of its index
    lists: int  # whether its last level is listed; else all of them are looked up
    levels: int  # levels that are looked up
    places: int  # list of their depths; all are bound
    ranges: int  # first KeyRange: one for each level that is looked up, and one behind
    binding: int  # the one that was looked up last, -1 for none


class KeyRange(Record):
    """A level of a path: the keys below what is bound above, half-open, and where the last look-up landed."""

    start: int
    end: int
    at: int


listing_at = record_at(ListedRows)
path_at = record_at(ListedPath)
range_at = record_at(KeyRange)
PATH = ListedPath.BYTES
RANGE = KeyRange.BYTES


class Listing:
    """A plan that is a listing, below bindings of so many variables."""

    def __init__(
        self,
        paths: Sequence[tuple[Participant, Sequence[int]]],
        listed: int,
        sign: int,
        columns: Sequence[int],
    ) -> None:
        """``paths``: with the depths that are looked up, those ``listed`` that list last; ``columns``: the
        depths of the rows."""
        self._columns = np.array(columns, np.int64)
        places = sum(len(looked_up) for _, looked_up in paths)
        items = ListedRows.LENGTH + len(paths) * (ListedPath.LENGTH + KeyRange.LENGTH) + listed
        self._words = np.zeros(items + places * (1 + KeyRange.LENGTH), np.int64)
        self._address = address(self._words)
        self._state = ListedRows.view(self._words)
        self._paths: list[ListedPath] = []
        state, end = self._state, ListedRows.LENGTH + len(paths) * ListedPath.LENGTH
        state.paths = self._address + ListedRows.BYTES
        state.n_paths, state.first_listed, state.sign = len(paths), len(paths) - listed, sign
        state.sizes = self._address + end * WORD
        end += listed
        for number, (participant, looked_up) in enumerate(paths):
            path = ListedPath.view(self._words, ListedRows.LENGTH + number * ListedPath.LENGTH)
            path.number, path.levels = participant.index, len(looked_up)
            path.lists = number >= len(paths) - listed
            path.places = self._address + end * WORD
            self._words[end : end + len(looked_up)] = looked_up
            end += len(looked_up)
            path.ranges = self._address + end * WORD
            end += (len(looked_up) + 1) * KeyRange.LENGTH
            self._paths.append(path)
        assert end == len(self._words)

    @property
    def operations(self) -> Operations:
        """What the last call took so far."""
        state = self._state
        return Operations(int(state.opens), int(state.nexts), int(state.seeks), int(state.failed))

    def pieces(
        self, indexes: Sequence[IndexVersion], bindings: np.ndarray, weights: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows, int64 (columns, n), at most ``LISTED_ROWS``, and their weights; at least one piece.

        ``indexes``: the plan's, without runs.  ``bindings``: int64 (bound variables, n), distinct, sorted for
        sorted rows; ``weights``: int64 (n,).
        """
        versions = np.array([index.address for index in indexes], np.int64)
        self._words[_PROGRESS] = 0
        for path in self._paths:
            path.binding = -1
        at_end = False
        while not at_end:
            rows, row_weights, at_end = _list_rows(self._address, versions, bindings, weights, self._columns)
            yield rows, row_weights


_PROGRESS = slice(ListedRows.place("binding"), ListedRows.LENGTH)


def listing_of(plan: RegionPlan, bound: int, sign: int, columns: Sequence[int]) -> Listing | None:
    """The listing that a plan is below bindings of its first ``bound`` variables; None if it is none."""
    if plan.has_conditions or plan.tail < plan.depths or plan.listed < plan.depths or plan.counted:
        return None
    if any(one.negated for one in plan.participants):
        return None
    ends = [one for one in plan.participants if not any(_leads_on(one, other) for other in plan.participants)]
    if any(place >= bound for one in ends for place in one.places[:-1]):
        return None
    ends.sort(key=lambda one: (one.depth >= bound, one.depth))
    listed = [one.depth for one in ends if one.depth >= bound]
    if listed != list(range(bound, plan.depths)):
        return None
    paths = [(one, one.places[:-1] if one.depth >= bound else one.places) for one in ends]
    return Listing(paths, len(listed), sign, columns)


def _leads_on(first: Participant, second: Participant) -> bool:
    """Whether a participant is a level of an atom above another."""
    n = len(first.places)
    return first.index == second.index and len(second.places) > n and second.places[:n] == first.places


# -- kernels ------------------------------------------------------------------------------------


@part(makes_arrays=True)
def with_room(rows, weights, n_rows, n_more):
    """Rows, int64 (columns, room), and weights, of which the first ``n_rows`` stay, with room for more."""
    if n_rows + n_more <= len(weights):
        return rows, weights
    room = max(2 * len(weights), n_rows + n_more)
    more_rows, more_weights = np.empty((rows.shape[0], room), np.int64), np.empty(room, np.int64)
    for row in range(n_rows):
        for column in range(rows.shape[0]):
            more_rows[column, row] = rows[column, row]
        more_weights[row] = weights[row]
    return more_rows, more_weights


@part(forceinline=True)
def _look_up(listing, path, index, bindings, binding):
    """Set a path's ranges to those below a binding; how many keys there are in the last one.

    index: address of the path's version.
    """
    levels, before = path.levels, path.binding
    path.binding = binding
    stays = before >= 0
    if not stays:
        first = range_at(path.ranges)
        first.start, first.at, first.end = 0, 0, level_at(index + INDEX).length
    places = view(path.places, levels)
    for number in range(levels):
        key = bindings[places[number], binding]
        stays = stays and bindings[places[number], before] == key
        if stays:
            continue
        level = level_at(index + INDEX + number * LEVEL)
        here, below = range_at(path.ranges + number * RANGE), range_at(path.ranges + (number + 1) * RANGE)
        keys = view(level.keys, here.end)
        here.at = _place_of(index_at(index), number, keys, here, key)
        first, last = np.int64(0), np.int64(0)
        if here.at < here.end and keys[here.at] == key:
            if number + 1 < levels or path.lists:
                children = view(level.children, here.at + 2)
                first, last = children[here.at], children[here.at + 1]
            else:
                last = np.int64(1)
        below.start, below.at, below.end = first, first, last
        listing.opens += 1
    last_range = range_at(path.ranges + levels * RANGE)
    return last_range.end - last_range.start


@part(forceinline=True)
def _place_of(index, level, keys, here, key):
    """The least position of a range whose key is not below ``key``, from where the last look-up landed."""
    start, end, at = here.start, here.end, here.at
    if level == 0 and index.ranks:
        return ranked(index.ranks, index.first_key, index.spread, start, end, key)
    if at < end and keys[at] <= key:
        return gallop(keys, at, end, key)
    return lower_bound(keys, start, at, key)


@part(forceinline=True)
def _write_product(keys, first, size, inner, offset, rows, column, at, count):
    """Write one column of a product from its row ``offset`` on: each key ``inner`` times, over and over.

    keys: int64, of which ``size`` from ``first`` on are listed; rows: int64 (columns, room), written from row
    ``at`` on, ``count`` rows.
    """
    place, left = np.int64(0), inner
    if offset > 0:
        place, left = (offset // inner) % size, inner - offset % inner
    row, end = at, at + count
    while row < end:
        key = keys[first + place]
        stop = min(end, row + left)
        while row < stop:
            rows[column, row] = key
            row += 1
        left = inner
        place = place + 1 if place + 1 < size else np.int64(0)


@part
def _open_binding(listing, indexes, bindings):
    """Look all paths up below the next binding: how many rows it has, and whether an index lacks a key."""
    product = np.int64(1)
    sizes = view(listing.sizes, listing.n_paths - listing.first_listed)
    for number in range(listing.n_paths):
        path = path_at(listing.paths + number * PATH)
        found = _look_up(listing, path, indexes[path.number], bindings, listing.binding)
        if found == 0:
            return np.int64(0), path.levels > 0
        if number >= listing.first_listed:
            sizes[number - listing.first_listed] = found
            listing.opens += product
            product *= found
            listing.nexts += product
    return product, False


@part
def _fill(listing, indexes, bindings, weights, columns, rows, row_weights, n_rows):
    """Write rows behind the first ``n_rows`` until there is no room, no binding, or a slice of work is done.

    Returns how many rows there are.  rows: int64 (columns, room), row_weights: int64 (room,), both written;
    the others as of _list_rows.
    """
    n = bindings.shape[1]
    sizes = view(listing.sizes, listing.n_paths - listing.first_listed)
    stop_at = listing.opens + listing.nexts + SLICE
    while listing.binding < n and n_rows < len(row_weights) and listing.opens + listing.nexts < stop_at:
        binding, offset = listing.binding, listing.offset
        if offset == 0:
            product, lacks = _open_binding(listing, indexes, bindings)
            if product == 0:
                listing.failed += lacks
                listing.binding = binding + 1
                continue
        else:
            product = np.int64(1)
            for number in range(len(sizes)):
                product *= sizes[number]
        count = min(product - offset, len(row_weights) - n_rows)
        _write_columns(listing, indexes, bindings, columns, rows, n_rows, count)
        weight = listing.sign * weights[binding]
        for row in range(n_rows, n_rows + count):
            row_weights[row] = weight
        n_rows += count
        listing.offset = offset + count
        if offset + count == product:
            listing.binding, listing.offset = binding + 1, 0
    return n_rows


@part(forceinline=True)
def _write_columns(listing, indexes, bindings, columns, rows, n_rows, count):
    """Write ``count`` rows of the binding, from its row ``offset`` on, behind the first ``n_rows``."""
    bound = bindings.shape[0]
    sizes = view(listing.sizes, listing.n_paths - listing.first_listed)
    for column in range(len(columns)):
        depth = columns[column]
        if depth < bound:
            key = bindings[depth, listing.binding]
            for row in range(n_rows, n_rows + count):
                rows[column, row] = key
            continue
        inner = np.int64(1)
        for number in range(depth - bound + 1, len(sizes)):
            inner *= sizes[number]
        path = path_at(listing.paths + (listing.first_listed + depth - bound) * PATH)
        level = level_at(indexes[path.number] + INDEX + path.levels * LEVEL)
        here = range_at(path.ranges + path.levels * RANGE)
        start, end = here.start, here.end
        keys = view(level.keys, end)
        _write_product(keys, start, end - start, inner, listing.offset, rows, column, n_rows, count)


@kernel(makes_arrays=True)
def _list_rows(where, indexes, bindings, weights, columns):
    """List rows from where the listing is; returns rows, int64 (columns, n), weights, and whether all are.

    where: address of the ListedRows; indexes: int64, the address of the memory of each index's version;
    bindings: int64 (bound, n), weights: int64 (n,), both only read; columns: int64, the depths of the rows.
    """
    listing = listing_at(where)
    n = bindings.shape[1]
    room = np.int64(16)
    while room < LISTED_ROWS and room < 2 * (n - listing.binding):
        room *= 2
    rows, row_weights = np.empty((len(columns), room), np.int64), np.empty(room, np.int64)
    stop_at = listing.opens + listing.nexts + SLICE
    n_rows = np.int64(0)
    while listing.binding < n and n_rows < LISTED_ROWS and listing.opens + listing.nexts < stop_at:
        rows, row_weights = with_room(rows, row_weights, n_rows, np.int64(1))
        n_rows = _fill(listing, indexes, bindings, weights, columns, rows, row_weights, n_rows)
    return first_rows(rows, n_rows), row_weights[:n_rows].copy(), listing.binding == n
