"""`RecordMerge`: two neighbouring runs of records on their way to being one (:mod:`indices.merging`).

A first pass over both finds out what the new run's layout depends on, a second one writes it.

Invariants

1. What comes out has, sorted and each once, the records of both runs that lived when the merge began.
   Those that died since come back: to keep a record is sound, and whoever meets it can drop it again.
2. The two runs, and the marks of others, are never written.
3. Where a merge is, is one :class:`_Progress`, replaced by one assignment; a piece that was interrupted
   is made again, and writes the same.

Cost: each record is unpacked twice, and packed once.  The scan above its lowest level, O(n / 256), and
the copy of the marks, O(n / 64), are made at once.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indices.compiled import kernel
from indices.housekeeping import housekeeping
from indices.max_scan import is_dead, write_upper_maxima
from indices.record_marks import only_marks
from indices.record_packing import RECORDS, WORD_BITS, read_start, unpack_record
from indices.record_run import Measured, RecordRun, lay_out

BUFFER = 16 * WORD_BITS
"""So many records are written together: a multiple of 64, for they begin at a word's first bit."""

# -- the fields of a cursor ------------------------------------------------------
C_RECORD = 0  # of the older run, then of the younger: records read, and the group of the next one
C_GROUP = 2
C_BUFFERED = 4  # records in the buffer
CURSOR_FIELDS = 5


@kernel(makes_arrays=True)
def _merge_records(older, younger, table, marks, prefix_width, context_width, cursor, most, out):
    """Move living records of two runs to ``out``, sorted, each once: at most ``most``, or one more, are read.

    older, younger, marks: uint64; table: int64, a row for each run; cursor: C_* fields, written; out: int64
    (prefix, lo, hi, context; room), written from column C_BUFFERED on.  Returns whether nothing is left.
    """
    columns = out.shape[0]
    rows = np.empty((columns, 2), np.int64)
    is_loaded = np.zeros(2, np.bool_)
    n = cursor[C_BUFFERED]
    left = most
    while True:
        for run in range(2):
            pool = older if run == 0 else younger
            while not is_loaded[run] and cursor[C_RECORD + run] < table[run, RECORDS]:
                record = cursor[C_RECORD + run]
                if is_dead(marks, table, run, record):
                    if left <= 0:
                        break
                    cursor[C_RECORD + run] += 1
                    left -= 1
                    continue
                while record >= read_start(pool, table, run, cursor[C_GROUP + run] + 1):
                    cursor[C_GROUP + run] += 1
                group = cursor[C_GROUP + run]
                unpack_record(pool, table, run, record, group, prefix_width, context_width, rows, run)
                is_loaded[run] = True
        if left <= 0 or n == out.shape[1] or not (is_loaded[0] or is_loaded[1]):
            break
        order = 0
        if not is_loaded[1]:
            order = -1
        elif not is_loaded[0]:
            order = 1
        column = 0
        while order == 0 and column < columns:
            if rows[column, 0] != rows[column, 1]:
                order = -1 if rows[column, 0] < rows[column, 1] else 1
            column += 1
        source = 0 if order <= 0 else 1
        for column in range(columns):
            out[column, n] = rows[column, source]
        n += 1
        for run in range(2):
            if order == 0 or run == source:
                cursor[C_RECORD + run] += 1
                is_loaded[run] = False
                left -= 1
    cursor[C_BUFFERED] = n
    return cursor[C_RECORD] == table[0, RECORDS] and cursor[C_RECORD + 1] == table[1, RECORDS]


class _Progress(NamedTuple):
    """How far a merge is."""

    cursor: np.ndarray
    measured: Measured | None
    """What the first pass found; None before any record."""
    run: RecordRun | None
    """What the second pass writes; None in the first one."""
    n_records: int
    """Of those of this pass that left the buffer."""
    n_groups: int
    last: np.ndarray
    """int64 (prefix columns,): the last one's prefix."""
    is_complete: bool


class RecordMerge:
    """Two neighbouring runs on their way to being one.

    >>> from indices.record_run import RunImage, unpack
    >>> keys = np.array([1, 9]), np.array([5, 9])
    >>> older, younger = (RunImage.of([], key, key + 4, []).written() for key in keys)
    >>> merge = RecordMerge(older, younger, np.stack([older.row, younger.row]), np.empty(0, np.uint64), 0, 0)
    >>> merge.advance(4) is None, unpack([merge.advance(5)], 0, 0).tolist()
    (True, [[1, 5, 9], [5, 9, 13]])
    """

    def __init__(
        self,
        older: RecordRun,
        younger: RecordRun,
        table: np.ndarray,
        marks: np.ndarray,
        prefix_width: int,
        context_width: int,
    ) -> None:
        """``table``: rows of the two, which are kept; ``marks``: as they are now, those of any runs."""
        self.older, self.younger = older, younger
        self._table, self._marks = table, only_marks(table, marks)
        self._prefix_width, self._context_width = prefix_width, context_width
        self._buffer = np.empty((prefix_width + 2 + context_width, BUFFER), np.int64)
        self._progress = self._begun(None, None)

    def _begun(self, measured: Measured | None, run: RecordRun | None) -> _Progress:
        """At the beginning of a pass."""
        last = np.empty(self._prefix_width, np.int64)
        return _Progress(np.zeros(CURSOR_FIELDS, np.int64), measured, run, 0, 0, last, False)

    @property
    def nbytes(self) -> int:
        run = self._progress.run
        return self._buffer.nbytes + self._marks.nbytes + (0 if run is None else run.nbytes)

    def advance(self, n_rows: int) -> RecordRun | None:
        """Read about so many records more, or all that are left; the run, if it is complete."""
        while not self._progress.is_complete:
            cursor = self._progress.cursor.copy()
            before = int(cursor[C_RECORD] + cursor[C_RECORD + 1])
            is_end = _merge_records(
                self.older.words,
                self.younger.words,
                self._table,
                self._marks,
                self._prefix_width,
                self._context_width,
                cursor,
                n_rows,
                self._buffer,
            )
            read = int(cursor[C_RECORD] + cursor[C_RECORD + 1]) - before
            housekeeping.rows += read
            n_rows -= read
            progress = self._progress._replace(cursor=cursor)
            if is_end or cursor[C_BUFFERED] == BUFFER:
                progress = self._flushed(progress)
            if is_end:
                progress = self._next_pass(progress)
            self._progress = progress
            if n_rows <= 0 and not progress.is_complete:
                return None
        return self._progress.run

    def _flushed(self, progress: _Progress) -> _Progress:
        """With the buffer measured, or written."""
        n = int(progress.cursor[C_BUFFERED])
        if not n:
            return progress
        rows, width = self._buffer[:, :n], self._prefix_width
        prefixes = rows[:width]
        begins = np.zeros(n, np.bool_)
        begins[1:] = (prefixes[:, 1:] != prefixes[:, :-1]).any(axis=0)
        begins[0] = not progress.n_records or (prefixes[:, 0] != progress.last).any()
        firsts = np.flatnonzero(begins)
        run, measured = progress.run, progress.measured
        if run is None:
            lo, hi, *context = rows[width:]
            found = Measured.of(list(prefixes), len(firsts), lo, hi, context)
            measured = found if measured is None else measured.joined(found)
        else:
            groups = [column[firsts] for column in prefixes]
            run.write_groups(progress.n_groups, groups, firsts + progress.n_records)
            run.write_records(progress.n_records, rows, width)
        progress.cursor[C_BUFFERED] = 0
        return progress._replace(
            measured=measured,
            n_records=progress.n_records + n,
            n_groups=progress.n_groups + len(firsts),
            last=prefixes[:, -1].copy(),
        )

    def _next_pass(self, progress: _Progress) -> _Progress:
        """From the first pass to the second, from that to the end."""
        run = progress.run
        if run is None:
            if progress.measured is not None:
                return self._begun(progress.measured, RecordRun(lay_out(progress.measured)))
            run = RecordRun(np.zeros(len(self._table[0]), np.int64))  # nothing lived
        else:
            write_upper_maxima(run.words, run.row[None], 0)
        return progress._replace(run=run, is_complete=True)
