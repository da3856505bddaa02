"""`SensitivityIndex`: which contexts an atom's key matters to (ILFTJ 4.1, docs/design/engine.md section 4).

It keeps records (prefix columns; closed interval [lo, hi]; context columns)
and answers: below this prefix, the contexts of all records that hold this
key.  Records are bit-packed into immutable sorted runs, each with its max-scan
(:mod:`indices.record_packing`, :mod:`indices.max_scan`); the newest ones
wait in a small plain *tail* (:mod:`indices.record_contents`).  Runs and tail are stabbed by one kernel call.

Invariants (:meth:`SensitivityIndex.check_invariants` asserts those of the contents)

1. A key that was ever recorded below a prefix with a context stays recorded so until the record is dropped:
   joining and merging never lose coverage.  Only :meth:`SensitivityIndex.shrink` adds to it.
2. No run has a record twice.  Different runs may hold equal, or overlapping, records.
3. All that a stab reads is one :class:`~indices.record_contents.RecordContents`, replaced by one assignment;
   what it reads of the arrays is never written again, but for the marks of one :meth:`SensitivityIndex.drop`,
   which one kernel call writes.  So whoever is interrupted anywhere leaves the records of before or after.
4. Dead records (:mod:`indices.record_marks`) are found by no stab, and left out by merges.  One that dies
   while its run is being merged may come back with the new run (:mod:`indices.record_merge`).
5. What was recorded since :meth:`SensitivityIndex.set_apart` stands in other runs than what is old.

Cost: ``record`` is an append, or a run that is packed, and a piece of each merge that is on.  ``stab`` costs,
per query, a max-scan of each run and one pass over the tail.  ``shrink`` is a sort of everything.

Memory: that of the runs, see :mod:`indices.record_packing`, and of those that merges are writing.  The tail
takes 8 bytes a column for at most TAIL_RECORDS records.

Source: ILFTJ 3.2 and 4.1.  Departure: the paper keeps one tree that is updated in place; here
it is runs, since records come in bulk, and those that go are marked until a merge.

One thread at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices import record_contents
from indices.housekeeping import housekeeping
from indices.max_scan import M_CONTEXT, stab_runs
from indices.record_contents import RecordContents
from indices.record_joining import count_families, join_smallest_gaps, join_touching
from indices.record_marks import count_records, mark_dead, with_bit_maps
from indices.record_packing import DEAD_AT, END_BITS, RECORD_BITS, SERIAL, WORD_BITS, WORDS
from indices.record_run import RunImage, words_of_run

_FIRST_MATCHES = 64


class SensitivityIndex:
    """The sensitivity records of one (atom, level).

    ``prefix_width`` and ``context_width``: how many columns prefix and context have, 0 or more.

    >>> index = SensitivityIndex(1, 1)
    >>> index.record([np.array([7, 7])], np.array([10, -(2**63)]), np.array([20, 12]), [np.array([1, 2])])
    >>> from indices.max_scan import M_CONTEXT, M_QUERY
    >>> found = index.find([np.array([7, 7, 8])], np.array([11, 20, 11]))
    >>> found[M_QUERY].tolist(), found[M_CONTEXT].tolist()
    ([0, 0, 1], [1, 2, 1])
    """

    def __init__(self, prefix_width: int, context_width: int) -> None:
        self.prefix_width = prefix_width
        self.context_width = context_width
        self.joined_records = 0
        """How many records shrinking cost so far: joined with others although a gap lay between them."""
        self.touched = 0
        """What stabs looked at so far, in records and scan nodes: a cost that no machine's speed enters."""
        self._contents = RecordContents.nothing(prefix_width, context_width, 0)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_contents": self._contents.lasting()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._contents = self._contents.readdressed()

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len(self._contents.table)

    @property
    def n_records(self) -> int:
        """The living records in runs and tail; a record that stands in several runs counts each time."""
        return self._counts()[0]

    @property
    def n_dead(self) -> int:
        """The dead records in runs, which the next merge leaves out."""
        return self._counts()[1]

    def _counts(self) -> tuple[int, int]:
        contents = self._contents
        lives, dead = count_records(contents.table, contents.tail, contents.tail_rows, self.prefix_width)
        return int(lives), int(dead)

    @property
    def is_empty(self) -> bool:
        """Whether there is no record."""
        return not (self._contents.tail_rows or len(self._contents.table))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, reserves included."""
        return self._contents.nbytes

    @property
    def tail_bytes(self) -> int:
        """The bytes of a full tail: what comes beside the runs before they are written anew."""
        return record_contents.TAIL_RECORDS * 8 * len(self._contents.tail)

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
        if n_rows:
            self._contents = self._contents.advanced(n_rows)
            self._contents = self._contents.recorded(columns, n_rows)

    def find(self, prefix: Sequence[np.ndarray], keys: np.ndarray) -> np.ndarray:
        """All records that hold a key below a prefix, for queries (prefix_i, key_i).

        Returns int64 (M_CONTEXT + context columns, matches), see :mod:`indices.max_scan`: M_QUERY ascends,
        by M_RUN and M_RECORD the records are known to :meth:`drop`.  A context comes once for each record
        that has it and holds the key: after :meth:`compact` once for a query, before it possibly more often.
        """
        queries = np.empty((self.prefix_width + 1, len(keys)), np.int64)
        for number, column in enumerate(prefix):
            queries[number] = column
        queries[self.prefix_width] = keys
        capacity = max(_FIRST_MATCHES, 2 * len(keys))
        contents = self._contents
        while True:
            out = np.empty((M_CONTEXT + self.context_width, capacity), np.int64)
            count, touched = stab_runs(
                contents.addresses,
                contents.table,
                contents.marks,
                self.prefix_width,
                self.context_width,
                contents.tail,
                contents.tail_rows,
                contents.tail_serial,
                queries,
                out,
            )
            if count <= capacity:
                self.touched += touched
                return out[:, :count]
            capacity = count

    def drop(self, runs: np.ndarray, records: np.ndarray) -> None:
        """Let records be dead that :meth:`find` found: int64, their M_RUN and M_RECORD.

        Records that were packed or merged since are left alone.  To drop what is dropped changes nothing.

        >>> from indices.max_scan import M_RECORD, M_RUN
        >>> index = SensitivityIndex(0, 0)
        >>> index.record([], np.array([1, 5]), np.array([6, 9]), [])
        >>> found = index.find([], np.array([6]))
        >>> index.drop(found[M_RUN, :1].copy(), found[M_RECORD, :1].copy())
        >>> found.shape[1], index.find([], np.array([6])).shape[1], index.n_records
        (2, 1, 1)
        """
        contents = self._contents
        fresh = [
            run for run, row in enumerate(contents.table) if row[DEAD_AT] < 0 and (runs == row[SERIAL]).any()
        ]
        if fresh:
            table, marks = with_bit_maps(contents.table, contents.marks, fresh)
            self._contents = contents = contents._replace(table=table, marks=marks)
        mark_dead(
            contents.addresses,
            contents.table,
            contents.marks,
            contents.tail,
            contents.tail_rows,
            contents.tail_serial,
            self.prefix_width,
            runs,
            records,
        )

    @property
    def old_serials(self) -> np.ndarray:
        """The serial numbers of the runs that are old."""
        contents = self._contents
        return contents.table[: contents.old_runs, SERIAL].copy()

    def set_apart(self) -> None:
        """Let all that is here be old: new records stand beside it until :meth:`drop_old`.

        Done again, what came since is old too.
        """
        self._contents = self._contents.set_apart()

    def drop_old(self) -> None:
        """Drop the records that are old, if any are: whoever does it has recorded anew what they cover.

        >>> index = SensitivityIndex(0, 0)
        >>> index.record([], np.array([1]), np.array([6]), [])
        >>> index.set_apart()
        >>> index.record([], np.array([5]), np.array([7]), [])
        >>> both = index.find([], np.array([6])).shape[1]
        >>> index.drop_old()
        >>> both, index.find([], np.array([6])).shape[1], index.find([], np.array([1])).shape[1]
        (2, 1, 0)
        """
        self._contents = self._contents.without_old()

    def shrink(self, nbytes: int) -> None:
        """Come down to ``nbytes``, or to one record of each prefix and context where that is more.

        If joining those that touch is not enough, records of the same prefix and context are joined over the
        smallest gaps between them, smallest first over all that are old, and over all that are not.
        """
        contents = self._contents
        if contents.nbytes <= nbytes:
            return
        generations = contents.generations()
        total = sum([rows.shape[1] for rows in generations])
        housekeeping.rows += total
        if not total:
            self._contents = RecordContents.nothing(
                self.prefix_width, self.context_width, contents.next_serial
            )
            return
        images = [
            self._fitted(rows, nbytes * rows.shape[1] // total) if rows.shape[1] else None
            for rows in generations
        ]
        runs = [image.written() for image, _ in filter(None, images)]
        old_runs = 0 if images[0] is None else 1
        self.joined_records += sum([joined for _, joined in filter(None, images)])
        self._contents = contents.with_runs(tuple(runs), (), old_runs, is_tail_in_runs=True)

    def _fitted(self, rows: np.ndarray, nbytes: int) -> tuple[RunImage, int]:
        """A run of records that takes so many bytes, if it can, and how many were joined over gaps."""
        contents = self._contents
        rows = join_touching(contents.families(rows), self.prefix_width)
        n_families = count_families(rows, self.prefix_width)
        n_touching = rows.shape[1]
        while True:
            image = contents.image(rows)
            row = image.row
            beside = row.nbytes + 8  # its address
            allowed_bits = 8 * (nbytes - beside) - WORD_BITS * (words_of_run(row, 0) + 4)
            if rows.shape[1] == n_families or 8 * int(row[WORDS]) + 8 + beside <= nbytes:
                return image, n_touching - rows.shape[1]
            # Joined records are longer and may need more bits each: then it takes another turn,
            # with at least one bit more than in this.
            fit = int(allowed_bits / (int(row[RECORD_BITS]) + int(row[END_BITS]) / 15))
            n_kept = max(n_families, min(fit, rows.shape[1] - 1))
            rows = join_smallest_gaps(rows, self.prefix_width, n_kept)

    def records(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]]:
        """All records: (prefix columns, lo, hi, context columns), run by run, the tail last."""
        rows = np.concatenate(self._contents.generations(), axis=1)
        width = self.prefix_width
        return list(rows[:width]), rows[width], rows[width + 1], list(rows[width + 2 :])

    def check_invariants(self) -> None:
        """Assert what the module's header states; for tests."""
        self._contents.check_invariants()
