"""Transactions of a batch, one after the other by a program of the commit machine.

Invariants

1. Nobody else reads the program's layers meanwhile: what is published is as it was before the batch.
2. How far it came is told from the log alone, at any time; :meth:`Stepper.fold` may be left half way and
   done again.

Cost: of a transaction that of the kernel, and a few steps of Python; what it did is read from the log when
somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np

from indices.records import WORD
from indices.wrapping import wraps_around
from lftj.memory import address
from lftj.rewriting.guard import Spans
from maintenance.changes.change import Change
from maintenance.changes.timed_change import TimedChange
from maintenance.machine.kernel import commit
from maintenance.machine.piece import Piece
from maintenance.machine.program import (
    ATTEMPT,
    COMMITS,
    IS_JOURNALED,
    LOG_END,
    N_STAGED,
    STAGED_AT,
    Layout,
    MachineProgram,
)
from maintenance.machine.records import DONE, FULL, LEFT, ROOM, TO_FOLD
from maintenance.machine.reference import compare, expected_changes
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Versions

Reference = Callable[[Versions, int], Mapping[str, Change] | None]
"""What the general way makes of a transaction over these versions; None where it refuses it."""


class Logged(Mapping[str, Change]):
    """What a transaction did, by relation and head, read from the log when it is first asked for."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece

    @cached_property
    def _changes(self) -> Mapping[str, Change]:
        return self._piece.changed()

    def __getitem__(self, name: str) -> Change:
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)


class Staged:
    """The transactions as the kernel takes them, one behind the other."""

    def __init__(self, changes: Mapping[str, TimedChange], layout: Layout, count: int) -> None:
        """``changes``: net, of base relations that the layout has; ``count``: how many transactions."""
        parts = []
        for name, change in changes.items():
            number, width, _, schema = layout.staged[name]
            rows = change.columns[: width + schema.wide]  # those of a bag without the number of the copy
            parts.append(np.vstack([np.full(len(change), number), change.signs, rows]))
        times = np.concatenate([change.times for change in changes.values()])
        order = np.argsort(times, kind="stable")
        lengths = np.concatenate([np.full(part.shape[1], len(part)) for part in parts])
        ends = np.cumsum(lengths[order])
        starts = np.empty_like(ends)
        starts[order] = ends - lengths[order]
        self._items = np.empty(ends[-1], np.int64)
        first = 0
        for part in parts:
            places = starts[first : first + part.shape[1]]
            self._items[places + np.arange(len(part))[:, None]] = part
            first += part.shape[1]
        before = np.searchsorted(times[order], np.arange(count + 1))
        self._ends = np.concatenate([[0], ends])[before].tolist()
        self._address = address(self._items)

    def place(self, number: int) -> tuple[int, int]:
        """Where a transaction's items stand, and how many there are."""
        first, end = self._ends[number : number + 2]
        return self._address + first * WORD, end - first


class Stepper:
    """The transactions of one batch, as far as the machine takes them.

    Attributes:
        versions: What transactions began with, and after :meth:`fold` what they led to.
        spans: Of guarded columns, likewise.
        n_done: How many transactions went this way.
        rules: What they took, by head, as far as they are folded.
    """

    def __init__(self, program: MachineProgram, staged: Staged, reference: Reference | None) -> None:
        """``reference``: given where each transaction is to be done the general way, too, and compared."""
        self.versions: Versions = {}
        self.spans: Spans = {}
        self.n_done = 0
        self.rules: dict[str, RuleStats] = {}
        self._program, self._staged, self._reference = program, staged, reference
        self._bound: Versions | None = None
        """What the program is bound to: it is ahead of that where these are the versions."""
        self._first = 0
        self._tried: tuple[int, Piece] | None = None

    @property
    def last(self) -> int:
        """The number of the last transaction that is done."""
        if self._tried is None:
            return self._first - 1
        number, piece = self._tried
        return number if piece.is_published else number - 1

    def begin(self, versions: Versions, spans: Spans, number: int) -> bool:
        """Go on from the versions before a transaction; whether the program can."""
        self.versions, self.spans, self._first, self._tried = versions, spans, number, None
        return self._bind()

    def _bind(self) -> bool:
        self._bound = None
        program = self._program
        if not program.phases_stay or not program.bind(self.versions, self.spans):
            return False
        program.header[IS_JOURNALED] = 0  # the journal gets one entry of all
        self._bound = self.versions
        return True

    def commit(self, number: int) -> Mapping[str, Change] | None:
        """Do a transaction, what it changes; None: nothing was done, it has to go the general way."""
        if self._bound is None:
            return None
        where, n_items = self._staged.place(number)
        if not n_items:
            return {}
        program = self._program
        status = self._run(number, where, n_items)
        if status in (FULL, ROOM):
            if program.header[LOG_END] * 2 > program.sizes.log:
                program.new_log()
                status = self._run(number, where, n_items)
            if status in (FULL, ROOM):
                self.fold()
                status = self._run(number, where, n_items) if self._bind() else LEFT
                while status == FULL and program.wants_room and self._bind():
                    status = self._run(number, where, n_items)
        if status not in (DONE, TO_FOLD):
            return None
        self.n_done += 1
        assert self._tried is not None
        done = Logged(self._tried[1])
        if status == TO_FOLD:
            self.fold()
            self._bind()
        return done

    @wraps_around
    def _run(self, number: int, where: int, n_items: int) -> int:
        program, expected = self._program, None
        if self._reference is not None:
            reference = self._reference
            expected = expected_changes(program, self.versions, lambda after: reference(after, number))
        header = program.header
        header[STAGED_AT], header[N_STAGED] = where, n_items
        attempt = header[ATTEMPT] = header[ATTEMPT] + 1
        piece = Piece(program.log, header[LOG_END], attempt, program.layout)
        self._tried = number, piece
        status = program.run(commit)
        if self._reference is not None and status in (DONE, TO_FOLD):
            compare(piece.changed(), expected)
        return status

    def fold(self) -> None:
        """Let the versions have all that was done, and heads know of it; any number of times."""
        program = self._program
        if self._bound is None or self._bound is not self.versions:
            return
        if program.header[COMMITS]:
            change = program.folded(self.versions)
            program.settle()
            self.spans = program.spans(self.spans)
            self.versions = change.new
        self._bound = None
        for name, figures in program.taken().rules.items():
            self.rules.setdefault(name, RuleStats(figures.strategy)).add(figures)
            self.rules[name].chosen = program.layout.chosen.get(name, ())
        program.release()
