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
2. ``terms`` hold addresses of arrays that the object keeps.
3. Rows of one search come in the order of the bindings, so their weights are found by one walk.

Cost: that of the searches, and O(columns) per row.  A buffer of ``BUFFERED_ROWS`` rows is written and emptied
in turn, so memory beside it is that of the rows, up to twice.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import int64

from indices.calls_by_address import caller_of, code_address
from indices.compiled import kernel, part
from indices.records import WORD, Record, record_at
from lftj.errors import RangeError
from lftj.memory import address, view
from lftj.process import debug
from lftj.search.machine import plan_check
from lftj.search.machine.plan import RegionPlan
from lftj.search.machine.search import SEARCH_REGIONS, add_up_counts, begin, search_regions
from lftj.search.records import (
    STATUS_DONE,
    STATUS_FULL,
    STATUS_OVERFLOW,
    STATUS_PAUSED,
    search_at,
)
from lftj.search.regions.evaluation import Operations, OverBudget
from lftj.search.regions.listing import Listing, listing_of, with_room
from lftj.search.shares import SLICE
from lftj.storage.catalog import IndexUse
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import multiply_by_tuples
from lftj.storage.signed_rows import first_rows

BUFFERED_ROWS = 1 << 10


class Term(Record):
    """One of the searches."""

    search: int  # its Search
    code: int  # where the code of search_regions is
    sign: int
    places: int  # list of the depths that become columns
    indexes: int  # list of the numbers of its indices, and how many
    n_indexes: int
    counted: int  # list of what is counted: per atom the number of its index, how many depths lead to the
    n_counted: int  # branches, and these; and how many atoms


class Progress(Record):
    """How far a call came."""

    term: int  # number of the search
    going: int  # whether that was begun
    opens: int  # operations of the searches that ended
    nexts: int
    seeks: int
    failed: int  # regions whose path failed


search_at_address = caller_of(search_regions, SEARCH_REGIONS)
term_at = record_at(Term)
progress_at = record_at(Progress)
TERM = Term.BYTES

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
        self._progress = np.zeros(Progress.LENGTH, np.int64)
        self._buffer = np.empty(max((plan.depths for plan in plans), default=0) * BUFFERED_ROWS, np.int64)
        self._listings: dict[int, Listing | None] = {}  # by the number of variables that are bound
        self._running: Listing | None = None
        self._kept: list[np.ndarray] = []
        with_plans = zip(self.searches, plans, strict=False)
        terms = [self._fields_of(search, plan) for search, plan in with_plans]
        self._terms = np.array(terms, np.int64).reshape(-1, Term.LENGTH)

    def _fields_of(self, search: WeightedSearch, plan: RegionPlan) -> list[int]:
        """The fields of a search's Term, whose lists and memory are kept."""
        if debug.enabled:
            branches = [participant.places for participant, _ in plan.counted]
            plan_check.check_term(search.places, branches, plan.listed, plan.depths)
        numbers = [self.uses.index(use) for use in plan.indexes]
        counted: list[int] = []
        for participant, _ in plan.counted:
            counted += [numbers[participant.index], len(participant.places), *participant.places]
        return Term.fields(
            search=self._keep(plan.new_memory(record=False)),
            code=code_address(search_regions, SEARCH_REGIONS),
            sign=search.sign,
            places=self._keep(search.places),
            indexes=self._keep(numbers),
            n_indexes=len(numbers),
            counted=self._keep(counted),
            n_counted=len(plan.counted),
        )

    def _keep(self, items: Sequence[int] | np.ndarray) -> int:
        """The address of int64 items, which stay there as long as the object lives."""
        self._kept.append(np.asarray(items, np.int64))
        return address(self._kept[-1])

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
        return Operations(*self._progress.tolist()[_OPERATIONS:])

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
        columns = len(self.searches[0].places)
        status = STATUS_PAUSED
        while status == STATUS_PAUSED:
            rows, row_weights, status = _search_all(
                self._terms, columns, memories, bindings, weights, self._buffer, limit, progress
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
def _weigh(term, bindings, weights, found, n_found, binding, out):
    """Write the weight of each row: its binding's, times the assignments counted; returns the last binding.

    found: int64 (depths, capacity), the first ``n_found`` rows; binding: the number of one that does not
    come behind the first row's; out: int64, written.
    """
    search = search_at(term.search)
    counts = search.listed < search.depths
    for row in range(n_found):
        apart = True
        while apart:
            apart = False
            for depth in range(bindings.shape[0]):
                apart = apart or bindings[depth, binding] != found[depth, row]
            binding += apart
        out[row] = term.sign * weights[binding]
        if counts:
            out[row] *= found[search.listed, row]
    return binding


@part
def _copy_listed(source, listed, rows, at, n):
    """Write the first ``n`` items of some rows of ``source`` as rows[:, at : at + n].

    source, rows: int64, 2d; listed: int64, which rows.
    """
    for row in range(rows.shape[0]):
        its = listed[row]
        for place in range(n):
            rows[row, at + place] = source[its, place]


@part(makes_arrays=True)
def _count_tuples(term, indexes, found, out):
    """Multiply each weight by the tuples below the branches that are counted; False: int64 won't hold it.

    Arguments as of _weigh and _search_all.
    """
    where = term.counted
    for _ in range(term.n_counted):
        head = view(where, 2)
        number, levels = head[0], head[1]
        path = np.empty((levels, len(out)), np.int64)
        _copy_listed(found, view(where + 2 * WORD, levels), path, 0, len(out))
        if not multiply_by_tuples(indexes[number], path, out):
            return False
        where += (2 + levels) * WORD
    return True


@part(makes_arrays=True)
def _begin_term(term, indexes):
    """Let a term's search read these versions."""
    its = np.empty(term.n_indexes, np.int64)
    numbers = view(term.indexes, term.n_indexes)
    for place in range(len(its)):
        its[place] = indexes[numbers[place]]
    search = search_at(term.search)
    begin(search, its)
    add_up_counts(search)


@part
def _end_term(search, progress):
    """Add up what a term's search took; the next one is to begin."""
    progress.opens += search.opens
    progress.nexts += search.nexts
    progress.seeks += search.seeks
    progress.failed += search.failed_regions
    progress.term += 1
    progress.going = 0


SEARCH_ALL = (
    int64[:, ::1],
    int64,
    int64[::1],
    int64[:, ::1],
    int64[::1],
    int64[::1],
    int64,
    int64[::1],
)
"""The types of its arguments."""


@kernel(makes_arrays=True)
def _search_all(terms, columns, indexes, bindings, weights, buffer, budget, counted):
    """Run the searches from the one that is going on; returns rows, int64 (columns, n), weights, a STATUS_*.

    terms: int64, a Term per row; columns: how many; indexes: int64, the address of the memory of each
    version; bindings: int64 (variables, n), weights: int64 (n,), both only read; buffer: int64, written;
    budget: operations of all searches together; counted: int64, a Progress, written.
    STATUS_PAUSED: the budget is spent, or a slice of the work is done.
    """
    progress = progress_at(counted.ctypes.data)
    rows, row_weights, n_rows = np.empty((columns, 16), np.int64), np.empty(16, np.int64), np.int64(0)
    work = np.int64(0)
    status = STATUS_DONE
    while progress.term < terms.shape[0] and status == STATUS_DONE:
        term = term_at(terms.ctypes.data + progress.term * TERM)
        search = search_at(term.search)
        capacity = len(buffer) // search.depths
        found = buffer[: search.depths * capacity].reshape((search.depths, capacity))
        if not progress.going:
            _begin_term(term, indexes)
            progress.going = 1
        regions = _regions_below(bindings, search.depths)
        binding = np.int64(0)
        before = progress.opens + progress.nexts + progress.seeks
        status = STATUS_FULL
        while status == STATUS_FULL:
            taken = before + search.opens + search.nexts + search.seeks
            if taken > budget or work >= SLICE:
                status = STATUS_PAUSED
                break
            left = min(SLICE - work, budget - taken + 1)
            status = search_at_address(term.code, term.search, indexes, regions, found, left)
            work += search.work
            n_found = search.rows
            if status == STATUS_PAUSED or n_found == 0:
                continue
            rows, row_weights = with_room(rows, row_weights, n_rows, n_found)
            out = row_weights[n_rows : n_rows + n_found]
            binding = _weigh(term, bindings, weights, found, n_found, binding, out)
            if not _count_tuples(term, indexes, found, out):
                return first_rows(rows, 0), row_weights[:0].copy(), STATUS_OVERFLOW
            _copy_listed(found, view(term.places, columns), rows, n_rows, n_found)
            n_rows += n_found
            search.rows = 0
        if status == STATUS_DONE or taken > budget:
            _end_term(search, progress)
    return first_rows(rows, n_rows), row_weights[:n_rows].copy(), status


_OPERATIONS = Progress.place("opens")
