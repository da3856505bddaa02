"""Versions of an index: a base trie and small later runs (ENGINE.md section 2).

A run is one flat int64 array: its sorted columns one after the other, then the
prefix sums of its weights::

    columns[0] (n), columns[1] (n), ..., sums (n + 1)      sums[i] = weight of the first i tuples

so the net weight of any range of tuples is two look-ups (a scan, ILFTJ 3.1).  A
branch is present in a version iff the number of base tuples below it and the
weights of the runs below it add up to more than 0.

Invariants (see :meth:`IndexVersion.check_invariants`)

1. A version never changes; versions share the base and the runs that they have
   in common.
2. Base and runs add up to weight 0 or 1 for every tuple; a run holds no tuple of
   weight 0, and its tuples increase strictly.
3. A run has more than twice the tuples of the run after it; all runs together
   have at most 1/``BASE_FRACTION`` of the base's tuples, or ``BASE_LEAST``: the *limit*.
4. ``memory`` describes the version to kernels (:mod:`lftj.storage.version_memory`) and stays
   valid as long as the version lives.
5. A first run of more than a quarter of the limit is on its way into the base: it stays as it is,
   whatever the run after it has, until the base with it is there.  Versions share that merge.
   Of a small base it waits for ``MERGED_LEAST`` tuples, or for half of the limit.

Cost: a change of m tuples costs O(m log m) and, amortised, O(log n) per tuple
for the merges of runs, and at most O(4 BASE_FRACTION) for the merge into the base, which is
one copy of the base's arrays (:mod:`lftj.storage.merged_trie`).  A change makes one
piece of that merge, and one more per ``PIECE_ROWS`` tuples; only a change of about as many
tuples as the limit makes all of it.  A merge of runs is made at once.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from indices.compiled import kernel, part
from lftj.memory import address, view
from lftj.process import debug
from lftj.storage.catalog import SearchView
from lftj.storage.merged_trie import TrieMerge, merged
from lftj.storage.net_weights import present
from lftj.storage.patch import Patch
from lftj.storage.signed_rows import Columns, gathered, net_rows, table_of
from lftj.storage.trie import Trie
from lftj.storage.version_memory import (
    X_HEADER,
    X_LEVEL_FIELDS,
    X_LEVELS,
    X_RANKS,
    X_RUN_FIELDS,
    X_RUNS,
    XR_LENGTH,
    XR_ROWS,
)

BASE_FRACTION = 8
BASE_LEAST = 4096
MERGED_LEAST = 4096
PIECE_ROWS = 8  # a merge is complete before the runs are at the limit: see test_index_version.py
MAX_RUNS = 40  # 2**40 tuples in runs: invariant 3 keeps their number below


@part(_nrt=False)
def compare_rows(a, a_length, i, b, b_length, j, levels):
    """Sign of (tuple i of run a) - (tuple j of run b), lexicographically."""
    for level in range(levels):
        left, right = a[level * a_length + i], b[level * b_length + j]
        if left != right:
            return -1 if left < right else 1
    return 0


@part(_nrt=False)
def merge_runs(a, a_length, b, b_length, levels, out):
    """Add two runs up; returns the number of tuples.  Weights that cancel leave no tuple.

    ``out``: int64 (levels + 1, a_length + b_length), a row per column; the last one gets the weights.
    """
    i, j, n = np.int64(0), np.int64(0), np.int64(0)
    a_sums, b_sums = levels * a_length, levels * b_length
    while i < a_length or j < b_length:
        if j == b_length:
            order = -1
        elif i == a_length:
            order = 1
        else:
            order = compare_rows(a, a_length, i, b, b_length, j, levels)
        weight = np.int64(0)
        if order <= 0:
            weight += a[a_sums + i + 1] - a[a_sums + i]
        if order >= 0:
            weight += b[b_sums + j + 1] - b[b_sums + j]
        if weight != 0:
            for level in range(levels):
                out[level, n] = a[level * a_length + i] if order <= 0 else b[level * b_length + j]
            out[levels, n] = weight
            n += 1
        i += order <= 0
        j += order >= 0
    return n


@part
def _flat_run(rows, weights, n):
    """The first ``n`` of sorted distinct rows and their weights as a run's flat array."""
    levels = rows.shape[0]
    flat = np.empty((levels + 1) * n + 1, dtype=np.int64)
    for level in range(levels):
        for row in range(n):
            flat[level * n + row] = rows[level, row]
    flat[levels * n] = 0
    for row in range(n):
        flat[levels * n + row + 1] = flat[levels * n + row] + weights[row]
    return flat


@part
def _merged_into(index, run, flat, n):
    """A flat array of ``n`` tuples and run number ``run`` of a version added up, and the number of tuples."""
    levels = index[X_LEVELS]
    fields = X_HEADER + levels * X_LEVEL_FIELDS + run * X_RUN_FIELDS
    length = index[fields + XR_LENGTH]
    other = view(index[fields + XR_ROWS], (levels + 1) * length + 1)
    out = np.empty((levels + 1, length + n), dtype=np.int64)
    n = merge_runs(other, length, flat, n, levels, out)
    return _flat_run(out[:levels], out[levels], n), n


@kernel
def _with_run(index, rows, weights, fixed):
    """The X_* memory of a version and one more run, merged as invariant 3 has it.

    index: X_* memory; rows: int64 (levels, n), sorted and distinct; weights: int64 (n,), none 0; fixed: how
    many of the first runs stay as they are.  Returns the memory, the new run's flat array and number of
    tuples, and how many of the version's runs stay before it.
    """
    levels = rows.shape[0]
    runs = X_HEADER + levels * X_LEVEL_FIELDS
    n = np.int64(len(weights))
    flat = _flat_run(rows, weights, n)
    kept = index[X_RUNS]
    while kept > fixed and index[runs + (kept - 1) * X_RUN_FIELDS + XR_LENGTH] <= 2 * n:
        kept -= 1
        flat, n = _merged_into(index, kept, flat, n)
    end = runs + kept * X_RUN_FIELDS
    memory = np.empty(end + (X_RUN_FIELDS if n > 0 else 0), dtype=np.int64)
    for field in range(end):
        memory[field] = index[field]
    memory[X_RUNS] = kept
    if n > 0:
        memory[X_RUNS] = kept + 1
        memory[end + XR_ROWS] = flat.ctypes.data
        memory[end + XR_LENGTH] = n
    return memory, flat, n, kept


@kernel
def added_runs(index):
    """The runs of a version added up: sorted distinct rows, int64 (levels, n), and weights (n,), none 0.

    index: X_* memory.
    """
    levels = index[X_LEVELS]
    flat, n = np.zeros(1, dtype=np.int64), np.int64(0)
    for run in range(index[X_RUNS] - 1, -1, -1):
        flat, n = _merged_into(index, run, flat, n)
    rows = flat[: levels * n].copy().reshape((levels, n))
    return rows, np.diff(flat[levels * n :])


class IndexRun:
    """Some changed tuples: ``rows`` is the flat array of the module header."""

    __slots__ = ("__weakref__", "n_tuples", "rows")

    def __init__(self, rows: np.ndarray, n_tuples: int) -> None:
        self.rows = rows
        self.n_tuples = n_tuples

    def columns(self, levels: int) -> list[np.ndarray]:
        return [self.rows[level * self.n_tuples : (level + 1) * self.n_tuples] for level in range(levels)]

    @property
    def weights(self) -> np.ndarray:
        return np.diff(self.rows[len(self.rows) - self.n_tuples - 1 :])


Runs = tuple[IndexRun, ...]


def with_run(
    memory: np.ndarray, runs: Runs, rows: np.ndarray, weights: np.ndarray, fixed: int = 0
) -> tuple[np.ndarray, Runs]:
    """The memory and the runs of a version after one more run of net rows (see ``signed_rows``).

    ``fixed``: how many of the first runs stay as they are.
    """
    memory, flat, n_tuples, kept = _with_run(memory, rows, weights, fixed)
    return memory, (*runs[:kept], IndexRun(flat, n_tuples)) if n_tuples else runs[:kept]


class DescribedBase:
    """The leaf offsets of a base, the fields of ``memory`` that describe it, and the limits of invariants
    3 and 5.

    Versions share them.
    """

    def __init__(self, base: Trie) -> None:
        self.limit = _limit(base)
        self.awaited = min(max(self.limit // 4, MERGED_LEAST), self.limit // 2)
        self.leaves = tuple(base.leaf_offsets(level) for level in range(base.n_levels - 1))
        fields = [base.n_levels, 0, 0, 0, 0]
        if base.ranks is not None:
            fields[X_RANKS:] = [address(base.ranks), base.key_ranges[0][0], len(base.ranks) - 1]
        for level, keys in enumerate(base.keys):
            deeper = level + 1 < base.n_levels
            fields += [address(keys), len(keys)]
            fields += [address(base.children[level]), address(self.leaves[level])] if deeper else [0, 0]
        self.fields = tuple(fields)


class IndexVersion:
    """One version of one index.

    >>> first = IndexVersion(Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]))
    >>> second = first.advance([np.array([1, 4]), np.array([5, 9])], np.array([-1, 1]))
    >>> [column.tolist() for column in second.columns()], first.n_tuples
    ([[1, 4, 4], [3, 2, 9]], 3)
    """

    def __init__(self, base: Trie, runs: Runs = ()) -> None:
        """A version on a base: its tuples, and runs."""
        described_base = DescribedBase(base)
        self._start(base, described_base, runs, described(described_base.fields, runs), None)

    def _start(
        self,
        base: Trie,
        described_base: DescribedBase,
        runs: Runs,
        memory: np.ndarray,
        merge: TrieMerge | None,
    ) -> None:
        self.base = base
        self.runs = runs
        self.memory = memory
        self._address = 0  # not asked for yet
        self._described = described_base
        if merge is None and runs and runs[0].n_tuples > described_base.awaited:
            first = runs[0]
            rows = first.rows[: base.n_levels * first.n_tuples].reshape(base.n_levels, -1)
            merge = TrieMerge(base, rows, first.weights)
        self._merge = merge

    @property
    def address(self) -> int:
        """Where ``memory`` stands."""
        if self._address == 0:
            self._address = address(self.memory)
        return self._address

    @property
    def levels(self) -> int:
        return self.base.n_levels

    @property
    def n_tuples(self) -> int:
        return self.base.n_tuples + sum(int(run.rows[-1]) for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Memory of base, leaf offsets and runs, and of the base that is being made."""
        making = 0 if self._merge is None else self._merge.nbytes
        return self.base.nbytes + sum(run.rows.nbytes for run in self.runs) + making

    @cached_property
    def view(self) -> SearchView:
        """The version as searches over base tries read it: its runs as a patch of the base."""
        if not self.runs:
            return SearchView(self.base, None)
        rows, weights = added_runs(self.memory)
        if not len(weights):
            return SearchView(self.base, None)
        return SearchView(self.base, Patch(self.base, rows, weights, list_root=False))

    def advance(self, columns: Columns, weights: np.ndarray) -> IndexVersion:
        """The version after a change: sorted distinct tuples, +1 (it was absent) or -1 (it was present)."""
        if not len(weights):
            return self
        rows = table_of(columns, len(weights))
        if debug.enabled:
            self._check_change(rows, weights)
        merge = self._merge
        memory, runs = with_run(self.memory, self.runs, rows, weights, 0 if merge is None else 1)
        if sum([run.n_tuples for run in runs]) > self._described.limit:
            return IndexVersion(merged(self.base, *added_runs(memory)))
        base = None if merge is None else merge.advance(1 + len(weights) // PIECE_ROWS)
        if base is not None:
            return IndexVersion(base, runs[1:])
        following = IndexVersion.__new__(IndexVersion)
        following._start(self.base, self._described, runs, memory, merge)
        return following

    def _check_change(self, rows: np.ndarray, weights: np.ndarray) -> None:
        """What :meth:`advance` takes on trust (:mod:`lftj.process.debug`)."""
        debug.check_rows(rows, "a change of an index")
        held = np.empty(rows.shape[1], dtype=np.int64)
        present(self.memory, rows, held)
        debug.check_weights(held, weights, "a change of an index")

    def columns(self) -> list[np.ndarray]:
        """The present tuples, sorted."""
        return base_columns(merged(self.base, *added_runs(self.memory)) if self.runs else self.base)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        self.base.check_invariants()
        sizes = [run.n_tuples for run in self.runs]
        merging = self._merge is not None
        assert all(size > 2 * after for size, after in pairwise(sizes[merging:])), "geometric"
        assert sum(sizes) <= self._described.limit
        for run in self.runs:
            rows = list(zip(*(column.tolist() for column in run.columns(self.levels)), strict=True))
            assert rows == sorted(set(rows)) and run.n_tuples == len(rows) > 0
            assert (run.weights != 0).all()
        parts = [(run.columns(self.levels), run.weights) for run in self.runs]
        held = base_columns(self.base), np.ones(self.base.n_tuples, np.int64)
        _, net = net_rows(*gathered([held, *parts]))
        assert (net == 1).all(), "every tuple has weight 0 or 1"


def _limit(base: Trie) -> int:
    """Invariant 3's limit."""
    return max(BASE_LEAST, base.n_tuples // BASE_FRACTION)


def described(base_fields: Sequence[int], runs: Runs) -> np.ndarray:
    """X_* memory of a version: the fields of its base, without runs, and its runs."""
    ends = [field for run in runs for field in (address(run.rows), run.n_tuples)]
    memory = np.array([*base_fields, *ends], dtype=np.int64)
    memory[X_RUNS] = len(runs)
    return memory


def base_columns(base: Trie) -> list[np.ndarray]:
    """The tuples of a trie, sorted, as one column per level."""
    columns = []
    for level, keys in enumerate(base.keys):
        below = base.n_levels - 1 - level
        columns.append(np.repeat(keys, np.diff(base.leaf_offsets(level))) if below else keys)
    return columns
