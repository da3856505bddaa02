"""Several searches below the same signed bindings, in one call: the terms of a delta rule.

    rows = SUM_s  sign_s * { binding and keys below it in search s : weight of the binding * what is counted }

A change of one relation is a change of each atom that reads it, so each of these has a search of the others;
all of them begin with the changed branches, the *bindings*.  A small change costs so little in each that
calling it from Python would cost more: here they run one after the other, and what they need is
written down once, when they are made.

A search that is alone and only lists what indices hold below a binding needs no search machine
(:mod:`lftj.search.regions.listing`), where these have no runs.

Invariants

1. Buffers and states belong to one call at a time; what leaves them is copied.
2. ``searches`` and ``lists`` hold addresses of arrays that the object keeps.
3. Rows of one search come in the order of the bindings, so their weights are found by one walk.

Cost: that of the searches, and O(columns) per row.  A buffer of ``BUFFERED_ROWS`` rows is written and emptied
in turn, so memory beside it is that of the rows, up to twice.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from lftj.errors import RangeError
from lftj.memory import address, frozen_view, view
from lftj.process import debug
from lftj.search import plan_check
from lftj.search.layout import (
    MOVE_REGION,
    NEXTS,
    OPENS,
    R_COUNTERS,
    R_FAILED,
    R_FAILED_REGIONS,
    R_MARKED,
    R_MOVE,
    R_ROWS,
    R_WORK,
    REGISTERS,
    SEEKS,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_OVERFLOW,
    STATUS_PAUSED,
)
from lftj.search.regions.evaluation import Operations, OverBudget
from lftj.search.regions.listing import Listing, listing_of, with_room
from lftj.search.regions.plan import RegionPlan
from lftj.search.regions.search import run_search
from lftj.search.shares import SLICE
from lftj.storage.catalog import IndexUse
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import multiply_weights
from lftj.storage.version_memory import X_HEADER, X_LEVEL_FIELDS, X_LEVELS, X_RUN_FIELDS, X_RUNS

BUFFERED_ROWS = 1 << 10

# -- a search: a row of ``searches`` -----------------------------------------------------------
S_PLAN = 0  # address and length of its plan
S_PLAN_LENGTH = 1
S_STATE = 2  # of its state
S_STATE_LENGTH = 3
S_LOG = 4  # of its log, in which nothing is written
S_LOG_LENGTH = 5
S_DEPTHS = 6
S_LISTED = 7  # depths that its rows hold; if not all, the column behind has the assignments below each
S_SIGN = 8
S_INDEXES = 9  # place in ``lists`` of the numbers of its indices, and how many
S_N_INDEXES = 10
S_PLACES = 11  # place in ``lists`` of the depths that become columns
S_COUNTED = 12  # place in ``lists`` of what is counted: per atom the number of its index, how many
S_N_COUNTED = 13  # depths lead to the branches, and these; and how many atoms
SEARCH_FIELDS = 14

# -- how far a call came -----------------------------------------------------------------------
P_SEARCH = 0  # number of the search
P_GOING = 1  # whether that was begun
P_COUNTERS = 2  # operations of the searches that ended: OPENS, NEXTS, SEEKS
P_FAILED = 5  # regions whose path failed
PROGRESS_FIELDS = 6

NO_BUDGET = 1 << 62


class WeightedSearch(NamedTuple):
    """One of the searches.

    ``plan``: None where there is nothing to search, then it is the only one, and the bindings are its rows.
    ``sign``: 1 or -1.  ``places``: the depths that become the columns of the rows, in their order.
    """

    plan: RegionPlan | None
    sign: int
    places: tuple[int, ...]


class WeightedSearches:
    """Searches below bindings of as many variables, with as many columns; at least one."""

    def __init__(self, searches: Sequence[WeightedSearch]) -> None:
        self.searches = tuple(searches)
        plans = [search.plan for search in self.searches if search.plan is not None]
        assert len(plans) == len(self.searches) or len(self.searches) == 1
        self.n_searched = len(plans)
        """How many have something to search."""
        self.uses: tuple[IndexUse, ...] = tuple(dict.fromkeys(use for plan in plans for use in plan.indexes))
        """The indices that they read."""
        self._memories = np.empty(len(self.uses), np.int64)
        self._progress = np.zeros(PROGRESS_FIELDS, np.int64)
        self._buffer = np.empty(max((plan.depths for plan in plans), default=0) * BUFFERED_ROWS, np.int64)
        self._listings: dict[int, Listing | None] = {}  # by the number of variables that are bound
        self._running: Listing | None = None
        self._kept: list[np.ndarray] = []
        lists: list[int] = [len(self.searches[0].places)]
        with_plans = zip(self.searches, plans, strict=False)
        rows = [self._fields_of(search, plan, lists) for search, plan in with_plans]
        self._searches, self._lists = np.array(rows, np.int64), np.array(lists, np.int64)

    def _fields_of(self, search: WeightedSearch, plan: RegionPlan, lists: list[int]) -> list[int]:
        """The S_* fields of a search; ``lists`` gets what they point to."""
        fields = [0] * SEARCH_FIELDS
        fields[S_SIGN] = search.sign
        fields[S_PLACES] = len(lists)
        lists += search.places
        state, log = plan.new_state(), np.zeros(plan.log_length, np.int64)
        self._kept += [plan.unrecorded, state, log]
        for field, array in zip((S_PLAN, S_STATE, S_LOG), self._kept[-3:], strict=True):
            fields[field], fields[field + 1] = address(array), len(array)
        fields[S_DEPTHS], fields[S_LISTED] = plan.depths, plan.listed
        if debug.enabled:
            branches = [participant.places for participant, _ in plan.counted]
            plan_check.check_term(search.places, branches, plan.listed, plan.depths)
        numbers = [self.uses.index(use) for use in plan.indexes]
        fields[S_INDEXES], fields[S_N_INDEXES] = len(lists), len(numbers)
        lists += numbers
        fields[S_COUNTED], fields[S_N_COUNTED] = len(lists), len(plan.counted)
        for participant, _ in plan.counted:
            lists += [numbers[participant.index], len(participant.places), *participant.places]
        return fields

    def run(
        self,
        indexes: Sequence[IndexVersion],
        bindings: np.ndarray,
        weights: np.ndarray,
        budget: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, Operations]:
        """All rows, int64 (columns, n), which may repeat; their weights; and what the searches took.

        Arguments, and what is raised, as of :meth:`pieces`.
        """
        parts = list(self.pieces(indexes, bindings, weights, budget))
        if len(parts) == 1:
            return *parts[0], self.operations
        every_row, every_weight = zip(*parts, strict=True)
        return np.concatenate(every_row, axis=1), np.concatenate(every_weight), self.operations

    @property
    def operations(self) -> Operations:
        """What the last call took so far."""
        if self._running is not None:
            return self._running.operations
        return Operations(*self._progress.tolist()[P_COUNTERS:])

    def lists(self, indexes: Sequence[IndexVersion], bound: int) -> bool:
        """Whether rows below bindings of so many variables are listed, so that these need not be sorted."""
        return self._listing(indexes, bound) is not None

    def _listing(self, indexes: Sequence[IndexVersion], bound: int) -> Listing | None:
        """What lists the rows instead of searching them, if that can be."""
        if len(self.searches) > 1 or self.n_searched == 0 or any(index.runs for index in indexes):
            return None
        if bound not in self._listings:
            plan, sign, places = self.searches[0]
            assert plan is not None
            self._listings[bound] = listing_of(plan, bound, sign, places)
        return self._listings[bound]

    def pieces(
        self,
        indexes: Sequence[IndexVersion],
        bindings: np.ndarray,
        weights: np.ndarray,
        budget: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """:meth:`run`, one slice of the work after the other, at least one.

        ``indexes``: of ``uses``.  ``bindings``: int64 (variables, n), sorted and distinct, n > 0, the values
        of each search's first depths; ``weights``: int64 (n,).
        Raises OverBudget soon after more than ``budget`` operations, and RangeError for a weight that is
        beyond 63 bits.
        """
        if not self.n_searched:
            (search,) = self.searches
            yield bindings[list(search.places)], search.sign * weights
            return
        limit = NO_BUDGET if budget is None else budget
        self._running = listing = self._listing(indexes, len(bindings))
        if listing is not None:
            for rows, row_weights in listing.pieces(indexes, bindings, weights):
                if self.operations.total > limit:
                    raise OverBudget(self.operations)
                yield rows, row_weights
            return
        if debug.enabled:
            for search in self.searches:
                plan_check.check_bindings(len(bindings), search.plan.least_bound if search.plan else 0)
        memories, progress = self._memories, self._progress
        for number, index in enumerate(indexes):
            memories[number] = index.address
        progress.fill(0)
        status = STATUS_PAUSED
        while status == STATUS_PAUSED:
            rows, row_weights, status = _search_all(
                self._searches, self._lists, memories, bindings, weights, self._buffer, limit, progress
            )
            if status == STATUS_OVERFLOW:
                raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
            if status == STATUS_PAUSED and self.operations.total > limit:
                raise OverBudget(self.operations)
            yield rows, row_weights


@part(makes_arrays=True)
def _regions_below(bindings, depths):
    """Sorted bindings of the first variables as regions of a search: int64 (n, 2 + depths)."""
    bound, n = bindings.shape
    regions = np.zeros((n, 2 + depths), np.int64)
    for region in range(n):
        regions[region, 0] = bound
        regions[region, 1] = bindings[bound - 1, region]
        for depth in range(bound):
            regions[region, 2 + depth] = bindings[depth, region]
    return regions


@part
def _reset(state):
    """Let a state begin with its first region."""
    state[:REGISTERS] = 0
    state[R_MOVE], state[R_FAILED], state[R_MARKED] = MOVE_REGION, -1, -1


@part
def _weigh(search, bindings, weights, found, n_found, binding, out):
    """Write the weight of each row: its binding's, times the assignments counted; returns the last binding.

    search: S_* fields; found: int64 (depths, capacity), the first ``n_found`` rows; binding: the number of
    one that does not come behind the first row's; out: int64, written.
    """
    counts = search[S_LISTED] < search[S_DEPTHS]
    for row in range(n_found):
        apart = True
        while apart:
            apart = False
            for depth in range(bindings.shape[0]):
                apart = apart or bindings[depth, binding] != found[depth, row]
            binding += apart
        out[row] = search[S_SIGN] * weights[binding]
        if counts:
            out[row] *= found[search[S_LISTED], row]
    return binding


@part
def _copy_listed(source, lists, first, rows, at, n):
    """Write the first ``n`` items of some rows of ``source`` as rows[:, at : at + n].

    source, rows: int64, 2d; lists: int64, which rows, from ``first`` on.
    """
    for row in range(rows.shape[0]):
        listed = lists[first + row]
        for place in range(n):
            rows[row, at + place] = source[listed, place]


@part(makes_arrays=True)
def _count_tuples(search, lists, memories, found, out):
    """Multiply each weight by the tuples below the branches that are counted; False: int64 won't hold it.

    Arguments as of _weigh.
    """
    at = search[S_COUNTED]
    for _ in range(search[S_N_COUNTED]):
        memory, levels = memories[lists[at]], lists[at + 1]
        path = np.empty((levels, len(out)), np.int64)
        _copy_listed(found, lists, at + 2, path, 0, len(out))
        header = view(memory, X_HEADER)
        length = X_HEADER + header[X_LEVELS] * X_LEVEL_FIELDS + header[X_RUNS] * X_RUN_FIELDS
        if not multiply_weights(view(memory, length), path, out):
            return False
        at += 2 + levels
    return True


@kernel(makes_arrays=True)
def _search_all(searches, lists, memories, bindings, weights, buffer, budget, progress):
    """Run the searches from P_SEARCH on; returns rows, int64 (columns, n), their weights and a STATUS_*.

    searches: int64 (searches, SEARCH_FIELDS); lists: int64, the number of columns first; memories: int64, the
    address of the memory of each index's version; bindings: int64 (variables, n), weights: int64 (n,), both
    only read; buffer: int64, written; budget: operations of all searches together; progress: P_*, written.
    STATUS_PAUSED: the budget is spent, or a slice of the work is done.
    """
    rows, row_weights, n_rows = np.empty((lists[0], 16), np.int64), np.empty(16, np.int64), np.int64(0)
    work = np.int64(0)
    status = STATUS_DONE
    while progress[P_SEARCH] < searches.shape[0] and status == STATUS_DONE:
        search = searches[progress[P_SEARCH]]
        plan = frozen_view(search[S_PLAN], search[S_PLAN_LENGTH])
        state, log = view(search[S_STATE], search[S_STATE_LENGTH]), view(search[S_LOG], search[S_LOG_LENGTH])
        depths = search[S_DEPTHS]
        capacity = len(buffer) // depths
        found = buffer[: depths * capacity].reshape((depths, capacity))
        indexes = np.empty(search[S_N_INDEXES], np.int64)
        for number in range(len(indexes)):
            indexes[number] = memories[lists[search[S_INDEXES] + number]]
        if not progress[P_GOING]:
            _reset(state)
            progress[P_GOING] = 1
        regions = _regions_below(bindings, depths)
        binding = np.int64(0)
        before = np.int64(0)
        for counter in range(P_COUNTERS, P_FAILED):
            before += progress[counter]
        status = STATUS_FULL
        while status == STATUS_FULL:
            taken = before + state[R_COUNTERS + OPENS] + state[R_COUNTERS + NEXTS] + state[R_COUNTERS + SEEKS]
            if taken > budget or work >= SLICE:
                status = STATUS_PAUSED
                break
            pause = min(SLICE - work, budget - taken + 1)
            status = run_search(plan, state, indexes, log, regions, found, pause)
            work += state[R_WORK]
            n_found = state[R_ROWS]
            if status == STATUS_PAUSED or n_found == 0:
                continue
            rows, row_weights = with_room(rows, row_weights, n_rows, n_found)
            out = row_weights[n_rows : n_rows + n_found]
            binding = _weigh(search, bindings, weights, found, n_found, binding, out)
            if not _count_tuples(search, lists, memories, found, out):
                return rows[:, :0].copy(), row_weights[:0].copy(), STATUS_OVERFLOW
            _copy_listed(found, lists, search[S_PLACES], rows, n_rows, n_found)
            n_rows += n_found
            state[R_ROWS] = 0
        if status == STATUS_DONE or taken > budget:
            for counter in (OPENS, NEXTS, SEEKS):
                progress[P_COUNTERS + counter] += state[R_COUNTERS + counter]
            progress[P_FAILED] += state[R_FAILED_REGIONS]
            progress[P_SEARCH] += 1
            progress[P_GOING] = 0
    return rows[:, :n_rows].copy(), row_weights[:n_rows].copy(), status
