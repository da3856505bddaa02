"""Versions of an index: a base trie and small later runs (docs/design/engine.md section 2).

Runs, and how they are merged with each other: :mod:`lftj.storage.runs`.  A branch is
present in a version iff the number of base tuples below it and the
weights of the runs below it add up to more than 0.

Invariants (see :meth:`IndexVersion.check_invariants`)

1. A version never changes; versions share the base and the runs that they have
   in common.
2. Base and runs add up to weight 0 or 1 for every tuple.
3. All runs together have at most 1/``BASE_FRACTION`` of the base's tuples, or ``BASE_LEAST``, or of an index
   that is shown rather than searched ``SHOWN_TIMES`` as many: the *limit*.
4. ``memory`` describes the version to kernels (:mod:`lftj.storage.version_memory`) and stays
   valid as long as the version lives.
5. A first run of more than 1/``SEARCHED_FRACTION`` of the limit is on its way into the base: it stays as
   it is, whatever the run after it has, until the base with it is there.  Versions share that merge.
   Of a small base it waits for ``MERGED_LEAST`` tuples, but no longer than of an index that is shown rather
   than searched: for 1/``SHOWN_FRACTION`` of the limit.
6. Where runs of an index that is shown have more than 1/``READ_FRACTION`` of the base's tuples, whoever reads
   it makes a base of all, and versions that come after begin with that.

Cost: a change of m tuples costs O(m log m) and, amortised, O(log n) per tuple
for the merges of runs, and at most O(SEARCHED_FRACTION BASE_FRACTION) for the merge into the base, which is
one copy of the base's arrays (:mod:`lftj.storage.merged_trie`).  A change makes one
piece of that merge, and one more per ``PIECE_ROWS`` tuples, of an index that is shown fewer; of a small base
with many levels as many as it takes to be through when half of what is left to the limit has come.  Only a
change of about as many tuples as the limit makes all of it.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import cached_property

import numpy as np

from lftj.memory import address
from lftj.process import debug
from lftj.storage.catalog import SearchView
from lftj.storage.merged_trie import TrieMerge, merged
from lftj.storage.net_weights import present
from lftj.storage.patch import Patch
from lftj.storage.runs import RunList, Runs, added_runs
from lftj.storage.signed_rows import Columns, gathered, net_rows, table_of
from lftj.storage.trie import Trie
from lftj.storage.version_memory import base_fields

BASE_FRACTION = 8
BASE_LEAST = 4096
SHOWN_TIMES = 16
READ_FRACTION = 8
MERGED_LEAST = 4096
SEARCHED_FRACTION = 16  # among 2 to 128: keeps triangles and degrees fastest, in hundreds and thousands
SHOWN_FRACTION = 4
PIECE_ROWS = 8  # most merges are complete long before the runs are at the limit
SHOWN_PIECE_ROWS = 96  # divided by the levels


class DescribedBase:
    """The leaf offsets of a base, the fields of ``memory`` that describe it, and the limits of invariants
    3 and 5.

    Versions share them.
    """

    def __init__(self, base: Trie, searched: bool) -> None:
        self.limit = _limit(base, searched)
        self.searched = searched
        share = self.limit // (SEARCHED_FRACTION if searched else SHOWN_FRACTION)
        self.piece_rows = PIECE_ROWS if searched else max(PIECE_ROWS, SHOWN_PIECE_ROWS // base.n_levels)
        self.awaited = max(min(MERGED_LEAST, self.limit // SHOWN_FRACTION), share)
        self.leaves = tuple(base.leaf_offsets(level) for level in range(base.n_levels - 1))
        self.fields = tuple(base_fields(base, self.leaves))


class IndexVersion:
    """One version of one index.

    >>> first = IndexVersion(Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]))
    >>> second = first.advance([np.array([1, 4]), np.array([5, 9])], np.array([-1, 1]))
    >>> [column.tolist() for column in second.columns()], first.n_tuples
    ([[1, 4, 4], [3, 2, 9]], 3)
    """

    def __init__(self, base: Trie, runs: Runs = (), searched: bool = True) -> None:
        """A version on a base: its tuples, and runs.

        ``searched``: whether it is there to be searched at each change, and not to be shown.
        """
        described_base = DescribedBase(base, searched)
        run_list = RunList.of(described_base.fields, runs, described_base.awaited)
        self._start(base, described_base, run_list, None)

    def _start(
        self, base: Trie, described_base: DescribedBase, run_list: RunList, merge: TrieMerge | None
    ) -> None:
        self.base = base
        self.memory, self.runs, _ = run_list
        self._run_list = run_list
        self._address = 0  # not asked for yet
        self._described = described_base
        runs = self.runs
        if merge is None and runs and runs[0].n_tuples > described_base.awaited:
            first = runs[0]
            rows = first.rows[: base.n_levels * first.n_tuples].reshape(base.n_levels, -1)
            room = described_base.limit - sum([run.n_tuples for run in runs])
            merge = TrieMerge(base, rows, first.weights, tuples=room // 2)
        self._merge = merge

    @property
    def address(self) -> int:
        """Where ``memory`` stands."""
        if self._address == 0:
            self._address = address(self.memory)
        return self._address

    @property
    def searched(self) -> bool:
        """Whether it is there to be searched at each change, and not to be shown."""
        return self._described.searched

    @property
    def levels(self) -> int:
        return self.base.n_levels

    @property
    def n_tuples(self) -> int:
        return self.base.n_tuples + sum(int(run.rows[-1]) for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Memory of base, leaf offsets and runs, and of the base and the runs that are being made."""
        making = 0 if self._merge is None else self._merge.nbytes
        if "whole" in self.__dict__ and self.runs:
            making += self.whole.nbytes
        return self.base.nbytes + self._run_list.nbytes + making

    @cached_property
    def view(self) -> SearchView:
        """The version as searches over base tries read it: its runs as a patch of the base."""
        if not self.runs:
            return SearchView(self.base, None)
        if self._leaves_base:
            return SearchView(self.whole, None)
        rows, weights = added_runs(self.memory)
        if not len(weights):
            return SearchView(self.base, None)
        return SearchView(self.base, Patch(self.base, rows, weights, list_root=False))

    @property
    def _leaves_base(self) -> bool:
        """Whether who reads makes a base that versions to come begin with."""
        n_later = sum([run.n_tuples for run in self.runs])
        return not self.searched and READ_FRACTION * n_later > self.base.n_tuples

    @cached_property
    def whole(self) -> Trie:
        """All tuples in a base."""
        return self._merged()

    def _merged(self) -> Trie:
        """All tuples in a base: in the one that is made already, if one is."""
        if "whole" in self.__dict__:
            return self.whole
        return merged(self.base, *added_runs(self.memory)) if self.runs else self.base

    def advance(self, columns: Columns, weights: np.ndarray, checked: bool = False) -> IndexVersion:
        """The version after a change: sorted distinct tuples, +1 (it was absent) or -1 (it was present).

        ``checked``: the caller has looked whether it is one (:mod:`lftj.process.debug`).
        """
        if not len(weights):
            return self
        rows = table_of(columns, len(weights))
        if debug.enabled and not checked:
            self._check_change(rows, weights)
        whole = self.__dict__.get("whole", self.base)
        if whole is not self.base:
            return IndexVersion(whole, (), self.searched).advance(columns, weights, checked=True)
        merge, limits = self._merge, self._described
        run_list = self._run_list.with_run(rows, weights, limits.awaited)
        if sum([run.n_tuples for run in run_list.runs]) > limits.limit:
            return IndexVersion(merged(self.base, *added_runs(run_list.memory)), (), self.searched)
        base = None if merge is None else merge.advance(merge.pieces_for(len(weights), limits.piece_rows))
        if base is not None:
            return IndexVersion(base, run_list.runs[1:], self.searched)
        following = IndexVersion.__new__(IndexVersion)
        following._start(self.base, limits, run_list, merge)
        return following

    def compacted(self) -> IndexVersion:
        """The same tuples in a base alone.  O(n), where there are runs."""
        return IndexVersion(self._merged(), (), self.searched) if self.runs else self

    def _check_change(self, rows: np.ndarray, weights: np.ndarray) -> None:
        """What :meth:`advance` takes on trust (:mod:`lftj.process.debug`)."""
        debug.check_rows(rows, "a change of an index")
        held = np.empty(rows.shape[1], dtype=np.int64)
        present(self.memory, rows, held)
        debug.check_weights(held, weights, "a change of an index")

    def columns(self) -> list[np.ndarray]:
        """The present tuples, sorted."""
        return base_columns(self.whole if self._leaves_base else self._merged())

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        self.base.check_invariants()
        self._run_list.check_invariants(self._described.awaited)
        assert sum(run.n_tuples for run in self.runs) <= self._described.limit
        parts = [(run.columns(self.levels), run.weights) for run in self.runs]
        held = base_columns(self.base), np.ones(self.base.n_tuples, np.int64)
        _, net = net_rows(*gathered([held, *parts]))
        assert (net == 1).all(), "every tuple has weight 0 or 1"


def _limit(base: Trie, searched: bool) -> int:
    """Invariant 3's limit."""
    return max(BASE_LEAST * (1 if searched else SHOWN_TIMES), base.n_tuples // BASE_FRACTION)


def base_columns(base: Trie) -> list[np.ndarray]:
    """The tuples of a trie, sorted, as one column per level."""
    columns = []
    for level, keys in enumerate(base.keys):
        below = base.n_levels - 1 - level
        columns.append(np.repeat(keys, np.diff(base.leaf_offsets(level))) if below else keys)
    return columns
