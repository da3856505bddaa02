"""Runs: changed tuples with weights, sorted, and how they are merged with each other.

Specification: docs/design/engine.md section 2.

A run is one flat int64 array: its sorted columns one after the other, then the
prefix sums of its weights::

    columns[0] (n), columns[1] (n), ..., sums (n + 1)      sums[i] = weight of the first i tuples

so the net weight of any range of tuples is two look-ups (a scan, ILFTJ 3.1).

A long run whose first keys have many tuples each has a *directory* of them, in which a first key is found
among few, whatever the length of the run: int64 (2 k + 2,), of k first keys::

    key, place of its first tuple,  key, place of its first tuple,  ...  0, n

A change becomes a run.  With younger runs of at most twice its tuples it is merged at once as long as that is
little work; of two larger neighbours a :class:`RunMerge` makes one in pieces (:mod:`indices.merging`).

Invariants

1. A run never changes; it holds no tuple of weight 0, and its tuples increase strictly.
2. Runs are as :mod:`indices.merging` says; but a first run of more tuples than some number, which
   whoever has the runs may name, is *awaited* elsewhere: it stays as it is, whatever the run after it has.
3. How far a merge is depends on nothing but its two runs and the pieces made: whoever holds it may make the
   next one, and versions share it.
4. There are at most ``MAX_RUNS`` runs: whoever would bring more completes the merges first.
5. A run has a directory if, and only if, it has ``DIRECTORY_LEAST`` tuples and ``PER_FIRST_KEY`` for each of
   its first keys, on the average.

Cost: amortised O(log n) per tuple.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.housekeeping import housekeeping
from indices.merging import advanced, at_once, check_merges, n_busy, piece, with_begun
from indices.records import WORD
from lftj.memory import address, view
from lftj.storage.version_memory import RUN, Index, Level, Run, first_run, index_at, run_at

NEVER = 1 << 62
MAX_RUNS = 40
DIRECTORY_LEAST = 1 << 11
PER_FIRST_KEY = 8
NO_DIRECTORY = np.empty(0, np.int64)

# -- how far a merge is --------------------------------------------------------------------------
C_OLDER = 0  # tuples of the two runs that were read, in this pass
C_YOUNGER = 1
C_AT = 2  # tuples that are left of them, and their weight
C_WEIGHT = 3
C_FIRST_KEYS = 4  # of the tuples that are left: how many are in the directory
CURSOR_FIELDS = 5


@part
def compare_rows(a, a_length, i, b, b_length, j, levels):
    """Sign of (tuple i of run a) - (tuple j of run b), lexicographically."""
    for level in range(levels):
        left, right = a[level * a_length + i], b[level * b_length + j]
        if left != right:
            return -1 if left < right else 1
    return 0


@part(makes_arrays=True)
def directory_of(run):
    """The directory of a run of a version."""
    return view(run.directory, 2 * run.first_keys + 2 if run.first_keys else 0)


@part
def first_key_from(directory, number, key):
    """The number of the first key in a directory, from a number on, that is not below ``key``, or of its end.

    O(log of the distance moved).
    """
    end = np.int64(len(directory) // 2 - 1)
    if number >= end or directory[2 * number] >= key:
        return number
    below, step = number, 1  # whose key is below
    while below + step < end and directory[2 * (below + step)] < key:
        below += step
        step <<= 1
    above = min(below + step, end)
    below += 1
    while below < above:
        middle = (below + above) >> 1
        if directory[2 * middle] < key:
            below = middle + 1
        else:
            above = middle
    return below


@part
def add_up(older, older_length, younger, younger_length, levels, cursor, most, n_out, out):
    """Read ``most`` tuples more, or one more, of two runs that are added up; whether these are all.

    Weights that cancel leave no tuple.  older, younger: flat arrays; cursor: C_* fields, written; out: flat
    array with room for ``n_out`` tuples, its first sum 0, written; empty: what is left is counted only.
    """
    i, j, at, weight = cursor[C_OLDER], cursor[C_YOUNGER], cursor[C_AT], cursor[C_WEIGHT]
    older_sums, younger_sums = levels * older_length, levels * younger_length
    stop = i + j + most
    while i + j < stop and (i < older_length or j < younger_length):
        if j == younger_length:
            order = -1
        elif i == older_length:
            order = 1
        else:
            order = compare_rows(older, older_length, i, younger, younger_length, j, levels)
        its = np.int64(0)
        if order <= 0:
            its += older[older_sums + i + 1] - older[older_sums + i]
        if order >= 0:
            its += younger[younger_sums + j + 1] - younger[younger_sums + j]
        if its != 0:
            weight += its
            if len(out) > 0:
                for level in range(levels):
                    if order <= 0:
                        out[level * n_out + at] = older[level * older_length + i]
                    else:
                        out[level * n_out + at] = younger[level * younger_length + j]
                out[levels * n_out + at + 1] = weight
            at += 1
        i += order <= 0
        j += order >= 0
    cursor[C_OLDER], cursor[C_YOUNGER], cursor[C_AT], cursor[C_WEIGHT] = i, j, at, weight
    return i == older_length and j == younger_length


@part(makes_arrays=True)
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


@part(makes_arrays=True)
def _merged_into(run, levels, flat, n):
    """A flat array of ``n`` tuples and a run of a version added up, and the number of tuples."""
    length = run.length
    other = view(run.rows, (levels + 1) * length + 1)
    room = length + n
    out = np.empty((levels + 1) * room + 1, dtype=np.int64)
    out[levels * room] = 0
    cursor = np.zeros(CURSOR_FIELDS, dtype=np.int64)
    add_up(other, length, flat, n, levels, cursor, NEVER, room, out)
    return _narrowed(out, levels, room, cursor[C_AT]), cursor[C_AT]


@part(makes_arrays=True)
def _narrowed(flat, levels, room, n):
    """A flat array with room for more tuples as that of its ``n`` tuples."""
    if n == room:
        return flat
    narrow = np.empty((levels + 1) * n + 1, dtype=np.int64)
    for level in range(levels):
        for row in range(n):
            narrow[level * n + row] = flat[level * room + row]
    for row in range(n + 1):
        narrow[levels * n + row] = flat[levels * room + row]
    return narrow


@kernel(makes_arrays=True)
def _with_run(memory, rows, weights, fixed, most):
    """The memory of a version and one more run, merged as invariant 2 has it where that is little work.

    memory: that of a version; rows: int64 (levels, n), sorted and distinct; weights: int64 (n,), none 0;
    fixed: how many of the first runs stay as they are; most: tuples that may be merged at once.  Returns the
    memory, the new run's flat array and number of tuples, how many of the version's runs stay before it, and
    how many tuples were merged with it; less than none if more have to be.
    """
    levels = rows.shape[0]
    runs = first_run(memory.ctypes.data)
    n = np.int64(len(weights))
    flat = _flat_run(rows, weights, n)
    kept = index_at(memory.ctypes.data).runs
    moved = np.int64(0)
    while kept > fixed:
        run = run_at(runs + (kept - 1) * RUN)
        if run.length > 2 * n:
            break
        if run.length + n > most:
            moved = -1 - moved
            break
        kept -= 1
        flat, n = _merged_into(run, levels, flat, n)
        moved += n
    end = (runs - memory.ctypes.data + kept * RUN) // WORD
    made = np.empty(end + (RUN // WORD if n > 0 else 0), dtype=np.int64)
    for item in range(end):
        made[item] = memory[item]
    index_at(made.ctypes.data).runs = kept + (n > 0)
    if n > 0:
        run = run_at(made.ctypes.data + end * WORD)
        run.rows, run.length, run.directory, run.first_keys = flat.ctypes.data, n, 0, 0
    return made, flat, n, kept, moved


@kernel(makes_arrays=True)
def added_runs(memory):
    """The runs of a version added up: sorted distinct rows, int64 (levels, n), and weights (n,), none 0.

    memory: that of a version.
    """
    index = index_at(memory.ctypes.data)
    levels = index.levels
    flat, n = np.zeros(1, dtype=np.int64), np.int64(0)
    for number in range(index.runs - 1, -1, -1):
        flat, n = _merged_into(run_at(first_run(memory.ctypes.data) + number * RUN), levels, flat, n)
    rows = flat[: levels * n].copy().reshape((levels, n))
    return rows, np.diff(flat[levels * n :])


@part
def note_first_keys(keys, start, end, n, directory):
    """Enter the first keys of the tuples [start, end), ``n`` being there; returns how many there are then.

    keys: int64, the first column; directory: int64, written.  When it has no room but for its end, one key
    more is counted, and no other.
    """
    room = len(directory) // 2 - 1
    for place in range(start, end):
        if n > room:
            break
        if n == 0 or keys[place] != directory[2 * n - 2]:
            if n < room:
                directory[2 * n], directory[2 * n + 1] = keys[place], place
            n += 1
    return n


@kernel
def _note_first_keys(keys, start, end, n, directory):
    """:func:`note_first_keys`."""
    return note_first_keys(keys, start, end, n, directory)


def _directory_room(n_tuples: int) -> np.ndarray:
    """Room for the directory of so many tuples, empty where they have none; pages not written take none."""
    if n_tuples < DIRECTORY_LEAST:
        return NO_DIRECTORY
    return np.empty(2 * (n_tuples // PER_FIRST_KEY) + 2, np.int64)


def _directory_of(room: np.ndarray, n_first_keys: int, n_tuples: int) -> np.ndarray:
    """The directory of which so many keys were entered; the empty one, if they are too many."""
    if 2 * n_first_keys + 2 > len(room):
        return NO_DIRECTORY
    room[2 * n_first_keys : 2 * n_first_keys + 2] = 0, n_tuples
    return room[: 2 * n_first_keys + 2]


class IndexRun:
    """Some changed tuples: ``rows`` is the flat array of the module header, and ``directory``.

    That is empty where there is none; if it is not given, it is made.
    """

    __slots__ = ("__weakref__", "directory", "n_tuples", "rows")

    def __init__(self, rows: np.ndarray, n_tuples: int, directory: np.ndarray | None = None) -> None:
        self.rows = rows
        self.n_tuples = n_tuples
        if directory is None:
            directory = NO_DIRECTORY
            if n_tuples >= DIRECTORY_LEAST:
                directory = _directory_room(n_tuples)
                n_first_keys = _note_first_keys(rows, 0, n_tuples, 0, directory)
                directory = _directory_of(directory, n_first_keys, n_tuples)
        self.directory = directory

    def __reduce__(self) -> tuple[Any, ...]:
        """For an image (:mod:`maintenance.image`): less the directory."""
        return IndexRun, (self.rows, self.n_tuples)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.directory.nbytes

    @property
    def fields(self) -> list[int]:
        """The items of its record."""
        its = self.directory
        described = (address(its), len(its) // 2 - 1) if len(its) else (0, 0)
        return [address(self.rows), self.n_tuples, *described]

    def __len__(self) -> int:
        return self.n_tuples

    def columns(self, levels: int) -> list[np.ndarray]:
        return [self.rows[level * self.n_tuples : (level + 1) * self.n_tuples] for level in range(levels)]

    def check_directory(self) -> None:
        """Raise AssertionError where the directory is not that of invariant 5."""
        keys, places = np.unique(self.rows[: self.n_tuples], return_index=True)
        if self.n_tuples < DIRECTORY_LEAST or len(keys) > self.n_tuples // PER_FIRST_KEY:
            assert not len(self.directory)
            return
        assert self.directory.tolist() == [*np.stack([keys, places], axis=1).flat, 0, self.n_tuples]

    @property
    def weights(self) -> np.ndarray:
        return self.weights_of(0, self.n_tuples)

    def weights_of(self, start: int, end: int) -> np.ndarray:
        """The weights of a half-open range of its tuples."""
        sums = len(self.rows) - self.n_tuples - 1
        return np.diff(self.rows[sums + start : sums + end + 1])


Runs = tuple[IndexRun, ...]


@kernel
def _add_piece(older, older_length, younger, younger_length, levels, cursor, most, n_out, out, directory):
    """:func:`add_up`, and the directory; directory: as of :func:`note_first_keys`."""
    start = cursor[C_AT]
    at_end = add_up(older, older_length, younger, younger_length, levels, cursor, most, n_out, out)
    if len(directory) > 0:
        cursor[C_FIRST_KEYS] = note_first_keys(out, start, cursor[C_AT], cursor[C_FIRST_KEYS], directory)
    return at_end


class RunMerge:
    """Two neighbouring runs on the way to being one.

    >>> older = IndexRun(np.array([3, 5, 0, 1, 2]), 2)
    >>> merge = RunMerge(older, IndexRun(np.array([5, 7, 0, -1, 0]), 2))
    >>> merge.advance(4) is None
    True
    >>> merge.advance(4).rows.tolist()
    [3, 7, 0, 1, 2]
    """

    def __init__(self, older: IndexRun, younger: IndexRun) -> None:
        self.older, self.younger = older, younger
        self._levels = (len(older.rows) - 1) // older.n_tuples - 1
        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)
        self._out = np.empty(0, np.int64)  # until what will be left is counted
        self._directory = NO_DIRECTORY
        self._merged: IndexRun | None = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self._out.nbytes + self._directory.nbytes

    def advance(self, n_rows: int) -> IndexRun | None:
        """Read so many rows more, or one more, or all that are left; the run, if it is complete."""
        with self._lock:
            while self._merged is None:
                cursor = self._cursor.copy()  # an interruption leaves it where it was
                before = int(cursor[C_OLDER] + cursor[C_YOUNGER])
                n_out = len(self._out) // (self._levels + 1)
                at_end = _add_piece(
                    self.older.rows,
                    self.older.n_tuples,
                    self.younger.rows,
                    self.younger.n_tuples,
                    self._levels,
                    cursor,
                    n_rows,
                    n_out,
                    self._out,
                    self._directory,
                )
                read = int(cursor[C_OLDER] + cursor[C_YOUNGER]) - before
                housekeeping.rows += read
                n_rows -= read
                self._cursor = cursor
                if not at_end:
                    return None
                self._end_pass(int(cursor[C_AT]), int(cursor[C_FIRST_KEYS]))
            return self._merged

    def _end_pass(self, n_left: int, n_first_keys: int) -> None:
        """Go on to the second pass, or from that one to the end."""
        if len(self._out) or not n_left:
            self._merged = IndexRun(self._out, n_left, _directory_of(self._directory, n_first_keys, n_left))
            return
        out = np.empty((self._levels + 1) * n_left + 1, np.int64)
        out[self._levels * n_left] = 0
        self._directory = _directory_room(n_left)
        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)
        self._out = out


Merges = tuple[RunMerge, ...]


class RunList(NamedTuple):
    """The runs of one version, the oldest first, with its memory; both immutable."""

    memory: np.ndarray
    """As :mod:`lftj.storage.version_memory` has it."""
    runs: Runs
    merges: Merges = ()
    """Of neighbours among them, in their order."""

    @classmethod
    def of(cls, base_fields: Sequence[int], runs: Runs, awaited: int = NEVER) -> RunList:
        """Runs over a base, with merges where invariant 2 wants them; ``awaited`` as in :meth:`with_run`."""
        return cls(described(base_fields, runs), runs, _with_begun(runs, (), awaited))

    @property
    def nbytes(self) -> int:
        return sum([run.nbytes for run in self.runs]) + sum([merge.nbytes for merge in self.merges])

    def with_run(self, rows: np.ndarray, weights: np.ndarray, awaited: int = NEVER) -> RunList:
        """The runs after a change of some net rows (see ``signed_rows``), 1 at least.

        ``awaited``: a first run of more tuples stays as it is.
        """
        runs, merges, n_rows = self.runs, self.merges, len(weights)
        busy = n_busy(runs, merges) or _n_awaited(runs, awaited)
        memory, flat, n_tuples, kept, moved = _with_run(self.memory, rows, weights, busy, at_once(n_rows))
        runs = runs[:kept]
        if n_tuples:
            run = IndexRun(flat, n_tuples)
            runs = (*runs, run)
            if len(run.directory):
                memory[-Run.LENGTH :] = run.fields
        housekeeping.rows += moved if moved >= 0 else -1 - moved
        begins = moved < 0
        if merges:
            n_left = len(runs)
            runs, merges = advanced(runs, merges, piece(n_rows) if n_left < MAX_RUNS else NEVER)
            if len(runs) < n_left:
                begins = True
                levels = int(Index.view(memory).levels)
                memory = described(memory[: Index.LENGTH + levels * Level.LENGTH], runs)
        if begins:
            merges = _with_begun(runs, merges, awaited)
        return RunList(memory, runs, merges)

    def check_invariants(self, awaited: int = NEVER) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        levels = int(Index.view(self.memory).levels)
        assert len(self.runs) <= MAX_RUNS
        for run in self.runs:
            rows = list(zip(*(column.tolist() for column in run.columns(levels)), strict=True))
            assert rows == sorted(set(rows)) and run.n_tuples == len(rows) > 0
            assert (run.weights != 0).all()
            run.check_directory()
        check_merges(self.runs, self.merges, _n_awaited(self.runs, awaited))


def _n_awaited(runs: Runs, awaited: int) -> int:
    """How many of the first runs stay as they are: 1 or 0."""
    return int(bool(runs) and runs[0].n_tuples > awaited)


def _with_begun(runs: Runs, merges: Merges, awaited: int) -> Merges:
    return with_begun(runs, merges, _n_awaited(runs, awaited), RunMerge)


def described(base_fields: Sequence[int], runs: Runs) -> np.ndarray:
    """Memory of a version: the fields of its base, without runs, and its runs."""
    ends = [field for run in runs for field in run.fields]
    memory = np.array([*base_fields, *ends], dtype=np.int64)
    Index.view(memory).runs = len(runs)
    return memory
