"""`SensitivityIndex`: which contexts an atom's key matters to (ILFTJ 4.1, ENGINE.md 4).

It keeps records (prefix columns; closed interval [lo, hi]; context columns)
and answers: below this prefix, the contexts of all records that hold this
key.  Records are bit-packed into immutable sorted runs, each with its max-scan
(:mod:`indices.record_packing`, :mod:`indices.max_scan`); the newest ones
wait in a small plain *tail*.  Runs and tail are stabbed by one kernel call.

Invariants (:meth:`SensitivityIndex.check_invariants` asserts them)

1. A key that was ever recorded below a prefix with a context stays recorded so until the record is dropped:
   compacting, joining and merging never lose coverage.  Only :meth:`SensitivityIndex.shrink` adds to it.
2. Runs are in the order of their age, and are merged as :mod:`indices.merging` says, dead records counted:
   there are O(log n).
3. The tail has at most TAIL_RECORDS records.
4. No run has a record twice.  Different runs may hold equal, or overlapping, records.
5. All that a stab reads is one :class:`_Contents`, replaced by one assignment; what it reads of the arrays
   is never written again, but for the marks of one :meth:`SensitivityIndex.drop`, which one kernel call
   writes.  So whoever is interrupted at any point leaves the records of before or after.
6. Dead records (:mod:`indices.record_marks`) are found by no stab, and left out by merges.  One that dies
   while its run is being merged may come back with the new run (:mod:`indices.record_merge`).

Cost: ``record`` of few rows is an append, and a piece of each merge that is on.  When the tail is full it
becomes a run, together with the youngest runs as long as these are short: a record is packed O(log n)
times on the whole.  ``stab`` costs, per query, a max-scan of each run and one pass over the tail.
``compact`` and ``shrink`` are sorts of everything.

Memory: that of the runs, see :mod:`indices.record_packing`, and of those that merges are writing.  The tail
takes 8 bytes a column for at most TAIL_RECORDS records.

Source: ILFTJ 3.2 and 4.1.  Departure: the paper keeps one tree that is updated in place; here
it is runs, since records come in bulk, and those that go are marked until a merge.

One thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from indices.errors import KeyOrderError
from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from indices.max_scan import M_CONTEXT, stab_runs
from indices.merging import advanced, at_once, check_merges, n_busy, piece, with_begun
from indices.record_joining import count_families, join_smallest_gaps, join_touching
from indices.record_marks import count_records, living, mark_dead, only_marks, with_bit_maps
from indices.record_merge import RecordMerge
from indices.record_packing import DEAD, DEAD_AT, END_BITS, RECORD_BITS, SERIAL, WORD_BITS, WORDS
from indices.record_run import RecordRun, RunImage, check_run, plain_column, table_width, unpack, words_of_run

TAIL_RECORDS = 512
"""So many records wait unpacked: a stab looks at each of them, in about a third of a microsecond together."""

_FIRST_MATCHES = 64


class _Contents(NamedTuple):
    """Everything that an index holds at one moment."""

    runs: tuple[RecordRun, ...]
    merges: tuple[RecordMerge, ...]
    addresses: np.ndarray
    """int64 (runs,): where the words of each run stand."""
    table: np.ndarray
    """int64 (runs, fields): see :mod:`indices.record_packing`."""
    marks: np.ndarray
    """uint64: see :mod:`indices.record_marks`."""
    tail: np.ndarray
    """int64 (prefix, lo, hi, context; room): from ``tail_rows`` on it is free; dead rows hold no key."""
    tail_rows: int
    tail_serial: int
    """The serial number of the tail, which is no run's."""
    next_serial: int
    """No run or tail has had it, or a greater one."""

    @property
    def nbytes(self) -> int:
        words = sum([run.nbytes for run in self.runs]) + sum([merge.nbytes for merge in self.merges])
        return words + self.addresses.nbytes + self.table.nbytes + self.marks.nbytes + self.tail.nbytes


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
        self._contents = self._nothing(0)

    def __getstate__(self) -> dict[str, object]:
        """For an image: less the addresses of the runs, and the merges, which begin again."""
        contents = self._contents
        return {**self.__dict__, "_contents": contents._replace(merges=(), addresses=_addresses(()))}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._contents = self._contents._replace(addresses=_addresses(self._contents.runs))

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
        return TAIL_RECORDS * 8 * len(self._contents.tail)

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
        self._make_pieces(n_rows)
        if self._contents.tail_rows + n_rows <= TAIL_RECORDS:
            self._append(columns, n_rows)
        else:
            self._add_run([plain_column(column) for column in columns], n_rows)

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

    def compact(self) -> None:
        """One run of everything, without duplicates, touching records of a prefix and context joined."""
        housekeeping.rows += self.n_records
        if self.n_records:
            self._replace(self._image(join_touching(self._families(), self.prefix_width)))
        else:
            self._contents = self._nothing(self._contents.next_serial)

    def shrink(self, nbytes: int) -> None:
        """Come down to ``nbytes``, or to one record of each prefix and context where that is more.

        If compacting is not enough, records of the same prefix and context are joined over the smallest gaps
        between them, smallest first over the whole index.
        """
        if self.nbytes <= nbytes:
            return
        housekeeping.rows += self.n_records
        if not self.n_records:
            self.compact()
            return
        rows = join_touching(self._families(), self.prefix_width)
        n_families = count_families(rows, self.prefix_width)
        n_touching = rows.shape[1]
        while True:
            image = self._image(rows)
            row = image.row
            beside = row.nbytes + 8  # its address
            allowed_bits = 8 * (nbytes - beside) - WORD_BITS * (words_of_run(row, 0) + 4)
            if rows.shape[1] == n_families or 8 * int(row[WORDS]) + 8 + beside <= nbytes:
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
        runs, merges, addresses, table, marks, tail, tail_rows, tail_serial, next_serial = self._contents
        assert np.array_equal(addresses, _addresses(runs))
        for run, row in zip(runs, table, strict=True):
            lives = living(marks, row)
            assert int(row[DEAD]) == len(lives) - int(lives.sum())
            same = np.delete(row == run.row, [SERIAL, DEAD, DEAD_AT])
            assert same.all(), "a row of the table is that of its run"
            check_run(run, self.prefix_width, self.context_width, lives)
        check_merges(runs, merges, 0)
        assert tail_rows <= tail.shape[1] <= TAIL_RECORDS
        ends = tail[self.prefix_width : self.prefix_width + 2, :tail_rows]
        assert ((ends[0] <= ends[1]) | ((ends[0] == KEY_MAX) & (ends[1] == KEY_MIN))).all()
        serials = [*table[:, SERIAL].tolist(), tail_serial]
        assert len(set(serials)) == len(serials) and max(serials) < next_serial

    def _empty_tail(self) -> np.ndarray:
        return np.empty((self.prefix_width + 2 + self.context_width, 0), np.int64)

    def _nothing(self, serial: int) -> _Contents:
        """Contents without a record; ``serial``: of the tail."""
        no_runs = np.empty((0, table_width(self.prefix_width, self.context_width)), np.int64)
        no_marks = np.empty(0, np.uint64)
        tail = self._empty_tail()
        return _Contents((), (), _addresses(()), no_runs, no_marks, tail, 0, serial, serial + 1)

    def _living_tail(self) -> np.ndarray:
        """The rows of the tail that are not dead."""
        tail = self._contents.tail[:, : self._contents.tail_rows]
        lives = tail[self.prefix_width] <= tail[self.prefix_width + 1]
        return tail if lives.all() else np.ascontiguousarray(tail[:, lives])

    def _append(self, columns: Sequence[np.ndarray], n_rows: int) -> None:
        """Add rows to the tail, which they fit."""
        lo, hi = columns[self.prefix_width], columns[self.prefix_width + 1]
        if (lo > hi).any():
            raise KeyOrderError(f"{int((lo > hi).sum())} intervals end before they start")
        contents = self._contents
        tail, start = contents.tail, contents.tail_rows
        stop = start + n_rows
        if stop > tail.shape[1]:
            grown = np.empty((len(tail), min(TAIL_RECORDS, max(16, 1 << (stop - 1).bit_length()))), np.int64)
            grown[:, :start] = tail[:, :start]
            tail = grown
        for row, column in zip(tail, columns, strict=True):
            row[start:stop] = column
        self._contents = contents._replace(tail=tail, tail_rows=stop)

    def _add_run(self, columns: list[np.ndarray], n_rows: int) -> None:
        """Make a run of the columns, the tail, and short runs before it, where invariant 2 wants it."""
        contents = self._contents
        parts: list[Sequence[np.ndarray]] = [columns]
        total = n_rows
        if contents.tail_rows:
            parts.append(list(self._living_tail()))
            total += contents.tail_rows
        first = len(contents.runs)
        busy, most = n_busy(contents.runs, contents.merges), at_once(n_rows)
        while first > busy and (length := len(contents.runs[first - 1])) <= min(2 * total, most - total):
            first -= 1
            total += length
        if first < len(contents.runs):
            parts.append(list(self._unpack_runs(first)))
        if len(parts) > 1:
            columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
            housekeeping.rows += len(columns[0]) - n_rows
        run = self._image(columns).written()
        self._contents = self._with_runs((*contents.runs[:first], run), contents.merges, True)

    def _with_runs(
        self, runs: tuple[RecordRun, ...], merges: tuple[RecordMerge, ...], is_tail_in_runs: bool
    ) -> _Contents:
        """Other runs, of which some may be new, and merges where they are wanted."""
        contents = self._contents
        known = {id(run): row for run, row in zip(contents.runs, contents.table, strict=True)}
        table = np.empty((len(runs), contents.table.shape[1]), np.int64)
        serial = contents.next_serial
        for row, run in zip(table, runs, strict=True):
            row[:] = known.get(id(run), run.row)
            if id(run) not in known:
                row[SERIAL] = serial
                serial += 1
        marks = only_marks(table, contents.marks)

        def begun(older: RecordRun, younger: RecordRun) -> RecordMerge:
            place = runs.index(older)
            widths = self.prefix_width, self.context_width
            return RecordMerge(older, younger, table[place : place + 2].copy(), marks, *widths)

        merges = with_begun(runs, merges, 0, begun)
        addresses = _addresses(runs)
        following = contents._replace(
            runs=runs, merges=merges, addresses=addresses, table=table, marks=marks, next_serial=serial
        )
        if is_tail_in_runs:
            following = following._replace(
                tail=self._empty_tail(), tail_rows=0, tail_serial=serial, next_serial=serial + 1
            )
        return following

    def _make_pieces(self, n_rows: int) -> None:
        """A piece of each merge, as for a change of so many records."""
        contents = self._contents
        if contents.merges:
            runs, merges = advanced(contents.runs, contents.merges, piece(n_rows))
            if len(merges) < len(contents.merges):
                self._contents = self._with_runs(runs, merges, False)

    def _replace(self, image: RunImage) -> None:
        """Let the image be all there is."""
        self._contents = self._with_runs((image.written(),), (), True)

    def _unpack_runs(self, first: int) -> np.ndarray:
        """The living records of the runs from ``first`` on."""
        contents = self._contents
        rows = unpack(contents.runs[first:], self.prefix_width, self.context_width)
        table, marks = contents.table[first:], contents.marks
        if not table[:, DEAD].any():
            return rows
        lives = np.concatenate([living(marks, row) for row in table])
        return np.ascontiguousarray(rows[:, lives])

    def _unpacked(self) -> np.ndarray:
        """All living records: int64 (prefix, lo, hi, context; records)."""
        return np.concatenate([self._unpack_runs(0), self._living_tail()], axis=1)

    def _families(self) -> np.ndarray:
        """The distinct records by prefix, context, lo and hi, as :mod:`indices.record_joining` takes them."""
        run = self._image(self._unpacked(), by_context=True).written()
        return unpack([run], self.prefix_width, self.context_width)

    def _image(self, rows: Iterable[np.ndarray], by_context: bool = False) -> RunImage:
        """The run of such rows, or columns, as :meth:`_unpacked` gives."""
        columns = list(rows)
        width = self.prefix_width
        lo, hi = columns[width : width + 2]
        return RunImage.of(columns[:width], lo, hi, columns[width + 2 :], by_context)


def _addresses(runs: Sequence[RecordRun]) -> np.ndarray:
    return np.array([run.address for run in runs], np.int64)
