"""`SensitivityIndex`: which contexts an atom's key matters to (ILFTJ 4.1, ENGINE.md 4).

It keeps records (prefix columns; closed interval [lo, hi]; context columns)
and answers: below this prefix, the contexts of all records that hold this
key.  Records are bit-packed into immutable sorted runs, each with its max-scan
(:mod:`indices.record_packing`, :mod:`indices.max_scan`); the newest ones
wait in a small plain *tail*.  Runs and tail are stabbed by one kernel call.

Invariants (:meth:`SensitivityIndex.check_invariants` asserts them)

1. A key that was ever recorded below a prefix with a context stays recorded so: compacting, joining and
   merging never lose coverage.  Without a budget they never add to it either.
2. Runs lie one after another in the pool, from its first word on, the oldest first, and each has at
   least twice the records of the next: there are at most log2(n) + 1.
3. The tail has at most TAIL_RECORDS records.
4. No run has a record twice.  Different runs may hold equal, or overlapping, records.

Cost: ``record`` of few rows is an append.  When the tail is full it becomes a run, together with
the youngest runs as long as they have less than twice the records: a record is packed O(log n)
times on the whole.  ``stab`` costs, per query, a max-scan of each run and one pass over the tail.
``compact`` and ``shrink`` are sorts of everything.

Memory: that of the runs, see :mod:`indices.record_packing`; a pool with several runs keeps
up to a sixteenth in reserve, and the tail takes 8 bytes a column for at most TAIL_RECORDS records.

Source: ILFTJ 3.2 and 4.1.  Departure: the paper keeps one tree that is updated in place; here
it is runs, since records come in bulk and are never erased one by one.

One thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from indices.errors import KeyOrderError
from indices.max_scan import stab_runs
from indices.record_joining import count_families, join_smallest_gaps, join_touching
from indices.record_packing import END_BITS, RECORD_BITS, RECORDS, RECORDS_AT, WORD_BITS, WORDS
from indices.record_run import RunImage, check_run, plain_column, table_width, unpack, words_of_run

TAIL_RECORDS = 512
"""So many records wait unpacked: a stab looks at each of them, in about a third of a microsecond together."""

_RESERVE = 16  # a pool that grows takes this fraction of its size more than it needs
_FIRST_MATCHES = 64


class SensitivityIndex:
    """The sensitivity records of one (atom, level).

    ``prefix_width`` and ``context_width``: how many columns prefix and context have, 0 or more.
    ``budget_bytes``: above it :meth:`record` joins records over the smallest gaps, until they fit.  Where
    already one record of each prefix and context does not fit, it is exceeded by these, and by at most an
    eighth of them or a full tail more.  It may be set anew; the next :meth:`record` goes by it.

    >>> index = SensitivityIndex(1, 1)
    >>> index.record([np.array([7, 7])], np.array([10, -(2**63)]), np.array([20, 12]), [np.array([1, 2])])
    >>> queries, context = index.stab([np.array([7, 7, 8])], np.array([11, 20, 11]))
    >>> queries.tolist(), context[0].tolist()
    ([0, 0, 1], [1, 2, 1])
    """

    def __init__(self, prefix_width: int, context_width: int, budget_bytes: int | None = None) -> None:
        self.prefix_width = prefix_width
        self.context_width = context_width
        self.budget_bytes = budget_bytes
        self.joined_records = 0
        """How many records the budget cost so far: joined with others although a gap lay between them."""
        self.touched = 0
        """What stabs looked at so far, in records and scan nodes: a cost that no machine's speed enters."""
        self.n_runs = 0
        self._tolerated_bytes = 0  # up to here there is no use in shrinking again
        self._drop_all()

    @property
    def n_records(self) -> int:
        """The records in runs and tail; a record that stands in several runs counts each time."""
        return int(self._table[: self.n_runs, RECORDS].sum()) + self._tail_rows

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, reserves included."""
        return self._pool.nbytes + self._table.nbytes + self._tail.nbytes

    def record(
        self, prefix: Sequence[np.ndarray], lo: np.ndarray, hi: np.ndarray, context: Sequence[np.ndarray]
    ) -> None:
        """Add records: int64 columns of one length, in any order, duplicates allowed.  They are copied.

        Raises :class:`KeyOrderError` where lo > hi, ``ValueError`` for columns of the wrong number or
        length; the index is then as before.
        """
        columns = [*prefix, lo, hi, *context]
        n_rows = len(lo)
        if len(prefix) != self.prefix_width or len(context) != self.context_width:
            raise ValueError(
                f"{len(prefix)} prefix and {len(context)} context columns for an index of "
                f"{self.prefix_width} and {self.context_width}"
            )
        for column in columns:
            if len(column) != n_rows:
                raise ValueError(f"a column has {len(column)} rows where lo has {n_rows}")
        if n_rows == 0:
            return
        if self._tail_rows + n_rows <= TAIL_RECORDS:
            self._append(columns, n_rows)
        else:
            self._add_run([plain_column(column) for column in columns], n_rows)
        if self.budget_bytes is not None and self.nbytes > max(self.budget_bytes, self._tolerated_bytes):
            self._keep_budget(self.budget_bytes)

    def stab(self, prefix: Sequence[np.ndarray], keys: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The contexts of all records that hold a key below a prefix, for queries (prefix_i, key_i).

        Returns (query numbers, ascending; context columns).  A context comes once for each record
        that has it and holds the key: after :meth:`compact` once for a query, before it possibly more often.
        """
        queries = np.empty((self.prefix_width + 1, len(keys)), np.int64)
        for number, column in enumerate(prefix):
            queries[number] = column
        queries[self.prefix_width] = keys
        capacity = max(_FIRST_MATCHES, 2 * len(keys))
        while True:
            out = np.empty((1 + self.context_width, capacity), np.int64)
            count, touched = stab_runs(
                self._pool,
                self._table,
                self.n_runs,
                self.prefix_width,
                self.context_width,
                self._tail,
                self._tail_rows,
                queries,
                out,
            )
            if count <= capacity:
                self.touched += touched
                return out[0, :count], [out[1 + number, :count] for number in range(self.context_width)]
            capacity = count

    def compact(self) -> None:
        """One run of everything, without duplicates, touching records of a prefix and context joined."""
        if self.n_runs + self._tail_rows:
            self._replace(self._image(join_touching(self._families(), self.prefix_width)))

    def shrink(self, nbytes: int) -> None:
        """Come down to ``nbytes``, or to one record of each prefix and context where that is more.

        If compacting is not enough, records of the same prefix and context are joined over the smallest gaps
        between them, smallest first over the whole index.
        """
        if self.nbytes <= nbytes or self.n_runs + self._tail_rows == 0:
            return
        rows = join_touching(self._families(), self.prefix_width)
        n_families = count_families(rows, self.prefix_width)
        n_touching = rows.shape[1]
        while True:
            image = self._image(rows)
            row = image.row
            allowed_bits = 8 * (nbytes - row.nbytes) - WORD_BITS * (words_of_run(row, 0) + 4)
            if rows.shape[1] == n_families or 8 * int(row[WORDS]) + 8 + row.nbytes <= nbytes:
                break
            # Joined records are longer and may need more bits each: then it takes another turn,
            # with at least one bit more than in this.
            fit = int(allowed_bits / (int(row[RECORD_BITS]) + int(row[END_BITS]) / 15))
            n_kept = max(n_families, min(fit, rows.shape[1] - 1))
            rows = join_smallest_gaps(rows, self.prefix_width, n_kept)
        self.joined_records += n_touching - rows.shape[1]
        self._replace(image)

    def records(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]]:
        """All records: (prefix columns, lo, hi, context columns), run by run, the tail last."""
        rows = self._unpacked()
        width = self.prefix_width
        return list(rows[:width]), rows[width], rows[width + 1], list(rows[width + 2 :])

    def check_invariants(self) -> None:
        """Assert what the module's header states; for tests."""
        word = 0
        for run in range(self.n_runs):
            check_run(self._pool, self._table, run, self.prefix_width, self.context_width)
            assert int(self._table[run, RECORDS_AT]) == word * WORD_BITS
            word += int(self._table[run, WORDS])
        assert word < len(self._pool) or self.n_runs == 0
        sizes = self._table[: self.n_runs, RECORDS]
        assert (sizes[:-1] >= 2 * sizes[1:]).all()
        assert self._tail_rows <= self._tail.shape[1] <= TAIL_RECORDS
        tail = self._tail[self.prefix_width : self.prefix_width + 2, : self._tail_rows]
        assert (tail[0] <= tail[1]).all()

    def _keep_budget(self, budget_bytes: int) -> None:
        """Shrink a bit below the budget, so that the next few records do not make it shrink again."""
        self.shrink(budget_bytes - budget_bytes // 8)
        self._tolerated_bytes = 0
        if self.nbytes > budget_bytes - budget_bytes // 8:  # one record of each prefix and context
            self._tolerated_bytes = self.nbytes + max(self.nbytes // 8, TAIL_RECORDS * 8 * len(self._tail))

    def _drop_all(self) -> None:
        self.n_runs = 0
        self._pool = np.empty(0, np.uint64)
        self._table = np.empty((0, table_width(self.prefix_width, self.context_width)), np.int64)
        self._drop_tail()

    def _drop_tail(self) -> None:
        self._tail = np.empty((self.prefix_width + 2 + self.context_width, 0), np.int64)
        self._tail_rows = 0

    def _append(self, columns: Sequence[np.ndarray], n_rows: int) -> None:
        """Add rows to the tail, which they fit."""
        lo, hi = columns[self.prefix_width], columns[self.prefix_width + 1]
        if (lo > hi).any():
            raise KeyOrderError(f"{int((lo > hi).sum())} intervals end before they start")
        start = self._tail_rows
        stop = start + n_rows
        if stop > self._tail.shape[1]:
            grown = np.empty(
                (len(self._tail), min(TAIL_RECORDS, max(16, 1 << (stop - 1).bit_length()))), np.int64
            )
            grown[:, :start] = self._tail[:, :start]
            self._tail = grown
        for row, column in zip(self._tail, columns, strict=True):
            row[start:stop] = column
        self._tail_rows = stop

    def _add_run(self, columns: list[np.ndarray], n_rows: int) -> None:
        """Make a run of the columns, the tail, and the youngest runs that would break invariant 2."""
        parts: list[Sequence[np.ndarray]] = [columns]
        total = n_rows
        if self._tail_rows:
            parts.append(list(self._tail[:, : self._tail_rows]))
            total += self._tail_rows
        sizes = self._table[:, RECORDS].tolist()
        first = self.n_runs
        while first > 0 and sizes[first - 1] < 2 * total:
            first -= 1
            total += sizes[first]
        if first < self.n_runs:
            parts.append(list(self._unpack_runs(first)))
        if len(parts) > 1:
            columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
        self._put(self._image(columns), first)

    def _put(self, image: RunImage, run: int) -> None:
        """Let the image be run number ``run``, in place of that one and all younger ones, and of the tail."""
        first_word = int(self._table[:run, WORDS].sum())
        needed = first_word + int(image.row[WORDS]) + 1
        if needed > len(self._pool) or len(self._pool) > needed + needed // _RESERVE:
            pool = np.empty(needed + (needed // _RESERVE if run else 0), np.uint64)
            pool[:first_word] = self._pool[:first_word]
            self._pool = pool
        if run == len(self._table) or len(self._table) > 2 * run + 1:
            table = np.empty((2 * run if run else 1, self._table.shape[1]), np.int64)
            table[:run] = self._table[:run]
            self._table = table
        image.write(self._pool, first_word, self._table, run)
        self.n_runs = run + 1
        self._drop_tail()

    def _replace(self, image: RunImage) -> None:
        """Let the image be all there is."""
        self._drop_all()
        self._put(image, 0)

    def _unpack_runs(self, first: int) -> np.ndarray:
        return unpack(
            self._pool, self._table, range(first, self.n_runs), self.prefix_width, self.context_width
        )

    def _unpacked(self) -> np.ndarray:
        """All records: int64 (prefix, lo, hi, context; records)."""
        return np.concatenate([self._unpack_runs(0), self._tail[:, : self._tail_rows]], axis=1)

    def _families(self) -> np.ndarray:
        """The distinct records by prefix, context, lo and hi, as :mod:`indices.record_joining` takes them."""
        image = self._image(self._unpacked(), by_context=True)
        pool = np.empty(int(image.row[WORDS]) + 1, np.uint64)
        table = np.empty((1, len(image.row)), np.int64)
        image.write(pool, 0, table, 0)
        return unpack(pool, table, [0], self.prefix_width, self.context_width)

    def _image(self, rows: Iterable[np.ndarray], by_context: bool = False) -> RunImage:
        """The run of such rows, or columns, as :meth:`_unpacked` gives."""
        columns = list(rows)
        width = self.prefix_width
        lo, hi = columns[width : width + 2]
        return RunImage.of(columns[:width], lo, hi, columns[width + 2 :], by_context)
