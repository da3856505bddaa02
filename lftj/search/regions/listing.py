"""Searches in which nothing is sought: below each binding the branches of some indices are listed.

    path(a, c) <- path(a, b), edge(b, c).               below (a, b): the c of edge[b]
    same(x, y) <- same(p, q), edge(p, x), edge(q, y).   below (p, q): the x of edge[p] times the y of edge[q]

Where each variable behind the bound ones stands in one atom, as its last, and all else of that atom is bound,
there is no intersection: the rows are products of ranges of keys.  They are written column by column.

Invariants

1. Rows are those of the region search, in the same order, with the weight of their binding.
2. Every index is a base alone: versions with runs are for the region search.
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
from lftj.memory import view
from lftj.search.layout import D_CONDITIONS, DEPTH_FIELDS, H_DEPTH_ROWS
from lftj.search.regions.evaluation import Operations
from lftj.search.regions.plan import Participant, RegionPlan
from lftj.search.shares import SLICE
from lftj.storage.index_version import IndexVersion
from lftj.storage.seek import gallop, lower_bound, ranked
from lftj.storage.version_memory import (
    X_BASE,
    X_HEADER,
    X_LEVEL_FIELDS,
    X_RANKS,
    X_SPREAD,
    XL_CHILDREN,
    XL_KEYS,
    XL_LENGTH,
)

LISTED_ROWS = 1 << 16
"""Rows of a piece, at most; a power of 2."""

# -- a path: a row of ``paths``, an atom and the depths of its variables -----------------------
Y_INDEX = 0  # number of its index
Y_LISTS = 1  # whether its last level is listed; else all of them are looked up
Y_LEVELS = 2  # levels that are looked up
Y_PLACES = 3  # their depths; all are bound

# -- how far a listing came --------------------------------------------------------------------
LG_BINDING = 0  # number of the binding
LG_OFFSET = 1  # rows of it that were listed
LG_OPENS = 2  # operations, as the region search counts them
LG_NEXTS = 3
LG_SEEKS = 4
LG_FAILED = 5  # bindings of which an index lacks a key
LISTING_FIELDS = 6

# -- a level of a path: where the kernel stands ------------------------------------------------
K_FROM = 0  # the keys below what is bound above, half-open
K_TO = 1
K_AT = 2  # where the last look-up landed
K_BINDING = 3  # level 0: the binding that was looked up last, -1 for none
POSITION_FIELDS = 4


class Listing:
    """A plan that is a listing, below bindings of so many variables."""

    def __init__(self, paths: np.ndarray, sign: int, columns: Sequence[int]) -> None:
        """``paths``: int64 (paths, fields), those that list last; ``columns``: the depths of the rows."""
        self._paths = paths
        self._sign = sign
        self._columns = np.array(columns, np.int64)
        self._positions = np.zeros((len(paths), paths.shape[1], POSITION_FIELDS), np.int64)
        self._sizes = np.zeros(int(paths[:, Y_LISTS].sum()), np.int64)
        self._progress = np.zeros(LISTING_FIELDS, np.int64)

    @property
    def operations(self) -> Operations:
        """What the last call took so far."""
        return Operations(*self._progress.tolist()[LG_OPENS:])

    def pieces(
        self, indexes: Sequence[IndexVersion], bindings: np.ndarray, weights: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows, int64 (columns, n), at most ``LISTED_ROWS``, and their weights; at least one piece.

        ``indexes``: the plan's, without runs.  ``bindings``: int64 (bound variables, n), distinct, sorted for
        sorted rows; ``weights``: int64 (n,).
        """
        memories = np.array([index.address for index in indexes], np.int64)
        progress = self._progress
        progress.fill(0)
        self._positions[:, 0, K_BINDING] = -1
        at_end = False
        while not at_end:
            rows, row_weights, at_end = _list_rows(
                self._paths, memories, bindings, weights, self._sign, self._columns, self._positions,
                self._sizes, progress,
            )  # fmt: skip
            yield rows, row_weights


def listing_of(plan: RegionPlan, bound: int, sign: int, columns: Sequence[int]) -> Listing | None:
    """The listing that a plan is below bindings of its first ``bound`` variables; None if it is none."""
    rows = plan.memory[plan.memory[H_DEPTH_ROWS] + DEPTH_FIELDS * np.arange(plan.depths) + D_CONDITIONS]
    if rows.any() or plan.tail < plan.depths or plan.listed < plan.depths or plan.counted:
        return None
    if any(one.negated for one in plan.participants):
        return None
    ends = [one for one in plan.participants if not any(_leads_on(one, other) for other in plan.participants)]
    if any(place >= bound for one in ends for place in one.places[:-1]):
        return None
    ends.sort(key=lambda one: (one.depth >= bound, one.depth))
    if [one.depth for one in ends if one.depth >= bound] != list(range(bound, plan.depths)):
        return None
    fields = Y_PLACES + max(len(one.places) for one in ends)
    paths = np.zeros((len(ends), fields), np.int64)
    for row, one in zip(paths, ends, strict=True):
        looked_up = one.places[:-1] if one.depth >= bound else one.places
        row[[Y_INDEX, Y_LISTS, Y_LEVELS]] = one.index, one.depth >= bound, len(looked_up)
        row[Y_PLACES : Y_PLACES + len(looked_up)] = looked_up
    return Listing(paths, sign, columns)


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
def _look_up(memory, paths, path, positions, bindings, binding, progress):
    """Set a path's ranges to those below a binding; how many keys there are in the last one.

    memory: address of the version's; paths: Y_* by path; positions: K_* by path and level, written.
    """
    levels = paths[path, Y_LEVELS]
    index = view(memory, X_HEADER + X_LEVEL_FIELDS * (levels + 1))
    before = positions[path, 0, K_BINDING]
    positions[path, 0, K_BINDING] = binding
    stays = before >= 0
    if not stays:
        positions[path, 0, K_FROM], positions[path, 0, K_AT] = 0, 0
        positions[path, 0, K_TO] = index[X_HEADER + XL_LENGTH]
    for level in range(levels):
        place = paths[path, Y_PLACES + level]
        key = bindings[place, binding]
        stays = stays and bindings[place, before] == key
        if stays:
            continue
        fields = X_HEADER + level * X_LEVEL_FIELDS
        start, end = positions[path, level, K_FROM], positions[path, level, K_TO]
        keys = view(index[fields + XL_KEYS], end)
        at = positions[path, level, K_AT]
        if level == 0 and index[X_RANKS]:
            at = ranked(index[X_RANKS], index[X_BASE], index[X_SPREAD], start, end, key)
        elif at < end and keys[at] <= key:
            at = gallop(keys, at, end, key)
        else:
            at = lower_bound(keys, start, at, key)
        positions[path, level, K_AT] = at
        first, last = np.int64(0), np.int64(0)
        if at < end and keys[at] == key:
            if level + 1 < levels or paths[path, Y_LISTS]:
                children = view(index[fields + XL_CHILDREN], at + 2)
                first, last = children[at], children[at + 1]
            else:
                last = np.int64(1)
        positions[path, level + 1, K_FROM], positions[path, level + 1, K_TO] = first, last
        positions[path, level + 1, K_AT] = first
        progress[LG_OPENS] += 1
    return positions[path, levels, K_TO] - positions[path, levels, K_FROM]


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
def _fill(
    paths, memories, bindings, weights, sign, columns, positions, sizes, rows, row_weights, n_rows, progress
):
    """Write rows behind the first ``n_rows`` until there is no room, no binding, or a slice of work is done.

    Returns how many rows there are.  rows: int64 (columns, room), row_weights: int64 (room,), both written;
    the others as of _list_rows.
    """
    bound, n = bindings.shape
    first_listed = len(paths) - len(sizes)
    stop_at = progress[LG_OPENS] + progress[LG_NEXTS] + SLICE
    while (
        progress[LG_BINDING] < n
        and n_rows < len(row_weights)
        and progress[LG_OPENS] + progress[LG_NEXTS] < stop_at
    ):
        binding, offset = progress[LG_BINDING], progress[LG_OFFSET]
        product, lacks = np.int64(1), False
        if offset == 0:
            for path in range(len(paths)):
                memory = memories[paths[path, Y_INDEX]]
                found = _look_up(memory, paths, path, positions, bindings, binding, progress)
                if found == 0:
                    lacks = paths[path, Y_LEVELS] > 0
                    product = np.int64(0)
                    break
                if path >= first_listed:
                    sizes[path - first_listed] = found
                    progress[LG_OPENS] += product
                    product *= found
                    progress[LG_NEXTS] += product
            if product == 0:
                progress[LG_FAILED] += lacks
                progress[LG_BINDING] = binding + 1
                continue
        else:
            for number in range(len(sizes)):
                product *= sizes[number]
        count = min(product - offset, len(row_weights) - n_rows)
        for column in range(len(columns)):
            depth = columns[column]
            if depth < bound:
                key = bindings[depth, binding]
                for row in range(n_rows, n_rows + count):
                    rows[column, row] = key
                continue
            inner = np.int64(1)
            for number in range(depth - bound + 1, len(sizes)):
                inner *= sizes[number]
            path = first_listed + depth - bound
            level = paths[path, Y_LEVELS]
            index = view(memories[paths[path, Y_INDEX]], X_HEADER + X_LEVEL_FIELDS * (level + 1))
            start, end = positions[path, level, K_FROM], positions[path, level, K_TO]
            keys = view(index[X_HEADER + level * X_LEVEL_FIELDS + XL_KEYS], end)
            _write_product(keys, start, end - start, inner, offset, rows, column, n_rows, count)
        weight = sign * weights[binding]
        for row in range(n_rows, n_rows + count):
            row_weights[row] = weight
        n_rows += count
        progress[LG_OFFSET] = offset + count
        if offset + count == product:
            progress[LG_BINDING], progress[LG_OFFSET] = binding + 1, 0
    return n_rows


@kernel(makes_arrays=True)
def _list_rows(paths, memories, bindings, weights, sign, columns, positions, sizes, progress):
    """List rows from where ``progress`` is; returns rows, int64 (columns, n), weights, and whether all are.

    paths: int64 (paths, fields), Y_*; memories: int64, the address of the memory of each index's version;
    bindings: int64 (bound, n), weights: int64 (n,), both only read; columns: int64, the depths of the rows;
    positions: int64 (paths, levels, POSITION_FIELDS), K_*, sizes: int64, of the ranges that are listed, and
    progress: LG_*, written.
    """
    n = bindings.shape[1]
    room = np.int64(16)
    while room < LISTED_ROWS and room < 2 * (n - progress[LG_BINDING]):
        room *= 2
    rows, row_weights = np.empty((len(columns), room), np.int64), np.empty(room, np.int64)
    stop_at = progress[LG_OPENS] + progress[LG_NEXTS] + SLICE
    n_rows = np.int64(0)
    while (
        progress[LG_BINDING] < n
        and n_rows < LISTED_ROWS
        and progress[LG_OPENS] + progress[LG_NEXTS] < stop_at
    ):
        rows, row_weights = with_room(rows, row_weights, n_rows, np.int64(1))
        n_rows = _fill(
            paths, memories, bindings, weights, sign, columns, positions, sizes, rows, row_weights, n_rows,
            progress,
        )  # fmt: skip
    return rows[:, :n_rows].copy(), row_weights[:n_rows].copy(), progress[LG_BINDING] == n
