"""`RecordContents`: all that an index of sensitivity records holds at one moment, and what follows from it.

Records wait in a plain *tail*, then stand in runs (:mod:`indices.record_run`), which are merged in pieces
(:mod:`indices.merging`).  The first runs may be *old*: set apart, with nothing new merged into them.

Invariants (:meth:`RecordContents.check_invariants` asserts them)

1. Contents are never changed but for two things: the marks of dead records, and what is appended to the tail
   behind the rows that they count.  So contents stand until those that follow take their place.
2. Runs are in the order of their age, and those that are not old are merged as :mod:`indices.merging` says,
   dead records counted: there are O(log n).
3. The tail has at most TAIL_RECORDS records.
4. Each run, and the tail, has a serial number that none had before.

Cost: an append of few rows; a tail that is full becomes a run, together with the youngest runs as long as
these are short: a record is packed O(log n) times on the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from indices.errors import KeyOrderError
from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from indices.merging import advanced, at_once, check_merges, n_busy, piece, with_begun
from indices.record_marks import living, only_marks
from indices.record_merge import RecordMerge
from indices.record_packing import DEAD, DEAD_AT, SERIAL
from indices.record_run import RecordRun, RunImage, check_run, plain_column, table_width, unpack

TAIL_RECORDS = 512
"""So many records wait unpacked: a stab looks at each of them, in about a third of a microsecond together."""


class RecordContents(NamedTuple):
    """Records of one (atom, level)."""

    prefix_width: int
    context_width: int
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
    old_runs: int
    """How many of the first runs are old."""

    @classmethod
    def nothing(cls, prefix_width: int, context_width: int, serial: int) -> RecordContents:
        """Contents without a record; ``serial``: of the tail."""
        no_runs = np.empty((0, table_width(prefix_width, context_width)), np.int64)
        no_marks = np.empty(0, np.uint64)
        tail = np.empty((prefix_width + 2 + context_width, 0), np.int64)
        no_addresses = np.empty(0, np.int64)
        widths = prefix_width, context_width
        return cls(*widths, (), (), no_addresses, no_runs, no_marks, tail, 0, serial, serial + 1, 0)

    @property
    def nbytes(self) -> int:
        words = sum([run.nbytes for run in self.runs]) + sum([merge.nbytes for merge in self.merges])
        return words + self.addresses.nbytes + self.table.nbytes + self.marks.nbytes + self.tail.nbytes

    def lasting(self) -> RecordContents:
        """For an image: less the addresses, and the merges, which begin again."""
        return self._replace(merges=(), addresses=np.empty(0, np.int64))

    def readdressed(self) -> RecordContents:
        """What :meth:`lasting` gave, in the memory of this process."""
        return self._replace(addresses=_addresses(self.runs))

    # -- what follows ------------------------------------------------------------------

    def recorded(self, columns: Sequence[np.ndarray], n_rows: int) -> RecordContents:
        """With rows more: int64 columns (prefix, lo, hi, context), which are copied.

        Raises :class:`KeyOrderError` where lo > hi.
        """
        if self.tail_rows + n_rows <= TAIL_RECORDS:
            return self._appended(columns, n_rows)
        return self._with_run([plain_column(column) for column in columns], n_rows)

    def advanced(self, n_rows: int) -> RecordContents:
        """After a piece of each merge, as for a change of so many records."""
        if not self.merges:
            return self
        runs, merges = advanced(self.runs, self.merges, piece(n_rows))
        if len(merges) == len(self.merges):
            return self
        return self.with_runs(runs, merges, self.old_runs)

    def set_apart(self) -> RecordContents:
        """All of it old."""
        runs = self.runs
        rows = self.living_tail()
        if rows.shape[1]:
            runs = (*runs, self.image(rows).written())
            housekeeping.rows += rows.shape[1]
        return self.with_runs(runs, (), len(runs), is_tail_in_runs=True)

    def without_old(self) -> RecordContents:
        return self.with_runs(self.runs[self.old_runs :], self.merges, 0) if self.old_runs else self

    def with_runs(
        self,
        runs: tuple[RecordRun, ...],
        merges: tuple[RecordMerge, ...],
        old_runs: int,
        is_tail_in_runs: bool = False,
    ) -> RecordContents:
        """Other runs, of which some may be new, and merges where they are wanted."""
        known = {id(run): row for run, row in zip(self.runs, self.table, strict=True)}
        table = np.empty((len(runs), self.table.shape[1]), np.int64)
        serial = self.next_serial
        for row, run in zip(table, runs, strict=True):
            row[:] = known.get(id(run), run.row)
            if id(run) not in known:
                row[SERIAL] = serial
                serial += 1
        marks = only_marks(table, self.marks)

        def begun(older: RecordRun, younger: RecordRun) -> RecordMerge:
            place = runs.index(older)
            widths = self.prefix_width, self.context_width
            return RecordMerge(older, younger, table[place : place + 2].copy(), marks, *widths)

        following = self._replace(
            runs=runs,
            merges=with_begun(runs, merges, old_runs, begun),
            addresses=_addresses(runs),
            table=table,
            marks=marks,
            next_serial=serial,
            old_runs=old_runs,
        )
        if is_tail_in_runs:
            following = following._replace(
                tail=np.empty((len(self.tail), 0), np.int64),
                tail_rows=0,
                tail_serial=serial,
                next_serial=serial + 1,
            )
        return following

    def _appended(self, columns: Sequence[np.ndarray], n_rows: int) -> RecordContents:
        """With rows in the tail, which they fit."""
        lo, hi = columns[self.prefix_width], columns[self.prefix_width + 1]
        if (lo > hi).any():
            raise KeyOrderError(f"{int((lo > hi).sum())} intervals end before they start")
        tail, start = self.tail, self.tail_rows
        stop = start + n_rows
        if stop > tail.shape[1]:
            grown = np.empty((len(tail), min(TAIL_RECORDS, max(16, 1 << (stop - 1).bit_length()))), np.int64)
            grown[:, :start] = tail[:, :start]
            tail = grown
        for row, column in zip(tail, columns, strict=True):
            row[start:stop] = column
        return self._replace(tail=tail, tail_rows=stop)

    def _with_run(self, columns: list[np.ndarray], n_rows: int) -> RecordContents:
        """With a run of the columns, the tail, and short runs before it, where invariant 2 wants it."""
        parts: list[Sequence[np.ndarray]] = [columns]
        total = n_rows
        if self.tail_rows:
            parts.append(list(self.living_tail()))
            total += self.tail_rows
        first = len(self.runs)
        busy, most = max(n_busy(self.runs, self.merges), self.old_runs), at_once(n_rows)
        while first > busy and (length := len(self.runs[first - 1])) <= min(2 * total, most - total):
            first -= 1
            total += length
        if first < len(self.runs):
            parts.append(list(self.unpacked(first, len(self.runs))))
        if len(parts) > 1:
            columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
            housekeeping.rows += len(columns[0]) - n_rows
        runs = (*self.runs[:first], self.image(columns).written())
        return self.with_runs(runs, self.merges, self.old_runs, is_tail_in_runs=True)

    # -- the records --------------------------------------------------------------------

    def living_tail(self) -> np.ndarray:
        """The rows of the tail that are not dead."""
        tail = self.tail[:, : self.tail_rows]
        lives = tail[self.prefix_width] <= tail[self.prefix_width + 1]
        return tail if lives.all() else np.ascontiguousarray(tail[:, lives])

    def unpacked(self, first: int, last: int) -> np.ndarray:
        """The living records of the runs [first, last): int64 (prefix, lo, hi, context; records)."""
        rows = unpack(self.runs[first:last], self.prefix_width, self.context_width)
        table = self.table[first:last]
        if not table[:, DEAD].any():
            return rows
        lives = np.concatenate([living(self.marks, row) for row in table])
        return np.ascontiguousarray(rows[:, lives])

    def generations(self) -> tuple[np.ndarray, np.ndarray]:
        """The living records that are old, and the others."""
        old, new = self.unpacked(0, self.old_runs), self.unpacked(self.old_runs, len(self.runs))
        return old, np.concatenate([new, self.living_tail()], axis=1)

    def image(self, rows: Iterable[np.ndarray], by_context: bool = False) -> RunImage:
        """The run of such rows, or columns, as :meth:`unpacked` gives."""
        columns = list(rows)
        width = self.prefix_width
        lo, hi = columns[width : width + 2]
        return RunImage.of(columns[:width], lo, hi, columns[width + 2 :], by_context)

    def families(self, rows: np.ndarray) -> np.ndarray:
        """The distinct ones by prefix, context, lo and hi, as :mod:`indices.record_joining` takes them."""
        return unpack([self.image(rows, by_context=True).written()], self.prefix_width, self.context_width)

    def check_invariants(self) -> None:
        """Assert the module's invariants; for tests."""
        assert np.array_equal(self.addresses, _addresses(self.runs))
        for run, row in zip(self.runs, self.table, strict=True):
            lives = living(self.marks, row)
            assert int(row[DEAD]) == len(lives) - int(lives.sum())
            same = np.delete(row == run.row, [SERIAL, DEAD, DEAD_AT])
            assert same.all(), "a row of the table is that of its run"
            check_run(run, self.prefix_width, self.context_width, lives)
        assert self.old_runs <= len(self.runs)
        check_merges(self.runs, self.merges, self.old_runs)
        assert self.tail_rows <= self.tail.shape[1] <= TAIL_RECORDS
        ends = self.tail[self.prefix_width : self.prefix_width + 2, : self.tail_rows]
        assert ((ends[0] <= ends[1]) | ((ends[0] == KEY_MAX) & (ends[1] == KEY_MIN))).all()
        serials = [*self.table[:, SERIAL].tolist(), self.tail_serial]
        assert len(set(serials)) == len(serials) and max(serials) < self.next_serial


def _addresses(runs: Sequence[RecordRun]) -> np.ndarray:
    return np.array([run.address for run in runs], np.int64)
